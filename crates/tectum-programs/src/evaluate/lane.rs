//! One lane: its state, and the effect of each instruction.

use super::memory::{self, AccessLocation, Lookup, Memory};
use super::pool::Pool;
use super::scalar;
use crate::{
    CLASSES, Fault, FaultKind, Instruction, LaunchConfig, PHASES, Program, Register, UNITY,
    boundary_offset, mirror, neighbors,
};

/// Why a lane pauses.
pub enum StopReason {
    Ended,
    Barrier(u8),
    Fault(Fault),
    OutOfSteps,
}

pub struct Lane {
    /// The number in the launch and in the block.
    global: u64,
    local: u64,
    /// The x of the lane's block.
    block: u32,
    registers: [u64; 256],
    predicates: [bool; 16],
    /// The next instruction; the number of instructions once the lane has ended.
    next: usize,
    returns: Vec<usize>,
    phase: u32,
    resonance: [f32; CLASSES as usize],
    pool: Vec<u8>,
    /// Offset of the next allocation.
    pool_next: u64,
    /// Jumps back, and their limit.
    turns: u32,
    max_turns: u32,
}

/// What follows an instruction.
enum Then {
    Next,
    Jump(usize),
    Barrier(u8),
    End,
}

impl Lane {
    /// A lane by its number in a block; the block is given by its x and its number in the grid.
    pub fn new(
        program: &Program,
        launch: &LaunchConfig,
        (x, number): (u32, u64),
        local: u64,
    ) -> Self {
        let global = number * launch.block_lanes() + local;
        let mut registers = [0; 256];
        registers[usize::from(Register::LANE.0)] = local % u64::from(launch.block[0]);
        registers[usize::from(Register::BLOCK.0)] = u64::from(x);
        registers[usize::from(Register::BLOCK_SIZE.0)] = u64::from(launch.block[0]);
        registers[usize::from(Register::GLOBAL_LANE.0)] = global;
        Self {
            global,
            local,
            block: x,
            registers,
            predicates: [false; 16],
            next: 0,
            returns: Vec::new(),
            phase: 0,
            resonance: [0.0; CLASSES as usize],
            pool: vec![0; program.pool_bytes() as usize],
            pool_next: 0,
            turns: 0,
            max_turns: launch.max_loop_iterations,
        }
    }

    pub fn has_ended(&self) -> bool {
        self.next == usize::MAX
    }

    /// Runs until the lane ends, waits at a barrier or faults.
    pub fn run(
        &mut self,
        program: &Program,
        memory: &mut Memory<'_>,
        steps: &mut u64,
    ) -> StopReason {
        while let Some(instruction) = program.instructions().get(self.next) {
            if *steps == 0 {
                return StopReason::OutOfSteps;
            }
            *steps -= 1;
            let index = self.next;
            match self.step(instruction, memory) {
                Ok(Then::Next) => self.next += 1,
                Ok(Then::Jump(_)) if instruction.turns(index) && self.turns == self.max_turns => {
                    let kind = FaultKind::LoopLimitExceeded {
                        limit: self.max_turns,
                    };
                    return StopReason::Fault(Fault {
                        lane: self.global,
                        instruction: index,
                        kind,
                    });
                }
                Ok(Then::Jump(target)) => {
                    self.turns += u32::from(instruction.turns(index));
                    self.next = target;
                }
                Ok(Then::End) => break,
                Ok(Then::Barrier(id)) => {
                    self.next += 1;
                    return StopReason::Barrier(id);
                }
                Err(kind) => {
                    return StopReason::Fault(Fault {
                        lane: self.global,
                        instruction: index,
                        kind,
                    });
                }
            }
        }
        self.next = usize::MAX;
        StopReason::Ended
    }

    fn step(
        &mut self,
        instruction: &Instruction,
        memory: &mut Memory<'_>,
    ) -> Result<Then, FaultKind> {
        use Instruction as I;
        match *instruction {
            I::LoadGlobal { ty, dst, address } => {
                let place = memory.global(address, ty, false, &self.lookup())?;
                self.set(dst, memory.load(place, ty)?);
            }
            I::StoreGlobal { ty, src, address } => {
                let place = memory.global(address, ty, true, &self.lookup())?;
                memory.store(place, ty, self.get(src))?;
            }
            I::LoadShared { ty, dst, address } => {
                let place = memory::shared(address, ty, &self.lookup());
                self.set(dst, memory.load(place, ty)?);
            }
            I::StoreShared { ty, src, address } => {
                let place: AccessLocation = memory::shared(address, ty, &self.lookup());
                memory.store(place, ty, self.get(src))?;
            }
            I::PoolAllocate { .. }
            | I::PoolFree { .. }
            | I::PoolLoad { .. }
            | I::PoolStore { .. } => self.pool(instruction)?,
            I::Branch { target, guard }
                if guard.is_none_or(|guard| {
                    self.predicates[usize::from(guard.predicate.0)] == guard.when
                }) =>
            {
                return Ok(Then::Jump(target.index()));
            }
            I::Call { target } => {
                self.returns.push(self.next + 1);
                return Ok(Then::Jump(target.index()));
            }
            I::Return => {
                return Ok(Then::Jump(
                    self.returns
                        .pop()
                        .expect("invariant: the check refuses `ret` outside a call"),
                ));
            }
            I::Loop { count, body } if self.get(count) > 0 => {
                self.set(count, self.get(count) - 1);
                return Ok(Then::Jump(body.index()));
            }
            I::Exit => return Ok(Then::End),
            I::Barrier { id } => return Ok(Then::Barrier(id)),
            // A branch not taken, a loop at its end; lanes run sequentially, so every store is
            // visible immediately.
            I::Branch { .. } | I::Loop { .. } | I::Fence { .. } => {}
            _ => self.compute(instruction)?,
        }
        Ok(Then::Next)
    }

    /// Instructions on the lane's registers and predicates.
    fn compute(&mut self, instruction: &Instruction) -> Result<(), FaultKind> {
        use Instruction as I;
        match *instruction {
            I::Move { dst, src, .. } => self.set(dst, self.get(src)),
            I::MoveImmediate { dst, bits, .. } => self.set(dst, bits),
            I::Convert { to, from, dst, src } => {
                self.set(dst, scalar::convert(to, from, self.get(src)))
            }
            I::Unary { op, ty, dst, src } => self.set(dst, scalar::unary(op, ty, self.get(src))),
            I::Binary { op, ty, dst, a, b } => {
                let result = scalar::binary(op, ty, self.get(a), self.get(b))
                    .ok_or(FaultKind::DivisionByZero)?;
                self.set(dst, result);
            }
            I::Ternary {
                op,
                ty,
                dst,
                a,
                b,
                c,
            } => self.set(
                dst,
                scalar::ternary(op, ty, self.get(a), self.get(b), self.get(c)),
            ),
            I::Compare {
                condition,
                ty,
                dst,
                a,
                b,
            } => {
                self.predicates[usize::from(dst.0)] =
                    scalar::compare(condition, ty, self.get(a), self.get(b));
            }
            I::Select {
                dst,
                predicate,
                on_true,
                on_false,
                ..
            } => {
                self.set(
                    dst,
                    self.get(if self.predicates[usize::from(predicate.0)] {
                        on_true
                    } else {
                        on_false
                    }),
                );
            }
            I::Reduce {
                op,
                ty,
                dst,
                first,
                count,
            } => {
                let step = |so_far, next| {
                    scalar::binary(op.step(), ty, so_far, next)
                        .expect("invariant: no reduction divides")
                };
                let values = &self.registers[usize::from(first.0)..][..count as usize];
                let result = values
                    .iter()
                    .copied()
                    .reduce(step)
                    .expect("invariant: a program's reductions have registers");
                self.set(dst, result);
            }
            _ => self.class(instruction),
        }
        Ok(())
    }

    /// The class, phase and accumulator group.
    fn class(&mut self, instruction: &Instruction) {
        use Instruction as I;
        match *instruction {
            I::ClassGet { dst } => self.set(dst, u64::from(self.block % CLASSES)),
            I::Mirror { dst, src } => self.set(dst, u64::from(mirror(self.word(src)))),
            I::NeighborCount { dst, class } => self.set(dst, neighbors(self.word(class)).1 as u64),
            I::NeighborGet { dst, class, index } => {
                let (all, _) = neighbors(self.word(class));
                self.set(
                    dst,
                    u64::from(all.get(usize::from(index)).copied().unwrap_or(0)),
                );
            }
            I::BoundaryMap {
                dst,
                class,
                page,
                byte,
            } => self.set(
                dst,
                boundary_offset(self.word(class), self.word(page), self.word(byte)),
            ),
            I::ResonanceAccumulate { class, value } => {
                self.resonance[(self.word(class) % CLASSES) as usize] +=
                    f32::from_bits(self.word(value));
            }
            I::UnityTest { dst, epsilon_bits } => {
                let [first, second] = UNITY.map(|class| self.resonance[class as usize]);
                self.predicates[usize::from(dst.0)] =
                    (first + second).abs() <= f32::from_bits(epsilon_bits);
            }
            I::PhaseGet { dst } => self.set(dst, u64::from(self.phase)),
            I::PhaseAdvance { delta } => self.phase = (self.phase + u32::from(delta)) % PHASES,
            _ => unreachable!("all other instructions are done by step and compute"),
        }
    }

    fn pool(&mut self, instruction: &Instruction) -> Result<(), FaultKind> {
        let registers = self.registers;
        let value = |register: Register| registers[usize::from(register.0)];
        let mut pool = Pool {
            bytes: &mut self.pool,
            next: &mut self.pool_next,
        };
        match *instruction {
            Instruction::PoolAllocate { dst, bytes } => {
                let handle = pool.allocate(bytes)?;
                self.set(dst, handle);
            }
            Instruction::PoolFree { handle } => pool.free(value(handle)),
            Instruction::PoolLoad {
                ty,
                dst,
                handle,
                offset,
            } => {
                let loaded = pool.load(ty, value(handle), value(offset))?;
                self.set(dst, loaded);
            }
            Instruction::PoolStore {
                ty,
                src,
                handle,
                offset,
            } => pool.store(ty, value(handle), value(offset), value(src))?,
            _ => unreachable!("step gives only pool instructions"),
        }
        Ok(())
    }

    fn lookup(&self) -> Lookup<'_> {
        Lookup {
            registers: &self.registers,
            global: self.global,
            local: self.local,
        }
    }

    fn get(&self, register: Register) -> u64 {
        self.registers[usize::from(register.0)]
    }

    fn set(&mut self, register: Register, bits: u64) {
        self.registers[usize::from(register.0)] = bits;
    }

    /// A register of 32 bits.
    fn word(&self, register: Register) -> u32 {
        self.get(register) as u32
    }
}
