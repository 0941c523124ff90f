// Sum of each column over the rows of each segment: y[s, col] = Σ x[s·segment .., col].
// in: x [rows, cols]; out: y [segments, cols]. One invocation adds one segment of one column, row after row.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var item = id.x; item < params.segments * params.cols; item += stride) {
        let s = item / params.cols;
        let col = item % params.cols;
        let end = min((s + 1u) * params.segment, params.rows);
        var acc = real(0.0);
        for (var row = s * params.segment; row < end; row += 1u) {
            acc += x[row * params.cols + col];
        }
        y[item] = acc;
    }
}
