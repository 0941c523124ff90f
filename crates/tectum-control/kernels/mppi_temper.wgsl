// y[k] = −(cost[k] − least) / (temperature·(average − least + 1e-6)): what the softmax weighs the samples by; of a
// sample that does not count it is so low that its weight is 0. Without any that counts, all weigh the same.
// in: costs [samples], totals [2] sum and number of those that count, greatest [1] the greatest of their negatives;
// out: y [samples].
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    let least = -greatest[0];
    let spread = params.temperature * (totals[0] / max(totals[1], 1.0) - least + 1e-6);
    for (var k = id.x; k < params.samples; k += stride) {
        let scaled = select(-1e30, (least - costs[k]) / spread, costs[k] < params.max_cost);
        y[k] = select(0.0, scaled, totals[1] > 0.0);
    }
}
