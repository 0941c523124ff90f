//! Values that never change.

use std::sync::Arc;

use super::{
    Adjoints, Call, CallText, Graph, GraphBuilder, Lowering, Node, Op, Operation, Result, Shape,
    Tensor, Values, View,
};
use crate::parse::parse_number;

/// Values that are shown in text; more end in an ellipsis.
const MAX_SHOWN: usize = 4;

/// Known data, copied to the device when a plan is compiled.
#[derive(Debug, Clone)]
pub(crate) struct Constant {
    pub data: Arc<[f32]>,
}

impl Op for Constant {
    fn arguments(&self, _: String) -> String {
        let mut values: Vec<_> = self
            .data
            .iter()
            .take(MAX_SHOWN)
            .map(f32::to_string)
            .collect();
        if self.data.len() > MAX_SHOWN {
            values.push("…".to_owned());
        }
        values.join(", ")
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        Vec::new()
    }

    fn evaluate(&self, shape: Shape, _: &Values) -> Result<Tensor> {
        Ok(Tensor {
            shape,
            data: self.data.iter().copied().map(f64::from).collect(),
        })
    }

    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        Ok(())
    }

    fn lower(&self, _: &mut Lowering<'_>, _: Shape, _: View) -> Result<()> {
        Ok(())
    }
}

impl Call for Constant {
    const NAME: &'static str = "constant";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        let numbers: Result<Vec<f32>> = text
            .arguments
            .iter()
            .map(|number| parse_number(number))
            .collect();
        builder.constant(&numbers?, shape)
    }
}

impl GraphBuilder {
    /// Adds a value that never changes.
    ///
    /// # Errors
    /// `Invalid` if `data` does not fill the shape, or the shape has no elements or more than 2³² − 1.
    pub fn constant(&mut self, data: &[f32], shape: impl Into<Shape>) -> Result<Node> {
        let shape = shape.into();
        self.check_shape("constant", shape)?;
        if shape.elements() != Some(data.len()) {
            return Err(self.fault(format_args!(
                "constant: {} elements given for {shape:?}",
                data.len()
            )));
        }
        Ok(self.push(
            Constant {
                data: Arc::from(data),
            },
            shape,
        ))
    }
}

impl Graph {
    /// The value of a finite scalar constant.
    pub(crate) fn scalar(&self, node: Node) -> Option<f32> {
        match &self.nodes[&node].operation {
            Operation::Constant(Constant { data }) if data.len() == 1 && data[0].is_finite() => {
                Some(data[0])
            }
            _ => None,
        }
    }
}
