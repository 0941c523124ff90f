//! The same bits as another type.

use tectum::DType;

use super::{
    Adjoints, Call, CallText, Cow, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    ValueType, Values, View,
};

/// The bits of floats as integers, or the other way round.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bitcast {
    pub x: Node,
    pub to: DType,
}

impl Op for Bitcast {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn element(&self) -> ValueType {
        ValueType::Is(self.to)
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let x = &values[&self.x];
        let number = |value: f64| match self.to {
            DType::I32 => f64::from((value as f32).to_bits().cast_signed()),
            _ => f64::from(f32::from_bits((value as i32).cast_unsigned())),
        };
        Ok(Tensor::from_fn(shape, |place| number(x.data[place])))
    }

    /// Integers have no derivative: nothing passes through.
    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        Ok(())
    }

    fn is_view(&self) -> bool {
        true
    }

    fn alias(&self, lowering: &Lowering<'_>, _: Shape) -> Option<View> {
        Some(lowering.views[&self.x].reinterpret(self.to))
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        lowering
            .plan
            .copy(lowering.views[&self.x].reinterpret(self.to), y)
    }
}

impl Call for Bitcast {
    const NAME: &'static str = "bitcast";

    fn name(&self) -> Cow<'static, str> {
        if self.to == DType::I32 {
            "bits_as_integers".into()
        } else {
            "bits_as_floats".into()
        }
    }

    fn is_named(name: &str) -> bool {
        matches!(name, "bits_as_integers" | "bits_as_floats")
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.bitcast(
            text.node(0)?,
            if text.name == "bits_as_integers" {
                DType::I32
            } else {
                DType::F32
            },
        )
    }
}

impl GraphBuilder {
    /// Adds the same 32 bits as another type, f32 or i32.
    ///
    /// # Errors
    /// `Invalid` for another type or if the node is not of this graph.
    /// # Cost
    /// No launch.
    pub fn bitcast(&mut self, x: Node, to: DType) -> Result<Node> {
        let (shape, dtype) = self.typed("bitcast", x)?;
        if !matches!(to, DType::F32 | DType::I32) || !matches!(dtype, DType::F32 | DType::I32) {
            return Err(self.fault(format_args!(
                "bitcast: {} to {}: f32 and i32 are possible",
                dtype.wgsl(),
                to.wgsl()
            )));
        }
        if dtype == to {
            Ok(x)
        } else {
            Ok(self.push(Bitcast { x, to }, shape))
        }
    }
}
