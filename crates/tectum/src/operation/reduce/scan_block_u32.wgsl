// Exclusive scan within blocks of 1,024: y[i] = Σ x[block start .. i], sums[block] = the block's total, modulo 2³².
// in: x [n]; out: y [n], sums [ceil(n / 1024)]. One workgroup scans a block: four elements an invocation, then
// Hillis and Steele over the 256 partial sums. With flags = 1 every nonzero element counts as 1. Exact.
var<workgroup> partial: array<u32, 256>;

fn element(i: u32) -> u32 {
    if i >= params.n {
        return 0u;
    }
    if params.flags != 0u {
        return select(0u, 1u, x[i] != 0u);
    }
    return x[i];
}

@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    let blocks = (params.n + 1023u) / 1024u;
    for (var block = group.x; block < blocks; block += groups.x) {
        let first = block * 1024u + lane * 4u;
        let a = element(first);
        let b = a + element(first + 1u);
        let c = b + element(first + 2u);
        let d = c + element(first + 3u);
        partial[lane] = d;
        workgroupBarrier();
        for (var step = 1u; step < 256u; step *= 2u) {
            var below = 0u;
            if lane >= step {
                below = partial[lane - step];
            }
            workgroupBarrier();
            partial[lane] += below;
            workgroupBarrier();
        }
        let before = partial[lane] - d;
        if first < params.n { y[first] = before; }
        if first + 1u < params.n { y[first + 1u] = before + a; }
        if first + 2u < params.n { y[first + 2u] = before + b; }
        if first + 3u < params.n { y[first + 3u] = before + c; }
        if lane == 255u {
            sums[block] = partial[255];
        }
        workgroupBarrier();
    }
}
