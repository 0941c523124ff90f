//! Straight code: numbers computed one after another without branches, in f32, as WGSL for devices
//! and over [`LANES`] instances at once for the CPU.
//!
//! A [`Recorder`] is one more kind of [`Arithmetic`]: what computes with floats, computes with its
//! numbers, and so writes the code. Constants are folded in f64, equal expressions are one, and
//! what no result needs is left out.
//!
//! ```
//! use tectum_equations::code::{Lanes, Recorder};
//! use tectum_equations::{Arithmetic, BinaryOp};
//! let mut recorder = Recorder::default();
//! let x = recorder.input();
//! let two = recorder.constant(2.0);
//! let y = recorder.binary(BinaryOp::Multiply, &x, &two);
//! let code = recorder.finish(&[y]);
//! let mut slots = code.slots();
//! slots[0] = Lanes::of(1.5);
//! code.run(&mut slots);
//! assert_eq!(slots[code.results()[0]], Lanes::of(3.0));
//! assert_eq!(code.wgsl(), "    let v0 = i0 * 2.0f;\n");
//! ```

mod lanes;
mod schedule;

use std::collections::HashMap;
use std::f64::consts::{FRAC_PI_2, PI, TAU};
use std::fmt::Write;

pub use lanes::{LANES, Lanes, load_rows, store_rows};

use super::arithmetic::{Arithmetic, Floats};
use super::operation::{BinaryOp, Comparison, UnaryOp};

/// A number of recorded code.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Number {
    /// One that is known while recording.
    Constant(f64),
    /// One that the code computes, or an input.
    Value(Value),
}

/// A truth of recorded code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Truth {
    /// One that is known while recording.
    Constant(bool),
    /// One that the code computes.
    Value(Value),
}

/// A value among a recorder's definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value(u32);

/// What devices and lanes compute; the others are composed of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Operation {
    Negate,
    Absolute,
    Root,
    Sin,
    Cos,
    /// Both of one angle; only in finished code.
    SinCos,
    Exp,
    Log,
    Tanh,
    Floor,
    Add,
    Subtract,
    Multiply,
    Divide,
    Minimum,
    Maximum,
    Less,
    LessOrEqual,
    IsFinite,
    And,
    Or,
    Not,
    Select,
    /// a · b + c, with two roundings; only in finished code, as the next.
    MultiplyAdd,
    /// c − a · b.
    SubtractProduct,
}

impl Operation {
    fn operands(self) -> usize {
        match self {
            Self::Negate
            | Self::Absolute
            | Self::Root
            | Self::Sin
            | Self::Cos
            | Self::SinCos
            | Self::Exp
            | Self::Log
            | Self::Tanh => 1,
            Self::Floor | Self::IsFinite | Self::Not => 1,
            Self::Select | Self::MultiplyAdd | Self::SubtractProduct => 3,
            _ => 2,
        }
    }

    /// The expression of its operands.
    fn wgsl(self, [a, b, c]: [&str; 3]) -> String {
        match self {
            Self::Negate => format!("-{a}"),
            Self::Absolute => format!("abs({a})"),
            Self::Root => format!("sqrt({a})"),
            Self::Sin => format!("tectum_sin({a})"),
            Self::Cos => format!("tectum_cos({a})"),
            Self::SinCos | Self::MultiplyAdd | Self::SubtractProduct => {
                unreachable!("invariant: device code has them apart")
            }
            Self::Exp => format!("tectum_exp({a})"),
            Self::Log => format!("tectum_log({a})"),
            Self::Tanh => format!("tectum_tanh({a})"),
            Self::Floor => format!("floor({a})"),
            Self::Add => format!("{a} + {b}"),
            Self::Subtract => format!("{a} - {b}"),
            Self::Multiply => format!("{a} * {b}"),
            Self::Divide => format!("{a} / {b}"),
            Self::Minimum => format!("min({a}, {b})"),
            Self::Maximum => format!("max({a}, {b})"),
            Self::Less => format!("{a} < {b}"),
            Self::LessOrEqual => format!("{a} <= {b}"),
            // By its bits: devices may take comparisons of NaN as they like.
            Self::IsFinite => format!("(bitcast<u32>({a}) & 0x7fffffffu) < 0x7f800000u"),
            Self::And => format!("{a} && {b}"),
            Self::Or => format!("{a} || {b}"),
            Self::Not => format!("!{a}"),
            Self::Select => format!("select({c}, {b}, {a})"),
        }
    }
}

/// The definition of a value. Constants are the bits of f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Definition {
    Input(u32),
    Constant(u32),
    Apply(Operation, [Value; 3]),
}

/// Records code by computing with it. Its numbers and truths belong to it: those of another
/// recorder are other values here, or out of its range, which panics.
#[derive(Debug, Clone, Default)]
pub struct Recorder {
    definitions: Vec<Definition>,
    known: HashMap<Definition, Value>,
    inputs: u32,
}

/// Finished code.
#[derive(Debug, Clone)]
pub struct Code {
    /// Slots of constants, after those of inputs.
    constants: Vec<f32>,
    inputs: usize,
    slot_count: usize,
    instructions: Vec<Instruction>,
    results: Vec<usize>,
    wgsl: String,
    wgsl_results: Vec<String>,
}

/// An instruction over slots.
#[derive(Debug, Clone, Copy)]
struct Instruction {
    operation: Operation,
    /// Of `SinCos`: the angle, then where the cosine goes.
    operands: [usize; 3],
    then: Option<Then<usize>>,
    to: usize,
}

/// The only operation that needs a value, done at once with it.
#[derive(Debug, Clone, Copy)]
struct Then<Operand> {
    operation: Operation,
    /// Which of its operands the value is.
    place: usize,
    /// The others, in order.
    others: [Operand; 2],
}

/// atan(a)/a for a in [0, 1] as a polynomial of a², by our own fit: relative error at most
/// 1.6·10⁻⁸, in f32 arithmetic 2 ulp.
const ARCTANGENT: [f64; 9] = [
    0.999999984765674,
    -0.3333307334380135,
    0.19992619365214886,
    -0.14203644253789427,
    0.10640933185793476,
    -0.0750429274105905,
    0.04269149795436138,
    -0.01606861580568235,
    0.0028498863243337463,
];

impl Recorder {
    /// The next input.
    pub fn input(&mut self) -> Number {
        self.inputs += 1;
        Number::Value(self.define(Definition::Input(self.inputs - 1)))
    }

    /// The largest integer not above a number.
    pub fn floor(&mut self, a: &Number) -> Number {
        match *a {
            Number::Constant(value) => Number::Constant(value.floor()),
            Number::Value(_) => self.apply(Operation::Floor, [*a]),
        }
    }

    /// An angle in [−π, π).
    pub fn wrap_angle(&mut self, angle: &Number) -> Number {
        let turns = self.scaled(angle, 1.0 / TAU);
        let turns = self.add(&turns, &Number::Constant(0.5));
        let whole = self.floor(&turns);
        let whole = self.scaled(&whole, TAU);
        self.subtract(angle, &whole)
    }

    /// Whether a number is neither infinite nor NaN.
    pub fn is_finite(&mut self, a: &Number) -> Truth {
        match a {
            Number::Constant(value) => Truth::Constant(value.is_finite()),
            Number::Value(value) => Truth::Value(self.define_apply(Operation::IsFinite, &[*value])),
        }
    }

    /// 1 for true, 0 for false.
    pub fn flag(&mut self, a: &Truth) -> Number {
        self.select(a, &Number::Constant(1.0), &Number::Constant(0.0))
    }

    /// a + b.
    pub fn add(&mut self, a: &Number, b: &Number) -> Number {
        self.binary(BinaryOp::Add, a, b)
    }

    /// a − b.
    pub fn subtract(&mut self, a: &Number, b: &Number) -> Number {
        self.binary(BinaryOp::Subtract, a, b)
    }

    /// a · b.
    pub fn multiply(&mut self, a: &Number, b: &Number) -> Number {
        self.binary(BinaryOp::Multiply, a, b)
    }

    /// a times a constant.
    pub fn scaled(&mut self, a: &Number, factor: f64) -> Number {
        self.multiply(a, &Number::Constant(factor))
    }

    /// A number between two others.
    pub fn clamp(&mut self, a: &Number, [low, high]: [f64; 2]) -> Number {
        let above = self.binary(BinaryOp::Maximum, a, &Number::Constant(low));
        self.binary(BinaryOp::Minimum, &above, &Number::Constant(high))
    }

    fn define(&mut self, definition: Definition) -> Value {
        let next = Value(self.definitions.len() as u32);
        let value = *self.known.entry(definition).or_insert(next);
        if value == next {
            self.definitions.push(definition);
        }
        value
    }

    fn value(&mut self, number: Number) -> Value {
        match number {
            // −0 and 0 are one constant only if their bits are.
            Number::Constant(value) => self.define(Definition::Constant((value as f32).to_bits())),
            Number::Value(value) => value,
        }
    }

    fn apply<const N: usize>(&mut self, operation: Operation, operands: [Number; N]) -> Number {
        let values = operands.map(|number| self.value(number));
        Number::Value(self.define_apply(operation, &values))
    }

    fn define_apply(&mut self, operation: Operation, values: &[Value]) -> Value {
        let last = values[values.len() - 1];
        let mut operands = [last; 3];
        operands[..values.len()].copy_from_slice(values);
        self.define(Definition::Apply(operation, operands))
    }

    /// An integer power by squaring, as [`f64::powi`].
    fn integer_power(&mut self, base: &Number, exponent: u32) -> Number {
        let (mut result, mut square, mut rest) = (None, *base, exponent);
        loop {
            if rest & 1 == 1 {
                result = Some(match result {
                    Some(result) => self.multiply(&result, &square),
                    None => square,
                });
            }
            rest >>= 1;
            if rest == 0 {
                return result.unwrap_or(Number::Constant(1.0));
            }
            square = self.multiply(&square, &square);
        }
    }

    fn power(&mut self, base: &Number, exponent: f64) -> Number {
        if exponent.fract() == 0.0 && exponent.abs() <= 64.0 {
            let power = self.integer_power(base, exponent.abs() as u32);
            return if exponent < 0.0 {
                self.binary(BinaryOp::Divide, &Number::Constant(1.0), &power)
            } else {
                power
            };
        }
        if (2.0 * exponent).fract() == 0.0 && exponent.abs() <= 64.0 {
            let whole = self.power(base, exponent.trunc());
            let root = self.unary(UnaryOp::Sqrt, base);
            return if exponent < 0.0 {
                self.binary(BinaryOp::Divide, &whole, &root)
            } else {
                self.multiply(&whole, &root)
            };
        }
        let logarithm = self.unary(UnaryOp::Log, base);
        let scaled = self.scaled(&logarithm, exponent);
        self.unary(UnaryOp::Exp, &scaled)
    }

    /// The angle of (x, y): the arctangent of the smaller magnitude over the greater, put into its
    /// octant.
    fn angle_of(&mut self, y: &Number, x: &Number) -> Number {
        let [width, height] = [x, y].map(|side| self.unary(UnaryOp::Abs, side));
        let least = self.binary(BinaryOp::Minimum, &width, &height);
        let greatest = self.binary(BinaryOp::Maximum, &width, &height);
        let is_zero = self.compare(Comparison::LessOrEqual, &greatest, &Number::Constant(0.0));
        let divisor = self.select(&is_zero, &Number::Constant(1.0), &greatest);
        let ratio = self.binary(BinaryOp::Divide, &least, &divisor);
        let square = self.multiply(&ratio, &ratio);
        let mut sum = Number::Constant(ARCTANGENT[ARCTANGENT.len() - 1]);
        for coefficient in ARCTANGENT[..ARCTANGENT.len() - 1].iter().rev() {
            let product = self.multiply(&sum, &square);
            sum = self.add(&product, &Number::Constant(*coefficient));
        }
        let angle = self.multiply(&ratio, &sum);
        let is_steep = self.compare(Comparison::Greater, &height, &width);
        let from_steep = self.subtract(&Number::Constant(FRAC_PI_2), &angle);
        let angle = self.select(&is_steep, &from_steep, &angle);
        let is_behind = self.compare(Comparison::Less, x, &Number::Constant(0.0));
        let from_behind = self.subtract(&Number::Constant(PI), &angle);
        let angle = self.select(&is_behind, &from_behind, &angle);
        let is_below = self.compare(Comparison::Less, y, &Number::Constant(0.0));
        let below = self.unary(UnaryOp::Negate, &angle);
        self.select(&is_below, &below, &angle)
    }

    /// √(1 − a²).
    fn other_side(&mut self, a: &Number) -> Number {
        let less = self.subtract(&Number::Constant(1.0), a);
        let more = self.add(&Number::Constant(1.0), a);
        let square = self.multiply(&less, &more);
        self.unary(UnaryOp::Sqrt, &square)
    }

    /// The code that computes some numbers.
    pub fn finish(mut self, results: &[Number]) -> Code {
        let results: Vec<Value> = results.iter().map(|number| self.value(*number)).collect();
        let needed = self.needed(&results);
        let (wgsl, names) = self.write_wgsl(&needed);
        let mut code = Code {
            constants: Vec::new(),
            inputs: self.inputs as usize,
            slot_count: 0,
            instructions: Vec::new(),
            results: Vec::new(),
            wgsl,
            wgsl_results: results
                .iter()
                .map(|value| names[value.0 as usize].clone())
                .collect(),
        };
        self.assign_slots(&needed, &results, &mut code);
        code
    }

    fn needed(&self, results: &[Value]) -> Vec<bool> {
        let mut needed = vec![false; self.definitions.len()];
        results
            .iter()
            .for_each(|value| needed[value.0 as usize] = true);
        for place in (0..self.definitions.len()).rev() {
            if let (true, Definition::Apply(_, operands)) = (needed[place], self.definitions[place])
            {
                operands
                    .iter()
                    .for_each(|operand| needed[operand.0 as usize] = true);
            }
        }
        needed
    }

    /// The lines of code, and the name or literal of each value.
    fn write_wgsl(&self, needed: &[bool]) -> (String, Vec<String>) {
        let (mut text, mut next) = (String::new(), 0);
        let mut names: Vec<String> = Vec::with_capacity(needed.len());
        for (definition, needed) in self.definitions.iter().zip(needed) {
            names.push(match definition {
                Definition::Input(number) => format!("i{number}"),
                Definition::Constant(bits) => literal(f32::from_bits(*bits)),
                Definition::Apply(operation, operands) if *needed => {
                    let expression =
                        operation.wgsl(operands.map(|operand| names[operand.0 as usize].as_str()));
                    let _ = writeln!(text, "    let v{next} = {expression};");
                    next += 1;
                    format!("v{}", next - 1)
                }
                Definition::Apply(..) => String::new(),
            });
        }
        (text, names)
    }
}

/// A float as WGSL writes it.
fn literal(value: f32) -> String {
    match (value.is_nan(), value.is_infinite()) {
        (true, _) => "tectum_nan()".to_owned(),
        (_, true) if value > 0.0 => "tectum_inf()".to_owned(),
        (_, true) => "-tectum_inf()".to_owned(),
        // Negative literals are in parentheses, as operators precede them.
        _ if value.is_sign_negative() => format!("({value:?}f)"),
        _ => format!("{value:?}f"),
    }
}

impl Arithmetic for Recorder {
    type Value = Number;
    type Condition = Truth;

    fn constant(&mut self, value: f64) -> Number {
        Number::Constant(value)
    }

    fn unary(&mut self, op: UnaryOp, a: &Number) -> Number {
        if let Number::Constant(value) = a {
            return Number::Constant(Floats.unary(op, value));
        }
        match op {
            UnaryOp::Negate => self.apply(Operation::Negate, [*a]),
            UnaryOp::Sin => self.apply(Operation::Sin, [*a]),
            UnaryOp::Cos => self.apply(Operation::Cos, [*a]),
            UnaryOp::Tan => {
                let [sine, cosine] =
                    [Operation::Sin, Operation::Cos].map(|operation| self.apply(operation, [*a]));
                self.binary(BinaryOp::Divide, &sine, &cosine)
            }
            UnaryOp::Asin => {
                let side = self.other_side(a);
                self.angle_of(a, &side)
            }
            UnaryOp::Acos => {
                let side = self.other_side(a);
                self.angle_of(&side, a)
            }
            UnaryOp::Atan => self.angle_of(a, &Number::Constant(1.0)),
            UnaryOp::Exp => self.apply(Operation::Exp, [*a]),
            UnaryOp::Log => self.apply(Operation::Log, [*a]),
            UnaryOp::Sqrt => self.apply(Operation::Root, [*a]),
            UnaryOp::Tanh => self.apply(Operation::Tanh, [*a]),
            UnaryOp::Abs => self.apply(Operation::Absolute, [*a]),
            UnaryOp::Sign => {
                let zero = Number::Constant(0.0);
                let [is_above, is_below] =
                    [Comparison::Greater, Comparison::Less].map(|op| self.compare(op, a, &zero));
                let below = self.select(&is_below, &Number::Constant(-1.0), &zero);
                self.select(&is_above, &Number::Constant(1.0), &below)
            }
        }
    }

    fn binary(&mut self, op: BinaryOp, a: &Number, b: &Number) -> Number {
        let is = |number: &Number, value: f64| matches!(number, Number::Constant(constant) if *constant == value);
        match (op, a, b) {
            (_, Number::Constant(x), Number::Constant(y)) => {
                Number::Constant(Floats.binary(op, x, y))
            }
            (BinaryOp::Add | BinaryOp::Subtract, _, _) if is(b, 0.0) => *a,
            (BinaryOp::Add, _, _) if is(a, 0.0) => *b,
            (BinaryOp::Multiply | BinaryOp::Divide, _, _) if is(b, 1.0) => *a,
            (BinaryOp::Multiply, _, _) if is(a, 1.0) => *b,
            // One rounding more than a division, at a fraction of its time.
            (BinaryOp::Divide, _, Number::Constant(divisor)) => {
                self.apply(Operation::Multiply, [*a, Number::Constant(1.0 / divisor)])
            }
            (BinaryOp::Power, _, Number::Constant(exponent)) => self.power(a, *exponent),
            (BinaryOp::Add, ..) => self.apply(Operation::Add, [*a, *b]),
            (BinaryOp::Subtract, ..) => self.apply(Operation::Subtract, [*a, *b]),
            (BinaryOp::Multiply, ..) => self.apply(Operation::Multiply, [*a, *b]),
            (BinaryOp::Divide, ..) => self.apply(Operation::Divide, [*a, *b]),
            (BinaryOp::Power, ..) => {
                let logarithm = self.unary(UnaryOp::Log, a);
                let scaled = self.multiply(b, &logarithm);
                self.unary(UnaryOp::Exp, &scaled)
            }
            (BinaryOp::Atan2, ..) => self.angle_of(a, b),
            (BinaryOp::Minimum, ..) => self.apply(Operation::Minimum, [*a, *b]),
            (BinaryOp::Maximum, ..) => self.apply(Operation::Maximum, [*a, *b]),
        }
    }

    fn compare(&mut self, op: Comparison, a: &Number, b: &Number) -> Truth {
        if let (Number::Constant(x), Number::Constant(y)) = (a, b) {
            return Truth::Constant(Floats.compare(op, x, y));
        }
        let (operation, operands) = match op {
            Comparison::Less => (Operation::Less, [*a, *b]),
            Comparison::LessOrEqual => (Operation::LessOrEqual, [*a, *b]),
            Comparison::Greater => (Operation::Less, [*b, *a]),
            Comparison::GreaterOrEqual => (Operation::LessOrEqual, [*b, *a]),
        };
        let values = operands.map(|number| self.value(number));
        Truth::Value(self.define_apply(operation, &values))
    }

    fn and(&mut self, a: &Truth, b: &Truth) -> Truth {
        match (a, b) {
            (Truth::Constant(false), _) | (_, Truth::Constant(false)) => Truth::Constant(false),
            (Truth::Constant(true), other) | (other, Truth::Constant(true)) => *other,
            (Truth::Value(a), Truth::Value(b)) => {
                Truth::Value(self.define_apply(Operation::And, &[*a, *b]))
            }
        }
    }

    fn or(&mut self, a: &Truth, b: &Truth) -> Truth {
        match (a, b) {
            (Truth::Constant(true), _) | (_, Truth::Constant(true)) => Truth::Constant(true),
            (Truth::Constant(false), other) | (other, Truth::Constant(false)) => *other,
            (Truth::Value(a), Truth::Value(b)) => {
                Truth::Value(self.define_apply(Operation::Or, &[*a, *b]))
            }
        }
    }

    fn not(&mut self, a: &Truth) -> Truth {
        match a {
            Truth::Constant(value) => Truth::Constant(!value),
            Truth::Value(value) => Truth::Value(self.define_apply(Operation::Not, &[*value])),
        }
    }

    fn select(&mut self, condition: &Truth, a: &Number, b: &Number) -> Number {
        match condition {
            Truth::Constant(true) => *a,
            Truth::Constant(false) => *b,
            Truth::Value(_) if a == b => *a,
            Truth::Value(condition) => {
                // Different constants may be one in f32.
                let [a, b] = [a, b].map(|number| self.value(*number));
                Number::Value(if a == b {
                    a
                } else {
                    self.define_apply(Operation::Select, &[*condition, a, b])
                })
            }
        }
    }
}

impl Code {
    /// The lines that define `v0`, `v1`, … from inputs named `i0`, `i1`, …; they call functions of
    /// [`Prelude::Math`](tectum::Prelude::Math).
    pub fn wgsl(&self) -> &str {
        &self.wgsl
    }

    /// The name or literal of each result after those lines.
    pub fn wgsl_results(&self) -> &[String] {
        &self.wgsl_results
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The slot of each result after [`Code::run`].
    pub fn results(&self) -> &[usize] {
        &self.results
    }

    /// Operations of an instance: one for each of arithmetic, twenty for each function.
    pub fn operations(&self) -> usize {
        let cost = |operation: Operation| match operation {
            Operation::Sin | Operation::Cos | Operation::Exp | Operation::Log | Operation::Tanh => {
                20
            }
            Operation::SinCos => 30,
            Operation::Divide | Operation::Root => 4,
            _ => 1,
        };
        self.instructions
            .iter()
            .map(|instruction| {
                cost(instruction.operation)
                    + instruction.then.map_or(0, |then| cost(then.operation))
            })
            .sum()
    }

    /// The slots of a block of instances: inputs first, 0 at the beginning, then constants and what
    /// is computed.
    pub fn slots(&self) -> Vec<Lanes> {
        let mut slots = vec![Lanes::of(0.0); self.slot_count];
        for (slot, value) in slots[self.inputs..].iter_mut().zip(&self.constants) {
            slot.fill(*value);
        }
        slots
    }

    /// Computes a block of instances from the inputs in its slots; inputs and constants stay.
    ///
    /// # Panics
    /// If the slots are not this code's.
    pub fn run(&self, slots: &mut [Lanes]) {
        assert_eq!(slots.len(), self.slot_count, "slots of this code");
        lanes::run(&self.instructions, slots);
    }
}
