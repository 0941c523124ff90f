//! Functions: arguments, results, pointers, calls within calls.

use crate::case::Case;
use crate::lanes::Lanes;

/// Declarations with a `fn compute(x: u32) -> u32`, and what it computes.
type Program = (&'static str, &'static str, fn(u32) -> u32);

pub fn cases() -> Vec<Case> {
    let inputs = (0..40u32)
        .map(|i| if i < 32 { i } else { i * 98_765_431 })
        .collect::<Vec<_>>();
    PROGRAMS
        .iter()
        .map(|&(name, helpers, f)| {
            Lanes::new(format!("functions/{name}"), 1, "compute(x)")
                .helpers(helpers)
                .exact1(&inputs, f)
        })
        .collect()
}

const PROGRAMS: &[Program] = &[
    (
        "nested calls",
        "fn a(x: u32) -> u32 { return x + 1u; } fn b(x: u32) -> u32 { return a(x) * a(x + 1u); }\nfn compute(x: u32) -> u32 { return b(a(b(x % 16u))); }",
        |x| {
            let b = |x: u32| (x + 1) * (x + 2);
            b(b(x % 16) + 1)
        },
    ),
    (
        "several returns",
        "fn kind(x: u32) -> u32 { if (x < 5u) { return 0u; } for (var i = 0u; i < 9u; i++) { if (i * 3u == x) { return i; } } return 50u; }\nfn compute(x: u32) -> u32 { return kind(x) + kind(x + 1u) * 100u; }",
        |x| {
            let class = |x: u32| {
                if x < 5 {
                    0
                } else if x.is_multiple_of(3) && x < 27 {
                    x / 3
                } else {
                    50
                }
            };
            class(x) + class(x.wrapping_add(1)) * 100
        },
    ),
    (
        "pointer to a function variable",
        "fn bump(p: ptr<function, u32>, by: u32) { *p += by; if (by > 3u) { return; } *p *= 2u; }\nfn compute(x: u32) -> u32 { var v = x; bump(&v, 3u); bump(&v, 4u); return v; }",
        |x| x.wrapping_add(3).wrapping_mul(2).wrapping_add(4),
    ),
    (
        "swap by pointers",
        "fn swap(a: ptr<function, u32>, b: ptr<function, u32>) { let t = *a; *a = *b; *b = t; }\nfn compute(x: u32) -> u32 { var a = x; var b = 7u; swap(&a, &b); return a * 10u + (b & 0xffu); }",
        |x| 70 + (x & 0xff),
    ),
    (
        "pointer to a private variable",
        "var<private> state: u32 = 5u; fn next(p: ptr<private, u32>) -> u32 { *p = *p * 3u + 1u; return *p; }\nfn compute(x: u32) -> u32 { state += x; let a = next(&state); let b = next(&state); return a ^ b; }",
        |x| {
            let a = x.wrapping_add(5).wrapping_mul(3).wrapping_add(1);
            a ^ a.wrapping_mul(3).wrapping_add(1)
        },
    ),
    (
        "pointer to an array",
        "fn sum(p: ptr<function, array<u32, 5>>) -> u32 { var s = 0u; for (var i = 0u; i < 5u; i++) { s += (*p)[i]; (*p)[i] = i; } return s; }\nfn compute(x: u32) -> u32 { var a = array<u32, 5>(x, 1u, 2u, 3u, 4u); let s = sum(&a); return s * 2u + a[3] + sum(&a); }",
        |x| x.wrapping_add(10).wrapping_mul(2).wrapping_add(13),
    ),
    (
        "pointer to a structure",
        "struct S { a: u32, b: vec3<u32> }\nfn put(p: ptr<function, S>, v: u32) { (*p).a = v; (*p).b.y += v; }\nfn compute(x: u32) -> u32 { var s = S(1u, vec3<u32>(2u, 3u, 4u)); put(&s, x); return s.a + s.b.x + s.b.y + s.b.z; }",
        |x| x.wrapping_mul(2).wrapping_add(9),
    ),
    (
        "pointer passed on",
        "fn inner(p: ptr<function, u32>) { *p += 1u; } fn outer(p: ptr<function, u32>) { inner(p); inner(p); }\nfn compute(x: u32) -> u32 { var v = x; outer(&v); let p = &v; inner(p); return v; }",
        |x| x.wrapping_add(3),
    ),
    (
        "let pointer to an element",
        "fn compute(x: u32) -> u32 { var a = array<u32, 4>(1u, 2u, 3u, 4u); let p = &a[x % 4u]; *p = 10u; *p += x; let q = &a; return (*q)[0] + (*q)[1] * 3u + a[2] * 5u + a[3] * 7u; }",
        |x| {
            let mut a = [1, 2, 3, 4u32];
            a[(x % 4) as usize] = x.wrapping_add(10);
            a.iter()
                .zip([1, 3, 5, 7])
                .fold(0, |sum, (a, k)| sum.wrapping_add(a.wrapping_mul(k)))
        },
    ),
    (
        "structure by value",
        "struct P { a: u32, b: f32, c: vec2<u32> }\nfn make(x: u32) -> P { return P(x, 2.5, vec2<u32>(x + 1u, 9u)); } fn total(p: P) -> u32 { return p.a + u32(p.b * 2.0) + p.c.x + p.c.y; }\nfn compute(x: u32) -> u32 { var p = make(x); p.c.y = 1u; return total(p) + make(3u).c.y; }",
        |x| x.wrapping_mul(2).wrapping_add(1 + 5 + 1 + 9),
    ),
    (
        "nested structure by value",
        "struct In { v: vec3<u32>, w: u32 } struct Out { a: In, b: array<In, 2> }\nfn make(x: u32) -> Out { let i = In(vec3<u32>(x, 1u, 2u), 3u); return Out(i, array<In, 2>(i, In(vec3<u32>(7u), x))); }\nfn compute(x: u32) -> u32 { let o = make(x); return o.a.v.x + o.b[1].v.z * o.b[0].w + o.b[1].w; }",
        |x| x.wrapping_mul(2).wrapping_add(21),
    ),
    (
        "array by value",
        "fn rotate(a: array<u32, 3>) -> array<u32, 3> { return array<u32, 3>(a[1], a[2], a[0]); }\nfn compute(x: u32) -> u32 { let a = rotate(rotate(array<u32, 3>(x, 20u, 3u))); return a[0] * 100u + a[1] * 10u + a[2]; }",
        |x| x.wrapping_mul(10).wrapping_add(320),
    ),
    (
        "vector and matrix by value",
        "fn turn(m: mat2x2<f32>, v: vec2<f32>) -> vec2<f32> { return m * v; }\nfn compute(x: u32) -> u32 { let r = turn(mat2x2<f32>(0.0, 1.0, 2.0, 0.0), vec2<f32>(f32(x % 100u), 3.0)); return u32(r.x * 1000.0 + r.y); }",
        |x| 6000 + x % 100,
    ),
    (
        "bool by value",
        "fn both(a: bool, b: bool) -> bool { return a && b; } fn pick(c: bool) -> vec2<bool> { return vec2<bool>(c, !c); }\nfn compute(x: u32) -> u32 { let v = pick(x > 9u); return select(0u, 1u, both(v.x, x < 20u)) + select(0u, 2u, v.y); }",
        |x| u32::from(x > 9 && x < 20) + if x > 9 { 0 } else { 2 },
    ),
    (
        "no result and private side effects",
        "var<private> log: array<u32, 4>; var<private> at: u32; fn put(v: u32) { log[at] = v; at++; }\nfn compute(x: u32) -> u32 { put(x); if (x > 8u) { put(3u); } put(4u); return log[0] + log[1] * 10u + log[2] * 100u + at * 1000u; }",
        |x| {
            if x > 8 {
                x.wrapping_add(30 + 400 + 3000)
            } else {
                x + 40 + 2000
            }
        },
    ),
    (
        "call in a condition and in a loop",
        "var<private> calls: u32; fn more(n: u32) -> bool { calls++; return n < 5u; }\nfn compute(x: u32) -> u32 { var i = x % 8u; while (more(i)) { i++; } if (more(i) || more(0u)) { calls += 100u; } return calls; }",
        |x| {
            let i = x % 8;
            let rounds = if i < 5 { 5 - i + 1 } else { 1 };
            rounds + 2 + 100
        },
    ),
    (
        "result unused",
        "@must_use fn pure_(x: u32) -> u32 { return x; } var<private> n: u32; fn effect(x: u32) -> u32 { n += x; return 0u; }\nfn compute(x: u32) -> u32 { effect(x); effect(pure_(2u)); return n; }",
        |x| x.wrapping_add(2),
    ),
    (
        "many arguments",
        "fn f(a: u32, b: f32, c: vec4<f32>, d: bool, e: i32, g: vec3<u32>, h: array<u32, 2>) -> u32 { return a + u32(b) + u32(c.w) + select(0u, 1u, d) + u32(e) + g.z + h[1]; }\nfn compute(x: u32) -> u32 { return f(x, 2.5, vec4<f32>(3.0), x > 4u, 6, vec3<u32>(7u, 8u, 9u), array<u32, 2>(1u, x)); }",
        |x| {
            x.wrapping_mul(2)
                .wrapping_add(2 + 3 + 6 + 9 + u32::from(x > 4))
        },
    ),
    (
        "same function from many places",
        "fn mix_(x: u32) -> u32 { var h = x * 0x9e3779b9u; h ^= h >> 15u; return h * 0x85ebca6bu; }\nfn compute(x: u32) -> u32 { var h = mix_(x); for (var i = 0u; i < 3u; i++) { h = mix_(h + i); } return mix_(h) ^ mix_(x + 1u); }",
        |x| {
            let mix = |x: u32| {
                let h = x.wrapping_mul(0x9e37_79b9);
                (h ^ (h >> 15)).wrapping_mul(0x85eb_ca6b)
            };
            let h = (0..3).fold(mix(x), |h, i| mix(h.wrapping_add(i)));
            mix(h) ^ mix(x.wrapping_add(1))
        },
    ),
];
