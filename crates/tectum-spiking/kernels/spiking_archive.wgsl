// Takes the firings of the burst before into the ledger, and into the histories that learning reads.
// in: clock [1] the first burst of the submission; fired, see spiking_dynamics; rules [4 each] window, gain, loss, 0.
// in and out: ledger [depth][words] a bit for each neuron, burst b in row b mod depth; histories [rules][neurons][4]: last, run,
// active, before, see learning.rs.
// One invocation takes a firing through every rule; the row of the burst to come is emptied. Exact.
const NO_SPIKE_BEFORE = 0xffffffffu;
const NEVER = 0xfffffbffu;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    let burst = clock[0] + params.offset - 1u;
    let next = (burst + 1u) % params.depth * params.words;
    for (var word = id.x; word < params.words; word += stride) {
        atomicStore(&ledger[next + word], 0u);
    }
    let row = burst % params.depth * params.words;
    for (var entry = id.x; entry < fired[0]; entry += stride) {
        let neuron = fired[params.list_at + 2u * entry];
        atomicOr(&ledger[row + neuron / 32u], 1u << (neuron % 32u));
        for (var rule = 0u; rule < params.rule_count; rule++) {
            let at = 4u * (rule * params.neurons + neuron);
            let last = histories[at];
            let gap = burst - last;
            let run = select(1u, histories[at + 1u] + 1u, gap == 1u);
            let active_bursts = histories[at + 2u] + min(gap, rules[4u * rule]);
            histories[at + 3u] = select(last, NEVER, histories[at + 3u] == NO_SPIKE_BEFORE);
            histories[at] = burst;
            histories[at + 1u] = run;
            histories[at + 2u] = active_bursts;
        }
    }
}
