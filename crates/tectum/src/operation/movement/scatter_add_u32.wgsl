// y[indices[i], col] += x[i, col] modulo 2³²; an index beyond y's rows is skipped and adds 1 to faults.
// in: x [count, cols], indices [count]; in and out: y [rows, cols], faults [1]. One invocation adds every stride-th word with
// an atomic: integers, so the order does not matter. Exact.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var item = id.x; item < params.count * params.cols; item += stride) {
        let col = item % params.cols;
        let row = indices[item / params.cols];
        if row < params.rows {
            atomicAdd(&y[row * params.cols + col], x[item]);
        } else if col == 0u {
            atomicAdd(&faults[0], 1u);
        }
    }
}
