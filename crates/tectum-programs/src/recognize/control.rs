//! Supported jumps: loops with an iteration count known in advance, and branches that end the last
//! lanes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::affine::{Affine, Var};
use super::graph::{Id, Node};
use super::lane::{ExecutionResult, LoopRecord, State, SymbolicExecutor};
use super::loops::{Loop, MAX_DEPTH};
use super::role::Role;
use super::trip;
use crate::{Condition, Guard, Instruction, Register, Type, Write};

/// The iteration count of a loop.
enum Trip {
    Iterations(u64),
    /// The lanes share the iterations, this many in total: lane l runs l, l + lanes, l + 2·lanes ….
    Strided(u64),
}

/// How a region of code ends.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    Through,
    Lane,
}

/// Inside a loop, but not at its head.
pub const NOT_A_HEAD: usize = usize::MAX;
/// Maximum iterations that are counted.
pub const MAX_TRIP_COUNT: u64 = 1 << 40;

impl SymbolicExecutor<'_> {
    /// Follows the whole program.
    pub fn run(&mut self) -> ExecutionResult<()> {
        self.region(0, self.program.instructions().len(), None)
            .map(drop)
    }

    /// Follows the instructions `first..end`; `inside` is the head of the loop with this body.
    pub fn region(
        &mut self,
        first: usize,
        end: usize,
        inside: Option<usize>,
    ) -> ExecutionResult<End> {
        let mut at = first;
        while at < end {
            let bottoms = self
                .loops
                .jumps_back_to(at)
                .filter(|_| !(inside == Some(at) && at == first))
                .cloned();
            if let Some(bottoms) = bottoms {
                at = self.turn(at, &bottoms, end)? + 1;
                continue;
            }
            match self.program.instructions()[at] {
                Instruction::Branch {
                    target,
                    guard: None,
                } if target.index() > at && target.index() <= end => at = target.index(),
                Instruction::Exit if self.open.is_empty() && inside.is_none() => {
                    return Ok(End::Lane);
                }
                Instruction::Branch {
                    target,
                    guard: Some(guard),
                } => match self.branch(at, target.index(), guard, end, inside)? {
                    Some(next) => at = next,
                    None => return Ok(End::Lane),
                },
                Instruction::Branch { .. } | Instruction::Loop { .. } | Instruction::Exit => {
                    return self.refuse(at, "the jump is not part of a counted loop");
                }
                _ => {
                    self.step(at)?;
                    at += 1;
                }
            }
        }
        Ok(End::Through)
    }

    /// A branch forward: decided in advance, or one that ends the last lanes. Returns the next
    /// position, or `None` at the end.
    fn branch(
        &mut self,
        at: usize,
        target: usize,
        guard: Guard,
        end: usize,
        inside: Option<usize>,
    ) -> ExecutionResult<Option<usize>> {
        let Some(id) = self.state.predicates[usize::from(guard.predicate.0)] else {
            return self.refuse(
                at,
                format!("the value of {} is not known here", guard.predicate),
            );
        };
        let forward = target > at && target <= end;
        if let Node::Truth(holds) = *self.graph.node(id) {
            return match (holds == guard.when, forward) {
                (false, _) => Ok(Some(at + 1)),
                (true, true) => Ok(Some(target)),
                (true, false) => self.refuse(at, "the jump leaves a loop"),
            };
        }
        if forward
            && self.open.is_empty()
            && self.probing == 0
            && !self.ends(target)
            && self.is_part(at + 1..target)
        {
            return self.part(at, target, guard).map(Some);
        } else if !forward || !self.open.is_empty() || inside.is_some() || self.probing > 0 {
            return self.refuse(
                at,
                "the branch depends on data or on the iteration of a loop",
            );
        }
        // `bra @body, p` before an `exit` is the same as a branch to the end where p does not hold.
        let skipped = (at + 1..target).all(|index| self.ends(index));
        let (stays, next) = match (self.ends(target), skipped && target > at + 1) {
            (true, _) => (!guard.when, at + 1),
            (false, true) => (guard.when, target),
            (false, false) => {
                return self.refuse(
                    at,
                    "the branch depends on the lane or on data, and does not end the lane",
                );
            }
        };
        let Node::Compare {
            condition,
            ty,
            a,
            b,
        } = *self.graph.node(id)
        else {
            return self.refuse(at, "the branch depends on data");
        };
        let condition = if stays {
            condition
        } else {
            trip::negated(condition)
        };
        let any = self.keep_lanes(at, condition, ty, a, b)?;
        Ok(any.then_some(next))
    }

    /// Whether a lane ends at an instruction.
    fn ends(&self, index: usize) -> bool {
        match self.program.instructions().get(index) {
            None | Some(Instruction::Exit) => true,
            Some(Instruction::Branch {
                target,
                guard: None,
            }) => target.index() == self.program.instructions().len(),
            Some(_) => false,
        }
    }

    /// Keeps the lanes for which a comparison holds, if they are the first ones; returns whether
    /// there are any.
    pub fn keep_lanes(
        &mut self,
        at: usize,
        condition: Condition,
        ty: Type,
        a: Id,
        b: Id,
    ) -> ExecutionResult<bool> {
        let forms = self.graph.form(a).cloned().zip(self.graph.form(b).cloned());
        let exact = forms.filter(|(a, b)| {
            a.exact(ty, &self.extents).is_some() && b.exact(ty, &self.extents).is_some()
        });
        let Some((a, b)) = exact else {
            return self.refuse(at, "the branch depends on data");
        };
        // Holds where d = a − b is at most `most`.
        let (d, most) = match condition {
            Condition::Lt | Condition::Ltu => (a.sub(&b), -1),
            Condition::Le | Condition::Leu => (a.sub(&b), 0),
            Condition::Gt | Condition::Gtu => (b.sub(&a), -1),
            Condition::Ge | Condition::Geu => (b.sub(&a), 0),
            Condition::Eq | Condition::Ne => {
                return self.refuse(at, "the branch selects single lanes");
            }
        };
        match d.range(&self.extents) {
            Some((_, high)) if high <= most => return Ok(true),
            Some((low, _)) if low > most => return Ok(false),
            _ => {}
        }
        let lane = self.lane();
        let (var, lanes_of_one) = match self.columns() {
            Some(columns) => (Var::Row, i128::from(columns)),
            None => (Var::Lane, 1),
        };
        let factor = d.factor(var) / lanes_of_one;
        let is_lane = factor > 0 && d.sub(&lane.scale(factor)).as_constant().is_some();
        // d = factor · lane + constant ≤ most.
        let kept = (most - d.constant).div_euclid(factor.max(1)) + 1;
        if !is_lane || kept % lanes_of_one != 0 || kept < 0 {
            return self.refuse(
                at,
                "the lanes that the branch leaves are not the first ones of the launch",
            );
        }
        self.extents.insert(var, (kept / lanes_of_one) as u64);
        self.has_partial_row = false;
        Ok(kept > 0)
    }

    /// Follows a loop; returns its bottom.
    fn turn(&mut self, head: usize, bottoms: &[usize], end: usize) -> ExecutionResult<usize> {
        let &[bottom] = bottoms else {
            return self.refuse(
                head,
                "more than one jump leads back to this line; a loop has exactly one",
            );
        };
        if bottom >= end || self.open.len() >= MAX_DEPTH {
            return self.refuse(head, "the loops are not nested, or nested too deeply");
        }
        let around = Loop {
            head,
            test: self.test_of(head, bottom)?,
            bottom,
        };
        let meets = |instruction: &Instruction| matches!(instruction, Instruction::Barrier { .. });
        if self.program.instructions()[head..=bottom].iter().any(meets) {
            return self.unroll_barrier_loop(around).map(|()| bottom);
        }
        self.forget_limited();
        let turn = self.next_turn;
        self.next_turn += 1;
        let roles = self.roles(around, turn)?;
        match self.count(around, turn, &roles)? {
            Trip::Iterations(0) => self.pure(around)?,
            Trip::Iterations(1) => self.once(around)?,
            Trip::Iterations(turns) => self.turns(around, turn, &roles, turns)?,
            Trip::Strided(turns) => self.strided(around, turn, &roles, turns)?,
        }
        Ok(bottom)
    }

    /// Registers that differ between lanes are not followed into loops.
    fn forget_limited(&mut self) {
        let lanes = self.lanes();
        for (register, _) in std::mem::take(&mut self.state.limits)
            .into_iter()
            .filter(|(_, limit)| *limit < lanes)
        {
            self.state.registers[usize::from(register.0)] = None;
        }
    }

    /// The branch that leaves a loop with an unconditional jump back.
    fn test_of(&self, head: usize, bottom: usize) -> ExecutionResult<Option<usize>> {
        let code = self.program.instructions();
        if !matches!(code[bottom], Instruction::Branch { guard: None, .. }) {
            return Ok(None);
        }
        let leaves = |index: &usize| matches!(code[*index], Instruction::Branch { target, guard: Some(_) } if target.index() == bottom + 1);
        let tests: Vec<usize> = (head..bottom).filter(leaves).collect();
        let &[test] = tests.as_slice() else {
            return self.refuse(bottom, "the loop is not left at exactly one place");
        };
        let touches = |instruction: &Instruction| {
            let of_memory = matches!(
                instruction,
                Instruction::LoadGlobal { .. } | Instruction::StoreGlobal { .. }
            );
            of_memory || instruction.target().is_some() || !instruction.falls_through()
        };
        if code[head..test].iter().any(touches) {
            return self.refuse(test, "the loop is left after loads, stores or jumps");
        }
        Ok(Some(test))
    }

    /// The code before the test of a loop; it may only affect registers.
    pub fn pure(&mut self, around: Loop) -> ExecutionResult<()> {
        match around.test {
            Some(test) => (around.head..test).try_for_each(|at| self.step(at)),
            None => Ok(()),
        }
    }

    /// One iteration, up to the start of the next one.
    pub fn body(&mut self, around: Loop) -> ExecutionResult<()> {
        let through = match around.test {
            Some(test) => {
                self.pure(around)?;
                self.region(test + 1, around.bottom, Some(NOT_A_HEAD))?
            }
            None => self.region(around.head, around.bottom, Some(around.head))?,
        };
        if through == End::Lane {
            return self.refuse(around.head, "an iteration of the loop ends the lane");
        }
        if let Instruction::Loop { count, .. } = self.program.instructions()[around.bottom] {
            let id = self.get(count, around.bottom)?;
            let Some(form) = self.graph.form(id).cloned() else {
                return self.refuse(around.bottom, "the loop's count is not known in advance");
            };
            let id = self
                .graph
                .integer(Type::U32, &form.sub(&Affine::constant(1)));
            self.set(count, id);
        }
        Ok(())
    }

    fn once(&mut self, around: Loop) -> ExecutionResult<()> {
        self.body(around)?;
        self.leave(around)
    }

    /// The code after the last iteration.
    fn leave(&mut self, around: Loop) -> ExecutionResult<()> {
        if let Instruction::Loop { count, .. } = self.program.instructions()[around.bottom] {
            let zero = self.graph.constant(Type::U32, 0);
            self.set(count, zero);
        }
        self.pure(around)
    }

    pub fn written(&self, around: Loop) -> BTreeSet<Register> {
        let code = &self.program.instructions()[around.head..=around.bottom];
        code.iter()
            .filter_map(|instruction| {
                if let Some(Write::Register(register, _)) = instruction.write() {
                    Some(register)
                } else {
                    None
                }
            })
            .collect()
    }

    /// The registers at the start of an iteration.
    pub fn begin(
        &mut self,
        entry: &State,
        roles: &BTreeMap<Register, Role>,
        turn: u32,
        around: Loop,
    ) {
        self.state = entry.clone();
        for (register, role) in roles {
            let Some(before) = entry.registers[usize::from(register.0)] else {
                continue;
            };
            let now = match (
                role,
                self.graph.form(before).cloned(),
                self.graph.ty(before),
            ) {
                (Role::Same, ..) => before,
                (Role::Step(step), Some(form), Some(ty)) => self
                    .graph
                    .integer(ty, &form.plus(&Affine::of(Var::Turn(turn)), *step)),
                (_, _, Some(ty)) if ty.is_integer() => self
                    .graph
                    .integer(ty, &Affine::of(Var::Carried(turn, *register))),
                (_, _, Some(ty)) => self.graph.put(Node::Carried {
                    turn,
                    register: *register,
                    ty,
                }),
                _ => continue,
            };
            self.set(*register, now);
        }
        self.forget_predicates(around.all());
    }

    /// Predicates are not followed across iterations.
    pub fn forget_predicates(&mut self, stretch: Range<usize>) {
        for instruction in &self.program.instructions()[stretch] {
            if let Some(Write::Predicate(predicate)) = instruction.write() {
                self.state.predicates[usize::from(predicate.0)] = None;
            }
        }
    }

    /// How often the body runs.
    fn count(
        &mut self,
        around: Loop,
        turn: u32,
        roles: &BTreeMap<Register, Role>,
    ) -> ExecutionResult<Trip> {
        let entry = self.state.clone();
        let (bottom, code) = (around.bottom, self.program.instructions());
        if let Instruction::Loop { count, .. } = code[bottom] {
            let id = self.get(count, bottom)?;
            let known = self.graph.form(id).and_then(Affine::as_constant);
            return match (known, roles.get(&count)) {
                (Some(count), Some(Role::Step(-1))) => Ok(Trip::Iterations(count as u64 + 1)),
                _ => self.refuse(bottom, "the loop's count is not known in advance"),
            };
        }
        self.begin(&entry, roles, turn, around);
        self.probing += 1;
        let followed = if around.test.is_some() {
            self.pure(around)
        } else {
            self.body(around)
        };
        self.probing -= 1;
        followed?;
        let (
            Instruction::Branch {
                guard: Some(guard), ..
            },
            branch,
        ) = (
            code[around.test.unwrap_or(bottom)],
            around.test.unwrap_or(bottom),
        )
        else {
            return self.refuse(bottom, "the loop has no end");
        };
        let turns = self.trip_count_of_branch(branch, guard, turn, around.test.is_some())?;
        self.state = entry;
        Ok(turns)
    }

    /// The iterations after which a branch leaves a loop: `leaves` says whether it is taken then.
    fn trip_count_of_branch(
        &mut self,
        branch: usize,
        guard: Guard,
        turn: u32,
        leaves: bool,
    ) -> ExecutionResult<Trip> {
        let Some(id) = self.state.predicates[usize::from(guard.predicate.0)] else {
            return self.refuse(branch, "the condition that ends the loop is not known");
        };
        let stays = guard.when != leaves;
        let node = self.graph.node(id).clone();
        if let Node::Truth(holds) = node {
            return match (holds == stays, leaves) {
                (false, true) => Ok(Trip::Iterations(0)),
                (false, false) => Ok(Trip::Iterations(1)),
                (true, _) => self.refuse(branch, "the loop has no end"),
            };
        }
        let Node::Compare {
            condition,
            ty,
            a,
            b,
        } = node
        else {
            return self.refuse(branch, "the condition that ends the loop depends on data");
        };
        let Some((a, b)) = self.graph.form(a).cloned().zip(self.graph.form(b).cloned()) else {
            return self.refuse(branch, "the condition that ends the loop depends on data");
        };
        let condition = if stays {
            condition
        } else {
            trip::negated(condition)
        };
        if let Some(turns) = self
            .lanes_turns(condition, ty, &a, &b, turn)
            .filter(|_| leaves)
        {
            return Ok(Trip::Strided(turns));
        }
        let Some(first) = trip::first_failure(condition, &a.sub(&b), Var::Turn(turn)) else {
            return self.refuse(
                branch,
                format!("the number of iterations is not known in advance: {a} against {b}"),
            );
        };
        if first > MAX_TRIP_COUNT {
            return self.refuse(branch, format!("{first} iterations"));
        }
        // Neither side may wrap before the iteration at which the loop is left.
        let mut extents = self.extents.clone();
        extents.insert(Var::Turn(turn), first + 1);
        if self.probing == 0 && (a.exact(ty, &extents).is_none() || b.exact(ty, &extents).is_none())
        {
            return self.refuse(branch, format!("{a} or {b} may wrap before the loop ends"));
        }
        Ok(Trip::Iterations(if leaves { first } else { first + 1 }))
    }

    /// Follows a loop of several iterations as one iteration of any number.
    fn turns(
        &mut self,
        around: Loop,
        turn: u32,
        roles: &BTreeMap<Register, Role>,
        turns: u64,
    ) -> ExecutionResult<()> {
        let entry = self.state.clone();
        let var = Var::Turn(turn);
        self.extents.insert(var, turns);
        self.open.push(var);
        self.begin(&entry, roles, turn, around);
        let begin = self.state.clone();
        self.body(around)?;
        self.open.pop();
        let mut record = LoopRecord {
            extent: turns,
            ..LoopRecord::default()
        };
        let mut after = self.state.clone();
        for (register, role) in roles {
            let place = usize::from(register.0);
            let (before, first, last) = (
                entry.registers[place],
                begin.registers[place],
                self.state.registers[place],
            );
            let Some(last) = last else { continue };
            self.holds(around, *role, first, last)?;
            after.registers[place] = Some(
                match (role, before.and_then(|id| self.graph.form(id).cloned())) {
                    (Role::Same, _) => before.unwrap_or(last),
                    (Role::Step(step), Some(form)) => {
                        let ty = self.graph.ty(last).unwrap_or(Type::U64);
                        self.graph
                            .integer(ty, &form.plus(&Affine::constant(i128::from(turns)), *step))
                    }
                    _ => self.after(turn, turns, *register, last),
                },
            );
            record.carried.insert(*register, (before, last));
        }
        self.turns.insert(turn, record);
        self.state = after;
        self.forget_predicates(around.all());
        self.leave(around)
    }

    /// A register after the last iteration, from its value at the end of any iteration.
    fn after(&mut self, turn: u32, turns: u64, register: Register, last: Id) -> Id {
        let var = Var::Turn(turn);
        let last_turn = Affine::constant(i128::from(turns) - 1);
        let is_carried = |form: &Affine| {
            form.terms()
                .iter()
                .any(|(var, _)| matches!(var, Var::Carried(of, _) if *of == turn))
        };
        if let Some(form) = self
            .graph
            .form(last)
            .cloned()
            .filter(|form| !is_carried(form))
        {
            let ty = self.graph.ty(last).unwrap_or(Type::U64);
            return self.graph.integer(ty, &form.substitute(var, &last_turn));
        }
        if let Node::Float { .. } = self.graph.node(last) {
            return last;
        }
        let ty = self.graph.ty(last).unwrap_or(Type::U64);
        self.graph.put(Node::Fold { turn, register, ty })
    }
}
