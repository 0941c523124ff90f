// Gymnasium's Pendulum-v1: angle from upright and speed. Native and in float64: `src/body/pendulum.rs`.
alias Plant = vec2<f32>;

fn plant_angle(s: Plant) -> f32 {
    let turn = 6.2831855;
    return s.x - turn * floor(s.x / turn + 0.5);
}

fn plant_cost(s: Plant, torque: f32) -> f32 {
    let angle = plant_angle(s);
    return angle * angle + 0.1 * s.y * s.y + 0.001 * torque * torque;
}

fn plant_feedback(s: Plant, gain: vec2<f32>) -> f32 {
    return -gain.x * plant_angle(s) - gain.y * s.y;
}

// How far its energy is from that of rest upright, in units of its weight times its length.
fn plant_energy(s: Plant) -> f32 {
    return s.y * s.y / 30.0 + tectum_cos(s.x) - 1.0;
}

fn plant_step(s: Plant, torque: f32) -> Plant {
    let speed = clamp(s.y + (15.0 * tectum_sin(s.x) + 3.0 * torque) * 0.05, -8.0, 8.0);
    return vec2<f32>(s.x + speed * 0.05, speed);
}
