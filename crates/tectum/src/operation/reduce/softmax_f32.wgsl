// y[row, i] = exp(scale·x[row, i] − m) / Σ exp(scale·x[row, j] − m), m the greatest scaled element of the row.
// in: x [rows, cols]; out: y [rows, cols]. One workgroup per row, three passes, fixed trees; rows stride over workgroups.
// A NaN or +inf in a row makes it NaN, and so does a row of -inf alone.
@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var row = group.x; row < params.rows; row += groups.x) {
        let start = row * params.cols;
        let end = start + params.cols;
        var greatest = -tectum_inf();
        for (var i = start + lane; i < end; i += 256u) {
            greatest = tectum_max(greatest, params.scale * x[i]);
        }
        greatest = tectum_tree_max(lane, greatest);
        var total = 0.0;
        for (var i = start + lane; i < end; i += 256u) {
            let e = tectum_exp(params.scale * x[i] - greatest);
            y[i] = e;
            total += e;
        }
        let inverse = 1.0 / tectum_tree_sum(lane, total);
        for (var i = start + lane; i < end; i += 256u) {
            y[i] *= inverse;
        }
    }
}
