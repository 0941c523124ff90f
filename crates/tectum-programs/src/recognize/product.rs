//! Chains of products of two loads as the core's matrix products.

use super::affine::{Affine, Extents, Var, count, radix};
use super::cover::Results;
use super::fold::Fold;
use super::graph::Node;
use super::{Obligation, Refusal, Setting, Shape};
use crate::{BinaryOp, BufferIndex, Type};

type Order = Vec<(Var, u64)>;

/// The product that a chain represents.
pub fn product(
    results: &Results,
    fold: &Fold,
    setting: &Setting<'_>,
) -> Result<(Shape, Vec<Obligation>), Refusal> {
    let refuse = |reason: String| Refusal {
        instruction: Some(fold.instruction),
        reason,
    };
    let factors = factors(fold)
        .ok_or_else(|| refuse("the terms are not products of two loads".to_owned()))?;
    if fold.op != BinaryOp::Add {
        return Err(refuse("the products are not added".to_owned()));
    } else if !matches!(fold.ty, Type::F32 | Type::F64) {
        return Err(refuse(format!(
            "there is no built-in product of matrices of {}",
            fold.ty
        )));
    } else if !setting.reassociate {
        return Err(refuse(
            "the order of the additions would change, which is not allowed unless requested"
                .to_owned(),
        ));
    } else if factors.iter().any(|(buffer, _)| results.stores(*buffer)) {
        return Err(refuse("the program also writes a factor".to_owned()));
    }
    let [first, second] = factors.map(|(buffer, at)| Factor {
        buffer,
        at: at.reduced(&fold.extents),
    });
    let placed = Placed::of(results, fold, setting);
    let ways = [
        placed.product(&first, &second),
        placed.product(&second, &first),
    ];
    let is_matvec = |shape: &Shape| matches!(shape, Shape::Matvec { .. });
    let found = ways
        .iter()
        .flatten()
        .find(|shape| is_matvec(shape))
        .or(ways.iter().flatten().next())
        .cloned();
    let shape = found.ok_or_else(|| {
        refuse(format!(
            "the loads at {} and {} are not those of the rows and columns of two whole matrices",
            first.at, second.at
        ))
    })?;
    let proofs = vec![
        Obligation {
            claim: "the factors are whole matrices",
            proof: format!("the loads at {} and {} are their elements in the order of their rows or columns", first.at, second.at),
        },
        Obligation {
            claim: "the chain is not observed before its end",
            proof: "an iteration uses the carried value only in the chain, and one store uses the result".to_owned(),
        },
        Obligation { claim: "the order does not matter", proof: "another order of the additions was allowed".to_owned() },
    ];
    Ok((shape, proofs))
}

fn factors(fold: &Fold) -> Option<[(BufferIndex, Affine); 2]> {
    let Node::Binary {
        op: BinaryOp::Mul,
        a,
        b,
        ..
    } = fold.graph.node(fold.term)
    else {
        return None;
    };
    let load = |id| {
        if let Node::Load { buffer, at, .. } = fold.graph.node(id) {
            Some((*buffer, at.clone()))
        } else {
            None
        }
    };
    Some([load(*a)?, load(*b)?])
}

struct Factor {
    buffer: BufferIndex,
    at: Affine,
}

/// Context for the analysis of the factors.
struct Placed<'a> {
    results: &'a Results,
    fold: &'a Fold,
    setting: &'a Setting<'a>,
    extents: &'a Extents,
    width: i128,
}

impl<'a> Placed<'a> {
    fn of(results: &'a Results, fold: &'a Fold, setting: &'a Setting<'a>) -> Self {
        Self {
            results,
            fold,
            setting,
            extents: &fold.extents,
            width: i128::from(fold.ty.bytes()),
        }
    }

    /// The product with `a` as left factor, whose rows are those of the result.
    fn product(&self, a: &Factor, b: &Factor) -> Option<Shape> {
        let is_inner = |var: &Var| self.fold.over.iter().any(|(other, _)| other == var);
        let order = &self.results.order;
        // The slow part of the result's order counts rows, which only the left factor depends on;
        // the fast part counts columns.
        let rows_from = order
            .iter()
            .position(|(var, _)| a.at.factor(*var) != 0)
            .unwrap_or(order.len());
        let (columns, rows) = order.split_at(rows_from);
        let (m, n, k) = (count(rows), count(columns), count(&self.fold.over));
        let inner: Order = radix(
            &only(&a.at, is_inner),
            self.least(a, is_inner)?,
            self.extents,
        )?;
        if count(&inner) != k || a.at.constant != 0 || b.at.constant != 0 {
            return None;
        }
        let a_transposed = self.matrix(a, rows, &inner, [m, k])?;
        let b_transposed = self.matrix(b, &inner, columns, [k, n])?;
        let ty = self.fold.ty;
        let y = self.results.outputs[0].buffer;
        Some(if n == 1 && !a_transposed {
            Shape::Matvec {
                m,
                k,
                ty,
                a: a.buffer,
                x: b.buffer,
                y,
            }
        } else {
            Shape::Gemm {
                sizes: [m, n, k],
                ty,
                a: (a.buffer, a_transposed),
                b: (b.buffer, b_transposed),
                y,
            }
        })
    }

    /// The minimum step of some variables.
    fn least(&self, factor: &Factor, of: impl Fn(&Var) -> bool) -> Option<i128> {
        factor
            .at
            .terms()
            .iter()
            .filter(|(var, _)| of(var))
            .map(|(_, step)| *step)
            .min()
    }

    /// Whether a factor is stored as its transpose: it must be a whole matrix whose rows and
    /// columns these variables count.
    fn matrix(
        &self,
        factor: &Factor,
        rows: &[(Var, u64)],
        columns: &[(Var, u64)],
        [m, n]: [u64; 2],
    ) -> Option<bool> {
        let whole = [columns, rows].concat();
        let turned = [rows, columns].concat();
        let size = self.setting.sizes[factor.buffer.0 as usize];
        let order = radix(&factor.at, self.width, self.extents)?;
        let is_whole = m.checked_mul(n)?.checked_mul(self.fold.ty.bytes())? == size;
        match is_whole {
            true if order == whole => Some(false),
            true if order == turned => Some(true),
            _ => None,
        }
    }
}

/// The part of a form in some variables.
fn only(form: &Affine, keeps: impl Fn(&Var) -> bool) -> Affine {
    form.terms()
        .iter()
        .filter(|(var, _)| keeps(var))
        .fold(Affine::default(), |sum, (var, factor)| {
            sum.plus(&Affine::of(*var), *factor)
        })
}
