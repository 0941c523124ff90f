// result = [first action, least cost, mean cost, greatest weight, samples that count]; mean moves on by one step, its
// last step stays. in: weighted [rows] (A numbers for each step), totals [2], greatest [1], best_weight [1],
// limits [A, 3]: lowest, highest, scale; out: mean [rows], result [A + 4].
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var row = id.x; row < params.rows; row += stride) {
        let is_last = row + params.actions >= params.rows;
        mean[row] = weighted[select(row + params.actions, row, is_last)];
        if row < params.actions {
            result[row] = clamp(weighted[row], limits[3u * row], limits[3u * row + 1u]);
        }
        if row == 0u {
            result[params.actions] = -greatest[0];
            result[params.actions + 1u] = totals[0] / max(totals[1], 1.0);
            result[params.actions + 2u] = best_weight[0];
            result[params.actions + 3u] = totals[1];
        }
    }
}
