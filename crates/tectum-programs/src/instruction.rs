//! The instructions.

use serde::{Deserialize, Serialize};
use smallvec::{SmallVec, smallvec};

use super::{
    Address, BinaryOp, Condition, Predicate, ReduceOp, Register, Scope, SharedAddress, TernaryOp,
    Type, UnaryOp,
};

/// A position in a program: the index of an instruction, or the number of instructions, which is
/// the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BranchTarget(pub u32);

impl BranchTarget {
    /// The index of the instruction.
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// A predicate and the value of it that a branch requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Guard {
    /// What is tested.
    pub predicate: Predicate,
    /// The value for which the branch is taken: `p0` or `!p0`.
    pub when: bool,
}

/// One step of a lane. `docs/programs.md` gives the exact meaning of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[allow(
    missing_docs,
    reason = "fields are named for what they hold; each variant's text names those that are not plain operands"
)]
pub enum Instruction {
    /// `ldg.f32 r1, [b0]`: loads from a buffer.
    LoadGlobal {
        ty: Type,
        dst: Register,
        address: Address,
    },
    /// `stg.f32 [b0], r1`: stores to a buffer.
    StoreGlobal {
        ty: Type,
        src: Register,
        address: Address,
    },
    /// `lds.f32 r1, [shared + 4]`: loads from shared memory.
    LoadShared {
        ty: Type,
        dst: Register,
        address: SharedAddress,
    },
    /// `sts.f32 [shared + 4], r1`: stores to shared memory.
    StoreShared {
        ty: Type,
        src: Register,
        address: SharedAddress,
    },
    /// `mov.f32 r1, r2`.
    Move {
        ty: Type,
        dst: Register,
        src: Register,
    },
    /// `mov_imm.f32 r1, 0.5`; `bits` has no bit above the type's width.
    MoveImmediate { ty: Type, dst: Register, bits: u64 },
    /// `cvt.f32.i32 r1, r2`: converts an i32 to an f32.
    Convert {
        to: Type,
        from: Type,
        dst: Register,
        src: Register,
    },
    /// `abs.f32 r1, r2` and its family.
    Unary {
        op: UnaryOp,
        ty: Type,
        dst: Register,
        src: Register,
    },
    /// `add.f32 r1, r2, r3` and its family; for shifts `b` is a u32.
    Binary {
        op: BinaryOp,
        ty: Type,
        dst: Register,
        a: Register,
        b: Register,
    },
    /// `mad.f32 r1, r2, r3, r4`, `fma.f32 …`.
    Ternary {
        op: TernaryOp,
        ty: Type,
        dst: Register,
        a: Register,
        b: Register,
        c: Register,
    },
    /// `set.lt.f32 p0, r1, r2`.
    Compare {
        condition: Condition,
        ty: Type,
        dst: Predicate,
        a: Register,
        b: Register,
    },
    /// `sel.f32 r1, p0, r2, r3`: `on_true` where the predicate holds, else `on_false`.
    Select {
        ty: Type,
        dst: Register,
        predicate: Predicate,
        on_true: Register,
        on_false: Register,
    },
    /// `bra @label`, `bra @label, p0`, `bra @label, !p0`.
    Branch {
        target: BranchTarget,
        guard: Option<Guard>,
    },
    /// `call @label`: the next `ret` continues after it.
    Call { target: BranchTarget },
    /// `ret`.
    Return,
    /// `loop r0, @body`: if the u32 `count` is above 0, takes one from it and goes to `body`; else
    /// continues.
    Loop { count: Register, body: BranchTarget },
    /// `exit`: ends the lane.
    Exit,
    /// `bar.sync 0`: waits until every lane of the block that has not ended is there.
    Barrier { id: u8 },
    /// `fence.device`: orders memory among the lanes of a scope.
    Fence { scope: Scope },
    /// `cls_get r1`: the block's class, u32.
    ClassGet { dst: Register },
    /// `mirror r1, r2`: the mirror of a class, both u32.
    Mirror { dst: Register, src: Register },
    /// `unity_test p0, 0.001`: whether |R\[1\] + R\[4\]| ≤ epsilon; `epsilon_bits` are those of an
    /// f32.
    UnityTest { dst: Predicate, epsilon_bits: u32 },
    /// `nbr_count r1, r2`: how many neighbours a class has, both u32.
    NeighborCount { dst: Register, class: Register },
    /// `nbr_get r1, r2, 3`: a class's neighbour of an index, in ascending order; 0 beyond the last.
    NeighborGet {
        dst: Register,
        class: Register,
        index: u8,
    },
    /// `res_accum r1, r2`: adds the f32 `value` to the lane's R\[class\]; the class is a u32.
    ResonanceAccumulate { class: Register, value: Register },
    /// `phase_get r1`: the lane's phase, u32.
    PhaseGet { dst: Register },
    /// `phase_adv 5`: adds to the lane's phase, modulo 768.
    PhaseAdvance { delta: u16 },
    /// `bound_map r1, r2, r3, r4`: the u64 offset in the boundary of (class, page, byte), each a
    /// u32.
    BoundaryMap {
        dst: Register,
        class: Register,
        page: Register,
        byte: Register,
    },
    /// `reduce_add.f32 r1, r8, 4`: reduces `count` consecutive registers from `first`.
    Reduce {
        op: ReduceOp,
        ty: Type,
        dst: Register,
        first: Register,
        count: u32,
    },
    /// `pool_alloc r1, 64`: allocates bytes of the lane's pool; `dst` gets a u64 handle.
    PoolAllocate { dst: Register, bytes: u64 },
    /// `pool_free r1`: frees the latest allocation.
    PoolFree { handle: Register },
    /// `pool_load.f32 r1, [r2 + r3]`: loads from a pool handle at an offset, both u64.
    PoolLoad {
        ty: Type,
        dst: Register,
        handle: Register,
        offset: Register,
    },
    /// `pool_store.f32 [r2 + r3], r1`: stores to a pool handle at an offset, both u64.
    PoolStore {
        ty: Type,
        src: Register,
        handle: Register,
        offset: Register,
    },
}

/// Registers with the types that they must hold; stored inline for all instructions except
/// reductions.
pub type Operands = SmallVec<[(Register, Type); 4]>;

/// The operands read by an instruction: registers with the type each must hold (a reduction reads
/// up to 256) and a predicate.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reads {
    /// In the order of the operands.
    pub registers: Operands,
    /// The predicate of a branch or a selection.
    pub predicate: Option<Predicate>,
}

/// The result of an instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Write {
    /// A register, which then holds this type.
    Register(Register, Type),
    /// A predicate.
    Predicate(Predicate),
}

impl Instruction {
    /// The registers and the predicate that are read.
    pub fn reads(&self) -> Reads {
        use Instruction as I;
        let predicate = match self {
            I::Select { predicate, .. } => Some(*predicate),
            I::Branch { guard, .. } => guard.map(|guard| guard.predicate),
            _ => None,
        };
        let address = |address: &Address| -> Operands {
            address
                .registers()
                .into_iter()
                .flatten()
                .map(|register| (register, Type::U64))
                .collect()
        };
        let shared = |address: &SharedAddress| -> Operands {
            match address {
                SharedAddress::Indexed(offset) => smallvec![(*offset, Type::U64)],
                SharedAddress::Own | SharedAddress::Constant(_) => Operands::new(),
            }
        };
        let registers: Operands = match self {
            I::LoadGlobal { address: at, .. } => address(at),
            I::StoreGlobal {
                ty,
                src,
                address: at,
            } => std::iter::once((*src, *ty)).chain(address(at)).collect(),
            I::LoadShared { address, .. } => shared(address),
            I::StoreShared { ty, src, address } => std::iter::once((*src, *ty))
                .chain(shared(address))
                .collect(),
            I::Move { ty, src, .. } | I::Unary { ty, src, .. } => smallvec![(*src, *ty)],
            I::Convert { from, src, .. } => smallvec![(*src, *from)],
            I::Binary { op, ty, a, b, .. } => smallvec![(*a, *ty), (*b, op.second_type(*ty))],
            I::Ternary { ty, a, b, c, .. } => smallvec![(*a, *ty), (*b, *ty), (*c, *ty)],
            I::Compare { ty, a, b, .. } => smallvec![(*a, *ty), (*b, *ty)],
            I::Select {
                ty,
                on_true,
                on_false,
                ..
            } => smallvec![(*on_true, *ty), (*on_false, *ty)],
            I::Loop { count, .. } => smallvec![(*count, Type::U32)],
            I::Mirror { src, .. } => smallvec![(*src, Type::U32)],
            I::NeighborCount { class, .. } | I::NeighborGet { class, .. } => {
                smallvec![(*class, Type::U32)]
            }
            I::ResonanceAccumulate { class, value } => {
                smallvec![(*class, Type::U32), (*value, Type::F32)]
            }
            I::BoundaryMap {
                class, page, byte, ..
            } => smallvec![(*class, Type::U32), (*page, Type::U32), (*byte, Type::U32)],
            I::Reduce {
                ty, first, count, ..
            } => (0..*count)
                .map_while(|i| Some((Register(u8::try_from(u32::from(first.0) + i).ok()?), *ty)))
                .collect(),
            I::PoolFree { handle } => smallvec![(*handle, Type::U64)],
            I::PoolLoad { handle, offset, .. } => {
                smallvec![(*handle, Type::U64), (*offset, Type::U64)]
            }
            I::PoolStore {
                ty,
                src,
                handle,
                offset,
            } => smallvec![(*src, *ty), (*handle, Type::U64), (*offset, Type::U64)],
            I::MoveImmediate { .. }
            | I::Branch { .. }
            | I::Call { .. }
            | I::Return
            | I::Exit
            | I::Barrier { .. }
            | I::Fence { .. } => Operands::new(),
            I::ClassGet { .. }
            | I::UnityTest { .. }
            | I::PhaseGet { .. }
            | I::PhaseAdvance { .. }
            | I::PoolAllocate { .. } => Operands::new(),
        };
        Reads {
            registers,
            predicate,
        }
    }

    /// The register or predicate that is written.
    pub fn write(&self) -> Option<Write> {
        use Instruction as I;
        let (register, ty) = match *self {
            I::LoadGlobal { ty, dst, .. }
            | I::LoadShared { ty, dst, .. }
            | I::PoolLoad { ty, dst, .. } => (dst, ty),
            I::Move { ty, dst, .. }
            | I::MoveImmediate { ty, dst, .. }
            | I::Unary { ty, dst, .. }
            | I::Binary { ty, dst, .. } => (dst, ty),
            I::Ternary { ty, dst, .. } | I::Select { ty, dst, .. } | I::Reduce { ty, dst, .. } => {
                (dst, ty)
            }
            I::Convert { to, dst, .. } => (dst, to),
            I::Loop { count, .. } => (count, Type::U32),
            I::ClassGet { dst } | I::Mirror { dst, .. } | I::NeighborCount { dst, .. } => {
                (dst, Type::U32)
            }
            I::NeighborGet { dst, .. } | I::PhaseGet { dst } => (dst, Type::U32),
            I::BoundaryMap { dst, .. } | I::PoolAllocate { dst, .. } => (dst, Type::U64),
            I::Compare { dst, .. } | I::UnityTest { dst, .. } => {
                return Some(Write::Predicate(dst));
            }
            _ => return None,
        };
        Some(Write::Register(register, ty))
    }

    /// The position that a branch, call or loop may go to.
    pub const fn target(&self) -> Option<BranchTarget> {
        match self {
            Instruction::Branch { target, .. }
            | Instruction::Call { target }
            | Instruction::Loop { body: target, .. } => Some(*target),
            _ => None,
        }
    }

    /// Whether it may jump back as the instruction of this index: a lane that never ends repeats
    /// such jumps.
    pub const fn turns(&self, index: usize) -> bool {
        matches!(self, Instruction::Branch { target, .. } | Instruction::Loop { body: target, .. } if target.index() <= index)
    }

    /// The same instruction with another target, if it has one.
    #[must_use]
    pub fn with_target(mut self, to: BranchTarget) -> Self {
        match &mut self {
            Instruction::Branch { target, .. }
            | Instruction::Call { target }
            | Instruction::Loop { body: target, .. } => *target = to,
            _ => {}
        }
        self
    }

    /// Whether the instruction after this one may be next in the same lane (a call comes back to
    /// it).
    pub const fn falls_through(&self) -> bool {
        !matches!(
            self,
            Instruction::Branch { guard: None, .. } | Instruction::Return | Instruction::Exit
        )
    }
}
