// y[m, n] of Σ_k a[m, k]·b[n, k] over bytes, two's complement, modulo 2³²: the sum itself, or scaled with bias, activation and residual.
// in: a [m, words] and b [n, words], four bytes of k in each word, rows filled up with zeros, or b in panels of 16 columns (b_word, put before this
// body, reads a word); out: y [m, n]. A workgroup computes a tile of 64 × 64, an invocation 4 × 4 of it, over slices of 16 words of k in 8 KiB of
// workgroup memory. The sum is exact.
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
                let a_k = slot % 16u;
                let row = slot / 16u;
                var word = 0u;
                if first_row + row < params.m && first_k + a_k < params.words {
                    word = a[(first_row + row) * params.words + first_k + a_k];
                }
                a_tile[a_k * 64u + row] = word;
                // Neighbouring lanes walk the contiguous axis of b.
                let b_k = B_K;
                let col = B_COL;
                word = 0u;
                if first_col + col < params.n && first_k + b_k < params.words {
                    word = b_word(first_col + col, first_k + b_k);
                }
                b_tile[b_k * 64u + col] = word;
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
        store(first_row + lane_row, first_col + lane_col, acc0);
        store(first_row + lane_row + 1u, first_col + lane_col, acc1);
        store(first_row + lane_row + 2u, first_col + lane_col, acc2);
        store(first_row + lane_row + 3u, first_col + lane_col, acc3);
    }
}

fn store(row: u32, first_col: u32, values: vec4<i32>) {
    if row >= params.m {
        return;
    }
    for (var part = 0u; part < 4u; part += 1u) {
        let col = first_col + part;
        if col < params.n {
            let out = row * params.n + col;
            y[out] = RESULT;
        }
    }
}
