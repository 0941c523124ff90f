// y[row] = Σ x[row, ..] / divisor, where `divisor` may count more elements than the row has (sums of segments).
// in: x [rows, cols]; out: y [rows]. One workgroup per row: 256 strided partial sums, then a binary tree.
@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var row = group.x; row < params.rows; row += groups.x) {
        var acc = real(0.0);
        for (var i = lane; i < params.cols; i += 256u) {
            acc += x[row * params.cols + i];
        }
        let total = tectum_tree_sum(lane, acc);
        if lane == 0u {
            y[row] = total / real(params.divisor);
        }
    }
}
