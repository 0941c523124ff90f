// A total order on f32 as u32 keys: greater key, greater value; both zeros equal; every NaN above all.
fn tectum_order_key(x: f32) -> u32 {
    let bits = bitcast<u32>(x);
    let magnitude = bits & 0x7fffffffu;
    if magnitude > 0x7f800000u {
        return 0xffffffffu;
    }
    if magnitude == 0u {
        return 0x80000000u;
    }
    return select(bits | 0x80000000u, ~bits, (bits & 0x80000000u) != 0u);
}
