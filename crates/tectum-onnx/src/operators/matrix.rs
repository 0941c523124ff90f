//! The product of two values as a batch of matrices.

use tectum::{Error, Result};

use crate::emit::{Emit, Value, joint, shape};

/// The product of values of any rank: the dimensions before the last two repeat to each other.
pub(super) fn product(emit: &mut Emit<'_>, a: &Value, b: &Value) -> Result<Value> {
    let fault = || Error::data(format!("{:?} times {:?}", a.dims, b.dims));
    let (a_dims, b_dims) = match (a.rank(), b.rank()) {
        (0, _) | (_, 0) => return Err(fault()),
        (1, 1) => (vec![1, a.dims[0]], vec![b.dims[0], 1]),
        (1, _) => (vec![1, a.dims[0]], b.dims.clone()),
        (_, 1) => (a.dims.clone(), vec![b.dims[0], 1]),
        _ => (a.dims.clone(), b.dims.clone()),
    };
    let ((before_a, m, k), (before_b, k_b, n)) = (split(&a_dims), split(&b_dims));
    if k != k_b {
        return Err(fault());
    }
    let before = joint([before_a, before_b])?;
    let mut dims = before.clone();
    dims.extend((a.rank() > 1).then_some(m));
    dims.extend((b.rank() > 1).then_some(n));
    let (a_node, b_node) = (emit.node(a)?, emit.node(b)?);
    let node = if before_b.is_empty() {
        let (a, b) = (
            emit.builder.reshape(a_node, shape(&a_dims)?)?,
            emit.builder.reshape(b_node, [k, n])?,
        );
        emit.builder.matmul(a, b)?
    } else {
        let count = before.iter().product();
        let mut batch = |node, own: &[usize], sizes: [usize; 2]| {
            let node = emit
                .builder
                .reshape(node, shape(&[own, &sizes].concat())?)?;
            let node = emit
                .builder
                .broadcast(node, shape(&[&before[..], &sizes].concat())?)?;
            emit.builder.reshape(node, [count, sizes[0], sizes[1]])
        };
        let (a, b) = (
            batch(a_node, before_a, [m, k])?,
            batch(b_node, before_b, [k, n])?,
        );
        emit.builder.matmul(a, b)?
    };
    emit.shaped(node, a.element, &dims)
}

fn split(dims: &[usize]) -> (&[usize], usize, usize) {
    let (before, last) = dims.split_at(dims.len() - 2);
    (before, last[0], last[1])
}
