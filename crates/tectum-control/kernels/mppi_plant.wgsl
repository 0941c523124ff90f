// The cost of each sample: the plant's own equations over the horizon, one sample an invocation.
//   cost = Σ c(s, u) + m·c(s_end, 0) + w·e(s_end)², s' = f(s, u), c the body's negative reward, e what its energy is off that of rest upright,
// m the terminal multiplier, w the weight of energy: a swing that takes longer than the horizon pays by e. A cost not finite counts as 1e9.
// Each sample but the first switches to a regulator of rest upright, u = -K s within the action's limits, after a share of its own of
// the horizon (from 1 on: never); what is applied then takes the place of what was drawn.
// in: observation [channels + 1], handover [samples]; in and out: u [horizon + 1, samples], of which the first row is not used; out: costs
// [samples]. `Plant` (position and speed of one degree of freedom), `plant_cost`, `plant_energy`, `plant_feedback` and `plant_step` are the
// body's. Source: Williams et al. 2017; samples of other controllers among its own: Trevisan, Alonso-Mora, Biased-MPPI, RA-L 2024.
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var k = id.x; k < params.samples; k += groups.x * 64u) {
        var s = Plant(observation[0], observation[1]);
        var cost = 0.0;
        let drawn = select(min(u32(handover[k] * f32(params.horizon + 1u)), params.horizon), params.horizon, k == 0u);
        for (var t = 1u; t <= params.horizon; t += 1u) {
            var action = u[t * params.samples + k];
            if (t > drawn) {
                action = clamp(plant_feedback(s, vec2<f32>(params.gain_position, params.gain_speed)), params.low, params.high);
                u[t * params.samples + k] = action;
            }
            cost += plant_cost(s, action);
            s = plant_step(s, action);
        }
        let energy = plant_energy(s);
        cost += params.terminal_multiplier * plant_cost(s, 0.0) + params.energy_weight * energy * energy;
        costs[k] = select(1e9, min(cost, 1e9), (bitcast<u32>(cost) & 0x7fffffffu) < 0x7f800000u);
    }
}
