//! The table, one file per family.

mod arithmetic;
mod atomic;
mod barrier;
mod bits;
mod bounds;
mod builtin;
mod comparison;
mod control;
mod conversion;
mod double_math;
mod float_math;
mod functions;
mod geometry;
mod half_math;
mod layout;
mod literal;
mod logic;
mod matrix;
mod memory;
mod overrides;
mod packing;
mod subgroup;
mod vector;

use crate::case::Case;

/// Every case; names are unique.
pub fn cases() -> Vec<Case> {
    let families = [
        arithmetic::cases,
        bits::cases,
        comparison::cases,
        conversion::cases,
        double_math::cases,
        float_math::cases,
        half_math::cases,
        logic::cases,
        control::cases,
        functions::cases,
        packing::cases,
        geometry::cases,
        matrix::cases,
        vector::cases,
        literal::cases,
        layout::cases,
        memory::cases,
        overrides::cases,
        atomic::cases,
        barrier::cases,
        builtin::cases,
        subgroup::cases,
        bounds::cases,
    ];
    let cases = families
        .into_iter()
        .flat_map(|family| family())
        .collect::<Vec<_>>();
    let mut names = cases
        .iter()
        .map(|case| case.name.as_str())
        .collect::<Vec<_>>();
    names.sort_unstable();
    if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
        panic!("two cases are named {}", pair[0]);
    }
    cases
}
