// Statistics, regions and motors: the end of step 5 and step 6 of docs/field.md.
// in: rows [X·Y][8] sums of each row; live; control; sites [sites][content]. in and out: memory. out: descriptor [64][content] means
// of the regions; report [REPORT_WORDS].
// One workgroup; sums over rows are trees. Tolerance: 1e-5 of the size of each number. Source: docs/field.md.
var<workgroup> moved: array<f32, 16>;

fn number(at: u32) -> f32 {
    return bitcast<f32>(live[at]);
}

fn ramp(x: f32, low: f32, high: f32) -> f32 {
    return clamp((x - low) / (high - low), 0.0, 1.0);
}

fn noise(index: u32) -> f32 {
    return NOISE_UNIT * f32(field_draw(0xfffffe00u + index, live[LIVE_KEY], live[LIVE_KEY + 1u]));
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_id) local: vec3<u32>) {
    let lane = local.x;
    let content = f32(params.content);
    let cells = f32(params.nx * params.ny * params.nz);

    // Sums over the field and over its end slices.
    var sum = 0.0;
    var size = 0.0;
    var square = 0.0;
    var temporal = 0.0;
    var across = vec3<f32>();
    for (var row = lane; row < params.nx * params.ny; row += 256u) {
        let at = row * ROW_WORDS;
        let px = row / params.ny;
        let py = row % params.ny;
        sum += rows[at];
        size += rows[at + 1u];
        square += rows[at + 2u];
        temporal += rows[at + 5u];
        across.x += rows[at] * (select(0.0, 1.0, px + 1u == params.nx) - select(0.0, 1.0, px == 0u));
        across.y += rows[at] * (select(0.0, 1.0, py + 1u == params.ny) - select(0.0, 1.0, py == 0u));
        across.z += rows[at + 4u] - rows[at + 3u];
    }
    let mean = tectum_tree_sum(lane, sum) / (cells * content);
    let mean_size = tectum_tree_sum(lane, size) / (cells * content);
    let variance = max(0.0, tectum_tree_sum(lane, square) / (cells * content) - mean * mean);
    let mean_temporal = tectum_tree_sum(lane, temporal) / (cells * f32(params.channels / 4u));
    let gradient = vec3<f32>(
        tectum_tree_sum(lane, across.x) / (f32(params.ny * params.nz) * content),
        tectum_tree_sum(lane, across.y) / (f32(params.nx * params.nz) * content),
        tectum_tree_sum(lane, across.z) / (f32(params.nx * params.ny) * content),
    );

    // Motors.
    let confidence = memory[MEMORY_CONFIDENCE];
    if lane < MAX_MOTORS {
        var raw = 0.1 * noise(2u * lane);
        if lane == 0u {
            raw = 5.0 * gradient.x;
        } else if lane == 1u {
            raw = 5.0 * gradient.y;
        } else if lane == 2u {
            raw = mean_temporal * control[CONTROL_STRATEGIC_WEIGHT] / 0.3;
        } else if lane == 3u {
            raw = 0.5 * gradient.z;
        }
        raw += 0.3 * number(LIVE_EXPLORATION) * control[CONTROL_EXPLORE] * noise(2u * lane + 1u);
        let gain = min(3.0, 1.0 + ramp(0.32 - confidence, 0.0, 0.04) * (0.5 + 2.0 * max(0.0, 0.3 - confidence)));
        moved[lane] = select(0.0, clamp(gain * tectum_tanh(raw), -1.0, 1.0), lane < params.motors);
    }
    workgroupBarrier();
    if lane < MAX_MOTORS {
        memory[MEMORY_MOTORS + lane] = moved[lane];
        report[REPORT_MOTORS + lane] = moved[lane];
    }
    if lane == 0u {
        memory[MEMORY_MEAN] = mean;
        memory[MEMORY_SIZE] = mean_size;
        memory[MEMORY_VARIANCE] = variance;
        memory[MEMORY_TEMPORAL] = mean_temporal;
        report[REPORT_DRIVE] = control[CONTROL_DRIVE];
        report[REPORT_EXPLORE] = control[CONTROL_EXPLORE];
        report[REPORT_INTENSITY] = control[CONTROL_INTENSITY];
        report[REPORT_PLACE_KIND] = control[CONTROL_PLACE_KIND];
        report[REPORT_NOVELTY] = control[CONTROL_NOVELTY];
        report[REPORT_ERROR] = control[CONTROL_ERROR];
        report[REPORT_INFORMATION] = memory[MEMORY_INFORMATION];
        report[REPORT_CONFIDENCE] = confidence;
        report[REPORT_MEAN] = mean;
        report[REPORT_SIZE] = mean_size;
        report[REPORT_VARIANCE] = variance;
        for (var i = 0u; i < TOP; i++) {
            report[REPORT_TOP + i] = memory[MEMORY_TOP + i];
        }
        report[REPORT_NEAREST] = memory[MEMORY_NEAREST];
        report[REPORT_STORED] = memory[MEMORY_STORED];
        report[REPORT_ATTRACTOR] = memory[MEMORY_ATTRACTOR];
        report[REPORT_KEPT] = memory[MEMORY_KEPT];
        for (var axis = 0u; axis < 3u; axis++) {
            report[REPORT_PLACE + axis] = control[CONTROL_PLACE + axis];
            report[REPORT_GRADIENT + axis] = gradient[axis];
        }
    }

    // Means of the regions.
    let sites = vec3<u32>(params.nx, params.ny, params.nz) / params.block;
    let part = sites / 4u;
    for (var i = lane; i < 64u * params.content; i += 256u) {
        let region = i / params.content;
        let first = vec3<u32>(region / 16u, (region / 4u) % 4u, region % 4u) * part;
        var total = 0.0;
        for (var j = 0u; j < part.x * part.y * part.z; j++) {
            let place = first + vec3<u32>(j / (part.y * part.z), (j / part.z) % part.y, j % part.z);
            total += site_means[((place.x * sites.y + place.y) * sites.z + place.z) * params.content + i % params.content];
        }
        descriptor[i] = total / f32(part.x * part.y * part.z);
    }
}
