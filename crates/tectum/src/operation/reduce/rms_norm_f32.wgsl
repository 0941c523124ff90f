// y[row, i] = x[row, i] / √(Σ x² / cols + ε) · gain[i].
// in: x [rows, cols], gain [cols]; out: y [rows, cols]. One workgroup per row, two passes, a fixed tree; a row read once
// stays in the cache. Rows stride over workgroups.
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
            let value = x[start + i];
            acc += value * value;
        }
        let inverse = 1.0 / sqrt(tectum_tree_sum(lane, acc) / f32(params.cols) + params.epsilon);
        for (var i = lane; i < params.cols; i += 256u) {
            y[start + i] = (x[start + i] * inverse) * gain[i];
        }
    }
}
