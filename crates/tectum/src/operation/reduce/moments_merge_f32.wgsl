// Mean and scaled sum of squared deviations of each row from those of its segments (Chan, Golub and LeVeque 1979).
// in: means and spreads [rows, segments] of segments of `segment` elements, the last with what is left of `cols`;
// out: mean and spread [rows]: mean = Σ nₛ·meanₛ / cols, spread = scale·Σ (spreadₛ + nₛ·(meanₛ − mean)²). One workgroup
// per row, two passes, fixed trees.
fn size_of(s: u32) -> f32 {
    return f32(min(params.segment, params.cols - s * params.segment));
}

@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var row = group.x; row < params.rows; row += groups.x) {
        let base = row * params.segments;
        var acc = 0.0;
        for (var s = lane; s < params.segments; s += 256u) {
            acc += size_of(s) * means[base + s];
        }
        let centre = tectum_tree_sum(lane, acc) / f32(params.cols);
        acc = 0.0;
        for (var s = lane; s < params.segments; s += 256u) {
            let deviation = means[base + s] - centre;
            acc += spreads[base + s] + size_of(s) * (deviation * deviation);
        }
        let squares = tectum_tree_sum(lane, acc);
        if lane == 0u {
            mean[row] = centre;
            spread[row] = squares * params.scale;
        }
    }
}
