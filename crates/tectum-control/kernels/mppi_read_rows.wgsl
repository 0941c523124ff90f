// What a rollout of the recorded rig reads: LAGS rows back and the commands to them, as `twin/sequence.rs` encodes them. The mean of MEMBERS networks
// predicts the changes of position and velocity, and by how much the angle's next change differs from its last.
// Channels: position of the cart, its velocity, velocity of the pole, angle. The cart's velocity is what its position says, over the period, which
// mean and deviation in the table are divided by.
// observation: [channels], last action, then of each row before, the latest first, position, velocity and angle [LAGS, 3]; the commands before the
// last, the latest first [LAGS - 1]; how much longer than 40 ms a period is, over that.
// scratch: activations [2 WIDTH], what the networks read [FEATURE_COUNT], the sum of what they predict [8], rows by time [LAGS + horizon, 3].
const FEATURES = 2u * WIDTH;
const SUM = FEATURES + FEATURE_COUNT;
const ROWS = SUM + 8u;
const OLDER = CHANNELS + 1u;

fn begin(first: u32) {
    for (var back = 1u; back <= LAGS; back += 1u) {
        for (var number = 0u; number < 3u; number += 1u) {
            keep(ROWS + 3u * (LAGS - back) + number, first, vec4<f32>(observation[OLDER + 3u * (back - 1u) + number]));
        }
    }
}

fn turn_to(later: vec4<f32>, earlier: vec4<f32>) -> vec4<f32> {
    let change = later - earlier;
    return change - 360.0 * floor((change + 180.0) / 360.0);
}

fn observe(s: ptr<function, array<vec4<f32>, CHANNELS>>, t: u32, first: u32) {
    let now = ROWS + 3u * (LAGS + t);
    keep(now, first, (*s)[0]);
    keep(now + 1u, first, (*s)[2]);
    keep(now + 2u, first, (*s)[3]);
    var at = FEATURES;
    for (var back = 0u; back < LAGS; back += 1u) {
        let row = now - 3u * back;
        var position = activation(row, first);
        if back > 0u {
            position -= (*s)[0];
        }
        let angle = activation(row + 2u, first);
        keep(at, first, position / SCALES[0]);
        keep(at + 1u, first, activation(row + 1u, first) / SCALES[1]);
        keep(at + 2u, first, sine(angle * channel(3u, 0u)));
        keep(at + 3u, first, cosine(angle * channel(3u, 0u)));
        keep(at + 4u, first, turn_to(angle, activation(row - 1u, first)) / SCALES[2]);
        at += 5u;
    }
    for (var back = 0u; back <= LAGS; back += 1u) {
        var command = vec4<f32>();
        if back <= t + 1u {
            command = actions(t + 1u - back, first);
        } else {
            command = vec4<f32>(observation[OLDER + 3u * LAGS + back - t - 2u]);
        }
        keep(at + back, first, command / SCALES[3]);
    }
    keep(at + LAGS + 1u, first, vec4<f32>(observation[OLDER + 4u * LAGS - 1u]));
    // The change in the table's form is added to these.
    (*s)[1] = vec4<f32>();
    (*s)[3] += turn_to((*s)[3], activation(now - 1u, first));
}

// A row for each channel.
fn predict(first: u32) -> u32 {
    for (var member = 0u; member < MEMBERS; member += 1u) {
        let y = network(member, first);
        for (var output = 0u; output < 3u; output += 1u) {
            var sum = activation(y + output, first);
            if member > 0u {
                sum += activation(SUM + 4u + output, first);
            }
            keep(SUM + 4u + output, first, sum);
        }
    }
    for (var c = 0u; c < CHANNELS; c += 1u) {
        keep(SUM + c, first, activation(SUM + 4u + max(c, 1u) - 1u, first) / f32(MEMBERS));
    }
    return SUM;
}
