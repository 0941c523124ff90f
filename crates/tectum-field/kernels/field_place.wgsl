// Where the sensors' pattern is imprinted: step 3 of docs/field.md.
// in: sites [sx·sy·sz][content] mean content. in and out: control; its pattern is read, place, kind and score are written.
// One workgroup strides over the sites. Of equal scores the lowest site wins: the result does not hang on the order of lanes.
// Tolerance of a score: 1e-5. Source: docs/field.md.
var<workgroup> scores: array<f32, 256>;
var<workgroup> places: array<u32, 256>;

// The site of the best score over all lanes, and the score.
fn best(lane: u32, score: f32, site: u32) -> vec2<f32> {
    scores[lane] = score;
    places[lane] = site;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if lane < half {
            let other = scores[lane + half];
            if other > scores[lane] || (other == scores[lane] && places[lane + half] < places[lane]) {
                scores[lane] = other;
                places[lane] = places[lane + half];
            }
        }
        workgroupBarrier();
    }
    let found = vec2<f32>(f32(places[0]), scores[0]);
    workgroupBarrier();
    return found;
}

// Pattern · mean content of a site.
fn product(site: u32) -> f32 {
    var sum = 0.0;
    for (var c = 0u; c < params.content; c++) {
        sum += control[CONTROL_PATTERN + c] * sites[site * params.content + c];
    }
    return sum;
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_id) local: vec3<u32>) {
    let lane = local.x;
    let count = params.sites_x * params.sites_y * params.sites_z;
    var square = 0.0;
    for (var c = 0u; c < params.content; c++) {
        square += control[CONTROL_PATTERN + c] * control[CONTROL_PATTERN + c];
    }
    let length = sqrt(square);

    const LEAST = -1e30;
    var existing = vec2<f32>(LEAST, 0.0);
    var resonant = vec2<f32>(LEAST, 0.0);
    var similar = vec2<f32>(LEAST, 0.0);
    var empty = vec2<f32>(LEAST, 0.0);
    var at = vec4<u32>(lane);
    for (var site = lane; site < count; site += 256u) {
        var energy = 0.0;
        for (var c = 0u; c < params.content; c++) {
            let u = sites[site * params.content + c];
            energy += u * u;
        }
        let cosine = product(site) / (length * sqrt(energy) + 1e-6);
        energy /= f32(params.content);

        let z = site % params.sites_z;
        let y = (site / params.sites_z) % params.sites_y;
        let x = site / (params.sites_z * params.sites_y);
        var resonance = 0.0;
        var neighbours = 0.0;
        for (var i = max(x, 1u) - 1u; i <= min(x + 1u, params.sites_x - 1u); i++) {
            for (var j = max(y, 1u) - 1u; j <= min(y + 1u, params.sites_y - 1u); j++) {
                for (var k = max(z, 1u) - 1u; k <= min(z + 1u, params.sites_z - 1u); k++) {
                    resonance += product((i * params.sites_y + j) * params.sites_z + k);
                    neighbours += 1.0;
                }
            }
        }
        resonance /= neighbours * (length + 1e-6);

        if cosine > 0.9 && energy < 2.0 && cosine > existing.x {
            existing.x = cosine;
            at.x = site;
        }
        if resonance > resonant.x {
            resonant.x = resonance;
            at.y = site;
        }
        if cosine > similar.x {
            similar.x = cosine;
            at.z = site;
        }
        if -energy > empty.x {
            empty.x = -energy;
            at.w = site;
        }
    }
    let known = best(lane, existing.x, at.x);
    let resounding = best(lane, resonant.x, at.y);
    let alike = best(lane, similar.x, at.z);
    let bare = best(lane, empty.x, at.w);
    if lane == 0u {
        var kind = 3.0;
        var found = bare;
        if known.y > 0.9 {
            kind = 0.0;
            found = known;
        } else if resounding.y > 0.3 {
            kind = 1.0;
            found = resounding;
        } else if alike.y > 0.1 {
            kind = 2.0;
            found = alike;
        }
        let site = u32(found.x);
        let half = params.block / 2u;
        control[CONTROL_PLACE] = f32(site / (params.sites_z * params.sites_y) * params.block + half);
        control[CONTROL_PLACE + 1u] = f32((site / params.sites_z) % params.sites_y * params.block + half);
        control[CONTROL_PLACE + 2u] = f32(site % params.sites_z * params.block + half);
        control[CONTROL_PLACE_KIND] = kind;
        control[CONTROL_SCORE] = found.y;
    }
}
