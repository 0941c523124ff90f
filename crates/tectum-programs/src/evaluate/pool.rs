//! A lane's pool: a stack of allocations in its own bytes.

use super::memory;
use crate::{FaultKind, Type};

/// One lane's pool, borrowed for one instruction.
pub struct Pool<'a> {
    /// All of its bytes.
    pub bytes: &'a mut [u8],
    /// Offset of the next allocation.
    pub next: &'a mut u64,
}

impl Pool<'_> {
    /// Allocates bytes; returns their handle.
    pub fn allocate(&mut self, bytes: u64) -> Result<u64, FaultKind> {
        let first = *self.next;
        if first
            .checked_add(bytes)
            .is_none_or(|end| end > self.bytes.len() as u64)
        {
            return Err(FaultKind::PoolExhausted { bytes });
        }
        *self.next = first + bytes.next_multiple_of(8);
        Ok(bytes << 32 | first)
    }

    /// Frees the latest allocation.
    pub fn free(&mut self, handle: u64) {
        let (bytes, first) = parts(handle);
        if first + bytes.next_multiple_of(8) == *self.next {
            *self.next = first;
        }
    }

    /// The value at an offset from a handle.
    pub fn load(&self, ty: Type, handle: u64, offset: u64) -> Result<u64, FaultKind> {
        memory::load(self.bytes, address(ty, handle, offset)?, ty)
    }

    /// Stores a value at an offset from a handle.
    pub fn store(
        &mut self,
        ty: Type,
        handle: u64,
        offset: u64,
        value: u64,
    ) -> Result<(), FaultKind> {
        memory::store(self.bytes, address(ty, handle, offset)?, ty, value)
    }
}

/// The index in the pool of an offset from a handle, within its allocation.
fn address(ty: Type, handle: u64, offset: u64) -> Result<u64, FaultKind> {
    let (bytes, first) = parts(handle);
    if offset.checked_add(ty.bytes()).is_none_or(|end| end > bytes) {
        return Err(FaultKind::OutOfBounds {
            address: offset,
            ty,
            size: bytes,
        });
    }
    Ok(first + offset)
}

/// A handle's bytes and first byte.
fn parts(handle: u64) -> (u64, u64) {
    (handle >> 32, handle & u64::from(u32::MAX))
}
