// y[k] = −(cost[k] − least) / (temperature·(average − least + 1e-6)): what the softmax weighs the samples by.
// in: costs [samples], total [1] their sum, greatest [1] the greatest of their negatives; out: y [samples].
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    let least = -greatest[0];
    let spread = params.temperature * (total[0] / f32(params.samples) - least + 1e-6);
    for (var k = id.x; k < params.samples; k += stride) {
        y[k] = (least - costs[k]) / spread;
    }
}
