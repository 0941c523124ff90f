//! Indexing by run-time values in every address space, and copies of arrays and structures.

use crate::case::Case;
use crate::lanes::Lanes;

/// Declarations with a `fn compute(x: u32) -> u32`, and what it computes.
type Program = (&'static str, &'static str, fn(u32) -> u32);

pub fn cases() -> Vec<Case> {
    let inputs = (0..32).collect::<Vec<u32>>();
    let programs = PROGRAMS.iter();
    let mut cases = programs
        .map(|&(name, helpers, f)| {
            Lanes::new(format!("memory/{name}"), 1, "compute(x)")
                .helpers(helpers)
                .exact1(&inputs, f)
        })
        .collect::<Vec<_>>();
    cases.extend(buffers());
    cases.extend(workgroup());
    cases
}

const PROGRAMS: &[Program] = &[
    (
        "let array by index",
        "fn compute(x: u32) -> u32 { let a = array<u32, 5>(3u, 1u, x, 1u, 5u); return a[x % 5u] * 10u + a[4u - x % 5u]; }",
        |x| {
            let a = [3, 1, x, 1, 5];
            a[(x % 5) as usize] * 10 + a[4 - (x % 5) as usize]
        },
    ),
    (
        "const array by index",
        "const A = array<vec2<u32>, 3>(vec2<u32>(1u, 2u), vec2<u32>(3u, 4u), vec2<u32>(5u, 6u));\nfn compute(x: u32) -> u32 { return A[x % 3u][x % 2u]; }",
        |x| [[1, 2], [3, 4], [5, 6]][(x % 3) as usize][(x % 2) as usize],
    ),
    (
        "function array by index",
        "fn compute(x: u32) -> u32 { var a: array<u32, 8>; for (var i = 0u; i < 8u; i++) { a[i] = i * i; } a[x % 8u] += 100u; return a[(x + 1u) % 8u] + a[x % 8u] * 1000u; }",
        |x| {
            let mut a = [0, 1, 4, 9, 16, 25, 36, 49];
            a[(x % 8) as usize] += 100;
            a[((x + 1) % 8) as usize] + a[(x % 8) as usize] * 1000
        },
    ),
    (
        "function array starts at zero",
        "fn compute(x: u32) -> u32 { var a: array<vec3<u32>, 4>; return a[x % 4u].y + a[0].x; }",
        |_| 0,
    ),
    (
        "large arrays start at zero",
        "var<private> p: array<u32, 70>;\nfn compute(x: u32) -> u32 { var a: array<vec3<u32>, 40>; p[x % 70u] += x; a[x % 40u].z += 1u; var sum = 0u; for (var i = 0u; i < 70u; i++) { sum += p[i] * 100u + a[i % 40u].x + a[i % 40u].y; } for (var i = 0u; i < 40u; i++) { sum += a[i].z; } return sum; }",
        |x| x * 100 + 1,
    ),
    (
        "let copy of an array",
        "fn compute(x: u32) -> u32 { var a = array<u32, 4>(1u, 2u, 3u, x); let old = a; a[x % 4u] = 9u; a[0] = 7u; var b = a; b[1] = 50u; return old[x % 4u] + a[x % 4u] * 100u + b[1] * 10000u + a[1]; }",
        |x| {
            let old = [1, 2, 3, x];
            let mut a = old;
            a[(x % 4) as usize] = 9;
            a[0] = 7;
            old[(x % 4) as usize] + a[(x % 4) as usize] * 100 + 500_000 + a[1]
        },
    ),
    (
        "private array by index",
        "var<private> a: array<u32, 6> = array<u32, 6>(5u, 4u, 3u, 2u, 1u, 0u);\nfn put(i: u32, v: u32) { a[i] = v; }\nfn compute(x: u32) -> u32 { put(x % 6u, x + 40u); put((x + 2u) % 6u, a[x % 6u] + 1u); return a[x % 6u] * 100u + a[(x + 2u) % 6u] + a[(x + 1u) % 6u] * 10000u; }",
        |x| (x + 40) * 100 + x + 41 + (5 - (x + 1) % 6) * 10000,
    ),
    (
        "private initial values",
        "struct S { a: u32, b: vec2<f32> } var<private> s = S(7u, vec2<f32>(0.5, 1.5)); var<private> v: vec3<i32> = vec3<i32>(-1, 2, 3); var<private> z: mat2x2<f32>; var<private> flag: bool = true;\nfn compute(x: u32) -> u32 { let r = s.a + u32(s.b.y * 2.0) + u32(v.z - v.x) + u32(z[1].x) + u32(flag); s.a = x; v.x = i32(x); flag = false; return r * 100u + s.a + u32(v.x) + u32(flag); }",
        |x| (7 + 3 + 4 + 1) * 100 + 2 * x,
    ),
    (
        "array of structures by index",
        "struct S { k: u32, v: vec3<u32> }\nfn compute(x: u32) -> u32 { var a: array<S, 3>; for (var i = 0u; i < 3u; i++) { a[i] = S(i, vec3<u32>(i * 10u)); } a[x % 3u].v[x % 2u] = 7u; let s = a[x % 3u]; a[x % 3u] = a[(x + 1u) % 3u]; return s.v.x * 10000u + s.v.y * 100u + s.v.z + a[x % 3u].k; }",
        |x| {
            let k = x % 3;
            let mut v = [k * 10; 3];
            v[(x % 2) as usize] = 7;
            v[0] * 10000 + v[1] * 100 + v[2] + (k + 1) % 3
        },
    ),
    (
        "array in a structure in a variable",
        "struct S { n: u32, a: array<u32, 4> }\nfn compute(x: u32) -> u32 { var s: S; s.a[x % 4u] = 3u; s.n = s.a[x % 4u] + s.a[(x + 1u) % 4u]; var t = s; t.a[0] = 9u; let u = t; return u.a[x % 4u] * 100u + u.n * 10u + s.a[0]; }",
        |x| {
            if x.is_multiple_of(4) { 933 } else { 330 }
        },
    ),
    (
        "two-dimensional array",
        "fn compute(x: u32) -> u32 { var a: array<array<u32, 3>, 4>; for (var i = 0u; i < 12u; i++) { a[i / 3u][i % 3u] = i; } let row = a[x % 4u]; a[x % 4u][x % 3u] = 99u; a[(x + 1u) % 4u] = row; return row[x % 3u] * 10000u + a[x % 4u][x % 3u] * 100u + a[(x + 1u) % 4u][2]; }",
        |x| {
            let row = (x % 4) * 3;
            (row + x % 3) * 10000 + 9900 + row + 2
        },
    ),
    (
        "array of matrices",
        "fn compute(x: u32) -> u32 { var a: array<mat2x3<f32>, 2>; a[x % 2u][1] = vec3<f32>(1.0, 2.0, 3.0); a[1][x % 2u].z += 4.0; return u32(a[x % 2u][1].z * 100.0 + a[1u - x % 2u][x % 2u].z + a[1][0].z * 10.0); }",
        |x| {
            let mut a = [[[0.0f32; 3]; 2]; 2];
            let k = (x % 2) as usize;
            a[k][1] = [1.0, 2.0, 3.0];
            a[1][k][2] += 4.0;
            (a[k][1][2] * 100.0 + a[1 - k][k][2] + a[1][0][2] * 10.0) as u32
        },
    ),
    (
        "array of bool",
        "fn compute(x: u32) -> u32 { var a: array<bool, 5>; a[x % 5u] = true; a[(x * 2u) % 5u] = !a[(x * 2u) % 5u]; var n = 0u; for (var i = 0u; i < 5u; i++) { n = n * 2u + u32(a[i]); } return n; }",
        |x| {
            let mut a = [false; 5];
            a[(x % 5) as usize] = true;
            a[(x * 2 % 5) as usize] ^= true;
            a.iter().fold(0, |n, &bit| n * 2 + u32::from(bit))
        },
    ),
    (
        "sieve",
        "fn compute(x: u32) -> u32 { var hit: array<u32, 64>; var n = 0u; for (var i = 2u; i < 64u; i++) { if (hit[i] != 0u) { continue; } if (i <= x * 2u) { n++; } for (var j = i * i; j < 64u; j += i) { hit[j] = 1u; } } return n; }",
        |x| {
            (2..64)
                .filter(|n| (2..*n).all(|d| n % d != 0) && *n <= x * 2)
                .count() as u32
        },
    ),
    (
        "structures compared by parts after a swap",
        "struct P { x: i32, y: i32 }\nfn compute(x: u32) -> u32 { var p = P(i32(x), 5); var q = P(7, -3); let t = p; p = q; q = t; p.x += q.y; return u32(p.x * 1000 + (p.y + 10) * 100 + q.x); }",
        |x| 12 * 1000 + 700 + x,
    ),
];

fn buffers() -> Vec<Case> {
    let head = "@group(0) @binding(0) var<storage, read> origin: array<u32>;\n@group(0) @binding(1) var<storage, read_write> to: array<u32>;\n";
    let main = "@compute @workgroup_size(16)\nfn main(@builtin(local_invocation_index) i: u32) ";
    let from = (0..16u32).map(|i| i * i + 3).collect::<Vec<_>>();
    let case = |name: &str, before: &str, body: &str, wanted: Vec<u32>| {
        Case::new(
            format!("memory/{name}"),
            format!("{head}{before}\n{main}{{ {body} }}\n"),
        )
        .read(&from)
        .output(&wanted)
    };
    vec![
        case("storage by index", "", "to[(i * 5u) % 16u] = origin[15u - i];", {
            let mut to = vec![0; 16];
            (0..16).for_each(|i| to[i * 5 % 16] = from[15 - i]);
            to
        }),
        case("storage read after write", "", "to[i] = origin[i]; to[i] += 5u; let old = to[i]; to[i] = 1u; to[i] = to[i] + old;", from.iter().map(|x| x + 6).collect()),
        case("pointer to a storage element", "", "let p = &to[i]; let q = &origin[i]; *p = *q; *p *= 2u;", from.iter().map(|x| x * 2).collect()),
        case("array loaded whole", "struct Four { a: array<u32, 4> }\nvar<private> kept: Four;", "var f: Four; for (var k = 0u; k < 4u; k++) { f.a[k] = origin[(i + k) % 16u]; } kept = f; f.a[1] = 0u; to[i] = kept.a[0] + kept.a[1] + kept.a[2] + kept.a[3] + f.a[1];", {
            (0..16).map(|i| (0..4).map(|k| from[(i + k) % 16]).sum()).collect()
        }),
        Case::new(
            "memory/uniform by index",
            format!("struct U {{ a: array<vec4<u32>, 4> }}\n@group(0) @binding(0) var<uniform> u: U;\n@group(0) @binding(1) var<storage, read_write> to: array<u32>;\n{main}{{ let row = u.a[i / 4u]; to[i] = u.a[3u - i / 4u][i % 4u] * 100u + row[3u - i % 4u]; }}\n"),
        )
        .uniform(&from)
        .output(&(0..16).map(|i| from[(3 - i / 4) * 4 + i % 4] * 100 + from[i / 4 * 4 + 3 - i % 4]).collect::<Vec<_>>()),
        Case::new(
            "memory/function array filled by invocations apart",
            format!("{head}{main}{{ var a: array<u32, 16>; for (var k = 0u; k <= i; k++) {{ a[k] = origin[k]; }} var sum = 0u; for (var k = 0u; k < 16u; k++) {{ sum += a[k]; }} to[i] = sum; }}\n"),
        )
        .read(&from)
        .output(&(0..16).map(|i| from[..=i].iter().sum()).collect::<Vec<u32>>()),
    ]
}

fn workgroup() -> Vec<Case> {
    let main = "@compute @workgroup_size(16)\nfn main(@builtin(local_invocation_index) i: u32) ";
    let case = |name: &str, declarations: &str, body: &str, wanted: Vec<u32>| {
        let source = format!(
            "@group(0) @binding(0) var<storage, read_write> to: array<u32>;\n{declarations}\n{main}{{ {body} }}\n"
        );
        Case::new(format!("memory/workgroup/{name}"), source).output(&wanted)
    };
    vec![
        case(
            "array by index",
            "var<workgroup> w: array<u32, 16>;",
            "w[i] = i * i; workgroupBarrier(); to[i] = w[15u - i];",
            (0..16).map(|i| (15 - i) * (15 - i)).collect(),
        ),
        case(
            "array of structures",
            "struct S { v: vec3<f32>, k: u32, b: bool } var<workgroup> w: array<S, 16>;",
            "w[i] = S(vec3<f32>(f32(i)), i, i > 7u); w[i].v.y = 0.5; workgroupBarrier(); let s = w[(i + 1u) % 16u]; to[i] = u32(s.v.x + s.v.y * 2.0) + s.k * 100u + u32(s.b) * 10000u;",
            (0..16)
                .map(|i| (i + 1) % 16)
                .map(|j: u32| j + 1 + j * 100 + if j > 7 { 10000 } else { 0 })
                .collect(),
        ),
        case(
            "matrix and vector",
            "var<workgroup> m: mat4x4<f32>; var<workgroup> v: vec4<u32>;",
            "m[i / 4u][i % 4u] = f32(i); if (i < 4u) { v[i] = i + 50u; } workgroupBarrier(); to[i] = u32(m[i % 4u][i / 4u]) * 100u + v[i % 4u];",
            (0..16)
                .map(|i| (i % 4 * 4 + i / 4) * 100 + i % 4 + 50)
                .collect(),
        ),
        case(
            "two variables of different types",
            "var<workgroup> a: u32; var<workgroup> b: array<vec2<f32>, 16>; var<workgroup> c: bool;",
            "if (i == 5u) { a = 7u; c = true; } b[i] = vec2<f32>(f32(i), 2.0); workgroupBarrier(); to[i] = a + u32(b[15u - i].x * b[i].y) + u32(c);",
            (0..16).map(|i| 8 + (15 - i) * 2).collect(),
        ),
    ]
}
