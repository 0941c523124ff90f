// 4-bit codes of the tokens of whole windows of 64, by blocks of 32 tokens of a column
// in: x by rows of x_row columns of which `columns` from x_start on are the run's new rows; spans [batch, 2] (kept, new); in and out:
// cache, items of `words`: for 32 tokens their rows of codes, then a scale and a minimum for each column; from `full` on 64 rows of
// halves, those since the last whole window. The first 4 tokens of an item do not count: theirs are kept in full.
// One invocation makes a word of codes of each of 32 rows: 8 columns; they stride over invocations.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    let blocks = (params.columns + 31u) / 32u;
    let words = 4u * blocks;
    let parts = (params.queries + 63u) / 64u * 2u;
    for (var i = id.x; i < params.batch * parts * words; i += stride) {
        let word = i % words;
        let batch = i / (words * parts);
        let kept = min(spans[2u * batch], params.keys);
        let there = kept + min(min(spans[2u * batch + 1u], params.queries), params.keys - kept);
        let first = kept / 64u * 64u + i / words % parts * 32u;
        if first < there / 64u * 64u {
            let at = batch * params.words + first * 5u * blocks;
            let counted = select(0u, 4u, first == 0u);
            var scales = array<f32, 8>();
            var leasts = array<f32, 8>();
            for (var place = 0u; place < 8u; place += 1u) {
                let column = column_of(word, place);
                if column < params.columns {
                    var least = half_of(batch, kept, first + counted, column);
                    var most = least;
                    var is_finite = true;
                    for (var t = counted; t < 32u; t += 1u) {
                        let value = half_of(batch, kept, first + t, column);
                        least = min(least, value);
                        most = max(most, value);
                        is_finite = is_finite && tectum_cache_is_finite(value);
                    }
                    let range = tectum_cache_range(least, most, is_finite);
                    cache[at + 128u * blocks + column] = range;
                    scales[place] = tectum_cache_value(range);
                    leasts[place] = tectum_cache_value(range >> 16u);
                }
            }
            for (var t = 0u; t < 32u; t += 1u) {
                var codes = 0u;
                for (var place = 0u; place < 8u; place += 1u) {
                    let column = column_of(word, place);
                    if column < params.columns && t >= counted {
                        let above = half_of(batch, kept, first + t, column) - leasts[place];
                        codes |= u32(tectum_cache_code(above, scales[place], 0.0, 15.0)) << (place % 4u * 8u + place / 4u * 4u);
                    }
                }
                cache[at + t * 4u * blocks + word] = codes;
            }
        }
    }
}

// Of the 8 columns of a word: four neighbours, and the four 16 places after them.
fn column_of(word: u32, place: u32) -> u32 {
    return word / 4u * 32u + word % 4u * 4u + place % 4u + place / 4u * 16u;
}

// The half of a token, of the run's own or of those since the last whole window.
fn half_of(batch: u32, kept: u32, row: u32, column: u32) -> f32 {
    if row >= kept {
        return tectum_cache_value(tectum_cache_half(x[(batch * params.queries + row - kept) * params.x_row + params.x_start + column]));
    }
    let word = cache[batch * params.words + params.full + row % 64u * ((params.columns + 1u) / 2u) + column / 2u];
    return tectum_cache_pick(word, column);
}
