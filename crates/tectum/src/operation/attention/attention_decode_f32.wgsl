// y[b, h, ·] = Σ_s softmax_s(scale·q[b, h, ·]·k[b, s, h / group, ·])·v[b, s, h / group, ·], s over the keys that the cache holds
// in: q by rows of q_row columns of which those from q_start on are heads of `width` columns; the caches k and v
// [batch, keys, heads / group, width], of which spans [batch, 2] (kept, new) says how many keys are there; out: y [batch, heads, width].
// FIRST_AT, KEY_HERE and VALUE_HERE read k and v in their format; of coded caches the run's own rows are k_new and v_new.
// One workgroup makes one head of an item, 256 keys at a time: a lane is a key for the products, then a column and every
// parts-th key for the sums, which are rescaled as the greatest product grows (Milakov and Gimelshein,
// https://arxiv.org/abs/1805.02867). `lanes` is the power of two not below `width`. Items stride over workgroups.
var<workgroup> query: array<f32, 128>;
var<workgroup> weights: array<f32, 256>;

@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let columns = params.heads / params.group * params.width;
    let parts = 256u / params.lanes;
    let column = lane % params.lanes;
    let part = lane / params.lanes;
    for (var item = group.x; item < params.batch * params.heads; item += groups.x) {
        let batch = item / params.heads;
        let head = item % params.heads;
        let first = FIRST_AT;
        let keys = KEY_COUNT;
        if lane < params.width {
            query[lane] = params.scale * q[batch * params.q_row + params.q_start + head * params.width + lane];
        }
        workgroupBarrier();
        var greatest = -tectum_inf();
        var total = 0.0;
        var sum = 0.0;
        for (var block = 0u; block < keys; block += 256u) {
            let key = block + lane;
            var score = -tectum_inf();
            if key < keys {
                score = 0.0;
                for (var i = 0u; i < params.width; i += 1u) {
                    score += query[i] * KEY_HERE;
                }
            }
            // A block has a key, so that no infinities are subtracted.
            let grown = tectum_max(greatest, tectum_tree_max(lane, score));
            let weight = tectum_exp(score - grown);
            let shrink = tectum_exp(greatest - grown);
            weights[lane] = weight;
            total = total * shrink + tectum_tree_sum(lane, weight);
            greatest = grown;
            sum *= shrink;
            if column < params.width {
                for (var i = part; i < min(256u, keys - block); i += parts) {
                    sum += weights[i] * VALUE_HERE;
                }
            }
            workgroupBarrier();
        }
        weights[lane] = sum;
        workgroupBarrier();
        if lane < params.width {
            var whole = 0.0;
            for (var i = 0u; i < parts; i += 1u) {
                whole += weights[i * params.lanes + lane];
            }
            y[item * params.width + lane] = whole / total;
        }
        workgroupBarrier();
    }
}
