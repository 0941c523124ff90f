// The hash of an element in the cycle of a key, and its draw: a whole number from -510 to 510. Exact: the same bits on every device.
// Native twin: `src/field/draw.rs`.
fn field_hash(index: u32, key0: u32, key1: u32) -> u32 {
    var h = index * 0x9e3779b1u + key0;
    h = ((h ^ (h >> 16u)) * 0x85ebca6bu) ^ key1;
    h = (h ^ (h >> 13u)) * 0xc2b2ae35u;
    return h ^ (h >> 16u);
}

fn field_draw(index: u32, key0: u32, key1: u32) -> i32 {
    let h = field_hash(index, key0, key1);
    let pairs = (h & 0x00ff00ffu) + ((h >> 8u) & 0x00ff00ffu);
    return i32((pairs & 0xffffu) + (pairs >> 16u)) - 510;
}

const NOISE_UNIT = 0.006765875;
