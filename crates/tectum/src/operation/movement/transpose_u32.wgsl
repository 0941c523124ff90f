// y[b, col, row] = x[b, row, col], words of any type.
// in: x [batch, rows, cols]; out: y [batch, cols, rows]. A workgroup moves a tile of 32 × 32 through workgroup memory, so that
// neighbouring lanes read and write neighbouring words; a column of 33 keeps lanes off one bank. Tiles stride.
var<workgroup> tile: array<u32, 1056>;

@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let across = (params.cols + 31u) / 32u;
    let tiles = across * ((params.rows + 31u) / 32u);
    let area = params.rows * params.cols;
    for (var item = group.x; item < tiles * params.batch; item += groups.x) {
        let base = (item / tiles) * area;
        let first_row = ((item % tiles) / across) * 32u;
        let first_col = ((item % tiles) % across) * 32u;
        for (var part = lane / 32u; part < 32u; part += 8u) {
            let row = first_row + part;
            let col = first_col + lane % 32u;
            if row < params.rows && col < params.cols {
                tile[part * 33u + lane % 32u] = x[base + row * params.cols + col];
            }
        }
        workgroupBarrier();
        for (var part = lane / 32u; part < 32u; part += 8u) {
            let row = first_row + lane % 32u;
            let col = first_col + part;
            if row < params.rows && col < params.cols {
                y[base + col * params.rows + row] = tile[(lane % 32u) * 33u + part];
            }
        }
        workgroupBarrier();
    }
}
