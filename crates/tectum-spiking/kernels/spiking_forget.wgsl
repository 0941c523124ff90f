// Where a memory's neuron took a pattern in this burst, its plastic synapses of one rule are reset, and what it fired before no
// longer counts.
// in: clock [1] the first burst of the submission; table and kept, see spiking_memory; starts, see spiking_part; weights,
// from weights_at on part by part those that the synapses of the neurons from first_kept to last_kept had at first.
// in and out: histories, see spiking_archive; synapses, see spiking_learn.
// One invocation takes every stride-th synapse of a part. Exact.
const NO_SPIKE_BEFORE = 0xffffffffu;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(group.x, groups.x);
    let first = params.first + part.index * params.len;
    let end_target = min(first + params.len, params.end);
    var weights_at = params.weights_at;
    for (var earlier = 0u; earlier < part.index; earlier++) {
        let rows = earlier * (params.neurons + 1u);
        weights_at += starts[rows + params.last_kept] - starts[rows + params.first_kept];
    }
    let stride = part.groups * 256u;
    let burst = clock[0] + params.offset;
    let first_history = params.rule * params.neurons;
    for (var memory = 0u; memory < params.memories; memory++) {
        let taken = kept[table[12u * memory + 6u]];
        if taken == 0u {
            continue;
        }
        let neuron = table[12u * memory] + taken - 1u;
        let row_weights = weights_at - starts[part.rows + params.first_kept];
        let row_begin = starts[part.rows + neuron];
        let row_end = starts[part.rows + neuron + 1u];
        // Those that end at it begin with 0; they may be anywhere, and each synapse is one invocation's, whatever the memory.
        let is_reached = params.are_reached != 0u && neuron >= first && neuron < end_target;
        let end = select(row_end, starts[part.rows + params.neurons], params.are_reached != 0u);
        for (var synapse = select(row_begin, 0u, params.are_reached != 0u) + part.group * 256u + local.x; synapse < end; synapse += stride) {
            let at = 2u * (part.synapses + synapse);
            let word = synapses[at];
            if synapse >= row_begin && synapse < row_end {
                let target_history = 4u * (first_history + first + (word >> 9u));
                let active_bursts = histories[target_history + 2u] + min(burst - 1u - histories[target_history], params.window - 1u);
                synapses[at] = (word & 0xffffff00u) | weights[row_weights + synapse];
                synapses[at + 1u] = active_bursts;
            } else if is_reached && word >> 9u == neuron - first {
                synapses[at] = word & 0xffffff00u;
            }
        }
        if params.is_first != 0u && group.x == 0u && local.x == 0u {
            let at = 4u * (first_history + neuron);
            histories[at + 1u] = 0u;
            histories[at + 3u] = NO_SPIKE_BEFORE;
        }
    }
}
