// Brings the plastic synapses whose source's window closed with the burst before up to date, by one rule: those of what fired
// window − 1 bursts before that and not since.
// in: clock [1] the first burst of the submission; ledger and histories, see spiking_archive; starts, see spiking_part.
// in and out: synapses, see spiking_learn.
// A workgroup takes every stride-th word of the ledger's row, its invocations the synapses of each row. Exact.
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let burst = clock[0] + params.offset - 1u;
    if burst < params.window {
        return;
    }
    let closing = burst - (params.window - 1u);
    let row = closing % params.depth * params.words;
    let part = part_of(group.x, groups.x);
    let first_history = params.rule * params.neurons;
    let first_target = first_history + params.first + part.index * params.len;
    for (var word = part.group; word < params.words; word += part.groups) {
        var bits = ledger[row + word];
        while bits != 0u {
            let neuron = 32u * word + firstTrailingBit(bits);
            bits &= bits - 1u;
            if histories[4u * (first_history + neuron)] != closing {
                continue;
            }
            let end = part.synapses + starts[part.rows + neuron + 1u];
            for (var synapse = part.synapses + starts[part.rows + neuron] + local.x; synapse < end; synapse += 64u) {
                let packed = synapses[2u * synapse];
                let weight = packed & 0xffu;
                synapses[2u * synapse] = packed - min(weight, (params.window - 1u) * params.loss);
                let target_history = 4u * (first_target + (packed >> 9u));
                let active_bursts = histories[target_history + 2u] + min(burst - histories[target_history], params.window - 1u);
                synapses[2u * synapse + 1u] = active_bursts;
            }
        }
    }
}
