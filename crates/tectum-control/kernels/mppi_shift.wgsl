// result = [first action, least cost, mean cost, greatest weight]; mean moves on by one step, its last element stays.
// in: weighted [horizon], total [1], greatest [1], best_weight [1]; out: mean [horizon], result [4].
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var t = id.x; t < params.horizon; t += stride) {
        mean[t] = weighted[min(t + 1u, params.horizon - 1u)];
        if t == 0u {
            result[0] = clamp(weighted[0], params.low, params.high);
            result[1] = -greatest[0];
            result[2] = total[0] / f32(params.samples);
            result[3] = best_weight[0];
        }
    }
}
