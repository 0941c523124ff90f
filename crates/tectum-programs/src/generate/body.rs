//! The statements of a generated program.

use super::random::Random;
use crate::{
    Address, BinaryOp, BranchTarget, BufferIndex, Condition, Instruction, Predicate, Program,
    ProgramBuilder, ReduceOp, Register, SharedAddress, TernaryOp, Type, UnaryOp,
};

/// Registers that statements may take, below those set aside for counters and addresses.
const MAX_REGISTERS: u8 = 200;

/// A program under construction: which registers hold which type on every path.
pub struct Body {
    pub builder: ProgramBuilder,
    pub random: Random,
    inputs: Vec<(Type, BufferIndex)>,
    /// Values that every path has written.
    known: Vec<(Register, Type)>,
    /// Values that the statement writes, known after it.
    pending: Vec<(Register, Type)>,
    next_register: u8,
    labels: u32,
    /// Functions to write after the end, with the values known where they are called.
    functions: Vec<(BranchTarget, Vec<(Register, Type)>)>,
    block: u32,
    /// Nesting depth of the statement in branches and loops.
    depth: u32,
    /// Whether all lanes execute this code.
    uniform: bool,
}

impl Body {
    pub fn new(
        builder: ProgramBuilder,
        random: Random,
        inputs: &[(Type, BufferIndex)],
        block: u32,
    ) -> Self {
        let (known, pending, functions) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            builder,
            random,
            inputs: inputs.to_vec(),
            known,
            pending,
            next_register: 0,
            labels: 0,
            functions,
            block,
            depth: 0,
            uniform: true,
        }
    }

    /// A register that nothing uses yet, or, when all are in use, one that holds this type.
    pub fn fresh(&mut self, ty: Type) -> Register {
        if self.next_register < MAX_REGISTERS {
            self.next_register += 1;
            return Register(self.next_register - 1);
        }
        self.writable(ty)
    }

    /// A register that holds a constant until the next one of the type.
    pub fn constant(&mut self, ty: Type, bits: u64) -> Register {
        let register = Register(210 + ty as u8);
        self.builder.immediate(ty, register, bits);
        register
    }

    /// Some value of a type.
    pub fn any(&mut self, ty: Type) -> Register {
        let fitting: Vec<Register> = self
            .known
            .iter()
            .filter(|(_, other)| *other == ty)
            .map(|(register, _)| *register)
            .collect();
        self.random.pick(&fitting)
    }

    /// Gives every type a few values: the lane's own input, constants, an element of some other
    /// lane.
    pub fn start(&mut self, elements: u64) {
        self.known.extend([
            (Register::LANE, Type::U32),
            (Register::GLOBAL_LANE, Type::U64),
        ]);
        for (ty, buffer) in self.inputs.clone() {
            let own = self.new_value(ty);
            self.builder.load(ty, own, Address::Own { buffer });
            let bits = self.random.value(ty);
            let constant = self.new_value(ty);
            self.builder.immediate(ty, constant, bits);
            let bytes = self.random.below(elements) * ty.bytes();
            let place = self.new_value(ty);
            self.elsewhere(ty, buffer, place, bytes);
        }
    }

    /// A load from a constant offset, by each kind of address.
    fn elsewhere(&mut self, ty: Type, buffer: BufferIndex, dst: Register, bytes: u64) {
        let address = match self.random.below(4) {
            0 => Address::Constant { buffer, bytes },
            1 => Address::Indexed {
                buffer,
                offset: self.constant(Type::U64, bytes),
            },
            2 => Address::Handle {
                handle: self.constant(Type::U64, buffer.handle()),
                bytes,
            },
            _ => {
                let (handle, offset) = (Register(250), Register(251));
                self.builder
                    .immediate(Type::U64, handle, buffer.handle())
                    .immediate(Type::U64, offset, bytes);
                Address::Computed { handle, offset }
            }
        };
        self.builder.load(ty, dst, address);
    }

    fn new_value(&mut self, ty: Type) -> Register {
        let register = self.fresh(ty);
        if !self.known.contains(&(register, ty)) {
            self.known.push((register, ty));
        }
        register
    }

    /// The body itself.
    pub fn statements(&mut self) {
        for _ in 0..4 + self.random.below(20) {
            self.statement();
        }
    }

    /// Ends the program and writes its functions.
    pub fn finish(mut self) -> Program {
        self.builder.push(Instruction::Exit);
        while let Some((label, known)) = self.functions.pop() {
            self.builder.place(label);
            (self.known, self.depth, self.uniform) = (known, 2, false);
            for _ in 0..1 + self.random.below(4) {
                self.statement();
            }
            self.builder.push(Instruction::Return);
        }
        self.builder
            .finish()
            .expect("invariant: generated programs are well formed")
    }

    fn statement(&mut self) {
        match self.random.below(if self.depth < 2 { 20 } else { 10 }) {
            0 | 1 => self.select(),
            2 => self.classes(),
            3 => self.pool(),
            10 | 11 => self.branch(),
            12 | 13 => self.counted(),
            14 => self.irreducible(),
            15 => self.call(),
            16 | 17 if self.uniform => self.exchange(),
            _ => self.operation(),
        }
        self.known.append(&mut self.pending);
    }

    /// A value of a type known here, and its result register: a new one, or one that held the type
    /// before.
    fn result(&mut self, ty: Type) -> Register {
        if self.depth > 0 || self.random.one_in(3) || self.next_register == MAX_REGISTERS {
            return self.writable(ty);
        }
        let register = self.fresh(ty);
        self.pending.push((register, ty));
        register
    }

    /// A register of the type that is not preloaded.
    fn writable(&mut self, ty: Type) -> Register {
        let fitting: Vec<Register> = self
            .known
            .iter()
            .filter(|(register, other)| *other == ty && register.0 < MAX_REGISTERS)
            .map(|(register, _)| *register)
            .collect();
        self.random.pick(&fitting)
    }

    fn operation(&mut self) {
        let (ty, _) = self.random.pick(&self.inputs);
        if ty.is_float() {
            return self.float(ty);
        }
        let (a, b, c) = (self.any(ty), self.any(ty), self.any(ty));
        let dst = self.result(ty);
        match self.random.below(8) {
            0 => {
                let op =
                    self.random
                        .pick(&[UnaryOp::Abs, UnaryOp::Neg, UnaryOp::Not, UnaryOp::Relu]);
                self.builder.unary(op, ty, dst, a);
            }
            1 => drop(self.builder.ternary(TernaryOp::Mad, ty, dst, [a, b, c])),
            2 => {
                // An odd divisor is not 0.
                let one = self.constant(ty, 1);
                self.builder.binary(BinaryOp::Or, ty, one, one, b).binary(
                    BinaryOp::Div,
                    ty,
                    dst,
                    a,
                    one,
                );
            }
            3 => {
                let amount = self.any(Type::U32);
                let op = self.random.pick(&[BinaryOp::Shl, BinaryOp::Shr]);
                self.builder.binary(op, ty, dst, a, amount);
            }
            4 => {
                let integers: Vec<Type> = self
                    .inputs
                    .iter()
                    .map(|(ty, _)| *ty)
                    .filter(|ty| ty.is_integer())
                    .collect();
                let from = self.random.pick(&integers);
                let src = self.any(from);
                self.builder.push(Instruction::Convert {
                    to: ty,
                    from,
                    dst,
                    src,
                });
            }
            5 if ReduceOp::Add.takes(ty) => {
                let first = Register(240);
                self.builder.push(Instruction::Move {
                    ty,
                    dst: first,
                    src: a,
                });
                self.builder.push(Instruction::Move {
                    ty,
                    dst: Register(241),
                    src: b,
                });
                self.builder.push(Instruction::Move {
                    ty,
                    dst: Register(242),
                    src: c,
                });
                let op = self.random.pick(ReduceOp::ALL);
                self.builder.push(Instruction::Reduce {
                    op,
                    ty,
                    dst,
                    first,
                    count: 1 + self.random.below(3) as u32,
                });
            }
            _ => {
                let op = self.random.pick(&[
                    BinaryOp::Add,
                    BinaryOp::Sub,
                    BinaryOp::Mul,
                    BinaryOp::Min,
                    BinaryOp::Max,
                    BinaryOp::And,
                    BinaryOp::Or,
                    BinaryOp::Xor,
                ]);
                self.builder.binary(op, ty, dst, a, b);
            }
        }
    }

    /// Sets a predicate from integers.
    fn predicate(&mut self) -> Predicate {
        let integers: Vec<Type> = self
            .inputs
            .iter()
            .map(|(ty, _)| *ty)
            .filter(|ty| ty.is_integer())
            .collect();
        let ty = self.random.pick(&integers);
        let (a, b) = (self.any(ty), self.any(ty));
        let (condition, predicate) = (
            self.random.pick(Condition::ALL),
            Predicate(self.random.below(16) as u8),
        );
        self.builder.compare(condition, ty, predicate, a, b);
        predicate
    }

    fn select(&mut self) {
        let predicate = self.predicate();
        let (ty, _) = self.random.pick(&self.inputs);
        let (on_true, on_false, dst) = (self.any(ty), self.any(ty), self.result(ty));
        self.builder.push(Instruction::Select {
            ty,
            dst,
            predicate,
            on_true,
            on_false,
        });
    }

    fn classes(&mut self) {
        let [class, page, byte] = [(); 3].map(|()| self.any(Type::U32));
        let kind = self.random.below(7);
        if kind == 0 {
            self.builder.push(Instruction::PhaseAdvance {
                delta: self.random.bits() as u16,
            });
            return;
        }
        let dst = self.result(if kind == 1 { Type::U64 } else { Type::U32 });
        self.builder.push(match kind {
            1 => Instruction::BoundaryMap {
                dst,
                class,
                page,
                byte,
            },
            2 => Instruction::ClassGet { dst },
            3 => Instruction::Mirror { dst, src: class },
            4 => Instruction::NeighborCount { dst, class },
            5 => Instruction::NeighborGet {
                dst,
                class,
                index: self.random.below(8) as u8,
            },
            _ => Instruction::PhaseGet { dst },
        });
    }

    /// Allocates from the pool, stores and loads a value, frees the allocation.
    fn pool(&mut self) {
        let (ty, _) = self.random.pick(&self.inputs);
        let (handle, offset, src) = (Register(250), Register(251), self.any(ty));
        let place = self.random.below(4) * ty.bytes();
        let dst = self.result(ty);
        self.builder.push(Instruction::PoolAllocate {
            dst: handle,
            bytes: place + ty.bytes(),
        });
        self.builder.immediate(Type::U64, offset, place);
        self.builder.push(Instruction::PoolStore {
            ty,
            src,
            handle,
            offset,
        });
        self.builder.push(Instruction::PoolLoad {
            ty,
            dst,
            handle,
            offset,
        });
        self.builder.push(Instruction::PoolFree { handle });
    }

    /// Statements inside a branch or loop: registers that they newly write are forgotten.
    fn inner(&mut self, uniform: bool) {
        let (known, was_uniform) = (self.known.clone(), self.uniform);
        self.depth += 1;
        self.uniform &= uniform;
        for _ in 0..1 + self.random.below(4) {
            self.statement();
        }
        self.depth -= 1;
        (self.known, self.uniform) = (known, was_uniform);
    }

    fn branch(&mut self) {
        let (otherwise, end) = (self.new_label(), self.new_label());
        let predicate = self.predicate();
        let when = self.random.one_in(2);
        self.builder.branch_if(otherwise, predicate, when);
        self.inner(false);
        self.builder.branch(end).place(otherwise);
        if self.random.one_in(2) {
            self.inner(false);
        }
        self.builder.place(end);
    }

    /// A loop with a count that is constant, or that differs between lanes.
    fn counted(&mut self) {
        let (count, uniform) = self.count();
        let body = self.new_label();
        self.builder.place(body);
        self.inner(uniform);
        self.builder.loop_back(count, body);
    }

    /// A loop that is entered at its head or in its middle.
    fn irreducible(&mut self) {
        let (count, _) = self.count();
        let (head, middle) = (self.new_label(), self.new_label());
        let predicate = self.predicate();
        self.builder.branch_if(middle, predicate, true).place(head);
        self.inner(false);
        self.builder.place(middle);
        self.inner(false);
        self.builder.loop_back(count, head);
    }

    /// A counter of up to 3, one for each depth; whether all lanes have the same.
    fn count(&mut self) -> (Register, bool) {
        let counter = Register(244 + self.depth as u8);
        let uniform = self.random.one_in(2);
        let most = if uniform { self.random.below(4) } else { 3 };
        let most = self.constant(Type::U32, most);
        if uniform {
            self.builder.push(Instruction::Move {
                ty: Type::U32,
                dst: counter,
                src: most,
            });
        } else {
            let value = self.any(Type::U32);
            self.builder
                .binary(BinaryOp::And, Type::U32, counter, value, most);
        }
        (counter, uniform)
    }

    fn call(&mut self) {
        let label = self.new_label();
        for _ in 0..1 + self.random.below(2) {
            self.builder.push(Instruction::Call { target: label });
        }
        self.functions.push((label, self.known.clone()));
    }

    /// Stores a value in the lane's slot of shared memory and loads another lane's.
    fn exchange(&mut self) {
        let (ty, _) = self.random.pick(&self.inputs);
        let (src, dst) = (self.any(ty), self.result(ty));
        let (other, offset) = (Register(248), Register(249));
        let distance = self.random.below(u64::from(self.block));
        let distance = self.constant(Type::U32, distance);
        self.builder.push(Instruction::StoreShared {
            ty,
            src,
            address: SharedAddress::Own,
        });
        self.builder.push(Instruction::Barrier { id: 0 });
        self.builder
            .binary(BinaryOp::Add, Type::U32, other, Register::LANE, distance);
        let mask = self.constant(Type::U32, u64::from(self.block - 1));
        self.builder
            .binary(BinaryOp::And, Type::U32, other, other, mask);
        let size = self.constant(Type::U32, ty.bytes());
        self.builder
            .binary(BinaryOp::Mul, Type::U32, other, other, size);
        self.builder.push(Instruction::Convert {
            to: Type::U64,
            from: Type::U32,
            dst: offset,
            src: other,
        });
        self.builder.push(Instruction::LoadShared {
            ty,
            dst,
            address: SharedAddress::Indexed(offset),
        });
        self.builder.push(Instruction::Barrier { id: 0 });
    }

    fn new_label(&mut self) -> BranchTarget {
        self.labels += 1;
        self.builder.label(format!("l{}", self.labels))
    }

    /// A float operation whose result stays in [−1, 1].
    fn float(&mut self, ty: Type) {
        let operands = [self.any(ty), self.any(ty), self.any(ty)];
        let dst = self.result(ty);
        let fits =
            |from: &Type| matches!(from, Type::I8 | Type::U8) || from.is_float() && *from != ty;
        let sources: Vec<Type> = self
            .inputs
            .iter()
            .map(|(from, _)| *from)
            .filter(fits)
            .collect();
        if !sources.is_empty() && self.random.one_in(6) {
            let from = self.random.pick(&sources);
            let src = self.any(from);
            return super::float::converted(&mut self.builder, ty, from, dst, src);
        }
        super::float::operation(&mut self.builder, &mut self.random, ty, dst, operands);
    }
}
