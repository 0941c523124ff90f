// k_cache[b, kept_b + t, ·] = k[b, t, ·] and v_cache[b, kept_b + t, ·] = v[b, t, ·] for t below new_b, as far as the cache goes
// in: k and v by rows of k_row and v_row columns of which `columns` from k_start and v_start on are kept; spans [batch, 2] (kept,
// new); in and out: k_cache and v_cache [batch, keys, columns]. One invocation moves one column; they stride over invocations.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.batch * params.queries * params.columns; i += stride) {
        let row = i / params.columns;
        let column = i % params.columns;
        let batch = row / params.queries;
        let t = row % params.queries;
        let kept = min(spans[2u * batch], params.keys);
        let place = kept + t;
        if t < spans[2u * batch + 1u] && place < params.keys {
            let to = (batch * params.keys + place) * params.columns + column;
            k_cache[to] = k[row * params.k_row + params.k_start + column];
            v_cache[to] = v[row * params.v_row + params.v_start + column];
        }
    }
}
