// Prediction, error and modulation: steps 1 and 2 of docs/field.md, and the pattern and intensity of step 3.
// in: live [LIVE_WORDS] floats as bits; descriptor [64][content] mean content of the regions.
// in and out: memory [MEMORY_WORDS]. out: control [CONTROL_WORDS].
// One workgroup; lane i has sensor i, then region i, then content channel i. Sums over sensors are trees.
// Tolerance: 1e-5 of the size of each number. Source: docs/field.md.
var<workgroup> errors: array<f32, 256>;

fn number(at: u32) -> f32 {
    return bitcast<f32>(live[at]);
}

fn ramp(x: f32, low: f32, high: f32) -> f32 {
    return clamp((x - low) / (high - low), 0.0, 1.0);
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_id) local: vec3<u32>) {
    let lane = local.x;
    let count = f32(params.sensors);

    // Prediction and error of each sensor.
    var error = 0.0;
    var is_active = 0.0;
    if lane < params.sensors {
        let now = clamp(number(LIVE_SENSORS + lane), -1.0, 1.0);
        let last = memory[MEMORY_HISTORY + lane];
        let second = memory[MEMORY_HISTORY + MAX_SENSORS + lane];
        let third = memory[MEMORY_HISTORY + 2u * MAX_SENSORS + lane];
        let slope = last - second;
        let bend = last - 2.0 * second + third;
        let trust = memory[MEMORY_TRUST + lane];
        let recalled = descriptor[(lane % 64u) * params.content + lane % params.content];
        let predicted = 0.3 * (last + 0.5 * slope + 0.3 * bend) + trust * recalled / (1.0 + abs(slope)) + 0.1 * memory[MEMORY_SIZE];
        error = abs(now - clamp(predicted, -1.0, 1.0));
        is_active = select(0.0, 1.0, now != 0.0);
        memory[MEMORY_HISTORY + lane] = now;
        memory[MEMORY_HISTORY + MAX_SENSORS + lane] = last;
        memory[MEMORY_HISTORY + 2u * MAX_SENSORS + lane] = second;
        memory[MEMORY_TRUST + lane] = 0.9 * trust + 0.1 / (1.0 + 5.0 * error);
    }
    errors[lane] = error;
    let weight = 1.5 - 0.5 * min(1.0, min(64.0, count) / 50.0);
    let mean_error = weight * tectum_tree_sum(lane, error) / count;
    let sensed = tectum_tree_sum(lane, is_active);

    // Modulation: every lane has the same numbers, the first keeps them.
    let size = memory[MEMORY_SIZE];
    let variance = memory[MEMORY_VARIANCE];
    let error_before = memory[MEMORY_ERROR];
    let momentum = number(LIVE_MOMENTUM);
    let error_now = momentum * error_before + (1.0 - momentum) * mean_error;
    let confidence = 0.9 * memory[MEMORY_CONFIDENCE] + 0.1 / (1.0 + 5.0 * mean_error);
    let information = 0.95 * memory[MEMORY_INFORMATION] + 0.05 * size * (1.0 + variance);
    let idle = select(memory[MEMORY_IDLE] + 1.0, 0.0, sensed > 0.0);
    let norm = clamp(information / 1.5, 0.0, 1.0);
    let drive = select(0.5 * (norm + confidence), 0.95, idle > 100.0);
    let fall = error_before - error_now;
    let plateau = (memory[MEMORY_PLATEAU] + 1.0) * (1.0 - ramp(fall, 0.0, 0.01));
    let novelty = clamp(1.0 - memory[MEMORY_SIMILARITY] + number(LIVE_WANDER), 0.0, 1.0);
    let eager = min(1.0, (1.0 - norm) * (0.5 + 0.5 * novelty) + min(0.5, plateau / 200.0) + 0.3);
    let explore = min(1.0, eager * (0.8 + 0.7 * ramp(-fall, -0.01, 0.01)) + 0.2 * (1.0 - confidence));
    let strength = 0.1 + 0.7 * (1.0 - drive);
    let amplification = 1.0 + 0.5 * (1.0 - confidence);
    let boost = min(3.0, 1.0 + 4.0 * error_now);
    let rate = 0.1 * boost * number(LIVE_ERROR_DRIVE);
    let reward = clamp(number(LIVE_REWARD), -1.0, 1.0);
    workgroupBarrier();
    storageBarrier();
    if lane == 0u {
        memory[MEMORY_ERROR] = error_now;
        memory[MEMORY_CONFIDENCE] = confidence;
        memory[MEMORY_INFORMATION] = information;
        memory[MEMORY_IDLE] = min(idle, 1000.0);
        memory[MEMORY_PLATEAU] = min(plateau, 1000.0);
        control[CONTROL_DRIVE] = drive;
        control[CONTROL_EXPLORE] = explore;
        control[CONTROL_INTENSITY] = number(LIVE_IMPRINT) * (0.5 + 0.5 * reward) * strength * amplification * (0.1 + 0.9 * min(1.0, mean_error));
        control[CONTROL_ERROR_EVERYWHERE] = 0.05 * rate * error_now;
        control[CONTROL_STEP] = min(0.3, number(LIVE_AGE) * boost);
        control[CONTROL_RETENTION] = number(LIVE_RETENTION) * (0.999 - 0.01 * norm);
        control[CONTROL_NOVELTY] = novelty;
        control[CONTROL_ERROR] = mean_error;
        control[CONTROL_PULL] = memory[MEMORY_PULL];
        control[CONTROL_STRATEGIC_WEIGHT] = memory[MEMORY_STRATEGIC_WEIGHT];
        control[CONTROL_STRATEGIC_DRIVE] = memory[MEMORY_STRATEGIC_DRIVE];
        let echo = number(LIVE_ECHO);
        control[CONTROL_ECHO_FORWARD] = 0.3 * echo * memory[MEMORY_MOTORS];
        control[CONTROL_ECHO_TURN] = 0.3 * echo * select(0.0, memory[MEMORY_MOTORS + 1u], params.motors > 1u);
        var moved = 0.0;
        for (var i = 0u; i < params.motors; i++) {
            moved += abs(memory[MEMORY_MOTORS + i]);
        }
        control[CONTROL_ECHO_MEAN] = 0.2 * echo * moved / f32(params.motors);
    }

    // What the error does in each region.
    if lane < 64u {
        var sum = 0.0;
        var sensors = 0.0;
        for (var i = lane; i < params.sensors; i += 64u) {
            sum += errors[i];
            sensors += 1.0;
        }
        let region = min(1.0, sum / max(1.0, sensors));
        let part = ramp(region, 0.09, 0.11);
        let present = select(0.0, rate, sensors > 0.0);
        control[CONTROL_NEAR + lane] = present * part * 2.0 * region;
        control[CONTROL_FAR + lane] = -present * (1.0 - part) * 0.1 * (1.0 - region);
        control[CONTROL_REGION_ERROR + lane] = region;
    }

    // The sensors' pattern over the content channels.
    if lane < params.content {
        var sum = 0.0;
        var sensors = 0.0;
        for (var i = lane; i < params.sensors; i += params.content) {
            sum += clamp(number(LIVE_SENSORS + i), -1.0, 1.0);
            sensors += 1.0;
        }
        control[CONTROL_PATTERN + lane] = sum / max(1.0, sensors);
    }
    if lane < params.channels / 4u {
        control[CONTROL_STRATEGIC + lane] = memory[MEMORY_STRATEGIC + lane];
    }
}
