// y[b, t, h, ·] = Σ_s softmax_s(scale·q[b, t, h, ·]·k[b, s, h / group, ·] + mask[b, s])·v[b, s, h / group, ·]
// in: q, k, v by rows of q_row, k_row, v_row columns of which those from q_start, k_start, v_start on are heads of `width`
// columns; mask [batch, keys] where MASK_TERM reads it; out: y [batch, queries, heads, width].
// With `causal` query t sees keys up to t + keys − queries. A query that sees no key gives NaN.
// KEY_COUNT and QUERY_COUNT of an item are params.keys and params.queries, or fewer as spans [batch, 2] (kept, new) says.
// KEY_AT, KEY_HERE, VALUE_AT and VALUE_HERE read k and v in their format; of coded caches the run's own rows are k_new and v_new.
// One workgroup makes 16 queries of one head, 16 keys at a time: a lane is a query and a key for the products, then a query and
// every sixteenth column for the sums, which are rescaled as the greatest product grows (Milakov and Gimelshein,
// https://arxiv.org/abs/1805.02867; Dao et al., https://arxiv.org/abs/2205.14135). Items stride over workgroups.
var<workgroup> q_tile: array<f32, 2048>;
var<workgroup> weights: array<f32, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let query_lane = lane / 16u;
    let key_lane = lane % 16u;
    let blocks = (params.queries + 15u) / 16u;
    for (var item = group.x; item < params.batch * params.heads * blocks; item += groups.x) {
        let first = (item % blocks) * 16u;
        let head = (item / blocks) % params.heads;
        let batch = item / (blocks * params.heads);
        let kv_head = head / params.group;
        let keys = KEY_COUNT;
        let queries = QUERY_COUNT;
        for (var i = lane; i < 16u * params.width; i += 256u) {
            let row = first + i / params.width;
            var value = 0.0;
            if row < params.queries {
                value = q[(batch * params.queries + row) * params.q_row + params.q_start + head * params.width + i % params.width];
            }
            q_tile[i] = value;
        }
        workgroupBarrier();
        // What the last of these queries sees, and what this lane's does.
        var end = keys;
        var seen = keys;
        if params.causal == 1u {
            end = min(keys, sub_or_zero(first + 16u + keys, queries));
            seen = min(keys, sub_or_zero(first + query_lane + 1u + keys, queries));
        }
        var greatest = -tectum_inf();
        var total = 0.0;
        var sums = array<f32, 8>();
        for (var first_key = 0u; first_key < end; first_key += 16u) {
            let key = first_key + key_lane;
            var score = -tectum_inf();
            if key < seen {
                let k_at = KEY_AT;
                var product = 0.0;
                for (var i = 0u; i < params.width; i += 1u) {
                    product += q_tile[query_lane * params.width + i] * KEY_HERE;
                }
                score = params.scale * productMASK_TERM;
            }
            weights[lane] = score;
            workgroupBarrier();
            var grown = greatest;
            for (var i = 0u; i < 16u; i += 1u) {
                grown = tectum_max(grown, weights[query_lane * 16u + i]);
            }
            workgroupBarrier();
            var weight = 0.0;
            var shrink = 1.0;
            // Nothing seen yet: no difference of infinities is taken.
            if !(grown < -3.4028234e38) {
                weight = tectum_exp(score - grown);
                shrink = tectum_exp(greatest - grown);
            }
            greatest = grown;
            weights[lane] = weight;
            workgroupBarrier();
            total *= shrink;
            for (var i = 0u; i < 16u; i += 1u) {
                total += weights[query_lane * 16u + i];
            }
            let count = min(16u, keys - first_key);
            for (var part = 0u; part < 8u; part += 1u) {
                let column = part * 16u + key_lane;
                if column < params.width {
                    var sum = sums[part] * shrink;
                    for (var i = 0u; i < count; i += 1u) {
                        let v_at = VALUE_AT;
                        sum += weights[query_lane * 16u + i] * VALUE_HERE;
                    }
                    sums[part] = sum;
                }
            }
            workgroupBarrier();
        }
        let row = first + query_lane;
        if row < params.queries {
            for (var part = 0u; part < 8u; part += 1u) {
                let column = part * 16u + key_lane;
                if column < params.width {
                    y[((batch * params.queries + row) * params.heads + head) * params.width + column] = sums[part] / total;
                }
            }
        }
        workgroupBarrier();
    }
}

fn sub_or_zero(a: u32, b: u32) -> u32 {
    return a - min(a, b);
}
