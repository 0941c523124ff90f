// Halves nearest to k[b, t, ·] and v[b, t, ·] put at row kept_b + t of k_cache and v_cache, for t below new_b, as far as the caches go
// in: k and v by rows of k_row and v_row columns of which `columns` from k_start and v_start on are kept; spans [batch, 2] (kept,
// new); in and out: k_cache and v_cache, items of k_words and v_words, rows of ceil(columns / 2) words.
// One invocation makes one word, two columns, of both; they stride over invocations.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    let words = (params.columns + 1u) / 2u;
    for (var i = id.x; i < params.batch * params.queries * words; i += stride) {
        let row = i / words;
        let word = i % words;
        let batch = row / params.queries;
        let t = row % params.queries;
        let kept = min(spans[2u * batch], params.keys);
        let place = kept + t;
        if t < spans[2u * batch + 1u] && place < params.keys {
            let k_from = row * params.k_row + params.k_start + 2u * word;
            let v_from = row * params.v_row + params.v_start + 2u * word;
            var k_made = tectum_cache_half(k[k_from]);
            var v_made = tectum_cache_half(v[v_from]);
            if 2u * word + 1u < params.columns {
                k_made |= tectum_cache_half(k[k_from + 1u]) << 16u;
                v_made |= tectum_cache_half(v[v_from + 1u]) << 16u;
            }
            STORE
        }
    }
}
