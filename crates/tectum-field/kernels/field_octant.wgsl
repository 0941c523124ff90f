// Number i of the present pattern: the mean content of an octant, i = octant·content + channel.
fn field_octant(i: u32) -> f32 {
    let octant = i / params.content;
    let c = i % params.content;
    var sum = 0.0;
    for (var j = 0u; j < 8u; j++) {
        sum += descriptor[field_region(octant, j) * params.content + c];
    }
    return 0.125 * sum;
}

// Region j of the eight in an octant.
fn field_region(octant: u32, j: u32) -> u32 {
    let x = 2u * (octant / 4u) + j / 4u;
    let y = 2u * (octant / 2u % 2u) + j / 2u % 2u;
    let z = 2u * (octant % 2u) + j % 2u;
    return (x * 4u + y) * 4u + z;
}
