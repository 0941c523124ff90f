// y[indices[i], col] = combine(y[indices[i], col], updates[i, col]), in the order of i; an index beyond y's rows is ignored.
// in: updates [count, cols], indices [count]; in and out: y [rows, cols]. One invocation takes every stride-th element of the updates: that of the first
// row with an index combines all with it, the others end at the first equal one. So every element of y has one writer and one order, without atomics.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var item = id.x; item < params.count * params.cols; item += stride) {
        let col = item % params.cols;
        let first = item / params.cols;
        let row = indices[first];
        if row >= params.rows {
            continue;
        }
        var i = 0u;
        while i < first && indices[i] != row {
            i += 1u;
        }
        if i == first {
            var value = y[row * params.cols + col];
            while i < params.count {
                if indices[i] == row {
                    value = combine(value, updates[i * params.cols + col]);
                }
                i += 1u;
            }
            y[row * params.cols + col] = value;
        }
    }
}
