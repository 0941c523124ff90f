// y[i, ..] = a[i, ..] followed by b[i, ..], for words of any type
// in: a [·, a_len], b [·, b_len]; out: y [·, a_len + b_len], n words in all. One invocation moves one word; indices stride over
// invocations.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    let len = params.a_len + params.b_len;
    for (var i = id.x; i < params.n; i += stride) {
        let row = i / len;
        let at = i % len;
        if at < params.a_len {
            y[i] = a[row * params.a_len + at];
        } else {
            y[i] = b[row * params.b_len + (at - params.a_len)];
        }
    }
}
