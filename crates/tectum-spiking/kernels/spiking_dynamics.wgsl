// A burst of each neuron in which something arrived: the rule of docs/spiking.md.
// in: clock [1] the first burst of the submission; runs [run_count][2]: the end of a range of neurons, ascending, and their profile; profiles
// [12 each].
// in and out, of each part: sums [len] with, if tracked, a bit for each neuron in which something arrived [len / 32]; state
// [planes][len]: potential, then last, ready, consecutive if planes is 4. Of the whole: fired: [0] firings in the list, [1]
// spikes of the run, [2] and [3] their marks, from list_at the list of [neuron, psp], from bits_at a bit for each neuron.
// One invocation takes a neuron; a workgroup adds its firings to the list at once. Sums are left 0. Exact.
const POTENTIAL_MAX = 1073741823;
const ALWAYS = 0xffffffffu;
const FIXED_PSP = 0xffffffffu;

var<workgroup> firings: atomic<u32>;
var<workgroup> marks: array<atomic<u32>, 2>;
var<workgroup> place: u32;

fn draw(neuron: u32, burst: u32) -> u32 {
    let mixed = (neuron + params.seed) * 2654435761u + burst * 1597334677u;
    let state = mixed * 747796405u + 2891336453u;
    let word = ((state >> ((state >> 28u) + 4u)) ^ state) * 277803737u;
    return (word >> 22u) ^ word;
}

fn scramble(start: u32) -> u32 {
    var x = (start ^ (start >> 16u)) * 0x85ebca6bu;
    x = (x ^ (x >> 13u)) * 0xc2b2ae35u;
    return x ^ (x >> 16u);
}

fn leaked(potential: i32, rest: i32, leak: u32, bursts: u32) -> i32 {
    let above = potential - rest;
    var size = u32(abs(above));
    for (var i = 0u; i < bursts; i++) {
        let taken = (size >> 16u) * leak + (((size & 0xffffu) * leak) >> 16u);
        if taken == 0u {
            break;
        }
        size -= taken;
    }
    return rest + select(i32(size), -i32(size), above < 0);
}

// Where the profile of a neuron begins in profiles.
fn profile_at(neuron: u32) -> u32 {
    var low = 0u;
    var high = params.run_count - 1u;
    while low < high {
        let middle = (low + high) / 2u;
        if neuron < runs[2u * middle] {
            high = middle;
        } else {
            low = middle + 1u;
        }
    }
    return runs[2u * low + 1u] * 12u;
}

// Takes a neuron through the burst, whose state is at i; whether it fires, and the potential with which it does.
fn touch(i: u32, neuron: u32, profile: u32, arrived: i32, burst: u32) -> vec2<i32> {
    let threshold = bitcast<i32>(profiles[profile]);
    let limit = bitcast<i32>(profiles[profile + 1u]);
    let rest = bitcast<i32>(profiles[profile + 2u]);
    let leak = profiles[profile + 3u];
    let chance = profiles[profile + 4u];
    let refractory = profiles[profile + 5u];
    let consecutive_limit = profiles[profile + 6u];
    let snooze = profiles[profile + 7u];
    let accumulates = profiles[profile + 8u] != 0u;

    let limited = consecutive_limit != 0u;
    let whole = params.planes == 4u;
    var potential = bitcast<i32>(state[i]);
    var ready = 0u;
    var consecutive = 0u;
    if whole {
        let last = state[params.len + i];
        ready = state[2u * params.len + i];
        consecutive = state[3u * params.len + i];
        state[params.len + i] = burst;
        if params.skips != 0u {
            if ready > 0u {
                ready -= 1u;
                state[2u * params.len + i] = ready;
                if ready == 0u && limited && consecutive >= consecutive_limit {
                    state[3u * params.len + i] = 0u;
                }
                return vec2(0, 0);
            }
        } else {
            if burst < ready {
                return vec2(0, 0);
            }
            if limited {
                let woke = consecutive >= consecutive_limit && refractory + snooze > 0u;
                if woke || burst > max(last + 1u, ready) {
                    consecutive = 0u;
                }
            }
            if leak != 0u && burst > last + 1u {
                potential = leaked(potential, rest, leak, burst - last - 1u);
            }
        }
    }

    potential = clamp(select(rest, potential, accumulates) + arrived, -POTENTIAL_MAX, POTENTIAL_MAX);
    let inside = potential >= threshold && potential <= limit;
    var fires = false;
    var kept = potential;
    if inside && limited && consecutive >= consecutive_limit {
        consecutive = 0u;
    } else if inside && (chance == ALWAYS || draw(neuron, burst) < chance) {
        fires = true;
        kept = rest;
        consecutive = min(consecutive + 1u, 65535u);
        let pause = refractory + select(0u, snooze, limited && consecutive >= consecutive_limit);
        ready = select(burst + 1u + pause, pause, params.skips != 0u);
    } else {
        if limited {
            consecutive = 0u;
        }
        kept = leaked(potential, rest, leak, 1u);
    }
    state[i] = bitcast<u32>(select(rest, kept, accumulates));
    if whole {
        state[2u * params.len + i] = ready;
        state[3u * params.len + i] = consecutive;
    }
    return vec2(select(0, 1, fires), potential);
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    if local.x == 0u {
        atomicStore(&firings, 0u);
        atomicStore(&marks[0], 0u);
        atomicStore(&marks[1], 0u);
    }
    workgroupBarrier();
    // Parts are multiples of 256 neurons.
    let part = group.x / (params.len / 256u);
    let first = group.x * 256u - part * params.len;
    let sums_at = part * params.chunk;
    let i = first + local.x;
    let neuron = params.first + group.x * 256u + local.x;
    let burst = clock[0] + params.offset;
    var found = vec2(0, 0);
    var slot = 0u;
    var profile = 0u;
    if group.x * 256u + local.x < params.count {
        let arrived = atomicLoad(&sums[sums_at + i]);
        var is_candidate = arrived != 0;
        if params.tracked != 0u {
            let bits = atomicLoad(&sums[sums_at + params.len + i / 32u]);
            is_candidate = (bitcast<u32>(bits) & (1u << (i % 32u))) != 0u;
        }
        if is_candidate {
            profile = profile_at(neuron);
            found = touch(part * params.planes * params.len + i, neuron, profile, arrived, burst);
            atomicStore(&sums[sums_at + i], 0);
        }
        if found.x != 0 {
            slot = atomicAdd(&firings, 1u);
            let mark = scramble(neuron ^ scramble(burst ^ 0x9e3779b9u));
            atomicAdd(&marks[0], mark);
            atomicAdd(&marks[1], scramble(mark ^ (neuron * 0x85ebca6bu) ^ 0x27d4eb2fu));
            atomicOr(&fired[params.bits_at + (params.base + group.x * 256u + local.x) / 32u], 1u << (i % 32u));
        }
    }
    workgroupBarrier();
    if local.x == 0u {
        let count = atomicLoad(&firings);
        place = 0u;
        if count > 0u {
            place = atomicAdd(&fired[0], count);
            atomicAdd(&fired[1], count);
            atomicAdd(&fired[2], atomicLoad(&marks[0]));
            atomicAdd(&fired[3], atomicLoad(&marks[1]));
        }
    }
    workgroupBarrier();
    if found.x != 0 {
        var psp = FIXED_PSP;
        if profiles[profile + 9u] != 0u {
            let places = 16u - profiles[profile + 10u];
            let half = (1 << places) >> 1u;
            psp = u32(clamp((found.y + half) >> places, 0, 255));
        }
        let at = params.list_at + 2u * (place + slot);
        atomicStore(&fired[at], neuron);
        atomicStore(&fired[at + 1u], psp);
    }
    // The bits of arrivals go once every neuron of the word has been asked; 256 neurons have whole words to themselves.
    if params.tracked != 0u && local.x < 8u {
        atomicStore(&sums[sums_at + params.len + first / 32u + local.x], 0);
    }
}
