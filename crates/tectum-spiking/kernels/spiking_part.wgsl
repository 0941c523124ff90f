// What kernels that walk rows share: a launch covers several parts of the targets, and each has an equal share of its workgroups.
// starts: for each part [neurons + 1] the starts of its rows, relative to the part's first synapse; parts begin at multiples of 64 synapses.
struct Part {
    index: u32,
    // The workgroup within the part, and the number of those.
    group: u32,
    groups: u32,
    // Where its starts begin, and its synapses.
    rows: u32,
    synapses: u32,
}

fn part_of(group: u32, groups: u32) -> Part {
    let rows = params.neurons + 1u;
    let share = groups / params.parts;
    let index = group / share;
    var synapses = 0u;
    for (var earlier = 1u; earlier <= index; earlier++) {
        synapses += (starts[earlier * rows - 1u] + 63u) / 64u * 64u;
    }
    return Part(index, group % share, share, index * rows, synapses);
}

