// y[m] = Σ_k a[m, k]·x[k] over bytes, two's complement, modulo 2³².
// in: a [m, words] and x [words], four bytes of k in each word, filled up with zeros; out: y [m] i32. One workgroup per row:
// 256 strided partial sums, then a binary tree. Exact.
var<workgroup> partial: array<i32, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var row = group.x; row < params.m; row += groups.x) {
        var acc = 0;
        for (var i = lane; i < params.words; i += 256u) {
            acc += dot4I8Packed(a[row * params.words + i], x[i]);
        }
        partial[lane] = acc;
        workgroupBarrier();
        for (var half = 128u; half > 0u; half /= 2u) {
            if lane < half {
                partial[lane] += partial[lane + half];
            }
            workgroupBarrier();
        }
        if lane == 0u {
            y[row] = partial[0];
        }
        workgroupBarrier();
    }
}
