// y[n, m, o] = activation(Σ_{c, q} w[m, c, q]·x[n, c, o·stride − pad + q·dilation] + bias[m] + residual[n, m, o])
// in: x [batch, channels_in, size_in], w [channels_out, channels_in / groups, kernel] or in panels of 16 filters of a group,
// bias [channels_out] and residual like y where the variant has them; out: y [batch, channels_out, size_out].
// One invocation makes every stride-th element; neighbouring lanes make neighbouring elements of a row. f32, by channel, then by
// element of the window.
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let stride = workgroups.x * 256u;
    let pixels = params.size_out0 * params.size_out1 * params.size_out2;
    let volume = params.size_in0 * params.size_in1 * params.size_in2;
    let channels = params.channels_in / params.groups;
    let filters = params.channels_out / params.groups;
    let taps = params.kernel0 * params.kernel1 * params.kernel2;
    let depth = channels * taps;
    for (var i = id.x; i < params.batch * params.channels_out * pixels; i += stride) {
        let pixel = i % pixels;
        let channel = (i / pixels) % params.channels_out;
        let image = i / (pixels * params.channels_out);
        let group = channel / filters;
        let member = channel % filters;
        let first0 = i32(pixel / (params.size_out1 * params.size_out2) * params.stride0) - i32(params.pad0);
        let first1 = i32((pixel / params.size_out2) % params.size_out1 * params.stride1) - i32(params.pad1);
        let first2 = i32(pixel % params.size_out2 * params.stride2) - i32(params.pad2);
        var sum = 0.0;
        for (var c = 0u; c < channels; c += 1u) {
            let plane = (image * params.channels_in + group * channels + c) * volume;
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
                    let row = plane + (u32(p0) * params.size_in1 + u32(p1)) * params.size_in2;
                    for (var q2 = 0u; q2 < params.kernel2; q2 += 1u) {
                        let p2 = first2 + i32(q2 * params.dilation2);
                        if p2 < 0 || p2 >= i32(params.size_in2) {
                            continue;
                        }
                        let at = c * taps + (q0 * params.kernel1 + q1) * params.kernel2 + q2;
                        sum += x[row + u32(p2)] * FILTER_VALUE;
                    }
                }
            }
        }
        y[i] = tectum_activation(sumPLUS_BIASPLUS_RESIDUAL, params.activation);
    }
}
