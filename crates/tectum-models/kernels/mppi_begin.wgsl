// Puts every sample at the observed state, its cost at 0 and its features at step 0.
// in: observation [channels + 1], u [horizon + 1, samples], table [channels, 9]; out: states [channels, samples], costs
// [samples], features [samples, features]. One invocation per stride-th sample.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var k = id.x; k < params.samples; k += stride) {
        for (var c = 0u; c < params.channels; c += 1u) {
            states[c * params.samples + k] = observation[c];
        }
        costs[k] = 0.0;
        write_features(k, 0u);
    }
}
