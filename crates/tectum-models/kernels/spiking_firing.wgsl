// A firing of the list: the neuron, and the unit by which it multiplies weights: the sender's own, or
// ⌊(psp · 2^fraction_bits + ⌊share/2⌋) / share⌋ where the firing has a psp.
const STATIC = 0xffffffffu;

struct Firing {
    neuron: u32,
    unit: u32,
}

fn firing_of(entry: u32) -> Firing {
    let neuron = fired[params.list_at + 2u * entry];
    let psp = fired[params.list_at + 2u * entry + 1u];
    var unit = senders[neuron];
    if psp != STATIC {
        unit = ((psp << params.fraction_bits) + unit / 2u) / unit;
    }
    return Firing(neuron, unit);
}

