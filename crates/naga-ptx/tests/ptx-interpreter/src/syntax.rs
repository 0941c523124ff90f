//! The text as a tree, with unresolved names.

use crate::scalar::Scalar;

/// State space of a variable or an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Generic,
    Global,
    Shared,
    Local,
    Const,
    Param,
}

/// A whole module.
pub(crate) struct Module<'a> {
    pub version: (u32, u32),
    /// The number after `sm_`.
    pub target: u32,
    pub variables: Vec<Variable<'a>>,
    pub entries: Vec<Entry<'a>>,
}

/// A declared variable that occupies memory.
#[derive(Clone, Debug)]
pub(crate) struct Variable<'a> {
    pub name: &'a str,
    pub line: u32,
    pub space: Space,
    pub alignment: usize,
    pub bytes: usize,
    /// The leading bytes from an initialiser.
    pub initial: Vec<u8>,
    /// An array of unknown size, `[]`, sized by the launch.
    pub is_dynamic: bool,
}

/// A kernel.
pub(crate) struct Entry<'a> {
    pub name: &'a str,
    pub line: u32,
    pub params: Vec<Variable<'a>>,
    /// The maximum number of threads that the directives allow.
    pub max_threads: Option<u32>,
    pub required_block: Option<[u32; 3]>,
    pub body: Vec<Statement<'a>>,
}

/// One element of a body, in order of appearance.
pub(crate) enum Statement<'a> {
    Registers {
        line: u32,
        scalar: Scalar,
        name: &'a str,
        /// The count of `name<count>`.
        count: Option<u32>,
    },
    Variable(Variable<'a>),
    Label {
        line: u32,
        name: &'a str,
    },
    BranchTargets {
        line: u32,
        name: &'a str,
        targets: Vec<&'a str>,
    },
    Instruction(Instruction<'a>),
    Open,
    Close,
}

/// An instruction as written.
pub(crate) struct Instruction<'a> {
    pub line: u32,
    pub text: &'a str,
    pub guard: Option<Guard<'a>>,
    pub opcode: &'a str,
    pub modifiers: Vec<&'a str>,
    pub operands: Vec<Operand<'a>>,
}

/// `@p` or `@!p`.
#[derive(Clone, Copy)]
pub(crate) struct Guard<'a> {
    pub register: &'a str,
    pub is_negated: bool,
}

/// An operand as written.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Operand<'a> {
    Name(&'a str),
    /// `!p`.
    Not(&'a str),
    /// A register with a component, as `%tid.x`.
    Component(&'a str, &'a str),
    /// Two's complement, and whether a minus sign was written.
    Integer(u64, bool),
    Single(u32),
    Double(u64),
    /// `symbol+offset` as a value.
    Offset(&'a str, i64),
    Vector(Vec<Operand<'a>>),
    Address(Base<'a>, i64),
    /// `p|q`; either side may be `_`.
    Pair(&'a str, &'a str),
}

/// The base before the offset in brackets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Base<'a> {
    Name(&'a str),
    Absolute,
}
