// Rows of controls, one for each number of an action: u[a, k] = the last applied action; u[(t + 1) A + a, k] = clip(mean[t A + a] + sigma[k] scale[a]
// eps[(t / hold) A + a, k]), with sample 0 free of noise.
// in: observation [channels + A] (the last applied action at its end), mean [horizon A], eps [ceil(horizon / hold) A, samples], sigma [samples],
// limits [A, 3]: lowest, highest, scale; out: u [(horizon + 1) A, samples]. One invocation per stride-th element. Source: Williams et al. 2017.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < (params.horizon + 1u) * params.actions * params.samples; i += stride) {
        let row = i / params.samples;
        let k = i % params.samples;
        let action = row % params.actions;
        if row < params.actions {
            u[i] = observation[params.channels + action];
        } else {
            var value = mean[row - params.actions];
            if k > 0u {
                let knot = (row / params.actions - 1u) / params.hold;
                value += sigma[k] * limits[3u * action + 2u] * eps[(knot * params.actions + action) * params.samples + k];
            }
            u[i] = clamp(value, limits[3u * action], limits[3u * action + 1u]);
        }
    }
}
