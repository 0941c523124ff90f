//! A value as another type.

use tectum::DType;

use super::{
    Adjoints, Call, CallText, Cow, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    ValueType, Values, View,
};

/// Floats as integers, or integers as floats.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Convert {
    pub x: Node,
    pub to: DType,
}

impl Op for Convert {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn element(&self) -> ValueType {
        ValueType::Is(self.to)
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        let number = |value: f64| match self.to {
            DType::I32 if value.is_nan() => 0.0,
            DType::I32 => value.trunc(),
            _ => value,
        };
        Ok(Tensor::from_fn(shape, |place| number(x.data[place])))
    }

    /// Integers have no derivative: nothing passes through.
    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        Ok(())
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        lowering.plan.convert(lowering.views[&self.x], y)
    }
}

impl Call for Convert {
    const NAME: &'static str = "convert";

    fn name(&self) -> Cow<'static, str> {
        if self.to == DType::I32 {
            "to_integers".into()
        } else {
            "to_floats".into()
        }
    }

    fn is_named(name: &str) -> bool {
        matches!(name, "to_integers" | "to_floats")
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.convert(
            text.node(0)?,
            if text.name == "to_integers" {
                DType::I32
            } else {
                DType::F32
            },
        )
    }
}

impl GraphBuilder {
    /// Adds a value as another type, f32 or i32. Floats are truncated towards 0 and limited to −2³¹
    /// and 2147483520, the last f32 below 2³¹; NaN becomes 0. Integers are rounded to f32.
    ///
    /// # Errors
    /// `Invalid` for another type or if the node is not of this graph.
    pub fn convert(&mut self, x: Node, to: DType) -> Result<Node> {
        let (shape, dtype) = self.typed("convert", x)?;
        if !matches!(to, DType::F32 | DType::I32) || !matches!(dtype, DType::F32 | DType::I32) {
            return Err(self.fault(format_args!(
                "convert: {} to {}: f32 and i32 are possible",
                dtype.wgsl(),
                to.wgsl()
            )));
        }
        if dtype == to {
            Ok(x)
        } else {
            Ok(self.push(Convert { x, to }, shape))
        }
    }
}
