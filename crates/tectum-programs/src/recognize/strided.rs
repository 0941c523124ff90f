//! Loops whose iterations the lanes share: each lane starts at its own number and steps by the
//! number of lanes.

use std::collections::BTreeMap;

use super::affine::{Affine, Var};
use super::control::MAX_TRIP_COUNT;
use super::graph::Node;
use super::lane::{ExecutionResult, LoopRecord, SymbolicExecutor};
use super::loops::Loop;
use super::role::Role;
use super::trip;
use crate::{Condition, Register, Type, Write};

impl SymbolicExecutor<'_> {
    /// The total iterations of all lanes, if each starts at its own number and steps by the number
    /// of lanes.
    pub fn lanes_turns(
        &self,
        condition: Condition,
        ty: Type,
        a: &Affine,
        b: &Affine,
        turn: u32,
    ) -> Option<u64> {
        let (lanes, number) = (self.lanes(), Var::Strided(turn));
        if lanes < 2
            || self.probing > 0
            || !self.open.is_empty()
            || self.part.is_some()
            || matches!(condition, Condition::Eq | Condition::Ne)
        {
            return None;
        }
        // Equal numbers for all lanes and iterations with equal lane + lanes · turn.
        let along = |form: &Affine| {
            let factor = form.factor(Var::Lane);
            let rest = form.without(Var::Lane).without(Var::Turn(turn));
            (form.factor(Var::Turn(turn)) == factor * i128::from(lanes))
                .then(|| rest.plus(&Affine::of(number), factor))
        };
        let (a, b) = (along(a)?, along(b)?);
        let difference = a.sub(&b);
        if difference.factor(number) == 0 {
            return None;
        }
        let turns = trip::first_failure(condition, &difference, number)
            .filter(|turns| (1..=MAX_TRIP_COUNT).contains(turns))?;
        // No lane's number wraps before its iteration at which the loop is left.
        let mut extents = self.extents.clone();
        extents.insert(number, turns + lanes);
        (a.exact(ty, &extents).is_some() && b.exact(ty, &extents).is_some()).then_some(turns)
    }

    /// Follows a loop whose iterations the lanes share as one iteration of any lane.
    pub fn strided(
        &mut self,
        around: Loop,
        turn: u32,
        roles: &BTreeMap<Register, Role>,
        turns: u64,
    ) -> ExecutionResult<()> {
        let (entry, extents) = (self.state.clone(), self.extents.clone());
        let number = Var::Strided(turn);
        let lane = Affine::of(number).plus(&Affine::of(Var::Turn(turn)), -i128::from(self.lanes()));
        self.begin(&entry, roles, turn, around);
        self.extents.insert(number, turns);
        for place in 0..self.state.registers.len() {
            let Some(id) = self.state.registers[place] else {
                continue;
            };
            self.state.registers[place] =
                Some(self.graph.substitute(id, Var::Lane, &lane, &self.extents));
        }
        self.state.predicates.fill(None);
        // Neither the lane nor the iteration alone has a range here: accesses can depend on them
        // only through the number.
        self.extents.remove(&Var::Lane);
        self.open.push(number);
        let begin = self.state.clone();
        self.body(around)?;
        self.open.pop();
        let mut record = LoopRecord {
            extent: turns,
            strided: true,
            ..LoopRecord::default()
        };
        let mut after = entry.clone();
        for (register, role) in roles {
            let place = usize::from(register.0);
            let (before, first, last) = (
                entry.registers[place],
                begin.registers[place],
                self.state.registers[place],
            );
            let Some(last) = last else { continue };
            self.holds(around, *role, first, last)?;
            after.registers[place] = match (role, before, self.graph.ty(last)) {
                (Role::Same, ..) => before,
                (Role::Carried, Some(_), Some(ty)) => Some(self.graph.put(Node::Fold {
                    turn,
                    register: *register,
                    ty,
                })),
                _ => None,
            };
            record.carried.insert(*register, (before, last));
        }
        self.turns.insert(turn, record);
        (self.state, self.extents) = (after, extents);
        self.extents.insert(number, turns);
        self.forget_predicates(around.all());
        // The code before the test runs again, with numbers that depend on the lane.
        for instruction in
            &self.program.instructions()[around.head..around.test.unwrap_or(around.head)]
        {
            if let Some(Write::Register(register, _)) = instruction.write() {
                self.state.registers[usize::from(register.0)] = None;
            }
        }
        Ok(())
    }
}
