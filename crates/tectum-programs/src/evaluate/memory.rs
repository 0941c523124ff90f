//! Buffers and shared memory, every access checked.

use crate::{Address, BufferIndex, FaultKind, Program, Register, SharedAddress, Type};

/// The memory of the lanes of one block.
pub struct Memory<'a> {
    program: &'a Program,
    buffers: &'a mut [Vec<u8>],
    shared: Vec<u8>,
}

/// Target of an access.
#[derive(Clone, Copy)]
pub enum AccessLocation {
    Buffer {
        index: usize,
        offset: u64,
    },
    Shared {
        offset: u64,
    },
    /// The lane has no own element.
    Nowhere,
}

/// The properties of a lane that its addresses depend on.
pub struct Lookup<'a> {
    pub registers: &'a [u64; 256],
    /// The lane's number in the launch.
    pub global: u64,
    /// The lane's number in its block.
    pub local: u64,
}

impl<'a> Memory<'a> {
    pub fn new(program: &'a Program, buffers: &'a mut [Vec<u8>], shared_bytes: u32) -> Self {
        Self {
            program,
            buffers,
            shared: vec![0; shared_bytes as usize],
        }
    }

    /// The target of an address in a buffer; checks handle and permission.
    pub fn global(
        &self,
        address: Address,
        ty: Type,
        is_store: bool,
        lane: &Lookup<'_>,
    ) -> Result<AccessLocation, FaultKind> {
        let value = |register: Register| lane.registers[usize::from(register.0)];
        let named = |BufferIndex(index): BufferIndex, offset| {
            Ok(AccessLocation::Buffer {
                index: index as usize,
                offset,
            })
        };
        match address {
            Address::Own { buffer }
                if lane.global >= self.buffers[buffer.0 as usize].len() as u64 / ty.bytes() =>
            {
                Ok(AccessLocation::Nowhere)
            }
            Address::Own { buffer } => named(buffer, lane.global * ty.bytes()),
            Address::Constant { buffer, bytes } => named(buffer, bytes),
            Address::Indexed { buffer, offset } => named(buffer, value(offset)),
            Address::Handle { handle, bytes } => Ok(AccessLocation::Buffer {
                index: self.by_handle(value(handle), is_store)?,
                offset: bytes,
            }),
            Address::Computed { handle, offset } => Ok(AccessLocation::Buffer {
                index: self.by_handle(value(handle), is_store)?,
                offset: value(offset),
            }),
            Address::Phi(phi) => named(
                self.program
                    .boundary()
                    .expect("invariant: a program with Phi has a boundary"),
                phi.offset(),
            ),
        }
    }

    fn by_handle(&self, handle: u64, is_store: bool) -> Result<usize, FaultKind> {
        let found = self
            .program
            .buffers()
            .iter()
            .zip(1..)
            .position(|(_, other)| other == handle);
        let index = found.ok_or(FaultKind::UnknownHandle { handle })?;
        let access = self.program.buffers()[index].access;
        let allowed = if is_store {
            access.writes()
        } else {
            access.reads()
        };
        if allowed {
            Ok(index)
        } else {
            Err(FaultKind::Denied { handle })
        }
    }

    pub fn load(&self, place: AccessLocation, ty: Type) -> Result<u64, FaultKind> {
        match place {
            AccessLocation::Buffer { index, offset } => load(&self.buffers[index], offset, ty),
            AccessLocation::Shared { offset } => load(&self.shared, offset, ty),
            AccessLocation::Nowhere => Ok(0),
        }
    }

    pub fn store(&mut self, place: AccessLocation, ty: Type, bits: u64) -> Result<(), FaultKind> {
        match place {
            AccessLocation::Buffer { index, offset } => {
                store(&mut self.buffers[index], offset, ty, bits)
            }
            AccessLocation::Shared { offset } => store(&mut self.shared, offset, ty, bits),
            AccessLocation::Nowhere => Ok(()),
        }
    }
}

/// The target of an address in shared memory.
pub fn shared(address: SharedAddress, ty: Type, lane: &Lookup<'_>) -> AccessLocation {
    let offset = match address {
        SharedAddress::Own => lane.local * ty.bytes(),
        SharedAddress::Constant(bytes) => bytes,
        SharedAddress::Indexed(offset) => lane.registers[usize::from(offset.0)],
    };
    AccessLocation::Shared { offset }
}

/// The value at an offset, little-endian.
pub fn load(bytes: &[u8], offset: u64, ty: Type) -> Result<u64, FaultKind> {
    let first = within(bytes.len() as u64, offset, ty)?;
    Ok(bytes[first..first + ty.bytes() as usize]
        .iter()
        .rev()
        .fold(0, |bits, byte| bits << 8 | u64::from(*byte)))
}

/// Stores a value at an offset, little-endian.
pub fn store(bytes: &mut [u8], offset: u64, ty: Type, bits: u64) -> Result<(), FaultKind> {
    let first = within(bytes.len() as u64, offset, ty)?;
    let width = ty.bytes() as usize;
    bytes[first..first + width].copy_from_slice(&bits.to_le_bytes()[..width]);
    Ok(())
}

/// The offset as an index, if an aligned value of the type there fits within this many bytes.
pub fn within(size: u64, address: u64, ty: Type) -> Result<usize, FaultKind> {
    let end = address.checked_add(ty.bytes());
    if end.is_none_or(|end| end > size) {
        Err(FaultKind::OutOfBounds { address, ty, size })
    } else if !address.is_multiple_of(ty.bytes()) {
        Err(FaultKind::Misaligned { address, ty })
    } else {
        Ok(address as usize)
    }
}
