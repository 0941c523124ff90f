//! Ensembles of decision trees as files write them: lists over all nodes of all trees, of which a
//! branch or a leaf is found by its numbers.

use std::collections::{HashMap, HashSet};

use rten_onnx::onnx::TensorProto;
use tectum::{Error, Result};
use tectum_graph::Comparison;

use crate::emit::{Call, Emit};

/// A node that compares an element of the input.
#[derive(Debug, Clone, Copy)]
pub(super) struct Branch {
    pub comparison: Comparison,
    pub feature: usize,
    pub value: f64,
    /// Places of what follows: a branch, or, from the number of branches on, a leaf.
    pub on_true: usize,
    pub on_false: usize,
    /// Whether a missing element, NaN, goes where the comparison is true.
    pub missing_is_true: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Aggregate {
    Sum,
    Average,
    Min,
    Max,
}

pub(super) struct Ensemble {
    pub branches: Vec<Branch>,
    /// The number of each leaf's target and its weight.
    pub leaves: Vec<Vec<(usize, f64)>>,
    /// Places of roots.
    pub roots: Vec<usize>,
    pub targets: usize,
    pub aggregate: Aggregate,
}

/// The names of the attributes with the weights of leaves.
pub(super) struct WeightNames {
    pub trees: &'static str,
    pub nodes: &'static str,
    pub ids: &'static str,
    pub weights: &'static str,
    pub tensor: &'static str,
}

/// All nodes of an ensemble of version 1 or 3, by place: branches first, then leaves.
struct Nodes {
    branches: Vec<Branch>,
    leaves: usize,
    roots: Vec<usize>,
    /// By the numbers of tree and node.
    places: HashMap<(i64, i64), usize>,
}

impl Nodes {
    fn find(&self, tree: i64, id: i64) -> Result<usize> {
        find(&self.places, tree, id)
    }
}

fn find(places: &HashMap<(i64, i64), usize>, tree: i64, id: i64) -> Result<usize> {
    let found = places.get(&(tree, id)).copied();
    found.ok_or_else(|| Error::data(format!("tree {tree} has no node {id}")))
}

impl Ensemble {
    /// As the operators of versions 1 and 3 write it: lists over all nodes of all trees.
    pub fn read(
        emit: &mut Emit<'_>,
        call: &Call<'_>,
        names: &WeightNames,
        targets: usize,
    ) -> Result<Self> {
        let nodes = Nodes::read(emit, call)?;
        let weights = numbers(emit, call, names.weights, names.tensor)?;
        let count = weights.len();
        let (trees, owners, ids) = (
            list(call, names.trees, count)?,
            list(call, names.nodes, count)?,
            list(call, names.ids, count)?,
        );
        let mut leaves = vec![Vec::new(); nodes.leaves];
        for (index, weight) in weights.into_iter().enumerate() {
            let found = nodes.find(trees[index], owners[index])?;
            let leaf = found.checked_sub(nodes.branches.len()).ok_or_else(|| {
                let node = owners[index];
                Error::data(format!("a weight of node {node}, which is no leaf"))
            })?;
            leaves[leaf].push((place(ids[index], "target")?, weight));
        }
        Ok(Self {
            branches: nodes.branches,
            leaves,
            roots: nodes.roots,
            targets,
            aggregate: Aggregate::Sum,
        })
    }
}

impl Nodes {
    fn read(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Self> {
        let attributes = &call.attributes;
        let trees = attributes.ints("nodes_treeids")?.unwrap_or_default();
        let count = trees.len();
        let ids = list(call, "nodes_nodeids", count)?;
        let features = list(call, "nodes_featureids", count)?;
        let on_true = list(call, "nodes_truenodeids", count)?;
        let on_false = list(call, "nodes_falsenodeids", count)?;
        let modes = attributes.strings("nodes_modes")?.unwrap_or_default();
        let values = numbers(emit, call, "nodes_values", "nodes_values_as_tensor")?;
        // How often a branch was taken, which no result depends on.
        numbers(emit, call, "nodes_hitrates", "nodes_hitrates_as_tensor")?;
        let missing = attributes
            .ints("nodes_missing_value_tracks_true")?
            .filter(|flags| flags.len() == count);
        if count == 0 || modes.len() != count || values.len() != count {
            return Err(Error::data(format!(
                "{} modes and {} values for {count} nodes",
                modes.len(),
                values.len()
            )));
        }
        let numbered: Vec<(i64, i64)> = trees.into_iter().zip(ids).collect();
        let is_leaf: Vec<bool> = modes.iter().map(|mode| mode == "LEAF").collect();
        let places = placed(&numbered, &is_leaf)?;
        let mut branches = Vec::new();
        for index in (0..count).filter(|index| !is_leaf[*index]) {
            let (tree, _) = numbered[index];
            branches.push(Branch {
                comparison: comparison(&modes[index])?,
                feature: place(features[index], "feature")?,
                value: values[index],
                on_true: find(&places, tree, on_true[index])?,
                on_false: find(&places, tree, on_false[index])?,
                missing_is_true: missing.as_ref().is_some_and(|flags| flags[index] != 0),
            });
        }
        Ok(Self {
            leaves: count - branches.len(),
            roots: roots(&numbered, &places, &branches)?,
            branches,
            places,
        })
    }
}

/// The places of nodes: branches first, then leaves.
fn placed(numbered: &[(i64, i64)], is_leaf: &[bool]) -> Result<HashMap<(i64, i64), usize>> {
    let branches = is_leaf.iter().filter(|is_leaf| !**is_leaf).count();
    let mut next = [0, branches];
    let mut places = HashMap::new();
    for (node, is_leaf) in numbered.iter().zip(is_leaf) {
        let next = &mut next[usize::from(*is_leaf)];
        if places.insert(*node, *next).is_some() {
            let (tree, id) = node;
            return Err(Error::data(format!("tree {tree} has node {id} twice")));
        }
        *next += 1;
    }
    Ok(places)
}

/// The nodes that no other leads to: one of each tree.
fn roots(
    numbered: &[(i64, i64)],
    places: &HashMap<(i64, i64), usize>,
    branches: &[Branch],
) -> Result<Vec<usize>> {
    let next = branches
        .iter()
        .flat_map(|branch| [branch.on_true, branch.on_false]);
    let children: HashSet<usize> = next.collect();
    let (mut roots, mut trees) = (Vec::new(), HashSet::new());
    for (tree, id) in numbered {
        let at = find(places, *tree, *id)?;
        if children.contains(&at) {
            continue;
        }
        if !trees.insert(tree) {
            return Err(Error::data(format!("tree {tree} has two roots")));
        }
        roots.push(at);
    }
    Ok(roots)
}

/// The modes of branches in version 5, by number; the next one is a set.
const MODES: [&str; 6] = [
    "BRANCH_LEQ",
    "BRANCH_LT",
    "BRANCH_GTE",
    "BRANCH_GT",
    "BRANCH_EQ",
    "BRANCH_NEQ",
];

/// Lists over all branches of version 5.
struct Branches {
    /// In place of what follows they have the place in the file.
    all: Vec<Branch>,
    /// The first branch that each of the file's became.
    firsts: Vec<usize>,
}

impl Branches {
    /// A branch on a set becomes a chain of branches on its members.
    fn read(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Self> {
        let splits = tensor(emit, call, "nodes_splits")?;
        let modes = tensor(emit, call, "nodes_modes")?;
        let members = tensor(emit, call, "membership_values")?;
        tensor(emit, call, "nodes_hitrates")?;
        let features = list(call, "nodes_featureids", splits.len())?;
        let missing = call.attributes.ints("nodes_missing_value_tracks_true")?;
        let mut sets = members.split(|member| member.is_nan());
        let (mut all, mut firsts) = (Vec::new(), Vec::new());
        for (index, split) in splits.iter().enumerate() {
            let mode = modes.get(index).copied().unwrap_or(f64::NAN);
            let (mode, values) = if mode == MODES.len() as f64 {
                let set = sets.next().filter(|set| !set.is_empty());
                let set = set.ok_or_else(|| Error::data("a branch on a set has no members"))?;
                ("BRANCH_EQ", set.to_vec())
            } else {
                let known = MODES.get(mode as usize).filter(|_| mode >= 0.0);
                let known = known.ok_or_else(|| Error::data(format!("a node of mode {mode}")))?;
                (*known, vec![*split])
            };
            firsts.push(all.len());
            let missing = missing.as_ref().and_then(|flags| flags.get(index));
            for (at, value) in values.iter().enumerate() {
                let is_last = at + 1 == values.len();
                all.push(Branch {
                    comparison: comparison(mode)?,
                    feature: place(features[index], "feature")?,
                    value: *value,
                    on_true: index,
                    on_false: if is_last { usize::MAX } else { all.len() + 1 },
                    missing_is_true: missing.is_some_and(|flag| *flag != 0),
                });
            }
        }
        Ok(Self { all, firsts })
    }

    /// The place of a node or leaf of the file.
    fn target(&self, id: i64, is_leaf: i64, leaves: usize) -> Result<usize> {
        let id = place(id, "node")?;
        let found = if is_leaf == 0 {
            self.firsts.get(id).copied()
        } else {
            Some(self.all.len() + id).filter(|_| id < leaves)
        };
        found.ok_or_else(|| Error::data(format!("there is no node or leaf {id}")))
    }
}

impl Ensemble {
    /// As version 5 writes it: lists over all branches, and over all leaves.
    pub fn read_joined(emit: &mut Emit<'_>, call: &Call<'_>, targets: usize) -> Result<Self> {
        let weights = tensor(emit, call, "leaf_weights")?;
        let owners = list(call, "leaf_targetids", weights.len())?;
        let branches = Branches::read(emit, call)?;
        let count = branches.firsts.len();
        let on_true = list(call, "nodes_truenodeids", count)?;
        let on_false = list(call, "nodes_falsenodeids", count)?;
        let (true_leaf, false_leaf) = (
            list(call, "nodes_trueleafs", count)?,
            list(call, "nodes_falseleafs", count)?,
        );
        let linked = branches.all.iter().map(|branch| {
            let (index, leaves) = (branch.on_true, weights.len());
            let on_false = match branch.on_false {
                usize::MAX => branches.target(on_false[index], false_leaf[index], leaves)?,
                next => next,
            };
            Ok(Branch {
                on_true: branches.target(on_true[index], true_leaf[index], leaves)?,
                on_false,
                ..*branch
            })
        });
        let roots = call.attributes.ints("tree_roots")?.unwrap_or_default();
        let roots = roots.into_iter().map(|root| branches.target(root, 0, 0));
        let leaves = owners
            .iter()
            .zip(&weights)
            .map(|(target, weight)| Ok(vec![(place(*target, "target")?, *weight)]));
        let aggregate = match call.attributes.int_or("aggregate_function", 1)? {
            0 => Aggregate::Average,
            1 => Aggregate::Sum,
            2 => Aggregate::Min,
            3 => Aggregate::Max,
            other => return Err(Error::data(format!("aggregate_function {other}"))),
        };
        Ok(Self {
            branches: linked.collect::<Result<Vec<_>>>()?,
            roots: roots.collect::<Result<Vec<_>>>()?,
            leaves: leaves.collect::<Result<Vec<_>>>()?,
            targets,
            aggregate,
        })
    }
}

/// The numbers of an attribute that is a tensor; none without it.
fn tensor(emit: &mut Emit<'_>, call: &Call<'_>, name: &'static str) -> Result<Vec<f64>> {
    match call.attributes.tensor(name)? {
        Some(tensor) => Ok(emit.tensor(tensor)?.to_f64()),
        None => Ok(Vec::new()),
    }
}

fn comparison(name: &str) -> Result<Comparison> {
    match name {
        "BRANCH_LEQ" => Ok(Comparison::LessEqual),
        "BRANCH_LT" => Ok(Comparison::Less),
        "BRANCH_GTE" => Ok(Comparison::GreaterEqual),
        "BRANCH_GT" => Ok(Comparison::Greater),
        "BRANCH_EQ" => Ok(Comparison::Equal),
        "BRANCH_NEQ" => Ok(Comparison::NotEqual),
        other => Err(Error::data(format!("a node of mode {other:?}"))),
    }
}

pub(super) fn place(number: i64, what: &str) -> Result<usize> {
    usize::try_from(number).map_err(|_| Error::data(format!("{what} {number}")))
}

/// Numbers as a list of floats, or as a tensor of another type.
pub(super) fn numbers(
    emit: &mut Emit<'_>,
    call: &Call<'_>,
    list: &'static str,
    tensor: &'static str,
) -> Result<Vec<f64>> {
    let tensor: Option<&TensorProto> = call.attributes.tensor(tensor)?;
    match (call.attributes.floats(list)?, tensor) {
        (_, Some(tensor)) => Ok(emit.tensor(tensor)?.to_f64()),
        (Some(floats), None) => Ok(floats.into_iter().map(f64::from).collect()),
        (None, None) => Ok(Vec::new()),
    }
}

/// A list of the attributes, of as many integers as there are nodes.
fn list(call: &Call<'_>, name: &'static str, count: usize) -> Result<Vec<i64>> {
    let found = call.attributes.ints(name)?.unwrap_or_default();
    if found.len() == count {
        Ok(found)
    } else {
        Err(Error::data(format!(
            "{name} has {} numbers for {count} nodes",
            found.len()
        )))
    }
}

pub(super) fn aggregate(name: &str) -> Result<Aggregate> {
    match name {
        "SUM" => Ok(Aggregate::Sum),
        "AVERAGE" => Ok(Aggregate::Average),
        "MIN" => Ok(Aggregate::Min),
        "MAX" => Ok(Aggregate::Max),
        other => Err(Error::data(format!("aggregate_function {other:?}"))),
    }
}
