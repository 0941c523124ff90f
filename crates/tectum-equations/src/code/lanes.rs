//! Instructions over the lanes of a block: one loop each, in SIMD.

use std::ops::{Deref, DerefMut};

use tectum::kernel::math::{cos, cos_near, exp, is_near, log, sin, sin_near, tanh};
use tectum::kernel::native::simd;

use super::{Instruction, Operation, Then};

/// Instances of a block: enough vectors to hide the dispatch of an instruction, few enough that the
/// slots of a system stay in the first cache.
pub const LANES: usize = 128;
/// One number for each instance of a block. It begins at a cache line: a vector that crosses two
/// takes twice the time.
#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C, align(64))]
pub struct Lanes(pub [f32; LANES]);

impl Lanes {
    /// The same number for all.
    pub fn of(number: f32) -> Self {
        Self([number; LANES])
    }
}

impl Deref for Lanes {
    type Target = [f32; LANES];

    fn deref(&self) -> &[f32; LANES] {
        &self.0
    }
}

impl DerefMut for Lanes {
    fn deref_mut(&mut self) -> &mut [f32; LANES] {
        &mut self.0
    }
}

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
                match &instruction.then {
                    Some(then) => execute_pair(instruction, then, slots),
                    None => execute(instruction, slots),
                }
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
        Operation::And => binary(instruction, slots, |a, b| {
            f32::from_bits(a.to_bits() & b.to_bits())
        }),
        Operation::Or => binary(instruction, slots, |a, b| {
            f32::from_bits(a.to_bits() | b.to_bits())
        }),
        Operation::Select => ternary(instruction, slots, blend),
        Operation::MultiplyAdd => ternary(instruction, slots, |a, b, c| a * b + c),
        Operation::SubtractProduct => ternary(instruction, slots, |a, b, c| c - a * b),
    }
}

/// Whether two operations, of which the second reads the first's result at a place, are done at
/// once.
pub(super) fn is_pair(first: Operation, second: Operation, place: usize) -> bool {
    use Operation as O;
    let is_truth = matches!(first, O::Less | O::IsFinite);
    let is_number = matches!(
        first,
        O::Absolute
            | O::Floor
            | O::Add
            | O::Subtract
            | O::Multiply
            | O::Divide
            | O::MultiplyAdd
            | O::SubtractProduct
            | O::Maximum
    );
    match second {
        O::Add
        | O::Subtract
        | O::Multiply
        | O::Divide
        | O::Minimum
        | O::Less
        | O::MultiplyAdd
        | O::SubtractProduct => is_number,
        O::Select => {
            if place == 0 {
                is_truth
            } else {
                is_number
            }
        }
        _ => false,
    }
}

#[inline(always)]
fn execute_pair(instruction: &Instruction, then: &Then<usize>, slots: &mut [Lanes]) {
    match instruction.operation {
        Operation::Absolute => after_one(instruction, then, slots, f32::abs),
        Operation::Floor => after_one(instruction, then, slots, f32::floor),
        Operation::IsFinite => {
            let [to, a, c, d] = slots
                .get_disjoint_mut([
                    instruction.to,
                    instruction.operands[0],
                    then.others[0],
                    then.others[1],
                ])
                .expect(APART);
            for lane in 0..LANES {
                to[lane] = blend(mask(a[lane].is_finite()), c[lane], d[lane]);
            }
        }
        Operation::Add => after_two(instruction, then, slots, |a, b| a + b),
        Operation::Subtract => after_two(instruction, then, slots, |a, b| a - b),
        Operation::Multiply => after_two(instruction, then, slots, |a, b| a * b),
        Operation::Divide => after_two(instruction, then, slots, |a, b| a / b),
        Operation::Maximum => after_two(instruction, then, slots, |a, b| if b > a { b } else { a }),
        Operation::Less => {
            let ([to, a, b], [c, d]) = (
                [
                    instruction.to,
                    instruction.operands[0],
                    instruction.operands[1],
                ],
                then.others,
            );
            let [to, a, b, c, d] = slots.get_disjoint_mut([to, a, b, c, d]).expect(APART);
            for lane in 0..LANES {
                to[lane] = blend(mask(a[lane] < b[lane]), c[lane], d[lane]);
            }
        }
        Operation::MultiplyAdd => after_three(instruction, then, slots, |a, b, c| a * b + c),
        Operation::SubtractProduct => after_three(instruction, then, slots, |a, b, c| c - a * b),
        _ => unreachable!("invariant: no such pair is scheduled"),
    }
}

/// Applies the second of two operations, given how it continues with one or with two more operands.
macro_rules! continued {
    ($then:expr, $with_one:ident, $with_two:ident) => {
        match ($then.operation, $then.place) {
            (Operation::Add, _) => $with_one!(|x: f32, d: f32| x + d),
            (Operation::Subtract, 0) => $with_one!(|x: f32, d: f32| x - d),
            (Operation::Subtract, _) => $with_one!(|x: f32, d: f32| d - x),
            (Operation::Multiply, _) => $with_one!(|x: f32, d: f32| x * d),
            (Operation::Divide, 0) => $with_one!(|x: f32, d: f32| x / d),
            (Operation::Divide, _) => $with_one!(|x: f32, d: f32| d / x),
            (Operation::Minimum, 0) => $with_one!(|x: f32, d: f32| if d < x { d } else { x }),
            (Operation::Minimum, _) => $with_one!(|x: f32, d: f32| if x < d { x } else { d }),
            (Operation::Less, 0) => $with_one!(|x: f32, d: f32| mask(x < d)),
            (Operation::Less, _) => $with_one!(|x: f32, d: f32| mask(d < x)),
            (Operation::MultiplyAdd, 0 | 1) => $with_two!(|x: f32, d: f32, e: f32| x * d + e),
            (Operation::MultiplyAdd, _) => $with_two!(|x: f32, d: f32, e: f32| d * e + x),
            (Operation::SubtractProduct, 0 | 1) => $with_two!(|x: f32, d: f32, e: f32| e - x * d),
            (Operation::SubtractProduct, _) => $with_two!(|x: f32, d: f32, e: f32| x - d * e),
            (Operation::Select, 1) => $with_two!(|x: f32, d: f32, e: f32| blend(d, x, e)),
            (Operation::Select, _) => $with_two!(|x: f32, d: f32, e: f32| blend(d, e, x)),
            _ => unreachable!("invariant: no such pair is scheduled"),
        }
    };
}

#[inline(always)]
fn after_one(
    instruction: &Instruction,
    then: &Then<usize>,
    slots: &mut [Lanes],
    first: impl Fn(f32) -> f32,
) {
    let (a, to, [d, e]) = (instruction.operands[0], instruction.to, then.others);
    macro_rules! with_one {
        ($second:expr) => {{
            let [to, a, d] = slots.get_disjoint_mut([to, a, d]).expect(APART);
            for lane in 0..LANES {
                to[lane] = $second(first(a[lane]), d[lane]);
            }
        }};
    }
    macro_rules! with_two {
        ($second:expr) => {{
            let [to, a, d, e] = slots.get_disjoint_mut([to, a, d, e]).expect(APART);
            for lane in 0..LANES {
                to[lane] = $second(first(a[lane]), d[lane], e[lane]);
            }
        }};
    }
    continued!(then, with_one, with_two);
}

#[inline(always)]
fn after_two(
    instruction: &Instruction,
    then: &Then<usize>,
    slots: &mut [Lanes],
    first: impl Fn(f32, f32) -> f32,
) {
    let ([a, b, _], to, [d, e]) = (instruction.operands, instruction.to, then.others);
    macro_rules! with_one {
        ($second:expr) => {{
            let [to, a, b, d] = slots.get_disjoint_mut([to, a, b, d]).expect(APART);
            for lane in 0..LANES {
                to[lane] = $second(first(a[lane], b[lane]), d[lane]);
            }
        }};
    }
    macro_rules! with_two {
        ($second:expr) => {{
            let [to, a, b, d, e] = slots.get_disjoint_mut([to, a, b, d, e]).expect(APART);
            for lane in 0..LANES {
                to[lane] = $second(first(a[lane], b[lane]), d[lane], e[lane]);
            }
        }};
    }
    continued!(then, with_one, with_two);
}

#[inline(always)]
fn after_three(
    instruction: &Instruction,
    then: &Then<usize>,
    slots: &mut [Lanes],
    first: impl Fn(f32, f32, f32) -> f32,
) {
    let ([a, b, c], to, [d, e]) = (instruction.operands, instruction.to, then.others);
    macro_rules! with_one {
        ($second:expr) => {{
            let [to, a, b, c, d] = slots.get_disjoint_mut([to, a, b, c, d]).expect(APART);
            for lane in 0..LANES {
                to[lane] = $second(first(a[lane], b[lane], c[lane]), d[lane]);
            }
        }};
    }
    macro_rules! with_two {
        ($second:expr) => {{
            let [to, a, b, c, d, e] = slots.get_disjoint_mut([to, a, b, c, d, e]).expect(APART);
            for lane in 0..LANES {
                to[lane] = $second(first(a[lane], b[lane], c[lane]), d[lane], e[lane]);
            }
        }};
    }
    continued!(then, with_one, with_two);
}

/// The operands are never the result, which lets the compiler use vectors.
const APART: &str = "invariant: a result has none of its operands' slots";

#[inline(always)]
fn unary(instruction: &Instruction, slots: &mut [Lanes], f: impl Fn(f32) -> f32) {
    let [to, a] = slots
        .get_disjoint_mut([instruction.to, instruction.operands[0]])
        .expect(APART);
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
    let [to, a, b, c] = slots
        .get_disjoint_mut([instruction.to, a, b, c])
        .expect(APART);
    for lane in 0..LANES {
        to[lane] = f(a[lane], b[lane], c[lane]);
    }
}

/// A function of an angle: without branches where all angles are near.
#[inline(always)]
fn angle(
    instruction: &Instruction,
    slots: &mut [Lanes],
    near: impl Fn(f32) -> f32,
    any: impl Fn(f32) -> f32,
) {
    if slots[instruction.operands[0]]
        .iter()
        .fold(true, |all, a| all & is_near(*a))
    {
        unary(instruction, slots, near)
    } else {
        unary(instruction, slots, any)
    }
}

#[inline(always)]
fn sine_and_cosine(instruction: &Instruction, slots: &mut [Lanes]) {
    let [a, cosine, _] = instruction.operands;
    let [sine, cosine, a] = slots
        .get_disjoint_mut([instruction.to, cosine, a])
        .expect(APART);
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

/// Calls a function with the number of columns as a constant where it is small: the compiler then
/// turns rows into columns in vectors. It returns how many rows it did.
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
    assert!(
        slots.len() <= width && rows.len() <= LANES * width,
        "{} columns of {} numbers in rows of {width}",
        slots.len(),
        rows.len()
    );
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
    assert!(
        rows.len() <= LANES * places.len(),
        "{} numbers in rows of {}",
        rows.len(),
        places.len()
    );
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
        let columns: [[f32; ROWS]; W] =
            std::array::from_fn(|column| std::array::from_fn(|row| rows[row][column]));
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
        let columns: [&[f32; ROWS]; W] = std::array::from_fn(|column| {
            slots[places[column]][block * ROWS..]
                .first_chunk()
                .expect("invariant: whole vectors")
        });
        *rows = std::array::from_fn(|row| std::array::from_fn(|column| columns[column][row]));
    }
    blocks.len() * ROWS
}
