// y[i] = word.
// in: word (any 32-bit type by its bits); out: y [n]. One invocation writes every stride-th element.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.n; i += stride) {
        y[i] = params.word;
    }
}
