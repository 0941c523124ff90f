// Word i of y = the halves nearest to x[2i] (low) and x[2i + 1] (high, 0 beyond the end).
// in: x [n], f32 by their bits; out: y [ceil(n / 2)]. One invocation makes every stride-th word. Exact.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; 2u * i < params.n; i += stride) {
        var word = TO_HALF(x[2u * i]);
        if 2u * i + 1u < params.n {
            word |= TO_HALF(x[2u * i + 1u]) << 16u;
        }
        y[i] = word;
    }
}
