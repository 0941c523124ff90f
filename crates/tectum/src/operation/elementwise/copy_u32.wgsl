// y[i] = x[i].
// in: x [n]; out: y [n], words of any 32-bit type. One invocation copies every stride-th element. Exact.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.n; i += stride) {
        y[i] = x[i];
    }
}
