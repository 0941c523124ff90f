//! Recording fill, copy and the elementwise families.

use super::record_move::words_each;
use super::{PlanBuilder, Strided, View};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::kernel::elementwise::{self, Arity, Binary, OpKernel, Unary};
use crate::kernel::groups_for;
use crate::kernel::transfer::{self, Copy, Fill};

impl PlanBuilder {
    /// Records `y[i] = value` for 32-bit words of any type, given by their bits; an f64 is two words.
    ///
    /// # Errors
    /// As [`PlanBuilder::launch`].
    pub fn fill(&mut self, y: View, bits: u32) -> Result<()> {
        if y.is_empty() {
            return Ok(());
        }
        let words = y.reinterpret(DType::U32);
        self.launch(&transfer::FILL, Fill { y: words, n: words.len(), word: bits }, groups_for(words.len()))
    }

    /// Records `y[i] = value` for f32 or f64.
    pub(super) fn fill_number(&mut self, y: View, value: f64) -> Result<()> {
        match y.dtype() {
            DType::F32 => self.fill(y, (value as f32).to_bits()),
            DType::F64 => self.whole(|plan| {
                let one = plan.constant("value", &[value]);
                plan.copy_strided(one, 0, &[Strided { size: y.len(), stride: 0 }], y)
            }),
            other => Err(Error::invalid(format!("{} elements of {} are not numbers of f32 or f64", y.len(), other.wgsl()))),
        }
    }

    /// Records `y[i] = x[i]`, bit by bit, for types of one width.
    ///
    /// # Errors
    /// `Invalid` if the lengths or the widths of the types differ; as [`PlanBuilder::launch`].
    pub fn copy(&mut self, x: View, y: View) -> Result<()> {
        words_each("copy", &[x, y])?;
        same_len("copy", x, y)?;
        if y.is_empty() {
            return Ok(());
        }
        let [x, y] = [x, y].map(|view| view.reinterpret(DType::U32));
        self.launch(&transfer::COPY, Copy { x, y, n: y.len() }, groups_for(y.len()))
    }

    /// Records `y[i] = op(x[i])` for an operation of the op table (`abs`, `neg`, `sqrt`, `exp`, `log`, `sigmoid`, `tanh`,
    /// `relu`, `gelu`, `gelu_erf`, `silu`, `erf`, `sin`, `cos`, `exp2`, `log2`, `floor`, `ceil`, `round` (to even), `square`,
    /// `reciprocal`, `rsqrt`), on f32 or f64 as `x` is.
    ///
    /// # Errors
    /// `Invalid` for another name or lengths that differ; as [`PlanBuilder::launch`].
    pub fn unary(&mut self, op: &str, x: View, y: View) -> Result<()> {
        let Some((_, OpKernel::Unary(kernel))) = elementwise::find(op, x.dtype()) else { return Err(unknown(op, Arity::Unary)) };
        same_len(op, x, y)?;
        if y.is_empty() {
            return Ok(());
        }
        self.launch(kernel, Unary { x0: x, y, n: y.len() }, groups_for(y.len()))
    }

    /// Records `y[i] = op(a[i], b[i mod len(b)])` for an operation of the op table (`add`, `sub`, `mul`, `div`, `min`,
    /// `max`, `tanh_grad`, `sigmoid_grad`, `relu_grad`): `b` may be a scalar or a row that repeats. On f32 or f64 as `a` is.
    ///
    /// # Errors
    /// `Invalid` for another name, `a` and `y` of different lengths, or a `b` whose length does not divide theirs; as
    /// [`PlanBuilder::launch`].
    pub fn binary(&mut self, op: &str, a: View, b: View, y: View) -> Result<()> {
        let Some((_, OpKernel::Binary(kernel))) = elementwise::find(op, a.dtype()) else { return Err(unknown(op, Arity::Binary)) };
        same_len(op, a, y)?;
        if y.is_empty() {
            return Ok(());
        }
        if b.is_empty() || !a.len().is_multiple_of(b.len()) {
            return Err(Error::invalid(format!("{op}: b has {} elements, which does not divide a's {}", b.len(), a.len())));
        }
        self.launch(kernel, Binary { x0: a, x1: b, y, n: y.len(), period: b.len() }, groups_for(y.len()))
    }
}

fn unknown(op: &str, arity: Arity) -> Error {
    let names: Vec<_> = elementwise::OPS.iter().filter(|row| row.arity == arity).map(|row| row.name).collect();
    Error::invalid(format!("{op}: no such {arity:?} operation; there are {}", names.join(", ")))
}

fn same_len(op: &str, x: View, y: View) -> Result<()> {
    if x.len() == y.len() { Ok(()) } else { Err(Error::invalid(format!("{op}: lengths {} and {} differ", x.len(), y.len()))) }
}
