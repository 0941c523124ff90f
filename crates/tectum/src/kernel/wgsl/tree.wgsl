// Reductions over the 256 lanes of a workgroup by binary trees, the same order every time; all lanes get the result and
// must call together. Needs the math prelude.
var<workgroup> tectum_partial: array<real, 256>;

fn tectum_tree_sum(lane: u32, value: real) -> real {
    tectum_partial[lane] = value;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if lane < half {
            tectum_partial[lane] += tectum_partial[lane + half];
        }
        workgroupBarrier();
    }
    let result = tectum_partial[0];
    workgroupBarrier();
    return result;
}

fn tectum_tree_max(lane: u32, value: real) -> real {
    tectum_partial[lane] = value;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if lane < half {
            tectum_partial[lane] = tectum_max(tectum_partial[lane], tectum_partial[lane + half]);
        }
        workgroupBarrier();
    }
    let result = tectum_partial[0];
    workgroupBarrier();
    return result;
}
