//! One instruction as WGSL statements.

use super::expression::{binary, compare, constant, convert, ternary, unary, variable, wrap};
use super::memory::{Memory, Space};
use super::{Bounds, Unsupported, faults};
use crate::{Address, BinaryOp, Instruction, Program, Register, SharedAddress, Type, UNITY};

/// The lowered form of an instruction.
pub struct Statement {
    /// Lines without indentation.
    pub lines: Vec<String>,
    /// Whether the lane may have faulted after it, in checked mode.
    pub may_fault: bool,
}

/// Makes statements of instructions that do not jump, and collects what they need.
pub struct Statements<'a> {
    pub program: &'a Program,
    pub bounds: Bounds,
    pub memory: Memory<'a>,
}

impl Statements<'_> {
    /// The statements of an instruction that only computes, loads or stores.
    pub fn of(&mut self, index: usize) -> Result<Statement, Unsupported> {
        use Instruction as I;
        let instruction = self.program.instructions()[index];
        let plain = |line: String| {
            Ok(Statement {
                lines: vec![line],
                may_fault: false,
            })
        };
        match instruction {
            I::LoadGlobal { .. } | I::StoreGlobal { .. } => self.global(index, instruction),
            I::LoadShared { .. } | I::StoreShared { .. } => self.shared(index, instruction),
            I::PoolAllocate { .. }
            | I::PoolFree { .. }
            | I::PoolLoad { .. }
            | I::PoolStore { .. } => self.pool(index, instruction),
            I::Binary {
                op: BinaryOp::Div,
                ty,
                dst,
                a,
                b,
            } if ty.is_integer() => self.division(index, ty, [dst, a, b]),
            I::Compare {
                condition,
                ty,
                dst,
                a,
                b,
            } => plain(format!(
                "{dst} = {};",
                compare(condition, ty, &variable(a, ty), &variable(b, ty))
            )),
            I::UnityTest { dst, epsilon_bits } => {
                let [first, second] = UNITY;
                plain(format!(
                    "{dst} = le_f32(add_f32(resonance[{first}u], resonance[{second}u]) & 0x7fffffffu, {epsilon_bits:#x}u);"
                ))
            }
            I::ResonanceAccumulate { class, value } => {
                let place = format!("resonance[r{} % 96u]", class.0);
                plain(format!("{place} = add_f32({place}, r{});", value.0))
            }
            I::PhaseAdvance { delta } => plain(format!("phase = (phase + {delta}u) % 768u;")),
            I::Fence { .. } => Ok(Statement {
                lines: Vec::new(),
                may_fault: false,
            }),
            I::Barrier { .. } => Ok(Statement {
                lines: vec![
                    "storageBarrier();".to_owned(),
                    "workgroupBarrier();".to_owned(),
                ],
                may_fault: false,
            }),
            _ => {
                let (dst, ty, value) = self.value(instruction)?;
                plain(format!("{} = {value};", variable(dst, ty)))
            }
        }
    }

    /// The value that an instruction writes to a register.
    fn value(&self, instruction: Instruction) -> Result<(Register, Type, String), Unsupported> {
        use Instruction as I;
        let word = |register: Register| variable(register, Type::U32);
        Ok(match instruction {
            I::Move { ty, dst, src } => (dst, ty, variable(src, ty)),
            I::MoveImmediate { ty, dst, bits } => (dst, ty, constant(ty, bits)),
            I::Convert { to, from, dst, src } => (dst, to, convert(to, from, &variable(src, from))),
            I::Unary { op, ty, dst, src } => (dst, ty, unary(op, ty, &variable(src, ty))?),
            I::Binary { op, ty, dst, a, b } => (
                dst,
                ty,
                binary(op, ty, &variable(a, ty), &variable(b, op.second_type(ty)))?,
            ),
            I::Ternary {
                op,
                ty,
                dst,
                a,
                b,
                c,
            } => (
                dst,
                ty,
                ternary(
                    op,
                    ty,
                    [a, b, c]
                        .map(|register| variable(register, ty))
                        .each_ref()
                        .map(String::as_str),
                )?,
            ),
            I::Select {
                ty,
                dst,
                predicate,
                on_true,
                on_false,
            } => (
                dst,
                ty,
                format!(
                    "select({}, {}, {predicate})",
                    variable(on_false, ty),
                    variable(on_true, ty)
                ),
            ),
            I::ClassGet { dst } => (dst, Type::U32, "block_x % 96u".to_owned()),
            I::Mirror { dst, src } => (dst, Type::U32, format!("mirror({})", word(src))),
            I::NeighborCount { dst, class } => {
                (dst, Type::U32, format!("neighbor_count({})", word(class)))
            }
            I::NeighborGet { dst, class, index } => (
                dst,
                Type::U32,
                format!("neighbor({}, {index}u)", word(class)),
            ),
            I::PhaseGet { dst } => (dst, Type::U32, "phase".to_owned()),
            I::BoundaryMap {
                dst,
                class,
                page,
                byte,
            } => (
                dst,
                Type::U64,
                format!("boundary({}, {}, {})", word(class), word(page), word(byte)),
            ),
            I::Reduce {
                op,
                ty,
                dst,
                first,
                count,
            } => {
                let start = variable(first, ty);
                let rest = (1..count)
                    .map(|place| variable(Register((u32::from(first.0) + place) as u8), ty));
                let all = rest.into_iter().try_fold(start, |so_far, next| {
                    let so_far = if ty == Type::I32 {
                        format!("({so_far})")
                    } else {
                        so_far
                    };
                    binary(op.step(), ty, &so_far, &next)
                });
                (dst, ty, all?)
            }
            other => unreachable!("invariant: {other:?} is a statement of its own"),
        })
    }

    fn division(
        &mut self,
        index: usize,
        ty: Type,
        [dst, a, b]: [Register; 3],
    ) -> Result<Statement, Unsupported> {
        let [dst, a, b] = [dst, a, b].map(|register| variable(register, ty));
        let mut lines = vec![format!("{dst} = {};", binary(BinaryOp::Div, ty, &a, &b)?)];
        let checked = self.bounds == Bounds::Checked;
        if checked {
            let zero = if ty.bytes() == 8 {
                format!("({b}.x | {b}.y) == 0u")
            } else {
                format!("{b} == 0u")
            };
            lines.insert(
                0,
                format!(
                    "if {zero} {{ fault({}u, {index}u, vec2<u32>(0u, 0u), 0u); }}",
                    faults::DIVISION_BY_ZERO
                ),
            );
        }
        Ok(Statement {
            lines,
            may_fault: checked,
        })
    }

    fn global(&mut self, index: usize, instruction: Instruction) -> Result<Statement, Unsupported> {
        let (Instruction::LoadGlobal { address, ty, .. }
        | Instruction::StoreGlobal { address, ty, .. }) = instruction
        else {
            unreachable!("invariant: only accesses of buffers come here")
        };
        if let Address::Own { buffer } = address {
            let buffer = buffer.0 as usize;
            let line = match instruction {
                Instruction::LoadGlobal { dst, .. } => {
                    let value = format!("{}(lane)", self.memory.load_own(buffer, ty));
                    format!("{} = {};", variable(dst, ty), extended(ty, value))
                }
                Instruction::StoreGlobal { src, .. } => format!(
                    "{}(lane, {});",
                    self.memory.store_own(buffer, ty),
                    variable(src, ty)
                ),
                _ => unreachable!("invariant: only accesses of buffers come here"),
            };
            return Ok(Statement {
                lines: vec![line],
                may_fault: false,
            });
        }
        let offset = |bytes: u64| constant(Type::U64, bytes);
        let (space, arguments) = match address {
            Address::Own { buffer } => (Space::Buffer(buffer.0 as usize), String::new()),
            Address::Constant { buffer, bytes } => {
                (Space::Buffer(buffer.0 as usize), offset(bytes))
            }
            Address::Indexed { buffer, offset } => {
                (Space::Buffer(buffer.0 as usize), format!("w{}", offset.0))
            }
            Address::Handle { handle, bytes } => {
                (Space::Handle, format!("w{}, {}", handle.0, offset(bytes)))
            }
            Address::Computed { handle, offset } => {
                (Space::Handle, format!("w{}, w{}", handle.0, offset.0))
            }
            Address::Phi(phi) => {
                let boundary = self
                    .program
                    .boundary()
                    .expect("invariant: a program with Phi has a boundary");
                (Space::Buffer(boundary.0 as usize), offset(phi.offset()))
            }
        };
        self.access(index, instruction, space, &arguments)
    }

    fn shared(&mut self, index: usize, instruction: Instruction) -> Result<Statement, Unsupported> {
        let (Instruction::LoadShared { address, ty, .. }
        | Instruction::StoreShared { address, ty, .. }) = instruction
        else {
            unreachable!("invariant: only accesses of shared memory come here")
        };
        let at = match address {
            SharedAddress::Own => format!("vec2<u32>(local * {}u, 0u)", ty.bytes()),
            SharedAddress::Constant(bytes) => constant(Type::U64, bytes),
            SharedAddress::Indexed(offset) => format!("w{}", offset.0),
        };
        self.access(index, instruction, Space::Shared, &at)
    }

    fn pool(&mut self, index: usize, instruction: Instruction) -> Result<Statement, Unsupported> {
        let at = |handle: Register, offset: Register, ty: Type| {
            format!(
                "pool_at(w{}, w{}, {}u, {index}u)",
                handle.0,
                offset.0,
                ty.bytes()
            )
        };
        match instruction {
            Instruction::PoolAllocate { dst, bytes } => {
                let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
                let line = format!("w{} = pool_take({bytes}u, {index}u);", dst.0);
                Ok(Statement {
                    lines: vec![line],
                    may_fault: self.bounds == Bounds::Checked,
                })
            }
            Instruction::PoolFree { handle } => Ok(Statement {
                lines: vec![format!("pool_give(w{});", handle.0)],
                may_fault: false,
            }),
            Instruction::PoolLoad {
                ty, handle, offset, ..
            }
            | Instruction::PoolStore {
                ty, handle, offset, ..
            } => self.access(index, instruction, Space::Pool, &at(handle, offset, ty)),
            other => unreachable!("invariant: {other:?} is no pool instruction"),
        }
    }

    /// A load or a store through a function of the memory.
    fn access(
        &mut self,
        index: usize,
        instruction: Instruction,
        space: Space,
        at: &str,
    ) -> Result<Statement, Unsupported> {
        use Instruction as I;
        let line = match instruction {
            I::LoadGlobal { ty, dst, .. }
            | I::LoadShared { ty, dst, .. }
            | I::PoolLoad { ty, dst, .. } => {
                let value = format!("{}({at}, {index}u)", self.memory.load(space, ty)?);
                format!("{} = {};", variable(dst, ty), extended(ty, value))
            }
            I::StoreGlobal { ty, src, .. }
            | I::StoreShared { ty, src, .. }
            | I::PoolStore { ty, src, .. } => {
                format!(
                    "{}({at}, {}, {index}u);",
                    self.memory.store(space, ty)?,
                    variable(src, ty)
                )
            }
            other => unreachable!("invariant: {other:?} accesses no memory"),
        };
        Ok(Statement {
            lines: vec![line],
            may_fault: self.bounds == Bounds::Checked,
        })
    }
}

/// Loaded bits as a register's value.
fn extended(ty: Type, bits: String) -> String {
    if ty.is_signed() { wrap(ty, bits) } else { bits }
}
