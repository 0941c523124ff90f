// y[c, o] = max x[c, o·stride − pad + q·dilation] over the q for which it is inside; indices: where the first maximum is in its channel
// in: x [channels, size_in]; out: y [channels, size_out], and indices of the same shape where the variant has them. A NaN is greater than
// all numbers, the last of several counts. One invocation makes every stride-th element. Exact.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let stride = workgroups.x * 256u;
    let pixels = params.size_out0 * params.size_out1 * params.size_out2;
    let volume = params.size_in0 * params.size_in1 * params.size_in2;
    for (var i = id.x; i < params.channels * pixels; i += stride) {
        let pixel = i % pixels;
        let channel = i / pixels * volume;
        let first0 = i32(pixel / (params.size_out1 * params.size_out2) * params.stride0) - i32(params.pad0);
        let first1 = i32((pixel / params.size_out2) % params.size_out1 * params.stride1) - i32(params.pad1);
        let first2 = i32(pixel % params.size_out2 * params.stride2) - i32(params.pad2);
        var best = -tectum_inf();
        var place = 0xffffffffu;
        for (var q0 = 0u; q0 < params.kernel0; q0 += 1u) {
            let p0 = first0 + i32(q0 * params.dilation0);
            if p0 < 0 || p0 >= i32(params.size_in0) {
                continue;
            }
            for (var q1 = 0u; q1 < params.kernel1; q1 += 1u) {
                let p1 = first1 + i32(q1 * params.dilation1);
                if p1 < 0 || p1 >= i32(params.size_in1) {
                    continue;
                }
                for (var q2 = 0u; q2 < params.kernel2; q2 += 1u) {
                    let p2 = first2 + i32(q2 * params.dilation2);
                    if p2 < 0 || p2 >= i32(params.size_in2) {
                        continue;
                    }
                    let at = (u32(p0) * params.size_in1 + u32(p1)) * params.size_in2 + u32(p2);
                    let value = x[channel + at];
                    if tectum_is_nan(value) || place == 0xffffffffu || (!tectum_is_nan(best) && value > best) {
                        best = value;
                        place = at;
                    }
                }
            }
        }
        y[i] = best;
        STORE_INDEX
    }
}
