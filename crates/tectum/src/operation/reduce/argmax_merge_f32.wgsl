// The candidate column of each row whose element is the first greatest.
// in: x [rows, cols], candidates [rows, count]; out: y [rows]. One invocation merges one row. Exact.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var row = id.x; row < params.rows; row += stride) {
        var best = candidates[row * params.count];
        var best_key = tectum_order_key(x[row * params.cols + best]);
        for (var i = 1u; i < params.count; i += 1u) {
            let candidate = candidates[row * params.count + i];
            let key = tectum_order_key(x[row * params.cols + candidate]);
            if key > best_key || (key == best_key && candidate < best) {
                best = candidate;
                best_key = key;
            }
        }
        y[row] = best;
    }
}
