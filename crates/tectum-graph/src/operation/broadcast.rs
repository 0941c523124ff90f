//! Repetition of a scalar, a row or a column.

use tectum::{DType, GemmEpilogue, Matrix};

use super::{Adjoints, Call, CallText, Constant, Graph, GraphBuilder, Lowering, Node, Op, Operation, Result, Shape, Tensor, Values, View};

/// Repeats a scalar, a row or a column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Broadcast {
    pub x: Node,
}

impl Op for Broadcast {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        Ok(Tensor::from_fn(shape, |place| x.broadcast_element(shape, place)))
    }

    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        pass.give(self.x, |pass| pass.reduce_like(g, self.x))
    }

    /// A row or column of ones times the value; a scalar is added to zeros.
    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        let (view, from) = (lowering.views[&self.x], lowering.shape(self.x));
        if let (Operation::Constant(Constant { data }), 1) = (&lowering.graph.nodes[&self.x].operation, from.len()) {
            return lowering.plan.fill(y, data[0].to_bits());
        }
        let is_column = !from.broadcasts_to(shape);
        match from.len() {
            1 => {
                let zeros = lowering.plan.temp(DType::F32, y.len());
                lowering.plan.fill(zeros, 0.0f32.to_bits())?;
                lowering.plan.binary("add", zeros, view, y)
            }
            cols if !is_column => {
                let rows = y.len() / cols;
                let ones = lowering.uniform(1.0, rows);
                lowering.plan.gemm(Matrix::new(ones, rows, 1), Matrix::new(view, 1, cols), y, GemmEpilogue::default())
            }
            rows => {
                let cols = y.len() / rows;
                let ones = lowering.uniform(1.0, cols);
                lowering.plan.gemm(Matrix::new(view, rows, 1), Matrix::new(ones, 1, cols), y, GemmEpilogue::default())
            }
        }
    }
}

impl Call for Broadcast {
    const NAME: &'static str = "broadcast";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        builder.broadcast(text.node(0)?, shape)
    }
}

impl GraphBuilder {
    /// Repeats a scalar, row or column to a shape.
    pub(crate) fn broadcast(&mut self, x: Node, shape: impl Into<Shape>) -> Result<Node> {
        let (from, shape) = (self.shape("broadcast", x)?, shape.into());
        self.check_shape("broadcast", shape)?;
        if from == shape {
            return Ok(x);
        }
        let is_column = from.rank() == shape.rank() && from == shape.with(shape.rank() - 1, 1);
        if !from.broadcasts_to(shape) && !is_column {
            return Err(self.fault(format_args!("broadcast: {from:?} does not repeat to {shape:?}")));
        }
        Ok(self.push(Broadcast { x }, shape))
    }
}

impl Graph {
    /// The operand of a broadcast, if operations repeat it themselves.
    pub(super) fn unbroadcast(&self, node: Node, shape: Shape) -> Option<Node> {
        match self.nodes[&node].operation {
            Operation::Broadcast(Broadcast { x }) if self.nodes[&x].shape.broadcasts_to(shape) => Some(x),
            _ => None,
        }
    }
}
