// CartPole-v1, many at once. State: position, velocity, angle, angular speed, and 1 if it fell. In float64: `src/body/cart_pole.rs`.

fn cart_pole_step(s: vec4<f32>, force: f32) -> vec4<f32> {
    let sine = tectum_sin(s.z);
    let cosine = tectum_cos(s.z);
    let push = (force + 0.05 * s.w * s.w * sine) / 1.1;
    let turning = (9.8 * sine - cosine * push) / (0.5 * (1.3333334 - 0.1 * cosine * cosine / 1.1));
    return s + 0.02 * vec4<f32>(s.y, push - 0.05 * turning * cosine / 1.1, s.w, turning);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var k = id.x; k < params.count; k += groups.x * 64u) {
        let at = 5u * k;
        var s = vec4<f32>(state[at], state[at + 1u], state[at + 2u], state[at + 3u]);
        var reward = 0.0;
        var fallen = 0.0;
        if (state[at + 4u] != 0.0) {
            s = vec4<f32>(starts[at], starts[at + 1u], starts[at + 2u], starts[at + 3u]);
        } else {
            reward = 1.0;
            // Pushed to the right or to the left; the safe push is to the right.
            s = cart_pole_step(s, select(10.0, -10.0, actions[k] < 0.0 && is_finite(actions[k])));
            fallen = select(0.0, 1.0, abs(s.x) > 2.4 || abs(s.z) > 0.20943951);
        }
        state[at] = s.x;
        state[at + 1u] = s.y;
        state[at + 2u] = s.z;
        state[at + 3u] = s.w;
        state[at + 4u] = fallen;
        shown[6u * k] = s.x;
        shown[6u * k + 1u] = s.y;
        shown[6u * k + 2u] = wrap_angle(s.z);
        shown[6u * k + 3u] = s.w;
        shown[6u * k + 4u] = reward;
        shown[6u * k + 5u] = fallen;
    }
}
