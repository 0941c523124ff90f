//! Indices out of range. In PTX with clamping they select the last element; no access is outside
//! the object.

use crate::case::{Case, Scope};
use crate::lanes::Lanes;

/// Declarations with a `fn compute(x: u32) -> u32`, and what it computes for inputs from 0 to 15
/// and some large ones.
type Program = (&'static str, &'static str, fn(usize) -> u32);

pub fn cases() -> Vec<Case> {
    let inputs = [
        0,
        1,
        2,
        3,
        4,
        5,
        7,
        15,
        1000,
        0x4000_0000,
        0x7fff_ffff,
        0x8000_0000,
        u32::MAX - 1,
        u32::MAX,
    ];
    let programs = PROGRAMS.iter().map(|&(name, helpers, f)| {
        let lanes = Lanes::new(format!("bounds/{name}"), 1, "compute(x)").helpers(helpers);
        lanes
            .exact1(&inputs, |x: u32| f(x as usize))
            .scope(Scope::PtxClamped)
    });
    let mut cases = programs.collect::<Vec<_>>();
    cases.extend(long_indices());
    cases.extend(buffers());
    cases
}

const PROGRAMS: &[Program] = &[
    (
        "let array",
        "fn compute(x: u32) -> u32 { let a = array<u32, 4>(3u, 5u, 7u, 9u); return a[x]; }",
        |x| [3, 5, 7, 9][x.min(3)],
    ),
    (
        "let vector",
        "fn compute(x: u32) -> u32 { let a = vec3<u32>(3u, 5u, 7u); return a[x]; }",
        |x| [3, 5, 7][x.min(2)],
    ),
    (
        "let matrix",
        "fn compute(x: u32) -> u32 { let a = mat3x2<f32>(3.0, 1.0, 5.0, 1.0, 7.0, 2.0); return u32(a[x].x * 10.0 + a[x][x]); }",
        |x| [33, 51, 72][x.min(2)],
    ),
    (
        "function array",
        "fn compute(x: u32) -> u32 { var a = array<u32, 4>(3u, 5u, 7u, 9u); a[x] += 1u; return a[x] * 100u + a[3]; }",
        |x| {
            let mut a = [3, 5, 7, 9];
            a[x.min(3)] += 1;
            a[x.min(3)] * 100 + a[3]
        },
    ),
    (
        "function vector",
        "fn compute(x: u32) -> u32 { var a = vec4<u32>(1u, 2u, 3u, 4u); a[x] = 9u; return a.x * 1000u + a.y * 100u + a.z * 10u + a.w; }",
        |x| {
            let mut a = [1, 2, 3, 4];
            a[x.min(3)] = 9;
            a.iter().fold(0, |sum, d| sum * 10 + d)
        },
    ),
    (
        "private array of structures",
        "struct S { a: u32, b: vec2<u32> } var<private> s: array<S, 3>;\nfn compute(x: u32) -> u32 { s[x].b[x] = 5u; s[x].a = 1u; return s[2].b.y * 100u + s[2].a * 10u + s[0].b.x + s[1].b.y; }",
        |x| match x {
            0 => 5,
            1 => 5,
            _ => 510,
        },
    ),
    (
        "negative index",
        "fn compute(x: u32) -> u32 { var a = array<u32, 4>(3u, 5u, 7u, 9u); return a[i32(x & 7u) - 4]; }",
        |x| match x & 7 {
            // A negative index is a large unsigned one.
            k @ 4..=7 => [3, 5, 7, 9][k - 4],
            _ => 9,
        },
    ),
];

/// Indices of 64 bits, whose low halves alone would be in range.
fn long_indices() -> Vec<Case> {
    let lanes = |name: &str, helpers: &str, cases: &dyn Fn(&Lanes<'_>) -> Case| {
        cases(&Lanes::new(format!("bounds/{name}"), 1, "compute(x)").helpers(helpers))
            .scope(Scope::PtxClamped)
    };
    let unsigned = [
        0u64,
        1,
        3,
        4,
        1 << 31,
        u64::from(u32::MAX),
        1 << 32,
        (1 << 32) + 1,
        (7 << 40) + 2,
        1 << 63,
        u64::MAX - 2,
        u64::MAX,
    ];
    let signed = unsigned.map(|x| x as i64);
    // A negative index is a large unsigned one.
    let last = |x: u64| [3u32, 5, 7, 9][x.min(3) as usize];
    vec![
        lanes(
            "u64 index of an array",
            "fn compute(x: u64) -> u32 { var a = array<u32, 4>(3u, 5u, 7u, 9u); return a[x]; }",
            &|lanes| lanes.exact1(&unsigned, last),
        ),
        lanes(
            "i64 index of an array",
            "fn compute(x: i64) -> u32 { var a = array<u32, 4>(3u, 5u, 7u, 9u); return a[x]; }",
            &|lanes| lanes.exact1(&signed, |x: i64| last(x as u64)),
        ),
    ]
}

fn buffers() -> Vec<Case> {
    let indices = [
        0u32,
        2,
        3,
        4,
        100,
        0x2000_0000,
        0x3fff_ffff,
        0x8000_0000,
        u32::MAX,
    ];
    let head = "@group(0) @binding(0) var<storage, read> at: array<u32>;\n";
    let read = |name: &str, declaration: &str, expression: &str| {
        let source = format!(
            "{head}{declaration}\n@group(0) @binding(2) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(9)\nfn main(@builtin(local_invocation_index) i: u32) {{ out[i] = {expression}; }}\n"
        );
        Case::new(format!("bounds/{name}"), source)
            .scope(Scope::PtxClamped)
            .read(&indices)
    };
    let clamped = |last: u32, f: &dyn Fn(u32) -> u32| indices.map(|index| f(index.min(last)));
    let data = (0..20u32).map(|i| 100 + i).collect::<Vec<_>>();
    let write = "@group(0) @binding(0) var<storage, read_write> to: array<u32>;\n@group(0) @binding(1) var<storage, read_write> beside: array<u32>;\n@compute @workgroup_size(1)\n\
        fn main() { let far = arrayLength(&to) + 7u; to[far * 1000u] = 5u; to[far - 8u] += 1u; beside[0] = 2u; to[4294967295u - far] += 10u; }\n";
    let atomic = "@group(0) @binding(0) var<storage, read_write> to: array<atomic<u32>>;\n@compute @workgroup_size(8)\nfn main(@builtin(local_invocation_index) i: u32) { atomicAdd(&to[i * 2u], 1u); }\n";
    let shared = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\nvar<workgroup> a: array<u32, 8>;\nvar<workgroup> b: array<u32, 8>;\n@compute @workgroup_size(8)\n\
        fn main(@builtin(local_invocation_index) i: u32) { a[i] = i; b[i] = 50u; workgroupBarrier(); if (i == 0u) { a[out[0] + 4096u] = 77u; } workgroupBarrier(); out[i] = a[i + 4u] + b[i * 900u]; }\n";
    vec![
        read("storage array of run-time length", "@group(0) @binding(1) var<storage, read> a: array<u32>;", "a[at[i]]")
            .read(&data[..4])
            .output(&clamped(3, &|k| 100 + k)),
        read("storage array of fixed length", "@group(0) @binding(1) var<storage, read> a: array<u32, 3>;", "a[at[i]]")
            .read(&data)
            .output(&clamped(2, &|k| 100 + k)),
        read("storage array of vec3", "@group(0) @binding(1) var<storage, read> a: array<vec3<u32>>;", "a[at[i]].y + a[0][at[i]] * 1000u")
            .read(&data[..16])
            .output(&indices.map(|index| 100 + index.min(3) * 4 + 1 + (100 + index.min(2)) * 1000)),
        read("tail of a structure", "struct H { n: u32, items: array<vec2<u32>> }\n@group(0) @binding(1) var<storage, read> a: H;", "a.items[at[i]].x + a.n")
            .read(&data[..8])
            .output(&clamped(2, &|k| 100 + 2 + 2 * k + 100)),
        read("uniform array", "@group(0) @binding(1) var<uniform> a: array<vec4<u32>, 5>;", "a[at[i]][at[i]]")
            .uniform(&data)
            .output(&indices.map(|index| 100 + index.min(4) * 4 + index.min(3))),
        Case::new("bounds/storage writes", write).scope(Scope::PtxClamped).write(&[1u32, 2, 3], &[1, 2, 16]).write(&[9u32], &[2]),
        Case::new("bounds/storage atomics", atomic).scope(Scope::PtxClamped).write(&[0u32; 4], &[1, 0, 1, 6]),
        Case::new("bounds/workgroup arrays", shared).scope(Scope::PtxClamped).output(&[4u32, 5, 6, 77, 77, 77, 77, 77].map(|x| x + 50)),
    ]
}
