// What kernels that walk the list of firings share. A firing: the neuron, and the unit by which it multiplies weights: the sender's own, or
// ⌊(psp · 2^16 + ⌊share/2⌋) / share⌋ where the firing has a psp. Units have 16 binary places; a target has params.shift less, or, if that
// is OWN_SHIFTS, as many less as its byte after the units in senders says.
const FIXED_PSP = 0xffffffffu;
const OWN_SHIFTS = 32u;

struct Firing {
    neuron: u32,
    unit: u32,
}

fn firing_of(entry: u32) -> Firing {
    let neuron = fired[params.list_at + 2u * entry];
    let psp = fired[params.list_at + 2u * entry + 1u];
    var unit = senders[neuron];
    if psp != FIXED_PSP {
        unit = ((psp << 16u) + unit / 2u) / unit;
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

// weight · unit in the format of a target: rounded to the nearest, halves up. 255 · 255 · 2^16 + 2^15 is below 2^32.
fn rounded(amount: u32, neuron: u32) -> u32 {
    var shift = params.shift;
    if shift == OWN_SHIFTS {
        shift = (senders[params.neurons + neuron / 4u] >> (8u * (neuron % 4u))) & 0xffu;
    }
    return (amount + ((1u << shift) >> 1u)) >> shift;
}
