// y[i0, i1, i2, i3] = x[first + i0·s0 + i1·s1 + i2·s2 + i3·s3], for words of any type
// in: x; out: y [·, d1, d2, d3], n elements in all. One invocation moves one word; indices stride over invocations.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.n; i += stride) {
        let i3 = i % params.d3;
        let rest = i / params.d3;
        let i2 = rest % params.d2;
        let outer = rest / params.d2;
        let i1 = outer % params.d1;
        let i0 = outer / params.d1;
        y[i] = x[params.first + i0 * params.s0 + i1 * params.s1 + i2 * params.s2 + i3 * params.s3];
    }
}
