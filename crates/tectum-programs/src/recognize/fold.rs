//! A value as the result of a chain of one operation: of a loop, an unrolled run, or both.

use super::Refusal;
use super::affine::{Affine, Extents, Var};
use super::cover::Results;
use super::graph::{Graph, Id, Node};
use super::shared::match_block_reduction;
use super::shared_cells::BlockReduction;
use crate::{BinaryOp, Register, Type};

/// `init ∘ term ∘ term ∘ …` over some variables.
pub struct Fold {
    pub instruction: usize,
    pub op: BinaryOp,
    pub ty: Type,
    /// The term, over the results' order and these variables.
    pub term: Id,
    pub over: Vec<(Var, u64)>,
    pub extents: Extents,
    pub graph: Graph,
    /// The lanes whose parts the block combined.
    pub lanes: Option<u64>,
}

/// A register of a loop.
type Marker = (u32, Register);

/// The chain of the only result.
pub fn fold(results: &mut Results) -> Result<Fold, Refusal> {
    let [output] = results.outputs.as_slice() else {
        return Err(refusal(None, "the launch has several results"));
    };
    let instruction = output.instruction;
    let refuse = |reason: &str| refusal(Some(instruction), reason);
    let mut graph = results.graph.clone();
    let mut extents = results.extents.clone();
    let mut over = Vec::new();
    let mut chain = Chain {
        op: BinaryOp::Add,
        ty: output.ty,
        terms: Vec::new(),
    };
    let met: Option<BlockReduction> =
        match_block_reduction(&mut graph, output.value, &results.parts, &extents)
            .transpose()
            .map_err(|reason| refuse(&reason))?;
    let value = met.map_or(output.value, |met| met.part.value);
    let is_strided = |id: &Id| matches!(graph.node(*id), Node::Fold { turn, .. } if results.turns.get(turn).is_some_and(|turns| turns.strided));
    if graph
        .reachable([value])
        .iter()
        .any(|id| is_strided(id) && (met.is_none() || *id != value))
    {
        return Err(refuse("each lane keeps its own part of the chain"));
    }
    let shares_turns = is_strided(&value);
    let init = match unrolled(results, &graph, value, &mut over) {
        Some((init, end, marker)) => {
            let rest = chain.peel(&mut graph, end, Some(marker), &extents);
            if chain.terms.is_empty() || rest.is_some() {
                return Err(refuse(
                    "the value added by an iteration of the loop is not one chain of an operation",
                ));
            }
            init
        }
        None if met.is_some() => {
            chain.terms.push(value);
            None
        }
        None => {
            if let Some(rest) = chain.peel(&mut graph, output.value, None, &extents) {
                chain.terms.push(rest);
            }
            chain.terms.reverse();
            let is_constant = |id: &Id| {
                matches!(graph.node(*id), Node::Float { .. })
                    || graph
                        .form(*id)
                        .is_some_and(|form| form.as_constant().is_some())
            };
            let first = chain.terms.first().copied().filter(is_constant);
            if first.is_some() {
                chain.terms.remove(0);
            }
            first
        }
    };
    if let Some(BlockReduction { op, part }) = met {
        if over.is_empty() {
            chain.op = op;
        }
        if chain.op != op || !is_chained(op) {
            return Err(refuse(
                "the block combines the lanes' parts by another operation than the lanes",
            ));
        }
        if !shares_turns {
            extents.insert(Var::Lane, part.lanes);
            over.push((Var::Lane, part.lanes));
        }
    }
    if chain.terms.len() < 2 && over.is_empty() {
        return Err(refuse(
            "the result is not one operation repeated over terms",
        ));
    }
    if !over.is_empty() {
        chain.terms.reverse();
    }
    if chain.terms.len() > 1
        && extents
            .insert(Var::Run, chain.terms.len() as u64)
            .is_some_and(|run| run > 1)
    {
        return Err(refuse(
            "both the results and the terms of each are written out without a loop",
        ));
    }
    let mut term = graph
        .template(&chain.terms, &extents)
        .ok_or_else(|| refuse("the terms of the chain do not have the same form"))?;
    if chain.terms.len() > 1 {
        over.push((Var::Run, chain.terms.len() as u64));
    }
    if let Some(init) = init.filter(|init| !is_identity_element(&graph, *init, chain.op, chain.ty))
    {
        // The first element may be processed before the loop.
        let (&[(var, turns)], None) = (over.as_slice(), met) else {
            return Err(refuse("the chain does not begin with its neutral element"));
        };
        if graph.substitute(term, var, &Affine::constant(-1), &extents) != init {
            return Err(refuse(
                "the chain begins with neither its neutral element nor the element before the loop's first",
            ));
        }
        term = graph.substitute(
            term,
            var,
            &Affine::of(var).add(&Affine::constant(-1)),
            &extents,
        );
        over[0].1 = turns + 1;
        extents.insert(var, turns + 1);
    }
    Ok(Fold {
        instruction,
        op: chain.op,
        ty: chain.ty,
        term,
        over,
        extents,
        graph,
        lanes: met.map(|met| met.part.lanes),
    })
}

fn refusal(instruction: Option<usize>, reason: &str) -> Refusal {
    Refusal {
        instruction,
        reason: reason.to_owned(),
    }
}

/// Walks the loops that produce a value; returns its initial value, and its value after the
/// innermost iteration.
fn unrolled(
    results: &Results,
    graph: &Graph,
    value: Id,
    over: &mut Vec<(Var, u64)>,
) -> Option<(Option<Id>, Id, Marker)> {
    let turn_of = |id: Id| {
        if let Node::Fold { turn, register, .. } = *graph.node(id) {
            Some((turn, register))
        } else {
            None
        }
    };
    let carried = |(turn, register): Marker| {
        results
            .turns
            .get(&turn)
            .and_then(|turns| Some((turns.extent, *turns.carried.get(&register)?)))
    };
    let mut marker = turn_of(value)?;
    let (extent, (init, mut end)) = carried(marker)?;
    let is_strided = results
        .turns
        .get(&marker.0)
        .is_some_and(|turns| turns.strided);
    over.push((
        if is_strided {
            Var::Strided(marker.0)
        } else {
            Var::Turn(marker.0)
        },
        extent,
    ));
    while let Some(inner) = turn_of(end) {
        let (extent, (begin, last)) = carried(inner)?;
        if !begin.is_some_and(|begin| is_marker(graph, begin, marker)) {
            break;
        }
        over.push((Var::Turn(inner.0), extent));
        (marker, end) = (inner, last);
    }
    Some((Some(init?), end, marker))
}

fn is_marker(graph: &Graph, id: Id, (turn, register): Marker) -> bool {
    match graph.node(id) {
        Node::Carried {
            turn: of,
            register: held,
            ..
        } => (*of, *held) == (turn, register),
        Node::Integer { form, .. } => form.is_var(Var::Carried(turn, register)),
        _ => false,
    }
}

struct Chain {
    op: BinaryOp,
    ty: Type,
    /// Last one first.
    terms: Vec<Id>,
}

impl Chain {
    /// Removes the terms from a value; returns the rest, or `None` if that is the marker.
    fn peel(
        &mut self,
        graph: &mut Graph,
        value: Id,
        marker: Option<Marker>,
        extents: &Extents,
    ) -> Option<Id> {
        let mut rest = value;
        let mut op = None;
        loop {
            if marker.is_some_and(|marker| is_marker(graph, rest, marker)) {
                return None;
            }
            let (this, ty, term, next) = match *graph.node(rest) {
                Node::Binary { op, ty, a, b } if is_chained(op) => {
                    let left =
                        self.leads(graph, op, a, marker) || !self.leads(graph, op, b, marker);
                    if left { (op, ty, b, a) } else { (op, ty, a, b) }
                }
                Node::Ternary { ty, a, b, c, .. } => (
                    BinaryOp::Add,
                    ty,
                    graph.binary(BinaryOp::Mul, ty, a, b, extents),
                    c,
                ),
                _ => return Some(rest),
            };
            if op.is_some_and(|op| op != this) {
                return Some(rest);
            }
            op = Some(this);
            (self.op, self.ty) = (this, ty);
            self.terms.push(term);
            rest = next;
        }
    }

    /// Whether an operand continues the chain.
    fn leads(&self, graph: &Graph, op: BinaryOp, operand: Id, marker: Option<Marker>) -> bool {
        match graph.node(operand) {
            Node::Binary { op: other, .. } => *other == op,
            Node::Ternary { .. } => op == BinaryOp::Add,
            _ => marker.is_some_and(|marker| is_marker(graph, operand, marker)),
        }
    }
}

/// Operations whose order of operands does not matter, except for the rounding of floats.
fn is_chained(op: BinaryOp) -> bool {
    matches!(
        op,
        BinaryOp::Add | BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max
    )
}

/// Whether a value is neutral for an operation.
fn is_identity_element(graph: &Graph, id: Id, op: BinaryOp, ty: Type) -> bool {
    match graph.node(id) {
        // A zero of either sign.
        Node::Float { bits, .. } if op == BinaryOp::Add => bits << (64 - ty.bits()) << 1 == 0,
        Node::Float { bits, .. } => *bits == identity_element(op, ty),
        Node::Integer { form, .. } => {
            form.as_constant() == Some(i128::from(identity_element(op, ty)))
        }
        _ => false,
    }
}

/// The bits of the neutral value.
pub fn identity_element(op: BinaryOp, ty: Type) -> u64 {
    let sign = 1u64 << (ty.bits() - 1);
    let float = |value: f64| crate::scalar::convert(ty, Type::F64, value.to_bits());
    match op {
        BinaryOp::Mul if ty.is_float() => float(1.0),
        BinaryOp::Max if ty.is_float() => float(f64::NEG_INFINITY),
        BinaryOp::Min if ty.is_float() => float(f64::INFINITY),
        BinaryOp::Mul => 1,
        BinaryOp::Max if ty.is_signed() => sign,
        BinaryOp::Min if ty.is_signed() => sign - 1,
        BinaryOp::Min => ty.mask(),
        _ => 0,
    }
}
