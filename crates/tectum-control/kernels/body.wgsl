// What the kernels of bodies share. Each steps many bodies at once, one an invocation, rows one after another:
//   actions [count, A] -> state [count, N], shown [count, C + 2]: the observation, the reward, and 1 if the episode ended.
// Where episodes end, the last number of a state reports that one did: the body is then put at its place of starts [count, N] instead, with no
// reward. An action that is not finite is replaced by the safe one.

fn is_finite(x: f32) -> bool {
    return (bitcast<u32>(x) & 0x7fffffffu) < 0x7f800000u;
}

// What is applied of an action.
fn applied(value: f32, low: f32, high: f32, safe: f32) -> f32 {
    return select(safe, clamp(value, low, high), is_finite(value));
}

// An angle in [-pi, pi).
fn wrap_angle(angle: f32) -> f32 {
    let turn = 6.2831855;
    return angle - turn * floor(angle / turn + 0.5);
}
