// Lists what fired on all devices, where it was exchanged as bits.
// in: clock [2]: word 1 is whether it was; exchanged [words] a bit for each neuron. in and out: fired, see spiking_dynamics.
// One invocation takes every stride-th word, and its firings places of their own in the list. Exact.
const FIXED_PSP = 0xffffffffu;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    if clock[1] == 0u {
        return;
    }
    for (var word = id.x; word < params.words; word += groups.x * 256u) {
        var bits = exchanged[word];
        if bits == 0u {
            continue;
        }
        var place = params.list_at + 2u * atomicAdd(&fired[0], countOneBits(bits));
        while bits != 0u {
            atomicStore(&fired[place], 32u * word + firstTrailingBit(bits));
            atomicStore(&fired[place + 1u], FIXED_PSP);
            bits &= bits - 1u;
            place += 2u;
        }
    }
}
