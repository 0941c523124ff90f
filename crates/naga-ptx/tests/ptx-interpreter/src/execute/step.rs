//! Executes one instruction of one thread.

use super::Machine;
use super::block::Block;
use super::thread::{State, Surroundings};
use crate::error::{Error, Fault};
use crate::operation::{Carry, CarryKind, Operand, Operation, SetPredicate, Slot};
use crate::program::{GENERIC_OFFSET, WINDOW_BYTES, window};
use crate::scalar::mask;
use crate::syntax::Space;

impl Block {
    /// Executes the next instruction of a runnable thread, or leaves the thread waiting at it.
    pub(super) fn step(
        &mut self,
        machine: &mut Machine<'_>,
        index: usize,
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let thread = &mut self.threads[index];
        let kernel = machine.kernel;
        let instruction = &kernel.instructions[thread.at];
        thread.executed += 1;
        if let Some(guard) = instruction.guard {
            let holds = thread.register(guard.slot, around)? != 0;
            if holds == guard.is_negated {
                thread.at += 1;
                return Ok(());
            }
        }
        match &instruction.operation {
            Operation::Compute {
                compute,
                destination,
                sources,
            } => {
                let mut values = [0; 4];
                for (value, source) in values.iter_mut().zip(sources) {
                    *value = thread.read(*source, around)?;
                }
                let result = compute
                    .evaluate(values, machine.launch.approximation)
                    .map_err(|reason| Error::fault(Fault::UndefinedResult, reason))?;
                thread.write(*destination, result);
            }
            Operation::Branch { target } => {
                thread.at = *target as usize;
                return Ok(());
            }
            Operation::BranchIndexed {
                index: source,
                targets,
            } => return self.branch_indexed(index, *source, targets, around),
            Operation::SetPredicate(operation) => self.set_predicate(index, operation, around)?,
            Operation::Carry(operation) => self.carry(index, operation, around)?,
            Operation::Pack {
                destination,
                sources,
                element_bits,
            } => self.pack(index, *destination, sources, *element_bits, around)?,
            Operation::Unpack {
                destinations,
                source,
                element_bits,
            } => self.unpack(index, destinations, *source, *element_bits, around)?,
            Operation::IsSpace {
                destination,
                source,
                space,
            } => {
                let address = thread.read(*source, around)?;
                thread.write(*destination, u64::from(is_in(address, *space)));
            }
            Operation::Load(load) => self.load(machine, index, load, around)?,
            Operation::Store(store) => self.store(machine, index, store, around)?,
            Operation::Atomic(atomic) => self.atomic(machine, index, atomic, around)?,
            Operation::Barrier(barrier) => {
                return self.arrive(machine, index, barrier, around);
            }
            Operation::Warp(operation) => {
                return self.meet(machine, index, operation, around);
            }
            Operation::ActiveMask { .. } => {
                thread.state = State::AtActiveMask;
                return Ok(());
            }
            Operation::Exit => {
                thread.state = State::Exited;
                return Ok(());
            }
            Operation::Trap => return Err(Error::fault(Fault::Trap, "trap")),
            Operation::Nothing => {}
        }
        self.threads[index].at += 1;
        Ok(())
    }

    fn branch_indexed(
        &mut self,
        index: usize,
        source: Operand,
        targets: &[u32],
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let thread = &mut self.threads[index];
        let choice = thread.read(source, around)?;
        let target = targets.get(choice as usize).ok_or_else(|| {
            let message = format!("index {choice} of {} branch targets", targets.len());
            Error::fault(Fault::OutOfRange, message)
        })?;
        thread.at = *target as usize;
        Ok(())
    }

    fn set_predicate(
        &mut self,
        index: usize,
        operation: &SetPredicate,
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let thread = &mut self.threads[index];
        let mut values = [0; 3];
        for (value, source) in values.iter_mut().zip(&operation.sources) {
            *value = thread.read(*source, around)?;
        }
        let [a, b, c] = values;
        let comparison = operation.comparison;
        let outcomes = if operation.is_pair {
            [0, 16].map(|shift| comparison.compares(a >> shift & 0xffff, b >> shift & 0xffff))
        } else {
            let outcome = comparison.compares(a, b);
            [outcome, !outcome]
        };
        for (slot, outcome) in operation.destinations.into_iter().zip(outcomes) {
            thread.write(slot, u64::from(comparison.join(outcome, c)));
        }
        Ok(())
    }

    fn carry(
        &mut self,
        index: usize,
        operation: &Carry,
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let thread = &mut self.threads[index];
        let mut values = [0; 3];
        for (value, source) in values.iter_mut().zip(&operation.sources) {
            *value = thread.read(*source, around)?;
        }
        let carry_in = match (operation.reads, thread.carry) {
            (false, _) => false,
            (true, Some(carry)) => carry,
            (true, None) => {
                let message = "the carry flag has no defined value here";
                return Err(Error::fault(Fault::UndefinedRegister, message));
            }
        };
        let (result, carry_out) = extended(operation, values, carry_in);
        thread.write(operation.destination, result);
        if operation.writes {
            thread.carry = Some(carry_out);
        }
        Ok(())
    }

    fn pack(
        &mut self,
        index: usize,
        destination: Slot,
        sources: &[Operand],
        element_bits: u32,
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let thread = &mut self.threads[index];
        let mut result = 0;
        for (place, source) in (0u32..).zip(sources) {
            result |= thread.read(*source, around)? << (place * element_bits);
        }
        thread.write(destination, result);
        Ok(())
    }

    fn unpack(
        &mut self,
        index: usize,
        destinations: &[Slot],
        source: Operand,
        element_bits: u32,
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let thread = &mut self.threads[index];
        let value = thread.read(source, around)?;
        for (place, destination) in (0u32..).zip(destinations) {
            let element = value >> (place * element_bits) & mask(element_bits);
            thread.write(*destination, element);
        }
        Ok(())
    }
}

/// The result and the carry or borrow of an extended-precision operation.
fn extended(operation: &Carry, [a, b, c]: [u64; 3], carry: bool) -> (u64, bool) {
    let bits = operation.scalar.bits;
    let (left, right) = match operation.kind {
        CarryKind::Add | CarryKind::Subtract => (a, b),
        CarryKind::MultiplyAddLow => (a.wrapping_mul(b) & mask(bits), c),
        CarryKind::MultiplyAddHigh => (product_high(operation, a, b), c),
    };
    if operation.kind == CarryKind::Subtract {
        let exact = i128::from(left) - i128::from(right) - i128::from(carry);
        (exact as u64 & mask(bits), exact < 0)
    } else {
        let exact = u128::from(left) + u128::from(right) + u128::from(carry);
        (exact as u64 & mask(bits), exact >> bits != 0)
    }
}

fn product_high(operation: &Carry, a: u64, b: u64) -> u64 {
    let scalar = operation.scalar;
    let product = if scalar.is_signed() {
        let [a, b] = [a, b].map(|value| crate::scalar::sign_extend(value, scalar.bits));
        (i128::from(a) * i128::from(b)) as u128
    } else {
        u128::from(a) * u128::from(b)
    };
    (product >> scalar.bits) as u64 & scalar.mask()
}

/// Whether a generic address is in the window of `space`.
fn is_in(address: u64, space: Space) -> bool {
    let offset = |space| address.wrapping_sub(GENERIC_OFFSET + window(space));
    let narrow = [Space::Shared, Space::Local, Space::Const, Space::Param];
    if space == Space::Global {
        narrow.iter().all(|space| offset(*space) >= WINDOW_BYTES)
    } else {
        offset(space) < WINDOW_BYTES
    }
}
