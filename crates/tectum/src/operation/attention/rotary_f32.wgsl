// y[row, h, j] = x[row, h, j]·cos − x[row, h, j + w/2]·sin, y[row, h, j + w/2] = x[row, h, j + w/2]·cos + x[row, h, j]·sin, with
// the angle positions[row mod count]·frequencies[j]
// model: frequencies [half]; in: x [rows, cols], positions [count]; out: y [rows, cols], cols being heads of 2·half columns.
// One invocation turns one pair; pairs stride over invocations.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    let pairs = params.cols / 2u;
    for (var i = id.x; i < params.rows * pairs; i += stride) {
        let row = i / pairs;
        let pair = i % pairs;
        let j = pair % params.half;
        let at = row * params.cols + (pair / params.half) * 2u * params.half + j;
        let angle = f32(positions[row % params.count]) * frequencies[j];
        let cosine = tectum_cos(angle);
        let sine = tectum_sin(angle);
        let first = x[at];
        let second = x[at + params.half];
        y[at] = first * cosine - second * sine;
        y[at + params.half] = second * cosine + first * sine;
    }
}
