// Each segment of each row reduced to one value: y[row, s] = Σ (or greatest) x[row, s·segment ..]; a NaN stays.
// in: x [rows, cols]; out: y [rows, segments]. One workgroup reduces one segment: 256 strided partial results, then a
// binary tree; workgroups stride over the items. The tree is fixed by the shape. Body of sum, max and min.
@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var item = group.x; item < params.rows * params.segments; item += groups.x) {
        let row = item / params.segments;
        let start = (item % params.segments) * params.segment;
        let end = min(start + params.segment, params.cols);
        var acc = NEUTRAL;
        for (var i = start + lane; i < end; i += 256u) {
            acc = combine(acc, x[row * params.cols + i]);
        }
        let result = TREE(lane, acc);
        if lane == 0u {
            y[item] = result;
        }
    }
}
