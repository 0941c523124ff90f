//! Pipeline-overridable constants: with and without given values, in expressions, sizes and
//! workgroup sizes.

use crate::case::Case;

const OUT: &str = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n";

pub fn cases() -> Vec<Case> {
    let scalars = format!(
        "override A: u32 = 5u;\noverride B: i32 = -3;\noverride C: f32 = 1.5;\noverride D: bool = true;\n@id(7) override E: u32 = 9u;\noverride F: u32 = A * 2u;\n\
         {OUT}@compute @workgroup_size(1)\nfn main() {{\n    out[0] = A; out[1] = u32(-B); out[2] = u32(C * 4.0); out[3] = u32(D); out[4] = E; out[5] = F + 1u;\n}}\n"
    );
    let required = format!(
        "override A: u32;\noverride B: f32;\n{OUT}@compute @workgroup_size(1)\nfn main() {{ out[0] = A; out[1] = u32(B); }}\n"
    );
    let sized = format!(
        "override N: u32 = 8u;\nvar<workgroup> cells: array<u32, N * 2u>;\n{OUT}@compute @workgroup_size(N)\n\
         fn main(@builtin(local_invocation_index) i: u32) {{\n    cells[i] = i * 3u;\n    cells[i + N] = i + 100u;\n    workgroupBarrier();\n    \
         out[i] = cells[N * 2u - 1u - i] + cells[N - 1u - i];\n}}\n"
    );
    let of_size = |n: u32| {
        (0..n)
            .map(|i| (n - 1 - i) + 100 + (n - 1 - i) * 3)
            .collect::<Vec<u32>>()
    };
    let group = format!(
        "override X: u32 = 4u;\noverride Y: u32 = 2u;\n{OUT}@compute @workgroup_size(X, Y, 2)\n\
         fn main(@builtin(local_invocation_id) l: vec3<u32>, @builtin(local_invocation_index) i: u32) {{ out[i] = l.x + l.y * 10u + l.z * 100u; }}\n"
    );
    let of_group = |x: u32, y: u32| {
        (0..2)
            .flat_map(|z| (0..y).flat_map(move |y| (0..x).map(move |x| x + y * 10 + z * 100)))
            .collect::<Vec<u32>>()
    };
    let branch = format!(
        "override FAST: bool = false;\n{OUT}@compute @workgroup_size(1)\nfn main() {{ if (FAST) {{ out[0] = 1u; }} else {{ out[0] = 2u; }} }}\n"
    );
    vec![
        Case::new("override/defaults", &*scalars).output(&[5u32, 3, 6, 1, 9, 11]),
        Case::new("override/given values", scalars)
            .constant("A", 20.0)
            .constant("B", -7.0)
            .constant("C", 2.25)
            .constant("D", 0.0)
            .constant("7", 4e9)
            .output(&[20, 7, 9, 0, 4_000_000_000u32, 41]),
        Case::new("override/without defaults", required)
            .constant("A", 4294967295.0)
            .constant("B", 77.0)
            .output(&[u32::MAX, 77]),
        Case::new("override/workgroup array and size, default", &*sized).output(&of_size(8)),
        Case::new("override/workgroup array and size, given", sized)
            .constant("N", 48.0)
            .output(&of_size(48)),
        Case::new("override/workgroup size of three dimensions", &*group).output(&of_group(4, 2)),
        Case::new("override/workgroup size of three dimensions, given", group)
            .constant("X", 3.0)
            .constant("Y", 5.0)
            .output(&of_group(3, 5)),
        Case::new("override/branch", &*branch).output(&[2u32]),
        Case::new("override/branch, given", branch)
            .constant("FAST", 1.0)
            .output(&[1u32]),
    ]
}
