// m ← β₁m + (1−β₁)g, v ← β₂v + (1−β₂)g², w ← w − lr·(m̂/(√v̂ + ε) + λw)
// in: schedule [lr, 1/(1−β₁ᵗ), 1/(1−β₂ᵗ), λ], g [n]; in and out: w, m, v [n]. One invocation per stride-th weight.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.n; i += stride) {
        let gradient = g[i];
        let first = params.beta1 * m[i] + (1.0 - params.beta1) * gradient;
        let second = params.beta2 * v[i] + (1.0 - params.beta2) * (gradient * gradient);
        m[i] = first;
        v[i] = second;
        let step = (first * schedule[1]) / (sqrt(second * schedule[2]) + params.epsilon);
        let weight = w[i];
        w[i] = weight - schedule[0] * (step + schedule[3] * weight);
    }
}
