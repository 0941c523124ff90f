// Brings the plastic synapses of what fired in the burst before up to date, by one rule, and sends through them:
// sums[target] += weight · unit for each whose weight is not 0.
// in: clock [1] the first burst of the submission; fired, see spiking_dynamics; starts, see spiking_part;
// histories, see spiking_archive; senders, see spiking_propagate.
// in and out: synapses [2 each] word as in spiking_propagate, and the active bursts of its target when its source's window last
// closed; sums of these parts [chunk each]; totals [64]: words 0 and 1 count synapses that sent.
// params.steady: a weight loses only at a firing that completes a window of its source, see learning.rs.
// A workgroup walks every stride-th slice of a row, as in spiking_propagate. Exact.

fn less(weight: u32, bursts: u32, loss: u32) -> u32 {
    return weight - min(weight, min(bursts, 255u) * loss);
}

// NEVER is so far off, counted round, that its window has always closed.
fn active_until(history: u32, burst: u32) -> u32 {
    let gap = burst - histories[history];
    return histories[history + 2u] + select(min(gap, params.window - 1u), gap, gap == 0xffffffffu);
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let burst = clock[0] + params.offset - 1u;
    let first_history = params.rule * params.neurons;
    let part = part_of(group.x, groups.x);
    let sums_at = part.index * params.chunk;
    let first_target = first_history + params.first + part.index * params.len;
    let count = fired[0] * params.slices;
    var events = 0u;
    for (var item = part.group; item < count; item += part.groups) {
        let entry = item / params.slices;
        let slice = item % params.slices;
        let firing = firing_of(entry);
        let neuron = firing.neuron;
        let source = 4u * (first_history + neuron);
        let is_together = histories[source + 1u] >= params.window;
        let gap = burst - histories[source + 3u];
        let is_steady = params.steady != 0u;
        let loss = select(params.loss, 0u, is_steady && !is_together);
        let end = part.synapses + starts[part.rows + neuron + 1u];
        let begin = part.synapses + starts[part.rows + neuron];
        for (var synapse = begin + 64u * slice + local.x; synapse < end; synapse += 64u * params.slices) {
            let word = synapses[2u * synapse];
            let target_index = word >> 9u;
            let target_history = 4u * (first_target + target_index);
            var lost = max(gap, 1u) - 1u;
            if is_steady {
                lost = 0u;
            } else if gap >= params.window {
                lost = active_until(target_history, burst - 1u) - synapses[2u * synapse + 1u];
            }
            var weight = less(word & 0xffu, lost, loss);
            if is_together && histories[target_history] == burst && histories[target_history + 1u] >= params.window {
                weight = min(weight + params.gain, 255u);
            } else {
                weight = less(weight, 1u, loss);
            }
            synapses[2u * synapse] = (word & 0xffffff00u) | weight;
            if params.window == 1u {
                synapses[2u * synapse + 1u] = active_until(target_history, burst);
            }
            if weight != 0u {
                events += 1u;
                var amount = weight * firing.unit;
                if params.shift != 0u {
                    amount = rounded(amount, params.first + part.index * params.len + target_index);
                }
                let size = bitcast<i32>(amount);
                atomicAdd(&sums[sums_at + target_index], select(size, -size, (word & 0x100u) != 0u));
                if params.tracked != 0u {
                    atomicOr(&sums[sums_at + params.len + target_index / 32u], bitcast<i32>(1u << (target_index % 32u)));
                }
            }
        }
    }
    if events != 0u {
        count_events(events);
    }
}
