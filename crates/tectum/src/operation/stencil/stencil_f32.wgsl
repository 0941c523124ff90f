// y[X, Y, Z, c] = Σ over neighbours of weight(class, c) · x[neighbour, c]; NEIGHBOUR_COUNT neighbours, four classes.
// in: x [nx, ny, nz, channels], weights [4] or [4, channels] (params.per_channel); out: y like x. Boundary: 0 what lies outside
// is 0, 1 it is the nearest cell inside, 2 the field is periodic. One invocation makes every stride-th element; neighbouring
// lanes read neighbouring channels. f32, sums of a class first.
fn place(at: i32, size: u32) -> i32 {
    if at >= 0 && at < i32(size) {
        return at;
    }
    if params.boundary == 0u {
        return -1;
    }
    if params.boundary == 1u {
        return clamp(at, 0, i32(size) - 1);
    }
    return select(at - i32(size), at + i32(size), at < 0);
}

fn cell(px: i32, py: i32, pz: i32, channel: u32) -> f32 {
    let cx = place(px, params.nx);
    let cy = place(py, params.ny);
    let cz = place(pz, params.nz);
    if cx < 0 || cy < 0 || cz < 0 {
        return 0.0;
    }
    return x[((u32(cx) * params.ny + u32(cy)) * params.nz + u32(cz)) * params.channels + channel];
}

SUMS

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.nx * params.ny * params.nz * params.channels; i += stride) {
        let channel = i % params.channels;
        let position = i / params.channels;
        let pz = i32(position % params.nz);
        let py = i32((position / params.nz) % params.ny);
        let px = i32(position / (params.nz * params.ny));
        let sums = neighbour_sums(px, py, pz, channel);
        var first = 0u;
        var step = 1u;
        if params.per_channel != 0u {
            first = channel;
            step = params.channels;
        }
        y[i] = weights[first] * x[i] + weights[first + step] * sums.x + weights[first + 2u * step] * sums.y
            + weights[first + 3u * step] * sums.z;
    }
}
