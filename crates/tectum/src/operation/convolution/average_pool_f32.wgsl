// y[c, o] = Σ_q x[c, o·stride − pad + q·dilation] / count, elements outside being 0; positions from count_before before the input to
// count_after after it count. in: x [channels, size_in]; out: y [channels, size_out], 0 where nothing counts. One invocation makes every
// stride-th element. f32, in the order of the window.
fn counted(first: i32, size: u32, step: u32, low: i32, high: i32) -> u32 {
    var count = 0u;
    for (var q = 0u; q < size; q += 1u) {
        let at = first + i32(q * step);
        if at >= low && at < high {
            count += 1u;
        }
    }
    return count;
}

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
        let count0 = counted(first0, params.kernel0, params.dilation0, -i32(params.count_before0), i32(params.size_in0 + params.count_after0));
        let count1 = counted(first1, params.kernel1, params.dilation1, -i32(params.count_before1), i32(params.size_in1 + params.count_after1));
        let count2 = counted(first2, params.kernel2, params.dilation2, -i32(params.count_before2), i32(params.size_in2 + params.count_after2));
        var sum = 0.0;
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
                    sum += x[channel + (u32(p0) * params.size_in1 + u32(p1)) * params.size_in2 + u32(p2)];
                }
            }
        }
        y[i] = sum / f32(max(count0 * count1 * count2, 1u));
    }
}
