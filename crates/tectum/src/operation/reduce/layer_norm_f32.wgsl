// y[row, i] = (x[row, i] − mean) / √(variance + ε) · gain[i] + bias[i], mean and variance (over cols) of the row.
// in: x [rows, cols], gain and bias [cols]; out: y [rows, cols]. One workgroup per row, three passes, fixed trees: the mean,
// the deviations from it, the result; a row read once stays in the cache. Rows stride over workgroups.
@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var row = group.x; row < params.rows; row += groups.x) {
        let start = row * params.cols;
        var acc = 0.0;
        for (var i = lane; i < params.cols; i += 256u) {
            acc += x[start + i];
        }
        let mean = tectum_tree_sum(lane, acc) / f32(params.cols);
        acc = 0.0;
        for (var i = lane; i < params.cols; i += 256u) {
            let deviation = x[start + i] - mean;
            acc += deviation * deviation;
        }
        let variance = tectum_tree_sum(lane, acc) / f32(params.cols);
        let inverse = 1.0 / sqrt(variance + params.epsilon);
        for (var i = lane; i < params.cols; i += 256u) {
            y[start + i] = ((x[start + i] - mean) * inverse) * gain[i] + bias[i];
        }
    }
}
