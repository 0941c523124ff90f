// Mean and sum of squared deviations of each segment of each row, the second times `scale`.
// in: x [rows, cols]; out: mean and spread [rows, segments]. One workgroup takes one segment in two passes over it, each a
// fixed tree: first the mean, then the deviations from it, so that no large numbers cancel. Items stride over workgroups.
@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var item = group.x; item < params.rows * params.segments; item += groups.x) {
        let row = item / params.segments;
        let start = (item % params.segments) * params.segment;
        let end = min(start + params.segment, params.cols);
        let base = row * params.cols;
        var acc = 0.0;
        for (var i = start + lane; i < end; i += 256u) {
            acc += x[base + i];
        }
        let centre = tectum_tree_sum(lane, acc) / f32(end - start);
        acc = 0.0;
        for (var i = start + lane; i < end; i += 256u) {
            let deviation = x[base + i] - centre;
            acc += deviation * deviation;
        }
        let squares = tectum_tree_sum(lane, acc);
        if lane == 0u {
            mean[item] = centre;
            spread[item] = squares * params.scale;
        }
    }
}
