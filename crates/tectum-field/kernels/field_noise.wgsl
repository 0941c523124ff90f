// The draws of n elements from the first on: noise [n] of whole numbers, for tests and for the floor of a cycle. Exact.
// in: live, of which the key. One invocation strides over elements.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var i = id.x; i < params.n; i += groups.x * 256u) {
        noise[i] = f32(field_draw(params.first + i, live[LIVE_KEY], live[LIVE_KEY + 1u]));
    }
}
