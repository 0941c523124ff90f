// Shared by mppi_begin and mppi_step. The table holds nine numbers a channel: radians per unit (0: not an angle), scale,
// mean and deviation of the learned change, weight, barrier weight, barrier limit, barrier scale, half a turn.
const CHANNEL_NUMBERS: u32 = 9u;

fn channel(index: u32, number: u32) -> f32 {
    return table[index * CHANNEL_NUMBERS + number];
}

// What the plant makes of an action.
fn applied(value: f32) -> f32 {
    if params.discrete != 0u {
        return select(params.low, params.high, value >= 0.0);
    }
    return value;
}

// The network's input for sample k at step t: channels (angles as sine and cosine), the previous action, the action.
fn write_features(k: u32, t: u32) {
    let half_range = 0.5 * (params.high - params.low);
    var at = k * params.features;
    for (var c = 0u; c < params.channels; c += 1u) {
        let s = states[c * params.samples + k];
        let rad = channel(c, 0u);
        if rad == 0.0 {
            features[at] = s / channel(c, 1u);
            at += 1u;
        } else {
            features[at] = tectum_sin(s * rad);
            features[at + 1u] = tectum_cos(s * rad);
            at += 2u;
        }
    }
    if params.previous != 0u {
        features[at] = applied(u[t * params.samples + k]) / half_range;
        at += 1u;
    }
    features[at] = applied(u[(t + 1u) * params.samples + k]) / half_range;
}
