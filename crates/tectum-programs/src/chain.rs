//! Chains of elementwise operations as one program: one pass over memory for any length.

use tectum::internal::Identity;
use tectum::kernel::{MAX_BINDINGS, WORKGROUP};
use tectum::operation::elementwise::{Arity, OPS, Op};
use tectum::{Error, PlanBuilder, Result, View};

use super::bounds::Bounds;
use super::{
    Address, BinaryOp, BufferAccess, BufferIndex, Checked, Condition, Instruction, LaunchConfig,
    Predicate, ProgramBuilder, ProgramView, Register, TernaryOp, Type, UnaryOp,
};

/// Maximum inputs: one binding is the output.
pub const MAX_INPUTS: usize = MAX_BINDINGS - 1;
/// Registers for values; those above are temporaries of one step.
const VALUES: u8 = 240;
const SCRATCH: Register = Register(VALUES);

/// A value in a chain; another chain refuses it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value {
    source: ValueSource,
    chain: Identity,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum ValueSource {
    Input(usize),
    Constant(f32),
    Step(usize),
}

#[derive(Debug, Clone)]
struct Step {
    /// A name of the op table, or `mul_add`.
    name: &'static str,
    operands: Vec<ValueSource>,
}

/// A chain under construction; [`Chain::record`] records it.
///
/// # Example
/// ```
/// use tectum_programs::Chain;
/// use tectum::{DType, Device, PlanBuilder};
/// let mut chain = Chain::new(2)?;
/// let (a, b, half) = (chain.input(0)?, chain.input(1)?, chain.constant(0.5)?);
/// let sum = chain.mul_add(a, half, b)?;
/// chain.op("relu", &[sum])?;
/// let mut plan = PlanBuilder::new("example");
/// let (x0, x1) = (plan.input("x0", DType::F32, 2), plan.input("x1", DType::F32, 2));
/// let y = plan.output("y", DType::F32, 2);
/// chain.record(&mut plan, &[x0, x1], y)?;
/// let mut run = plan.finish()?.compile(&Device::open("cpu")?)?;
/// run.input::<f32>(x0).copy_from_slice(&[4.0, -8.0]);
/// run.input::<f32>(x1).copy_from_slice(&[1.0, 1.0]);
/// assert_eq!(run.run()?.launches, 1);
/// assert_eq!(run.output::<f32>(y), [3.0, 0.0]);
/// # Ok::<(), tectum::Error>(())
/// ```
#[derive(Debug)]
pub struct Chain {
    id: Identity,
    inputs: usize,
    steps: Vec<Step>,
}

impl Chain {
    /// Starts a chain over a number of inputs of one length.
    ///
    /// # Errors
    /// `Invalid` unless there are 1 to [`MAX_INPUTS`].
    pub fn new(inputs: usize) -> Result<Self> {
        if (1..=MAX_INPUTS).contains(&inputs) {
            return Ok(Self {
                id: Identity::next(),
                inputs,
                steps: Vec::new(),
            });
        }
        Err(Error::invalid(format!(
            "chain: {inputs} inputs; 1 to {MAX_INPUTS} needed"
        )))
    }

    /// An input's elements.
    ///
    /// # Errors
    /// `Invalid` if there is no such input.
    pub fn input(&self, index: usize) -> Result<Value> {
        if index < self.inputs {
            Ok(self.value(ValueSource::Input(index)))
        } else {
            Err(Error::invalid(format!(
                "chain: input {index} of {}",
                self.inputs
            )))
        }
    }

    /// A constant.
    ///
    /// # Errors
    /// `Invalid` unless finite: device code may not preserve other values.
    pub fn constant(&self, value: f32) -> Result<Value> {
        if value.is_finite() {
            Ok(self.value(ValueSource::Constant(value)))
        } else {
            Err(Error::invalid(format!(
                "chain: constant {value} is not finite"
            )))
        }
    }

    /// Whether chains have an operation of the op table: the program language has those of most
    /// names only.
    pub fn has(name: &str) -> bool {
        operation(name).is_some()
    }

    /// Adds an operation of the op table.
    ///
    /// # Errors
    /// `Invalid` for a name that is not in the table or not in chains ([`Chain::has`]), a wrong
    /// number of operands, or a value of another chain.
    pub fn op(&mut self, name: &str, operands: &[Value]) -> Result<Value> {
        let Some(op) = operation(name) else {
            return Err(Error::invalid(format!("chain: no operation {name}")));
        };
        let needed = if op.arity == Arity::Unary { 1 } else { 2 };
        if operands.len() != needed {
            return Err(Error::invalid(format!(
                "chain: {name} of {} operands, {needed} needed",
                operands.len()
            )));
        }
        self.step(op.name, operands)
    }

    /// Adds `a·b + c`, the product rounded first.
    ///
    /// # Errors
    /// As [`Chain::op`].
    pub fn mul_add(&mut self, a: Value, b: Value, c: Value) -> Result<Value> {
        self.step("mul_add", &[a, b, c])
    }

    fn step(&mut self, name: &'static str, operands: &[Value]) -> Result<Value> {
        if let Some(place) = operands.iter().position(|value| value.chain != self.id) {
            return Err(Error::invalid(format!(
                "chain: {name}: operand {place} is of another chain"
            )));
        }
        self.steps.push(Step {
            name,
            operands: operands.iter().map(|value| value.source).collect(),
        });
        Ok(self.value(ValueSource::Step(self.steps.len() - 1)))
    }

    fn value(&self, source: ValueSource) -> Value {
        Value {
            source,
            chain: self.id,
        }
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The program that stores the last step: buffers `x0`, `x1` … and `y`, a lane for each
    /// element.
    ///
    /// # Errors
    /// `Invalid` if there is no step, a step before the last is never used, or more values than
    /// registers are live at the same time.
    pub fn program(&self) -> Result<Checked> {
        let Some(last) = self.steps.len().checked_sub(1) else {
            return Err(Error::invalid("chain: no operation"));
        };
        let last_use = |source: ValueSource| {
            self.steps
                .iter()
                .rposition(|step| step.operands.contains(&source))
        };
        if let Some(unused) = (0..last).find(|&index| last_use(ValueSource::Step(index)).is_none())
        {
            return Err(Error::invalid(format!(
                "chain: step {unused}, {}, is never used",
                self.steps[unused].name
            )));
        }
        let names: Vec<_> = self.steps.iter().map(|step| step.name).collect();
        let mut builder = ProgramBuilder::new(format!(
            "chain_{}",
            names.join("_").chars().take(200).collect::<String>()
        ));
        let buffers: Vec<BufferIndex> = (0..self.inputs)
            .map(|index| builder.buffer(format!("x{index}"), Type::F32, BufferAccess::Read))
            .collect();
        let y = builder.buffer("y", Type::F32, BufferAccess::Write);
        let mut registers = Registers {
            held: Vec::new(),
            free: (0..VALUES).rev().map(Register).collect(),
        };
        for (index, step) in self.steps.iter().enumerate() {
            let mut operands = [SCRATCH; 3];
            for (register, &source) in operands.iter_mut().zip(&step.operands) {
                *register = match (registers.of(source), source) {
                    (Some(known), _) => known,
                    (None, ValueSource::Input(input)) => {
                        let register = registers.take(source)?;
                        builder.load(
                            Type::F32,
                            register,
                            Address::Own {
                                buffer: buffers[input],
                            },
                        );
                        register
                    }
                    (None, ValueSource::Constant(value)) => {
                        let register = registers.take(source)?;
                        builder.immediate_f32(register, value);
                        register
                    }
                    (None, ValueSource::Step(_)) => {
                        unreachable!("invariant: a step's value is held until its last use")
                    }
                };
            }
            // A constant keeps its register: an instruction that is its only writer runs once, not
            // once per chunk.
            registers.release(|source| {
                !matches!(source, ValueSource::Constant(_)) && last_use(source) == Some(index)
            });
            let result = registers.take(ValueSource::Step(index))?;
            emit(&mut builder, step.name, result, operands);
        }
        builder.store(
            Type::F32,
            Address::Own { buffer: y },
            registers.of(ValueSource::Step(last)).unwrap_or(SCRATCH),
        );
        builder.finish()?.check()
    }
}

/// Operations of the table that are several instructions.
const WRITTEN_OUT: [&str; 8] = [
    "square",
    "reciprocal",
    "relu6",
    "hard_sigmoid",
    "hard_swish",
    "tanh_grad",
    "sigmoid_grad",
    "relu_grad",
];

/// An operation of the table that is an instruction or is written out.
fn operation(name: &str) -> Option<&'static Op> {
    let is_known = BinaryOp::from_name(name).is_some()
        || UnaryOp::from_name(name).is_some()
        || WRITTEN_OUT.contains(&name);
    OPS.iter().find(|op| op.name == name && is_known)
}

/// Which registers hold which values.
struct Registers {
    held: Vec<(ValueSource, Register)>,
    free: Vec<Register>,
}

impl Registers {
    fn of(&self, source: ValueSource) -> Option<Register> {
        self.held
            .iter()
            .find(|(held, _)| *held == source)
            .map(|(_, register)| *register)
    }

    fn take(&mut self, source: ValueSource) -> Result<Register> {
        let register = self
            .free
            .pop()
            .ok_or_else(|| Error::invalid(format!("chain: more than {VALUES} values at once")))?;
        self.held.push((source, register));
        Ok(register)
    }

    fn release(&mut self, is_done: impl Fn(ValueSource) -> bool) {
        let (done, held) = std::mem::take(&mut self.held)
            .into_iter()
            .partition(|(source, _)| is_done(*source));
        self.held = held;
        self.free.extend(
            done.into_iter()
                .map(|(_, register): (ValueSource, Register)| register),
        );
    }
}

/// One operation of the table; `result` may be one of the operands' registers.
fn emit(builder: &mut ProgramBuilder, name: &str, result: Register, [a, b, c]: [Register; 3]) {
    const TY: Type = Type::F32;
    match name {
        "mul_add" => builder.ternary(TernaryOp::Mad, TY, result, [a, b, c]),
        "square" => builder.binary(BinaryOp::Mul, TY, result, a, a),
        "reciprocal" => {
            builder.immediate_f32(SCRATCH, 1.0);
            builder.binary(BinaryOp::Div, TY, result, SCRATCH, a)
        }
        "relu6" => {
            builder.unary(UnaryOp::Relu, TY, result, a);
            builder.immediate_f32(SCRATCH, 6.0);
            builder.binary(BinaryOp::Min, TY, result, result, SCRATCH)
        }
        "hard_sigmoid" | "hard_swish" => {
            let ramp = Register(VALUES + 1);
            builder.immediate_f32(SCRATCH, 3.0);
            builder.binary(BinaryOp::Add, TY, ramp, a, SCRATCH);
            emit(builder, "relu6", ramp, [ramp; 3]);
            builder.immediate_f32(SCRATCH, 1.0 / 6.0);
            builder.binary(
                BinaryOp::Mul,
                TY,
                if name == "hard_swish" { ramp } else { result },
                ramp,
                SCRATCH,
            );
            if name == "hard_swish" {
                builder.binary(BinaryOp::Mul, TY, result, a, ramp);
            }
            builder
        }
        "tanh_grad" => {
            let square = Register(VALUES + 1);
            builder.immediate_f32(SCRATCH, 1.0);
            builder.binary(BinaryOp::Mul, TY, square, a, a);
            builder.binary(BinaryOp::Sub, TY, SCRATCH, SCRATCH, square);
            builder.binary(BinaryOp::Mul, TY, result, b, SCRATCH)
        }
        "sigmoid_grad" => {
            builder.immediate_f32(SCRATCH, 1.0);
            builder.binary(BinaryOp::Sub, TY, SCRATCH, SCRATCH, a);
            builder.binary(BinaryOp::Mul, TY, SCRATCH, a, SCRATCH);
            builder.binary(BinaryOp::Mul, TY, result, b, SCRATCH)
        }
        "relu_grad" => {
            builder.immediate_f32(SCRATCH, 0.0);
            builder.compare(Condition::Gt, TY, Predicate(0), a, SCRATCH);
            builder.push(Instruction::Select {
                ty: TY,
                dst: result,
                predicate: Predicate(0),
                on_true: b,
                on_false: SCRATCH,
            })
        }
        _ => match (BinaryOp::from_name(name), UnaryOp::from_name(name)) {
            (Some(op), _) => builder.binary(op, TY, result, a, b),
            (None, Some(op)) => builder.unary(op, TY, result, a),
            (None, None) => unreachable!(
                "invariant: every operation of a chain is an instruction or is written out above"
            ),
        },
    };
}

impl Chain {
    /// Records its last value in a plan, over `inputs` as one launch.
    ///
    /// # Shapes
    /// Every input and `y` \[n\].
    /// # Numerics
    /// Each operation as on its own.
    /// # Errors
    /// `Invalid` if the number of inputs or the lengths do not fit or the chain is incomplete; as
    /// [`Checked::record`](crate::Checked::record).
    /// # Cost
    /// Each input is read once and `y` written once.
    pub fn record(&self, plan: &mut PlanBuilder, inputs: &[View], y: View) -> Result<()> {
        let program = self.program()?;
        if inputs.len() != self.inputs() || inputs.iter().any(|x| x.len() != y.len()) {
            let lengths: Vec<_> = inputs.iter().map(View::len).collect();
            return Err(Error::invalid(format!(
                "chain: inputs of {lengths:?} elements, {} of y's {} needed",
                self.inputs(),
                y.len()
            )));
        }
        let lanes = u32::try_from(y.len()).map_err(|_| {
            Error::invalid(format!(
                "chain: {} elements, the maximum is {}",
                y.len(),
                u32::MAX
            ))
        })?;
        let views: Vec<ProgramView> = inputs
            .iter()
            .copied()
            .chain([y])
            .map(ProgramView::from)
            .collect();
        program.record(
            plan,
            &LaunchConfig::linear(lanes, WORKGROUP),
            &views,
            Bounds::Proven,
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each operation of a chain is the program of its own instruction, or is expanded; these
    /// operations of the table have none.
    #[test]
    fn every_operation_of_a_chain_becomes_a_program() {
        let left_out: Vec<&str> = OPS
            .iter()
            .map(|op| op.name)
            .filter(|name| !Chain::has(name))
            .collect();
        assert_eq!(
            left_out,
            [
                "pow", "fmod", "mod", "elu", "sign", "asin", "acos", "atan", "sinh", "cosh",
                "asinh", "acosh", "atanh"
            ]
        );
        for op in OPS.iter().filter(|op| Chain::has(op.name)) {
            let mut chain = Chain::new(2).expect("two inputs");
            let values: Vec<Value> = (0..if op.arity == Arity::Unary { 1 } else { 2 })
                .map(|index| chain.input(index).expect("an input"))
                .collect();
            chain
                .op(op.name, &values)
                .expect("an operation of the table");
            let program = chain
                .program()
                .unwrap_or_else(|error| panic!("{}: {error}", op.name));
            assert!(program.program().instructions().len() >= 3, "{}", op.name);
        }
    }

    #[test]
    fn a_chain_that_is_not_whole_is_refused() {
        let mut chain = Chain::new(1).expect("one input");
        assert!(chain.program().is_err());
        let x = chain.input(0).expect("the input");
        chain.op("neg", &[x]).expect("a step");
        chain.op("abs", &[x]).expect("a step");
        assert!(
            chain
                .program()
                .expect_err("unused")
                .to_string()
                .contains("step 0, neg, is never used")
        );
        assert!(
            chain.op("add", &[x]).is_err()
                && chain.op("nothing", &[x]).is_err()
                && chain.input(1).is_err()
                && chain.constant(f32::NAN).is_err()
        );
    }
}
