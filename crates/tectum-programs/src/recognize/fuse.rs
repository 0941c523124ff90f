//! Merges maps of equal element count into one: chains are fused, independent ones run side by
//! side.

use std::collections::BTreeMap;

use tectum::kernel::MAX_BINDINGS;

use super::affine::{Affine, Extents, Var};
use super::element::Elements;
use super::graph::{Graph, Id, Node};
use super::{Map, Refusal};
use crate::{BufferAccess, BufferDeclaration, BufferIndex, Type};

/// A map of a sequence, with the memory of each of its buffers.
#[derive(Debug, Clone, Copy)]
pub struct Stage<'a> {
    /// The map.
    pub map: &'a Map,
    /// For each declared buffer, the number of its memory; equal numbers are the same memory.
    pub memories: &'a [usize],
}

/// A sequence of maps as one.
#[derive(Debug, Clone)]
pub struct Fused {
    /// The one map.
    pub map: Map,
    /// The memory of each of its buffers.
    pub memories: Vec<usize>,
}

/// Merges several maps that would run in sequence into one.
///
/// # Legality
/// All have the same element count. A load of the own element that an earlier stage stored becomes
/// the stored value; of two stores to one memory the last is kept. A load at an offset that is the
/// same for all lanes is refused from memory that any other stage stores to, since that element
/// belongs to another lane. `dropped` names memory without later readers: its stores are omitted.
///
/// # Errors
/// The reason why the maps are not merged.
pub fn fuse(stages: &[Stage<'_>], dropped: &[usize]) -> Result<Fused, Refusal> {
    let refuse = |reason: String| Refusal {
        instruction: None,
        reason,
    };
    let Some(count) = stages.first().map(|stage| stage.map.elements()) else {
        return Err(refuse("there are no maps".to_owned()));
    };
    if let Some(other) = stages
        .iter()
        .map(|stage| stage.map.elements())
        .find(|other| *other != count)
    {
        return Err(refuse(format!(
            "a map has {count} elements and another {other}"
        )));
    }
    let mut fusion = Fusion {
        graph: Graph::default(),
        count,
        stored: BTreeMap::new(),
        read: BTreeMap::new(),
    };
    for (index, stage) in stages.iter().enumerate() {
        fusion.stage(stages, index, stage).map_err(refuse)?;
    }
    fusion.stored.retain(|memory, _| !dropped.contains(memory));
    let names: Vec<&str> = stages
        .iter()
        .map(|stage| stage.map.program.program().name())
        .filter(|name| !name.is_empty())
        .collect();
    fusion.finish(&names.join("_")).map_err(refuse)
}

struct Fusion {
    graph: Graph,
    count: u64,
    /// The type and value of the element last stored to each memory.
    stored: BTreeMap<usize, (Type, Id)>,
    /// The declarations of memories that are read.
    read: BTreeMap<usize, Type>,
}

impl Fusion {
    fn stage(
        &mut self,
        stages: &[Stage<'_>],
        index: usize,
        stage: &Stage<'_>,
    ) -> Result<(), String> {
        let elements = &stage.map.elements;
        let memory = |buffer: BufferIndex| {
            stage
                .memories
                .get(buffer.0 as usize)
                .copied()
                .ok_or_else(|| format!("buffer {} has no memory", buffer.0))
        };
        let extents = Extents::from([(Var::Lane, self.count)]);
        let is_shared = |(buffer, ..): &&(BufferIndex, Type, Id)| {
            stage
                .memories
                .iter()
                .filter(|other| Some(*other) == stage.memories.get(buffer.0 as usize))
                .count()
                > 1
        };
        if elements.outputs.iter().any(|output| is_shared(&output)) {
            return Err(format!(
                "two buffers of map {index} are the same memory, and one is stored to"
            ));
        }
        let mut moved: BTreeMap<Id, Id> = BTreeMap::new();
        let mut stores = Vec::new();
        for id in elements
            .graph
            .reachable(elements.outputs.iter().map(|(_, _, value)| *value))
        {
            let new = match elements.graph.node(id).clone() {
                Node::Load { ty, buffer, at } => {
                    let memory = memory(buffer)?;
                    check_no_conflict(stages, index, memory, ty, &at)?;
                    self.load(memory, ty, at)?
                }
                node => {
                    let parts: Vec<Id> = elements
                        .graph
                        .parts(id)
                        .iter()
                        .map(|part| moved[part])
                        .collect();
                    self.graph.rebuilt(node, &parts, &extents)
                }
            };
            moved.insert(id, new);
        }
        for (buffer, ty, value) in &elements.outputs {
            stores.push((memory(*buffer)?, (*ty, moved[value])));
        }
        self.stored.extend(stores);
        Ok(())
    }

    /// A load, or the value stored there. Buffers of the fused graph are numbered by their memory.
    fn load(&mut self, memory: usize, ty: Type, at: Affine) -> Result<Id, String> {
        if let Some((stored, value)) = self.stored.get(&memory) {
            return if *stored == ty {
                Ok(*value)
            } else {
                Err(format!(
                    "memory {memory} is stored as {stored} and loaded as {ty}"
                ))
            };
        }
        if self
            .read
            .insert(memory, ty)
            .is_some_and(|other| other != ty)
        {
            return Err(format!("memory {memory} is loaded as several types"));
        }
        Ok(self.graph.put(Node::Load {
            ty,
            buffer: BufferIndex(memory as u32),
            at,
        }))
    }

    fn finish(self, name: &str) -> Result<Fused, String> {
        let roots: Vec<Id> = self.stored.values().map(|(_, value)| *value).collect();
        if roots.is_empty() {
            return Err("all stores of the maps are dropped".to_owned());
        }
        let loaded = |id: &Id| {
            if let Node::Load { ty, buffer, .. } = self.graph.node(*id) {
                Some((buffer.0 as usize, *ty))
            } else {
                None
            }
        };
        let reads: BTreeMap<usize, Type> = self
            .graph
            .reachable(roots)
            .iter()
            .filter_map(loaded)
            .collect();
        let mut memories: Vec<usize> = reads.keys().chain(self.stored.keys()).copied().collect();
        memories.sort_unstable();
        memories.dedup();
        if memories.len() > MAX_BINDINGS {
            return Err(format!(
                "{} buffers are more than the {MAX_BINDINGS} of a launch",
                memories.len()
            ));
        }
        let mut buffers = Vec::with_capacity(memories.len());
        for memory in &memories {
            let (read, stored) = (
                reads.get(memory).copied(),
                self.stored.get(memory).map(|(ty, _)| *ty),
            );
            let access = match (read, stored) {
                (Some(read), Some(stored)) if read != stored => {
                    return Err(format!(
                        "memory {memory} is loaded as {read} and stored as {stored}"
                    ));
                }
                (Some(_), Some(_)) => BufferAccess::ReadWrite,
                (None, _) => BufferAccess::Write,
                (_, None) => BufferAccess::Read,
            };
            buffers.push(BufferDeclaration {
                name: format!("m{memory}"),
                ty: read.or(stored).unwrap_or(Type::U8),
                access,
                boundary: false,
            });
        }
        let place = |memory: usize| {
            BufferIndex(
                memories
                    .iter()
                    .position(|other| *other == memory)
                    .unwrap_or(0) as u32,
            )
        };
        let mut graph = Graph::default();
        let extents = Extents::from([(Var::Lane, self.count)]);
        let mut moved: BTreeMap<Id, Id> = BTreeMap::new();
        for id in self
            .graph
            .reachable(self.stored.values().map(|(_, value)| *value))
        {
            let new = match self.graph.node(id).clone() {
                Node::Load { ty, buffer, at } => graph.put(Node::Load {
                    ty,
                    buffer: place(buffer.0 as usize),
                    at,
                }),
                node => {
                    let parts: Vec<Id> = self
                        .graph
                        .parts(id)
                        .iter()
                        .map(|part| moved[part])
                        .collect();
                    graph.rebuilt(node, &parts, &extents)
                }
            };
            moved.insert(id, new);
        }
        let outputs = self
            .stored
            .iter()
            .map(|(memory, (ty, value))| (place(*memory), *ty, moved[value]))
            .collect();
        let map = Map::of(
            Elements {
                graph,
                count: self.count,
                outputs,
            },
            name,
            &buffers,
        )?;
        Ok(Fused { map, memories })
    }
}

/// Refuses a load at a constant offset of memory that another stage stores to.
fn check_no_conflict(
    stages: &[Stage<'_>],
    index: usize,
    memory: usize,
    ty: Type,
    at: &Affine,
) -> Result<(), String> {
    let is_own = *at == Affine::of(Var::Lane).scale(i128::from(ty.bytes()));
    let stores = |stage: &Stage<'_>| {
        stage
            .map
            .elements
            .outputs
            .iter()
            .any(|(buffer, ..)| stage.memories.get(buffer.0 as usize) == Some(&memory))
    };
    let other = stages
        .iter()
        .enumerate()
        .find(|(other, stage)| *other != index && stores(stage));
    match other {
        Some((other, _)) if !is_own => Err(format!(
            "map {index} loads memory {memory} at {at}, which map {other} stores to"
        )),
        _ => Ok(()),
    }
}
