// y[i, col] = table[indices[i], col]; a row whose index is beyond the table is 0 and adds 1 to faults.
// in: table [rows, cols], indices [count]; out: y [count, cols]; in and out: faults [1]. Words of any type. One invocation
// moves every stride-th word. Exact.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var item = id.x; item < params.count * params.cols; item += stride) {
        let col = item % params.cols;
        let row = indices[item / params.cols];
        var word = 0u;
        if row < params.rows {
            word = table[row * params.cols + col];
        } else if col == 0u {
            atomicAdd(&faults[0], 1u);
        }
        y[item] = word;
    }
}
