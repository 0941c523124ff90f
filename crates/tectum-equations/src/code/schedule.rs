//! The order in which lanes compute, and the slots of values.
//!
//! An instruction costs as much for its dispatch and for the slots that it reads and writes as for
//! its arithmetic. So sine and cosine of an angle are one, a product and its sum are one, and a
//! value that only one other operation needs is computed with that operation.

use std::collections::HashMap;

use super::{Code, Definition, Instruction, Operation, Recorder, Then, Value};

/// A definition in the order of lanes; of sine and cosine, both.
struct Scheduled {
    operation: Operation,
    operands: [Value; 3],
    then: Option<Then<Value>>,
    to: Value,
    cosine: Option<Value>,
}

impl Scheduled {
    /// The values that it reads, each once.
    fn reads(&self) -> impl Iterator<Item = Value> + '_ {
        let others = self
            .then
            .iter()
            .flat_map(|then| then.others[..then.operation.operands() - 1].iter());
        self.operands[..self.operation.operands()]
            .iter()
            .chain(others)
            .copied()
    }
}

/// An operation with its operands.
type Applied = (Operation, [Value; 3]);

impl Recorder {
    /// Gives values slots: inputs and constants their own, the others those that nothing needs any
    /// more.
    pub(super) fn assign_slots(&self, needed: &[bool], results: &[Value], code: &mut Code) {
        let schedule = self.schedule(needed, results);
        let mut last_use = vec![0; needed.len()];
        for (place, step) in schedule.iter().enumerate() {
            step.reads()
                .for_each(|operand| last_use[operand.0 as usize] = place);
        }
        // They are never free.
        results
            .iter()
            .for_each(|value| last_use[value.0 as usize] = usize::MAX);
        let mut slots = vec![usize::MAX; needed.len()];
        for (place, definition) in self.definitions.iter().enumerate() {
            match definition {
                Definition::Input(number) => slots[place] = *number as usize,
                Definition::Constant(bits) if needed[place] => {
                    slots[place] = code.inputs + code.constants.len();
                    code.constants.push(f32::from_bits(*bits));
                }
                Definition::Constant(_) | Definition::Apply(..) => continue,
            }
            last_use[place] = usize::MAX;
        }
        code.slot_count = code.inputs + code.constants.len();
        let mut free = Vec::new();
        for (place, step) in schedule.iter().enumerate() {
            // The slot of a result is none of its operands': lanes read and write apart.
            for value in std::iter::once(step.to).chain(step.cosine) {
                slots[value.0 as usize] = free.pop().unwrap_or_else(|| {
                    code.slot_count += 1;
                    code.slot_count - 1
                });
            }
            let mut operands = step.operands.map(|operand| slots[operand.0 as usize]);
            if let Some(cosine) = step.cosine {
                operands[1] = slots[cosine.0 as usize];
            }
            let then = step.then.map(
                |Then {
                     operation,
                     place,
                     others,
                 }| Then {
                    operation,
                    place,
                    others: others.map(|other| slots[other.0 as usize]),
                },
            );
            code.instructions.push(Instruction {
                operation: step.operation,
                operands,
                then,
                to: slots[step.to.0 as usize],
            });
            let mut ended: Vec<Value> = step
                .reads()
                .filter(|operand| last_use[operand.0 as usize] == place)
                .collect();
            ended.sort_unstable_by_key(|value| value.0);
            ended.dedup();
            free.extend(ended.iter().map(|value| slots[value.0 as usize]));
        }
        code.results = results
            .iter()
            .map(|value| slots[value.0 as usize])
            .collect();
    }

    fn schedule(&self, needed: &[bool], results: &[Value]) -> Vec<Scheduled> {
        let (mut is_scheduled, sums) = self.sums(needed, results);
        let applied = |place: usize| match self.definitions[place] {
            Definition::Apply(operation, operands) => {
                Some(sums.get(&place).copied().unwrap_or((operation, operands)))
            }
            Definition::Input(_) | Definition::Constant(_) => None,
        };
        let mut pairs = self.pairs(needed, results, &mut is_scheduled, &applied);
        let mut schedule = Vec::new();
        for place in 0..self.definitions.len() {
            let Some((operation, operands)) = applied(place).filter(|_| needed[place]) else {
                continue;
            };
            if std::mem::replace(&mut is_scheduled[place], true) {
                continue;
            }
            let value = Value(place as u32);
            let other = match operation {
                Operation::Sin => Some(Operation::Cos),
                Operation::Cos => Some(Operation::Sin),
                _ => None,
            };
            let partner = other
                .and_then(|other| self.known.get(&Definition::Apply(other, operands)))
                .filter(|partner| needed[partner.0 as usize]);
            schedule.push(match (partner, pairs.remove(&place)) {
                (Some(partner), _) => {
                    is_scheduled[partner.0 as usize] = true;
                    let [sine, cosine] = if operation == Operation::Sin {
                        [value, *partner]
                    } else {
                        [*partner, value]
                    };
                    Scheduled {
                        operation: Operation::SinCos,
                        operands,
                        then: None,
                        to: sine,
                        cosine: Some(cosine),
                    }
                }
                (None, Some((first, then))) => {
                    let (operation, operands) = applied(first.0 as usize)
                        .expect("invariant: what is done at once is an operation");
                    Scheduled {
                        operation,
                        operands,
                        then: Some(then),
                        to: value,
                        cosine: None,
                    }
                }
                (None, None) => Scheduled {
                    operation,
                    operands,
                    then: None,
                    to: value,
                    cosine: None,
                },
            });
        }
        schedule
    }

    /// The products that only one sum or difference needs, which computes them itself; at the place
    /// of the sum, what it then is.
    fn sums(&self, needed: &[bool], results: &[Value]) -> (Vec<bool>, HashMap<usize, Applied>) {
        let own = |place: usize| match self.definitions[place] {
            Definition::Apply(operation, operands) => Some((operation, operands)),
            Definition::Input(_) | Definition::Constant(_) => None,
        };
        let uses = uses(needed, results, &vec![false; needed.len()], own);
        let (mut is_absorbed, mut sums) = (vec![false; needed.len()], HashMap::new());
        for place in (0..needed.len()).filter(|place| needed[*place]) {
            let Some((operation @ (Operation::Add | Operation::Subtract), [first, second, _])) =
                own(place)
            else {
                continue;
            };
            let candidates = [(second, first), (first, second)];
            for (product, other) in
                candidates
                    .into_iter()
                    .take(if operation == Operation::Add { 2 } else { 1 })
            {
                let Some((Operation::Multiply, [a, b, _])) = own(product.0 as usize) else {
                    continue;
                };
                if are_apart(&[a, b, other]) && uses[product.0 as usize] == 1 {
                    is_absorbed[product.0 as usize] = true;
                    let fused = if operation == Operation::Add {
                        Operation::MultiplyAdd
                    } else {
                        Operation::SubtractProduct
                    };
                    sums.insert(place, (fused, [a, b, other]));
                    break;
                }
            }
        }
        (is_absorbed, sums)
    }

    /// For operations that compute one of their operands themselves, by their place: that operand
    /// and what is done with it. It is marked as absorbed.
    fn pairs(
        &self,
        needed: &[bool],
        results: &[Value],
        is_absorbed: &mut [bool],
        applied: &impl Fn(usize) -> Option<Applied>,
    ) -> HashMap<usize, (Value, Then<Value>)> {
        let uses = uses(needed, results, is_absorbed, applied);
        let mut pairs = HashMap::new();
        for place in 0..needed.len() {
            let Some((operation, operands)) =
                applied(place).filter(|_| needed[place] && !is_absorbed[place])
            else {
                continue;
            };
            let count = operation.operands();
            let found = (0..count).find_map(|at| {
                let first = operands[at].0 as usize;
                let (inner, read) = applied(first).filter(|_| {
                    uses[first] == 1 && !is_absorbed[first] && !pairs.contains_key(&first)
                })?;
                let others: Vec<Value> = (0..count)
                    .filter(|other| *other != at)
                    .map(|other| operands[other])
                    .collect();
                let all = [&read[..inner.operands()], &others].concat();
                let last = *others.last()?;
                let then = Then {
                    operation,
                    place: at,
                    others: [others[0], last],
                };
                (super::lanes::is_pair(inner, operation, at) && are_apart(&all))
                    .then_some((operands[at], then))
            });
            if let Some((first, then)) = found {
                is_absorbed[first.0 as usize] = true;
                pairs.insert(place, (first, then));
            }
        }
        pairs
    }
}

/// How often each value is read; a result counts as more than one.
fn uses(
    needed: &[bool],
    results: &[Value],
    is_absorbed: &[bool],
    applied: impl Fn(usize) -> Option<Applied>,
) -> Vec<u32> {
    let mut uses = vec![0u32; needed.len()];
    for place in (0..needed.len()).filter(|place| needed[*place] && !is_absorbed[*place]) {
        if let Some((operation, operands)) = applied(place) {
            operands[..operation.operands()]
                .iter()
                .for_each(|operand| uses[operand.0 as usize] += 1);
        }
    }
    results.iter().for_each(|value| uses[value.0 as usize] += 2);
    uses
}

/// Whether no value is there twice: lanes read each operand from a slot of its own.
fn are_apart(values: &[Value]) -> bool {
    values
        .iter()
        .enumerate()
        .all(|(place, value)| !values[..place].contains(value))
}
