// y[indices[i], col] = updates[i, col], in the order of i: the last of several rows with one index stays; an index beyond y's rows is ignored.
// in: updates [count, cols], indices [count]; in and out: y [rows, cols]. Words of any type. One invocation takes every stride-th element of the updates;
// that of a row writes it if no later row has its index, so that every element of y has one writer.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var item = id.x; item < params.count * params.cols; item += stride) {
        let col = item % params.cols;
        let row = indices[item / params.cols];
        if row >= params.rows {
            continue;
        }
        var i = item / params.cols + 1u;
        while i < params.count && indices[i] != row {
            i += 1u;
        }
        if i == params.count {
            y[row * params.cols + col] = updates[item];
        }
    }
}
