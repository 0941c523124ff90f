// indices[offsets[i]] = i for every nonzero flags[i]; the rest of indices keeps its values.
// in: flags [n], offsets [n] (the exclusive scan of the flags); out: indices [n]. One invocation per stride-th flag. Exact.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.n; i += stride) {
        if flags[i] != 0u {
            indices[offsets[i]] = i;
        }
    }
}
