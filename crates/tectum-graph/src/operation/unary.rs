//! Elementary functions, element by element.

use tectum::Error;
use tectum::operation::elementwise::operation;
use tectum_programs::Chain;

use super::elementwise::Elementwise;
use super::{
    Adjoints, Call, CallText, Cow, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, Values,
    View,
};

/// A function of each element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unary {
    pub function: Function,
    pub x: Node,
}

/// A function of one float.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    /// eˣ
    Exp,
    /// The natural logarithm.
    Log,
    /// √x
    Sqrt,
    /// The error function.
    Erf,
    /// The distance from 0.
    Abs,
    /// −x
    Neg,
    /// −1, 0 or 1; NaN of NaN.
    Sign,
    /// The floor: the next integer below, or the number itself.
    Floor,
    /// The ceiling: the next integer above, or the number itself.
    Ceil,
    /// The nearest integer, the even one of two.
    Round,
    /// The sine of an angle in radians.
    Sin,
    /// The cosine of an angle in radians.
    Cos,
    /// The tangent of an angle in radians.
    Tan,
    /// The angle in radians whose sine it is.
    Asin,
    /// The angle in radians whose cosine it is.
    Acos,
    /// The angle in radians whose tangent it is.
    Atan,
    /// The hyperbolic sine.
    Sinh,
    /// The hyperbolic cosine.
    Cosh,
    /// The inverse of the hyperbolic sine.
    Asinh,
    /// The inverse of the hyperbolic cosine.
    Acosh,
    /// The inverse of the hyperbolic tangent.
    Atanh,
    /// 1/x
    Reciprocal,
}

impl Function {
    /// All of them, with their names in the op table.
    pub(super) const ALL: [(Function, &'static str); 22] = [
        (Function::Exp, "exp"),
        (Function::Log, "log"),
        (Function::Sqrt, "sqrt"),
        (Function::Erf, "erf"),
        (Function::Abs, "abs"),
        (Function::Neg, "neg"),
        (Function::Sign, "sign"),
        (Function::Floor, "floor"),
        (Function::Ceil, "ceil"),
        (Function::Round, "round"),
        (Function::Sin, "sin"),
        (Function::Cos, "cos"),
        (Function::Tan, "tan"),
        (Function::Asin, "asin"),
        (Function::Acos, "acos"),
        (Function::Atan, "atan"),
        (Function::Sinh, "sinh"),
        (Function::Cosh, "cosh"),
        (Function::Asinh, "asinh"),
        (Function::Acosh, "acosh"),
        (Function::Atanh, "atanh"),
        (Function::Reciprocal, "reciprocal"),
    ];

    /// The name in the op table.
    fn name(self) -> &'static str {
        Self::ALL
            .into_iter()
            .find(|(function, _)| *function == self)
            .expect("invariant: the table has every function")
            .1
    }

    pub(super) fn named(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|(_, known)| *known == name)
            .map(|(function, _)| function)
    }
}

impl Unary {
    /// What the gradient at the value is multiplied by, for functions without a shorter form.
    fn slope(&self, y: Node, builder: &mut GraphBuilder) -> Result<Node> {
        let Self { function, x } = *self;
        // 1/√(sign·x² + offset) or 1/(sign·x² + offset)
        let quotient = |builder: &mut GraphBuilder, sign: f32, offset: f32, is_root: bool| {
            let square = builder.mul(x, x)?;
            let (signed, offset) = (
                builder.scale(square, sign)?,
                builder.constant(&[offset], [1, 1])?,
            );
            let mut sum = builder.add(signed, offset)?;
            if is_root {
                sum = builder.sqrt(sum)?;
            }
            builder.function(Function::Reciprocal, sum)
        };
        Ok(match function {
            Function::Erf => builder.bell(x, 1.0, std::f64::consts::FRAC_2_SQRT_PI)?,
            Function::Abs => builder.function(Function::Sign, x)?,
            Function::Sin => builder.function(Function::Cos, x)?,
            Function::Cos => {
                let sine = builder.function(Function::Sin, x)?;
                builder.scale(sine, -1.0)?
            }
            Function::Tan => {
                let (square, one) = (builder.mul(y, y)?, builder.constant(&[1.0], [1, 1])?);
                builder.add(square, one)?
            }
            Function::Asin => quotient(builder, -1.0, 1.0, true)?,
            Function::Acos => {
                let slope = quotient(builder, -1.0, 1.0, true)?;
                builder.scale(slope, -1.0)?
            }
            Function::Atan => quotient(builder, 1.0, 1.0, false)?,
            Function::Sinh => builder.function(Function::Cosh, x)?,
            Function::Cosh => builder.function(Function::Sinh, x)?,
            Function::Asinh => quotient(builder, 1.0, 1.0, true)?,
            Function::Acosh => quotient(builder, 1.0, -1.0, true)?,
            Function::Atanh => quotient(builder, -1.0, 1.0, false)?,
            Function::Reciprocal => {
                let square = builder.mul(y, y)?;
                builder.scale(square, -1.0)?
            }
            _ => {
                return Err(Error::invalid(format!(
                    "{}: its gradient has a shorter form",
                    function.name()
                )));
            }
        })
    }
}

impl Op for Unary {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let (x, entry) = (
            &values[&self.x],
            operation(self.function.name()).expect("invariant: each function is in the op table"),
        );
        Ok(Tensor::from_fn(shape, |place| {
            (entry.reference)(x.data[place], 0.0)
        }))
    }

    fn differentiate(&self, y: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { function, x } = *self;
        pass.give(x, |pass| match function {
            Function::Exp => pass.builder.mul(g, y),
            Function::Log => pass.builder.div(g, x),
            Function::Neg => pass.builder.scale(g, -1.0),
            Function::Sqrt => {
                let half = pass.builder.scale(g, 0.5)?;
                pass.builder.div(half, y)
            }
            Function::Sign | Function::Floor | Function::Ceil | Function::Round => {
                pass.builder.scale(g, 0.0)
            }
            _ => {
                let slope = self.slope(y, &mut pass.builder)?;
                pass.builder.mul(g, slope)
            }
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        lowering
            .plan
            .unary(self.function.name(), lowering.views[&self.x], y)
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Chain::has(self.function.name()).then(|| Elementwise {
            name: self.function.name().to_owned(),
            x: self.x,
            second: None,
        })
    }
}

impl Call for Unary {
    const NAME: &'static str = "unary";

    fn name(&self) -> Cow<'static, str> {
        self.function.name().into()
    }

    fn is_named(name: &str) -> bool {
        Function::named(name).is_some()
    }

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        let function = Function::named(text.name).ok_or_else(|| text.unknown())?;
        builder.function(function, text.node(0)?)
    }
}

impl GraphBuilder {
    /// Adds eˣ.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn exp(&mut self, x: Node) -> Result<Node> {
        self.function(Function::Exp, x)
    }

    /// Adds the natural logarithm of x.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn log(&mut self, x: Node) -> Result<Node> {
        self.function(Function::Log, x)
    }

    /// Adds √x.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sqrt(&mut self, x: Node) -> Result<Node> {
        self.function(Function::Sqrt, x)
    }

    /// Adds the error function of x.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn erf(&mut self, x: Node) -> Result<Node> {
        self.function(Function::Erf, x)
    }

    /// height · exp(−decay·x²)
    pub(super) fn bell(&mut self, x: Node, decay: f32, height: f64) -> Result<Node> {
        let square = self.mul(x, x)?;
        let falling = self.scale(square, -decay)?;
        let bell = self.exp(falling)?;
        self.scale(bell, height as f32)
    }

    /// Adds a function of each float.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn function(&mut self, function: Function, x: Node) -> Result<Node> {
        let shape = self.shape(function.name(), x)?;
        Ok(self.push(Unary { function, x }, shape))
    }
}
