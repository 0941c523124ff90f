//! The element count of a launch, and the minimum sizes of its buffers.

use tectum::{Error, Result};

use super::{
    Address, BufferIndex, Checked, Instruction, LaunchConfig, Program, Register, SharedAddress,
    Type,
};

impl Checked {
    /// The count of elements that the buffers accessed as `[b]` have, each in the size of its
    /// accesses, or `None` if there are none.
    ///
    /// # Errors
    /// Kind `Invalid`: a launch that is too large; a wrong number of sizes, or a size that is not a
    /// whole number of elements; buffers that differ in their count; a launch whose blocks do not
    /// cover the elements or with a block without elements.
    pub fn elements(&self, launch: &LaunchConfig, sizes: &[u64]) -> Result<Option<u64>> {
        launch.check()?;
        let program = self.program();
        let refuse =
            |message: String| Err(Error::invalid(format!("{}: {message}", program.name())));
        if sizes.len() != program.buffers().len() {
            return refuse(format!(
                "{} buffers given, {} declared",
                sizes.len(),
                program.buffers().len()
            ));
        }
        for (buffer, size) in program.buffers().iter().zip(sizes) {
            if !size.is_multiple_of(buffer.ty.bytes()) {
                return refuse(format!(
                    "buffer {}: {size} bytes are no whole number of {}",
                    buffer.name, buffer.ty
                ));
            }
        }
        let mut first: Option<(&str, u64)> = None;
        for (ty, address) in program.accesses() {
            let Address::Own { buffer } = address else {
                continue;
            };
            let (name, count) = (
                &program.buffer(*buffer).name,
                sizes[buffer.0 as usize] / ty.bytes(),
            );
            match first {
                Some((other, known)) if known != count => {
                    return refuse(format!(
                        "buffer {other} has {known} elements and buffer {name} {count}"
                    ));
                }
                _ => first = Some((name, count)),
            }
        }
        let Some((name, count)) = first else {
            return Ok(None);
        };
        let lanes = launch.block_lanes();
        if lanes == 0 && count > 0 || lanes > 0 && launch.blocks() != count.div_ceil(lanes) {
            return refuse(format!(
                "{} blocks of {lanes} lanes for the {count} elements of buffer {name}",
                launch.blocks()
            ));
        }
        Ok(Some(count))
    }
}

impl Program {
    /// Bytes of a buffer's elements if some access uses the lane's own element, `[b]`.
    pub fn own_element_bytes(&self, buffer: BufferIndex) -> Option<u64> {
        self.accesses()
            .find_map(|(ty, address)| (*address == Address::Own { buffer }).then(|| ty.bytes()))
    }

    /// The minimum size that contains every access of a buffer, if all accesses name it and have
    /// constant offsets.
    pub fn constant_extent(&self, buffer: BufferIndex) -> Option<u64> {
        let mut extent = 0;
        for (ty, address) in self.accesses() {
            let first = match *address {
                Address::Constant {
                    buffer: named,
                    bytes,
                } if named == buffer => bytes,
                Address::Phi(phi) if self.boundary() == Some(buffer) => phi.offset(),
                Address::Own { buffer: named } | Address::Indexed { buffer: named, .. }
                    if named == buffer =>
                {
                    return None;
                }
                Address::Handle { .. } | Address::Computed { .. } => return None,
                _ => continue,
            };
            extent = extent.max(first.checked_add(ty.bytes())?);
        }
        Some(extent)
    }

    /// Whether the lanes of a launch can behave differently: some instruction depends on the lane's
    /// or block's number, or synchronises lanes. A program without such instructions needs only one
    /// lane.
    pub fn uses_lanes(&self) -> bool {
        use Instruction as I;
        let is_own = |instruction: &Instruction| match instruction {
            I::LoadGlobal { address, .. } | I::StoreGlobal { address, .. } => {
                matches!(address, Address::Own { .. })
            }
            I::LoadShared { address, .. } | I::StoreShared { address, .. } => {
                matches!(address, SharedAddress::Own)
            }
            _ => matches!(instruction, I::Barrier { .. } | I::ClassGet { .. }),
        };
        let is_preloaded = |register: Register| {
            Register::PRELOADED
                .iter()
                .any(|(other, _)| *other == register)
        };
        self.instructions().iter().any(|instruction| {
            is_own(instruction)
                || instruction
                    .reads()
                    .registers
                    .iter()
                    .any(|(register, _)| is_preloaded(*register))
        })
    }

    /// Whether the size of blocks can matter: the lanes of a block share memory, meet at barriers,
    /// or read their number in it.
    pub fn uses_blocks(&self) -> bool {
        use Instruction as I;
        let own = [Register::LANE, Register::BLOCK, Register::BLOCK_SIZE];
        self.instructions().iter().any(|instruction| {
            matches!(
                instruction,
                I::LoadShared { .. }
                    | I::StoreShared { .. }
                    | I::Barrier { .. }
                    | I::ClassGet { .. }
            ) || instruction
                .reads()
                .registers
                .iter()
                .any(|(register, _)| own.contains(register))
        })
    }

    /// Type and address of every load from a buffer and every store to one.
    fn accesses(&self) -> impl Iterator<Item = (Type, &Address)> {
        self.instructions()
            .iter()
            .filter_map(|instruction| match instruction {
                Instruction::LoadGlobal { ty, address, .. }
                | Instruction::StoreGlobal { ty, address, .. } => Some((*ty, address)),
                _ => None,
            })
    }
}
