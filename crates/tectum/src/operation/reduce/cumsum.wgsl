// Running sums within segments of rows: y[row, j] = Σ x[row, start ..= j] (or .. j), totals[row, s] = the segment's sum; with reverse = 1 places count
// from the end of a row.
// in: x [rows, cols]; out: y [rows, cols], totals [rows, segments]. One invocation adds up one segment in order; invocations stride over the segments.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var item = id.x; item < params.rows * params.segments; item += stride) {
        let row = item / params.segments;
        let start = (item % params.segments) * params.segment;
        let end = min(start + params.segment, params.cols);
        var total = number(0);
        for (var place = start; place < end; place += 1u) {
            let i = row * params.cols + select(place, params.cols - 1u - place, params.reverse != 0u);
            let before = total;
            total += x[i];
            y[i] = select(total, before, params.exclusive != 0u);
        }
        totals[item] = total;
    }
}
