// Which samples count: those whose cost is below the maximum; a rollout writes that for a cost that is not finite.
// in: costs [samples]; out: negative [samples], kept [2, samples]: cost and 1, or 0 and 0 of a sample that does not count.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var k = id.x; k < params.samples; k += stride) {
        let counts = costs[k] < params.max_cost;
        negative[k] = -costs[k];
        kept[k] = select(0.0, costs[k], counts);
        kept[params.samples + k] = select(0.0, 1.0, counts);
    }
}
