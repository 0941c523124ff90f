//! Layer norm.

use tectum::Error;

use super::{
    Adjoints, Call, CallText, Dim, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, Values,
    View,
};

/// Over the last axis, each row minus its mean, divided by its deviation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerNorm {
    pub x: Node,
    pub gain: Node,
    pub bias: Node,
    pub epsilon: f32,
}

impl Op for LayerNorm {
    fn arguments(&self, operands: String) -> String {
        format!("{operands}, epsilon {:e}", self.epsilon)
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x, &mut self.gain, &mut self.bias]
    }

    fn evaluate(&self, _: Shape, values: &Values) -> Result<Tensor> {
        let (gain, bias) = (&values[&self.gain].data, &values[&self.bias].data);
        Ok(values[&self.x].map_rows(|row| {
            let n = row.len() as f64;
            let mean = row.iter().sum::<f64>() / n;
            let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / n;
            let inverse = 1.0 / (variance + f64::from(self.epsilon)).sqrt();
            row.iter_mut()
                .zip(gain.iter().zip(bias))
                .for_each(|(x, (gain, bias))| *x = (*x - mean) * inverse * gain + bias);
        }))
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self {
            x,
            gain,
            bias,
            epsilon,
        } = *self;
        let mean = pass.builder.row_mean(x)?;
        let centered = pass.builder.sub(x, mean)?;
        pass.give(bias, |pass| pass.reduce_like(g, bias))?;
        pass.give_norm([x, centered, gain], epsilon, g, |pass, slope| {
            let mean = pass.builder.row_mean(slope)?;
            pass.builder.sub(slope, mean)
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let [x, gain, bias] = [self.x, self.gain, self.bias].map(|node| lowering.views[&node]);
        lowering.plan.layer_norm(x, [gain, bias], y, self.epsilon)
    }
}

impl Call for LayerNorm {
    const NAME: &'static str = "layer_norm";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.layer_norm(
            text.node(0)?,
            text.node(1)?,
            text.node(2)?,
            text.number("epsilon")?,
        )
    }
}

impl GraphBuilder {
    /// Adds layer norm over the last axis: (x − mean) / √(variance + epsilon) · gain + bias.
    ///
    /// # Shapes
    /// `x` [.., n], `gain` and `bias` \[n\].
    /// # Errors
    /// `Invalid` if the shapes differ, `epsilon` is not positive, or a node is not of this graph.
    /// # Source
    /// Ba, Kiros, Hinton, *Layer Normalization*, <https://arxiv.org/abs/1607.06450>.
    pub fn layer_norm(&mut self, x: Node, gain: Node, bias: Node, epsilon: f32) -> Result<Node> {
        let shape = self.norm_shape("layer_norm", x, &[gain, bias], epsilon)?;
        Ok(self.push(
            LayerNorm {
                x,
                gain,
                bias,
                epsilon,
            },
            shape,
        ))
    }

    /// The mean of each row of the last axis, repeated over the row.
    pub(super) fn row_mean(&mut self, x: Node) -> Result<Node> {
        let shape = self.shape("mean", x)?;
        let Dim::Size(count) = shape.last() else {
            return Err(Error::unsupported(format!(
                "the gradient of a norm needs sizes; {shape:?} ends in a letter"
            )));
        };
        let sum = self.sum_over_columns(x)?;
        let count = self.constant(&[count as f32], [1, 1])?;
        let mean = self.div(sum, count)?;
        self.broadcast(mean, shape)
    }

    /// The shape of a norm whose gain or bias fits.
    pub(super) fn norm_shape(
        &self,
        op: &str,
        x: Node,
        vectors: &[Node],
        epsilon: f32,
    ) -> Result<Shape> {
        let shape = self.shape(op, x)?;
        for &vector in vectors {
            let vector = self.shape(op, vector)?;
            if shape.rank() == 0 || !vector.is_row_of(shape) {
                return Err(self.fault(format_args!(
                    "{op}: x {shape:?}, gain or bias {vector:?}: a vector of {:?} is needed",
                    shape.last()
                )));
            }
        }
        if epsilon.is_nan() || epsilon <= 0.0 {
            return Err(self.fault(format_args!("{op}: epsilon {epsilon} is not positive")));
        }
        Ok(shape)
    }
}

impl Adjoints {
    /// Passes the adjoint of y = c / √(mean of c² + epsilon) · gain to x and to the gain, where c
    /// is x or x minus its mean.
    ///
    /// With z = y / gain and d the root: the gradient at c is (g·gain − z · mean of (z·g·gain)) /
    /// d; `center` makes it that of x.
    pub(super) fn give_norm(
        &mut self,
        [x, c, gain]: [Node; 3],
        epsilon: f32,
        g: Node,
        center: impl FnOnce(&mut Self, Node) -> Result<Node>,
    ) -> Result<()> {
        let square = self.builder.mul(c, c)?;
        let mean = self.builder.row_mean(square)?;
        let epsilon = self.builder.constant(&[epsilon], [1, 1])?;
        let sum = self.builder.add(mean, epsilon)?;
        let root = self.builder.sqrt(sum)?;
        let z = self.builder.div(c, root)?;
        self.give(gain, |pass| {
            let product = pass.builder.mul(g, z)?;
            pass.reduce_like(product, gain)
        })?;
        self.give(x, |pass| {
            let g = pass.builder.mul(g, gain)?;
            let product = pass.builder.mul(g, z)?;
            let mean = pass.builder.row_mean(product)?;
            let along = pass.builder.mul(z, mean)?;
            let across = pass.builder.sub(g, along)?;
            let slope = center(pass, across)?;
            pass.builder.div(slope, root)
        })
    }
}
