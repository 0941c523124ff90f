//! Booleans: operators, short circuits with side effects, `select`, `all`, `any`.

use crate::case::Case;
use crate::lanes::{Lanes, pairs};
use crate::pool;

/// A function that counts its calls.
const COUNTED: &str = "var<private> calls: u32;\nfn counted(value: bool) -> bool { calls += 1u; return value; }\n\
    fn and_calls(x: bool, y: bool) -> u32 { let r = counted(x) && counted(y); return calls * 2u + select(0u, 1u, r); }\n\
    fn or_calls(x: bool, y: bool) -> u32 { let r = counted(x) || counted(y); return calls * 2u + select(0u, 1u, r); }\n\
    fn nested_calls(x: bool, y: bool, z: bool) -> u32 {\n\
        let r = (counted(x) || counted(y)) && (counted(z) || counted(!x));\n\
        return calls * 2u + select(0u, 1u, r);\n\
    }\n";

pub fn cases() -> Vec<Case> {
    let truth = [false, true];
    let two = pairs(&truth, &truth);
    let three = two
        .iter()
        .flat_map(|&(x, y)| truth.map(|z| (x, y, z)))
        .collect::<Vec<_>>();
    let quads = (0..16u32)
        .map(|bits| [0, 1, 2, 3].map(|bit| bits >> bit & 1 != 0))
        .collect::<Vec<_>>();
    let mut cases = vec![
        Lanes::new("logic/not/bool", 1, "!x").exact1(&truth, |x: bool| !x),
        Lanes::new("logic/not/vec3<bool>", 3, "!x").exact1(&truth, |x: bool| !x),
        Lanes::new("logic/and/bool", 1, "x & y").exact2(&two, |x, y| x & y),
        Lanes::new("logic/and/vec2<bool>", 2, "x & y").exact2(&two, |x, y| x & y),
        Lanes::new("logic/or/bool", 1, "x | y").exact2(&two, |x, y| x | y),
        Lanes::new("logic/or/vec4<bool>", 4, "x | y").exact2(&two, |x, y| x | y),
        Lanes::new("logic/short and/bool", 1, "x && y").exact2(&two, |x, y| x && y),
        Lanes::new("logic/short or/bool", 1, "x || y").exact2(&two, |x, y| x || y),
        Lanes::new("logic/short and, calls/bool", 1, "and_calls(x, y)")
            .helpers(COUNTED)
            .exact2(&two, |x, y| (1 + u32::from(x)) * 2 + u32::from(x && y)),
        Lanes::new("logic/short or, calls/bool", 1, "or_calls(x, y)")
            .helpers(COUNTED)
            .exact2(&two, |x, y| (1 + u32::from(!x)) * 2 + u32::from(x || y)),
        Lanes::new(
            "logic/nested short circuits, calls/bool",
            1,
            "nested_calls(x, y, z)",
        )
        .helpers(COUNTED)
        .exact3(&three, |x, y, z| {
            let first = x || y;
            let calls = 1 + u32::from(!x) + if first { 1 + u32::from(!z) } else { 0 };
            calls * 2 + u32::from(first && (z || !x))
        }),
        Lanes::new("logic/all/bool", 1, "all(x)").exact1(&truth, |x: bool| x),
        Lanes::new("logic/any/bool", 1, "any(x)").exact1(&truth, |x: bool| x),
    ];
    for width in [2, 3, 4] {
        let flat = quads
            .concat()
            .into_iter()
            .take(48)
            .map(|x| vec![x])
            .collect::<Vec<_>>();
        let all = Lanes::new(format!("logic/all/vec{width}<bool>"), width, "all(x)").reducing();
        cases.push(all.exact_groups(&flat, |group| vec![group.iter().all(|row| row[0])]));
        let any = Lanes::new(format!("logic/any/vec{width}<bool>"), width, "any(x)").reducing();
        cases.push(any.exact_groups(&flat, |group| vec![group.iter().any(|row| row[0])]));
    }
    cases.extend(select());
    cases
}

fn select() -> Vec<Case> {
    let truth = [false, true, true, false, true];
    let three = |xs: &[i32]| {
        xs.iter()
            .enumerate()
            .map(|(i, &x)| (x, xs[(i + 3) % xs.len()], truth[i % 5]))
            .collect::<Vec<_>>()
    };
    let i32s = three(pool::I32);
    let choose = |x: i32, y: i32, z: bool| if z { y } else { x };
    let f32s = pool::F32
        .iter()
        .take(28)
        .enumerate()
        .map(|(i, &x)| (x, x * 0.25 + 1.0, truth[i % 5]))
        .collect::<Vec<_>>();
    let i64s = pool::I64
        .iter()
        .enumerate()
        .map(|(i, &x)| (x, !x, truth[i % 5]))
        .collect::<Vec<_>>();
    let f16s = pool::f16()[..20]
        .iter()
        .enumerate()
        .map(|(i, &x)| (x, -x, truth[i % 5]))
        .collect::<Vec<_>>();
    let f64s = pool::F64[..24]
        .iter()
        .enumerate()
        .map(|(i, &x)| (x, -x, truth[i % 5]))
        .collect::<Vec<_>>();
    let bools = truth.iter().map(|&z| (z, !z, z)).collect::<Vec<_>>();
    vec![
        Lanes::new("logic/select/i32", 1, "select(x, y, z)").exact3(&i32s, choose),
        Lanes::new("logic/select/vec3<i32> by vec3<bool>", 3, "select(x, y, z)")
            .exact3(&i32s, choose),
        Lanes::new("logic/select/f32", 1, "select(x, y, z)")
            .exact3(&f32s, |x: f32, y: f32, z| if z { y } else { x }),
        Lanes::new("logic/select/vec4<f32> by vec4<bool>", 4, "select(x, y, z)")
            .exact3(&f32s, |x: f32, y: f32, z| if z { y } else { x }),
        Lanes::new("logic/select/i64", 1, "select(x, y, z)")
            .exact3(&i64s, |x: i64, y: i64, z| if z { y } else { x }),
        Lanes::new("logic/select/f16", 1, "select(x, y, z)")
            .exact3(&f16s, |x: half::f16, y: half::f16, z| if z { y } else { x }),
        Lanes::new("logic/select/f64", 1, "select(x, y, z)")
            .exact3(&f64s, |x: f64, y: f64, z| if z { y } else { x }),
        Lanes::new("logic/select/bool", 1, "select(x, y, z)")
            .exact3(&bools, |x: bool, y: bool, z| if z { y } else { x }),
        Lanes::new("logic/select/vec2<i32> by bool", 2, "select(x, y, z0 > 0)").exact_groups(
            &i32s
                .iter()
                .map(|&(x, y, z)| vec![x, y, i32::from(z)])
                .collect::<Vec<_>>(),
            |group| {
                group
                    .iter()
                    .map(|row| if group[0][2] > 0 { row[1] } else { row[0] })
                    .collect::<Vec<i32>>()
            },
        ),
    ]
}
