//! `== != < <= > >=` of every type, as scalars and vectors.

use crate::case::Case;
use crate::lanes::{Float, Lanes, Scalar, float2, pairs};
use crate::pool;

pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    integers(&mut cases, pool::I32);
    integers(&mut cases, pool::U32);
    integers(&mut cases, pool::I64);
    integers(&mut cases, pool::U64);
    floats(&mut cases, pool::F32);
    floats(&mut cases, pool::F64);
    floats(&mut cases, &pool::f16());
    let truths = pairs(&[false, true], &[false, true]);
    cases.push(Lanes::new("comparison/equal/bool", 1, "x == y").exact2(&truths, |x, y| x == y));
    cases.push(
        Lanes::new("comparison/differ/vec4<bool>", 4, "x != y").exact2(&truths, |x, y| x != y),
    );
    cases
}

type Comparison<T> = (&'static str, &'static str, fn(&T, &T) -> bool);

fn comparisons<T: PartialOrd>() -> [Comparison<T>; 6] {
    [
        ("equal", "==", |x, y| x == y),
        ("differ", "!=", |x, y| x != y),
        ("less", "<", |x, y| x < y),
        ("at most", "<=", |x, y| x <= y),
        ("greater", ">", |x, y| x > y),
        ("at least", ">=", |x, y| x >= y),
    ]
}

/// All six in one: bit k of the result is the k-th comparison.
const SIX: &str = "select(0u, 1u, x == y) | select(0u, 2u, x != y) | select(0u, 4u, x < y) | select(0u, 8u, x <= y) \
                   | select(0u, 16u, x > y) | select(0u, 32u, x >= y)";

fn six<T: PartialOrd>(x: T, y: T) -> u32 {
    comparisons::<T>()
        .iter()
        .enumerate()
        .map(|(bit, (_, _, f))| u32::from(f(&x, &y)) << bit)
        .sum()
}

fn integers<T: Scalar + PartialOrd>(cases: &mut Vec<Case>, pool: &[T]) {
    let name = T::TYPE.name;
    let rows = pairs(pool, pool);
    cases.push(Lanes::new(format!("comparison/all six/{name}"), 1, SIX).exact2(&rows, six));
    for (index, (what, sign, f)) in comparisons::<T>()
        .into_iter()
        .enumerate()
        .skip(1)
        .step_by(2)
    {
        let (expression, width) = (format!("x {sign} y"), 2 + index % 3);
        let lanes = Lanes::new(
            format!("comparison/{what}/vec{width}<{name}>"),
            width,
            &expression,
        );
        cases.push(lanes.exact2(&rows, |x, y| f(&x, &y)));
    }
}

fn floats<T: Float>(cases: &mut Vec<Case>, pool: &[T]) {
    let name = T::TYPE.name;
    cases.extend(float2(
        &Lanes::new(format!("comparison/all six/{name}"), 1, SIX),
        pool,
        six,
    ));
    for (index, (what, sign, f)) in comparisons::<T>().into_iter().enumerate().step_by(2) {
        let (expression, width) = (format!("x {sign} y"), 2 + index % 3);
        let lanes = Lanes::new(
            format!("comparison/{what}/vec{width}<{name}>"),
            width,
            &expression,
        );
        cases.extend(float2(&lanes, pool, |x, y| f(&x, &y)));
    }
}
