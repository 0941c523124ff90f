// Means of the sites: sites [X / block][Y / block][Z / block][content] from pooled [X·Y][Z / block][content], sums over the cells of a
// site in each row. One invocation strides over elements; rows are added in order.
// Tolerance: 1e-6 of the largest. Source: docs/field.md, step 5.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let block = params.block;
    let line = params.nz / block * params.content;
    let across = params.ny / block;
    let cells = f32(block * block * block);
    for (var i = id.x; i < params.nx / block * across * line; i += groups.x * 256u) {
        let within = i % line;
        let column = i / line;
        let first = (column / across) * block * params.ny + (column % across) * block;
        var sum = 0.0;
        for (var j = 0u; j < block * block; j++) {
            sum += pooled[(first + j / block * params.ny + j % block) * line + within];
        }
        sites[i] = sum / cells;
    }
}
