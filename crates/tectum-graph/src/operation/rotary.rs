//! Rotary positions: rotations of pairs of elements.

use super::{
    Adjoints, Call, CallText, Dim, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, Values,
    View,
};

/// In each head, pairs of columns half a head apart are rotated by their position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rotary {
    pub x: Node,
    pub positions: Node,
    pub heads: usize,
    pub base: f32,
}

impl Op for Rotary {
    fn arguments(&self, operands: String) -> String {
        format!("{operands}, heads {}, base {}", self.heads, self.base)
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x, &mut self.positions]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let (x, positions) = (&values[&self.x], &values[&self.positions]);
        let columns = shape.matrix()[1];
        let half = columns / self.heads / 2;
        Ok(Tensor::from_fn(shape, |place| {
            let (row, column) = (place / columns, place % columns);
            let (in_head, is_second) = (column % (2 * half), column % (2 * half) >= half);
            let pair = (in_head % half) as f64;
            let position = positions.data[row % positions.data.len()];
            let (sine, cosine) =
                (position * f64::from(self.base).powf(-pair / half as f64)).sin_cos();
            let (here, other) = (
                x.data[place],
                x.data[if is_second {
                    place - half
                } else {
                    place + half
                }],
            );
            if is_second {
                here * cosine + other * sine
            } else {
                here * cosine - other * sine
            }
        }))
    }

    /// The rotation backwards: with the sign of each second half changed before and after,
    /// forwards.
    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self {
            x,
            positions,
            heads,
            base,
        } = *self;
        pass.give(x, |pass| {
            let columns = pass.size(x, 2)?;
            let half = columns / heads / 2;
            let signs: Vec<f32> = (0..columns)
                .map(|column| {
                    if column % (2 * half) < half {
                        1.0
                    } else {
                        -1.0
                    }
                })
                .collect();
            let signs = pass.builder.constant(&signs, [columns])?;
            let mirrored = pass.builder.mul(g, signs)?;
            let turned = pass.builder.rotary(mirrored, positions, heads, base)?;
            pass.builder.mul(turned, signs)
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        let width = shape.matrix()[1] / self.heads;
        lowering.plan.rotary(
            lowering.views[&self.x],
            lowering.views[&self.positions],
            y,
            width,
            self.heads,
            self.base,
        )
    }
}

impl Call for Rotary {
    const NAME: &'static str = "rotary";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.rotary(
            text.node(0)?,
            text.node(1)?,
            text.number("heads")?,
            text.number("base")?,
        )
    }
}

impl GraphBuilder {
    /// Adds rotary positions: in each head of w columns, columns j and j + w/2 are rotated by
    /// position · base^(−2j/w).
    ///
    /// # Shapes
    /// `x` [B, T, heads·w], `positions` \[T\] or [B, T] as [`GraphBuilder::indices`] adds them.
    /// # Errors
    /// `Invalid` if the shapes do not fit, w is odd, `base` is not above 1, or a node is not of
    /// this graph.
    /// # Source
    /// Su et al., *RoFormer*, <https://arxiv.org/abs/2104.09864>; pairs half a head apart, as
    /// required by the weights of Llama and Qwen published for Hugging Face transformers.
    pub fn rotary(&mut self, x: Node, positions: Node, heads: usize, base: f32) -> Result<Node> {
        let shape = self.shape("rotary", x)?;
        let places = self.index_shape("rotary", positions)?;
        let is_whole = matches!(shape.last(), Dim::Size(columns) if heads > 0 && columns.is_multiple_of(heads.saturating_mul(2)));
        let fits = shape.rank() == 3
            && (places.dims() == &shape.dims()[..2] || places.dims() == &shape.dims()[1..2]);
        if !fits || !is_whole || !base.is_finite() || base <= 1.0 {
            return Err(self.fault(format_args!(
                "rotary: x {shape:?}, positions {places:?} for {heads} heads, base {base}"
            )));
        }
        Ok(self.push(
            Rotary {
                x,
                positions,
                heads,
                base,
            },
            shape,
        ))
    }
}
