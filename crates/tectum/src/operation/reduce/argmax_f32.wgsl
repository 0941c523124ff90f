// Column of the first greatest element of each segment of each row; a NaN counts as greater than all.
// in: x [rows, cols]; out: y [rows, segments]. One workgroup scans one segment; ties go to the lower column. Exact.
var<workgroup> keys: array<u32, 256>;
var<workgroup> columns: array<u32, 256>;

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
        // A lane without elements stands at the segment's end with the lowest key and loses every tie.
        var key = 0u;
        var column = end;
        for (var i = start + lane; i < end; i += 256u) {
            let candidate = tectum_order_key(x[row * params.cols + i]);
            if candidate > key {
                key = candidate;
                column = i;
            }
        }
        keys[lane] = key;
        columns[lane] = column;
        workgroupBarrier();
        for (var half = 128u; half > 0u; half /= 2u) {
            if lane < half {
                let other = lane + half;
                if keys[other] > keys[lane] || (keys[other] == keys[lane] && columns[other] < columns[lane]) {
                    keys[lane] = keys[other];
                    columns[lane] = columns[other];
                }
            }
            workgroupBarrier();
        }
        if lane == 0u {
            y[item] = columns[0];
        }
        workgroupBarrier();
    }
}
