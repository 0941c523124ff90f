// How the field lies in memory: as bf16, two elements in a word. What is kept is rounded up or down by chance, in proportion to how near
// it is: slow changes survive on average. The chance is 16 bits of the element's hash: the same on every device. Native twin:
// `src/field/storage.rs`.

fn half_of(word: u32, at: u32) -> f32 {
    return bitcast<f32>(select(word << 16u, word & 0xffff0000u, (at & 1u) == 1u));
}

// The old value of an element.
fn stored(at: u32) -> f32 {
    return half_of(x[at / 2u], at);
}

fn rounded(at: u32, value: f32) -> u32 {
    let chance = (field_hash(at + skipped(), live[LIVE_KEY], live[LIVE_KEY + 1u]) * 0x9e3779b1u) >> 16u;
    return (bitcast<u32>(value) + chance) & 0xffff0000u;
}

// Keeps the new values of two elements, the first of even number, and gives them as they are kept.
fn keep(at: u32, values: vec2<f32>) -> vec2<f32> {
    let first = rounded(at, values.x);
    let second = rounded(at + 1u, values.y);
    y[at / 2u] = (first >> 16u) | second;
    return vec2<f32>(bitcast<f32>(first), bitcast<f32>(second));
}

// The new value of an element.
fn kept(at: u32) -> f32 {
    return half_of(y[at / 2u], at);
}
