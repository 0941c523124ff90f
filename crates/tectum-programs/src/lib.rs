//! Lane-level programs: one sequence of instructions that every lane of a launch runs.
//!
//! A program comes from text ([`Program::parse`]), from a [`ProgramBuilder`] or from bytes
//! ([`Program::from_bytes`]); all three end in the same structural checks, so a [`Program`] is
//! always well formed: its targets are instructions and have labels, its buffers are declared, its
//! predicates exist. `docs/programs.md` defines the instructions.
//!
//! ```
//! use tectum::Device;
//! use tectum_programs::{BufferIndex, LaunchConfig, Program};
//! let text = "buffer x: i32 read\nbuffer y: i32 write\nldg.i32 r0, [x]\nadd.i32 r0, r0, r0\nstg.i32 [y], r0";
//! let launch = LaunchConfig::linear(2, 256);
//! let mut run = Program::parse(text)?.check()?.bound(&launch, &[8, 8])?.plan()?.compile(&Device::open("cpu")?)?;
//! run.input(BufferIndex(0)).copy_from_slice(&[3, 0, 0, 0, 5, 0, 0, 0]);
//! run.run()?;
//! assert_eq!(run.output(BufferIndex(1)), [6, 0, 0, 0, 10, 0, 0, 0]);
//! # Ok::<(), tectum::Error>(())
//! ```
//!
//! | type | what for |
//! |---|---|
//! | [`Program`], [`ProgramBuilder`], [`Instruction`] | programs |
//! | [`Checked`], [`Bounds`], [`Diagnostic`] | what is proved before a run, and errors with their place |
//! | [`LaunchConfig`], [`Checked::evaluate`] | the reference interpreter, lane by lane |
//! | [`ProgramPlan`], [`ProgramRun`] | runs on a device |
//! | [`Recognition`] | programs that a built-in operation replaces |

// That threads may share what holds a device follows from all of wgpu's types.
#![recursion_limit = "256"]

mod address;
mod array_launch;
mod block;
mod bounds;
mod builder;
mod cache;
mod chain;
mod check;
mod class;
mod diagnostic;
mod evaluate;
mod extent;
mod fault;
pub mod generate;
mod instruction;
mod launch_config;
mod library;
mod lower;
mod operation;
mod recognize;
mod record;
mod register;
mod run;
mod run_cache;
mod samples;
mod scalar_type;
mod serialized;
mod structure;
mod text;

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

pub use address::{Address, BufferIndex, SharedAddress};
pub use array_launch::{ArrayLaunch, LaunchRequest};
pub use builder::ProgramBuilder;
pub use cache::CacheCounts;
pub(crate) use cache::LoweredCache;

pub use bounds::Bounds;
pub use chain::{Chain, MAX_INPUTS, Value};
pub use check::{Bounded, Checked};
pub use class::{
    BOUNDARY_BYTES, CLASSES, PAGE_BYTES, PAGES, PHASES, Phi, UNITY, boundary_offset, mirror,
    neighbors,
};
pub use diagnostic::Diagnostic;
pub use evaluate::{Outcome, scalar};
pub use fault::{Fault, FaultKind};
pub use instruction::{BranchTarget, Guard, Instruction, Operands, Reads, Write};
pub use launch_config::LaunchConfig;
pub use library::{LIBRARY, library_text};
pub use lower::{FAULT_WORDS, Lowered, Unsupported};
pub use operation::{BinaryOp, Condition, ReduceOp, Scope, TernaryOp, UnaryOp};
pub use recognize::{
    Fused, Map, Obligation, Recognition, Recognized, RecognizedLaunch, Refusal, Setting, Shape,
    Stage, fuse,
};
pub use record::{ProgramLaunch, ProgramView};
pub use register::{Predicate, Register};
pub use run::{Contents, ProgramPlan, ProgramRun, Recognize};
pub use run_cache::ProgramCache;
pub use samples::SAMPLES;
pub use scalar_type::Type;
pub use structure::{MAX_INSTRUCTIONS, MAX_POOL_BYTES, MAX_SHARED_BYTES};

/// How a program may use a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum BufferAccess {
    /// Loads only.
    Read,
    /// Stores only.
    Write,
    /// Both.
    ReadWrite,
}

impl BufferAccess {
    /// The name in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            BufferAccess::Read => "read",
            BufferAccess::Write => "write",
            BufferAccess::ReadWrite => "read_write",
        }
    }

    /// Whether loads are allowed.
    pub const fn reads(self) -> bool {
        !matches!(self, BufferAccess::Write)
    }

    /// Whether stores are allowed.
    pub const fn writes(self) -> bool {
        !matches!(self, BufferAccess::Read)
    }
}

/// A buffer that a program is given at launch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct BufferDeclaration {
    /// The name, by which the text form addresses it.
    pub name: String,
    /// Element type. Loads and stores that name the buffer are of this type; in a buffer of `u8`
    /// they are of any type.
    pub ty: Type,
    /// What the program may do with it.
    pub access: BufferAccess,
    /// Whether `[Phi(c,p,b)]` addresses this buffer; at most one buffer of a program.
    pub boundary: bool,
}

/// A name for a position in a program.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Label {
    /// The name, without the `@`.
    pub name: String,
    /// The position.
    pub target: BranchTarget,
}

/// Position of an instruction in its source; both from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The line.
    pub line: u32,
    /// The column, in characters.
    pub column: u32,
}

/// The text that a program was assembled from.
#[derive(Debug, Clone)]
pub struct Source {
    text: Arc<str>,
    spans: Arc<[Span]>,
}

/// The parts of a program.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProgramParts {
    /// The name, in messages and receipts.
    pub name: String,
    /// The buffers; [`BufferIndex`] is an index into this list.
    pub buffers: Vec<BufferDeclaration>,
    /// Bytes of shared memory of a block.
    pub shared_bytes: u32,
    /// Bytes of each lane's own pool.
    pub pool_bytes: u32,
    /// The labels, by ascending target; every target of an instruction has at least one.
    pub labels: Vec<Label>,
    /// The instructions.
    pub instructions: Vec<Instruction>,
}

/// A well-formed program. Two are equal if their parts are equal, whatever their origin.
#[derive(Clone)]
pub struct Program {
    parts: Arc<ProgramParts>,
    source: Option<Source>,
}

impl Program {
    /// The name.
    pub fn name(&self) -> &str {
        &self.parts.name
    }

    /// The buffers, in the order of their indices.
    pub fn buffers(&self) -> &[BufferDeclaration] {
        &self.parts.buffers
    }

    /// A buffer's declaration.
    ///
    /// # Panics
    /// If the index does not belong to this program.
    pub fn buffer(&self, index: BufferIndex) -> &BufferDeclaration {
        &self.parts.buffers[index.0 as usize]
    }

    /// The buffer that `[Phi(c,p,b)]` addresses.
    pub fn boundary(&self) -> Option<BufferIndex> {
        self.parts
            .buffers
            .iter()
            .position(|buffer| buffer.boundary)
            .map(|index| BufferIndex(index as u32))
    }

    /// The instructions; branches hold indices into them.
    pub fn instructions(&self) -> &[Instruction] {
        &self.parts.instructions
    }

    /// Whether an instruction may jump back.
    pub fn has_loops(&self) -> bool {
        self.instructions()
            .iter()
            .enumerate()
            .any(|(index, instruction)| instruction.turns(index))
    }

    /// The labels, by ascending target.
    pub fn labels(&self) -> &[Label] {
        &self.parts.labels
    }

    /// The first label of a position.
    pub fn label_of(&self, target: BranchTarget) -> Option<&str> {
        let first = self
            .parts
            .labels
            .partition_point(|label| label.target < target);
        self.parts
            .labels
            .get(first)
            .filter(|label| label.target == target)
            .map(|label| label.name.as_str())
    }

    /// Minimum bytes of shared memory of a block.
    pub fn shared_bytes(&self) -> u32 {
        self.parts.shared_bytes
    }

    /// Bytes of each lane's pool.
    pub fn pool_bytes(&self) -> u32 {
        self.parts.pool_bytes
    }

    /// Everything the program is made of.
    pub fn parts(&self) -> &ProgramParts {
        &self.parts
    }

    /// Position of an instruction in the text that the program was assembled from, if any.
    pub fn span(&self, index: usize) -> Option<Span> {
        self.source.as_ref()?.spans.get(index).copied()
    }

    /// The text that the program was assembled from, if any.
    pub fn source_text(&self) -> Option<&str> {
        self.source.as_ref().map(|source| &*source.text)
    }
}

impl PartialEq for Program {
    fn eq(&self, other: &Self) -> bool {
        self.parts == other.parts
    }
}

impl Eq for Program {}

impl Hash for Program {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts.hash(state);
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.fmt(f)
    }
}

#[cfg(test)]
mod tests;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
