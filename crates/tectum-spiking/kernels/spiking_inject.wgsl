// Empties the list of firings, and adds what arrives from outside: sums[n] += amount for each injection [n, amount].
// in: inputs [1 + 2·most] a count and injections of this burst alone, steady [2·steady_count] those of every burst;
// in and out: sums [parts · chunk], see spiking_dynamics; fired, see there.
// One invocation adds every stride-th injection with an atomic: integers, so the order does not matter. Exact.
fn inject(neuron: u32, amount: u32) {
    let at = neuron / params.len * params.chunk;
    let i = neuron % params.len;
    atomicAdd(&sums[at + i], bitcast<i32>(amount));
    if params.tracked != 0u {
        atomicOr(&sums[at + params.len + i / 32u], bitcast<i32>(1u << (i % 32u)));
    }
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {
    let stride = groups.x * 256u;
    if id.x == 0u {
        atomicStore(&fired[0], 0u);
    }
    for (var word = id.x; word < params.bit_words; word += stride) {
        atomicStore(&fired[params.bits_at + word], 0u);
    }
    let count = select(0u, inputs[0], params.is_first != 0u);
    for (var i = id.x; i < count; i += stride) {
        inject(inputs[1u + 2u * i], inputs[2u + 2u * i]);
    }
    for (var i = id.x; i < params.steady_count; i += stride) {
        inject(steady[2u * i], steady[2u * i + 1u]);
    }
}
