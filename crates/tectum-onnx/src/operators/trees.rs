//! Ensembles of decision trees: all rows walk through all trees at once, one level at a time.

use std::collections::HashMap;

use rten_onnx::onnx::TensorProto;
use tectum::{Error, Result};
use tectum_graph::{BinaryOp, Comparison, IntegerOp, Node, Reduction};

use super::Family;
use super::linear_models::rows_of;
use super::scores::{Labels, Transform, two_of_one};
use crate::array::Array;
use crate::element::ElementType;
use crate::emit::{Call, Emit, Value, made};

pub(super) const FAMILY: Family = &[
    ("TreeEnsemble", tree_ensemble),
    ("TreeEnsembleClassifier", classifier),
    ("TreeEnsembleRegressor", regressor),
];

/// Levels that a tree may have: each adds operations.
const MAX_DEPTH: usize = 512;

/// A node that compares an element of the input.
#[derive(Debug, Clone, Copy)]
struct Branch {
    comparison: Comparison,
    feature: usize,
    value: f64,
    /// Places of what follows: a branch, or, from the number of branches on, a leaf.
    on_true: usize,
    on_false: usize,
    /// Whether a missing element, NaN, goes where the comparison is true.
    missing_is_true: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Aggregate {
    Sum,
    Average,
    Min,
    Max,
}

struct Ensemble {
    branches: Vec<Branch>,
    /// The number of each leaf's target and its weight.
    leaves: Vec<Vec<(usize, f64)>>,
    /// Places of roots.
    roots: Vec<usize>,
    targets: usize,
    aggregate: Aggregate,
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

fn place(number: i64, what: &str) -> Result<usize> {
    usize::try_from(number).map_err(|_| Error::data(format!("{what} {number}")))
}

/// Numbers as a list of floats, or as a tensor of another type.
fn numbers(
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

/// Attributes of the weights of leaves.
struct WeightNames {
    trees: &'static str,
    nodes: &'static str,
    ids: &'static str,
    weights: &'static str,
    tensor: &'static str,
}

impl Ensemble {
    /// As the operators of versions 1 and 3 write it: lists over all nodes of all trees.
    fn read(
        emit: &mut Emit<'_>,
        call: &Call<'_>,
        names: &WeightNames,
        targets: usize,
    ) -> Result<Self> {
        let attributes = &call.attributes;
        let trees = attributes.ints("nodes_treeids")?.unwrap_or_default();
        let count = trees.len();
        let (ids, features) = (
            list(call, "nodes_nodeids", count)?,
            list(call, "nodes_featureids", count)?,
        );
        let (on_true, on_false) = (
            list(call, "nodes_truenodeids", count)?,
            list(call, "nodes_falsenodeids", count)?,
        );
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
        // Branches first, then leaves.
        let is_leaf: Vec<bool> = modes.iter().map(|mode| mode == "LEAF").collect();
        let branches = is_leaf.iter().filter(|is_leaf| !**is_leaf).count();
        let mut next = [0, branches];
        let mut places = HashMap::new();
        for (index, is_leaf) in is_leaf.iter().enumerate() {
            let next = &mut next[usize::from(*is_leaf)];
            if places.insert((trees[index], ids[index]), *next).is_some() {
                return Err(Error::data(format!(
                    "tree {} has node {} twice",
                    trees[index], ids[index]
                )));
            }
            *next += 1;
        }
        let find = |tree: i64, id: i64| {
            let found = places.get(&(tree, id)).copied();
            found.ok_or_else(|| Error::data(format!("tree {tree} has no node {id}")))
        };
        let mut all = Vec::with_capacity(branches);
        let mut is_child = vec![false; count];
        for index in (0..count).filter(|index| !is_leaf[*index]) {
            let tree = trees[index];
            let branch = Branch {
                comparison: comparison(&modes[index])?,
                feature: place(features[index], "feature")?,
                value: values[index],
                on_true: find(tree, on_true[index])?,
                on_false: find(tree, on_false[index])?,
                missing_is_true: missing.as_ref().is_some_and(|flags| flags[index] != 0),
            };
            (is_child[branch.on_true], is_child[branch.on_false]) = (true, true);
            all.push(branch);
        }
        let mut roots: Vec<usize> = Vec::new();
        let mut seen = std::collections::HashSet::new();
        for index in 0..count {
            let at = find(trees[index], ids[index])?;
            if !is_child[at] {
                roots.push(at);
                if !seen.insert(trees[index]) {
                    return Err(Error::data(format!("tree {} has two roots", trees[index])));
                }
            }
        }
        let weights = numbers(emit, call, names.weights, names.tensor)?;
        let count = weights.len();
        let (trees, nodes, ids) = (
            list(call, names.trees, count)?,
            list(call, names.nodes, count)?,
            list(call, names.ids, count)?,
        );
        let mut leaves = vec![Vec::new(); next[1] - branches];
        for (index, weight) in weights.into_iter().enumerate() {
            let leaf = find(trees[index], nodes[index])?.checked_sub(branches);
            let leaf = leaf.ok_or_else(|| {
                Error::data(format!(
                    "a weight of node {}, which is no leaf",
                    nodes[index]
                ))
            })?;
            leaves[leaf].push((place(ids[index], "target")?, weight));
        }
        Ok(Self {
            branches: all,
            leaves,
            roots,
            targets,
            aggregate: Aggregate::Sum,
        })
    }

    /// The maximum number of branches from a root to a leaf.
    fn depth(&self) -> Result<usize> {
        // Depths below each branch; a branch that is being visited has none yet.
        let mut depths: Vec<Option<usize>> = vec![None; self.branches.len()];
        let mut is_open = vec![false; self.branches.len()];
        let below = |depths: &[Option<usize>], at: usize| match depths.get(at) {
            Some(depth) => *depth,
            None => Some(0),
        };
        for root in &self.roots {
            let mut stack = vec![*root];
            while let Some(&at) = stack.last() {
                let Some(branch) = self.branches.get(at) else {
                    stack.pop();
                    continue;
                };
                let next =
                    [branch.on_true, branch.on_false].map(|next| (next, below(&depths, next)));
                if let [(_, Some(a)), (_, Some(b))] = next {
                    depths[at] = Some(1 + a.max(b));
                    stack.pop();
                    continue;
                }
                if is_open[at] {
                    return Err(Error::data("a tree leads back to a node of its own"));
                }
                is_open[at] = true;
                stack.extend(
                    next.iter()
                        .filter(|(_, depth)| depth.is_none())
                        .map(|(at, _)| at),
                );
            }
        }
        let depth = self
            .roots
            .iter()
            .filter_map(|root| below(&depths, *root))
            .max();
        match depth.unwrap_or(0) {
            depth if depth <= MAX_DEPTH => Ok(depth),
            depth => Err(Error::unsupported(format!(
                "trees of {depth} levels; at most {MAX_DEPTH} are possible"
            ))),
        }
    }

    /// The aggregated weights of the leaves that rows reach, [rows, targets].
    fn scores(&self, emit: &mut Emit<'_>, x: &Value) -> Result<(Node, usize)> {
        let (x, rows, width) = rows_of(emit, x)?;
        self.check(width)?;
        let (branches, trees) = (self.branches.len(), self.roots.len());
        let walks = made(&[rows, trees])?;
        emit.spend(walks)?;
        let at: Vec<i32> = (0..walks)
            .map(|walk| self.roots[walk % trees] as i32)
            .collect();
        let mut at = emit.builder.integer_constant(&at, [walks])?;
        let depth = self.depth()?;
        if depth > 0 {
            let starts = (0..walks).map(|walk| (walk / trees * width) as i32);
            let starts: Vec<i32> = starts.collect();
            let starts = emit.builder.integer_constant(&starts, [walks])?;
            let elements = emit.builder.reshape(x, [rows * width, 1])?;
            let tables = Tables::of(emit, self)?;
            for _ in 0..depth {
                at = tables.next(emit, at, starts, elements)?;
            }
        }
        let first = emit.integer(-(branches as i32))?;
        let leaf = emit.builder.integer(IntegerOp::Add, at, Some(first))?;
        let leaf = emit.builder.reshape(leaf, [walks])?;
        let weights = self.weights(emit)?;
        let reached = emit.builder.gather(weights, leaf)?;
        let reached = emit.builder.reshape(reached, [rows, trees, self.targets])?;
        let reduction = match self.aggregate {
            Aggregate::Sum | Aggregate::Average => Reduction::Sum,
            Aggregate::Min => Reduction::Min,
            Aggregate::Max => Reduction::Max,
        };
        let mut scores = emit.builder.reduce_axes(reduction, reached, &[1])?;
        if self.aggregate == Aggregate::Average {
            scores = emit.with(BinaryOp::Div, scores, trees as f32)?;
        }
        let scores = emit.builder.reshape(scores, [rows, self.targets])?;
        Ok((scores, rows))
    }

    fn check(&self, width: usize) -> Result<()> {
        if let Some(branch) = self.branches.iter().find(|branch| branch.feature >= width) {
            return Err(Error::data(format!(
                "a node compares element {} of {width}",
                branch.feature
            )));
        }
        let count = self.branches.len() + self.leaves.len();
        if self.roots.is_empty() || self.leaves.is_empty() || count > i32::MAX as usize {
            return Err(Error::data(format!(
                "{} trees with {} leaves",
                self.roots.len(),
                self.leaves.len()
            )));
        }
        Ok(())
    }

    /// The weights of all leaves, [leaves, targets]. A target without a weight adds nothing.
    fn weights(&self, emit: &mut Emit<'_>) -> Result<Node> {
        let (nothing, dims) = (
            match self.aggregate {
                Aggregate::Sum | Aggregate::Average => 0.0,
                Aggregate::Min => f64::INFINITY,
                Aggregate::Max => f64::NEG_INFINITY,
            },
            [self.leaves.len(), self.targets],
        );
        let count = made(&dims)?;
        emit.spend(count)?;
        let mut data = vec![nothing; count];
        for (leaf, weights) in self.leaves.iter().enumerate() {
            for (target, weight) in weights {
                if *target >= self.targets {
                    return Err(Error::data(format!(
                        "a weight of target {target} of {}",
                        self.targets
                    )));
                }
                let slot = &mut data[leaf * self.targets + target];
                *slot = if slot.is_finite() {
                    *slot + weight
                } else {
                    *weight
                };
            }
        }
        let table: Value = Array::wide(ElementType::F32, &dims, data).into();
        emit.node(&table)
    }
}

/// What a step down the trees reads, by place: leaves lead to themselves.
struct Tables {
    features: Node,
    values: Node,
    on_true: Node,
    on_false: Node,
    /// The comparisons that occur; with more than one, a number for each place.
    comparisons: Vec<Comparison>,
    modes: Option<Node>,
    /// Whether missing elements go where the comparison is true, if some do.
    missing: Option<Node>,
}

impl Tables {
    fn of(emit: &mut Emit<'_>, all: &Ensemble) -> Result<Self> {
        let count = all.branches.len() + all.leaves.len();
        emit.list(&[count, 4])?;
        let mut integers = |of_branch: &dyn Fn(&Branch) -> usize, is_place: bool| -> Result<Node> {
            let leaves = (all.branches.len()..count).map(|at| if is_place { at as i32 } else { 0 });
            let branches = all.branches.iter().map(|branch| of_branch(branch) as i32);
            let data: Vec<i32> = branches.chain(leaves).collect();
            emit.builder.integer_constant(&data, [count, 1])
        };
        let mut comparisons: Vec<Comparison> = Vec::new();
        for branch in &all.branches {
            if !comparisons.contains(&branch.comparison) {
                comparisons.push(branch.comparison);
            }
        }
        let mode = |branch: &Branch| {
            let found = comparisons
                .iter()
                .position(|other| *other == branch.comparison);
            found.unwrap_or(0)
        };
        let (features, on_true, on_false) = (
            integers(&|branch| branch.feature, false)?,
            integers(&|branch| branch.on_true, true)?,
            integers(&|branch| branch.on_false, true)?,
        );
        let modes = if comparisons.len() > 1 {
            Some(integers(&mode, false)?)
        } else {
            None
        };
        let missing = if all.branches.iter().any(|branch| branch.missing_is_true) {
            Some(integers(
                &|branch| usize::from(branch.missing_is_true),
                false,
            )?)
        } else {
            None
        };
        let mut values: Vec<f64> = all.branches.iter().map(|branch| branch.value).collect();
        values.resize(count, 0.0);
        let values: Value = Array::wide(ElementType::F32, &[count, 1], values).into();
        Ok(Self {
            features,
            values: emit.node(&values)?,
            on_true,
            on_false,
            comparisons,
            modes,
            missing,
        })
    }

    /// The places [walks] one level below.
    fn next(&self, emit: &mut Emit<'_>, at: Node, starts: Node, elements: Node) -> Result<Node> {
        let walks = emit.dims(at)?[0];
        let feature = emit.builder.gather(self.features, at)?;
        let feature = emit.builder.reshape(feature, [walks])?;
        let element = emit
            .builder
            .integer(IntegerOp::Add, feature, Some(starts))?;
        let element = emit.builder.gather(elements, element)?;
        let value = emit.builder.gather(self.values, at)?;
        let mut is_true = None;
        for (number, comparison) in self.comparisons.iter().enumerate() {
            let compared = emit.builder.compare(*comparison, element, value)?;
            is_true = Some(match (is_true, self.modes) {
                (Some(others), Some(modes)) => {
                    let mode = emit.builder.gather(modes, at)?;
                    let number = emit.integer(number as i32)?;
                    let applies = emit.builder.compare(Comparison::Equal, mode, number)?;
                    emit.builder.select(applies, compared, others)?
                }
                _ => compared,
            });
        }
        let mut is_true = is_true.ok_or_else(|| Error::data("a tree without branches"))?;
        if let Some(missing) = self.missing {
            let goes = emit.builder.gather(missing, at)?;
            let is_nan = is_nan(emit, element)?;
            is_true = emit.builder.select(is_nan, goes, is_true)?;
        }
        let (on_true, on_false) = (
            emit.builder.gather(self.on_true, at)?,
            emit.builder.gather(self.on_false, at)?,
        );
        let next = emit.builder.select(is_true, on_true, on_false)?;
        emit.builder.reshape(next, [walks])
    }
}

/// Whether elements are missing: NaN is unequal to itself.
fn is_nan(emit: &mut Emit<'_>, x: Node) -> Result<Node> {
    emit.builder.compare(Comparison::NotEqual, x, x)
}

fn aggregate(name: &str) -> Result<Aggregate> {
    match name {
        "SUM" => Ok(Aggregate::Sum),
        "AVERAGE" => Ok(Aggregate::Average),
        "MIN" => Ok(Aggregate::Min),
        "MAX" => Ok(Aggregate::Max),
        other => Err(Error::data(format!("aggregate_function {other:?}"))),
    }
}

/// Adds numbers that the file states for all targets.
fn with_base(emit: &mut Emit<'_>, scores: Node, base: Vec<f64>, targets: usize) -> Result<Node> {
    if base.is_empty() {
        return Ok(scores);
    }
    if base.len() != targets && base.len() != 1 {
        return Err(Error::data(format!(
            "{} base values for {targets} targets",
            base.len()
        )));
    }
    let base: Value = Array::wide(ElementType::F32, &[1, base.len()], base).into();
    let base = emit.node(&base)?;
    emit.builder.add(scores, base)
}

const REGRESSOR: WeightNames = WeightNames {
    trees: "target_treeids",
    nodes: "target_nodeids",
    ids: "target_ids",
    weights: "target_weights",
    tensor: "target_weights_as_tensor",
};

fn regressor(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let targets = place(call.attributes.int_or("n_targets", 1)?, "n_targets")?;
    let mut ensemble = Ensemble::read(emit, call, &REGRESSOR, targets)?;
    ensemble.aggregate = aggregate(call.attributes.string_or("aggregate_function", "SUM")?)?;
    let transform = Transform::read(call)?;
    let base = numbers(emit, call, "base_values", "base_values_as_tensor")?;
    let (scores, rows) = ensemble.scores(emit, call.input(0)?)?;
    let scores = with_base(emit, scores, base, targets)?;
    let scores = transform.add(emit, scores)?;
    Ok(vec![emit.shaped(
        scores,
        ElementType::F32,
        &[rows, targets],
    )?])
}

const CLASSIFIER: WeightNames = WeightNames {
    trees: "class_treeids",
    nodes: "class_nodeids",
    ids: "class_ids",
    weights: "class_weights",
    tensor: "class_weights_as_tensor",
};

fn classifier(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let labels = Labels::read(call, "classlabels_int64s", "classlabels_strings")?;
    let classes = labels.len();
    let transform = Transform::read(call)?;
    let base = numbers(emit, call, "base_values", "base_values_as_tensor")?;
    let mut ensemble = Ensemble::read(emit, call, &CLASSIFIER, classes)?;
    let x = call.input(0)?;
    let weights = || ensemble.leaves.iter().flatten();
    let first = weights().next().map_or(0, |(class, _)| *class);
    let is_binary = classes == 2 && weights().all(|(class, _)| *class == first);
    if !is_binary {
        let (scores, rows) = ensemble.scores(emit, x)?;
        let scores = with_base(emit, scores, base, classes)?;
        let label = labels.of_greatest(emit, scores, rows)?;
        let scores = transform.add(emit, scores)?;
        let scores = emit.shaped(scores, ElementType::F32, &[rows, classes])?;
        return Ok(vec![label, scores]);
    }
    if base.len() > 1 || first != 0 && !base.is_empty() {
        return Err(Error::unsupported(
            "base values of two classes of which one alone has weights",
        ));
    }
    // One score of two classes: a probability, or the distance from a border at 0.
    let is_probability = weights().all(|(_, weight)| *weight >= 0.0);
    for (class, _) in ensemble.leaves.iter_mut().flatten() {
        *class = 0;
    }
    ensemble.targets = 1;
    let (score, rows) = ensemble.scores(emit, x)?;
    let score = with_base(emit, score, base, 1)?;
    let limit = if is_probability { 0.5 } else { 0.0 };
    let label = labels.of_binary(emit, score, limit, rows)?;
    let scores = match transform {
        // The weights are those of the second class as they stand.
        _ if first == 1 => {
            let zeros = emit.builder.scale(score, 0.0)?;
            let both = emit.builder.concat(&[zeros, score], 1)?;
            transform.add(emit, both)?
        }
        Transform::Logistic => {
            let both = two_of_one(emit, score, 0.0)?;
            transform.add(emit, both)?
        }
        _ => two_of_one(emit, score, if is_probability { 1.0 } else { 0.0 })?,
    };
    let scores = emit.shaped(scores, ElementType::F32, &[rows, 2])?;
    Ok(vec![label, scores])
}

/// Ensembles of version 5: lists over all branches, and over all leaves.
fn tree_ensemble(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let attributes = &call.attributes;
    let targets = place(attributes.int_or("n_targets", 1)?, "n_targets")?;
    let mut tensor = |name: &'static str| -> Result<Vec<f64>> {
        match attributes.tensor(name)? {
            Some(tensor) => Ok(emit.tensor(tensor)?.to_f64()),
            None => Ok(Vec::new()),
        }
    };
    let (splits, modes) = (tensor("nodes_splits")?, tensor("nodes_modes")?);
    let (weights, members) = (tensor("leaf_weights")?, tensor("membership_values")?);
    tensor("nodes_hitrates")?;
    let count = splits.len();
    let (features, missing) = (
        list(call, "nodes_featureids", count)?,
        attributes.ints("nodes_missing_value_tracks_true")?,
    );
    let (on_true, on_false) = (
        list(call, "nodes_truenodeids", count)?,
        list(call, "nodes_falsenodeids", count)?,
    );
    let (true_leaf, false_leaf) = (
        list(call, "nodes_trueleafs", count)?,
        list(call, "nodes_falseleafs", count)?,
    );
    let targets_of = list(call, "leaf_targetids", weights.len())?;
    let transform = match attributes.int_or("post_transform", 0)? {
        0 => "NONE",
        1 => "SOFTMAX",
        2 => "LOGISTIC",
        3 => "SOFTMAX_ZERO",
        4 => "PROBIT",
        _ => "unknown",
    };
    let transform = Transform::named(transform)?;
    let aggregate = match attributes.int_or("aggregate_function", 1)? {
        0 => Aggregate::Average,
        1 => Aggregate::Sum,
        2 => Aggregate::Min,
        3 => Aggregate::Max,
        other => return Err(Error::data(format!("aggregate_function {other}"))),
    };
    let mut sets = members.split(|member| member.is_nan());
    // A branch on a set becomes a chain of branches on its members, so places are not the file's.
    let (mut branches, mut firsts) = (Vec::new(), Vec::new());
    for index in 0..count {
        const MODES: [&str; 6] = [
            "BRANCH_LEQ",
            "BRANCH_LT",
            "BRANCH_GTE",
            "BRANCH_GT",
            "BRANCH_EQ",
            "BRANCH_NEQ",
        ];
        let mode = modes.get(index).copied().unwrap_or(f64::NAN);
        let (mode, values) = if mode == 6.0 {
            let set = sets.next().filter(|set| !set.is_empty());
            let set = set.ok_or_else(|| Error::data("a branch on a set has no members"))?;
            ("BRANCH_EQ", set.to_vec())
        } else {
            let known = MODES.get(mode as usize).filter(|_| mode >= 0.0);
            let known = known.ok_or_else(|| Error::data(format!("a node of mode {mode}")))?;
            (*known, vec![splits[index]])
        };
        firsts.push(branches.len());
        let missing = missing.as_ref().and_then(|flags| flags.get(index));
        for (at, value) in values.iter().enumerate() {
            branches.push(Branch {
                comparison: comparison(mode)?,
                feature: place(features[index], "feature")?,
                value: *value,
                on_true: index,
                // None but the last leads to the next of the chain.
                on_false: if at + 1 < values.len() {
                    branches.len() + 1
                } else {
                    usize::MAX
                },
                missing_is_true: missing.is_some_and(|flag| *flag != 0),
            });
        }
    }
    let total = branches.len();
    let target = |id: i64, is_leaf: i64| -> Result<usize> {
        let id = place(id, "node")?;
        let found = if is_leaf == 0 {
            firsts.get(id).copied()
        } else {
            Some(total + id).filter(|_| id < weights.len())
        };
        found.ok_or_else(|| Error::data(format!("there is no node or leaf {id}")))
    };
    for branch in &mut branches {
        let index = branch.on_true;
        branch.on_true = target(on_true[index], true_leaf[index])?;
        if branch.on_false == usize::MAX {
            branch.on_false = target(on_false[index], false_leaf[index])?;
        }
    }
    let roots = attributes.ints("tree_roots")?.unwrap_or_default();
    let roots = roots.into_iter().map(|root| target(root, 0));
    let leaves = targets_of
        .iter()
        .zip(&weights)
        .map(|(target, weight)| Ok(vec![(place(*target, "target")?, *weight)]));
    let ensemble = Ensemble {
        roots: roots.collect::<Result<Vec<_>>>()?,
        leaves: leaves.collect::<Result<Vec<_>>>()?,
        branches,
        targets,
        aggregate,
    };
    let x = call.input(0)?;
    let (scores, rows) = ensemble.scores(emit, x)?;
    let scores = transform.add(emit, scores)?;
    Ok(vec![emit.shaped(scores, x.element, &[rows, targets])?])
}
