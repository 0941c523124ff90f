//! Global memory as the host sees it, and the regions all state spaces are made of.

use crate::error::{Error, Fault};
use std::collections::BTreeMap;

/// Global memory: allocations with guard gaps between them, each byte marked once something has
/// written it.
///
/// An address is never reused, so an access to freed memory is detected.
#[derive(Clone, Debug)]
pub struct Memory {
    allocations: BTreeMap<u64, Region>,
    freed: BTreeMap<u64, usize>,
    next: u64,
}

/// The first address that [`Memory::allocate`] returns.
const FIRST_ADDRESS: u64 = 0x7f00_0000_0000;

/// The alignment of every allocation.
const ALIGNMENT: u64 = 256;

/// Minimum distance between the end of an allocation and the start of the next.
const GUARD: u64 = 4096;

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Memory {
    /// Creates a memory without allocations.
    pub fn new() -> Memory {
        Memory {
            allocations: BTreeMap::new(),
            freed: BTreeMap::new(),
            next: FIRST_ADDRESS,
        }
    }

    /// Allocates and fills memory and returns its device address.
    pub fn allocate(&mut self, bytes: &[u8]) -> u64 {
        self.place(Region::initialised(bytes.to_vec()))
    }

    /// Allocates memory that faults when read before it is written.
    pub fn allocate_uninit(&mut self, len: usize) -> u64 {
        self.place(Region::uninitialised(len))
    }

    /// Releases the allocation that starts at `address`.
    ///
    /// # Errors
    ///
    /// When no live allocation starts there.
    pub fn free(&mut self, address: u64) -> Result<(), Error> {
        let region = self
            .allocations
            .remove(&address)
            .ok_or_else(|| self.nowhere(address, 0))?;
        self.freed.insert(address, region.bytes.len());
        Ok(())
    }

    /// Copies `len` bytes out.
    ///
    /// # Errors
    ///
    /// When the range leaves its allocation or contains a byte without a write.
    pub fn read(&self, address: u64, len: usize) -> Result<Vec<u8>, Error> {
        let (start, region) = self.find(address, len)?;
        let offset = (address - start) as usize;
        region.check_readable(offset, len)?;
        Ok(region.bytes[offset..offset + len].to_vec())
    }

    /// Copies `bytes` in.
    ///
    /// # Errors
    ///
    /// When the range leaves its allocation.
    pub fn write(&mut self, address: u64, bytes: &[u8]) -> Result<(), Error> {
        let (region, offset) = self.locate(address, bytes.len())?;
        region.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        for state in &mut region.state[offset..offset + bytes.len()] {
            *state |= INITIALISED;
        }
        Ok(())
    }

    pub(crate) fn locate(
        &mut self,
        address: u64,
        len: usize,
    ) -> Result<(&mut Region, usize), Error> {
        let start = self.find(address, len)?.0;
        let region = self
            .allocations
            .get_mut(&start)
            .ok_or_else(|| Error::fault(Fault::OutOfRange, "the allocation was freed"))?;
        Ok((region, (address - start) as usize))
    }

    /// Places a module variable at its fixed address.
    pub(crate) fn place_at(&mut self, address: u64, region: Region) {
        self.allocations.insert(address, region);
    }

    pub(crate) fn remove_at(&mut self, address: u64) {
        self.allocations.remove(&address);
    }

    /// Forgets which bytes the previous launch wrote or read non-coherently.
    pub(crate) fn begin_launch(&mut self) {
        for region in self.allocations.values_mut() {
            for state in &mut region.state {
                *state &= VALID | INITIALISED;
            }
        }
    }

    fn place(&mut self, region: Region) -> u64 {
        let address = self.next;
        let end = address + region.bytes.len() as u64 + GUARD;
        self.next = end.next_multiple_of(ALIGNMENT);
        self.allocations.insert(address, region);
        address
    }

    fn find(&self, address: u64, len: usize) -> Result<(u64, &Region), Error> {
        let candidate = self.allocations.range(..=address).next_back();
        candidate
            .filter(|(start, region)| {
                let room = region.bytes.len() as u64;
                let offset = address - **start;
                offset <= room && len as u64 <= room - offset
            })
            .map(|(start, region)| (*start, region))
            .ok_or_else(|| self.nowhere(address, len))
    }

    fn nowhere(&self, address: u64, len: usize) -> Error {
        let near = self.allocations.range(..=address).next_back();
        let freed = self.freed.range(..=address).next_back();
        let inside_freed = freed.filter(|(start, size)| address < **start + **size as u64);
        let detail = match (inside_freed, near) {
            (Some((start, size)), _) => format!("freed allocation {start:#x} of {size} bytes"),
            (None, Some((start, region))) => {
                let (offset, size) = (address - start, region.bytes.len());
                format!("offset {offset} of the nearest allocation below, of {size} bytes")
            }
            (None, None) => "there is no allocation below".to_owned(),
        };
        Error::fault(
            Fault::OutOfRange,
            format!("no allocation holds {len} bytes at {address:#x} ({detail})"),
        )
    }
}

/// The byte belongs to a variable or allocation.
const VALID: u8 = 1;
/// The byte has been written.
const INITIALISED: u8 = 2;
/// A thread of the running launch has written the byte.
const WRITTEN: u8 = 4;
/// A thread of the running launch has read the byte through the non-coherent path.
const NON_COHERENT: u8 = 8;

/// Bytes, each with its flags.
#[derive(Clone, Debug)]
pub(crate) struct Region {
    bytes: Vec<u8>,
    state: Vec<u8>,
}

impl Region {
    pub fn initialised(bytes: Vec<u8>) -> Region {
        let state = vec![VALID | INITIALISED; bytes.len()];
        Region { bytes, state }
    }

    pub fn uninitialised(len: usize) -> Region {
        Region {
            bytes: vec![0; len],
            state: vec![VALID; len],
        }
    }

    /// Bytes that belong to no variable until [`Region::declare`].
    pub fn empty(len: usize) -> Region {
        Region {
            bytes: vec![0; len],
            state: vec![0; len],
        }
    }

    pub fn declare(&mut self, offset: usize, len: usize) {
        self.state[offset..offset + len].fill(VALID);
    }

    pub fn fill(&mut self, offset: usize, bytes: &[u8]) {
        self.bytes[offset..offset + bytes.len()].copy_from_slice(bytes);
        self.state[offset..offset + bytes.len()].fill(VALID | INITIALISED);
    }

    /// Reads up to 16 bytes as one little-endian integer.
    pub fn load(&mut self, offset: usize, len: usize, coherent: bool) -> Result<u128, Error> {
        self.check_readable(offset, len)?;
        if !coherent {
            self.note_non_coherent(offset, len)?;
        }
        let mut word = [0; 16];
        word[..len].copy_from_slice(&self.bytes[offset..offset + len]);
        Ok(u128::from_le_bytes(word))
    }

    pub fn store(&mut self, offset: usize, len: usize, word: u128) -> Result<(), Error> {
        self.check_valid(offset, len)?;
        let states = &mut self.state[offset..offset + len];
        if states.iter().any(|state| state & NON_COHERENT != 0) {
            return Err(Error::fault(
                Fault::NonCoherent,
                "store to memory that this launch reads with ld.global.nc",
            ));
        }
        for state in states {
            *state |= INITIALISED | WRITTEN;
        }
        self.bytes[offset..offset + len].copy_from_slice(&word.to_le_bytes()[..len]);
        Ok(())
    }

    fn note_non_coherent(&mut self, offset: usize, len: usize) -> Result<(), Error> {
        let states = &mut self.state[offset..offset + len];
        if states.iter().any(|state| state & WRITTEN != 0) {
            return Err(Error::fault(
                Fault::NonCoherent,
                "ld.global.nc of memory that this launch has written",
            ));
        }
        for state in states {
            *state |= NON_COHERENT;
        }
        Ok(())
    }

    fn check_valid(&self, offset: usize, len: usize) -> Result<(), Error> {
        let inside = offset
            .checked_add(len)
            .and_then(|end| self.state.get(offset..end))
            .is_some_and(|states| states.iter().all(|state| state & VALID != 0));
        if inside {
            Ok(())
        } else {
            Err(Error::fault(
                Fault::OutOfRange,
                format!("{len} bytes at offset {offset} of the state space are in no variable"),
            ))
        }
    }

    fn check_readable(&self, offset: usize, len: usize) -> Result<(), Error> {
        self.check_valid(offset, len)?;
        let states = &self.state[offset..offset + len];
        match states.iter().position(|state| state & INITIALISED == 0) {
            None => Ok(()),
            Some(first) => Err(Error::fault(
                Fault::Uninitialised,
                format!(
                    "read of byte {} of {len}, which nothing has written",
                    first + 1
                ),
            )),
        }
    }
}
