// What the library recalls and takes up: step 0 of docs/field.md.
// in: live; descriptor [64][content] mean content of the regions. in and out: products [patterns + 20], made into scores; library
// [patterns + 20][8][content]; traits [patterns + 20][4]; memory. out: pull [64][content], T by region.
// One workgroup; lane i has patterns i, i + 256, … and numbers i, i + 256, … of each. Of equal scores, the lowest
// number is the greatest: the order of lanes does not matter.
// Tolerance: 1e-5 of the size of each number. Source: docs/field.md.
const LEAST = -1e30;

var<workgroup> best_scores: array<f32, 256>;
var<workgroup> best_rows: array<u32, 256>;
var<workgroup> top_rows: array<u32, 8>;
var<workgroup> top_scores: array<f32, 8>;
var<workgroup> weights: array<f32, 8>;
var<workgroup> attractions: array<f32, 32>;

fn number(at: u32) -> f32 {
    return bitcast<f32>(live[at]);
}

// The row of the greatest score over all lanes, and the score.
fn best(lane: u32, score: f32, row: u32) -> vec2<f32> {
    best_scores[lane] = score;
    best_rows[lane] = row;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if lane < half {
            let other = best_scores[lane + half];
            if other > best_scores[lane] || (other == best_scores[lane] && best_rows[lane + half] < best_rows[lane]) {
                best_scores[lane] = other;
                best_rows[lane] = best_rows[lane + half];
            }
        }
        workgroupBarrier();
    }
    let found = vec2<f32>(f32(best_rows[0]), best_scores[0]);
    workgroupBarrier();
    return found;
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_id) local: vec3<u32>) {
    let lane = local.x;
    let content = params.content;
    let width = OCTANTS * content;
    let reward = clamp(number(LIVE_REWARD), -1.0, 1.0);

    // The length of the present pattern.
    var square = 0.0;
    for (var i = lane; i < width; i += 256u) {
        let v = field_octant(i);
        square += v * v;
    }
    let length = sqrt(tectum_tree_sum(lane, square));

    // Cosines, scores and values.
    var near = vec2<f32>(LEAST, 0.0);
    var near_row = lane;
    var poor = LEAST;
    var poor_row = lane;
    var count = 0.0;
    for (var row = lane; row < params.patterns; row += 256u) {
        let own = traits[row * TRAIT_WORDS];
        let recency = tectum_exp(-traits[row * TRAIT_WORDS + 1u] / 500.0);
        var score = LEAST;
        var value = -1.0;
        if own > 0.0 {
            let cosine = products[row] / (own * length + 1e-6);
            score = cosine * recency;
            value = (0.5 + 0.5 * traits[row * TRAIT_WORDS + 3u]) * (recency + traits[row * TRAIT_WORDS + 2u]);
            count += 1.0;
            if cosine > near.x {
                near.x = cosine;
                near_row = row;
            }
        }
        products[row] = score;
        if -value > poor {
            poor = -value;
            poor_row = row;
        }
    }
    let nearest = best(lane, near.x, near_row);
    let cheapest = best(lane, poor, poor_row);
    let before = tectum_tree_sum(lane, count);
    let is_new = length > 1e-6 && nearest.y < number(LIVE_FAMILIAR);

    // The greatest scores in order: each time the first one after the one before.
    var last = vec2<f32>(0.0, 1e30);
    for (var rank = 0u; rank < TOP; rank++) {
        var score = LEAST;
        var found = lane;
        for (var row = lane; row < params.patterns; row += 256u) {
            let other = products[row];
            let is_after = other < last.y || (other == last.y && row > u32(last.x));
            if is_after && other > score {
                score = other;
                found = row;
            }
        }
        last = best(lane, score, found);
        if lane == 0u {
            top_rows[rank] = u32(last.x);
            top_scores[rank] = last.y;
        }
    }
    workgroupBarrier();
    if lane < TOP {
        var sum = 0.0;
        for (var rank = 0u; rank < TOP; rank++) {
            sum += select(0.0, tectum_exp(5.0 * (top_scores[rank] - top_scores[0])), top_scores[rank] > LEAST);
        }
        let own = select(0.0, tectum_exp(5.0 * (top_scores[lane] - top_scores[0])), top_scores[lane] > LEAST);
        weights[lane] = own / max(sum, 1.0);
    }
    let strength = number(LIVE_RECALL) * max(0.0, top_scores[0]);

    // Attractors: how each pulls, which rewarding one is strongest, and which is weakest.
    var attraction = 0.0;
    var good = LEAST;
    var weak = LEAST;
    let own_row = params.patterns + min(lane, ATTRACTORS - 1u);
    let own_traits = own_row * TRAIT_WORDS;
    let own_strength = traits[own_traits + 1u];
    let own_sign = traits[own_traits + 3u];
    if lane < ATTRACTORS {
        weak = 1.0;
        if traits[own_traits] > 0.0 {
            let cosine = products[own_row] / (traits[own_traits] * length + 1e-6);
            attraction = number(LIVE_ATTRACTION) * own_strength * own_sign * 0.5 * (1.0 + cosine);
            weak = -own_strength;
            good = select(LEAST, own_strength, own_sign > 0.0);
        }
    }
    if lane < 32u {
        attractions[lane] = attraction;
    }
    let leading = best(lane, good, lane);
    let weakest = best(lane, weak, lane);
    var rate = strength;
    for (var i = 0u; i < ATTRACTORS; i++) {
        rate += attractions[i];
    }

    // The strategic pattern: the content of the leading attractor, folded into the temporal channels.
    let temporal = params.channels / 4u;
    let leads = leading.y > 0.0;
    var folded = 0.0;
    if leads && lane < temporal {
        var sum = 0.0;
        var parts = 0.0;
        for (var c = lane; c < content; c += temporal) {
            for (var octant = 0u; octant < OCTANTS; octant++) {
                sum += library[((params.patterns + u32(leading.x)) * OCTANTS + octant) * content + c];
                parts += 1.0;
            }
        }
        folded = tectum_tanh(sum / parts);
    }
    let mean = tectum_tree_sum(lane, folded) / f32(temporal);
    if lane < temporal {
        memory[MEMORY_STRATEGIC + lane] = folded;
    }

    // T.
    for (var i = lane; i < width; i += 256u) {
        var recalled = 0.0;
        for (var rank = 0u; rank < TOP; rank++) {
            if weights[rank] > 0.0 {
                recalled += weights[rank] * library[top_rows[rank] * width + i];
            }
        }
        recalled *= strength;
        for (var j = 0u; j < ATTRACTORS; j++) {
            if attractions[j] != 0.0 {
                recalled += attractions[j] * library[(params.patterns + j) * width + i];
            }
        }
        for (var j = 0u; j < 8u; j++) {
            pull[field_region(i / content, j) * content + i % content] = recalled;
        }
    }

    // Traits of the next cycle. No lane writes a row of the library that another still reads.
    workgroupBarrier();
    storageBarrier();
    let target_row = u32(cheapest.x);
    for (var row = lane; row < params.patterns; row += 256u) {
        let at = row * TRAIT_WORDS;
        if is_new && row == target_row {
            traits[at] = length;
            traits[at + 1u] = 0.0;
            traits[at + 2u] = 0.0;
            traits[at + 3u] = reward;
        } else if traits[at] > 0.0 {
            var weight = 0.0;
            for (var rank = 0u; rank < TOP; rank++) {
                weight += select(0.0, weights[rank], top_rows[rank] == row && top_scores[rank] > LEAST);
            }
            let is_met = !is_new && row == u32(nearest.x);
            traits[at + 1u] = select(min(traits[at + 1u] + 1.0, 1e6), 0.0, is_met);
            traits[at + 2u] = 0.999 * traits[at + 2u] + 0.001 * weight;
            traits[at + 3u] += 0.1 * weight * (reward - traits[at + 3u]);
        }
    }
    let attracts = length > 1e-6 && abs(reward) > 0.1;
    if lane < ATTRACTORS {
        let left = 0.95 * own_strength;
        traits[own_traits + 1u] = select(left, 0.0, left < 1e-6);
        if attracts && lane == u32(weakest.x) {
            traits[own_traits] = length;
            traits[own_traits + 1u] = abs(reward);
            traits[own_traits + 3u] = select(-1.0, 1.0, reward > 0.0);
        }
    }
    for (var i = lane; i < width; i += 256u) {
        if is_new {
            library[target_row * width + i] = field_octant(i);
        }
        if attracts {
            library[(params.patterns + u32(weakest.x)) * width + i] = field_octant(i);
        }
    }
    if lane < TOP {
        let is_one = top_scores[lane] > LEAST;
        memory[MEMORY_TOP + lane] = select(-1.0, f32(top_rows[lane]), is_one);
        memory[MEMORY_SCORES + lane] = select(0.0, top_scores[lane], is_one);
    }
    if lane == 0u {
        let is_first = is_new && cheapest.y > 0.5;
        memory[MEMORY_SIMILARITY] = max(0.0, nearest.y);
        memory[MEMORY_PULL] = rate;
        memory[MEMORY_STRATEGIC_WEIGHT] = select(0.0, number(LIVE_STRATEGY) * leading.y, leads);
        memory[MEMORY_STRATEGIC_DRIVE] = select(0.0, leading.y * tectum_tanh(mean), leads);
        memory[MEMORY_NEAREST] = select(-1.0, nearest.x, nearest.y > LEAST);
        memory[MEMORY_STORED] = select(-1.0, cheapest.x, is_new);
        memory[MEMORY_ATTRACTOR] = select(-1.0, weakest.x, attracts);
        memory[MEMORY_KEPT] = before + select(0.0, 1.0, is_first);
    }
}
