//! Building and decomposing vectors: constructors, swizzles, components by run-time index.

use crate::case::Case;
use crate::lanes::Lanes;

/// A body of `fn compute(x: u32) -> u32`, and what it computes.
type Program = (&'static str, &'static str, fn(u32) -> u32);

pub fn cases() -> Vec<Case> {
    let inputs = (0..32).collect::<Vec<u32>>();
    let mut cases = Vec::new();
    for &(name, body, f) in PROGRAMS {
        let helpers = format!("fn compute(x: u32) -> u32 {{\n{body}\n}}\n");
        cases.push(
            Lanes::new(format!("vector/{name}"), 1, "compute(x)")
                .helpers(&helpers)
                .exact1(&inputs, f),
        );
    }
    let floats = (0..24).map(|i| i as f32 * 1.5 - 7.0).collect::<Vec<_>>();
    let turned = |expression: &'static str, width: usize, order: &'static [usize]| {
        let rows = floats.iter().map(|&x| vec![x]).collect::<Vec<_>>();
        let name = format!("vector/swizzle/{}", expression.replace(['(', ')', ' '], ""));
        Lanes::new(name, width, expression).exact_groups(&rows, move |group| {
            order.iter().map(|&k| group[k][0]).collect::<Vec<f32>>()
        })
    };
    cases.push(turned("x.yx", 2, &[1, 0]));
    cases.push(turned("x.zxy", 3, &[2, 0, 1]));
    cases.push(turned("x.bgr", 3, &[2, 1, 0]));
    cases.push(turned("x.wzyx", 4, &[3, 2, 1, 0]));
    cases.push(turned("x.xxww", 4, &[0, 0, 3, 3]));
    cases.push(turned("vec4(x.zw, x.xy).yxwz", 4, &[3, 2, 1, 0]));
    cases
}

/// The digits of four numbers.
fn digits(v: [u32; 4]) -> u32 {
    v.iter().fold(0, |sum, digit| sum * 100 + digit)
}

const PROGRAMS: &[Program] = &[
    (
        "splat",
        "let v = vec4<u32>(x); return v.x + v.y * 10u + v.z * 100u + v.w * 1000u;",
        |x| x * 1111,
    ),
    (
        "compose from parts",
        "let a = vec2<u32>(x, 1u); let v = vec4<u32>(2u, a, 3u); let w = vec4<u32>(a, a); let q = vec4<u32>(vec3<u32>(a, 5u), 6u); \
      return v.x * 1000u + v.y + v.z * 100u + v.w + w.z + q.z + q.y;",
        |x| 2000 + x + 100 + 3 + x + 5 + 1,
    ),
    (
        "zero value",
        "let v = vec3<u32>(); var a = array<vec2<u32>, 3>(); a[1].y = x; return v.x + v.y + a[0].x + a[1].y + u32(mat2x2<f32>()[1][1]);",
        |x| x,
    ),
    (
        "component by index of a let",
        "let v = vec4<u32>(3u, 5u, 7u, x); return v[x % 4u];",
        |x| [3, 5, 7, x][(x % 4) as usize],
    ),
    (
        "component by index of a variable",
        "var v = vec3<u32>(3u, 5u, x); v[x % 3u] += 100u; v[(x + 1u) % 3u] = 1u; return v.x + v.y * 200u + v.z * 40000u;",
        |x| {
            let mut v = [3, 5, x];
            v[(x % 3) as usize] += 100;
            v[((x + 1) % 3) as usize] = 1;
            v[0] + v[1] * 200 + v[2] * 40000
        },
    ),
    (
        "signed index",
        "var v = vec4<i32>(1, 2, 3, 4); let i = i32(x % 4u); v[3 - i] = 9; return u32(v.x * 1000 + v.y * 100 + v.z * 10 + v.w);",
        |x| {
            let mut v = [1, 2, 3, 4];
            v[3 - (x % 4) as usize] = 9;
            v.iter().fold(0, |sum, d| sum * 10 + d)
        },
    ),
    (
        "store to components",
        "var v = vec4<u32>(1u, 2u, 3u, 4u); v.x = x; v.w = v.y; v.y = v.x; return v.x * 1000000u + v.y * 10000u + v.z * 100u + v.w;",
        |x| digits([x, x, 3, 2]),
    ),
    (
        "let copy of a vector",
        "var v = vec2<u32>(x, 1u); let old = v; v.x = 77u; v = v.yx; return old.x * 10000u + v.x * 100u + v.y;",
        |x| x * 10000 + 177,
    ),
    (
        "bool vectors",
        "let b = vec3<u32>(x, x + 1u, x + 2u) % vec3<u32>(3u) == vec3<u32>(0u); let n = !b; return select(0u, 1u, b.x) + select(0u, 2u, b[x % 3u]) + select(0u, 4u, n.z) + select(0u, 8u, any(b & n)) + select(0u, 16u, all(b | n));",
        |x| {
            let b = [x, x + 1, x + 2].map(|v| v.is_multiple_of(3));
            u32::from(b[0])
                + if b[(x % 3) as usize] { 2 } else { 0 }
                + if b[2] { 0 } else { 4 }
                + 16
        },
    ),
    (
        "bool vector in a variable",
        "var b = vec4<bool>(false, true, false, true); b[x % 4u] = !b[(x + 1u) % 4u]; b.z = true; return select(0u, 1u, b.x) + select(0u, 2u, b.y) + select(0u, 4u, b.z) + select(0u, 8u, b.w);",
        |x| {
            let mut b = [false, true, false, true];
            b[(x % 4) as usize] = !b[((x + 1) % 4) as usize];
            b[2] = true;
            b.iter().rev().fold(0, |sum, &bit| sum * 2 + u32::from(bit))
        },
    ),
    (
        "array of vectors",
        "var a = array<vec3<u32>, 3>(vec3<u32>(1u, 2u, 3u), vec3<u32>(4u, 5u, 6u), vec3<u32>(x)); a[x % 3u].y = 50u; let c = a; a[0] = vec3<u32>(0u); return c[(x + 1u) % 3u][x % 2u] * 100u + a[x % 3u].y;",
        |x| {
            let mut a = [[1, 2, 3], [4, 5, 6], [x; 3]];
            let k = (x % 3) as usize;
            a[k][1] = 50;
            let c = a;
            a[0] = [0; 3];
            c[(k + 1) % 3][(x % 2) as usize] * 100 + a[k][1]
        },
    ),
];
