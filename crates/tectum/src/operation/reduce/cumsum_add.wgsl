// y[row, j] += offsets[row, segment of j]; with reverse = 1 places count from the end of a row.
// in: offsets [rows, segments]; in and out: y [rows, cols]. One invocation takes every stride-th element.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.rows * params.cols; i += stride) {
        let col = i % params.cols;
        let place = select(col, params.cols - 1u - col, params.reverse != 0u);
        y[i] += offsets[i / params.cols * params.segments + place / params.segment];
    }
}
