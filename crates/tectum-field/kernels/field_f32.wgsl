// How the field lies in memory: as f32.

// The old value of an element.
fn stored(at: u32) -> f32 {
    return x[at];
}

// Keeps the new values of two elements, the first of even number, and gives them as they are kept.
fn keep(at: u32, values: vec2<f32>) -> vec2<f32> {
    y[at] = values.x;
    y[at + 1u] = values.y;
    return values;
}

// The new value of an element.
fn kept(at: u32) -> f32 {
    return y[at];
}
