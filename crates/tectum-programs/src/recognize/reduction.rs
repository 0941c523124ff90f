//! Chains over a whole buffer as the core's tree reductions.

use super::affine::{Var, count, radix};
use super::cover::Results;
use super::fold::Fold;
use super::graph::Node;
use super::{Obligation, Refusal, Setting, Shape};
use crate::{BinaryOp, ReduceOp, Type};

/// The reduction that a chain represents.
pub fn reduction(
    results: &Results,
    fold: &Fold,
    setting: &Setting<'_>,
) -> Result<(Shape, Vec<Obligation>), Refusal> {
    let refuse = |reason: String| Refusal {
        instruction: Some(fold.instruction),
        reason,
    };
    let Node::Load { ty, buffer, at } = fold.graph.node(fold.term) else {
        return Err(refuse("the terms are not one load each".to_owned()));
    };
    let op = match fold.op {
        BinaryOp::Add => ReduceOp::Add,
        BinaryOp::Min => ReduceOp::Min,
        BinaryOp::Max => ReduceOp::Max,
        _ => {
            return Err(refuse(format!(
                "there is no built-in reduction by {}",
                fold.op
            )));
        }
    };
    if !matches!(ty, Type::F32 | Type::F64) {
        return Err(refuse(format!("there is no built-in reduction of {ty}")));
    } else if op == ReduceOp::Add && !setting.reassociate {
        return Err(refuse(
            "the order of the additions would change, which is not allowed unless requested"
                .to_owned(),
        ));
    } else if results.stores(*buffer) {
        return Err(refuse(
            "the program also writes the buffer that it reduces".to_owned(),
        ));
    }
    let form = at.reduced(&fold.extents);
    let order = radix(&form, i128::from(ty.bytes()), &fold.extents).filter(|_| form.constant == 0);
    let order =
        order.ok_or_else(|| refuse(format!("the loads at {form} leave gaps or overlap")))?;
    let size = setting.sizes[buffer.0 as usize];
    let covered = count(&order).saturating_mul(ty.bytes());
    let (rows, cols) = (results.elements(), count(&fold.over));
    if covered != size || rows.checked_mul(cols) != Some(count(&order)) {
        return Err(refuse(format!(
            "the loads at {form} cover {covered} of {size} bytes"
        )));
    }
    let is_reduced = |var: &Var| fold.over.iter().any(|(other, _)| other == var);
    let kept: Vec<(Var, u64)> = order
        .iter()
        .copied()
        .filter(|(var, _)| !is_reduced(var))
        .collect();
    let reduced_first = order
        .iter()
        .take(fold.over.len())
        .all(|(var, _)| is_reduced(var));
    let reduced_last = order
        .iter()
        .rev()
        .take(fold.over.len())
        .all(|(var, _)| is_reduced(var));
    if kept != results.order || !(reduced_first || reduced_last) {
        return Err(refuse(format!(
            "the loads at {form} are neither the rows nor the columns of a matrix"
        )));
    }
    let columns = !reduced_first;
    if columns && op != ReduceOp::Add {
        return Err(refuse(format!(
            "there is no built-in {} over columns",
            op.name()
        )));
    }
    let mut proofs = vec![
        Obligation { claim: "the chain is over the whole of its buffer", proof: format!("the loads at {form} are its {} elements, each once", count(&order)) },
        Obligation {
            claim: "the chain is not observed before its end",
            proof: "an iteration uses the carried value only in the chain, and one store uses the result".to_owned(),
        },
    ];
    let order = if op == ReduceOp::Add {
        "another order of the additions was allowed"
    } else {
        "minimum and maximum do not depend on it"
    };
    proofs.push(Obligation {
        claim: "the order does not matter",
        proof: order.to_owned(),
    });
    let to = results.outputs[0].buffer;
    Ok((
        Shape::Reduction {
            op,
            ty: *ty,
            rows,
            cols,
            columns,
            from: *buffer,
            to,
        },
        proofs,
    ))
}
