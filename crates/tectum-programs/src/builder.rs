//! Building programs in Rust.

use tectum::{Error, Result};

use super::{
    Address, BinaryOp, BranchTarget, BufferAccess, BufferDeclaration, BufferIndex, Condition,
    Guard, Instruction, Label, Predicate, Program, ProgramParts, Register, TernaryOp, Type,
    UnaryOp,
};

/// Collects declarations and instructions, then makes a [`Program`].
///
/// While building, a [`BranchTarget`] is the number of a label, given by [`ProgramBuilder::label`]
/// before or after its position is known; [`ProgramBuilder::finish`] replaces them by instruction
/// indices.
///
/// ```
/// use tectum_programs::{Address, BinaryOp, BufferAccess, ProgramBuilder, Register, Type};
/// let mut add = ProgramBuilder::new("vector_add");
/// let [a, b] = ["a", "b"].map(|name| add.buffer(name, Type::F32, BufferAccess::Read));
/// let y = add.buffer("y", Type::F32, BufferAccess::Write);
/// add.load(Type::F32, Register(0), Address::Own { buffer: a });
/// add.load(Type::F32, Register(1), Address::Own { buffer: b });
/// add.binary(BinaryOp::Add, Type::F32, Register(2), Register(0), Register(1));
/// add.store(Type::F32, Address::Own { buffer: y }, Register(2));
/// let program = add.finish()?;
/// assert_eq!(program.instructions().len(), 4);
/// # Ok::<(), tectum::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct ProgramBuilder {
    parts: ProgramParts,
    /// Names of labels with their positions, once known.
    labels: Vec<(String, Option<BranchTarget>)>,
}

impl ProgramBuilder {
    /// Starts an empty program.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            parts: ProgramParts {
                name: name.into(),
                ..ProgramParts::default()
            },
            labels: Vec::new(),
        }
    }

    /// Declares a buffer.
    pub fn buffer(
        &mut self,
        name: impl Into<String>,
        ty: Type,
        access: BufferAccess,
    ) -> BufferIndex {
        self.declare(BufferDeclaration {
            name: name.into(),
            ty,
            access,
            boundary: false,
        })
    }

    /// Declares a buffer in full.
    pub fn declare(&mut self, declaration: BufferDeclaration) -> BufferIndex {
        self.parts.buffers.push(declaration);
        BufferIndex(self.parts.buffers.len() as u32 - 1)
    }

    /// Requests bytes of shared memory.
    pub fn shared(&mut self, bytes: u32) -> &mut Self {
        self.parts.shared_bytes = bytes;
        self
    }

    /// Requests bytes of every lane's own pool.
    pub fn pool(&mut self, bytes: u32) -> &mut Self {
        self.parts.pool_bytes = bytes;
        self
    }

    /// Names a label whose position is set by [`ProgramBuilder::place`].
    pub fn label(&mut self, name: impl Into<String>) -> BranchTarget {
        self.labels.push((name.into(), None));
        BranchTarget(self.labels.len() as u32 - 1)
    }

    /// Sets a label to the position of the next instruction.
    pub fn place(&mut self, label: BranchTarget) -> &mut Self {
        let here = BranchTarget(self.parts.instructions.len() as u32);
        if let Some((_, place)) = self.labels.get_mut(label.index()) {
            *place = Some(here);
        }
        self
    }

    /// Adds any instruction.
    pub fn push(&mut self, instruction: Instruction) -> &mut Self {
        self.parts.instructions.push(instruction);
        self
    }

    /// Adds `ldg`.
    pub fn load(&mut self, ty: Type, dst: Register, address: Address) -> &mut Self {
        self.push(Instruction::LoadGlobal { ty, dst, address })
    }

    /// Adds `stg`.
    pub fn store(&mut self, ty: Type, address: Address, src: Register) -> &mut Self {
        self.push(Instruction::StoreGlobal { ty, src, address })
    }

    /// Adds `mov_imm` of bits; those above the type's width are dropped.
    pub fn immediate(&mut self, ty: Type, dst: Register, bits: u64) -> &mut Self {
        self.push(Instruction::MoveImmediate {
            ty,
            dst,
            bits: bits & ty.mask(),
        })
    }

    /// Adds `mov_imm.f32`.
    pub fn immediate_f32(&mut self, dst: Register, value: f32) -> &mut Self {
        self.immediate(Type::F32, dst, u64::from(value.to_bits()))
    }

    /// Adds an operation of one operand.
    pub fn unary(&mut self, op: UnaryOp, ty: Type, dst: Register, src: Register) -> &mut Self {
        self.push(Instruction::Unary { op, ty, dst, src })
    }

    /// Adds an operation of two operands.
    pub fn binary(
        &mut self,
        op: BinaryOp,
        ty: Type,
        dst: Register,
        a: Register,
        b: Register,
    ) -> &mut Self {
        self.push(Instruction::Binary { op, ty, dst, a, b })
    }

    /// Adds `mad` or `fma` of the operands a, b, c.
    pub fn ternary(
        &mut self,
        op: TernaryOp,
        ty: Type,
        dst: Register,
        [a, b, c]: [Register; 3],
    ) -> &mut Self {
        self.push(Instruction::Ternary {
            op,
            ty,
            dst,
            a,
            b,
            c,
        })
    }

    /// Adds a comparison.
    pub fn compare(
        &mut self,
        condition: Condition,
        ty: Type,
        dst: Predicate,
        a: Register,
        b: Register,
    ) -> &mut Self {
        self.push(Instruction::Compare {
            condition,
            ty,
            dst,
            a,
            b,
        })
    }

    /// Adds a branch that is always taken.
    pub fn branch(&mut self, target: BranchTarget) -> &mut Self {
        self.push(Instruction::Branch {
            target,
            guard: None,
        })
    }

    /// Adds a branch that is taken if the predicate is `when`.
    pub fn branch_if(
        &mut self,
        target: BranchTarget,
        predicate: Predicate,
        when: bool,
    ) -> &mut Self {
        self.push(Instruction::Branch {
            target,
            guard: Some(Guard { predicate, when }),
        })
    }

    /// Adds `loop`.
    pub fn loop_back(&mut self, count: Register, body: BranchTarget) -> &mut Self {
        self.push(Instruction::Loop { count, body })
    }

    /// The number of instructions so far.
    pub fn len(&self) -> usize {
        self.parts.instructions.len()
    }

    /// Whether there is no instruction yet.
    pub fn is_empty(&self) -> bool {
        self.parts.instructions.is_empty()
    }

    /// Makes the program.
    ///
    /// # Errors
    /// A label without a position or of another builder; what [`Program::new`] refuses.
    pub fn finish(self) -> Result<Program> {
        Program::new(self.resolved()?)
    }

    /// The parts, every label replaced by its position.
    fn resolved(mut self) -> Result<ProgramParts> {
        let mut labels = Vec::with_capacity(self.labels.len());
        for (name, place) in self.labels {
            let target = place
                .ok_or_else(|| Error::invalid(format!("program: label @{name} has no place")))?;
            labels.push(Label { name, target });
        }
        for instruction in &mut self.parts.instructions {
            if let Some(label) = instruction.target() {
                let found = labels.get(label.index()).ok_or_else(|| {
                    Error::invalid(format!("program: label {} does not exist", label.0))
                })?;
                *instruction = instruction.with_target(found.target);
            }
        }
        self.parts.labels = labels;
        Ok(self.parts)
    }
}
