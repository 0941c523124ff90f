// Codes of the tokens of whole windows of 64, by blocks of 32 columns of a row
// in: x by rows of x_row columns of which `columns` from x_start on are the run's new rows; spans [batch, 2] (kept, new); in and out:
// cache, items of `words`: rows of codes with scales, then from `full` on 64 rows of halves, those since the last whole window.
// One invocation makes two neighbouring blocks of a row, whose scales may share a word; they stride over invocations.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    let blocks = (params.columns + 31u) / 32u;
    let pairs = (blocks + 1u) / 2u;
    let rows = (params.queries + 63u) / 64u * 64u;
    for (var i = id.x; i < params.batch * rows * pairs; i += stride) {
        let pair = i % pairs;
        let batch = i / (pairs * rows);
        let kept = min(spans[2u * batch], params.keys);
        let there = kept + min(min(spans[2u * batch + 1u], params.queries), params.keys - kept);
        let row = kept / 64u * 64u + i / pairs % rows;
        if row < there / 64u * 64u {
            let at = batch * params.words + row * ROW_WORDS;
            var scales = 0u;
            for (var half = 0u; half < 2u; half += 1u) {
                let block = 2u * pair + half;
                if block < blocks {
                    CODE
                }
            }
            SCALES
        }
    }
}

// The half of a token, of the run's own or of those since the last whole window. What fills up the last block is as its first.
fn half_of(batch: u32, kept: u32, row: u32, block: u32, place: u32) -> f32 {
    let first = 32u * block;
    let column = select(first, first + place, first + place < params.columns);
    if row >= kept {
        return tectum_cache_value(tectum_cache_half(x[(batch * params.queries + row - kept) * params.x_row + params.x_start + column]));
    }
    let word = cache[batch * params.words + params.full + row % 64u * ((params.columns + 1u) / 2u) + column / 2u];
    return tectum_cache_pick(word, column);
}
