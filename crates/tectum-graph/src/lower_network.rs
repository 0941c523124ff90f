//! Lowering of operations that move elements, normalise rows, or compute attention.

use tectum::{ALIGNED_ELEMENTS, AttentionSizes, DType, GemmEpilogue, Matrices, Result, Strided, View};

use super::lower::Lowering;
use super::{Factor, Node, Operation, Shape};

impl Lowering<'_> {
    /// The view of a value that needs no launch: a reshape, a slice of whole rows at an aligned offset, or contiguous
    /// parts.
    pub(super) fn alias(&self, operation: &Operation, shape: Shape) -> Option<View> {
        match operation {
            Operation::Reshape { x } => self.views.get(x).copied(),
            Operation::Slice { x, axis, start } => {
                let [outer, _, inner] = self.shape(*x).around(*axis);
                let first = start * inner;
                let is_bindable = outer == 1 && first.is_multiple_of(ALIGNED_ELEMENTS);
                is_bindable.then(|| self.views[x].part(first..first + shape.len()))
            }
            Operation::Concat { parts, axis } => {
                let [outer, ..] = shape.around(*axis);
                let mut views = parts.iter().map(|part| self.views.get(part).copied());
                let first = views.next()??;
                views.try_fold(first, |whole, part| whole.joined(part?)).filter(|_| outer == 1)
            }
            _ => None,
        }
    }

    /// Records the launches of an operation on sequences.
    pub(super) fn launch_network(&mut self, operation: &Operation, shape: Shape, y: View) -> Result<()> {
        match operation {
            Operation::LinearPanels { a, b, format, tail } => {
                let ([m, k], n) = (self.shape(*a).matrix(), shape.matrix()[1]);
                let (bias, residual) = (tail.bias.map(|node| self.views[&node]), tail.residual.map(|node| self.views[&node]));
                let tail = GemmEpilogue { bias, activation: tail.activation, residual };
                self.plan.gemm_panels(self.views[a], (self.views[b], *format), y, [m, k, n], tail)
            }
            Operation::Gather { table, indices } => {
                let faults = *self.faults.get_or_insert_with(|| self.plan.temp(DType::U32, 1));
                let cols = self.shape(*table).matrix()[1];
                self.plan.gather(self.views[table], self.views[indices], y, faults, cols)
            }
            Operation::Permute { x, order } => {
                let (strides, sizes) = (self.shape(*x).strides(), self.shape(*x).fixed());
                let axes: Vec<Strided> = order.iter().map(|&axis| Strided { size: sizes[axis], stride: strides[axis] }).collect();
                self.plan.copy_strided(self.views[x], 0, &axes, y)
            }
            Operation::Slice { x, axis, start } => {
                let [outer, len, inner] = self.shape(*x).around(*axis);
                let axes = [Strided { size: outer, stride: len * inner }, Strided { size: y.len() / outer, stride: 1 }];
                self.plan.copy_strided(self.views[x], start * inner, &axes, y)
            }
            Operation::Concat { parts, axis } => self.concat(parts, *axis, y),
            Operation::Softmax { x } => {
                let [rows, cols] = self.shape(*x).matrix();
                self.plan.softmax(self.views[x], y, rows, cols, 1.0)
            }
            Operation::LayerNorm { x, gain, bias, epsilon } => self.plan.layer_norm(self.views[x], [self.views[gain], self.views[bias]], y, *epsilon),
            Operation::RmsNorm { x, gain, epsilon } => self.plan.rms_norm(self.views[x], self.views[gain], y, *epsilon),
            Operation::Attention { q, k, v, mask, heads } => {
                let [q_sizes, k_sizes] = [q.node, k.node].map(|node| self.shape(node).fixed());
                let columns = [q, k, v].map(|operand| (self.views[&operand.node], self.shape(operand.node).matrix()[1], operand.start));
                let sizes =
                    AttentionSizes { batch: q_sizes[0], queries: q_sizes[1], keys: k_sizes[1], heads: heads.count, kv_heads: heads.kv, width: heads.width };
                let mask = mask.map(|mask| self.views[&mask]);
                self.plan.attention(columns, mask, y, sizes, heads.scale, heads.causal)
            }
            Operation::AttentionCached { q, k, v, caches, formats, spans, heads } => {
                let [q_sizes, cache_sizes] = [q.node, caches[0]].map(|node| self.shape(node).fixed());
                let columns = [q, k, v].map(|operand| (self.views[&operand.node], self.shape(operand.node).matrix()[1], operand.start));
                let sizes =
                    AttentionSizes { batch: q_sizes[0], queries: q_sizes[1], keys: cache_sizes[1], heads: heads.count, kv_heads: heads.kv, width: heads.width };
                let [k_format, v_format] = formats.each();
                let caches = [(self.views[&caches[0]], k_format), (self.views[&caches[1]], v_format)];
                self.plan.attention_cached(columns, caches, self.views[spans], y, sizes, heads.scale)
            }
            Operation::Rotary { x, positions, heads, base } => {
                let width = self.shape(*x).matrix()[1] / heads;
                self.plan.rotary(self.views[x], self.views[positions], y, width, *heads, *base)
            }
            _ => unreachable!("invariant: the caller records the others"),
        }
    }

    /// Pairwise, from the first on.
    fn concat(&mut self, parts: &[Node], axis: usize, y: View) -> Result<()> {
        let outer = self.shape(parts[0]).around(axis)[0];
        let mut whole = self.views[&parts[0]];
        for (index, part) in parts.iter().enumerate().skip(1) {
            let part = self.views[part];
            let to = if index + 1 == parts.len() { y } else { self.plan.temp(DType::F32, whole.len() + part.len()) };
            self.plan.concat(whole, part, to, outer)?;
            whole = to;
        }
        Ok(())
    }

    /// The axis is moved last, then summed over.
    pub(super) fn sum_axis(&mut self, x: Node, axis: usize, y: View) -> Result<()> {
        let [outer, count, inner] = self.shape(x).around(axis);
        let turned = self.plan.temp(DType::F32, outer * count * inner);
        self.plan.transpose(self.views[&x], turned, [outer, count, inner])?;
        self.plan.sum(turned, y, outer * inner, count)
    }

    /// One product for each matrix of a batch.
    pub(super) fn products(&mut self, a: Factor, b: Factor, y: View) -> Result<()> {
        let operand = |factor: Factor| {
            let sizes = self.shape(factor.node).fixed();
            let [rows, cols] = [sizes[sizes.len() - 2], sizes[sizes.len() - 1]];
            let matrices = Matrices::new(self.views[&factor.node], sizes[..sizes.len() - 2].iter().product(), rows, cols);
            if factor.transposed { matrices.transpose() } else { matrices }
        };
        let (a, b) = (operand(a), operand(b));
        self.plan.gemm_batched(a, b, y)
    }
}
