//! `atom` and `red`.

use super::Machine;
use super::block::Block;
use super::thread::Surroundings;
use crate::compute::{FloatMode, FloatOperation, IntegerOperation};
use crate::error::{Error, Fault};
use crate::operation::{Atomic, AtomicKind};
use crate::scalar::Scalar;
use crate::syntax::Space;

impl Block {
    pub(super) fn atomic(
        &mut self,
        machine: &mut Machine<'_>,
        thread: usize,
        atomic: &Atomic,
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let len = atomic.scalar.bytes();
        let target = self.target(thread, &atomic.address, len, around)?;
        if !matches!(target.space, Space::Global | Space::Shared) {
            let message = format!("atomic on {:?} memory", target.space);
            return Err(Error::fault(Fault::WrongSpace, message));
        }
        let first = self.threads[thread].read(atomic.sources[0], around)?;
        let second = self.threads[thread].read(atomic.sources[1], around)?;
        let (region, offset) = self.region(machine, thread, target)?;
        let old = region.load(offset, len, true)? as u64;
        // Addition of f32 flushes subnormal numbers in global memory only.
        let ftz = atomic.scalar == Scalar::F32 && target.space == Space::Global;
        let new = combine(atomic.kind, atomic.scalar, ftz, [old, first, second])?;
        region.store(offset, len, u128::from(new))?;
        self.visit(machine, thread, target, atomic.strength, true)?;
        machine.stats.atomics += 1;
        if target.space == Space::Global {
            machine.stats.global_bytes_loaded += len as u64;
            machine.stats.global_bytes_stored += len as u64;
        }
        self.threads[thread].write(atomic.destination, old);
        Ok(())
    }
}

/// The value that replaces `old`.
pub(super) fn combine(
    kind: AtomicKind,
    scalar: Scalar,
    ftz: bool,
    [old, first, second]: [u64; 3],
) -> Result<u64, Error> {
    let integer = |operation: IntegerOperation| {
        operation
            .evaluate(scalar, [old, first, 0, 0])
            .map_err(|reason| Error::fault(Fault::UndefinedResult, reason))
    };
    Ok(match kind {
        AtomicKind::Add if scalar.is_float() || scalar.is_pair() => {
            let mode = FloatMode {
                ftz,
                ..FloatMode::plain(scalar)
            };
            FloatOperation::Add.evaluate(mode, [old, first, 0, 0])
        }
        AtomicKind::Add => integer(IntegerOperation::Add)?,
        AtomicKind::Minimum => integer(IntegerOperation::Minimum)?,
        AtomicKind::Maximum => integer(IntegerOperation::Maximum)?,
        AtomicKind::And => old & first,
        AtomicKind::Or => old | first,
        AtomicKind::Xor => old ^ first,
        AtomicKind::Exchange => first,
        AtomicKind::CompareExchange if old == first => second,
        AtomicKind::CompareExchange => old,
        AtomicKind::Increment if old >= first => 0,
        AtomicKind::Increment => old + 1,
        AtomicKind::Decrement if old == 0 || old > first => first,
        AtomicKind::Decrement => old - 1,
    })
}
