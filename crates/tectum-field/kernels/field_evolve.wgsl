// One Jacobi step of a row of cells along Z: step 4 of docs/field.md, with the sums of step 5.
// model: tables [4][X + Y + Z][2] sines and cosines of the waves along each axis. in: x [X][Y][Z][C]; live; control; pull [64][content]
// what the library recalls, by region. out: y as x; rows [X·Y][8] sums of a row; pooled [X·Y][Z / block][content] sums over the
// cells of a site in this row.
// A launch makes `planes` planes along X from the `first` on. If they are not all, x and y hold them with one more on either side, which
// holds the values there; rows and pooled are those of the planes alone.
// x and y are as `field_f32.wgsl` or `field_bf16.wgsl` says.
// A workgroup strides over rows. Lane z first makes the coefficients of cell z and its dynamics, then lanes take elements in pairs.
// Tolerance: 1e-5 of saturation. Source: docs/field.md.
const WAVES = 4u;
// Of each cell: four decays, their mean, diffusion along X, Y, Z, coupling, what is added to content, and to temporal.
const CELL_WORDS = 11u;

var<workgroup> cells: array<f32, 704>;
var<workgroup> waves_of_row: array<vec2<f32>, 4>;

fn number(at: u32) -> f32 {
    return bitcast<f32>(live[at]);
}

// The cell that represents place `at`, one step outside at most; -1 for a zero.
fn standing(at: i32, size: u32) -> i32 {
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

// Planes before the first in x and y.
fn halo() -> u32 {
    return select(1u, 0u, params.planes == params.nx);
}

// The number of a field's element less that of its place in x and y.
fn skipped() -> u32 {
    return (params.first - halo()) * params.ny * params.nz * params.channels;
}

// The old value at a cell that may lie one step outside, px counted from the first plane.
fn old(px: i32, py: i32, pz: i32, channel: u32) -> f32 {
    let ix = select(standing(px, params.nx), px + 1, params.planes != params.nx);
    let iy = standing(py, params.ny);
    let iz = standing(pz, params.nz);
    if ix < 0 || iy < 0 || iz < 0 {
        return 0.0;
    }
    return stored(((u32(ix) * params.ny + u32(iy)) * params.nz + u32(iz)) * params.channels + channel);
}

fn soft_sign(v: f32) -> f32 {
    return 2.0 * tectum_sigmoid(2.0 * v) - 1.0;
}

// Coefficients of a cell, and its dynamics of the next cycle.
fn prepare(px: u32, py: u32, pz: u32, row: u32) {
    let content = 3u * params.channels / 4u - 16u;
    let base = ((halo() * params.ny + row) * params.nz + pz) * params.channels;
    let d = base + params.channels - 16u;
    let depth = number(LIVE_DECAY_DEPTH);
    let retention = control[CONTROL_RETENTION];
    var mean_decay = 0.0;
    for (var s = 0u; s < 4u; s++) {
        let decay = retention * (1.0 - depth * (1.0 - tectum_sigmoid(stored(d + s))));
        cells[pz * CELL_WORDS + s] = decay;
        mean_decay += 0.25 * decay;
    }
    cells[pz * CELL_WORDS + 4u] = mean_decay;
    for (var axis = 0u; axis < 3u; axis++) {
        cells[pz * CELL_WORDS + 5u + axis] = number(LIVE_DIFFUSION + axis) + number(LIVE_DIFFUSION_DEPTH + axis) * soft_sign(stored(d + 4u + axis));
    }
    let weight = soft_sign(0.25 * ((stored(d + 8u) + stored(d + 9u)) + (stored(d + 10u) + stored(d + 11u))));
    cells[pz * CELL_WORDS + 8u] = number(LIVE_COUPLING) * tectum_sigmoid(stored(d + 12u)) * tectum_sigmoid(stored(d + 13u)) * weight / 26.0;

    // Waves, and what the error does here.
    var wave = 0.0;
    for (var k = 0u; k < WAVES; k++) {
        let along = 2u * (k * (params.nx + params.ny + params.nz) + params.nx + params.ny + pz);
        wave += waves_of_row[k].x * tables[along + 1u] + waves_of_row[k].y * tables[along];
    }
    let size = vec3<u32>(params.nx, params.ny, params.nz) / 4u;
    let place = vec3<u32>(px, py, pz);
    let part = place / size;
    let region = (part.x * 4u + part.y) * 4u + part.z;
    let away = abs(vec3<i32>(place) - vec3<i32>(part * size + size / 2u));
    let farthest = max(max(away.x, away.y), away.z);
    var push = control[CONTROL_ERROR_EVERYWHERE] + 0.2 * control[CONTROL_STRATEGIC_DRIVE];
    push += select(0.0, control[CONTROL_NEAR + region], farthest <= 1);
    push += select(0.0, control[CONTROL_FAR + region], farthest <= 2);
    let swell = control[CONTROL_DRIVE] * 0.2 * number(LIVE_WAVE) * wave;
    cells[pz * CELL_WORDS + 9u] = swell + push;
    cells[pz * CELL_WORDS + 10u] = swell;

    // The dynamics.
    var sum = 0.0;
    var square = 0.0;
    var quiet = 0.0;
    for (var c = 0u; c < content; c++) {
        let v = stored(base + c);
        sum += v;
        square += v * v;
        quiet += select(0.0, 1.0, abs(v) < 0.1);
    }
    let mean = sum / f32(content);
    let variance = max(0.0, square / f32(content) - mean * mean);
    let step = control[CONTROL_STEP];
    let error = control[CONTROL_REGION_ERROR + region];
    let targets = vec4<f32>(2.0 - error * step, variance * step, 0.5 * step * quiet / f32(content), 0.5 * step * (error * control[CONTROL_EXPLORE] - 0.5));
    let rate = number(LIVE_DYNAMICS_RATE);
    for (var i = 0u; i < 16u; i += 2u) {
        let now = vec2<f32>(stored(d + i), stored(d + i + 1u));
        keep(d + i, clamp(now + rate * (targets[i / 4u] - now), vec2<f32>(-5.0), vec2<f32>(5.0)));
    }
}

// The new value of an evolving channel, pair by pair of content or temporal channels.
fn next(row: u32, px: u32, py: u32, pz: u32, c: u32) -> f32 {
    let content = 3u * params.channels / 4u - 16u;
    let evolving = params.channels - 16u;
    let saturation = number(LIVE_SATURATION);
    let noise = control[CONTROL_DRIVE] * number(LIVE_NOISE);
    let weight = control[CONTROL_STRATEGIC_WEIGHT];
    let region_size = vec3<u32>(params.nx, params.ny, params.nz) / 4u;
    let ix = i32(px - params.first);
    let iy = i32(py);
    let iz = i32(pz);
    let at = ((halo() * params.ny + row) * params.nz + pz) * params.channels + c;
    let cell = pz * CELL_WORDS;
    let here = stored(at);
    let along_x = old(ix - 1, iy, iz, c) + old(ix + 1, iy, iz, c);
    let along_y = old(ix, iy - 1, iz, c) + old(ix, iy + 1, iz, c);
    let along_z = old(ix, iy, iz - 1, c) + old(ix, iy, iz + 1, c);
    let twice = 2.0 * here;
    let spread = (cells[cell + 5u] * (along_x - twice) + cells[cell + 6u] * (along_y - twice)) + cells[cell + 7u] * (along_z - twice);
    let drawn = noise * NOISE_UNIT * f32(field_draw(at + skipped(), live[LIVE_KEY], live[LIVE_KEY + 1u]));
    var v = 0.0;
    if c < content {
        var around = 0.0;
        for (var dx = -1; dx <= 1; dx++) {
            for (var dy = -1; dy <= 1; dy++) {
                around += (old(ix + dx, iy + dy, iz - 1, c) + old(ix + dx, iy + dy, iz, c)) + old(ix + dx, iy + dy, iz + 1, c);
            }
        }
        let kept = here + (spread + cells[cell + 8u] * (around - here));
        v = cells[cell + c % 4u] * kept + (drawn + cells[cell + 9u]);
        let part = vec3<u32>(px, py, pz) / region_size;
        v += pull[((part.x * 4u + part.y) * 4u + part.z) * content + c] - control[CONTROL_PULL] * here;
        let away = abs(vec3<f32>(f32(px), f32(py), f32(pz)) - vec3<f32>(control[CONTROL_PLACE], control[CONTROL_PLACE + 1u], control[CONTROL_PLACE + 2u]));
        if max(max(away.x, away.y), away.z) < 2.5 {
            var fading = 1.0;
            for (var far = 0.5; far < away.x + away.y + away.z; far += 1.0) {
                fading *= 0.8;
            }
            v += control[CONTROL_INTENSITY] * fading * control[CONTROL_PATTERN + c];
        }
    } else {
        let shifted = 0.85 * (here + spread) + 0.15 * stored(at - 1u);
        v = cells[cell + 4u] * shifted + (drawn + cells[cell + 10u]);
        if c + 2u == evolving {
            v += control[CONTROL_ECHO_FORWARD] * (2.0 * f32(pz) / f32(params.nz - 1u) - 1.0);
            v += control[CONTROL_ECHO_TURN] * (2.0 * f32(py) / f32(params.ny - 1u) - 1.0);
        }
        v += select(0.0, control[CONTROL_ECHO_MEAN], c + 1u == evolving);
        v = (1.0 - weight) * v + weight * control[CONTROL_STRATEGIC + c - content];
    }
    return saturation * tectum_tanh(v / saturation);
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let lane = local.x;
    let content = 3u * params.channels / 4u - 16u;
    let evolving = params.channels - 16u;
    for (var row = group.x; row < params.planes * params.ny; row += groups.x) {
        let px = params.first + row / params.ny;
        let py = row % params.ny;
        if lane < WAVES {
            let first = lane * (params.nx + params.ny + params.nz);
            let phase = vec2<f32>(number(LIVE_PHASES + 2u * lane), number(LIVE_PHASES + 2u * lane + 1u));
            let a = vec2<f32>(tables[2u * (first + px)], tables[2u * (first + px) + 1u]);
            let b = vec2<f32>(tables[2u * (first + params.nx + py)], tables[2u * (first + params.nx + py) + 1u]);
            let ab = vec2<f32>(a.x * b.y + a.y * b.x, a.y * b.y - a.x * b.x);
            waves_of_row[lane] = vec2<f32>(phase.x * ab.y + phase.y * ab.x, phase.y * ab.y - phase.x * ab.x);
        }
        workgroupBarrier();
        if lane < params.nz {
            prepare(px, py, lane, row);
        }
        workgroupBarrier();

        var sum = 0.0;
        var size = 0.0;
        var square = 0.0;
        var first = 0.0;
        var last = 0.0;
        var temporal = 0.0;
        for (var i = 2u * lane; i < params.nz * evolving; i += 512u) {
            let pz = i / evolving;
            let c = i % evolving;
            let at = ((halo() * params.ny + row) * params.nz + pz) * params.channels + c;
            let v = keep(at, vec2<f32>(next(row, px, py, pz, c), next(row, px, py, pz, c + 1u)));
            if c < content {
                let both = v.x + v.y;
                sum += both;
                size += abs(v.x) + abs(v.y);
                square += v.x * v.x + v.y * v.y;
                first += select(0.0, both, pz == 0u);
                last += select(0.0, both, pz + 1u == params.nz);
            } else {
                temporal += abs(v.x) + abs(v.y);
            }
        }
        let sums = array<f32, 6>(
            tectum_tree_sum(lane, sum), tectum_tree_sum(lane, size), tectum_tree_sum(lane, square),
            tectum_tree_sum(lane, first), tectum_tree_sum(lane, last), tectum_tree_sum(lane, temporal),
        );
        if lane == 0u {
            for (var i = 0u; i < 6u; i++) {
                rows[row * ROW_WORDS + i] = sums[i];
            }
            rows[row * ROW_WORDS + 6u] = 0.0;
            rows[row * ROW_WORDS + 7u] = 0.0;
        }

        // Sums over the cells of each site in this row: this group wrote them, and sees them after the barrier.
        storageBarrier();
        let blocks = params.nz / params.block;
        for (var i = lane; i < blocks * content; i += 256u) {
            var total = 0.0;
            for (var pz = i / content * params.block; pz < (i / content + 1u) * params.block; pz++) {
                total += kept(((halo() * params.ny + row) * params.nz + pz) * params.channels + i % content);
            }
            pooled[row * blocks * content + i] = total;
        }
        workgroupBarrier();
    }
}
