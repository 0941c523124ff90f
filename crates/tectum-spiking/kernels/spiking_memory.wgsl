// Looks what patterns the memories see, and fires the neuron that keeps each.
// in: clock [1] the first burst of the submission; ledger, see spiking_archive; table [12 each] first neuron, neurons, depth,
// initial lifespan, growth, long-term threshold, place in kept, place and number of upstream ranges in table, 3 unused; behind
// them the ranges [2 each].
// in and out: kept, of each memory: [4] the neuron that took a pattern in this burst less its first, plus 1, patterns formed,
// patterns lost, unused; of each of its neurons [4]: lifespan, 1 if it is permanent, both sums of its pattern. fired, see
// spiking_dynamics.
// A workgroup takes a memory; integers, so the order of the atomics does not matter. Exact.
const FIXED_PSP = 0xffffffffu;
const NONE = 0xffffffffu;

var<workgroup> seen: atomic<u32>;
var<workgroup> sums: array<atomic<u32>, 2>;
var<workgroup> known: atomic<u32>;
var<workgroup> free: atomic<u32>;

fn scramble(start: u32) -> u32 {
    var x = (start ^ (start >> 16u)) * 0x85ebca6bu;
    x = (x ^ (x >> 13u)) * 0xc2b2ae35u;
    return x ^ (x >> 16u);
}

fn marks(neuron: u32, burst: u32) -> vec2<u32> {
    let first = scramble(neuron ^ scramble(burst ^ 0x9e3779b9u));
    return vec2(first, scramble(first ^ (neuron * 0x85ebca6bu) ^ 0x27d4eb2fu));
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>) {
    let entry = 12u * group.x;
    let first = table[entry];
    let neurons = table[entry + 1u];
    let header = table[entry + 6u];
    let slots = header + 4u;
    let burst = clock[0] + params.offset;
    if local.x == 0u {
        atomicStore(&seen, 0u);
        atomicStore(&sums[0], 0u);
        atomicStore(&sums[1], 0u);
        atomicStore(&known, NONE);
        atomicStore(&free, NONE);
    }
    workgroupBarrier();

    // What fired, and how many bursts ago; bursts before the first are empty rows.
    let depth = min(table[entry + 2u], burst - 1u);
    for (var range = 0u; range < table[entry + 8u]; range++) {
        let begin = table[table[entry + 7u] + 2u * range];
        let end = table[table[entry + 7u] + 2u * range + 1u];
        let words = (end - 1u) / 32u - begin / 32u + 1u;
        for (var i = local.x; i < depth * words; i += 256u) {
            let age = i / words;
            let word = begin / 32u + i % words;
            var bits = ledger[(burst - 1u - age) % params.depth * params.words + word];
            while bits != 0u {
                let neuron = 32u * word + firstTrailingBit(bits);
                bits &= bits - 1u;
                if neuron >= begin && neuron < end {
                    let mark = marks(neuron, age);
                    atomicAdd(&seen, 1u);
                    atomicAdd(&sums[0], mark.x);
                    atomicAdd(&sums[1], mark.y);
                }
            }
        }
    }
    workgroupBarrier();

    let is_seen = atomicLoad(&seen) != 0u;
    let pattern = vec2(atomicLoad(&sums[0]), atomicLoad(&sums[1]));
    for (var i = local.x; i < neurons; i += 256u) {
        let slot = slots + 4u * i;
        var life = kept[slot];
        if life != 0u && kept[slot + 1u] == 0u {
            if life >= table[entry + 5u] {
                kept[slot + 1u] = 1u;
            } else {
                life -= 1u;
                kept[slot] = life;
            }
        }
        if life == 0u {
            atomicMin(&free, i);
        } else if kept[slot + 2u] == pattern.x && kept[slot + 3u] == pattern.y {
            atomicMin(&known, i);
        }
    }
    storageBarrier();
    workgroupBarrier();

    if local.x == 0u {
        var chosen = atomicLoad(&known);
        kept[header] = 0u;
        if is_seen && chosen != NONE {
            let slot = slots + 4u * chosen;
            if kept[slot + 1u] == 0u {
                let life = kept[slot] + table[entry + 4u];
                kept[slot] = select(life, 0xffffffffu, life < kept[slot]);
            }
        } else if is_seen && atomicLoad(&free) != NONE {
            chosen = atomicLoad(&free);
            let slot = slots + 4u * chosen;
            kept[slot] = table[entry + 3u];
            kept[slot + 1u] = 0u;
            kept[slot + 2u] = pattern.x;
            kept[slot + 3u] = pattern.y;
            kept[header] = chosen + 1u;
            kept[header + 1u] += 1u;
        } else if is_seen {
            kept[header + 2u] += 1u;
        }
        let neuron = first + chosen;
        if is_seen && chosen != NONE && neuron >= params.first && neuron < params.end {
            let place = params.list_at + 2u * atomicAdd(&fired[0], 1u);
            atomicStore(&fired[place], neuron);
            atomicStore(&fired[place + 1u], FIXED_PSP);
            let mark = marks(neuron, burst);
            atomicAdd(&fired[1], 1u);
            atomicAdd(&fired[2], mark.x);
            atomicAdd(&fired[3], mark.y);
            let i = neuron - params.first;
            atomicOr(&fired[params.bits_at + i / 32u], 1u << (i % 32u));
        }
    }
}
