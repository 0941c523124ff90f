// Random numbers from a counter: word i mod 4 of Philox4x32-10 at block i / 4, converted by one exact step.
// in: key [seed low, seed high, stream, tick]; out: y [n]. One invocation writes the four elements of every stride-th
// block. The same bits on every device.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    let blocks = (params.n + 3u) / 4u;
    for (var block = id.x; block < blocks; block += stride) {
        var words = tectum_philox(vec4<u32>(block, key[2], key[3], 0u), vec2<u32>(key[0], key[1]));
        for (var part = 0u; part < 4u; part += 1u) {
            let i = block * 4u + part;
            if i < params.n {
                let word = words[part];
                y[i] = VALUE_OF_WORD;
            }
        }
    }
}
