// Acrobot-v1, many at once. State: both angles, the first from hanging, their speeds, and 1 if the episode ended. In float64, with the equations: `src/body/acrobot.rs`.

fn acrobot_rates(s: vec4<f32>, torque: f32) -> vec4<f32> {
    let sine = tectum_sin(s.y);
    let cosine = tectum_cos(s.y);
    let d1 = 3.5 + cosine;
    let d2 = 1.25 + 0.5 * cosine;
    let phi2 = 4.9 * tectum_sin(s.x + s.y);
    let phi1 = 14.7 * tectum_sin(s.x) + phi2 - (0.5 * s.w + s.z) * s.w * sine;
    let second = (torque + d2 / d1 * phi1 - 0.5 * s.z * s.z * sine - phi2) / (1.25 - d2 * d2 / d1);
    return vec4<f32>(s.z, s.w, -(d2 * second + phi1) / d1, second);
}

fn acrobot_step(s: vec4<f32>, torque: f32) -> vec4<f32> {
    let k1 = acrobot_rates(s, torque);
    let k2 = acrobot_rates(s + 0.1 * k1, torque);
    let k3 = acrobot_rates(s + 0.1 * k2, torque);
    let k4 = acrobot_rates(s + 0.2 * k3, torque);
    let next = s + 0.033333335 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
    return vec4<f32>(wrap_angle(next.x), wrap_angle(next.y), clamp(next.z, -12.566371, 12.566371), clamp(next.w, -28.274334, 28.274334));
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var k = id.x; k < params.count; k += groups.x * 64u) {
        let at = 5u * k;
        var s = vec4<f32>(state[at], state[at + 1u], state[at + 2u], state[at + 3u]);
        var reward = 0.0;
        var ended = 0.0;
        if (state[at + 4u] != 0.0) {
            s = vec4<f32>(starts[at], starts[at + 1u], starts[at + 2u], starts[at + 3u]);
        } else {
            s = acrobot_step(s, applied(actions[k], -1.0, 1.0, 0.0));
            ended = select(0.0, 1.0, -tectum_cos(s.x) - tectum_cos(s.y + s.x) > 1.0);
            reward = ended - 1.0;
        }
        state[at] = s.x;
        state[at + 1u] = s.y;
        state[at + 2u] = s.z;
        state[at + 3u] = s.w;
        state[at + 4u] = ended;
        shown[6u * k] = wrap_angle(s.x + 3.1415927);
        shown[6u * k + 1u] = wrap_angle(s.y);
        shown[6u * k + 2u] = s.z;
        shown[6u * k + 3u] = s.w;
        shown[6u * k + 4u] = reward;
        shown[6u * k + 5u] = ended;
    }
}
