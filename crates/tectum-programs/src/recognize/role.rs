//! Change of registers across iterations of a loop: found by iterations without effect, tested in
//! the real iteration.

use std::collections::BTreeMap;

use super::affine::Affine;
use super::graph::Id;
use super::lane::{ExecutionResult, State, SymbolicExecutor};
use super::loops::{Loop, MAX_DEPTH};
use crate::{Register, Type};

/// Change of a register across iterations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// At the start of every iteration, it has its value before the first.
    Same,
    /// Grows by a constant.
    Step(i128),
    /// Anything else.
    Carried,
}

impl SymbolicExecutor<'_> {
    /// Finds how registers change, by iterations without effect.
    pub fn roles(&mut self, around: Loop, turn: u32) -> ExecutionResult<BTreeMap<Register, Role>> {
        let entry = self.state.clone();
        let mut roles: BTreeMap<Register, Role> = self
            .written(around)
            .into_iter()
            .map(|register| (register, Role::Carried))
            .collect();
        self.probing += 1;
        for _ in 0..MAX_DEPTH {
            self.begin(&entry, &roles, turn, around);
            let begin = self.state.clone();
            let followed = self.body(around);
            let found = followed.map(|()| {
                roles
                    .iter()
                    .map(|(register, role)| {
                        (*register, self.role(*register, *role, &entry, &begin))
                    })
                    .collect()
            });
            let found: BTreeMap<Register, Role> = match found {
                Ok(found) => found,
                Err(stop) => {
                    self.probing -= 1;
                    return Err(stop);
                }
            };
            let settled = found == roles;
            roles = found;
            if settled {
                break;
            }
        }
        self.probing -= 1;
        self.state = entry;
        Ok(roles)
    }

    /// The observed change of a register in an iteration.
    fn role(&self, register: Register, role: Role, entry: &State, begin: &State) -> Role {
        let at = |state: &State| state.registers[usize::from(register.0)];
        let (Some(before), Some(first), Some(last)) = (at(entry), at(begin), at(&self.state))
        else {
            return role;
        };
        if role != Role::Carried {
            return role;
        } else if last == before {
            return Role::Same;
        }
        match self
            .graph
            .form(first)
            .zip(self.graph.form(last))
            .and_then(|(first, last)| last.sub(first).as_constant())
        {
            Some(0) => Role::Same,
            Some(step) => Role::Step(step),
            None if first == last => Role::Same,
            None => Role::Carried,
        }
    }

    /// Tests in the real iteration the change of a register found by iterations without effect.
    pub fn holds(
        &self,
        around: Loop,
        role: Role,
        first: Option<Id>,
        last: Id,
    ) -> ExecutionResult<()> {
        let forms = || Some(self.graph.form(last)?.sub(self.graph.form(first?)?));
        let ty = self.graph.ty(last).unwrap_or(Type::U64);
        let right = match role {
            Role::Same => first.is_none_or(|first| first == last),
            Role::Step(step) => forms().is_some_and(|change| {
                change.sub(&Affine::constant(step)).wrapped(ty) == Affine::default()
            }),
            Role::Carried => true,
        };
        if right {
            Ok(())
        } else {
            self.refuse(
                around.head,
                "the loop's registers do not change equally in every iteration",
            )
        }
    }
}
