//! Lowering: a checked program as a kernel, which a plan launches on any device.
//!
//! ```text
//! Checked ──lower──▶ Lowered: Kernel of generated WGSL ──naga──▶ SPIR-V, MSL, HLSL; naga-ptx ──▶ PTX
//! ```
//!
//! The WGSL has one function `run(block, local)` that does what one lane does, one statement per
//! instruction; the functions that these call are the used ones of `lower/program.wgsl` and of the
//! math library, and loads and stores generated for the memories of the program. Registers are
//! variables of 32 bits (`r5`) or of two words (`w5`): the check knows what type a register holds
//! wherever it is read, so bits suffice. Nested jumps become `if` and `loop`; others become a loop
//! over basic blocks.
//!
//! A program without barriers and shared memory is a kernel whose workgroup size is independent of
//! the launch's blocks, and which strides over the lanes of any launch. Others are generated for a
//! block's lanes, one workgroup per block.

mod dispatch;
mod expression;
mod faults;
mod library;
mod memory;
mod native;
mod source;
mod statement;
mod structured;

use std::fmt;
use std::sync::Arc;

use tectum::kernel::{MAX_BINDINGS, MAX_GROUPS, WORKGROUP};
use tectum::{DeviceInfo, Error, Kernel};

use super::{Address, Bounds, Checked, Fault, Instruction, LaunchConfig, Program};

/// Maximum bytes of a lane's pool in device code.
const MAX_POOL_BYTES: u32 = 16 << 10;
/// Maximum instructions of device code.
const MAX_INSTRUCTIONS: usize = 1 << 14;
/// Words of the buffer in which a launch reports its first fault.
pub const FAULT_WORDS: usize = faults::WORDS;

/// Why a program runs only on the CPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// The feature that device code does not support.
    pub reason: String,
}

impl Unsupported {
    fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Unsupported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Unsupported {}

impl Unsupported {
    /// The error for a caller without a CPU fallback.
    pub fn error(self) -> Error {
        Error::unsupported(self.reason)
    }
}

/// Mapping of lanes to workgroups: the part of a launch that the code depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Shape {
    /// Workgroups stride over all lanes.
    Free,
    /// A workgroup is a block.
    Blocks { lanes: u32, shared_bytes: u32 },
}

/// A program as a kernel.
#[derive(Debug, Clone)]
pub struct Lowered {
    kernel: Arc<Kernel>,
    shape: Shape,
    bounds: Bounds,
    unsupported: Option<Unsupported>,
}

impl Checked {
    /// Makes the kernel of a program. Of the launch, only the block's size and its shared memory
    /// matter, and only if the program has barriers or shared memory.
    ///
    /// # Errors
    /// Features that device code does not support: f64 arithmetic, more buffers than bindings,
    /// pools over 16 KiB, programs without stores.
    ///
    /// # Example
    /// ```
    /// use tectum_programs::{Bounds, LaunchConfig, Program, Unsupported};
    /// let program = Program::parse("buffer x: f32 read_write\nldg.f32 r0, [x]\nadd.f32 r0, r0, r0\nstg.f32 [x], r0")?.check()?;
    /// let lowered = program.lower(&LaunchConfig::linear(100, 32), Bounds::Checked).map_err(Unsupported::error)?;
    /// assert!(lowered.kernel().wgsl().contains("r0 = add_f32(r0, r0);"));
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn lower(&self, launch: &LaunchConfig, bounds: Bounds) -> Result<Lowered, Unsupported> {
        let program = self.program();
        let shape = Shape::of(program, launch);
        refuse(program, bounds)?;
        let kernel = source::kernel(self, shape, bounds)?;
        Ok(Lowered {
            kernel,
            shape,
            bounds,
            unsupported: None,
        })
    }

    /// As [`Checked::lower`]; a program that device code does not support becomes a kernel that
    /// runs only on the CPU, with the reason.
    ///
    /// # Errors
    /// `Unsupported` if no kernel can run the program: it has more buffers than a kernel has
    /// bindings, or no stores.
    pub fn lower_or_native(
        &self,
        launch: &LaunchConfig,
        bounds: Bounds,
    ) -> tectum::Result<Lowered> {
        match self.lower(launch, bounds) {
            Ok(lowered) => Ok(lowered),
            Err(unsupported)
                if self.program().buffers().len() > max_buffers(self.program(), bounds)
                    || !needs_launch(self.program(), bounds) =>
            {
                Err(unsupported.error())
            }
            Err(unsupported) => {
                let shape = Shape::of(self.program(), launch);
                let kernel = source::native_kernel(self, shape, bounds, &unsupported)?;
                Ok(Lowered {
                    kernel,
                    shape,
                    bounds,
                    unsupported: Some(unsupported),
                })
            }
        }
    }
}

impl Shape {
    pub(super) fn of(program: &Program, launch: &LaunchConfig) -> Shape {
        let shares = |instruction: &Instruction| {
            matches!(
                instruction,
                Instruction::LoadShared { .. }
                    | Instruction::StoreShared { .. }
                    | Instruction::Barrier { .. }
            )
        };
        if !program.instructions().iter().any(shares) {
            return Shape::Free;
        }
        Shape::Blocks {
            lanes: launch.block_lanes().min(u64::from(u32::MAX)) as u32,
            shared_bytes: program.shared_bytes().max(launch.shared_bytes),
        }
    }
}

/// Features that no kernel of the portable profile supports.
fn refuse(program: &Program, bounds: Bounds) -> Result<(), Unsupported> {
    let buffers = program.buffers().len();
    let most = max_buffers(program, bounds);
    let (instructions, pool) = (program.instructions().len(), program.pool_bytes());
    if buffers > most {
        Err(Unsupported::new(format!(
            "{buffers} buffers; a kernel has {MAX_BINDINGS} bindings, {most} of them for buffers here"
        )))
    } else if pool > MAX_POOL_BYTES {
        Err(Unsupported::new(format!(
            "a pool of {pool} bytes a lane; device code keeps at most {MAX_POOL_BYTES}"
        )))
    } else if instructions > MAX_INSTRUCTIONS {
        Err(Unsupported::new(format!(
            "{instructions} instructions; device code has at most {MAX_INSTRUCTIONS}"
        )))
    } else if !needs_launch(program, bounds) {
        Err(Unsupported::new("the program stores nowhere"))
    } else {
        Ok(())
    }
}

/// Bindings available for buffers.
fn max_buffers(program: &Program, bounds: Bounds) -> usize {
    MAX_BINDINGS - usize::from(reports_faults(program, bounds))
}

/// Whether a launch reports its first fault: every kind if it is checked, otherwise loops that did
/// not end.
pub(crate) fn reports_faults(program: &Program, bounds: Bounds) -> bool {
    bounds == Bounds::Checked || program.has_loops()
}

/// Whether a launch can have any effect: a store, or a fault.
fn needs_launch(program: &Program, bounds: Bounds) -> bool {
    reports_faults(program, bounds)
        || program
            .buffers()
            .iter()
            .any(|buffer| buffer.access.writes())
}

impl Lowered {
    /// The kernel. Its bindings are the buffers as words, then the words of the first fault if it
    /// is checked or has loops.
    pub fn kernel(&self) -> &Arc<Kernel> {
        &self.kernel
    }

    /// How the code handles faults.
    pub fn bounds(&self) -> Bounds {
        self.bounds
    }

    /// Why the kernel runs only on the CPU, if it does.
    pub fn unsupported(&self) -> Option<&Unsupported> {
        self.unsupported.as_ref()
    }

    /// Workgroups of a launch; 0 for one without lanes.
    pub fn groups(&self, launch: &LaunchConfig) -> u32 {
        let groups = match self.shape {
            Shape::Free => launch.lanes().div_ceil(u64::from(WORKGROUP)),
            Shape::Blocks { .. } => {
                if launch.lanes() == 0 {
                    0
                } else {
                    launch.blocks()
                }
            }
        };
        groups.min(u64::from(MAX_GROUPS)) as u32
    }

    /// The kernel's parameters for a launch over buffers of these bytes.
    pub fn params(&self, launch: &LaunchConfig, sizes: &[u64]) -> Vec<u32> {
        let word = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        let launched = [
            word(launch.lanes()),
            word(launch.blocks()),
            word(launch.block_lanes()),
            launch.block[0],
            launch.grid[0],
            0,
            launch.max_loop_iterations,
        ];
        launched
            .into_iter()
            .chain(sizes.iter().map(|bytes| word(*bytes)))
            .collect()
    }

    /// Whether a device supports the kernel.
    ///
    /// # Errors
    /// The reason why it does not.
    pub fn fits(&self, device: &DeviceInfo) -> Result<(), Unsupported> {
        if device.api == tectum::Api::Cpu {
            return Ok(());
        } else if let Some(unsupported) = &self.unsupported {
            return Err(unsupported.clone());
        }
        let Shape::Blocks {
            lanes,
            shared_bytes,
        } = self.shape
        else {
            return Ok(());
        };
        let limits = &device.limits;
        if lanes > limits.max_workgroup_size {
            Err(Unsupported::new(format!(
                "blocks of {lanes} lanes; {} takes {}",
                device.id, limits.max_workgroup_size
            )))
        } else if shared_bytes.saturating_add(4) > limits.workgroup_memory_bytes {
            Err(Unsupported::new(format!(
                "{shared_bytes} bytes of shared memory; {} has {}",
                device.id, limits.workgroup_memory_bytes
            )))
        } else {
            Ok(())
        }
    }
}

/// The fault that the words of a launch report, if any.
pub fn read_fault(words: &[u32], program: &Program) -> Option<Fault> {
    faults::read(words, program)
}

/// Whether every launch stores each element of a buffer that it covers, whole words at a time.
fn covers(program: &Program, buffer: usize) -> bool {
    let straight = program
        .instructions()
        .iter()
        .take_while(|instruction| instruction.target().is_none() && instruction.falls_through());
    straight.into_iter().any(|instruction| match instruction {
        Instruction::StoreGlobal {
            ty,
            address: Address::Own { buffer: stored },
            ..
        } => stored.0 as usize == buffer && ty.bytes() >= 4,
        _ => false,
    })
}

/// Adds a line at an indentation.
fn indented(text: &mut String, indent: u32, line: &str) {
    for _ in 0..indent {
        text.push_str("    ");
    }
    text.push_str(line);
    text.push('\n');
}

#[cfg(test)]
mod tests;
