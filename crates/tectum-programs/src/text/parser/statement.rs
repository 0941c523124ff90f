//! Declarations and instructions.

use super::cursor::{Cursor, Read, SyntaxError, register};
use super::{Parser, lexer};
use crate::structure::{buffer_name, memories};
use crate::text::immediate::bits_of;
use crate::{
    Address, BinaryOp, BranchTarget, BufferAccess, BufferDeclaration, BufferIndex, Condition,
    Guard, Instruction, Phi, ReduceOp, Register, Scope, SharedAddress, TernaryOp, Type, UnaryOp,
};

/// A mnemonic: its first part and the parts after dots.
struct Mnemonic<'a> {
    text: &'a str,
    head: &'a str,
    tail: Vec<&'a str>,
    column: u32,
}

impl<'a> Mnemonic<'a> {
    fn new(text: &'a str, column: u32) -> Self {
        let mut parts = text.split('.');
        Self {
            text,
            head: parts.next().unwrap_or_default(),
            tail: parts.collect(),
            column,
        }
    }

    fn unknown(&self) -> SyntaxError {
        SyntaxError {
            column: self.column,
            message: format!("`{}` is not an instruction", self.text),
        }
    }

    /// The parts after the first; their number must be this.
    fn parts<const N: usize>(&self) -> Read<[&'a str; N]> {
        <[&str; N]>::try_from(self.tail.as_slice()).map_err(|_| self.unknown())
    }

    fn ty(&self) -> Read<Type> {
        let [name] = self.parts()?;
        self.named(name)
    }

    fn named(&self, name: &str) -> Read<Type> {
        Type::from_name(name).ok_or_else(|| SyntaxError {
            column: self.column,
            message: format!("`{}`: `{name}` is not a type", self.text),
        })
    }
}

impl Parser {
    /// A declaration or an instruction.
    pub(super) fn statement(&mut self, cursor: &mut Cursor<'_>) -> Read<()> {
        let column = cursor.column();
        let word = cursor.word("a declaration, a label or an instruction")?;
        match word {
            "program" => {
                self.parts.name = cursor.word("the program's name")?.to_owned();
                Ok(())
            }
            "buffer" => self.buffer(cursor),
            "shared" => {
                self.parts.shared_bytes =
                    cursor.unsigned("a number of bytes", u64::from(u32::MAX))? as u32;
                memories(&self.parts).map_err(|message| SyntaxError { column, message })
            }
            "pool" => {
                self.parts.pool_bytes =
                    cursor.unsigned("a number of bytes", u64::from(u32::MAX))? as u32;
                memories(&self.parts).map_err(|message| SyntaxError { column, message })
            }
            _ => {
                let instruction = self.instruction(&Mnemonic::new(word, column), cursor)?;
                self.push(instruction, column)
            }
        }
    }

    /// `buffer NAME: TYPE ACCESS [boundary]`
    fn buffer(&mut self, cursor: &mut Cursor<'_>) -> Read<()> {
        let column = cursor.column();
        let name = cursor.word("the buffer's name")?;
        buffer_name(name).map_err(|message| SyntaxError { column, message })?;
        cursor.expect_punctuation(":")?;
        let type_column = cursor.column();
        let ty = cursor.word("a type")?;
        let ty = Type::from_name(ty).ok_or_else(|| SyntaxError {
            column: type_column,
            message: format!("`{ty}` is not a type"),
        })?;
        let access_column = cursor.column();
        let access = match cursor.word("read, write or read_write")? {
            "read" => BufferAccess::Read,
            "write" => BufferAccess::Write,
            "read_write" => BufferAccess::ReadWrite,
            other => {
                return Err(SyntaxError {
                    column: access_column,
                    message: format!("`{other}`: read, write or read_write is needed"),
                });
            }
        };
        let boundary = cursor.peek().is_some_and(|token| token.text == "boundary");
        if boundary {
            cursor.word("boundary")?;
        }
        let index = BufferIndex(self.parts.buffers.len() as u32);
        if self.buffers.insert(name.to_owned(), index).is_some() {
            return Err(SyntaxError {
                column,
                message: format!("buffer {name} is declared twice"),
            });
        }
        self.parts.buffers.push(BufferDeclaration {
            name: name.to_owned(),
            ty,
            access,
            boundary,
        });
        Ok(())
    }

    fn instruction(
        &mut self,
        mnemonic: &Mnemonic<'_>,
        cursor: &mut Cursor<'_>,
    ) -> Read<Instruction> {
        if let Some(found) = arithmetic(mnemonic, cursor)? {
            return Ok(found);
        }
        match mnemonic.head {
            "ldg" | "stg" | "lds" | "sts" | "pool_load" | "pool_store" => {
                self.memory(mnemonic, cursor)
            }
            "bra" | "call" | "loop" => self.jump(mnemonic, cursor),
            _ => plain(mnemonic, cursor),
        }
    }

    fn memory(&mut self, mnemonic: &Mnemonic<'_>, cursor: &mut Cursor<'_>) -> Read<Instruction> {
        let ty = mnemonic.ty()?;
        let is_load = matches!(mnemonic.head, "ldg" | "lds" | "pool_load");
        let loaded = if is_load {
            Some(cursor.register()?)
        } else {
            None
        };
        if is_load {
            cursor.comma()?;
        }
        let place = self.place(mnemonic.head, cursor)?;
        if !is_load {
            cursor.comma()?;
        }
        let value = match loaded {
            Some(dst) => dst,
            None => cursor.register()?,
        };
        Ok(match place {
            MemoryOperand::Global(address) if is_load => Instruction::LoadGlobal {
                ty,
                dst: value,
                address,
            },
            MemoryOperand::Global(address) => Instruction::StoreGlobal {
                ty,
                src: value,
                address,
            },
            MemoryOperand::Shared(address) if is_load => Instruction::LoadShared {
                ty,
                dst: value,
                address,
            },
            MemoryOperand::Shared(address) => Instruction::StoreShared {
                ty,
                src: value,
                address,
            },
            MemoryOperand::Pool { handle, offset } if is_load => Instruction::PoolLoad {
                ty,
                dst: value,
                handle,
                offset,
            },
            MemoryOperand::Pool { handle, offset } => Instruction::PoolStore {
                ty,
                src: value,
                handle,
                offset,
            },
        })
    }

    /// The address in brackets of a memory instruction.
    fn place(&mut self, head: &str, cursor: &mut Cursor<'_>) -> Read<MemoryOperand> {
        cursor.expect_punctuation("[")?;
        let place = match head {
            "ldg" | "stg" => MemoryOperand::Global(self.global(cursor)?),
            "lds" | "sts" => MemoryOperand::Shared(shared(cursor)?),
            _ => {
                let handle = cursor.register()?;
                cursor.expect_punctuation("+")?;
                MemoryOperand::Pool {
                    handle,
                    offset: cursor.register()?,
                }
            }
        };
        cursor.expect_punctuation("]")?;
        Ok(place)
    }

    fn global(&mut self, cursor: &mut Cursor<'_>) -> Read<Address> {
        let column = cursor.column();
        let base = cursor.word("a buffer, a register or Phi(class,page,byte)")?;
        if base == "Phi" {
            return phi(cursor);
        }
        if let Some(handle) = register(base) {
            cursor.expect_punctuation("+")?;
            return Ok(match offset(cursor)? {
                Offset::Constant(bytes) => Address::Handle { handle, bytes },
                Offset::Register(offset) => Address::Computed { handle, offset },
            });
        }
        let buffer = self.buffers.get(base).copied();
        let buffer = buffer.ok_or_else(|| SyntaxError {
            column,
            message: format!("buffer {base} is not declared"),
        })?;
        if !cursor.take_mark("+") {
            return Ok(Address::Own { buffer });
        }
        Ok(match offset(cursor)? {
            Offset::Constant(bytes) => Address::Constant { buffer, bytes },
            Offset::Register(offset) => Address::Indexed { buffer, offset },
        })
    }

    fn jump(&mut self, mnemonic: &Mnemonic<'_>, cursor: &mut Cursor<'_>) -> Read<Instruction> {
        let [] = mnemonic.parts()?;
        match mnemonic.head {
            "call" => Ok(Instruction::Call {
                target: self.target(cursor)?,
            }),
            "loop" => {
                let count = cursor.register()?;
                cursor.comma()?;
                Ok(Instruction::Loop {
                    count,
                    body: self.target(cursor)?,
                })
            }
            _ => {
                let target = self.target(cursor)?;
                if !cursor.take_mark(",") {
                    return Ok(Instruction::Branch {
                        target,
                        guard: None,
                    });
                }
                let when = !cursor.take_mark("!");
                Ok(Instruction::Branch {
                    target,
                    guard: Some(Guard {
                        predicate: cursor.predicate()?,
                        when,
                    }),
                })
            }
        }
    }

    /// `@name`; the target is the label's number until all labels are known.
    fn target(&mut self, cursor: &mut Cursor<'_>) -> Read<BranchTarget> {
        let column = cursor.column();
        cursor.expect_punctuation("@")?;
        let name = cursor.word("a label's name")?;
        Ok(BranchTarget(self.label(name, column)))
    }
}

enum MemoryOperand {
    Global(Address),
    Shared(SharedAddress),
    Pool { handle: Register, offset: Register },
}

enum Offset {
    Constant(u64),
    Register(Register),
}

fn offset(cursor: &mut Cursor<'_>) -> Read<Offset> {
    match cursor.peek() {
        Some(token) if token.kind == lexer::Kind::Number => cursor
            .unsigned("an offset in bytes", u64::MAX)
            .map(Offset::Constant),
        _ => cursor.register().map(Offset::Register),
    }
}

fn shared(cursor: &mut Cursor<'_>) -> Read<SharedAddress> {
    let column = cursor.column();
    match cursor.word("shared")? {
        "shared" if !cursor.take_mark("+") => Ok(SharedAddress::Own),
        "shared" => Ok(match offset(cursor)? {
            Offset::Constant(bytes) => SharedAddress::Constant(bytes),
            Offset::Register(offset) => SharedAddress::Indexed(offset),
        }),
        other => Err(SyntaxError {
            column,
            message: format!("`{other}`: an address in shared memory begins with `shared`"),
        }),
    }
}

fn phi(cursor: &mut Cursor<'_>) -> Read<Address> {
    cursor.expect_punctuation("(")?;
    let class = cursor.unsigned("a class", 95)? as u8;
    cursor.comma()?;
    let page = cursor.unsigned("a page", 47)? as u8;
    cursor.comma()?;
    let byte = cursor.unsigned("a byte", 255)? as u8;
    cursor.expect_punctuation(")")?;
    Ok(Address::Phi(Phi { class, page, byte }))
}

/// `N` registers separated by commas.
fn registers<const N: usize>(cursor: &mut Cursor<'_>) -> Read<[Register; N]> {
    let mut found = [Register(0); N];
    for (index, register) in found.iter_mut().enumerate() {
        if index > 0 {
            cursor.comma()?;
        }
        *register = cursor.register()?;
    }
    Ok(found)
}

/// Instructions of the families; `None` if the mnemonic belongs to none.
fn arithmetic(mnemonic: &Mnemonic<'_>, cursor: &mut Cursor<'_>) -> Read<Option<Instruction>> {
    let head = mnemonic.head;
    let found = if let Some(op) = UnaryOp::from_name(head) {
        let (ty, [dst, src]) = (mnemonic.ty()?, registers(cursor)?);
        Instruction::Unary { op, ty, dst, src }
    } else if let Some(op) = BinaryOp::from_name(head) {
        let (ty, [dst, a, b]) = (mnemonic.ty()?, registers(cursor)?);
        Instruction::Binary { op, ty, dst, a, b }
    } else if let Some(op) = TernaryOp::from_name(head) {
        let (ty, [dst, a, b, c]) = (mnemonic.ty()?, registers(cursor)?);
        Instruction::Ternary {
            op,
            ty,
            dst,
            a,
            b,
            c,
        }
    } else if let Some(op) = ReduceOp::from_name(head) {
        let (ty, [dst, first]) = (mnemonic.ty()?, registers(cursor)?);
        cursor.comma()?;
        Instruction::Reduce {
            op,
            ty,
            dst,
            first,
            count: cursor.unsigned("a number of registers", 256)? as u32,
        }
    } else {
        return Ok(None);
    };
    Ok(Some(found))
}

/// Instructions without memory or labels.
fn plain(mnemonic: &Mnemonic<'_>, cursor: &mut Cursor<'_>) -> Read<Instruction> {
    match mnemonic.head {
        "mov" | "mov_imm" | "cvt" | "set" | "sel" => return typed(mnemonic, cursor),
        "bar" | "fence" => return synchronisation(mnemonic, cursor),
        _ => {}
    }
    let [] = mnemonic.parts()?;
    Ok(match mnemonic.head {
        "ret" => Instruction::Return,
        "exit" => Instruction::Exit,
        "cls_get" => Instruction::ClassGet {
            dst: cursor.register()?,
        },
        "mirror" => {
            let [dst, src] = registers(cursor)?;
            Instruction::Mirror { dst, src }
        }
        "unity_test" => {
            let dst = cursor.predicate()?;
            cursor.comma()?;
            Instruction::UnityTest {
                dst,
                epsilon_bits: immediate(Type::F32, cursor)? as u32,
            }
        }
        "nbr_count" => {
            let [dst, class] = registers(cursor)?;
            Instruction::NeighborCount { dst, class }
        }
        "nbr_get" => {
            let [dst, class] = registers(cursor)?;
            cursor.comma()?;
            Instruction::NeighborGet {
                dst,
                class,
                index: cursor.unsigned("an index", 255)? as u8,
            }
        }
        "res_accum" => {
            let [class, value] = registers(cursor)?;
            Instruction::ResonanceAccumulate { class, value }
        }
        "phase_get" => Instruction::PhaseGet {
            dst: cursor.register()?,
        },
        "phase_adv" => Instruction::PhaseAdvance {
            delta: cursor.unsigned("a step of the phase", u64::from(u16::MAX))? as u16,
        },
        "bound_map" => {
            let [dst, class, page, byte] = registers(cursor)?;
            Instruction::BoundaryMap {
                dst,
                class,
                page,
                byte,
            }
        }
        "pool_alloc" => {
            let dst = cursor.register()?;
            cursor.comma()?;
            Instruction::PoolAllocate {
                dst,
                bytes: cursor.unsigned("a number of bytes", u64::MAX)?,
            }
        }
        "pool_free" => Instruction::PoolFree {
            handle: cursor.register()?,
        },
        _ => return Err(mnemonic.unknown()),
    })
}

/// Moves, conversions, comparisons and selections.
fn typed(mnemonic: &Mnemonic<'_>, cursor: &mut Cursor<'_>) -> Read<Instruction> {
    Ok(match mnemonic.head {
        "mov" => {
            let (ty, [dst, src]) = (mnemonic.ty()?, registers(cursor)?);
            Instruction::Move { ty, dst, src }
        }
        "mov_imm" => {
            let (ty, dst) = (mnemonic.ty()?, cursor.register()?);
            cursor.comma()?;
            Instruction::MoveImmediate {
                ty,
                dst,
                bits: immediate(ty, cursor)?,
            }
        }
        "cvt" => {
            let [to, from] = mnemonic.parts()?;
            let (to, from, [dst, src]) = (
                mnemonic.named(to)?,
                mnemonic.named(from)?,
                registers(cursor)?,
            );
            Instruction::Convert { to, from, dst, src }
        }
        "set" => {
            let [condition, ty] = mnemonic.parts()?;
            let condition = Condition::from_name(condition).ok_or_else(|| mnemonic.unknown())?;
            let (ty, dst) = (mnemonic.named(ty)?, cursor.predicate()?);
            cursor.comma()?;
            let [a, b] = registers(cursor)?;
            Instruction::Compare {
                condition,
                ty,
                dst,
                a,
                b,
            }
        }
        _ => {
            let (ty, dst) = (mnemonic.ty()?, cursor.register()?);
            cursor.comma()?;
            let predicate = cursor.predicate()?;
            cursor.comma()?;
            let [on_true, on_false] = registers(cursor)?;
            Instruction::Select {
                ty,
                dst,
                predicate,
                on_true,
                on_false,
            }
        }
    })
}

fn synchronisation(mnemonic: &Mnemonic<'_>, cursor: &mut Cursor<'_>) -> Read<Instruction> {
    let [part] = mnemonic.parts()?;
    match (mnemonic.head, part) {
        ("bar", "sync") => Ok(Instruction::Barrier {
            id: cursor.unsigned("a barrier", 15)? as u8,
        }),
        ("fence", _) => Ok(Instruction::Fence {
            scope: Scope::from_name(part).ok_or_else(|| mnemonic.unknown())?,
        }),
        _ => Err(mnemonic.unknown()),
    }
}

fn immediate(ty: Type, cursor: &mut Cursor<'_>) -> Read<u64> {
    let column = cursor.column();
    let text = cursor.number("a number")?;
    bits_of(ty, text).map_err(|message| SyntaxError { column, message })
}
