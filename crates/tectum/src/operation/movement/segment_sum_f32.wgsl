// y[r, col] += Σ x[i, col] over all i with segments[i] = r, in the order of i; a segment beyond y's rows adds nothing.
// in: x [count, cols], segments [count]; in and out: y [rows, cols]. One invocation takes every stride-th element of x: that of
// the first row of a segment sums the segment, the others end at the first equal one. So every element of y has one writer and one
// order of addition, without atomics, and the work does not grow with the rows of y.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var item = id.x; item < params.count * params.cols; item += stride) {
        let col = item % params.cols;
        let first = item / params.cols;
        let row = segments[first];
        var i = 0u;
        while i < first && segments[i] != row {
            i += 1u;
        }
        if row < params.rows && i == first {
            var sum = y[row * params.cols + col];
            while i < params.count {
                if segments[i] == row {
                    sum += x[i * params.cols + col];
                }
                i += 1u;
            }
            y[row * params.cols + col] = sum;
        }
    }
}
