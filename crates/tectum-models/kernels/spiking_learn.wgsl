// Brings the plastic synapses of what fired in the burst before up to date, by one rule, and sends through them:
// sums[target] += weight · unit for each whose weight is not 0.
// in: clock [1] the first burst of the submission; fired, see spiking_dynamics; starts [neurons + 1] of rows in synapses;
// histories, see spiking_archive; senders, see spiking_propagate.
// in and out: synapses [2 each] word as in spiking_propagate, and the active bursts of its target when its source's window last
// closed; sums of this part; totals [64]: word 0 counts synapses that sent.
// A workgroup walks every stride-th slice of a row, as in spiking_propagate. Exact.
const STATIC = 0xffffffffu;

fn less(weight: u32, bursts: u32) -> u32 {
    return weight - min(weight, min(bursts, 255u) * params.loss);
}

fn active_until(history: u32, burst: u32) -> u32 {
    let last = histories[history];
    if last == 0u {
        return 0u;
    }
    if burst < last {
        return histories[history + 2u] - 1u;
    }
    return histories[history + 2u] + min(burst - last, params.window - 1u);
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let burst = clock[0] + params.offset - 1u;
    let first_history = params.rule * params.neurons;
    let count = fired[0] * params.slices;
    var events = 0u;
    for (var item = group.x; item < count; item += groups.x) {
        let entry = item / params.slices;
        let slice = item % params.slices;
        let neuron = fired[params.list_at + 2u * entry];
        let psp = fired[params.list_at + 2u * entry + 1u];
        var unit = senders[neuron];
        if psp != STATIC {
            unit = ((psp << params.fraction_bits) + unit / 2u) / unit;
        }
        let source = 4u * (first_history + neuron);
        let is_together = histories[source + 1u] >= params.window;
        let before = histories[source + 3u];
        let is_open = before != 0u && burst - before < params.window;
        let end = starts[neuron + 1u];
        for (var synapse = starts[neuron] + 64u * slice + local.x; synapse < end; synapse += 64u * params.slices) {
            let word = synapses[2u * synapse];
            let target_index = word >> 9u;
            let target_history = 4u * (first_history + params.first + target_index);
            var lost = burst - before - 1u;
            if !is_open {
                lost = active_until(target_history, burst - 1u) - synapses[2u * synapse + 1u];
            }
            var weight = less(word & 0xffu, lost);
            if is_together && histories[target_history] == burst && histories[target_history + 1u] >= params.window {
                weight = min(weight + params.gain, 255u);
            } else {
                weight = less(weight, 1u);
            }
            synapses[2u * synapse] = (word & 0xffffff00u) | weight;
            if params.window == 1u {
                synapses[2u * synapse + 1u] = active_until(target_history, burst);
            }
            if weight != 0u {
                events += 1u;
                let size = bitcast<i32>(weight * unit);
                atomicAdd(&sums[target_index], select(size, -size, (word & 0x100u) != 0u));
                if params.tracked != 0u {
                    atomicOr(&sums[params.len + target_index / 32u], bitcast<i32>(1u << (target_index % 32u)));
                }
            }
        }
    }
    if events != 0u {
        atomicAdd(&totals[0], events);
    }
}
