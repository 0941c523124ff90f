// Products of the present pattern with all patterns and attractors that are kept: step 0 of docs/field.md.
// model: library [kept][8][content]; traits [kept][4] of which the first is 0 in a free place. in: descriptor [64][content] mean content of
// the regions. out: products [kept], 0 for a free place.
// A workgroup strides over 16 rows at a time, 16 lanes a row; it makes the present pattern once.
// Tolerance: 1e-5 of the two lengths. Source: docs/field.md.
var<workgroup> present: array<f32, 1408>;
var<workgroup> parts: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let lane = local.x;
    let width = OCTANTS * params.content;
    for (var i = lane; i < width; i += 256u) {
        present[i] = field_octant(i);
    }
    workgroupBarrier();
    for (var first = 16u * group.x; first < params.kept; first += 16u * groups.x) {
        let row = first + lane / 16u;
        var sum = 0.0;
        if row < params.kept && traits[row * TRAIT_WORDS] > 0.0 {
            for (var i = lane % 16u; i < width; i += 16u) {
                sum += present[i] * library[row * width + i];
            }
        }
        parts[lane] = sum;
        workgroupBarrier();
        if lane % 16u == 0u && row < params.kept {
            var total = 0.0;
            for (var i = 0u; i < 16u; i++) {
                total += parts[lane + i];
            }
            products[row] = total;
        }
        workgroupBarrier();
    }
}
