//! The stores of a program as results: which elements they cover, in which order, and the value of
//! each element.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Refusal;
use super::affine::{Affine, Extents, Var, count, radix};
use super::graph::{Graph, Id, Node};
use super::lane::{LoopRecord, Store, SymbolicExecutor};
use super::shared_cells::StoredValue;
use crate::{BufferIndex, Type};

/// One buffer's element for each combination of the variables.
#[derive(Debug, Clone)]
pub struct Output {
    pub instruction: usize,
    pub buffer: BufferIndex,
    pub ty: Type,
    pub value: Id,
}

/// Everything a launch stores.
pub struct Results {
    pub graph: Graph,
    pub extents: Extents,
    pub turns: HashMap<u32, LoopRecord>,
    /// Values that lanes stored in shared memory.
    pub parts: Vec<StoredValue>,
    /// The counters of the elements, the fastest first; none for one element.
    pub order: Vec<(Var, u64)>,
    pub outputs: Vec<Output>,
}

impl Results {
    pub fn elements(&self) -> u64 {
        count(&self.order)
    }

    /// Whether the launch stores to a buffer.
    pub fn stores(&self, buffer: BufferIndex) -> bool {
        self.outputs.iter().any(|output| output.buffer == buffer)
    }
}

/// Finds the results: for each buffer that is stored to, the stores must cover its elements, each
/// exactly once, and all buffers in one order.
pub fn results(mut follower: SymbolicExecutor<'_>) -> Result<Results, Refusal> {
    let mut families: BTreeMap<BufferIndex, Vec<Store>> = BTreeMap::new();
    let mut stores: Vec<Store> = std::mem::take(&mut follower.stores).into_values().collect();
    let mut graph = std::mem::take(&mut follower.graph);
    forwards(&mut graph, &follower.extents, &mut stores);
    for store in stores {
        families.entry(store.buffer).or_default().push(store);
    }
    let mut results: Option<Results> = None;
    for (buffer, mut family) in families {
        family.sort_by_key(|store| (store.at.constant, store.instruction));
        let instruction = family.iter().map(|store| store.instruction).min();
        let name = &follower.program.buffer(buffer).name;
        let refuse = |reason: String| Refusal {
            instruction,
            reason: format!("buffer {name}: {reason}"),
        };
        let (order, extents) = family_order(&follower, &family).map_err(refuse)?;
        let values: Vec<Id> = family.iter().map(|store| store.value).collect();
        let value = graph.template(&values, &extents).ok_or_else(|| {
            refuse("the elements of the run do not have the same form".to_owned())
        })?;
        let output = Output {
            instruction: instruction.unwrap_or(0),
            buffer,
            ty: family[0].ty,
            value,
        };
        match &mut results {
            None => {
                results = Some(Results {
                    graph: Graph::default(),
                    extents,
                    turns: HashMap::new(),
                    parts: Vec::new(),
                    order,
                    outputs: vec![output],
                })
            }
            Some(results) if results.order == order => results.outputs.push(output),
            Some(results) => {
                let first = &follower.program.buffer(results.outputs[0].buffer).name;
                return Err(refuse(format!(
                    "it is not stored to element by element with buffer {first}"
                )));
            }
        }
    }
    let mut results = results.ok_or(Refusal {
        instruction: None,
        reason: "the program stores nothing".to_owned(),
    })?;
    (results.graph, results.turns, results.parts) = (graph, follower.turns, follower.shared.parts);
    Ok(results)
}

/// Reverses loops that store downwards: the order of iterations does not affect what each stores.
/// Results of loops are not changed.
fn forwards(graph: &mut Graph, extents: &Extents, stores: &mut [Store]) {
    let falls =
        |(var, factor): &(Var, i128)| (matches!(var, Var::Turn(_)) && *factor < 0).then_some(*var);
    let falling: BTreeSet<Var> = stores
        .iter()
        .flat_map(|store| store.at.terms().iter().filter_map(falls))
        .collect();
    let folds = stores
        .iter()
        .flat_map(|store| graph.reachable([store.value]))
        .any(|id| matches!(graph.node(id), Node::Fold { .. } | Node::Carried { .. }));
    if folds {
        return;
    }
    for var in falling {
        let Some(turns) = extents.get(&var) else {
            continue;
        };
        let mirrored = Affine::constant(i128::from(*turns) - 1).sub(&Affine::of(var));
        for store in stores.iter_mut() {
            store.at = store.at.substitute(var, &mirrored);
            store.value = graph.substitute(store.value, var, &mirrored, extents);
        }
    }
}

/// The counters of the elements that some stores cover, completely and each once, with the extents
/// of all counters.
fn family_order(
    follower: &SymbolicExecutor<'_>,
    family: &[Store],
) -> Result<(Vec<(Var, u64)>, Extents), String> {
    let first = &family[0];
    if !follower.is_of_one_type(first.buffer) {
        return Err("it is accessed as several types".to_owned());
    }
    let alike = |store: &Store| {
        store.at.terms() == first.at.terms() && store.scope == first.scope && store.own == first.own
    };
    if !family.iter().all(alike) {
        return Err("it is stored to in several ways".to_owned());
    }
    let lanes: Vec<(Var, u64)> = first
        .scope
        .iter()
        .copied()
        .filter(|(var, _)| matches!(var, Var::Lane | Var::Row | Var::Column))
        .collect();
    if let Some(elements) = follower
        .elements()
        .filter(|elements| !first.own && count(&lanes) > *elements)
    {
        return Err(format!("lanes beyond the {elements} elements store to it"));
    }
    let mut extents = follower.extents.clone();
    extents.extend(first.scope.iter().copied());
    extents.insert(Var::Run, family.len() as u64);
    let form = run_form(family)?.reduced(&extents);
    if let Some((var, _)) = first
        .scope
        .iter()
        .find(|(var, extent)| *extent != 1 && form.factor(*var) == 0)
    {
        return Err(format!("every value of {var} stores to the same place"));
    }
    let width = first.ty.bytes();
    let size = follower.setting.sizes[first.buffer.0 as usize];
    let order = radix(&form.without_constant(), i128::from(width), &extents);
    let order = order.ok_or_else(|| format!("the stores at {form} leave gaps or overlap"))?;
    let covered = count(&order).saturating_mul(width);
    if form.constant != 0 || covered != size {
        return Err(format!(
            "the stores cover bytes {} to {} of {size}",
            form.constant,
            form.constant + i128::from(covered)
        ));
    }
    Ok((order, extents))
}

/// The offset of the stores over the index in their run, which must have equal steps.
fn run_form(family: &[Store]) -> Result<Affine, String> {
    let first = &family[0].at;
    let Some(second) = family.get(1) else {
        return Ok(first.clone());
    };
    let step = second.at.constant - first.constant;
    for (place, store) in family.iter().enumerate() {
        if store.at.constant != first.constant + step * place as i128 {
            return Err(format!(
                "the run of stores has a gap or stores twice at byte {}",
                store.at.constant
            ));
        }
    }
    Ok(first.plus(&Affine::of(Var::Run), step))
}
