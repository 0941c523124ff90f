//! `+ - * / %` and negation of every number type, as scalars, vectors and mixed.

use half::f16;

use crate::case::{Case, Scope, to_f16};
use crate::lanes::{Bound, Bounds, Float, Lanes, Scalar, float1, float2, pairs};
use crate::pool;

/// WGSL: 2.5 ULP for a divisor of moderate size.
const DIVISION_ULP: f64 = 2.5;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    integers(
        &mut cases,
        pool::I32,
        [i32::wrapping_add, i32::wrapping_sub, i32::wrapping_mul],
        [divide_i32, remainder_i32],
    );
    integers(
        &mut cases,
        pool::U32,
        [u32::wrapping_add, u32::wrapping_sub, u32::wrapping_mul],
        [divide_u32, remainder_u32],
    );
    integers(
        &mut cases,
        pool::I64,
        [i64::wrapping_add, i64::wrapping_sub, i64::wrapping_mul],
        [divide_i64, remainder_i64],
    );
    integers(
        &mut cases,
        pool::U64,
        [u64::wrapping_add, u64::wrapping_sub, u64::wrapping_mul],
        [divide_u64, remainder_u64],
    );
    cases.push(Lanes::new("arithmetic/negate/i32", 1, "-x").exact1(pool::I32, i32::wrapping_neg));
    cases.push(
        Lanes::new("arithmetic/negate/vec4<i32>", 4, "-x").exact1(pool::I32, i32::wrapping_neg),
    );
    cases.push(Lanes::new("arithmetic/negate/i64", 1, "-x").exact1(pool::I64, i64::wrapping_neg));
    floats(
        &mut cases,
        pool::F32,
        [|x, y| x + y, |x, y| x - y, |x, y| x * y, |x, y| x / y],
    );
    floats(
        &mut cases,
        pool::F64,
        [|x, y| x + y, |x, y| x - y, |x, y| x * y, |x, y| x / y],
    );
    floats(
        &mut cases,
        &pool::f16(),
        [
            |x: f16, y| to_f16(x.to_f64() + y.to_f64()),
            |x: f16, y| to_f16(x.to_f64() - y.to_f64()),
            |x: f16, y| to_f16(x.to_f64() * y.to_f64()),
            |x: f16, y| to_f16(x.to_f64() / y.to_f64()),
        ],
    );
    cases
}

/// WGSL: division by zero yields the dividend, remainder by zero yields 0, and so does the one
/// overflow.
macro_rules! division {
    ($($type:ty: $divide:ident, $remainder:ident;)*) => { $(
        fn $divide(x: $type, y: $type) -> $type {
            if y == 0 { x } else { x.wrapping_div(y) }
        }
        fn $remainder(x: $type, y: $type) -> $type {
            if y == 0 { 0 } else { x.wrapping_rem(y) }
        }
    )* };
}
division! {
    i32: divide_i32, remainder_i32;
    u32: divide_u32, remainder_u32;
    i64: divide_i64, remainder_i64;
    u64: divide_u64, remainder_u64;
}

type Operation<T> = fn(T, T) -> T;

fn integers<T: Scalar>(
    cases: &mut Vec<Case>,
    pool: &[T],
    ring: [Operation<T>; 3],
    division: [Operation<T>; 2],
) {
    let name = T::TYPE.name;
    let operations = [
        ("add", "+"),
        ("subtract", "-"),
        ("multiply", "*"),
        ("divide", "/"),
        ("remainder", "%"),
    ];
    let rows = pairs(pool, pool);
    for (index, ((what, sign), f)) in operations
        .into_iter()
        .zip(ring.into_iter().chain(division))
        .enumerate()
    {
        let expression = format!("x {sign} y");
        cases
            .push(Lanes::new(format!("arithmetic/{what}/{name}"), 1, &expression).exact2(&rows, f));
        let width = 2 + index % 3;
        cases.push(
            Lanes::new(
                format!("arithmetic/{what}/vec{width}<{name}>"),
                width,
                &expression,
            )
            .exact2(&rows, f),
        );
        mixed(cases, [what, sign], 2 + (index + 1) % 3, &rows, f);
    }
}

/// Vector with scalar, and scalar with vector.
fn mixed<T: Scalar>(
    cases: &mut Vec<Case>,
    [what, sign]: [&str; 2],
    width: usize,
    rows: &[(T, T)],
    f: Operation<T>,
) {
    let rows = rows.iter().map(|&(x, y)| vec![x, y]).collect::<Vec<_>>();
    let name = T::TYPE.name;
    let right = format!("x {sign} y0");
    let lanes = Lanes::new(
        format!("arithmetic/{what}/vec{width}<{name}> and {name}"),
        width,
        &right,
    );
    cases.push(lanes.exact_groups(&rows, |group| {
        group
            .iter()
            .map(|row| f(row[0], group[0][1]))
            .collect::<Vec<T>>()
    }));
    let left = format!("x0 {sign} y");
    let lanes = Lanes::new(
        format!("arithmetic/{what}/{name} and vec{width}<{name}>"),
        width,
        &left,
    );
    cases.push(lanes.exact_groups(&rows, |group| {
        group
            .iter()
            .map(|row| f(group[0][0], row[1]))
            .collect::<Vec<T>>()
    }));
}

fn floats<T: Float>(cases: &mut Vec<Case>, pool: &[T], operations: [Operation<T>; 4]) {
    let name = T::TYPE.name;
    let [add, subtract, multiply, divide] = operations;
    for (index, (what, sign, f)) in [
        ("add", "+", add),
        ("subtract", "-", subtract),
        ("multiply", "*", multiply),
    ]
    .into_iter()
    .enumerate()
    {
        let expression = format!("x {sign} y");
        cases.extend(float2(
            &Lanes::new(format!("arithmetic/{what}/{name}"), 1, &expression),
            pool,
            f,
        ));
        let width = 2 + index % 3;
        cases.extend(float2(
            &Lanes::new(
                format!("arithmetic/{what}/vec{width}<{name}>"),
                width,
                &expression,
            ),
            pool,
            f,
        ));
    }
    let moderate = pool
        .iter()
        .copied()
        .filter(|x| x.ordinary() && (1e-4..1e4).contains(&x.wide().abs()))
        .collect::<Vec<_>>();
    let small = pairs(&moderate, &moderate);
    mixed(cases, ["add", "+"], 3, &small, add);
    mixed(cases, ["multiply", "*"], 4, &small, multiply);
    division(cases, pool, &moderate, divide);
    remainder::<T>(cases);
    cases.extend(float1(
        &Lanes::new(format!("arithmetic/negate/{name}"), 1, "-x"),
        pool,
        |x| negate(x),
    ));
    cases.extend(float1(
        &Lanes::new(format!("arithmetic/negate/vec2<{name}>"), 2, "-x"),
        pool,
        |x| negate(x),
    ));
}

fn negate<T: Float>(x: T) -> T {
    T::of(-x.wide())
}

fn division<T: Float>(cases: &mut Vec<Case>, pool: &[T], moderate: &[T], f: Operation<T>) {
    let name = T::TYPE.name;
    let bounds = Bounds::rounded_in_ptx(Bound::Ulp(DIVISION_ULP));
    let rows = pairs(moderate, moderate)
        .into_iter()
        .filter(|&(x, y)| f(x, y).ordinary())
        .map(|(x, y)| vec![x, y])
        .collect::<Vec<_>>();
    for width in [1, 3] {
        let shape = if width == 1 {
            name.to_owned()
        } else {
            format!("vec{width}<{name}>")
        };
        let lanes = Lanes::new(format!("arithmetic/divide/{shape}"), width, "x / y");
        cases.push(lanes.near(&rows, bounds, |x| f(T::of(x[0]), T::of(x[1])).wide()));
    }
    let lanes = Lanes::new(
        format!("arithmetic/divide/vec2<{name}> and {name}"),
        2,
        "x / y0",
    );
    cases.push(lanes.near_groups(&rows, bounds, |group| {
        group
            .iter()
            .map(|row| f(T::of(row[0]), T::of(group[0][1])).wide())
            .collect()
    }));
    let lanes = Lanes::new(format!("arithmetic/divide/{name}/ieee"), 1, "x / y");
    cases.push(lanes.exact2(&pairs(pool, pool), f).scope(Scope::Ptx));
}

/// Small multiples of 1/8: every step of `x - y * trunc(x / y)` is exact. Integral quotients are
/// only for PTX, as an inexact division may round them down.
fn remainder<T: Float>(cases: &mut Vec<Case>) {
    let name = T::TYPE.name;
    let rows = pool::rows2::<T>(
        &[5.5, -5.5, 0.25, 7.0, -9.0, 20.125, -0.375, 100.0],
        &[2.0, -2.0, 3.0, 0.75, -1.5, 8.0, 6.5],
    );
    let (whole, broken): (Vec<_>, Vec<_>) = rows
        .into_iter()
        .partition(|row| (row[0].wide() / row[1].wide()).fract() == 0.0);
    let f = |x: T, y: T| T::of(x.wide() % y.wide());
    let tuples = |rows: &[Vec<T>]| rows.iter().map(|row| (row[0], row[1])).collect::<Vec<_>>();
    cases.push(
        Lanes::new(format!("arithmetic/remainder/{name}"), 1, "x % y").exact2(&tuples(&broken), f),
    );
    cases.push(
        Lanes::new(format!("arithmetic/remainder/vec3<{name}>"), 3, "x % y")
            .exact2(&tuples(&broken), f),
    );
    // The sign of a remainder of 0 is left open.
    let lanes = Lanes::new(
        format!("arithmetic/remainder/{name}/whole quotients"),
        1,
        "abs(x % y)",
    );
    cases.push(
        lanes
            .exact2(&tuples(&whole), |x, y| T::of((x.wide() % y.wide()).abs()))
            .scope(Scope::Ptx),
    );
}
