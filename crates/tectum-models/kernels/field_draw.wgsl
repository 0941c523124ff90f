// The draw of an element: a whole number from -510 to 510 by a counter hash. Exact: the same bits on every device. Native twin:
// `src/field/draw.rs`.
fn field_draw(index: u32, key0: u32, key1: u32) -> i32 {
    var h = index * 0x9e3779b1u + key0;
    h = ((h ^ (h >> 16u)) * 0x85ebca6bu) ^ key1;
    h = (h ^ (h >> 13u)) * 0xc2b2ae35u;
    h ^= h >> 16u;
    let pairs = (h & 0x00ff00ffu) + ((h >> 8u) & 0x00ff00ffu);
    return i32((pairs & 0xffffu) + (pairs >> 16u)) - 510;
}

const NOISE_UNIT = 0.006765875;
