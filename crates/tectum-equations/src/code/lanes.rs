//! Instructions over the lanes of a block: one loop each, in SIMD.

use tectum::kernel::math::{cos, cos_near, exp, is_near, log, sin, sin_near, tanh};
use tectum::kernel::native::simd;

use super::{Instruction, Operation};

/// Instances of a block: enough vectors to hide the time of an instruction, few enough that the slots of a system stay in the first cache.
pub const LANES: usize = 64;
/// One number for each instance of a block.
pub type Lanes = [f32; LANES];

/// A truth as the bits of a float: all or none.
fn mask(is_true: bool) -> f32 {
    f32::from_bits(if is_true { u32::MAX } else { 0 })
}

fn blend(condition: f32, a: f32, b: f32) -> f32 {
    f32::from_bits(a.to_bits() & condition.to_bits() | b.to_bits() & !condition.to_bits())
}

/// Executes instructions in order.
pub(super) fn run(instructions: &[Instruction], slots: &mut [Lanes]) {
    simd(
        #[inline(always)]
        || {
            for instruction in instructions {
                execute(instruction, slots);
            }
        },
    );
}

#[inline(always)]
fn execute(instruction: &Instruction, slots: &mut [Lanes]) {
    match instruction.operation {
        Operation::Negate => unary(instruction, slots, |a| -a),
        Operation::Absolute => unary(instruction, slots, f32::abs),
        Operation::Root => unary(instruction, slots, f32::sqrt),
        Operation::Exp => unary(instruction, slots, exp),
        Operation::Log => unary(instruction, slots, log),
        Operation::Tanh => unary(instruction, slots, tanh),
        Operation::Floor => unary(instruction, slots, f32::floor),
        Operation::Not => unary(instruction, slots, |a| f32::from_bits(!a.to_bits())),
        Operation::Sin => angle(instruction, slots, sin_near, sin),
        Operation::Cos => angle(instruction, slots, cos_near, cos),
        Operation::SinCos => sine_and_cosine(instruction, slots),
        Operation::Add => binary(instruction, slots, |a, b| a + b),
        Operation::Subtract => binary(instruction, slots, |a, b| a - b),
        Operation::Multiply => binary(instruction, slots, |a, b| a * b),
        Operation::Divide => binary(instruction, slots, |a, b| a / b),
        Operation::Minimum => binary(instruction, slots, |a, b| if b < a { b } else { a }),
        Operation::Maximum => binary(instruction, slots, |a, b| if b > a { b } else { a }),
        Operation::Less => binary(instruction, slots, |a, b| mask(a < b)),
        Operation::LessOrEqual => binary(instruction, slots, |a, b| mask(a <= b)),
        Operation::IsFinite => unary(instruction, slots, |a| mask(a.is_finite())),
        Operation::And => binary(instruction, slots, |a, b| f32::from_bits(a.to_bits() & b.to_bits())),
        Operation::Or => binary(instruction, slots, |a, b| f32::from_bits(a.to_bits() | b.to_bits())),
        Operation::Select => ternary(instruction, slots, blend),
        Operation::MultiplyAdd => ternary(instruction, slots, |a, b, c| a * b + c),
        Operation::SubtractProduct => ternary(instruction, slots, |a, b, c| c - a * b),
    }
}

/// The operands are never the result, which lets the compiler use vectors.
const APART: &str = "invariant: a result has none of its operands' slots";

#[inline(always)]
fn unary(instruction: &Instruction, slots: &mut [Lanes], f: impl Fn(f32) -> f32) {
    let [to, a] = slots.get_disjoint_mut([instruction.to, instruction.operands[0]]).expect(APART);
    for lane in 0..LANES {
        to[lane] = f(a[lane]);
    }
}

#[inline(always)]
fn binary(instruction: &Instruction, slots: &mut [Lanes], f: impl Fn(f32, f32) -> f32) {
    let [a, b, _] = instruction.operands;
    if a == b {
        return unary(instruction, slots, |a| f(a, a));
    }
    let [to, a, b] = slots.get_disjoint_mut([instruction.to, a, b]).expect(APART);
    for lane in 0..LANES {
        to[lane] = f(a[lane], b[lane]);
    }
}

#[inline(always)]
fn ternary(instruction: &Instruction, slots: &mut [Lanes], f: impl Fn(f32, f32, f32) -> f32) {
    let [a, b, c] = instruction.operands;
    let [to, a, b, c] = slots.get_disjoint_mut([instruction.to, a, b, c]).expect(APART);
    for lane in 0..LANES {
        to[lane] = f(a[lane], b[lane], c[lane]);
    }
}

/// A function of an angle: without branches where all angles are near.
#[inline(always)]
fn angle(instruction: &Instruction, slots: &mut [Lanes], near: impl Fn(f32) -> f32, any: impl Fn(f32) -> f32) {
    if slots[instruction.operands[0]].iter().fold(true, |all, a| all & is_near(*a)) { unary(instruction, slots, near) } else { unary(instruction, slots, any) }
}

#[inline(always)]
fn sine_and_cosine(instruction: &Instruction, slots: &mut [Lanes]) {
    let [a, cosine, _] = instruction.operands;
    let [sine, cosine, a] = slots.get_disjoint_mut([instruction.to, cosine, a]).expect(APART);
    if a.iter().fold(true, |all, a| all & is_near(*a)) {
        for lane in 0..LANES {
            (sine[lane], cosine[lane]) = (sin_near(a[lane]), cos_near(a[lane]));
        }
    } else {
        for lane in 0..LANES {
            (sine[lane], cosine[lane]) = (sin(a[lane]), cos(a[lane]));
        }
    }
}

/// Calls a function with the number of columns as a constant where it is small: the compiler then turns rows into columns in vectors. It returns how many
/// rows it did.
macro_rules! with_width {
    ($width:expr, $function:ident $arguments:tt, $($constant:literal)*) => {
        match $width {
            $($constant => simd(
                #[inline(always)]
                || $function::<$constant> $arguments,
            ),)*
            _ => 0,
        }
    };
}

/// Copies the first numbers of at most [`LANES`] rows of a width into slots, one a column.
///
/// # Panics
/// If there are more slots than columns, or more rows than lanes.
pub fn load_rows(slots: &mut [Lanes], rows: &[f32], width: usize) {
    assert!(slots.len() <= width && rows.len() <= LANES * width, "{} columns of {} numbers in rows of {width}", slots.len(), rows.len());
    if width == 0 {
        return;
    }
    let done = with_width!(width, load(slots, rows), 1 2 3 4 5 6 7 8 9 10 11 12);
    for (lane, row) in rows.chunks_exact(width).enumerate().skip(done) {
        for (slot, number) in slots.iter_mut().zip(row) {
            slot[lane] = *number;
        }
    }
}

/// Copies slots at some places into rows, one a column.
///
/// # Panics
/// If there are more rows than lanes.
pub fn store_rows(slots: &[Lanes], places: &[usize], rows: &mut [f32]) {
    assert!(rows.len() <= LANES * places.len(), "{} numbers in rows of {}", rows.len(), places.len());
    if places.is_empty() {
        return;
    }
    let done = with_width!(places.len(), store(slots, places, rows), 1 2 3 4 5 6 7 8 9 10 11 12);
    for (lane, row) in rows.chunks_exact_mut(places.len()).enumerate().skip(done) {
        for (place, number) in places.iter().zip(row) {
            *number = slots[*place][lane];
        }
    }
}

/// Rows that are turned into columns at once: a vector of the widest SIMD.
const ROWS: usize = 16;

#[inline(always)]
fn load<const W: usize>(slots: &mut [Lanes], rows: &[f32]) -> usize {
    let (blocks, _) = rows.as_chunks::<W>().0.as_chunks::<ROWS>();
    for (block, rows) in blocks.iter().enumerate() {
        let columns: [[f32; ROWS]; W] = std::array::from_fn(|column| std::array::from_fn(|row| rows[row][column]));
        for (slot, column) in slots.iter_mut().zip(&columns) {
            slot[block * ROWS..][..ROWS].copy_from_slice(column);
        }
    }
    blocks.len() * ROWS
}

#[inline(always)]
fn store<const W: usize>(slots: &[Lanes], places: &[usize], rows: &mut [f32]) -> usize {
    let (blocks, _) = rows.as_chunks_mut::<W>().0.as_chunks_mut::<ROWS>();
    for (block, rows) in blocks.iter_mut().enumerate() {
        let columns: [[f32; ROWS]; W] = std::array::from_fn(|column| *slots[places[column]][block * ROWS..].first_chunk().expect("invariant: whole vectors"));
        *rows = std::array::from_fn(|row| std::array::from_fn(|column| columns[column][row]));
    }
    blocks.len() * ROWS
}
