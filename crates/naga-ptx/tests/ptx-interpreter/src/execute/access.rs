//! Accesses memory of every state space under its rules.

use super::Machine;
use super::block::Block;
use super::thread::Surroundings;
use crate::error::{Error, Fault};
use crate::memory::Region;
use crate::operation::{Address, Load, Store, Strength};
use crate::program::{GENERIC_OFFSET, WINDOW_BYTES, window};
use crate::scalar::{Scalar, mask, sign_extend};
use crate::syntax::Space;

/// A checked address: its state space and the address within it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    pub space: Space,
    pub address: u64,
    pub len: usize,
}

/// The spaces below 4 GiB, distinguished by their windows.
const WINDOWS: [Space; 4] = [Space::Shared, Space::Local, Space::Const, Space::Param];

fn window_of(address: u64) -> Option<Space> {
    WINDOWS
        .into_iter()
        .find(|space| address.wrapping_sub(window(*space)) < WINDOW_BYTES)
}

impl Target {
    fn new(space: Space, address: u64, len: usize) -> Result<Target, Error> {
        if !address.is_multiple_of(len as u64) {
            let message = format!("{address:#x} is not a multiple of {len}");
            return Err(Error::fault(Fault::Misaligned, message));
        }
        let (space, address) = match space {
            Space::Generic => resolve_generic(address),
            Space::Global => (Space::Global, check_global(address)?),
            named => (named, check_window(named, address)?),
        };
        Ok(Target {
            space,
            address,
            len,
        })
    }

    fn offset(&self) -> usize {
        (self.address - window(self.space)) as usize
    }
}

fn resolve_generic(address: u64) -> (Space, u64) {
    let narrow = address.wrapping_sub(GENERIC_OFFSET);
    match window_of(narrow) {
        Some(space) => (space, narrow),
        None => (Space::Global, address),
    }
}

fn check_global(address: u64) -> Result<u64, Error> {
    let narrow = window_of(address).or_else(|| window_of(address.wrapping_sub(GENERIC_OFFSET)));
    match narrow {
        Some(space) => Err(wrong(address, Space::Global, space)),
        None => Ok(address),
    }
}

fn check_window(space: Space, address: u64) -> Result<u64, Error> {
    match window_of(address) {
        Some(found) if found == space => Ok(address),
        Some(found) => Err(wrong(address, space, found)),
        None if address >= GENERIC_OFFSET => Err(wrong(address, space, Space::Generic)),
        None => Err(Error::fault(
            Fault::OutOfRange,
            format!("{address:#x} is outside the {space:?} state space"),
        )),
    }
}

fn wrong(address: u64, wanted: Space, found: Space) -> Error {
    let message = format!("{address:#x} is an address of {found:?}, not of {wanted:?}");
    Error::fault(Fault::WrongSpace, message)
}

impl Block {
    pub(super) fn target(
        &self,
        thread: usize,
        address: &Address,
        len: usize,
        around: &Surroundings<'_>,
    ) -> Result<Target, Error> {
        let base = self.threads[thread].read(address.base, around)?;
        Target::new(address.space, base.wrapping_add_signed(address.offset), len)
    }

    /// The region that contains a target and the offset within it.
    pub(super) fn region<'r>(
        &'r mut self,
        machine: &'r mut Machine<'_>,
        thread: usize,
        target: Target,
    ) -> Result<(&'r mut Region, usize), Error> {
        let region = match target.space {
            Space::Shared => &mut self.shared,
            Space::Local => &mut self.threads[thread].local,
            Space::Const => &mut machine.constants,
            Space::Param => &mut machine.params,
            Space::Global | Space::Generic => {
                return machine.memory.locate(target.address, target.len);
            }
        };
        Ok((region, target.offset()))
    }

    /// Checks an access to memory that threads share against the earlier ones.
    pub(super) fn visit(
        &mut self,
        machine: &mut Machine<'_>,
        thread: usize,
        target: Target,
        strength: Strength,
        is_write: bool,
    ) -> Result<(), Error> {
        if !machine.launch.race_check {
            return Ok(());
        }
        let mut own = std::mem::take(&mut self.shadow);
        let shadow = match target.space {
            Space::Shared => &mut own,
            Space::Global => &mut machine.shadow,
            _ => {
                self.shadow = own;
                return Ok(());
            }
        };
        let actor = self.actor(thread);
        let result = shadow.visit(actor, target.address, target.len, strength, is_write);
        self.shadow = own;
        result
    }

    pub(super) fn load(
        &mut self,
        machine: &mut Machine<'_>,
        thread: usize,
        load: &Load,
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let len = load.scalar.bytes() * load.destinations.len();
        let target = self.target(thread, &load.address, len, around)?;
        let (region, offset) = self.region(machine, thread, target)?;
        let word = region.load(offset, len, load.coherent)?;
        self.visit(machine, thread, target, load.strength, false)?;
        machine.stats.loads += 1;
        if target.space == Space::Global {
            machine.stats.global_bytes_loaded += len as u64;
        }
        for (place, (slot, register_bits)) in (0u32..).zip(&load.destinations) {
            let raw = (word >> (place * load.scalar.bits)) as u64;
            let value = extend(raw, load.scalar, *register_bits);
            self.threads[thread].write(*slot, value);
        }
        Ok(())
    }

    pub(super) fn store(
        &mut self,
        machine: &mut Machine<'_>,
        thread: usize,
        store: &Store,
        around: &Surroundings<'_>,
    ) -> Result<(), Error> {
        let len = store.scalar.bytes() * store.sources.len();
        let target = self.target(thread, &store.address, len, around)?;
        if matches!(target.space, Space::Const | Space::Param) {
            let message = format!("store to {:?} memory", target.space);
            return Err(Error::fault(Fault::ReadOnly, message));
        }
        let mut word = 0u128;
        for (place, source) in (0u32..).zip(&store.sources) {
            let value = self.threads[thread].read(*source, around)? & store.scalar.mask();
            word |= u128::from(value) << (place * store.scalar.bits);
        }
        let (region, offset) = self.region(machine, thread, target)?;
        region.store(offset, len, word)?;
        self.visit(machine, thread, target, store.strength, true)?;
        machine.stats.stores += 1;
        if target.space == Space::Global {
            machine.stats.global_bytes_stored += len as u64;
        }
        Ok(())
    }
}

/// The low bits extended to the width of the register by the sign of the type.
fn extend(raw: u64, scalar: Scalar, register_bits: u32) -> u64 {
    if scalar.is_signed() {
        sign_extend(raw, scalar.bits) as u64 & mask(register_bits)
    } else {
        raw & scalar.mask()
    }
}
