// scales[row] = max |H·x[row]| / 127; codes[row, i] = round((H·x[row, i]) / scales[row]), ties to even, two's complement, four in a word.
// in: x [rows, cols]; out: codes [rows, ⌈cols / 128⌉·32], scales [rows]. H: the Hadamard matrix of 128 rows in natural order, for
// each block of 128 elements, the last filled up with zeros. One workgroup per row, two passes over it; rows stride over workgroups.
// Rows whose greatest value is below 2⁻¹⁰⁰ are zeros; those with a NaN or an infinity have such a scale.
var<workgroup> block: array<f32, 128>;
var<workgroup> words: array<u32, 128>;

fn turned(row: u32, first: u32, lane: u32) -> f32 {
    var value = 0.0;
    if first + lane < params.cols {
        value = x[row * params.cols + first + lane];
    }
    for (var half = 64u; half > 0u; half /= 2u) {
        block[lane] = value;
        workgroupBarrier();
        let other = block[lane ^ half];
        value = select(value + other, other - value, (lane & half) != 0u);
        workgroupBarrier();
    }
    return value;
}

@compute @workgroup_size(128)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let blocks = (params.cols + 127u) / 128u;
    for (var row = group.x; row < params.rows; row += groups.x) {
        // Bits of magnitudes are in their order, and a NaN's above them all.
        var most = 0u;
        for (var index = 0u; index < blocks; index += 1u) {
            most = max(most, bitcast<u32>(turned(row, index * 128u, lane)) & 0x7fffffffu);
        }
        words[lane] = most;
        workgroupBarrier();
        for (var half = 64u; half > 0u; half /= 2u) {
            if lane < half {
                words[lane] = max(words[lane], words[lane + half]);
            }
            workgroupBarrier();
        }
        let bits = words[0];
        workgroupBarrier();
        let greatest = bitcast<f32>(bits);
        let is_zero = bits < (27u << 23u);
        let inverse = 127.0 / select(greatest, 1.0, is_zero);
        if lane == 0u {
            scales[row] = select(greatest / 127.0, 0.0, is_zero);
        }
        for (var index = 0u; index < blocks; index += 1u) {
            let value = turned(row, index * 128u, lane);
            words[lane] = select(u32(i32(round(value * inverse))) & 0xffu, 0u, is_zero);
            workgroupBarrier();
            if lane < 32u {
                let at = 4u * lane;
                let word = words[at] | (words[at + 1u] << 8u) | (words[at + 2u] << 16u) | (words[at + 3u] << 24u);
                codes[(row * blocks + index) * 32u + lane] = word;
            }
            workgroupBarrier();
        }
    }
}
