// y[i] += offsets[i / 1024], modulo 2³².
// in: offsets [ceil(n / 1024)]; in and out: y [n]. One invocation adds to every stride-th element. Exact.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.n; i += stride) {
        y[i] += offsets[i / 1024u];
    }
}
