//! A decoded module: registers as slots, labels as indices, symbols as addresses.

use crate::decode;
use crate::error::Error;
use crate::execute;
use crate::launch::{Launch, Stats};
use crate::memory::Memory;
use crate::operation::Instruction;
use crate::parser;
use crate::syntax::Space;

/// A parsed and type-checked PTX module.
#[derive(Debug)]
pub struct Program {
    pub(crate) kernels: Vec<Kernel>,
    pub(crate) constants: Vec<Variable>,
    pub(crate) globals: Vec<Variable>,
}

impl Program {
    /// Parses and checks a module.
    ///
    /// # Errors
    ///
    /// Of kind [`Parse`](crate::ErrorKind::Parse) or [`Type`](crate::ErrorKind::Type), with the
    /// line.
    pub fn parse(ptx: &str) -> Result<Program, Error> {
        let module = parser::parse(ptx)?;
        decode::decode(&module)
    }

    /// Returns the names of the entries in order of appearance.
    pub fn entries(&self) -> impl Iterator<Item = &str> {
        self.kernels.iter().map(|kernel| kernel.name.as_str())
    }

    /// Returns the bytes of static shared memory that an entry declares, without the guard gaps.
    pub fn shared_bytes(&self, entry: &str) -> Option<usize> {
        let kernel = self.kernels.iter().find(|kernel| kernel.name == entry)?;
        Some(kernel.shared.iter().map(|variable| variable.bytes).sum())
    }

    /// Executes one launch to its end. Module variables are reinitialised for every launch.
    ///
    /// # Errors
    ///
    /// Of kind [`Launch`](crate::ErrorKind::Launch) when the launch does not fit the entry, and of
    /// kind [`Fault`](crate::ErrorKind::Fault) when a thread breaks a rule; memory then contains
    /// earlier writes.
    pub fn run(&self, memory: &mut Memory, launch: &Launch<'_>) -> Result<Stats, Error> {
        execute::run(self, memory, launch)
    }
}

/// One entry, ready to execute.
#[derive(Debug)]
pub(crate) struct Kernel {
    pub name: String,
    pub params: Vec<Variable>,
    pub shared: Vec<Variable>,
    pub local: Vec<Variable>,
    /// The address of the dynamic shared arrays, when there are any.
    pub dynamic_shared: Option<u64>,
    pub max_threads: Option<u32>,
    pub required_block: Option<[u32; 3]>,
    pub slots: usize,
    /// The name of each register slot.
    pub registers: Vec<String>,
    pub instructions: Vec<Instruction>,
    /// The text of each instruction.
    pub texts: Vec<String>,
}

/// A variable at its address within its state space.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub address: u64,
    pub bytes: usize,
    pub initial: Vec<u8>,
}

/// The first state-space address of each window.
///
/// Windows do not overlap, so an address of one space used in another is detected.
pub(crate) fn window(space: Space) -> u64 {
    match space {
        Space::Shared => 0x1000_0000,
        Space::Local => 0x2000_0000,
        Space::Const => 0x3000_0000,
        Space::Param => 0x4000_0000,
        Space::Global => 0x7e00_0000_0000,
        Space::Generic => 0,
    }
}

/// Maximum bytes of a window.
pub(crate) const WINDOW_BYTES: u64 = 0x1000_0000;

/// The offset that `cvta` adds to a state-space address other than a global one.
pub(crate) const GENERIC_OFFSET: u64 = 0x5500_0000_0000;
