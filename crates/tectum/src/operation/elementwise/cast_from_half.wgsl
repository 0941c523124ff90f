// y[i] = the f32 of half i mod 2 (low first) of word i / 2 of x.
// in: x [ceil(n / 2)]; out: y [n], f32 by their bits. One invocation makes every stride-th element. Exact.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.n; i += stride) {
        let word = x[i / 2u];
        y[i] = HALF_BITS(select(word & 0xffffu, word >> 16u, (i & 1u) == 1u));
    }
}
