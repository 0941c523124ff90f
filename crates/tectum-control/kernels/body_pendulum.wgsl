// Pendulum-v1, many at once; `plant_pendulum.wgsl` has its equations. State: angle, speed; the angle comes round.

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    for (var k = id.x; k < params.count; k += groups.x * 64u) {
        var s = vec2<f32>(state[2u * k], state[2u * k + 1u]);
        let torque = applied(actions[k], -2.0, 2.0, 0.0);
        let reward = -plant_cost(s, torque);
        s = plant_step(s, torque);
        s.x = wrap_angle(s.x);
        state[2u * k] = s.x;
        state[2u * k + 1u] = s.y;
        shown[4u * k] = s.x;
        shown[4u * k + 1u] = s.y;
        shown[4u * k + 2u] = reward;
        shown[4u * k + 3u] = 0.0;
    }
}
