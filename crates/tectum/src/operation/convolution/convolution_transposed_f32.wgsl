// y[n, m, o] = activation(Σ w[c, m, q]·x[n, c, i] + bias[m]) over all c, i and q with i·stride + q·dilation − pad = o
// in: x [batch, channels_in, size_in], w [channels_in, channels_out / groups, kernel], bias [channels_out] where the variant has it;
// out: y [batch, channels_out, size_out]. One invocation makes every stride-th element from the inputs that reach it. f32, by channel,
// then by element of the window.
fn reaches(at: i32, step: u32, size: u32) -> bool {
    return at >= 0 && u32(at) % step == 0u && u32(at) / step < size;
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) workgroups: vec3<u32>) {
    let stride = workgroups.x * 256u;
    let pixels = params.size_out0 * params.size_out1 * params.size_out2;
    let volume = params.size_in0 * params.size_in1 * params.size_in2;
    let channels = params.channels_in / params.groups;
    let filters = params.channels_out / params.groups;
    let taps = params.kernel0 * params.kernel1 * params.kernel2;
    for (var i = id.x; i < params.batch * params.channels_out * pixels; i += stride) {
        let pixel = i % pixels;
        let channel = (i / pixels) % params.channels_out;
        let image = i / (pixels * params.channels_out);
        let group = channel / filters;
        let last0 = i32(pixel / (params.size_out1 * params.size_out2) + params.pad0);
        let last1 = i32((pixel / params.size_out2) % params.size_out1 + params.pad1);
        let last2 = i32(pixel % params.size_out2 + params.pad2);
        var sum = 0.0;
        for (var c = 0u; c < channels; c += 1u) {
            let plane = (image * params.channels_in + group * channels + c) * volume;
            let first = ((group * channels + c) * filters + channel % filters) * taps;
            for (var q0 = 0u; q0 < params.kernel0; q0 += 1u) {
                let p0 = last0 - i32(q0 * params.dilation0);
                if !reaches(p0, params.stride0, params.size_in0) {
                    continue;
                }
                for (var q1 = 0u; q1 < params.kernel1; q1 += 1u) {
                    let p1 = last1 - i32(q1 * params.dilation1);
                    if !reaches(p1, params.stride1, params.size_in1) {
                        continue;
                    }
                    let row = plane + (u32(p0) / params.stride0 * params.size_in1 + u32(p1) / params.stride1) * params.size_in2;
                    for (var q2 = 0u; q2 < params.kernel2; q2 += 1u) {
                        let p2 = last2 - i32(q2 * params.dilation2);
                        if !reaches(p2, params.stride2, params.size_in2) {
                            continue;
                        }
                        sum += x[row + u32(p2) / params.stride2] * w[first + (q0 * params.kernel1 + q1) * params.kernel2 + q2];
                    }
                }
            }
        }
        y[i] = tectum_activation(sumPLUS_BIASPLUS_RESIDUAL, params.activation);
    }
}
