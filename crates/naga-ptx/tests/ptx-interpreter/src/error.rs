//! Errors with their position in the text and, at run time, their thread.

use std::fmt;

/// The stage that reported the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The text is not PTX of the supported subset.
    Parse,
    /// The text parses but breaks a typing, target or declaration rule.
    Type,
    /// The launch or a host access does not fit the program or the memory.
    Launch,
    /// A running thread executed something that the manual leaves undefined or forbids.
    Fault(Fault),
}

/// The rule a running thread broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A register was read before any write on this path, or held an undefined value.
    UndefinedRegister,
    /// Bytes were read before any write.
    Uninitialised,
    /// The address is in no live allocation or variable.
    OutOfRange,
    /// The address is not a multiple of the access size.
    Misaligned,
    /// The address belongs to another state space than the instruction names.
    WrongSpace,
    /// A store reached constant or parameter memory.
    ReadOnly,
    /// `ld.global.nc` read memory written in the same launch.
    NonCoherent,
    /// The manual does not define the result, as for a division by zero.
    UndefinedResult,
    /// Threads wait for threads that will never arrive.
    Deadlock,
    /// A warp-level instruction or aligned barrier was executed by the wrong set of threads.
    Divergence,
    /// Two unordered accesses to one byte, one of them a plain write or read.
    Race,
    /// The launch executed more instructions than its limit.
    Limit,
    /// A `trap` instruction ran.
    Trap,
}

/// The thread that faulted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// `%ctaid`.
    pub block: [u32; 3],
    /// `%tid`.
    pub thread: [u32; 3],
}

/// An error while parsing, typing, launching or running.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: ErrorKind,
    line: u32,
    instruction: String,
    message: String,
    place: Option<Place>,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Error {
        Error {
            kind,
            line: 0,
            instruction: String::new(),
            message: message.into(),
            place: None,
        }
    }

    pub(crate) fn parse(line: u32, message: impl Into<String>) -> Error {
        Error {
            line,
            ..Error::new(ErrorKind::Parse, message)
        }
    }

    pub(crate) fn typing(line: u32, message: impl Into<String>) -> Error {
        Error {
            line,
            ..Error::new(ErrorKind::Type, message)
        }
    }

    pub(crate) fn launch(message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Launch, message)
    }

    pub(crate) fn fault(fault: Fault, message: impl Into<String>) -> Error {
        Error::new(ErrorKind::Fault(fault), message)
    }

    pub(crate) fn at_instruction(mut self, line: u32, instruction: &str) -> Error {
        if self.instruction.is_empty() {
            self.line = line;
            self.instruction = instruction.to_owned();
        }
        self
    }

    pub(crate) fn at_place(mut self, place: Place) -> Error {
        self.place.get_or_insert(place);
        self
    }

    /// Returns the stage that reported the error, with the broken rule for a fault.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the line of the PTX text, counted from 1, or 0 when no line applies.
    pub fn line(&self) -> u32 {
        self.line
    }

    /// Returns the text of the instruction concerned, empty when there is none.
    pub fn instruction(&self) -> &str {
        &self.instruction
    }

    /// Returns the block and thread of a fault.
    pub fn place(&self) -> Option<Place> {
        self.place
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ErrorKind::Parse => write!(out, "parse error")?,
            ErrorKind::Type => write!(out, "type error")?,
            ErrorKind::Launch => write!(out, "launch error")?,
            ErrorKind::Fault(fault) => write!(out, "fault {fault:?}")?,
        }
        if self.line != 0 {
            write!(out, ", line {}", self.line)?;
        }
        if let Some(place) = self.place {
            write!(out, ", block {:?} thread {:?}", place.block, place.thread)?;
        }
        write!(out, ": {}", self.message)?;
        if !self.instruction.is_empty() {
            write!(out, " in `{}`", self.instruction)?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}
