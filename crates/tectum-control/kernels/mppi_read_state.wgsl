// What a rollout reads of the state: its linear channels over their scales, sine and cosine of the angles, the action before where the network has
// it, the action. One network predicts the change of every channel.
const FEATURES = 0u;

fn begin(first: u32) {}

fn observe(s: ptr<function, array<vec4<f32>, CHANNELS>>, t: u32, first: u32) {
    let half_range = 0.5 * (params.high - params.low);
    var at = 0u;
    for (var c = 0u; c < CHANNELS; c += 1u) {
        let rad = channel(c, 0u);
        if rad == 0.0 {
            keep(at, first, (*s)[c] / channel(c, 1u));
            at += 1u;
        } else {
            keep(at, first, sine((*s)[c] * rad));
            keep(at + 1u, first, cosine((*s)[c] * rad));
            at += 2u;
        }
    }
    if params.previous != 0u {
        keep(at, first, applied(actions(t, first)) / half_range);
        at += 1u;
    }
    keep(at, first, applied(actions(t + 1u, first)) / half_range);
}

fn predict(first: u32) -> u32 {
    return network(0u, first);
}
