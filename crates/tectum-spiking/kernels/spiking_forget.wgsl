// Where a memory's neuron took a pattern in this burst, its plastic synapses of one rule begin anew, and what it fired before no
// longer counts.
// in: clock [1] the first burst of the submission; table and kept, see spiking_memory; starts [neurons + 1] of rows; weights, at
// weights_at those that the synapses of the neurons from first_kept on had at first.
// in and out: histories, see spiking_archive; synapses, see spiking_learn.
// One invocation takes every stride-th synapse. Exact.
const NO_SPIKE_BEFORE = 0xffffffffu;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    let burst = clock[0] + params.offset;
    let first_history = params.rule * params.neurons;
    for (var memory = 0u; memory < params.memories; memory++) {
        let taken = kept[table[12u * memory + 6u]];
        if taken == 0u {
            continue;
        }
        let neuron = table[12u * memory] + taken - 1u;
        let row_weights = params.weights_at - starts[params.first_kept];
        let row_begin = starts[neuron];
        let row_end = starts[neuron + 1u];
        // Those that end at it begin with 0; they may be anywhere, and each synapse is one invocation's, whatever the memory.
        let is_reached = params.are_reached != 0u && neuron >= params.first && neuron < params.end;
        let end = select(row_end, starts[params.neurons], params.are_reached != 0u);
        for (var synapse = select(row_begin, 0u, params.are_reached != 0u) + id.x; synapse < end; synapse += stride) {
            let word = synapses[2u * synapse];
            if synapse >= row_begin && synapse < row_end {
                let target_history = 4u * (first_history + params.first + (word >> 9u));
                let active_bursts = histories[target_history + 2u] + min(burst - 1u - histories[target_history], params.window - 1u);
                synapses[2u * synapse] = (word & 0xffffff00u) | weights[row_weights + synapse];
                synapses[2u * synapse + 1u] = active_bursts;
            } else if is_reached && word >> 9u == neuron - params.first {
                synapses[2u * synapse] = word & 0xffffff00u;
            }
        }
        if params.is_first != 0u && id.x == 0u {
            let at = 4u * (first_history + neuron);
            histories[at + 1u] = 0u;
            histories[at + 3u] = NO_SPIKE_BEFORE;
        }
    }
}
