//! The text form of a graph.

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{Activation, CacheFormat};

use super::{ColumnSlice, Factor, Graph, Heads, LinearEpilogue, Node, Operation, ReduceAxes};

/// Values of a constant that are shown; more end in an ellipsis.
const MAX_SHOWN: usize = 4;

impl Graph {
    /// One line for each node, then one for each output. The text is stable; [`Graph::parse`] reads it.
    pub fn describe(&self) -> String {
        let mut text = String::new();
        for (node, definition) in &self.nodes {
            text += &format!("%{node} = {} {:?}\n", definition.operation.text(), definition.shape);
        }
        for (name, node) in &self.outputs {
            text += &format!("output {name} %{node}\n");
        }
        text
    }
}

impl Operation {
    /// The operation with its operands, as in a line of the text.
    pub(super) fn text(&self) -> String {
        let name = self.name();
        match self {
            Operation::Input { name } => format!("input {name}"),
            Operation::Indices { name } => format!("indices {name}"),
            Operation::Parameter { name, format: PanelFormat::F32 } => format!("parameter {name}"),
            Operation::Parameter { name, format } => format!("parameter {name} {format}"),
            Operation::State { name, format: CacheFormat::F32 } => format!("state {name}"),
            Operation::State { name, format } => format!("state {name} {format}"),
            Operation::Constant { data } => constant(data),
            Operation::MatMul { a, b } => format!("{name}({}, {})", factor(*a), factor(*b)),
            Operation::Linear { a, b, tail } => format!("{name}({}, {}{})", factor(*a), factor(*b), tail_text(tail)),
            Operation::LinearPanels { a, b, format, tail } => {
                let format = if *format == PanelFormat::F32 { String::new() } else { format!(", weights {format}") };
                format!("{name}({}{format}{})", nodes(&[*a, *b]), tail_text(tail))
            }
            Operation::Chain { before, last } => {
                let before: String = before.iter().map(|(node, step)| format!("%{node} = {} | ", step.text())).collect();
                format!("{name}({before}{})", last.text())
            }
            Operation::Scale { x, factor } => format!("{name}(%{x}, {factor})"),
            Operation::Reduce { axes: ReduceAxes::Axis(axis), x } => format!("{name}(%{x}, axis {axis})"),
            Operation::Permute { x, order } => {
                let order: Vec<String> = order.iter().map(usize::to_string).collect();
                format!("{name}(%{x}, order {})", order.join(" "))
            }
            Operation::Slice { x, axis, start } => format!("{name}(%{x}, axis {axis}, from {start})"),
            Operation::Concat { parts, axis } => format!("{name}({}, axis {axis})", nodes(parts)),
            Operation::LayerNorm { x, gain, bias, epsilon } => format!("{name}({}, epsilon {epsilon:e})", nodes(&[*x, *gain, *bias])),
            Operation::RmsNorm { x, gain, epsilon } => format!("{name}({}, epsilon {epsilon:e})", nodes(&[*x, *gain])),
            Operation::Attention { q, k, v, mask, heads } => {
                let operands = [q, k, v].map(columns).join(", ");
                let mask = mask.map_or(String::new(), |mask| format!(", mask %{mask}"));
                format!("{name}({operands}{mask}, {})", heads_text(heads))
            }
            Operation::AttentionCached { q, k, v, caches, spans, heads, .. } => {
                let operands = [q, k, v].map(columns).join(", ");
                format!("{name}({operands}, {}, {})", nodes(&[caches[0], caches[1], *spans]), heads_text(heads))
            }
            Operation::Rotary { x, positions, heads, base } => format!("{name}({}, heads {heads}, base {base})", nodes(&[*x, *positions])),
            other => format!("{name}({})", nodes(&other.operands())),
        }
    }

    /// The operation's name in text and errors.
    pub(super) fn name(&self) -> String {
        let plain = match self {
            Operation::Input { .. } => "input",
            Operation::Indices { .. } => "indices",
            Operation::Parameter { .. } => "parameter",
            Operation::State { .. } => "state",
            Operation::Constant { .. } => "constant",
            Operation::MatMul { .. } => "matmul",
            Operation::Linear { .. } => "linear",
            Operation::LinearPanels { .. } => "linear_panels",
            Operation::Binary { op, .. } => op.name(),
            Operation::Scale { .. } => "scale",
            Operation::Activate { activation, .. } => activation_name(*activation),
            Operation::ActivationGrad { activation, .. } => return format!("{}_grad", activation_name(*activation)),
            Operation::Chain { .. } => "chain",
            Operation::Reduce { axes, .. } => axes.name(),
            Operation::Broadcast { .. } => "broadcast",
            Operation::Gather { .. } => "gather",
            Operation::Reshape { .. } => "reshape",
            Operation::Permute { .. } => "permute",
            Operation::Slice { .. } => "slice",
            Operation::Concat { .. } => "concat",
            Operation::Softmax { .. } => "softmax",
            Operation::LayerNorm { .. } => "layer_norm",
            Operation::RmsNorm { .. } => "rms_norm",
            Operation::Attention { .. } => "attention",
            Operation::AttentionCached { .. } => "attention_cached",
            Operation::Rotary { .. } => "rotary",
        };
        plain.to_owned()
    }
}

impl ReduceAxes {
    fn name(self) -> &'static str {
        match self {
            ReduceAxes::All => "sum",
            ReduceAxes::Rows => "sum_over_rows",
            ReduceAxes::Columns => "sum_over_columns",
            ReduceAxes::Axis(_) => "sum_axis",
        }
    }
}

/// An activation's name in the op table; empty for `None`.
pub(super) fn activation_name(activation: Activation) -> &'static str {
    match activation {
        Activation::None => "",
        Activation::Relu => "relu",
        Activation::Tanh => "tanh",
        Activation::Sigmoid => "sigmoid",
        Activation::Gelu => "gelu",
        Activation::GeluErf => "gelu_erf",
        Activation::Silu => "silu",
    }
}

fn nodes(nodes: &[Node]) -> String {
    nodes.iter().map(|node| format!("%{node}")).collect::<Vec<_>>().join(", ")
}

fn columns(columns: &ColumnSlice) -> String {
    let start = if columns.start == 0 { String::new() } else { format!("@{}", columns.start) };
    format!("%{}{start}", columns.node)
}

fn heads_text(heads: &Heads) -> String {
    let Heads { count, kv, width, scale, causal } = heads;
    let causal = if *causal { ", causal" } else { "" };
    format!("heads {count}, kv {kv}, width {width}, scale {scale}{causal}")
}

fn factor(factor: Factor) -> String {
    format!("%{}{}", factor.node, if factor.transposed { "ᵀ" } else { "" })
}

fn tail_text(tail: &LinearEpilogue) -> String {
    let bias = tail.bias.map_or(String::new(), |node| format!(", bias %{node}"));
    let activation = if tail.activation == Activation::None { String::new() } else { format!(", {}", activation_name(tail.activation)) };
    let residual = tail.residual.map_or(String::new(), |node| format!(", residual %{node}"));
    bias + &activation + &residual
}

fn constant(data: &[f32]) -> String {
    let mut values: Vec<_> = data.iter().take(MAX_SHOWN).map(f32::to_string).collect();
    if data.len() > MAX_SHOWN {
        values.push("…".to_owned());
    }
    format!("constant({})", values.join(", "))
}
