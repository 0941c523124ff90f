//! Integers that never change.

use std::sync::Arc;

use tectum::DType;

use super::{
    Adjoints, Call, CallText, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, ValueType,
    Values, View,
};
use crate::parse::parse_number;

/// Integers that are shown in text; more end in an ellipsis.
const MAX_SHOWN: usize = 4;

/// Known integers, copied to the device when a plan is compiled.
#[derive(Debug, Clone)]
pub(crate) struct IntegerConstant {
    pub data: Arc<[i32]>,
}

impl Op for IntegerConstant {
    fn arguments(&self, _: String) -> String {
        let mut values: Vec<_> = self
            .data
            .iter()
            .take(MAX_SHOWN)
            .map(i32::to_string)
            .collect();
        if self.data.len() > MAX_SHOWN {
            values.push("…".to_owned());
        }
        values.join(", ")
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        Vec::new()
    }

    fn element(&self) -> ValueType {
        ValueType::Is(DType::I32)
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

impl Call for IntegerConstant {
    const NAME: &'static str = "integer_constant";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        let numbers: Result<Vec<i32>> = text
            .arguments
            .iter()
            .map(|number| parse_number(number))
            .collect();
        builder.integer_constant(&numbers?, shape)
    }
}

impl GraphBuilder {
    /// Adds integers (i32), or truth values as 0 and 1, that never change.
    ///
    /// # Errors
    /// As [`GraphBuilder::constant`].
    pub fn integer_constant(&mut self, data: &[i32], shape: impl Into<Shape>) -> Result<Node> {
        let shape = shape.into();
        self.check_shape("integer_constant", shape)?;
        if shape.elements() != Some(data.len()) {
            return Err(self.fault(format_args!(
                "integer_constant: {} elements given for {shape:?}",
                data.len()
            )));
        }
        Ok(self.push(
            IntegerConstant {
                data: Arc::from(data),
            },
            shape,
        ))
    }
}
