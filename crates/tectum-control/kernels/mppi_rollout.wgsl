// The cost of each sample: the twin rolled over the horizon, layers and all, in one invocation a sample.
//   s' = wrap(s + mean + deviation·predict(observe(s, u)))
//   cost += m Σ w·q(s') + Σ b·max(0, |s'| − limit)² + we·(½ ratio ω² + cos θ − 1)² + wu·u² + wdu·(u − u_before)²
// with q = (s/scale)², 1 − cos θ or θ², m the terminal multiplier in the last step, and we from step energy_from on. A cost not
// finite counts as 1e9.
// model: weights as the network's parameter layout packs them (constants LAYER_*), table [channels, 10]: radians per unit
// (0: not an angle), scale, mean and deviation of the learned change, weight, barrier weight, limit and scale, half a turn,
// whether an angle pays θ².
// Two files say what is read: `mppi_read_state.wgsl` the state alone, `mppi_read_rows.wgsl` some rows back, by several networks.
// in: observation [channels + 1 and what is read besides], u [horizon + 1, samples]; out: costs [samples], scratch [rows, samples]: 2 WIDTH of
// activations, then what is read besides.
// An invocation rolls four samples, one in each part of its vectors, so that a weight, which all invocations read at one
// address, is read once for four; eight columns share a read of the input. Activations lie in storage, each invocation's in
// columns of its own: as arrays of an invocation they are indexed dynamically, which drivers turn into ladders of selects
// or into spills, and workgroup memory (16 KiB in the portable profile) holds neither them nor the weights of 64-64.
// Ladder: docs/decisions/0003-fused-rollout.md.
// Source: Williams et al. 2017.
fn channel(index: u32, number: u32) -> f32 {
    return table[index * 10u + number];
}

fn sine(x: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(tectum_sin(x.x), tectum_sin(x.y), tectum_sin(x.z), tectum_sin(x.w));
}

fn cosine(x: vec4<f32>) -> vec4<f32> {
    return vec4<f32>(tectum_cos(x.x), tectum_cos(x.y), tectum_cos(x.z), tectum_cos(x.w));
}

// What the plant makes of an action.
fn applied(value: vec4<f32>) -> vec4<f32> {
    if params.discrete != 0u {
        return select(vec4<f32>(params.low), vec4<f32>(params.high), value >= vec4<f32>());
    }
    return value;
}

fn actions(row: u32, first: u32) -> vec4<f32> {
    let at = row * params.samples + first;
    return vec4<f32>(u[at], u[at + 1u], u[at + 2u], u[at + 3u]);
}

fn activation(row: u32, first: u32) -> vec4<f32> {
    let at = row * params.samples + first;
    return vec4<f32>(scratch[at], scratch[at + 1u], scratch[at + 2u], scratch[at + 3u]);
}

fn keep(row: u32, first: u32, value: vec4<f32>) {
    let at = row * params.samples + first;
    scratch[at] = value.x;
    scratch[at + 1u] = value.y;
    scratch[at + 2u] = value.z;
    scratch[at + 3u] = value.w;
}

fn bounded(cost: f32) -> f32 {
    if (bitcast<u32>(cost) & 0x7fffffffu) >= 0x7f800000u || cost > 1e9 {
        return 1e9;
    }
    return cost;
}

// Runs a network's layers from what was read to one half of the activations and back; gives where the last one left its results.
// Columns beyond a layer's own are computed from the padding and never read.
fn network(member: u32, first: u32) -> u32 {
    for (var l = 0u; l < LAYERS; l += 1u) {
        let w = member * PARAMETERS + LAYER_WEIGHT[l];
        let b = member * PARAMETERS + LAYER_BIAS[l];
        let rows = LAYER_ROWS[l];
        let columns = LAYER_COLUMNS[l];
        let source = select((l % 2u) * WIDTH, FEATURES, l == 0u);
        let target_half = (1u - l % 2u) * WIDTH;
        for (var j = 0u; j < columns; j += 8u) {
            var a0 = vec4<f32>(weights[b + j]);
            var a1 = vec4<f32>(weights[b + j + 1u]);
            var a2 = vec4<f32>(weights[b + j + 2u]);
            var a3 = vec4<f32>(weights[b + j + 3u]);
            var a4 = vec4<f32>(weights[b + j + 4u]);
            var a5 = vec4<f32>(weights[b + j + 5u]);
            var a6 = vec4<f32>(weights[b + j + 6u]);
            var a7 = vec4<f32>(weights[b + j + 7u]);
            for (var i = 0u; i < rows; i += 1u) {
                let at = w + i * columns + j;
                let value = activation(source + i, first);
                a0 += weights[at] * value;
                a1 += weights[at + 1u] * value;
                a2 += weights[at + 2u] * value;
                a3 += weights[at + 3u] * value;
                a4 += weights[at + 4u] * value;
                a5 += weights[at + 5u] * value;
                a6 += weights[at + 6u] * value;
                a7 += weights[at + 7u] * value;
            }
            let to = target_half + j;
            keep(to, first, a0);
            keep(to + 1u, first, a1);
            keep(to + 2u, first, a2);
            keep(to + 3u, first, a3);
            keep(to + 4u, first, a4);
            keep(to + 5u, first, a5);
            keep(to + 6u, first, a6);
            keep(to + 7u, first, a7);
        }
        if l + 1u < LAYERS {
            for (var j = target_half; j < target_half + columns; j += 1u) {
                let v = activation(j, first);
                keep(j, first, vec4<f32>(tectum_tanh(v.x), tectum_tanh(v.y), tectum_tanh(v.z), tectum_tanh(v.w)));
            }
        }
    }
    return (LAYERS % 2u) * WIDTH;
}

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 16u;
    for (var block = id.x; block < params.samples / 4u; block += stride) {
        let first = block * 4u;
        var s: array<vec4<f32>, CHANNELS>;
        for (var c = 0u; c < CHANNELS; c += 1u) {
            s[c] = vec4<f32>(observation[c]);
        }
        begin(first);
        var before = actions(0u, first);
        var cost = vec4<f32>();
        for (var t = 0u; t < params.horizon; t += 1u) {
            let now = actions(t + 1u, first);
            observe(&s, t, first);
            let change = predict(first);
            var cos_pole = vec4<f32>(1.0);
            var velocity = vec4<f32>();
            let multiplier = select(1.0, params.terminal_multiplier, t + 1u == params.horizon);
            for (var c = 0u; c < CHANNELS; c += 1u) {
                let rad = channel(c, 0u);
                var value = s[c] + channel(c, 2u) + channel(c, 3u) * activation(change + c, first);
                var charge = value / channel(c, 1u);
                charge *= charge;
                if rad != 0.0 {
                    let turn = 2.0 * channel(c, 8u);
                    value -= turn * floor((value + channel(c, 8u)) / turn);
                    let angle = value * rad;
                    let cos_angle = cosine(angle);
                    charge = select(angle * angle, 1.0 - cos_angle, channel(c, 9u) == 0.0);
                    if c == params.angle_channel {
                        cos_pole = cos_angle;
                    }
                }
                if c == params.velocity_channel {
                    velocity = value;
                }
                let beyond = max(vec4<f32>(), abs(value) - channel(c, 6u)) / channel(c, 7u);
                cost += multiplier * channel(c, 4u) * charge + channel(c, 5u) * beyond * beyond;
                s[c] = value;
            }
            let energy = 0.5 * params.energy_ratio * velocity * velocity + cos_pole - 1.0;
            let energy_weight = select(0.0, params.energy_weight, t >= params.energy_from);
            let rate = now - before;
            cost += energy_weight * energy * energy + params.action_weight * now * now + params.rate_weight * rate * rate;
            before = now;
        }
        costs[first] = bounded(cost.x);
        costs[first + 1u] = bounded(cost.y);
        costs[first + 2u] = bounded(cost.z);
        costs[first + 3u] = bounded(cost.w);
    }
}
