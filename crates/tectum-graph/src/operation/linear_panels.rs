//! Products with their tail whose right operand is in panels of a format; only
//! [`Graph::pack_weights`] makes them.

use tectum::operation::product::panel_format::{PANEL, PanelFormat};

use super::{
    Adjoints, Call, CallText, Concat, Dim, Fed, FedKind, Graph, GraphBuilder, LinearEpilogue,
    Lowering, Node, Op, Operation, Result, Shape, Tensor, Values, View, no_derivative_of_fused,
    nodes,
};

/// A product with its tail; `b` is in panels, [⌈n / 16⌉, words of a panel / 16, 16].
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinearPanels {
    pub a: Node,
    pub b: Node,
    pub format: PanelFormat,
    pub tail: LinearEpilogue,
}

impl Op for LinearPanels {
    fn arguments(&self, _: String) -> String {
        let format = if self.format == PanelFormat::F32 {
            String::new()
        } else {
            format!(", weights {}", self.format)
        };
        format!("{}{format}{}", nodes(&[self.a, self.b]), self.tail.text())
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        [&mut self.a, &mut self.b]
            .into_iter()
            .chain(self.tail.operands_mut())
            .collect()
    }

    /// Words are given as their numbers; rows of `a` stay unquantized, where a device converts them
    /// to codes.
    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let (a, b) = (&values[&self.a], &values[&self.b]);
        let ([_, k], [_, n]) = (a.shape.matrix(), shape.matrix());
        let coded = (self.format != PanelFormat::F32).then(|| {
            let words: Vec<u32> = b.data.iter().map(|word| *word as u32).collect();
            self.format.unpack(&words, [k, n])
        });
        let weight = |i: usize, col: usize| match &coded {
            Some(weights) => f64::from(weights[i * n + col]),
            None => b.data[(col / PANEL * k + i) * PANEL + col % PANEL],
        };
        let products = Tensor::from_fn(shape, |place| {
            (0..k)
                .map(|i| a.data[place / n * k + i] * weight(i, place % n))
                .sum()
        });
        Ok(self.tail.evaluate(products, values))
    }

    fn differentiate(&self, _: Node, _: Node, _: &mut Adjoints) -> Result<()> {
        no_derivative_of_fused()
    }

    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()> {
        let ([m, k], n) = (lowering.shape(self.a).matrix(), shape.matrix()[1]);
        let tail = self.tail.lowered(lowering);
        lowering.plan.gemm_panels(
            lowering.views[&self.a],
            (lowering.views[&self.b], self.format),
            y,
            [m, k, n],
            tail,
        )
    }
}

impl Call for LinearPanels {
    const NAME: &'static str = "linear_panels";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
        let format = text
            .named("weights")
            .map_or(Ok(PanelFormat::F32), str::parse)?;
        builder.linear_panels(
            [text.node(0)?, text.node(1)?],
            format,
            LinearEpilogue::parse(text)?,
            shape.last(),
        )
    }
}

impl GraphBuilder {
    fn linear_panels(
        &mut self,
        [a, b]: [Node; 2],
        format: PanelFormat,
        tail: LinearEpilogue,
        columns: Dim,
    ) -> Result<Node> {
        let (a_shape, b_shape) = (self.shape("linear_panels", a)?, self.graph().shape(b)?);
        let fits = match (columns, a_shape.rank(), a_shape.last()) {
            (Dim::Size(n), 2.., Dim::Size(k)) => b_shape == panels_shape(format, k, n),
            _ => false,
        };
        if !fits || self.graph().panel_format(b) != Some(format) {
            return Err(self.fault(format_args!(
                "linear_panels: a {a_shape:?}, b {b_shape:?} for {columns:?} columns of {format}"
            )));
        }
        let shape = a_shape.with(a_shape.rank() - 1, columns);
        self.check_epilogue("linear_panels", tail, shape)?;
        Ok(self.push(LinearPanels { a, b, format, tail }, shape))
    }
}

impl Graph {
    /// The format of a parameter, or of concatenated parameters.
    pub(crate) fn panel_format(&self, node: Node) -> Option<PanelFormat> {
        match &self.nodes.get(&node)?.operation {
            Operation::Fed(Fed {
                kind: FedKind::Parameter(format),
                ..
            }) => Some(*format),
            Operation::Concat(Concat { parts, .. }) => {
                let first = self.panel_format(*parts.first()?)?;
                parts
                    .iter()
                    .all(|part| self.panel_format(*part) == Some(first))
                    .then_some(first)
            }
            _ => None,
        }
    }
}

/// The shape of the words of `[k, n]` in panels.
pub(crate) fn panels_shape(format: PanelFormat, k: usize, n: usize) -> Shape {
    Shape::from([n.div_ceil(PANEL), format.panel_words(k) / PANEL, PANEL])
}
