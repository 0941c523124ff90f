// y[i] = a[i mod a_period] where condition[i] is not 0, else b[i mod b_period], for words of any type
// in: condition [n], a [a_period], b [b_period]; out: y [n]. One invocation moves one word; indices stride over invocations.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.n; i += stride) {
        if condition[i] != 0 {
            y[i] = a[i % params.a_period];
        } else {
            y[i] = b[i % params.b_period];
        }
    }
}
