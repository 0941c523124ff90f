
// A column of a token as the cache SIDE holds it: the run's own as they came, the first 4 and those since the last whole window of 64
// as halves from `SIDE_full` on, the others as codes.
fn read_SIDE(batch: u32, key: u32, column: u32) -> f32 {
    let kept = min(spans[2u * batch], params.keys);
    if key >= kept {
        return SIDE_new[(batch * params.queries + key - kept) * params.SIDE_row + params.SIDE_start + column];
    }
    let item = batch * params.SIDE_words;
    if key < 4u || key >= kept / 64u * 64u {
        let row = select(key % 64u, 64u + key, key < 4u);
        return tectum_cache_pick(SIDE[item + params.SIDE_full + row * ((params.columns + 1u) / 2u) + column / 2u], column);
    }
    let blocks = (params.columns + 31u) / 32u;
    CODES
}
