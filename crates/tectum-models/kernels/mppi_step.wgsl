// Adds the network's change to each sample's state, charges the step's cost, and writes the features of the next step.
//   s' = wrap(s + mean + deviation·change)
//   cost += m Σ w·q(s') + Σ b·max(0, |s'| − limit)² + e·we·(½ ratio ω² + cos θ − 1)² + wu·u² + wdu·(u − u_before)²
// with q = (s/scale)² or 1 − cos θ, m and e the step's multipliers. A cost that is not finite counts as 1e9.
// in: change [samples, channels], u [horizon + 1, samples], table [channels, 9]; in and out: states [channels, samples],
// costs [samples], features [samples, features]. One invocation per stride-th sample.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var k = id.x; k < params.samples; k += stride) {
        var cost = 0.0;
        var cosine = 1.0;
        var velocity = 0.0;
        for (var c = 0u; c < params.channels; c += 1u) {
            let place = c * params.samples + k;
            var s = states[place] + channel(c, 2u) + channel(c, 3u) * change[k * params.channels + c];
            let rad = channel(c, 0u);
            var charge = s / channel(c, 1u);
            charge *= charge;
            if rad != 0.0 {
                let half_turn = channel(c, 8u);
                s -= 2.0 * half_turn * floor((s + half_turn) / (2.0 * half_turn));
                let cos_angle = tectum_cos(s * rad);
                charge = 1.0 - cos_angle;
                if c == params.angle_channel {
                    cosine = cos_angle;
                }
            }
            if c == params.velocity_channel {
                velocity = s;
            }
            let beyond = max(0.0, abs(s) - channel(c, 6u)) / channel(c, 7u);
            cost += params.state_multiplier * channel(c, 4u) * charge + channel(c, 5u) * beyond * beyond;
            states[place] = s;
        }
        let energy = 0.5 * params.energy_ratio * velocity * velocity + cosine - 1.0;
        let now = u[(params.t + 1u) * params.samples + k];
        let rate = now - u[params.t * params.samples + k];
        cost += params.energy_weight * energy * energy + params.action_weight * now * now + params.rate_weight * rate * rate;
        cost += costs[k];
        if (bitcast<u32>(cost) & 0x7fffffffu) >= 0x7f800000u || cost > 1e9 {
            cost = 1e9;
        }
        costs[k] = cost;
        if params.t + 1u < params.horizon {
            write_features(k, params.t + 1u);
        }
    }
}
