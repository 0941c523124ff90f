//! Chains of elementwise operations as one kernel: one pass over memory, whatever the length.
//!
//! A chain is written down from the op table; its WGSL is generated, and its CPU form interprets it block by block, each step
//! a vectorised loop over 2,048 elements that stay in cache. Registers are reused as soon as a value is no longer needed.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::sync::Arc;

use super::elementwise::{Arity, OPS};
use super::native::{NativeCall, for_each_block, simd};
use super::{Kernel, Prelude};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// The most inputs: one binding is the output.
pub const MAX_INPUTS: usize = super::MAX_BINDINGS - 1;
/// Elements that the interpreter takes at once: 8 KiB.
const BLOCK: usize = 2048;
/// The step `a·b + c`, beyond the op table.
const MUL_ADD: usize = 255;

/// A value in a chain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Value(Source);

#[derive(Debug, Clone, Copy, PartialEq)]
enum Source {
    Input(usize),
    Constant(f32),
    Step(usize),
}

#[derive(Debug, Clone)]
struct Step {
    /// Place in the op table, or [`MUL_ADD`].
    op: usize,
    operands: Vec<Source>,
}

/// A chain under construction; [`PlanBuilder::chain`](crate::PlanBuilder::chain) records it.
///
/// # Example
/// ```
/// use tectum::{Chain, DType, Device, PlanBuilder};
/// let mut chain = Chain::new(2)?;
/// let (a, b, half) = (chain.input(0)?, chain.input(1)?, chain.constant(0.5)?);
/// let sum = chain.mul_add(a, half, b)?;
/// chain.op("relu", &[sum])?;
/// let mut plan = PlanBuilder::new("example");
/// let (x0, x1) = (plan.input("x0", DType::F32, 2), plan.input("x1", DType::F32, 2));
/// let y = plan.output("y", DType::F32, 2);
/// plan.chain(&chain, &[x0, x1], y)?;
/// let mut run = plan.finish()?.compile(&Device::open("cpu")?)?;
/// run.input::<f32>(x0).copy_from_slice(&[4.0, -8.0]);
/// run.input::<f32>(x1).copy_from_slice(&[1.0, 1.0]);
/// assert_eq!(run.run()?.launches, 1);
/// assert_eq!(run.output::<f32>(y), [3.0, 0.0]);
/// # Ok::<(), tectum::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Chain {
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
            return Ok(Self { inputs, steps: Vec::new() });
        }
        Err(Error::invalid(format!("chain: {inputs} inputs; 1 to {MAX_INPUTS} needed")))
    }

    /// An input's elements.
    ///
    /// # Errors
    /// `Invalid` if there is no such input.
    pub fn input(&self, index: usize) -> Result<Value> {
        if index < self.inputs { Ok(Value(Source::Input(index))) } else { Err(Error::invalid(format!("chain: input {index} of {}", self.inputs))) }
    }

    /// A constant.
    ///
    /// # Errors
    /// `Invalid` unless finite: WGSL has no other constants.
    pub fn constant(&self, value: f32) -> Result<Value> {
        if value.is_finite() { Ok(Value(Source::Constant(value))) } else { Err(Error::invalid(format!("chain: constant {value} is not finite"))) }
    }

    /// Adds an operation of the op table.
    ///
    /// # Errors
    /// `Invalid` for a name that is not in the table, another number of operands, or a value of another chain.
    pub fn op(&mut self, name: &str, operands: &[Value]) -> Result<Value> {
        let Some(op) = OPS.iter().position(|op| op.name == name) else {
            return Err(Error::invalid(format!("chain: no operation {name}")));
        };
        let needed = if OPS[op].arity == Arity::Unary { 1 } else { 2 };
        if operands.len() != needed {
            return Err(Error::invalid(format!("chain: {name} of {} operands, {needed} needed", operands.len())));
        }
        self.step(op, operands)
    }

    /// Adds `a·b + c`.
    ///
    /// # Numerics
    /// On the CPU the product is rounded and then the sum; a GPU may round once. The two differ by at most one rounding of
    /// the product.
    /// # Errors
    /// As [`Chain::op`].
    pub fn mul_add(&mut self, a: Value, b: Value, c: Value) -> Result<Value> {
        self.step(MUL_ADD, &[a, b, c])
    }

    fn step(&mut self, op: usize, operands: &[Value]) -> Result<Value> {
        let operands: Vec<Source> = operands.iter().map(|value| value.0).collect();
        let known = |source: &Source| match *source {
            Source::Input(index) => index < self.inputs,
            Source::Step(index) => index < self.steps.len(),
            Source::Constant(_) => true,
        };
        if !operands.iter().all(known) {
            return Err(Error::invalid("chain: an operand belongs to another chain"));
        }
        self.steps.push(Step { op, operands });
        Ok(Value(Source::Step(self.steps.len() - 1)))
    }

    /// Number of inputs.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The kernel that computes the last step.
    ///
    /// # Errors
    /// `Invalid` if there is no step, or a step before the last is never used.
    pub fn kernel(&self) -> Result<Arc<Kernel>> {
        let Some(last) = self.steps.len().checked_sub(1) else {
            return Err(Error::invalid("chain: no operation"));
        };
        let used = |index: usize| self.steps.iter().any(|step| step.operands.contains(&Source::Step(index)));
        if let Some(unused) = (0..last).find(|&index| !used(index)) {
            return Err(Error::invalid(format!("chain: step {unused}, {}, is never used", name(self.steps[unused].op))));
        }
        let names: Vec<_> = self.steps.iter().map(|step| name(step.op)).collect();
        const INPUTS: [&str; MAX_INPUTS] = ["x0", "x1", "x2", "x3", "x4", "x5", "x6"];
        let builder = Kernel::define(format!("chain_{}_f32", names.join("_"))).prelude(Prelude::Math);
        let builder = INPUTS[..self.inputs].iter().fold(builder, |builder, name| builder.read(name, DType::F32));
        builder.write("y", DType::F32).param("n", DType::U32).body(self.wgsl()).data(Arc::new(self.program())).native(interpret)
    }

    fn wgsl(&self) -> String {
        let mut body = String::new();
        for input in 0..self.inputs {
            let _ = writeln!(body, "        let s{input} = x{input}[i];");
        }
        for (index, step) in self.steps.iter().enumerate() {
            let expression = OPS.get(step.op).map_or("a * b + c", |op| op.wgsl);
            let _ = write!(body, "        var t{index} = 0.0;\n        {{");
            for (name, source) in ["a", "b", "c"].iter().zip(&step.operands) {
                let _ = match source {
                    Source::Input(input) => write!(body, " let {name} = s{input};"),
                    Source::Step(step) => write!(body, " let {name} = t{step};"),
                    Source::Constant(value) => write!(body, " let {name} = bitcast<f32>(0x{:08x}u);", value.to_bits()),
                };
            }
            let _ = writeln!(body, " t{index} = {expression}; }}");
        }
        let last = self.steps.len() - 1;
        format!(
            "
@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {{
    let stride = groups.x * 256u;
    for (var i = id.x; i < params.n; i += stride) {{
{body}        y[i] = t{last};
    }}
}}
"
        )
    }

    /// Number of inputs, number of registers, then eight words a step: op, target register, and three operands of two words,
    /// kind and index (of a constant its bits). The last step writes the output instead of its register.
    fn program(&self) -> Vec<u32> {
        let last_use = |index: usize| self.steps.iter().rposition(|step| step.operands.contains(&Source::Step(index)));
        let (mut words, mut register_of, mut free, mut registers) = (Vec::new(), Vec::new(), Vec::new(), 0u32);
        for (index, step) in self.steps.iter().enumerate() {
            // The target is taken before the operands' registers are given back: a step never writes what it reads.
            let target = free.pop().unwrap_or_else(|| {
                registers += 1;
                registers - 1
            });
            words.extend([step.op as u32, target]);
            for place in 0..3 {
                words.extend(match step.operands.get(place) {
                    None => [0, 0],
                    Some(Source::Input(input)) => [INPUT, *input as u32],
                    Some(Source::Constant(value)) => [CONSTANT, value.to_bits()],
                    Some(Source::Step(step)) => [REGISTER, register_of[*step]],
                });
            }
            register_of.push(target);
            let done = (0..index).filter(|&earlier| step.operands.contains(&Source::Step(earlier)) && last_use(earlier) == Some(index));
            free.extend(done.map(|earlier| register_of[earlier]));
        }
        [self.inputs as u32, registers].into_iter().chain(words).collect()
    }
}

fn name(op: usize) -> &'static str {
    OPS.get(op).map_or("mul_add", |op| op.name)
}

// What an operand of a program is: 0 none.
const INPUT: u32 = 1;
const CONSTANT: u32 = 2;
const REGISTER: u32 = 3;
/// Words of a step in a program.
const STEP_WORDS: usize = 8;

thread_local! {
    /// The interpreter's registers, then three blocks for constants, kept from launch to launch.
    static REGISTERS: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

fn interpret(call: &NativeCall<'_>) {
    let program = call.data::<Vec<u32>>();
    let (inputs, registers) = (program[0] as usize, program[1] as usize);
    let steps = program[2..].as_chunks::<STEP_WORDS>().0;
    let mut x: [&[f32]; MAX_INPUTS] = [&[]; MAX_INPUTS];
    x[..inputs].iter_mut().enumerate().for_each(|(index, x)| *x = call.read(index));
    let (y, n) = (call.write::<f32>(inputs), call.size(0));
    for_each_block(&mut y[..n], BLOCK, call.threads_for(n * (1 + steps.len() / 4)), |index, y| {
        REGISTERS.with_borrow_mut(|blocks| {
            while blocks.len() < registers + 3 {
                blocks.push(vec![0.0; BLOCK]);
            }
            let x = x.map(|x| x.get(index * BLOCK..).unwrap_or(&[]));
            let (last, before) = steps.split_last().expect("invariant: a chain has a step");
            for step in before {
                let target = step[1] as usize;
                let mut block = std::mem::take(&mut blocks[target]);
                run_step(step, &x, blocks, registers, &mut block[..y.len()]);
                blocks[target] = block;
            }
            run_step(last, &x, blocks, registers, y);
        });
    });
}

fn run_step(step: &[u32; STEP_WORDS], x: &[&[f32]; MAX_INPUTS], blocks: &mut [Vec<f32>], registers: usize, y: &mut [f32]) {
    let [op, _, operands @ ..] = *step;
    let (op, n) = (op as usize, y.len());
    let scalar_b = op != MUL_ADD && operands[2] == CONSTANT;
    // A constant is a block of it, but for the second operand of an operation of two.
    for place in 0..3 {
        if operands[2 * place] == CONSTANT {
            let len = if place == 1 && scalar_b { 1 } else { n };
            blocks[registers + place][..len].fill(f32::from_bits(operands[2 * place + 1]));
        }
    }
    let operand = |place: usize| -> &[f32] {
        let (kind, index) = (operands[2 * place], operands[2 * place + 1] as usize);
        match kind {
            INPUT => &x[index][..n],
            REGISTER => &blocks[index][..n],
            CONSTANT if place == 1 && scalar_b => &blocks[registers + place][..1],
            _ => &blocks[registers + place][..n],
        }
    };
    match OPS.get(op) {
        Some(row) if row.arity == Arity::Unary => NativeCall::on_slices(row.native[0], &[n as u32], &[operand(0)], y),
        Some(row) => {
            let b = operand(1);
            NativeCall::on_slices(row.native[0], &[n as u32, b.len() as u32], &[operand(0), b], y);
        }
        None => {
            let (a, b, c) = (operand(0), operand(1), operand(2));
            simd(
                #[inline(always)]
                || {
                    for (((y, &a), &b), &c) in y.iter_mut().zip(a).zip(b).zip(c) {
                        *y = a * b + c;
                    }
                },
            );
        }
    }
}
