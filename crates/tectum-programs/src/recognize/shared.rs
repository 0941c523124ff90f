//! Shared memory of a launch of one block: cell l holds the value that lane l stored, and barriers
//! make it visible to the others.
//!
//! Between two barriers a lane stores only to its own cell, and no lane loads a cell that another
//! stores; so the result of a load does not depend on the order of lanes. Everything else is
//! refused.

use super::affine::{Affine, Extents, Var};
use super::graph::{Graph, Id, Node};
use super::lane::{ExecutionResult, SymbolicExecutor};
use super::shared_cells::{BlockReduction, Cells, StoredValue};
use crate::{Instruction, Register, SharedAddress, Type};

impl SymbolicExecutor<'_> {
    /// Follows an access to shared memory or a barrier.
    pub fn meet(&mut self, at: usize, instruction: Instruction) -> ExecutionResult<()> {
        let is_one_block = self.setting.launch.blocks() == 1 && self.columns().is_none();
        if !is_one_block {
            return self.refuse(
                at,
                "recognition supports shared memory only in launches of one block",
            );
        } else if self.probing > 0 || !self.open.is_empty() {
            return self.refuse(
                at,
                "recognition does not support shared memory in a loop without barriers",
            );
        }
        match instruction {
            Instruction::LoadShared { ty, dst, address } => {
                let id = self.load_shared(at, ty, address)?;
                self.set(dst, id);
            }
            Instruction::StoreShared { ty, src, address } => {
                self.store_shared(at, ty, src, address)?
            }
            _ => {
                self.shared.cells = self.shared.stored.take().or(self.shared.cells.take());
                self.shared.loaded.clear();
            }
        }
        Ok(())
    }

    /// Lanes that arrive here.
    pub fn lanes(&self) -> u64 {
        self.extents.get(&Var::Lane).copied().unwrap_or(0)
    }

    /// Distance in lanes to the cell of an address.
    fn cell(&mut self, at: usize, ty: Type, address: SharedAddress) -> ExecutionResult<u64> {
        let width = i128::from(ty.bytes());
        let form = match address {
            SharedAddress::Own => self.lane().scale(width),
            SharedAddress::Constant(bytes) => Affine::constant(i128::from(bytes)),
            SharedAddress::Indexed(register) => self.offset(at, register)?,
        };
        let further = form
            .sub(&Affine::of(Var::Lane).scale(width))
            .reduced(&self.extents)
            .as_constant()
            .filter(|bytes| bytes % width == 0);
        match further.and_then(|bytes| u64::try_from(bytes / width).ok()) {
            Some(lanes) => Ok(lanes),
            None => self.refuse(
                at,
                format!(
                    "the place {form} in shared memory is not that of the lane or so many lanes on"
                ),
            ),
        }
    }

    fn load_shared(&mut self, at: usize, ty: Type, address: SharedAddress) -> ExecutionResult<Id> {
        let further = self.cell(at, ty, address)?;
        let loaded = further..further + self.lanes();
        if let Some(stored) = &self.shared.stored {
            if further == 0 && stored.ty == ty && loaded.end <= stored.count {
                return Ok(stored.value);
            } else if loaded.start < stored.count || stored.ty != ty {
                return self.refuse(
                    at,
                    "a lane loads what another stores, with no barrier between them",
                );
            }
        }
        match self.shared.cells.clone() {
            Some(Cells {
                ty: held,
                count,
                value,
            }) if held == ty && loaded.end <= count => {
                if further > 0 {
                    self.shared
                        .loaded
                        .push(loaded.start * ty.bytes()..loaded.end * ty.bytes());
                }
                let lane = Affine::of(Var::Lane).add(&Affine::constant(i128::from(further)));
                Ok(self
                    .graph
                    .substitute(value, Var::Lane, &lane, &self.extents))
            }
            _ => self.refuse(
                at,
                format!(
                    "no barrier has shown what the cells {} to {} hold",
                    loaded.start, loaded.end
                ),
            ),
        }
    }

    fn store_shared(
        &mut self,
        at: usize,
        ty: Type,
        src: Register,
        address: SharedAddress,
    ) -> ExecutionResult<()> {
        let count = self.lanes();
        let bytes = u64::from(
            self.program
                .shared_bytes()
                .max(self.setting.launch.shared_bytes),
        );
        if self.cell(at, ty, address)? != 0 {
            return self.refuse(at, "a lane stores to the cell of another");
        } else if count * ty.bytes() > bytes {
            return self.refuse(
                at,
                format!("{count} cells of {ty} do not fit in {bytes} bytes of shared memory"),
            );
        } else if self
            .shared
            .loaded
            .iter()
            .any(|loaded| loaded.start < count * ty.bytes())
        {
            return self.refuse(
                at,
                "a lane stores what another loads, with no barrier between them",
            );
        } else if self
            .shared
            .stored
            .as_ref()
            .is_some_and(|stored| (stored.ty, stored.count) != (ty, count))
        {
            return self.refuse(at, "some lanes store twice, with no barrier between them");
        } else if self.elements().is_some_and(|elements| elements < count) {
            return self.refuse(
                at,
                "lanes without an element reach a barrier with the others",
            );
        }
        let value = self.get(src, at)?;
        let value = self.shown(value, ty, count);
        self.shared.stored = Some(Cells { ty, count, value });
        Ok(())
    }

    /// A stored value as visible to others: it depends only on the number of the lane that stored
    /// it.
    fn shown(&mut self, value: Id, ty: Type, lanes: u64) -> Id {
        let inside = self.graph.reachable([value]);
        let is = |kind: fn(&Node) -> bool| inside.iter().any(|id| kind(self.graph.node(*id)));
        let is_opaque = is(|node| {
            matches!(
                node,
                Node::Fold { .. } | Node::Unknown { .. } | Node::Carried { .. }
            )
        });
        if is(|node| matches!(node, Node::Stored { .. })) && !is_opaque {
            return value;
        }
        let part = self.shared.parts.len() as u32;
        self.shared.parts.push(StoredValue { value, lanes });
        let shown = self.graph.put(Node::Stored {
            ty,
            part,
            at: Affine::of(Var::Lane),
        });
        // The lane's own registers also hold it.
        if self.part.is_none() {
            self.state
                .registers
                .iter_mut()
                .filter(|held| **held == Some(value))
                .for_each(|held| *held = Some(shown));
        }
        shown
    }
}

/// A value of the first lane as an expression over the parts that all lanes stored; `None` if it
/// depends on none of them.
pub fn match_block_reduction(
    graph: &mut Graph,
    value: Id,
    parts: &[StoredValue],
    extents: &Extents,
) -> Option<Result<BlockReduction, String>> {
    if !graph
        .reachable([value])
        .iter()
        .any(|id| matches!(graph.node(*id), Node::Stored { .. }))
    {
        return None;
    }
    Some(whole(graph, value, parts, extents))
}

fn whole(
    graph: &mut Graph,
    value: Id,
    parts: &[StoredValue],
    extents: &Extents,
) -> Result<BlockReduction, String> {
    if extents.get(&Var::Lane) != Some(&1) {
        return Err("several lanes store what the block leaves".to_owned());
    }
    let value = graph.substitute(value, Var::Lane, &Affine::default(), extents);
    let Node::Binary { op, .. } = *graph.node(value) else {
        return Err("the value is not an operation over the lanes' parts".to_owned());
    };
    let mut taken: Vec<(u32, u64)> = Vec::new();
    let mut open = vec![value];
    while let Some(id) = open.pop() {
        match graph.node(id) {
            Node::Binary {
                op: other, a, b, ..
            } if *other == op => open.extend([*a, *b]),
            Node::Stored { part, at, .. } => {
                let lane = at
                    .as_constant()
                    .and_then(|lane| u64::try_from(lane).ok())
                    .ok_or("a lane's part is not known")?;
                taken.push((*part, lane));
                if taken.len() as u64 > parts[taken[0].0 as usize].lanes {
                    return Err("a lane's part is taken more than once".to_owned());
                }
            }
            _ => return Err(format!("the value is not {op} of the lanes' parts alone")),
        }
    }
    taken.sort_unstable();
    let part = taken.first().map_or(0, |(part, _)| *part);
    let lanes = parts[part as usize].lanes;
    match (0..lanes).find(|lane| taken.get(*lane as usize) != Some(&(part, *lane))) {
        Some(lane) => Err(format!("the part of lane {lane} is not taken exactly once")),
        None => Ok(BlockReduction {
            op,
            part: parts[part as usize],
        }),
    }
}
