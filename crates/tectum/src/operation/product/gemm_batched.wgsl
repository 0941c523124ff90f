// y[matrix, m, n] = Σ_k a[matrix, m, k]·b[matrix, k, n]
// in: a by strides (a_matrix, a_row, a_col), b by strides (b_matrix, b_row, b_col), in elements, a stride of 0 between matrices
// for an operand that all share; f32, or f16 or bf16 packed two in a word (a_at and b_at, put before this body, read one
// element); out: y [batch, m, n]. Tiles as in gemm_f32, over all matrices. f32 accumulation, k in order.
var<workgroup> a_tile: array<f32, 1024>;
var<workgroup> b_tile: array<f32, 1024>;

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
    for (var item = group.x; item < tiles * params.batch; item += groups.x) {
        let matrix = item / tiles;
        let tile = item % tiles;
        let a_base = matrix * params.a_matrix;
        let b_base = matrix * params.b_matrix;
        let y_base = matrix * params.m * params.n;
        let first_row = (tile / tiles_n) * 64u;
        let first_col = (tile % tiles_n) * 64u;
        var acc0 = vec4<f32>();
        var acc1 = vec4<f32>();
        var acc2 = vec4<f32>();
        var acc3 = vec4<f32>();
        for (var first_k = 0u; first_k < params.k; first_k += 16u) {
            for (var part = 0u; part < 4u; part += 1u) {
                // Neighbouring lanes walk the contiguous axis of each operand.
                let slot = part * 256u + lane;
                var a_k = slot % 16u;
                var a_m = slot / 16u;
                if params.a_row < params.a_col {
                    a_k = slot / 64u;
                    a_m = slot % 64u;
                }
                var value = 0.0;
                if first_row + a_m < params.m && first_k + a_k < params.k {
                    value = a_at(a_base + (first_row + a_m) * params.a_row + (first_k + a_k) * params.a_col);
                }
                a_tile[a_k * 64u + a_m] = value;
                var b_k = slot / 64u;
                var b_n = slot % 64u;
                if params.b_row < params.b_col {
                    b_k = slot % 16u;
                    b_n = slot / 16u;
                }
                value = 0.0;
                if first_k + b_k < params.k && first_col + b_n < params.n {
                    value = b_at(b_base + (first_k + b_k) * params.b_row + (first_col + b_n) * params.b_col);
                }
                b_tile[b_k * 64u + b_n] = value;
            }
            workgroupBarrier();
            for (var k = 0u; k < 16u; k += 1u) {
                let at = k * 64u + lane_row;
                let bt = k * 64u + lane_col;
                let right = vec4<f32>(b_tile[bt], b_tile[bt + 1u], b_tile[bt + 2u], b_tile[bt + 3u]);
                acc0 += a_tile[at] * right;
                acc1 += a_tile[at + 1u] * right;
                acc2 += a_tile[at + 2u] * right;
                acc3 += a_tile[at + 3u] * right;
            }
            workgroupBarrier();
        }
        store(y_base, first_row + lane_row, first_col + lane_col, acc0);
        store(y_base, first_row + lane_row + 1u, first_col + lane_col, acc1);
        store(y_base, first_row + lane_row + 2u, first_col + lane_col, acc2);
        store(y_base, first_row + lane_row + 3u, first_col + lane_col, acc3);
    }
}

fn store(base: u32, row: u32, first_col: u32, values: vec4<f32>) {
    if row >= params.m {
        return;
    }
    for (var part = 0u; part < 4u; part += 1u) {
        let col = first_col + part;
        if col < params.n {
            y[base + row * params.n + col] = values[part];
        }
    }
}
