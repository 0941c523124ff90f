// Sum of each segment of each row: y[row, s] = Σ x[row, s·segment ..].
// in: x [rows, cols]; out: y [rows, segments]. One workgroup reduces one segment: 256 strided partial results, then a
// binary tree; workgroups stride over the items. The tree is fixed by the shape.
fn combine(a: f32, b: f32) -> f32 {
    return a + b;
}

var<workgroup> partial: array<f32, 256>;

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
        var acc = 0.0;
        for (var i = start + lane; i < end; i += 256u) {
            acc = combine(acc, x[row * params.cols + i]);
        }
        partial[lane] = acc;
        workgroupBarrier();
        for (var half = 128u; half > 0u; half /= 2u) {
            if lane < half {
                partial[lane] = combine(partial[lane], partial[lane + half]);
            }
            workgroupBarrier();
        }
        if lane == 0u {
            y[item] = partial[0];
        }
        workgroupBarrier();
    }
}
