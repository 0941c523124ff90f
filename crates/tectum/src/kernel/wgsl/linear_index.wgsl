// The number of an invocation among all of a launch, whose workgroups may be in rows along y:
// an argument `invocation: TectumInvocation` of `main` replaces ids. TECTUM_WORKGROUP is the number of invocations in a workgroup.

struct TectumInvocation {
    @builtin(workgroup_id) workgroup: vec3<u32>,
    @builtin(num_workgroups) workgroups: vec3<u32>,
    @builtin(local_invocation_index) local: u32,
}

// The number of the workgroup.
fn tectum_linear_workgroup(invocation: TectumInvocation) -> u32 {
    return invocation.workgroup.y * invocation.workgroups.x + invocation.workgroup.x;
}

// The number of the invocation.
fn tectum_linear_index(invocation: TectumInvocation) -> u32 {
    return tectum_linear_workgroup(invocation) * TECTUM_WORKGROUP + invocation.local;
}
