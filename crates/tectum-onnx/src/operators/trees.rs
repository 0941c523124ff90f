//! Ensembles of decision trees: all rows walk through all trees at once, one level at a time.

use tectum::{Error, Result};
use tectum_graph::{BinaryOp, Comparison, IntegerOp, Node, Reduction};

use super::Family;
use super::linear_models::rows_of;
use super::scores::{Labels, Transform, two_of_one};
use super::tree_ensemble::{Aggregate, Branch, Ensemble, WeightNames, aggregate, numbers, place};
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

impl Ensemble {
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

/// Ensembles of version 5.
fn tree_ensemble(emit: &mut Emit<'_>, call: &Call<'_>) -> Result<Vec<Value>> {
    let targets = place(call.attributes.int_or("n_targets", 1)?, "n_targets")?;
    let transform = match call.attributes.int_or("post_transform", 0)? {
        0 => "NONE",
        1 => "SOFTMAX",
        2 => "LOGISTIC",
        3 => "SOFTMAX_ZERO",
        4 => "PROBIT",
        other => return Err(Error::data(format!("post_transform {other}"))),
    };
    let transform = Transform::named(transform)?;
    let ensemble = Ensemble::read_joined(emit, call, targets)?;
    let x = call.input(0)?;
    let (scores, rows) = ensemble.scores(emit, x)?;
    let scores = transform.add(emit, scores)?;
    Ok(vec![emit.shaped(scores, x.element, &[rows, targets])?])
}
