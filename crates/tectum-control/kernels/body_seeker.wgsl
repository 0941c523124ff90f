// The light seeker, many at once. State: x, y, heading, lights found, bumped, reward, 8 lights (x, y), 4 obstacles (x, y).
// In float64, with what eyes and whiskers show: `src/body/seeker.rs`.

fn light(k: u32, found: f32) -> vec2<f32> {
    let at = 30u * k + 6u + 2u * (u32(found) % 8u);
    return vec2<f32>(state[at], state[at + 1u]);
}

fn obstacle(k: u32, i: u32) -> vec2<f32> {
    return vec2<f32>(state[30u * k + 22u + 2u * i], state[30u * k + 23u + 2u * i]);
}

// 1 less the way to the first wall or obstacle over the whisker's length.
fn whisker(k: u32, place: vec2<f32>, direction: f32) -> f32 {
    let step = vec2<f32>(tectum_cos(direction), tectum_sin(direction));
    var free = 1e9;
    if (step.x > 1e-7) { free = min(free, (4.0 - place.x) / step.x); }
    if (step.x < -1e-7) { free = min(free, -place.x / step.x); }
    if (step.y > 1e-7) { free = min(free, (4.0 - place.y) / step.y); }
    if (step.y < -1e-7) { free = min(free, -place.y / step.y); }
    for (var i = 0u; i < 4u; i += 1u) {
        let apart = obstacle(k, i) - place;
        let along = apart.x * step.x + apart.y * step.y;
        let across = apart.y * step.x - apart.x * step.y;
        if (along > 0.0 && abs(across) < 0.25) { free = min(free, along - sqrt(0.0625 - across * across)); }
    }
    return max(1.0 - free / 0.6, 0.0);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var k = id.x; k < params.count; k += groups.x * 64u) {
        let at = 30u * k;
        var place = vec2<f32>(state[at], state[at + 1u]);
        var found = state[at + 3u];
        let is_given = is_finite(actions[2u * k]) && is_finite(actions[2u * k + 1u]);
        let speed = select(0.0, clamp(actions[2u * k], 0.0, 0.5), is_given);
        let turn = select(0.0, clamp(actions[2u * k + 1u], -2.0, 2.0), is_given);
        let before = length(place - light(k, found));
        let heading = wrap_angle(state[at + 2u] + turn * 0.1);
        let ahead = place + speed * 0.1 * vec2<f32>(tectum_cos(heading), tectum_sin(heading));
        var is_blocked = min(ahead.x, ahead.y) < 0.1 || max(ahead.x, ahead.y) > 3.9;
        for (var i = 0u; i < 4u; i += 1u) {
            is_blocked = is_blocked || length(ahead - obstacle(k, i)) < 0.35;
        }
        let bumped = select(0.0, 1.0, is_blocked);
        place = select(ahead, place, is_blocked);
        let after = length(place - light(k, found));
        let reward = clamp((before - after) / 0.05 - 0.5 * bumped, -1.0, 1.0);
        found += select(0.0, 1.0, after < 0.3);
        state[at] = place.x;
        state[at + 1u] = place.y;
        state[at + 2u] = heading;
        state[at + 3u] = found;
        state[at + 4u] = bumped;
        state[at + 5u] = reward;
        let apart = light(k, found) - place;
        // The cosine of the light's bearing against a direction, without the bearing.
        let distance = max(length(apart), 1e-9);
        let bright = 1.0 / (1.0 + distance * distance);
        let left = vec2<f32>(tectum_cos(heading + 0.78539816), tectum_sin(heading + 0.78539816));
        let right = vec2<f32>(tectum_cos(heading - 0.78539816), tectum_sin(heading - 0.78539816));
        shown[9u * k] = max((apart.x * left.x + apart.y * left.y) / distance, 0.0) * bright;
        shown[9u * k + 1u] = max((apart.x * right.x + apart.y * right.y) / distance, 0.0) * bright;
        shown[9u * k + 2u] = whisker(k, place, heading + 0.78539816);
        shown[9u * k + 3u] = whisker(k, place, heading);
        shown[9u * k + 4u] = whisker(k, place, heading - 0.78539816);
        shown[9u * k + 5u] = bumped;
        shown[9u * k + 6u] = reward;
        shown[9u * k + 7u] = reward;
        shown[9u * k + 8u] = 0.0;
    }
}
