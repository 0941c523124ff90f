//! The text form of a graph.

use super::{Factor, Graph, Node, Operation, Over, Tail};
use crate::kernel::Activation;

/// Values of a constant that are shown; more end in an ellipsis.
const SHOWN: usize = 4;

impl Graph {
    /// One line for each node, then one for each output. The text is stable and used by tests.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (node, definition) in &self.nodes {
            text += &format!("%{} = {} {:?}\n", node.0, definition.operation.text(), definition.shape);
        }
        for (name, node) in &self.outputs {
            text += &format!("output {name} %{}\n", node.0);
        }
        text
    }
}

impl Operation {
    fn text(&self) -> String {
        match self {
            Operation::Input { name } => format!("input {name}"),
            Operation::Parameter { name } => format!("parameter {name}"),
            Operation::Constant { data } => constant(data),
            Operation::MatMul { a, b } => format!("matmul({}, {})", factor(*a), factor(*b)),
            Operation::Linear { a, b, tail } => format!("linear({}, {}{})", factor(*a), factor(*b), tail_text(tail)),
            Operation::Binary { op, a, b } => format!("{}({}, {})", op.name(), plain(*a), plain(*b)),
            Operation::Scale { x, factor } => format!("scale({}, {factor})", plain(*x)),
            Operation::Activate { activation, x } => format!("{}({})", activation_name(*activation), plain(*x)),
            Operation::ActivationGrad { activation, y, dy } => format!("{}_grad({}, {})", activation_name(*activation), plain(*y), plain(*dy)),
            Operation::Reduce { over, x } => format!("{}({})", over.name(), plain(*x)),
            Operation::Broadcast { x } => format!("broadcast({})", plain(*x)),
        }
    }
}

impl Over {
    fn name(self) -> &'static str {
        match self {
            Over::All => "sum",
            Over::Rows => "sum_over_rows",
            Over::Columns => "sum_over_columns",
        }
    }
}

/// An activation's name in the op table; nothing for `None`.
pub(super) fn activation_name(activation: Activation) -> &'static str {
    match activation {
        Activation::None => "",
        Activation::Relu => "relu",
        Activation::Tanh => "tanh",
        Activation::Sigmoid => "sigmoid",
        Activation::Gelu => "gelu",
    }
}

fn plain(node: Node) -> String {
    format!("%{}", node.0)
}

fn factor(factor: Factor) -> String {
    format!("%{}{}", factor.node.0, if factor.transposed { "ᵀ" } else { "" })
}

fn tail_text(tail: &Tail) -> String {
    let bias = tail.bias.map_or(String::new(), |node| format!(", bias %{}", node.0));
    let activation = if tail.activation == Activation::None { String::new() } else { format!(", {}", activation_name(tail.activation)) };
    let residual = tail.residual.map_or(String::new(), |node| format!(", residual %{}", node.0));
    bias + &activation + &residual
}

fn constant(data: &[f32]) -> String {
    let mut values: Vec<_> = data.iter().take(SHOWN).map(f32::to_string).collect();
    if data.len() > SHOWN {
        values.push("…".to_owned());
    }
    format!("constant({})", values.join(", "))
}
