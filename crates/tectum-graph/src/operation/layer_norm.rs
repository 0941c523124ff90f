//! Layer norm.

use super::{Adjoints, Call, CallText, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, Values, View, no_derivative};

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
            row.iter_mut().zip(gain.iter().zip(bias)).for_each(|(x, (gain, bias))| *x = (*x - mean) * inverse * gain + bias);
        }))
    }

    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        no_derivative(self.name())
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        let [x, gain, bias] = [self.x, self.gain, self.bias].map(|node| lowering.views[&node]);
        lowering.plan.layer_norm(x, [gain, bias], y, self.epsilon)
    }
}

impl Call for LayerNorm {
    const NAME: &'static str = "layer_norm";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.layer_norm(text.node(0)?, text.node(1)?, text.node(2)?, text.number("epsilon")?)
    }
}

impl GraphBuilder {
    /// Adds layer norm over the last axis: (x − mean) / √(variance + epsilon) · gain + bias.
    ///
    /// # Shapes
    /// `x` [.., n], `gain` and `bias` [n].
    /// # Errors
    /// `Invalid` if the shapes differ, `epsilon` is not positive, or a node is not of this graph.
    /// # Source
    /// Ba, Kiros, Hinton, *Layer Normalization*, <https://arxiv.org/abs/1607.06450>.
    pub fn layer_norm(&mut self, x: Node, gain: Node, bias: Node, epsilon: f32) -> Result<Node> {
        let shape = self.norm_shape("layer_norm", x, &[gain, bias], epsilon)?;
        Ok(self.push(LayerNorm { x, gain, bias, epsilon }, shape))
    }

    /// The shape of a norm whose gain or bias fits.
    pub(super) fn norm_shape(&self, op: &str, x: Node, vectors: &[Node], epsilon: f32) -> Result<Shape> {
        let shape = self.shape(op, x)?;
        for &vector in vectors {
            let vector = self.shape(op, vector)?;
            if shape.rank() == 0 || !vector.is_row_of(shape) {
                return Err(self.fault(format_args!("{op}: x {shape:?}, gain or bias {vector:?}: a vector of {:?} is needed", shape.last())));
            }
        }
        if epsilon.is_nan() || epsilon <= 0.0 {
            return Err(self.fault(format_args!("{op}: epsilon {epsilon} is not positive")));
        }
        Ok(shape)
    }
}
