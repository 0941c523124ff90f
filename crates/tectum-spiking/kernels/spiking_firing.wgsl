// What kernels that walk the list of firings share. A firing: the neuron, and the unit by which it multiplies weights: the sender's own, or
// ⌊(psp · 2^fraction_bits + ⌊share/2⌋) / share⌋ where the firing has a psp.
const FIXED_PSP = 0xffffffffu;

struct Firing {
    neuron: u32,
    unit: u32,
}

fn firing_of(entry: u32) -> Firing {
    let neuron = fired[params.list_at + 2u * entry];
    let psp = fired[params.list_at + 2u * entry + 1u];
    var unit = senders[neuron];
    if psp != FIXED_PSP {
        unit = ((psp << params.fraction_bits) + unit / 2u) / unit;
    }
    return Firing(neuron, unit);
}

// Adds to the 64-bit count in words 0 and 1.
fn count_events(events: u32) {
    let before = atomicAdd(&totals[0], events);
    if before + events < before {
        atomicAdd(&totals[1], 1u);
    }
}

