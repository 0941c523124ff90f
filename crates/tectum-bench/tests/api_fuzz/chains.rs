//! Chains of operations: built step by step with own and foreign values, complete and incomplete,
//! recorded as one launch.

use std::rc::Rc;

use tectum::operation::elementwise::{Arity, OPS};
use tectum::{DType, ErrorKind};
use tectum_programs::{Chain, Value};

use super::memory::Seen;
use super::numbers::element;
use super::operation::{Operation, reads, unless, writes};
use super::world::World;

/// Maximum inputs: a kernel has 8 bindings, of which one is the output.
const MAX_INPUTS: usize = 7;
/// Rounds a float64 result to the nearest f32.
const EXACT: [&str; 8] = ["add", "sub", "mul", "min", "max", "neg", "abs", "relu"];

/// A chain with its model.
struct Drawn {
    chain: Chain,
    inputs: usize,
    /// Constants among the values, which come after the inputs.
    constants: Vec<f32>,
    /// Each step by name with the indices of its operands.
    steps: Vec<(&'static str, Vec<usize>)>,
    values: Vec<Value>,
}

impl Drawn {
    /// Whether every step except the last is used.
    fn is_whole(&self) -> bool {
        let first = self.inputs + self.constants.len();
        let is_used = |step: usize| {
            self.steps
                .iter()
                .any(|(_, operands)| operands.contains(&(first + step)))
        };
        (0..self.steps.len().saturating_sub(1)).all(is_used) && !self.steps.is_empty()
    }
}

/// A mistake that a chain must refuse without change.
fn refuses<T>(world: &mut World, text: &str, result: tectum::Result<T>) {
    world.note(text);
    let kind = result.err().map(|error| error.kind());
    assert_eq!(kind, Some(ErrorKind::Invalid), "{text}");
}

fn drawn(world: &mut World) -> Drawn {
    let none = if world.chance(2) {
        0
    } else {
        world.extreme().max(MAX_INPUTS + 1)
    };
    refuses(world, &format!("Chain::new {none}"), Chain::new(none));
    let inputs = if world.chance(10) {
        MAX_INPUTS
    } else {
        1 + world.below(3)
    };
    world.note(format!("Chain::new {inputs}"));
    let mut chain = Chain::new(inputs).expect("1 to 7 inputs");
    let mut values: Vec<Value> = (0..inputs)
        .map(|index| chain.input(index).expect("an input"))
        .collect();
    let constants: Vec<f32> = (0..world.below(3))
        .map(|_| world.random.below(33) as f32 / 4.0 - 4.0)
        .collect();
    values.extend(
        constants
            .iter()
            .map(|constant| chain.constant(*constant).expect("finite")),
    );
    if world.chance(4) {
        mistakes(world, &mut chain, values[0]);
    }
    let mut drawn = Drawn {
        chain,
        inputs,
        constants,
        steps: Vec::new(),
        values,
    };
    let is_loose = world.chance(20);
    let count = if world.chance(30) {
        0
    } else {
        1 + world.below(5)
    };
    for step in 0..count {
        // Any operation of the table may come last.
        let named = OPS[world.below(OPS.len())].name;
        let name = if step + 1 == count && Chain::has(named) && world.chance(3) {
            named
        } else {
            world.random.pick(&EXACT)
        };
        add_step(world, &mut drawn, name, is_loose);
    }
    drawn
}

/// A step whose first operand is the previous step, so that the chain is complete, unless it is
/// loose.
fn add_step(world: &mut World, drawn: &mut Drawn, name: &'static str, is_loose: bool) {
    let count = drawn.values.len();
    let first = if drawn.steps.is_empty() || is_loose {
        world.below(count)
    } else {
        count - 1
    };
    let is_sum = name == "add" && world.chance(3);
    let arity = match OPS.iter().find(|op| op.name == name).map(|op| op.arity) {
        _ if is_sum => 3,
        Some(Arity::Unary) => 1,
        _ => 2,
    };
    let operands: Vec<usize> = (0..arity)
        .map(|place| {
            if place == 0 {
                first
            } else {
                world.below(count)
            }
        })
        .collect();
    let given: Vec<Value> = operands.iter().map(|place| drawn.values[*place]).collect();
    let name = if is_sum { "mul_add" } else { name };
    world.note(format!("Chain: {name} {operands:?}"));
    let value = if is_sum {
        drawn.chain.mul_add(given[0], given[1], given[2])
    } else {
        drawn.chain.op(name, &given)
    };
    drawn.values.push(value.expect("values of this chain"));
    drawn.steps.push((name, operands));
}

fn mistakes(world: &mut World, chain: &mut Chain, own: Value) {
    let other = Chain::new(1).expect("one input");
    let foreign = other.input(0).expect("the input");
    let inputs = chain.inputs();
    let beyond = if world.chance(2) {
        inputs
    } else {
        world.extreme().max(inputs)
    };
    refuses(
        world,
        "Chain: an input that it does not have",
        chain.input(beyond),
    );
    let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY][inputs % 3];
    refuses(
        world,
        "Chain: a constant that is not finite",
        chain.constant(odd),
    );
    refuses(
        world,
        "Chain: no such operation",
        chain.op("nothing", &[own]),
    );
    refuses(world, "Chain: an operand too few", chain.op("add", &[own]));
    refuses(
        world,
        "Chain: an operand too many",
        chain.op("neg", &[own, own]),
    );
    refuses(
        world,
        "Chain: a foreign operand",
        chain.op("add", &[own, foreign]),
    );
    refuses(
        world,
        "Chain: a foreign term",
        chain.mul_add(own, own, foreign),
    );
}

pub fn draw(world: &mut World, plan: usize) -> Operation {
    let drawn = drawn(world);
    let inputs = drawn.inputs;
    let len = 1 + world.below(300);
    let views: Vec<Seen> = (0..inputs)
        .map(|_| world.source(plan, DType::F32, len))
        .collect();
    let y = world.target(plan, DType::F32, len);
    let is_whole = drawn.is_whole();
    world.note("Chain: inputs, program");
    assert_eq!(
        (drawn.chain.inputs(), drawn.chain.program().is_ok()),
        (inputs, is_whole),
        "{:?}",
        drawn.steps
    );
    let Drawn {
        chain,
        constants,
        steps,
        ..
    } = drawn;
    let given: Vec<tectum::View> = views.iter().map(|seen| seen.view).collect();
    let count = if world.chance(20) { inputs - 1 } else { inputs };
    let fits = is_whole
        && count == inputs
        && views.iter().all(|seen| seen.len == y.len)
        && u32::try_from(y.len).is_ok();
    // Inputs that no step reads are still bound.
    let launch = views
        .iter()
        .map(|seen| reads(seen.as_words(), DType::U32))
        .chain([writes(y.as_words(), DType::U32)])
        .collect();
    let wide = views.iter().chain([&y]).any(|seen| seen.dtype.bytes() != 4);
    let known = views.clone();
    Operation {
        text: format!(
            "chain {steps:?} of {constants:?} over {:?} {y}",
            views.iter().map(Seen::to_string).collect::<Vec<_>>()
        ),
        refused: unless(fits && (!wide || y.len == 0)),
        launches: if y.len == 0 { vec![] } else { vec![launch] },
        given: views.into_iter().chain([y]).collect(),
        record: Box::new(move |plan| chain.record(plan, &given[..count], y.view)),
        step: Rc::new(move |space| {
            let inputs: Vec<Vec<Option<f64>>> = known
                .iter()
                .map(|seen| {
                    space.numbers(&Seen {
                        dtype: DType::F32,
                        ..*seen
                    })
                })
                .collect();
            let one = |place: usize| {
                let read = |input: &Vec<Option<f64>>| {
                    input[place].filter(|x| x.is_finite() && x.abs() < 100.0)
                };
                let mut values: Vec<f64> = inputs.iter().map(read).collect::<Option<_>>()?;
                values.extend(constants.iter().copied().map(f64::from));
                computed(&steps, values)
            };
            space.put_numbers(
                &Seen {
                    dtype: DType::F32,
                    ..y
                },
                (0..y.len).map(one).collect::<Vec<_>>(),
            );
        }),
    }
}

/// The last step's value with its bound; each step is rounded separately.
fn computed(steps: &[(&'static str, Vec<usize>)], mut values: Vec<f64>) -> Option<(f64, f64)> {
    let mut bound = 0.0;
    for (name, operands) in steps {
        let given: Vec<f64> = operands.iter().map(|place| values[*place]).collect();
        let second = given.get(1).copied().unwrap_or(0.0);
        let value = match OPS.iter().find(|op| op.name == *name) {
            None => f64::from((given[0] * second) as f32) + given[2],
            Some(op) if EXACT.contains(name) => (op.reference)(given[0], second),
            Some(op) => {
                let (value, slack) = element(op, DType::F32, given[0], second)?;
                bound = slack;
                value
            }
        };
        values.push(if bound == 0.0 {
            f64::from(value as f32)
        } else {
            value
        });
    }
    values.last().map(|value| (*value, bound))
}
