//! A chunk of lanes that run together, each instruction over all lanes that are at it.
//!
//! Lanes that diverge at a branch become groups. The group that is first in the program runs until
//! it reaches the position of another, and they join: so the paths of a branch join after it, and
//! lanes that leave a loop wait for the others.

use tectum::kernel::native::{prefetch_read, prefetch_write};

use super::arithmetic as over;
use super::mask::Mask;
use super::memory::{Access, FaultMode, LaneFault, Memory, Offsets, Words};
use super::private::Private;
use super::register_file::{Bits, RegisterFile};
use super::{PREFETCH_FROM_BYTES, PreparedProgram};
use crate::{
    Address, BinaryOp, BufferIndex, CLASSES, Fault, FaultKind, Instruction, LaunchConfig, PHASES,
    Register, SharedAddress, Type, UNITY, boundary_offset, mirror, neighbors,
};

/// A chunk while it runs.
pub struct Chunk<'c, 'm> {
    pub prepared: &'c PreparedProgram,
    pub launch: &'c LaunchConfig,
    /// The buffers, then the shared memory.
    pub memory: &'c mut [Memory<'m>],
    pub columns: &'c mut RegisterFile<'m>,
    pub private: &'c mut Private,
    /// The number in the launch of the first lane.
    pub first: u64,
    pub lanes: usize,
}

/// Lanes at one instruction.
struct Group {
    next: usize,
    mask: Mask,
}

/// What follows an instruction.
enum Then {
    Next,
    Jump(usize),
    /// Lanes of the mask go to the first target, the others to the second.
    Diverge(Mask, [usize; 2]),
    Barrier,
    End,
}

/// Where in a memory lanes access.
#[derive(Clone, Copy)]
enum AccessAddress {
    Own,
    Constant(u64),
    Indexed(Register),
}

impl<'m> Chunk<'_, 'm> {
    /// Runs every lane to its end.
    ///
    /// # Errors
    /// The first fault, if faults are reported.
    pub fn run(&mut self) -> Result<(), Fault> {
        self.begin();
        let (mut ready, mut waiting) = (
            vec![Group {
                next: 0,
                mask: Mask::all(self.lanes),
            }],
            Vec::new(),
        );
        loop {
            while let Some(first) = (0..ready.len()).min_by_key(|&index| ready[index].next) {
                let group = ready.swap_remove(first);
                self.run_group(group, &mut ready, &mut waiting)?;
            }
            if waiting.is_empty() {
                return Ok(());
            }
            waiting.drain(..).for_each(|group| join(&mut ready, group));
        }
    }

    /// The same for a program whose instructions run once each, in order; `all` are the chunk's
    /// lanes.
    ///
    /// # Errors
    /// As [`Chunk::run`].
    pub fn run_straight(&mut self, all: &Mask) -> Result<(), Fault> {
        self.begin();
        let prepared = self.prepared;
        let mut next = 0;
        while let Some(instruction) = prepared.program.instructions().get(next) {
            match prepared.direct_stores[next] {
                _ if prepared.is_hoisted[next] => {}
                Some(buffer) if self.make_in(buffer, instruction, all) => next += 1,
                _ => {
                    let first = self.first;
                    let told = |(lane, kind)| Fault {
                        lane: first + lane as u64,
                        instruction: next,
                        kind,
                    };
                    self.step(instruction, next, all).map_err(told)?;
                }
            }
            next += 1;
        }
        Ok(())
    }

    /// The initial state of each lane.
    fn begin(&mut self) {
        let (launch, first) = (self.launch, self.first);
        let [block_x, grid_x] = [launch.block[0], launch.grid[0]].map(u64::from);
        let lanes = launch.block_lanes();
        for &register in &self.prepared.preloaded {
            match register {
                Register::LANE => self.columns.kept().fill(register, Type::U32, |lane| {
                    (first + lane as u64) % lanes % block_x
                }),
                Register::BLOCK => self.columns.kept().fill(register, Type::U32, |lane| {
                    (first + lane as u64) / lanes % grid_x
                }),
                Register::BLOCK_SIZE => self.columns.kept().fill(register, Type::U32, |_| block_x),
                _ => self
                    .columns
                    .kept()
                    .fill(register, Type::U64, |lane| first + lane as u64),
            }
        }
        self.private.clear();
        if let Some(Memory {
            words: Words::Own(words),
            ..
        }) = self.memory.get_mut(self.prepared.modes.len())
        {
            words.fill(0);
        }
    }

    /// Runs a group until it ends, waits, or reaches the position of another.
    fn run_group(
        &mut self,
        group: Group,
        ready: &mut Vec<Group>,
        waiting: &mut Vec<Group>,
    ) -> Result<(), Fault> {
        let Group { mut next, mut mask } = group;
        let prepared = self.prepared;
        let mut turns = BackEdgeCounter::of(self.private, &mask);
        let mut stop = ready
            .iter()
            .map(|other| other.next)
            .min()
            .unwrap_or(usize::MAX);
        while let Some(instruction) = prepared.program.instructions().get(next) {
            if next >= stop {
                turns.note(self.private, &mask);
                join(ready, Group { next, mask });
                return Ok(());
            }
            if prepared.is_hoisted[next] {
                next += 1;
                continue;
            }
            let first = self.first;
            let told = |(lane, kind)| Fault {
                lane: first + lane as u64,
                instruction: next,
                kind,
            };
            if mask.is_all()
                && let Some(buffer) = prepared.direct_stores[next]
                && self.make_in(buffer, instruction, &mask)
            {
                next += 2;
                continue;
            }
            let then = self.step(instruction, next, &mask).map_err(told)?;
            if instruction.turns(next) {
                let turned = match &then {
                    Then::Jump(target) if *target <= next => Some(&mask),
                    Then::Diverge(those, _) => Some(those),
                    _ => None,
                };
                if let Some(lane) = turned.and_then(|turned| {
                    turns.turn(self.private, &mask, turned, self.launch.max_loop_iterations)
                }) {
                    return Err(told((
                        lane,
                        FaultKind::LoopLimitExceeded {
                            limit: self.launch.max_loop_iterations,
                        },
                    )));
                }
            }
            match then {
                Then::Next => next += 1,
                Then::Jump(target) => next = target,
                Then::End => return Ok(()),
                Then::Barrier => {
                    turns.note(self.private, &mask);
                    join(
                        waiting,
                        Group {
                            next: next + 1,
                            mask,
                        },
                    );
                    return Ok(());
                }
                Then::Diverge(those, [target, rest]) => {
                    turns.note(self.private, &mask);
                    let others = mask.without(&those);
                    turns = BackEdgeCounter::of(self.private, &others);
                    join(
                        ready,
                        Group {
                            next: target,
                            mask: those,
                        },
                    );
                    stop = stop.min(target);
                    (next, mask) = (rest, others);
                }
            }
        }
        Ok(())
    }

    fn step(
        &mut self,
        instruction: &Instruction,
        index: usize,
        mask: &Mask,
    ) -> Result<Then, LaneFault> {
        use Instruction as I;
        match *instruction {
            I::LoadGlobal { ty, dst, address } => {
                self.global(address, false, mask, |chunk, memory, place, mask| {
                    chunk.load(memory, place, ty, dst, mask)
                })?
            }
            I::StoreGlobal { ty, src, address } => self.global(
                address,
                true,
                mask,
                |chunk, memory, place, mask| match memory {
                    Some(memory) => chunk.store(memory, place, ty, src, mask),
                    None => Ok(()),
                },
            )?,
            I::LoadShared { ty, dst, address } => self.load(
                Some(self.prepared.modes.len()),
                shared(address),
                ty,
                dst,
                mask,
            )?,
            I::StoreShared { ty, src, address } => {
                self.store(self.prepared.modes.len(), shared(address), ty, src, mask)?
            }
            I::PoolAllocate { .. }
            | I::PoolFree { .. }
            | I::PoolLoad { .. }
            | I::PoolStore { .. } => self.pool(instruction, mask)?,
            I::Branch {
                target,
                guard: None,
            } => return Ok(Then::Jump(target.index())),
            I::Branch {
                target,
                guard: Some(guard),
            } => {
                let taken = mask.only(self.columns.predicate(guard.predicate), guard.when);
                return Ok(part(mask, taken, target.index(), index + 1));
            }
            I::Loop { count, body } => {
                let mut is_more = vec![0; self.lanes];
                is_more[mask.range()]
                    .iter_mut()
                    .zip(self.columns.get::<u32>(count, mask))
                    .for_each(|(more, &count)| *more = u8::from(count > 0));
                let same = self.columns.put(count, mask, |columns, out: &mut [u32]| {
                    out.iter_mut()
                        .zip(columns.get::<u32>(count, mask))
                        .for_each(|(out, &count)| *out = count.saturating_sub(1));
                    Ok(())
                });
                return same
                    .map(|()| part(mask, mask.only(&is_more, true), body.index(), index + 1));
            }
            I::Call { target } => {
                self.private.call(mask, index + 1);
                return Ok(Then::Jump(target.index()));
            }
            I::Return => {
                let (taken, target) = self.private.return_from(mask);
                return Ok(part(mask, taken, target, index));
            }
            I::Exit => return Ok(Then::End),
            I::Barrier { .. } => return Ok(Then::Barrier),
            I::Fence { .. } => {}
            _ => self.compute(instruction, mask, None)?,
        }
        Ok(Then::Next)
    }

    /// Writes the result of an instruction directly to the buffer where the next would store it,
    /// unless it faults or the buffer lacks an element of some lane.
    fn make_in(&mut self, buffer: BufferIndex, instruction: &Instruction, mask: &Mask) -> bool {
        let (index, first, lanes) = (buffer.0 as usize, self.first, self.lanes);
        let Some(own) = self.memory[index].take_own(first, lanes) else {
            return false;
        };
        let (words, range) = own;
        let (place, rest) = words[range.start..].split_at_mut(range.len());
        if self.memory[index].bytes >= PREFETCH_FROM_BYTES {
            prefetch_write(bytemuck::cast_slice(&rest[..lanes.min(rest.len())]));
        }
        let made = self.compute(instruction, mask, Some(place));
        self.memory[index].words = Words::Own(words);
        made.is_ok()
    }

    /// Instructions on registers and predicates; 32-bit arithmetic can write its results to a given
    /// place.
    fn compute(
        &mut self,
        instruction: &Instruction,
        mask: &Mask,
        place: Option<&mut [u32]>,
    ) -> Result<(), LaneFault> {
        use Instruction as I;
        /// One instruction for either width: `$get` gives a register's values, `$out` takes the
        /// result's.
        macro_rules! either {
            ($ty:expr, $dst:expr, |$c:ident, $out:ident| $words:expr, $longs:expr) => {
                if $ty.bytes() == 8 {
                    self.columns
                        .put($dst, mask, |$c: &RegisterFile<'_>, $out: &mut [u64]| {
                            $longs;
                            Ok(())
                        })
                } else {
                    self.columns.put_in(
                        $dst,
                        mask,
                        place,
                        |$c: &RegisterFile<'_>, $out: &mut [u32]| {
                            $words;
                            Ok(())
                        },
                    )
                }
            };
        }
        match *instruction {
            I::Move { ty, dst, src } => either!(
                ty,
                dst,
                |c, out| out.copy_from_slice(c.get(src, mask)),
                out.copy_from_slice(c.get(src, mask))
            ),
            I::MoveImmediate { ty, dst, bits } => {
                either!(ty, dst, |_c, out| out.fill(bits as u32), out.fill(bits))
            }
            I::Convert { to, from, dst, src } => match (to.bytes() == 8, from.bytes() == 8) {
                (false, false) => self.columns.put(dst, mask, |c, out: &mut [u32]| {
                    over::convert(to, from, c.get::<u32>(src, mask), out);
                    Ok(())
                }),
                (false, true) => self.columns.put(dst, mask, |c, out: &mut [u32]| {
                    over::convert(to, from, c.get::<u64>(src, mask), out);
                    Ok(())
                }),
                (true, false) => self.columns.put(dst, mask, |c, out: &mut [u64]| {
                    over::convert(to, from, c.get::<u32>(src, mask), out);
                    Ok(())
                }),
                (true, true) => self.columns.put(dst, mask, |c, out: &mut [u64]| {
                    over::convert(to, from, c.get::<u64>(src, mask), out);
                    Ok(())
                }),
            },
            I::Unary { op, ty, dst, src } => {
                either!(
                    ty,
                    dst,
                    |c, out| over::unary_words(op, ty, c.get(src, mask), out),
                    over::unary_longs(op, ty, c.get(src, mask), out)
                )
            }
            I::Binary { op, ty, dst, a, b } => {
                self.divides(instruction, mask)?;
                if op.is_shift() && ty.bytes() == 8 {
                    return self.columns.put(dst, mask, |c, out| {
                        over::shift_longs(op, ty, c.get(a, mask), c.get(b, mask), out);
                        Ok(())
                    });
                }
                either!(
                    ty,
                    dst,
                    |c, out| over::binary_words(op, ty, c.get(a, mask), c.get(b, mask), out),
                    over::binary_longs(op, ty, c.get(a, mask), c.get(b, mask), out)
                )
            }
            I::Ternary {
                op,
                ty,
                dst,
                a,
                b,
                c: third,
            } => either!(
                ty,
                dst,
                |c, out| over::ternary_words(
                    op,
                    ty,
                    [a, b, third].map(|register| c.get(register, mask)),
                    out
                ),
                over::ternary_longs(
                    op,
                    ty,
                    [a, b, third].map(|register| c.get(register, mask)),
                    out
                )
            ),
            I::Select {
                ty,
                dst,
                predicate,
                on_true,
                on_false,
            } => either!(
                ty,
                dst,
                |c, out| over::select::<u32>(
                    &c.predicate(predicate)[mask.range()],
                    c.get(on_true, mask),
                    c.get(on_false, mask),
                    out
                ),
                over::select::<u64>(
                    &c.predicate(predicate)[mask.range()],
                    c.get(on_true, mask),
                    c.get(on_false, mask),
                    out
                )
            ),
            I::Compare {
                condition,
                ty,
                dst,
                a,
                b,
            } => {
                self.columns.put_predicate(dst, mask, |c, out| {
                    if ty.bytes() == 8 {
                        over::compare_longs(condition, ty, c.get(a, mask), c.get(b, mask), out);
                    } else {
                        over::compare_words(condition, ty, c.get(a, mask), c.get(b, mask), out);
                    }
                });
                Ok(())
            }
            I::Reduce {
                op,
                ty,
                dst,
                first,
                count,
            } => {
                let register = |step: u32| Register((u32::from(first.0) + step) as u8);
                either!(
                    ty,
                    dst,
                    |c, out| (0..count).for_each(|step| fold(
                        c.get::<u32>(register(step), mask),
                        out,
                        step,
                        |a, b, out| over::binary_words(op.step(), ty, a, b, out)
                    )),
                    (0..count).for_each(|step| fold(
                        c.get::<u64>(register(step), mask),
                        out,
                        step,
                        |a, b, out| over::binary_longs(op.step(), ty, a, b, out)
                    ))
                )
            }
            _ => self.class(instruction, mask),
        }
    }

    /// Refuses an integer division by zero.
    fn divides(&self, instruction: &Instruction, mask: &Mask) -> Result<(), LaneFault> {
        let Instruction::Binary {
            op: BinaryOp::Div,
            ty,
            b,
            ..
        } = *instruction
        else {
            return Ok(());
        };
        if ty.is_float() || self.prepared.faults == FaultMode::Ignored {
            return Ok(());
        }
        let is_zero = |&lane: &usize| {
            if ty.bytes() == 8 {
                self.columns.long(b, lane) == 0
            } else {
                self.columns.word(b, lane) == 0
            }
        };
        mask.lanes()
            .find(is_zero)
            .map_or(Ok(()), |lane| Err((lane, FaultKind::DivisionByZero)))
    }

    /// The class, phase and accumulator group, lane by lane.
    fn class(&mut self, instruction: &Instruction, mask: &Mask) -> Result<(), LaneFault> {
        use Instruction as I;
        let (lanes, grid_x, first) = (
            self.launch.block_lanes(),
            u64::from(self.launch.grid[0]),
            self.first,
        );
        match *instruction {
            I::ClassGet { dst } => self.each(dst, mask, |_, lane| {
                ((first + lane as u64) / lanes % grid_x) as u32 % CLASSES
            }),
            I::Mirror { dst, src } => {
                self.each(dst, mask, |columns, lane| mirror(columns.word(src, lane)))
            }
            I::NeighborCount { dst, class } => self.each(dst, mask, |columns, lane| {
                neighbors(columns.word(class, lane)).1 as u32
            }),
            I::NeighborGet { dst, class, index } => {
                self.each(dst, mask, |columns, lane| {
                    neighbors(columns.word(class, lane))
                        .0
                        .get(usize::from(index))
                        .copied()
                        .unwrap_or(0)
                });
            }
            I::BoundaryMap {
                dst,
                class,
                page,
                byte,
            } => {
                self.each(dst, mask, |columns, lane| {
                    boundary_offset(
                        columns.word(class, lane),
                        columns.word(page, lane),
                        columns.word(byte, lane),
                    )
                });
            }
            I::ResonanceAccumulate { class, value } => {
                for lane in mask.lanes() {
                    let class = self.columns.word(class, lane) % CLASSES;
                    self.private.resonance[lane][class as usize] +=
                        f32::from_bits(self.columns.word(value, lane));
                }
            }
            I::UnityTest { dst, epsilon_bits } => {
                let resonance = &self.private.resonance;
                self.columns.put_predicate(dst, mask, |_, out| {
                    for (out, lane) in out.iter_mut().zip(mask.range()) {
                        let [first, second] = UNITY.map(|class| resonance[lane][class as usize]);
                        *out = u8::from((first + second).abs() <= f32::from_bits(epsilon_bits));
                    }
                });
            }
            I::PhaseGet { dst } => {
                let phase = std::mem::take(&mut self.private.phase);
                self.each(dst, mask, |_, lane| phase[lane]);
                self.private.phase = phase;
            }
            I::PhaseAdvance { delta } => mask.lanes().for_each(|lane| {
                self.private.phase[lane] = (self.private.phase[lane] + u32::from(delta)) % PHASES
            }),
            _ => unreachable!("invariant: all other instructions are done by step and compute"),
        }
        Ok(())
    }

    fn pool(&mut self, instruction: &Instruction, mask: &Mask) -> Result<(), LaneFault> {
        use Instruction as I;
        let (columns, private) = (&mut *self.columns, &mut *self.private);
        let ignores = self.prepared.faults == FaultMode::Ignored;
        let told = |lane: usize| move |kind| (lane, kind);
        match *instruction {
            I::PoolAllocate { dst, bytes } => columns.put(dst, mask, |_, out: &mut [u64]| {
                mask.lanes().try_for_each(|lane| {
                    let handle = private.pool(lane).allocate(bytes);
                    out[lane - mask.first()] = if ignores {
                        handle.unwrap_or(0)
                    } else {
                        handle.map_err(told(lane))?
                    };
                    Ok(())
                })
            }),
            I::PoolFree { handle } => {
                mask.lanes()
                    .for_each(|lane| private.pool(lane).free(columns.long(handle, lane)));
                Ok(())
            }
            I::PoolLoad {
                ty,
                dst,
                handle,
                offset,
            } => {
                fn all<B: Bits>(
                    columns: &RegisterFile<'_>,
                    out: &mut [B],
                    mask: &Mask,
                    mut load: impl FnMut(&RegisterFile<'_>, usize) -> Result<u64, LaneFault>,
                ) -> Result<(), LaneFault> {
                    mask.lanes().try_for_each(|lane| {
                        load(columns, lane).map(|value| out[lane - mask.first()] = B::of(value))
                    })
                }
                let load = |columns: &RegisterFile<'_>, lane: usize| {
                    let loaded = private.pool(lane).load(
                        ty,
                        columns.long(handle, lane),
                        columns.long(offset, lane),
                    );
                    if ignores {
                        Ok(loaded.unwrap_or(0))
                    } else {
                        loaded.map_err(told(lane))
                    }
                };
                if ty.bytes() == 8 {
                    columns.put(dst, mask, |columns, out: &mut [u64]| {
                        all(columns, out, mask, load)
                    })
                } else {
                    columns.put(dst, mask, |columns, out: &mut [u32]| {
                        all(columns, out, mask, load)
                    })
                }
            }
            I::PoolStore {
                ty,
                src,
                handle,
                offset,
            } => mask.lanes().try_for_each(|lane| {
                let value = if ty.bytes() == 8 {
                    columns.long(src, lane)
                } else {
                    u64::from(columns.word(src, lane))
                };
                let stored = private.pool(lane).store(
                    ty,
                    columns.long(handle, lane),
                    columns.long(offset, lane),
                    value,
                );
                if ignores {
                    Ok(())
                } else {
                    stored.map_err(told(lane))
                }
            }),
            _ => unreachable!("invariant: step gives only pool instructions"),
        }
    }

    /// A result computed lane by lane.
    fn each<B: Bits>(
        &mut self,
        dst: Register,
        mask: &Mask,
        value: impl Fn(&RegisterFile<'_>, usize) -> B,
    ) {
        let done: Result<(), LaneFault> = self.columns.put(dst, mask, |columns, out: &mut [B]| {
            mask.lanes()
                .for_each(|lane| out[lane - mask.first()] = value(columns, lane));
            Ok(())
        });
        debug_assert!(done.is_ok(), "invariant: nothing here fails");
    }

    /// Applies a function to each memory that an address names, with the lanes that name it; to
    /// none if a handle names none and faults are ignored.
    fn global(
        &mut self,
        address: Address,
        is_store: bool,
        mask: &Mask,
        act: impl Fn(&mut Self, Option<usize>, AccessAddress, &Mask) -> Result<(), LaneFault>,
    ) -> Result<(), LaneFault> {
        let (handle, place) = match address {
            Address::Own { buffer } => {
                return act(self, Some(buffer.0 as usize), AccessAddress::Own, mask);
            }
            Address::Constant { buffer, bytes } => {
                return act(
                    self,
                    Some(buffer.0 as usize),
                    AccessAddress::Constant(bytes),
                    mask,
                );
            }
            Address::Indexed { buffer, offset } => {
                return act(
                    self,
                    Some(buffer.0 as usize),
                    AccessAddress::Indexed(offset),
                    mask,
                );
            }
            Address::Phi(phi) => {
                let boundary = self
                    .prepared
                    .program
                    .boundary()
                    .map(|buffer| buffer.0 as usize);
                return act(self, boundary, AccessAddress::Constant(phi.offset()), mask);
            }
            Address::Handle { handle, bytes } => (handle, AccessAddress::Constant(bytes)),
            Address::Computed { handle, offset } => (handle, AccessAddress::Indexed(offset)),
        };
        let mut rest = mask.clone();
        while !rest.is_empty() {
            let value = self.columns.long(handle, rest.first());
            let found = self
                .named(value, is_store)
                .map_err(|kind| (rest.first(), kind))?;
            let is_same: Vec<u8> = (0..self.lanes)
                .map(|lane| u8::from(self.columns.long(handle, lane) == value))
                .collect();
            act(self, found, place, &rest.only(&is_same, true))?;
            rest = rest.only(&is_same, false);
        }
        Ok(())
    }

    /// The buffer of a handle.
    fn named(&self, handle: u64, is_store: bool) -> Result<Option<usize>, FaultKind> {
        let buffers = self.prepared.program.buffers();
        let found = handle
            .checked_sub(1)
            .and_then(|index| Some((index as usize, buffers.get(usize::try_from(index).ok()?)?)));
        match found {
            Some((index, buffer))
                if if is_store {
                    buffer.access.writes()
                } else {
                    buffer.access.reads()
                } =>
            {
                Ok(Some(index))
            }
            _ if self.prepared.faults == FaultMode::Ignored => Ok(None),
            Some(_) => Err(FaultKind::Denied { handle }),
            None => Err(FaultKind::UnknownHandle { handle }),
        }
    }

    fn load(
        &mut self,
        memory: Option<usize>,
        place: AccessAddress,
        ty: Type,
        dst: Register,
        mask: &Mask,
    ) -> Result<(), LaneFault> {
        let Some(memory) = memory else {
            return self.compute(&Instruction::MoveImmediate { ty, dst, bits: 0 }, mask, None);
        };
        let access = Access {
            ty,
            faults: self.prepared.faults,
            mask,
        };
        let first = if memory == self.prepared.modes.len() {
            0
        } else {
            self.first
        };
        let memory = &mut self.memory[memory];
        if let (AccessAddress::Own, 4, true) = (place, ty.bytes(), mask.is_all())
            && let Some(words) = memory.view(first, self.lanes)
        {
            // Prefetches the next chunk's words while this one computes.
            if memory.bytes >= PREFETCH_FROM_BYTES {
                memory
                    .view(first + self.lanes as u64, self.lanes)
                    .into_iter()
                    .for_each(prefetch_read);
            }
            self.columns.view(dst, words);
            return Ok(());
        }
        if ty.bytes() == 8 {
            self.columns.put(dst, mask, |columns, out: &mut [u64]| {
                memory.load(&access, offsets(columns, place, first, mask), out)
            })
        } else {
            self.columns.put(dst, mask, |columns, out: &mut [u32]| {
                memory.load(&access, offsets(columns, place, first, mask), out)
            })
        }
    }

    fn store(
        &mut self,
        memory: usize,
        place: AccessAddress,
        ty: Type,
        src: Register,
        mask: &Mask,
    ) -> Result<(), LaneFault> {
        let access = Access {
            ty,
            faults: self.prepared.faults,
            mask,
        };
        let first = if memory == self.prepared.modes.len() {
            0
        } else {
            self.first
        };
        let memory = &mut self.memory[memory];
        let offsets = offsets(self.columns, place, first, mask);
        if ty.bytes() == 8 {
            memory.store(&access, offsets, self.columns.get::<u64>(src, mask))
        } else {
            memory.store(&access, offsets, self.columns.get::<u32>(src, mask))
        }
    }
}

fn shared(address: SharedAddress) -> AccessAddress {
    match address {
        SharedAddress::Own => AccessAddress::Own,
        SharedAddress::Constant(bytes) => AccessAddress::Constant(bytes),
        SharedAddress::Indexed(offset) => AccessAddress::Indexed(offset),
    }
}

fn offsets<'c>(
    columns: &'c RegisterFile,
    place: AccessAddress,
    first: u64,
    mask: &Mask,
) -> Offsets<'c> {
    match place {
        AccessAddress::Own => Offsets::Own(first),
        AccessAddress::Constant(bytes) => Offsets::Same(bytes),
        AccessAddress::Indexed(offset) => Offsets::Each(columns.get(offset, mask)),
    }
}

/// One step of a reduction over registers: the first value, or the accumulated one with the next.
fn fold<B: Bits>(next: &[B], so_far: &mut [B], step: u32, combine: impl Fn(&[B], &[B], &mut [B])) {
    if step == 0 {
        return so_far.copy_from_slice(next);
    }
    let before = so_far.to_vec();
    combine(&before, next, so_far);
}

/// State after a branch that some lanes take.
fn part(mask: &Mask, taken: Mask, target: usize, rest: usize) -> Then {
    match taken.active() {
        0 => Then::Jump(rest),
        all if all == mask.active() => Then::Jump(target),
        _ => Then::Diverge(taken, [target, rest]),
    }
}

/// Jumps back of a group while it stays together: counted once for all, and added to each lane
/// where it diverges.
struct BackEdgeCounter {
    /// The previous maximum of a lane.
    before: u32,
    since: u32,
}

impl BackEdgeCounter {
    fn of(private: &Private, mask: &Mask) -> Self {
        let before = if private.turns.is_empty() {
            0
        } else {
            mask.lanes()
                .map(|lane| private.turns[lane])
                .max()
                .unwrap_or(0)
        };
        Self { before, since: 0 }
    }

    /// Adds the count to each lane's.
    fn note(&mut self, private: &mut Private, mask: &Mask) {
        if self.since > 0 {
            mask.lanes()
                .for_each(|lane| private.turns[lane] += self.since);
            (self.before, self.since) = (self.before + self.since, 0);
        }
    }

    /// Counts a jump back of all or some lanes of the group; returns a lane that then exceeds the
    /// limit.
    fn turn(
        &mut self,
        private: &mut Private,
        mask: &Mask,
        turned: &Mask,
        limit: u32,
    ) -> Option<usize> {
        let is_within = self.before.saturating_add(self.since) < limit;
        if is_within && turned.active() == mask.active() {
            self.since += 1;
            return None;
        }
        self.note(private, mask);
        if let Some(lane) = turned.lanes().find(|lane| private.turns[*lane] >= limit) {
            return Some(lane);
        }
        turned.lanes().for_each(|lane| private.turns[lane] += 1);
        self.before = self.before.saturating_add(1);
        None
    }
}

/// Adds lanes to the group at the same instruction, or as a new group.
fn join(groups: &mut Vec<Group>, group: Group) {
    match groups.iter_mut().find(|other| other.next == group.next) {
        Some(other) => other.mask = other.mask.and_those_of(&group.mask),
        None => groups.push(group),
    }
}
