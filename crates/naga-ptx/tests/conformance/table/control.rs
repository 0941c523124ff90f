//! Control flow: branches, switches, loops and the values that flow through them.

use crate::case::Case;
use crate::lanes::Lanes;

/// A body of `fn compute(x: u32) -> u32`, and what it computes.
type Program = (&'static str, &'static str, fn(u32) -> u32);

const INPUTS: [u32; 40] = {
    let mut inputs = [0; 40];
    let mut i = 0;
    while i < 40 {
        // 0 to 31, then some large ones.
        inputs[i as usize] = if i < 32 { i } else { i * 98_765_431 };
        i += 1;
    }
    inputs
};

pub fn cases() -> Vec<Case> {
    let programs = BRANCHES.iter().chain(SWITCHES).chain(LOOPS).chain(VALUES);
    let cases = programs.map(|&(name, body, f)| {
        let helpers = format!("fn compute(x: u32) -> u32 {{\n{body}\n}}\n");
        Lanes::new(format!("control/{name}"), 1, "compute(x)")
            .helpers(&helpers)
            .exact1(&INPUTS, f)
    });
    cases.chain(entry_points()).collect()
}

const BRANCHES: &[Program] = &[
    ("if", "var r = 1u; if (x > 10u) { r = x; } return r;", |x| {
        if x > 10 { x } else { 1 }
    }),
    (
        "if else",
        "if (x % 2u == 0u) { return x / 2u; } else { return x * 3u + 1u; }",
        |x| {
            if x.is_multiple_of(2) {
                x / 2
            } else {
                x.wrapping_mul(3).wrapping_add(1)
            }
        },
    ),
    (
        "else if chain",
        "if (x < 3u) { return 10u; } else if (x < 7u) { return 20u; } else if (x == 9u) { return 30u; } return 40u;",
        |x| match x {
            0..3 => 10,
            3..7 => 20,
            9 => 30,
            _ => 40,
        },
    ),
    (
        "nested if",
        "var r = 0u; if (x > 4u) { if (x < 20u) { r = 1u; if (x == 8u) { r = 2u; } else { r += 4u; } } else { r = 7u; } r += 100u; } return r;",
        |x| match x {
            0..=4 => 0,
            8 => 102,
            5..20 => 105,
            _ => 107,
        },
    ),
    (
        "empty branches",
        "if (x > 5u) { } else { } if (x == 3u) { return 5u; } return 6u;",
        |x| if x == 3 { 5 } else { 6 },
    ),
    (
        "early return in if",
        "if (x == 0u) { return 99u; } if (x > 20u) { return 77u; } return x;",
        |x| match x {
            0 => 99,
            21.. => 77,
            _ => x,
        },
    ),
    (
        "block scopes",
        "var r = x; { let x2 = r + 1u; { let x2 = r * 2u; r = x2; } r += x2; } return r;",
        |x| x.wrapping_mul(2).wrapping_add(x.wrapping_add(1)),
    ),
];

const SWITCHES: &[Program] = &[
    (
        "switch/u32",
        "switch x { case 0u: { return 5u; } case 3u: { return 6u; } default: { return 7u; } }",
        |x| match x {
            0 => 5,
            3 => 6,
            _ => 7,
        },
    ),
    (
        "switch/i32 with negative selectors",
        "switch i32(x) - 5 { case -5: { return 1u; } case -1: { return 2u; } case 0: { return 3u; } default: { return 4u; } case 7: { return 5u; } }",
        |x| match x {
            0 => 1,
            4 => 2,
            5 => 3,
            12 => 5,
            _ => 4,
        },
    ),
    (
        "switch/default in the middle",
        "var r = 0u; switch x { case 1u: { r = 1u; } default: { r = 2u; } case 2u: { r = 3u; } } return r;",
        |x| match x {
            1 => 1,
            2 => 3,
            _ => 2,
        },
    ),
    (
        "switch/several selectors",
        "var r = 0u; switch x { case 1u, 2u, 3u: { r = 10u; } case 4u, default: { r = 20u; } case 5u, 30u: { r = 30u; } } return r + x;",
        |x| {
            let r = match x {
                1..=3 => 10,
                5 | 30 => 30,
                _ => 20,
            };
            x.wrapping_add(r)
        },
    ),
    (
        "switch/break inside",
        "var r = 1u; switch x % 4u { case 0u: { if (x > 8u) { break; } r = 2u; } case 1u: { r = 3u; break; } default: { } } return r;",
        |x| match x % 4 {
            0 => {
                if x > 8 {
                    1
                } else {
                    2
                }
            }
            1 => 3,
            _ => 1,
        },
    ),
    (
        "switch/default alone",
        "var r = x; switch x { default: { r = x ^ 21u; } } return r;",
        |x| x ^ 21,
    ),
    (
        "switch/nested",
        "switch x & 1u { case 0u: { switch x >> 1u { case 0u: { return 1u; } case 1u: { return 2u; } default: { } } return 3u; } default: { return 4u; } }",
        |x| match x {
            0 => 1,
            2 => 2,
            _ if x & 1 == 0 => 3,
            _ => 4,
        },
    ),
    (
        "switch/continue of the loop around",
        "var r = 0u; for (var i = 0u; i < 10u; i++) { switch (x + i) % 3u { case 0u: { continue; } case 1u: { r += i; } default: { r += 100u; break; } } r += 1000u; } return r;",
        |x| {
            (0..10)
                .map(|i| match x.wrapping_add(i) % 3 {
                    0 => 0,
                    1 => 1000 + i,
                    _ => 1100,
                })
                .sum()
        },
    ),
    (
        "switch/return in a loop",
        "for (var i = 0u; i < 50u; i++) { switch i { case 5u: { if (x < 10u) { return i; } } case 20u: { return 200u + x; } default: { } } } return 1u;",
        |x| if x < 10 { 5 } else { x.wrapping_add(200) },
    ),
    (
        "switch/many dense cases",
        "switch x { case 0u: { return 31u; } case 1u: { return 3u; } case 2u: { return 17u; } case 3u: { return 5u; } case 4u: { return 8u; } \
         case 5u: { return 13u; } case 6u: { return 21u; } case 7u: { return 34u; } case 8u: { return 55u; } case 9u: { return 89u; } default: { return 0u; } }",
        |x| {
            [31, 3, 17, 5, 8, 13, 21, 34, 55, 89]
                .get(x as usize)
                .copied()
                .unwrap_or(0)
        },
    ),
];

const LOOPS: &[Program] = &[
    (
        "for",
        "var r = 0u; for (var i = 0u; i < x % 32u; i++) { r += i * i; } return r;",
        |x| (0..x % 32).map(|i| i * i).sum(),
    ),
    (
        "for without parts",
        "var r = 0u; var i = 0u; for (;;) { if (i >= 7u) { break; } r += x; i += 1u; } return r;",
        |x| x.wrapping_mul(7),
    ),
    (
        "for counting down",
        "var r = 0u; for (var i = i32(x % 16u); i >= 0; i -= 3) { r = r * 2u + u32(i); } return r;",
        |x| {
            let mut r = 0u32;
            let mut i = (x % 16) as i32;
            while i >= 0 {
                r = r * 2 + i as u32;
                i -= 3;
            }
            r
        },
    ),
    (
        "while",
        "var n = x % 1000u; var steps = 0u; while (n > 1u) { if (n % 2u == 0u) { n /= 2u; } else { n = n * 3u + 1u; } steps++; } return steps;",
        |x| {
            let (mut n, mut steps) = (x % 1000, 0);
            while n > 1 {
                n = if n.is_multiple_of(2) {
                    n / 2
                } else {
                    n * 3 + 1
                };
                steps += 1;
            }
            steps
        },
    ),
    (
        "loop with break",
        "var i = 0u; loop { if (i * i > x % 1000u) { break; } i++; } return i;",
        |x| (0..).find(|i| i * i > x % 1000).unwrap_or_default(),
    ),
    (
        "continuing with break if",
        "var i = 0u; var r = 0u; loop { r += i; continuing { i += 2u; break if i >= x % 32u; } } return r;",
        |x| {
            let (mut i, mut r) = (0, 0);
            loop {
                r += i;
                i += 2;
                if i >= x % 32 {
                    return r;
                }
            }
        },
    ),
    (
        "continue and continuing",
        "var i = 0u; var r = 0u; loop { if (i >= 20u) { break; } if ((i & x) != 0u) { continue; } r += i; continuing { r += 1000u; i++; } } return r;",
        |x| {
            (0..20)
                .map(|i| if i & x == 0 { i + 1000 } else { 1000 })
                .sum()
        },
    ),
    (
        "value of the body in continuing",
        "var i = 0u; var r = 0u; loop { let d = (x + i) % 5u; if (i > 12u) { break; } continuing { r = r * 3u + d; i += 1u; } } return r;",
        |x| {
            (0..13).fold(0u32, |r, i| {
                r.wrapping_mul(3).wrapping_add(x.wrapping_add(i) % 5)
            })
        },
    ),
    (
        "nested loops with breaks",
        "var r = 0u; for (var i = 0u; i < 6u; i++) { for (var j = 0u; j < 6u; j++) { if (j > i) { break; } if ((i + j) % 3u == x % 3u) { continue; } r += i * 10u + j; } if (r > 150u) { break; } } return r;",
        |x| {
            let mut r = 0;
            for i in 0..6 {
                r += (0..=i)
                    .filter(|j| (i + j) % 3 != x % 3)
                    .map(|j| i * 10 + j)
                    .sum::<u32>();
                if r > 150 {
                    break;
                }
            }
            r
        },
    ),
    (
        "return from nested loops",
        "for (var i = 0u; i < 40u; i++) { for (var j = 0u; j < i; j++) { if (i * j == x) { return i * 100u + j; } } } return 7u;",
        |x| {
            (0..40)
                .flat_map(|i| (0..i).map(move |j| (i, j)))
                .find(|(i, j)| i * j == x)
                .map_or(7, |(i, j)| i * 100 + j)
        },
    ),
    (
        "loop that never repeats",
        "var r = x; loop { r += 1u; break; } loop { r *= 2u; if (true) { break; } } return r;",
        |x| x.wrapping_add(1).wrapping_mul(2),
    ),
    (
        "while false",
        "var r = x; while (false) { r = 0u; } for (var i = 5u; i < 5u; i++) { r = 1u; } return r;",
        |x| x,
    ),
    (
        "infinite loop left by return",
        "var i = x % 7u; loop { i += 3u; if (i > 50u) { return i; } } return 0u;",
        |x| {
            (1..)
                .map(|k| x % 7 + 3 * k)
                .find(|&i| i > 50)
                .unwrap_or_default()
        },
    ),
];

const VALUES: &[Program] = &[
    (
        "loop-carried swap",
        "var a = x; var b = 1u; for (var i = 0u; i < 5u; i++) { let t = a; a = b; b = t + i; } return a * 3u + b;",
        |x| {
            let (mut a, mut b) = (x, 1u32);
            for i in 0..5 {
                (a, b) = (b, a.wrapping_add(i));
            }
            a.wrapping_mul(3).wrapping_add(b)
        },
    ),
    (
        "fibonacci",
        "var a = 0u; var b = 1u; for (var i = 0u; i < x % 40u; i++) { let c = a + b; a = b; b = c; } return a;",
        |x| {
            (0..x % 40)
                .fold((0u32, 1u32), |(a, b), _| (b, a.wrapping_add(b)))
                .0
        },
    ),
    (
        "three-way rotation",
        "var v = vec3<u32>(x, 2u, 3u); for (var i = 0u; i < x % 5u; i++) { v = v.yzx; } return v.x * 100u + v.y * 10u + v.z;",
        |x| {
            let mut v = [x, 2, 3];
            v.rotate_left((x % 5 % 3) as usize);
            v[0].wrapping_mul(100)
                .wrapping_add(v[1].wrapping_mul(10))
                .wrapping_add(v[2])
        },
    ),
    (
        "merge of branches",
        "var r: u32; if (x < 10u) { r = x * 2u; } else { r = x - 10u; } let s = r; if (r > 5u) { r = 1u; } return r * 1000u + s;",
        |x| {
            let s = if x < 10 { x * 2 } else { x - 10 };
            (if s > 5 { 1 } else { s })
                .wrapping_mul(1000)
                .wrapping_add(s)
        },
    ),
    (
        "let before and after a loop",
        "let before = x * 7u; var v = x; let copy = v; for (var i = 0u; i < 3u; i++) { v += before; } let after = v; v = 0u; return before ^ copy ^ after ^ v;",
        |x| {
            let before = x.wrapping_mul(7);
            before ^ x ^ x.wrapping_add(before.wrapping_mul(3))
        },
    ),
    (
        "let keeps the value of a variable",
        "var v = x; let old = v; v = v + 1u; let newer = v; v = v * 2u; return old * 1u + newer * 3u + v * 5u;",
        |x| {
            let newer = x.wrapping_add(1);
            x.wrapping_add(newer.wrapping_mul(3))
                .wrapping_add(newer.wrapping_mul(2).wrapping_mul(5))
        },
    ),
    (
        "variable renewed in each round",
        "var r = 0u; for (var i = 0u; i < 4u; i++) { var fresh: u32; if (i == x % 4u) { fresh = 9u; } r = r * 10u + fresh; } return r;",
        |x| (0..4).fold(0, |r, i| r * 10 + if i == x % 4 { 9 } else { 0 }),
    ),
    (
        "phony assignment and compound assignment",
        "var r = x; _ = r + 1u; r += 2u; r *= 3u; r -= 1u; r ^= 5u; r <<= 1u; r |= 1u; r &= 0xffffu; r >>= 2u; r %= 1000u; r /= 3u; r++; r--; return r;",
        |x| {
            let r = x.wrapping_add(2).wrapping_mul(3).wrapping_sub(1) ^ 5;
            ((((r << 1) | 1) & 0xffff) >> 2) % 1000 / 3
        },
    ),
    (
        "variable assigned in one arm",
        "var r = 3u; if (x > 5u) { if (x > 10u) { r = 4u; } } else { r = 5u; } var s = r; if (x == 7u) { s += 10u; } return r + s;",
        |x| {
            let r = if x > 10 {
                4
            } else if x > 5 {
                3
            } else {
                5
            };
            r + r + if x == 7 { 10 } else { 0 }
        },
    ),
    (
        "const and override-free constants",
        "const A = 5u; const B = A * 2u + 1u; const C = array<u32, 4>(1u, 2u, B, A); const D = vec2<u32>(A, B); return C[x % 4u] + D.y * A;",
        |x| [1, 2, 11, 5][(x % 4) as usize] + 55,
    ),
];

fn entry_points() -> Vec<Case> {
    let source = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;\n@compute @workgroup_size(32)\n\
        fn main(@builtin(global_invocation_id) id: vec3<u32>) {\n    if (id.x >= arrayLength(&out)) { return; }\n";
    let numbers = || 0..80u32;
    vec![
        Case::new("control/entry point/early return", format!("{source}    if (id.x % 3u == 0u) {{ return; }}\n    out[id.x] = id.x;\n}}\n"))
            .groups(3, 1, 1)
            .output(&numbers().map(|i| if i % 3 == 0 { 0 } else { i }).collect::<Vec<_>>()),
        Case::new(
            "control/entry point/return in a loop",
            format!("{source}    for (var i = 0u; i < 100u; i++) {{\n        out[id.x] += i;\n        if (i == id.x) {{ return; }}\n    }}\n    out[id.x] = 0u;\n}}\n"),
        )
        .groups(3, 1, 1)
        .output(&numbers().map(|i| i * (i + 1) / 2).collect::<Vec<_>>()),
        Case::new(
            "control/entry point/return in a switch",
            format!("{source}    switch id.x & 3u {{ case 0u: {{ out[id.x] = 1u; return; }} case 1u: {{ return; }} default: {{ out[id.x] = 2u; }} }}\n    out[id.x] += 4u;\n}}\n"),
        )
        .groups(3, 1, 1)
        .output(&numbers().map(|i| [1, 0, 6, 6][(i & 3) as usize]).collect::<Vec<_>>()),
        Case::new("control/entry point/one of several", format!("{source}    out[id.x] = 3u;\n}}\n@compute @workgroup_size(1) fn other() {{ out[0] = 1u; }}\n"))
            .groups(3, 1, 1)
            .output(&[3; 80]),
    ]
}
