//! Sums divided by the number of their summands, where letters are among the dimensions.

use super::{
    Adjoints, Call, CallText, Graph, GraphBuilder, Lowering, Node, Op, Result, Scale, Shape,
    Tensor, Values, View,
};

/// A sum over some elements of `x`, divided by how many elements of `x` each of its own is the sum
/// of. [`Graph::bind`] makes it a `scale` as soon as both sizes are known.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Average {
    pub sum: Node,
    pub x: Node,
}

impl Average {
    /// The same as a multiplication, if the sizes are known.
    pub fn scale(&self, graph: &Graph) -> Option<Scale> {
        let elements = |node: Node| graph.nodes[&node].shape.elements();
        let (sums, summands) = (elements(self.sum)?, elements(self.x)?);
        Some(Scale {
            x: self.sum,
            factor: (sums as f64 / summands as f64) as f32,
        })
    }
}

impl Op for Average {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.sum, &mut self.x]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let (sum, x) = (&values[&self.sum], &values[&self.x]);
        let share = sum.data.len() as f64 / x.data.len() as f64;
        Ok(Tensor::from_fn(shape, |place| share * sum.data[place]))
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give(self.sum, |pass| pass.builder.average(g, self.x))
    }

    /// Only graphs whose letters have sizes are compiled: there it is a `scale`.
    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        let summands = lowering.shape(self.x).len();
        let factor = (shape.len() as f64 / summands as f64) as f32;
        Scale {
            x: self.sum,
            factor,
        }
        .lower(lowering, shape, y)
    }
}

impl Call for Average {
    const NAME: &'static str = "average";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.average(text.node(0)?, text.node(1)?)
    }
}

impl GraphBuilder {
    /// Adds a sum over some elements of `x` divided by how many elements of `x` each of its own is
    /// the sum of: a `scale` if the sizes are known, else an operation that becomes one when the
    /// letters are bound.
    ///
    /// # Errors
    /// `Invalid` if a node is not of this graph.
    pub fn average(&mut self, sum: Node, x: Node) -> Result<Node> {
        let shape = self.shape("average", sum)?;
        self.shape("average", x)?;
        let average = Average { sum, x };
        match average.scale(self.graph()) {
            Some(scale) => self.scale(sum, scale.factor),
            None => Ok(self.push(average, shape)),
        }
    }
}
