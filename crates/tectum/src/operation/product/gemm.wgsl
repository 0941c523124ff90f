// y[m, n] = activation(Σ_k a[m, k]·b[k, n] + bias[n]) + residual[m, n]
// in: a by strides (a_row, a_col), b by strides (b_row, b_col), or a row-major and b in panels of 16 columns;
// bias [n] and residual [m, n] where the variant has them;
// out: y [m, n]. A workgroup computes a tile of 64 × 64, an invocation 4 × 4 of it, over slices of 16 of k held in
// 8 KiB of workgroup memory (16 KiB for f64); tiles stride over the workgroups. Accumulation in `real`, k in order.
var<workgroup> a_tile: array<real, 1024>;
var<workgroup> b_tile: array<real, 1024>;

@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let tiles_n = (params.n + 63u) / 64u;
    let tiles = tiles_n * ((params.m + 63u) / 64u);
    let lane_row = (lane / 16u) * 4u;
    let lane_col = (lane % 16u) * 4u;
    for (var tile = group.x; tile < tiles; tile += groups.x) {
        let first_row = (tile / tiles_n) * 64u;
        let first_col = (tile % tiles_n) * 64u;
        var acc0 = vec4<real>();
        var acc1 = vec4<real>();
        var acc2 = vec4<real>();
        var acc3 = vec4<real>();
        for (var first_k = 0u; first_k < params.k; first_k += 16u) {
            for (var part = 0u; part < 4u; part += 1u) {
                // Neighbouring lanes walk the contiguous axis of each operand.
                let slot = part * 256u + lane;
                var a_k = slot % 16u;
                var a_m = slot / 16u;
                if A_IS_COLUMNS {
                    a_k = slot / 64u;
                    a_m = slot % 64u;
                }
                var value = real(0.0);
                if first_row + a_m < params.m && first_k + a_k < params.k {
                    value = A_VALUE;
                }
                a_tile[a_k * 64u + a_m] = value;
                var b_k = slot / 64u;
                var b_n = slot % 64u;
                if B_IS_COLUMNS {
                    b_k = slot % 16u;
                    b_n = slot / 16u;
                }
                value = 0.0;
                if first_k + b_k < params.k && first_col + b_n < params.n {
                    value = B_VALUE;
                }
                b_tile[b_k * 64u + b_n] = value;
            }
            workgroupBarrier();
            for (var k = 0u; k < 16u; k += 1u) {
                let at = k * 64u + lane_row;
                let bt = k * 64u + lane_col;
                let right = vec4<real>(b_tile[bt], b_tile[bt + 1u], b_tile[bt + 2u], b_tile[bt + 3u]);
                acc0 += a_tile[at] * right;
                acc1 += a_tile[at + 1u] * right;
                acc2 += a_tile[at + 2u] * right;
                acc3 += a_tile[at + 3u] * right;
            }
            workgroupBarrier();
        }
        store(first_row + lane_row, first_col + lane_col, acc0);
        store(first_row + lane_row + 1u, first_col + lane_col, acc1);
        store(first_row + lane_row + 2u, first_col + lane_col, acc2);
        store(first_row + lane_row + 3u, first_col + lane_col, acc3);
    }
}

fn store(row: u32, first_col: u32, values: vec4<real>) {
    if row >= params.m {
        return;
    }
    for (var part = 0u; part < 4u; part += 1u) {
        let col = first_col + part;
        if col < params.n {
            let out = row * params.n + col;
            y[out] = tectum_activation(values[part]PLUS_BIAS, params.activation)PLUS_RESIDUAL;
        }
    }
}
