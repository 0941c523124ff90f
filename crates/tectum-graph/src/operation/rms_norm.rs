//! Root-mean-square norm.

use super::{
    Adjoints, Call, CallText, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, Values, View,
};

/// Over the last axis, each row divided by its root mean square.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RmsNorm {
    pub x: Node,
    pub gain: Node,
    pub epsilon: f32,
}

impl Op for RmsNorm {
    fn arguments(&self, operands: String) -> String {
        format!("{operands}, epsilon {:e}", self.epsilon)
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x, &mut self.gain]
    }

    fn evaluate(&self, _: Shape, values: &Values) -> Result<Tensor> {
        let gain = &values[&self.gain].data;
        Ok(values[&self.x].map_rows(|row| {
            let square = row.iter().map(|x| x * x).sum::<f64>() / row.len() as f64;
            let inverse = 1.0 / (square + f64::from(self.epsilon)).sqrt();
            row.iter_mut()
                .zip(gain)
                .for_each(|(x, gain)| *x *= inverse * gain);
        }))
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give_norm([self.x, self.x, self.gain], self.epsilon, g, |_, slope| {
            Ok(slope)
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        lowering.plan.rms_norm(
            lowering.views[&self.x],
            lowering.views[&self.gain],
            y,
            self.epsilon,
        )
    }
}

impl Call for RmsNorm {
    const NAME: &'static str = "rms_norm";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.rms_norm(text.node(0)?, text.node(1)?, text.number("epsilon")?)
    }
}

impl GraphBuilder {
    /// Adds root-mean-square norm over the last axis: x / √(mean of x² + epsilon) · gain.
    ///
    /// # Shapes
    /// `x` [.., n], `gain` \[n\].
    /// # Errors
    /// As [`GraphBuilder::layer_norm`].
    /// # Source
    /// Zhang and Sennrich, *Root Mean Square Layer Normalization*, <https://arxiv.org/abs/1910.07467>.
    pub fn rms_norm(&mut self, x: Node, gain: Node, epsilon: f32) -> Result<Node> {
        let shape = self.norm_shape("rms_norm", x, &[gain], epsilon)?;
        Ok(self.push(RmsNorm { x, gain, epsilon }, shape))
    }
}
