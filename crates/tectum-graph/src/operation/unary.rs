//! Elementary functions, element by element.

use tectum::operation::elementwise::operation;

use super::elementwise::Elementwise;
use super::{Adjoints, Call, CallText, Cow, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor, Values, View};

/// A function of each element.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unary {
    pub function: Function,
    pub x: Node,
}

/// An elementary function of the op table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Exp,
    Log,
    Sqrt,
    Erf,
}

impl Function {
    const ALL: [Function; 4] = [Function::Exp, Function::Log, Function::Sqrt, Function::Erf];

    /// The name in the op table.
    fn name(self) -> &'static str {
        match self {
            Function::Exp => "exp",
            Function::Log => "log",
            Function::Sqrt => "sqrt",
            Function::Erf => "erf",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|function| function.name() == name)
    }
}

impl Op for Unary {
    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.x]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let (x, entry) = (&values[&self.x], operation(self.function.name()).expect("invariant: each function is in the op table"));
        Ok(Tensor::from_fn(shape, |place| (entry.reference)(x.data[place], 0.0)))
    }

    /// g·y, g/x, g/2y, g·2/√π·exp(−x²)
    fn differentiate(&self, y: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { function, x } = *self;
        pass.give(x, |pass| match function {
            Function::Exp => pass.builder.mul(g, y),
            Function::Log => pass.builder.div(g, x),
            Function::Sqrt => {
                let half = pass.builder.scale(g, 0.5)?;
                pass.builder.div(half, y)
            }
            Function::Erf => {
                let bell = pass.builder.bell(x, 1.0, std::f64::consts::FRAC_2_SQRT_PI)?;
                pass.builder.mul(g, bell)
            }
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        self.elementwise().into_iter().try_for_each(|entry| entry.launch(lowering, y))
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { name: self.function.name().to_owned(), x: self.x, second: None })
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
        builder.unary(text.node(0)?, function)
    }
}

impl GraphBuilder {
    /// Adds eˣ.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn exp(&mut self, x: Node) -> Result<Node> {
        self.unary(x, Function::Exp)
    }

    /// Adds the natural logarithm of x.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn log(&mut self, x: Node) -> Result<Node> {
        self.unary(x, Function::Log)
    }

    /// Adds √x.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn sqrt(&mut self, x: Node) -> Result<Node> {
        self.unary(x, Function::Sqrt)
    }

    /// Adds the error function of x.
    ///
    /// # Errors
    /// `Invalid` if the node is not of this graph.
    pub fn erf(&mut self, x: Node) -> Result<Node> {
        self.unary(x, Function::Erf)
    }

    /// height · exp(−decay·x²)
    pub(super) fn bell(&mut self, x: Node, decay: f32, height: f64) -> Result<Node> {
        let square = self.mul(x, x)?;
        let falling = self.scale(square, -decay)?;
        let bell = self.exp(falling)?;
        self.scale(bell, height as f32)
    }

    fn unary(&mut self, x: Node, function: Function) -> Result<Node> {
        let shape = self.shape(function.name(), x)?;
        Ok(self.push(Unary { function, x }, shape))
    }
}
