// y[m] = activation(Σ_k a[m, k]·x[k] + bias[m]) + residual[m]
// in: a [m, k], x [k], bias [m] and residual [m] where the variant has them; out: y [m]. One workgroup per row: 256
// strided partial sums, then a binary tree; rows stride over the workgroups. Accumulation in `real`, fixed order.
@compute @workgroup_size(256)
fn main(
    @builtin(local_invocation_index) lane: u32,
    @builtin(workgroup_id) group: vec3<u32>,
    @builtin(num_workgroups) groups: vec3<u32>,
) {
    for (var row = group.x; row < params.m; row += groups.x) {
        var acc = real(0.0);
        for (var i = lane; i < params.k; i += 256u) {
            acc += a[row * params.k + i] * x[i];
        }
        let product = tectum_tree_sum(lane, acc);
        if lane == 0u {
            y[row] = tectum_activation(productPLUS_BIAS, params.activation)PLUS_RESIDUAL;
        }
    }
}
