// y[m, n] = activation(Σ_k a[m, k]·b[n, k]·(scales[m]·step[n]) + bias[n]) + residual[m, n], the sum over bytes and exact
// in: a [m, words] and scales [m] as quantize_rows makes them; b in panels of 16 columns: 16 steps as bits, 48 words that this form does
// not read, then [words, 16] codes; bias [n] and residual [m, n] where the variant has them; out: y [m, n]. A workgroup computes a
// tile of 64 × 64, an invocation 4 × 4 of it, over slices of 16 words of k in 8 KiB of workgroup memory.
var<workgroup> a_tile: array<u32, 1024>;
var<workgroup> b_tile: array<u32, 1024>;

fn dots(left: u32, bt: u32) -> vec4<i32> {
    return vec4<i32>(
        dot4I8Packed(left, b_tile[bt]),
        dot4I8Packed(left, b_tile[bt + 1u]),
        dot4I8Packed(left, b_tile[bt + 2u]),
        dot4I8Packed(left, b_tile[bt + 3u]),
    );
}

@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let tiles_n = (params.n + 63u) / 64u;
    let tiles = tiles_n * ((params.m + 63u) / 64u);
    let panel = 64u + params.words * 16u;
    let lane_row = (lane / 16u) * 4u;
    let lane_col = (lane % 16u) * 4u;
    for (var tile = group.x; tile < tiles; tile += groups.x) {
        let first_row = (tile / tiles_n) * 64u;
        let first_col = (tile % tiles_n) * 64u;
        var acc0 = vec4<i32>();
        var acc1 = vec4<i32>();
        var acc2 = vec4<i32>();
        var acc3 = vec4<i32>();
        for (var first_k = 0u; first_k < params.words; first_k += 16u) {
            for (var part = 0u; part < 4u; part += 1u) {
                let slot = part * 256u + lane;
                let a_k = first_k + slot % 16u;
                let row = first_row + slot / 16u;
                var word = 0u;
                if row < params.m && a_k < params.words {
                    word = a[row * params.words + a_k];
                }
                a_tile[(slot % 16u) * 64u + slot / 16u] = word;
                let b_k = first_k + slot / 64u;
                let col = first_col + slot % 64u;
                word = 0u;
                if col < params.n && b_k < params.words {
                    word = b[(col / 16u) * panel + 64u + b_k * 16u + col % 16u];
                }
                b_tile[slot] = word;
            }
            workgroupBarrier();
            for (var k = 0u; k < 16u; k += 1u) {
                let at = k * 64u + lane_row;
                let bt = k * 64u + lane_col;
                acc0 += dots(a_tile[at], bt);
                acc1 += dots(a_tile[at + 1u], bt);
                acc2 += dots(a_tile[at + 2u], bt);
                acc3 += dots(a_tile[at + 3u], bt);
            }
            workgroupBarrier();
        }
        store(first_row + lane_row, first_col + lane_col, acc0, panel);
        store(first_row + lane_row + 1u, first_col + lane_col, acc1, panel);
        store(first_row + lane_row + 2u, first_col + lane_col, acc2, panel);
        store(first_row + lane_row + 3u, first_col + lane_col, acc3, panel);
    }
}

fn store(row: u32, first_col: u32, sums: vec4<i32>, panel: u32) {
    if row >= params.m {
        return;
    }
    for (var part = 0u; part < 4u; part += 1u) {
        let col = first_col + part;
        if col < params.n {
            let out = row * params.n + col;
            let step = bitcast<f32>(b[(col / 16u) * panel + col % 16u]);
            let value = f32(sums[part]) * (scales[row] * step);
            y[out] = tectum_activation(valuePLUS_BIAS, params.activation)PLUS_RESIDUAL;
        }
    }
}
