//! The operations of a graph: one file each, with the builder method that adds it and its shape
//! rule, its text form, its meaning in float64, its gradient and its launches. A new operation is a
//! new file, and its name in the list below.

pub(crate) mod activate;
mod activation_grad;
mod attention;
mod attention_cached;
mod average;
mod binary;
mod bitcast;
mod broadcast;
mod chain;
mod compare;
mod concat;
mod constant;
mod convert;
mod convolution;
mod cumsum;
mod custom;
mod elementwise;
mod fed;
mod gather;
mod integer;
mod integer_constant;
mod layer_norm;
mod linear;
mod linear_panels;
mod logsumexp;
mod matmul;
mod max_over_columns;
mod one_hot;
mod permute;
mod pool;
mod random;
mod reduce;
mod reduce_rows;
mod reshape;
mod rms_norm;
mod rotary;
mod scale;
mod scatter;
mod segment_sum;
mod select;
mod slice;
mod softmax;
mod top_k;
mod unary;

use std::borrow::Cow;

use tectum::{DType, Result, View};

use super::builder::GraphBuilder;
use super::differentiate::{Adjoints, no_derivative, no_derivative_of_fused};
use super::lower::Lowering;
use super::parse::CallText;
use super::tensor::{Tensor, Values};
use super::{Dim, Graph, Node, Shape};

pub(crate) use attention::ColumnSlice;
pub use attention::Heads;
pub use binary::BinaryOp;
pub(crate) use chain::{MAX_STEPS, Steps};
pub use compare::Comparison;
pub(crate) use convolution::{filter_panels_shape, packed_sizes};
pub(crate) use custom::AnyCustomOp;
pub use custom::CustomOp;
pub(crate) use fed::{Fed, FedKind};
pub use integer::IntegerOp;
pub(crate) use linear::LinearEpilogue;
pub(crate) use linear_panels::panels_shape;
pub use matmul::Factor;
pub use pool::PoolKind;
pub use random::Distribution;
#[cfg(test)]
pub(crate) use reduce::ReduceAxes;
pub use reduce_rows::Reduction;
pub use unary::Function;

use elementwise::Elementwise;

/// Where an operation's element type comes from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ValueType {
    Is(DType),
    /// That of an operand.
    Of(Node),
}

/// What the passes, the evaluator and the lowering ask of an operation.
pub(crate) trait Op {
    /// Its operands and settings in text; `operands` are its plain operands.
    fn arguments(&self, operands: String) -> String {
        operands
    }

    /// The nodes it reads, one entry for each use, to replace them.
    fn operands_mut(&mut self) -> Vec<&mut Node>;

    /// Its value in float64.
    ///
    /// # Errors
    /// `Invalid` if the value must be fed, `Unsupported` if it has no definition.
    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor>;

    /// Passes its adjoint `g` to its operands.
    ///
    /// # Errors
    /// `Unsupported` if it has no derivative, `Invalid` if it is a product of passes.
    fn differentiate(&self, node: Node, g: Node, pass: &mut Adjoints) -> Result<()>;

    /// Records the launches that compute its value in `y`; none for a value that is fed or
    /// constant.
    fn lower(&self, lowering: &mut Lowering<'_>, shape: Shape, y: View) -> Result<()>;

    /// The element type of its value.
    fn element(&self) -> ValueType {
        ValueType::Is(DType::F32)
    }

    /// Its entry in the op table, if it works element by element.
    fn elementwise(&self) -> Option<Elementwise> {
        None
    }

    /// Whether its value may share the memory of its operands.
    fn is_view(&self) -> bool {
        false
    }

    /// The view of its value if no launch is needed.
    fn alias(&self, _lowering: &Lowering<'_>, _shape: Shape) -> Option<View> {
        None
    }

    /// Whether it writes to a state.
    fn writes_state(&self) -> bool {
        false
    }

    /// Operands of which it can read some of the columns.
    fn columns_mut(&mut self) -> &mut [ColumnSlice] {
        &mut []
    }

    /// How many rows the numbers of an operand select from; none for operands of other kinds.
    fn rows(&self, _graph: &Graph, _indices: Node, _shape: Shape) -> Option<usize> {
        None
    }

    /// A smaller operation with the same value.
    fn simpler(&self, _graph: &Graph, _shape: Shape) -> Option<Operation> {
        None
    }

    /// Refuses an operation that does not fit its operands now that letters have sizes.
    fn check_bound(&self, _graph: &Graph, _shape: Shape) -> Result<()> {
        Ok(())
    }
}

/// An operation that text writes as `name(arguments)`.
trait Call: Op {
    /// Its name, or that of its family if a setting gives the name.
    const NAME: &'static str;

    /// Its name in text and errors.
    fn name(&self) -> Cow<'static, str> {
        Self::NAME.into()
    }

    /// Whether text calls it by this name.
    fn is_named(name: &str) -> bool {
        name == Self::NAME
    }

    /// Adds the operation of a text; `shape` is the stated one.
    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node>;
}

/// Makes the enum of all operations, and what selects among them.
macro_rules! operations {
    ($($module:ident::$name:ident,)*) => {
        $(pub(crate) use $module::$name;)*

        /// An operation with its operands.
        #[derive(Debug, Clone)]
        pub(crate) enum Operation {
            Fed(Fed),
            $($name($name),)*
        }

        impl std::ops::Deref for Operation {
            type Target = dyn Op;

            fn deref(&self) -> &Self::Target {
                match self {
                    Operation::Fed(operation) => operation,
                    $(Operation::$name(operation) => operation,)*
                }
            }
        }

        impl std::ops::DerefMut for Operation {
            fn deref_mut(&mut self) -> &mut Self::Target {
                match self {
                    Operation::Fed(operation) => operation,
                    $(Operation::$name(operation) => operation,)*
                }
            }
        }

        $(impl From<$name> for Operation {
            fn from(operation: $name) -> Self {
                Operation::$name(operation)
            }
        })*

        impl Operation {
            /// Its name in text and errors.
            pub(crate) fn name(&self) -> Cow<'static, str> {
                match self {
                    Operation::Fed(operation) => operation.kind.name().into(),
                    $(Operation::$name(operation) => operation.name(),)*
                }
            }

            /// Adds the operation of a text `name(arguments)`.
            pub(crate) fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, shape: Shape) -> Result<Node> {
                match text.name {
                    $(name if $name::is_named(name) => $name::parse(builder, text, shape),)*
                    _ => Err(text.unknown()),
                }
            }
        }
    };
}

operations! {
    activate::Activate,
    activation_grad::ActivationGrad,
    attention::Attention,
    attention_cached::AttentionCached,
    average::Average,
    binary::Binary,
    bitcast::Bitcast,
    broadcast::Broadcast,
    chain::Chain,
    compare::Compare,
    concat::Concat,
    constant::Constant,
    convert::Convert,
    convolution::Convolution,
    cumsum::CumSum,
    custom::Custom,
    gather::Gather,
    integer::Integer,
    integer_constant::IntegerConstant,
    layer_norm::LayerNorm,
    linear::Linear,
    linear_panels::LinearPanels,
    logsumexp::LogSumExp,
    matmul::MatMul,
    max_over_columns::MaxOverColumns,
    one_hot::OneHot,
    permute::Permute,
    pool::Pool,
    random::Random,
    reduce::Reduce,
    reduce_rows::ReduceRows,
    reshape::Reshape,
    rms_norm::RmsNorm,
    rotary::Rotary,
    scale::Scale,
    scatter::Scatter,
    segment_sum::SegmentSum,
    select::Select,
    slice::Slice,
    softmax::Softmax,
    top_k::TopK,
    unary::Unary,
}

impl Operation {
    /// The operation with its operands, as in a line of the text.
    pub(crate) fn text(&self) -> String {
        match self {
            Operation::Fed(fed) => fed.text(),
            _ => format!(
                "{}({})",
                self.name(),
                self.arguments(nodes(&self.operands()))
            ),
        }
    }

    /// Whether its value is stored with the plan.
    pub(crate) fn is_constant(&self) -> bool {
        matches!(self, Operation::Constant(_) | Operation::IntegerConstant(_))
    }

    /// The element type of its value.
    pub(crate) fn dtype(&self, graph: &Graph) -> DType {
        let mut operation = self;
        loop {
            match operation.element() {
                ValueType::Is(dtype) => return dtype,
                ValueType::Of(operand) => operation = &graph.nodes[&operand].operation,
            }
        }
    }

    /// The nodes it reads, one entry for each use.
    pub(crate) fn operands(&self) -> Vec<Node> {
        self.clone()
            .operands_mut()
            .into_iter()
            .map(|operand| *operand)
            .collect()
    }
}

/// Operands in text.
fn nodes(nodes: &[Node]) -> String {
    nodes
        .iter()
        .map(|node| format!("%{node}"))
        .collect::<Vec<_>>()
        .join(", ")
}
