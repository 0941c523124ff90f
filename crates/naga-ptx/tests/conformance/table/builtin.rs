//! Built-in values of a compute entry point.

use crate::case::Case;

/// Workgroup size and number of workgroups.
const SHAPES: &[([u32; 3], [u32; 3])] = &[
    ([1, 1, 1], [3, 1, 1]),
    ([7, 1, 1], [2, 3, 1]),
    ([64, 1, 1], [3, 1, 1]),
    ([8, 8, 1], [2, 2, 1]),
    ([3, 5, 7], [2, 1, 2]),
    ([33, 2, 1], [1, 2, 2]),
    ([256, 1, 1], [2, 1, 1]),
    ([1, 1, 64], [1, 1, 3]),
];

pub fn cases() -> Vec<Case> {
    let mut cases = SHAPES
        .iter()
        .map(|&(size, groups)| coordinates(size, groups))
        .collect::<Vec<_>>();
    cases.push(structure());
    cases
}

fn coordinates(size: [u32; 3], groups: [u32; 3]) -> Case {
    let [x, y, z] = size;
    let source = format!(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size({x}, {y}, {z})\n\
         fn main(@builtin(global_invocation_id) g: vec3<u32>, @builtin(local_invocation_id) l: vec3<u32>, @builtin(local_invocation_index) i: u32,\n    \
         @builtin(workgroup_id) w: vec3<u32>, @builtin(num_workgroups) n: vec3<u32>) {{\n    \
         let size = vec3<u32>({x}u, {y}u, {z}u);\n    let all = size * n;\n    let at = (g.x + all.x * (g.y + all.y * g.z)) * 14u;\n    \
         out[at] = g.x; out[at + 1u] = g.y; out[at + 2u] = g.z;\n    out[at + 3u] = l.x; out[at + 4u] = l.y; out[at + 5u] = l.z;\n    out[at + 6u] = i;\n    \
         out[at + 7u] = w.x; out[at + 8u] = w.y; out[at + 9u] = w.z;\n    out[at + 10u] = n.x; out[at + 11u] = n.y; out[at + 12u] = n.z;\n    out[at + 13u] = 1u;\n}}\n"
    );
    let all = [0, 1, 2].map(|k| size[k] * groups[k]);
    let mut wanted = Vec::new();
    for g in (0..all[2])
        .flat_map(|gz| (0..all[1]).flat_map(move |gy| (0..all[0]).map(move |gx| [gx, gy, gz])))
    {
        let l = [0, 1, 2].map(|k| g[k] % size[k]);
        let w = [0, 1, 2].map(|k| g[k] / size[k]);
        wanted.extend([g, l].concat());
        wanted.push(l[0] + x * (l[1] + y * l[2]));
        wanted.extend([w, groups].concat());
        wanted.push(1);
    }
    let name = format!(
        "builtin/coordinates/{x}x{y}x{z} in {}x{}x{}",
        groups[0], groups[1], groups[2]
    );
    Case::new(name, source)
        .groups(groups[0], groups[1], groups[2])
        .output(&wanted)
}

/// Built-in values as members of a structure.
fn structure() -> Case {
    let source = "struct Place { @builtin(global_invocation_id) id: vec3<u32>, @builtin(local_invocation_index) index: u32 }\n\
        @group(0) @binding(0) var<storage, read_write> out: array<vec2<u32>>;\n@compute @workgroup_size(16)\n\
        fn main(place: Place, @builtin(workgroup_id) group: vec3<u32>) { out[place.id.x] = vec2<u32>(place.index, group.x); }\n";
    let wanted = (0..48).flat_map(|i| [i % 16, i / 16]).collect::<Vec<u32>>();
    Case::new("builtin/members of a structure", source)
        .groups(3, 1, 1)
        .output(&wanted)
}
