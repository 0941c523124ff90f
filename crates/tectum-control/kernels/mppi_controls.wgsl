// u[0, k] = the last applied action; u[t+1, k] = clip(mean[t] + sigma[k]·eps[t / hold, k]), with sample 0 free of noise.
// in: observation [channels + 1] (the last applied action at its end), mean [horizon], eps [ceil(horizon / hold), samples],
// sigma [samples]; out: u [horizon + 1, samples]. One invocation per stride-th element. Source: Williams et al. 2017.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < (params.horizon + 1u) * params.samples; i += stride) {
        let row = i / params.samples;
        let k = i % params.samples;
        if row == 0u {
            u[i] = observation[params.channels];
        } else {
            var value = mean[row - 1u];
            if k > 0u {
                value += sigma[k] * eps[((row - 1u) / params.hold) * params.samples + k];
            }
            u[i] = clamp(value, params.low, params.high);
        }
    }
}
