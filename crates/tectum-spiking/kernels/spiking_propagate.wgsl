// sums[target] += weight · unit for each synapse of each neuron that fired, by the unit and the rounding of spiking_firing.
// in: fired, see spiking_dynamics; starts, see spiking_part; words: target within its part · inhibitory · weight in 23, 1 and 8
// bits; senders [neurons] units or shares, shifts. in and out: sums of these parts [chunk each], totals [64]: words 0 and 1 count synapses.
// A workgroup walks every stride-th slice of a row, neighbouring invocations neighbouring synapses; long rows are cut into slices
// so that no workgroup is left with one alone. Integers, so the order of the atomics does not matter. Exact.
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let part = part_of(group.x, groups.x);
    let sums_at = part.index * params.chunk;
    let first_target = params.first + part.index * params.len;
    let count = fired[0] * params.slices;
    for (var item = part.group; item < count; item += part.groups) {
        let entry = item / params.slices;
        let slice = item % params.slices;
        let firing = firing_of(entry);
        let neuron = firing.neuron;
        let begin = starts[part.rows + neuron];
        let end = starts[part.rows + neuron + 1u];
        if local.x == 0u && slice == 0u {
            count_events(end - begin);
        }
        for (var synapse = begin + 64u * slice + local.x; synapse < end; synapse += 64u * params.slices) {
            let word = words[part.synapses + synapse];
            let target_index = word >> 9u;
            var amount = (word & 0xffu) * firing.unit;
            if params.shift != 0u {
                amount = rounded(amount, first_target + target_index);
            }
            let size = bitcast<i32>(amount);
            atomicAdd(&sums[sums_at + target_index], select(size, -size, (word & 0x100u) != 0u));
            if params.tracked != 0u {
                atomicOr(&sums[sums_at + params.len + target_index / 32u], bitcast<i32>(1u << (target_index % 32u)));
            }
        }
    }
}
