// y[i, col] = 1 where col = indices[i], else 0; an index beyond the columns gives zeros.
// in: indices [count]; out: y [count, cols]. One invocation writes every stride-th element. Exact.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var item = id.x; item < params.count * params.cols; item += stride) {
        y[item] = select(0.0, 1.0, item % params.cols == indices[item / params.cols]);
    }
}
