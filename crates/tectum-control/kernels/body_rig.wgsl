// The laboratory rig, many at once. State: position (m), velocity (m/s), angle, angular speed, the command before (V), the interval's velocity
// (in/s). The servo's acceleration is what the cart has, so the pole alone is integrated against it. In float64: `src/body/rig.rs`.

fn rig_rates(s: vec4<f32>, wanted: f32) -> vec4<f32> {
    let demanded = (wanted - s.y) / params.lag;
    let is_held = s.y == 0.0 && abs(s.x) >= params.travel && demanded * s.x > 0.0;
    let push = select(demanded, 0.0, is_held);
    let turning = (params.gravity * tectum_sin(s.z) - push * tectum_cos(s.z)) / params.length - params.damping * s.w;
    return vec4<f32>(s.y, push, s.w, turning);
}

// Runge-Kutta steps under one command; the cart halts at its stops, and the pole continues to move.
fn rig_advanced(from_state: vec4<f32>, volts: f32, steps: u32, h: f32) -> vec4<f32> {
    let beyond = max(abs(volts) - params.dead_band, 0.0);
    let wanted = clamp(params.gain * select(beyond, -beyond, volts < 0.0), -params.limit, params.limit);
    var s = from_state;
    for (var i = 0u; i < steps; i += 1u) {
        let k1 = rig_rates(s, wanted);
        let k2 = rig_rates(s + 0.5 * h * k1, wanted);
        let k3 = rig_rates(s + 0.5 * h * k2, wanted);
        let k4 = rig_rates(s + h * k3, wanted);
        s += h / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4);
        if (abs(s.x) > params.travel) {
            let stop = select(params.travel, -params.travel, s.x < 0.0);
            s = vec4<f32>(stop, 0.0, s.z, s.w + s.y * tectum_cos(s.z) / params.length);
        }
    }
    return s;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var k = id.x; k < params.count; k += groups.x * 64u) {
        let at = 6u * k;
        var s = vec4<f32>(state[at], state[at + 1u], state[at + 2u], state[at + 3u]);
        let volts = applied(actions[k], -params.max_volts, params.max_volts, 0.0);
        let before = s.x;
        s = rig_advanced(s, state[at + 4u], params.steps_before, params.h_before);
        s = rig_advanced(s, volts, params.steps_after, params.h_after);
        s.z = wrap_angle(s.z);
        let interval = (s.x - before) * params.inches_per_step;
        state[at] = s.x;
        state[at + 1u] = s.y;
        state[at + 2u] = s.z;
        state[at + 3u] = s.w;
        state[at + 4u] = volts;
        state[at + 5u] = interval;
        shown[6u * k] = s.x * 39.370079;
        shown[6u * k + 1u] = interval;
        shown[6u * k + 2u] = s.w * 57.295780;
        shown[6u * k + 3u] = s.z * 57.295780;
        shown[6u * k + 4u] = select(0.0, 1.0, abs(s.z) < 0.17453293);
        shown[6u * k + 5u] = 0.0;
    }
}
