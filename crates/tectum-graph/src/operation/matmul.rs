//! Matrix products: of two matrices, of many rows with one matrix, or one for each matrix of a
//! batch.

use tectum::{GemmEpilogue, Matrices, Matrix};

use super::{
    Adjoints, Call, CallText, Dim, Graph, GraphBuilder, Lowering, Node, Op, Result, Shape, Tensor,
    Values, View,
};

/// An operand of a matrix product: a value, or its transpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Factor {
    pub(crate) node: Node,
    pub(crate) transposed: bool,
}

impl From<Node> for Factor {
    fn from(node: Node) -> Self {
        Self {
            node,
            transposed: false,
        }
    }
}

impl Node {
    /// The value as the transpose of itself, for [`GraphBuilder::matmul`]; no data is moved.
    #[must_use]
    pub fn transpose(self) -> Factor {
        Factor {
            node: self,
            transposed: true,
        }
    }
}

impl Factor {
    /// Rows and columns as the product reads them.
    fn oriented(self, shape: Shape) -> [Dim; 2] {
        let dims = shape.dims();
        let (rows, cols) = (dims[dims.len() - 2], dims[dims.len() - 1]);
        if self.transposed {
            [cols, rows]
        } else {
            [rows, cols]
        }
    }

    fn flipped(self) -> Self {
        Self {
            transposed: !self.transposed,
            ..self
        }
    }

    /// The element of a matrix of a batch; the batch may share one matrix.
    fn element(self, value: &Tensor, matrix: usize, [row, col]: [usize; 2]) -> f64 {
        let [rows, cols] = last_two(value.shape);
        let matrix = matrix % (value.data.len() / (rows * cols));
        value.data[matrix * rows * cols
            + if self.transposed {
                col * cols + row
            } else {
                row * cols + col
            }]
    }

    pub(super) fn text(self) -> String {
        format!("%{}{}", self.node, if self.transposed { "ᵀ" } else { "" })
    }

    pub(super) fn parse(text: &CallText<'_>, index: usize) -> Result<Self> {
        match text.at(index)?.strip_suffix('ᵀ') {
            Some(node) => Ok(text.reference(node)?.transpose()),
            None => Ok(text.node(index)?.into()),
        }
    }
}

fn last_two(shape: Shape) -> [usize; 2] {
    let sizes = shape.fixed();
    [sizes[sizes.len() - 2], sizes[sizes.len() - 1]]
}

/// The product a·b.
#[derive(Debug, Clone, Copy)]
pub(crate) struct MatMul {
    pub a: Factor,
    pub b: Factor,
}

impl Op for MatMul {
    fn arguments(&self, _: String) -> String {
        format!("{}, {}", self.a.text(), self.b.text())
    }

    fn operands_mut(&mut self) -> Vec<&mut Node> {
        vec![&mut self.a.node, &mut self.b.node]
    }

    fn evaluate(&self, shape: Shape, values: &Values) -> Result<Tensor> {
        let (a, b) = (&values[&self.a.node], &values[&self.b.node]);
        let [rows, cols] = last_two(shape);
        let inner = last_two(a.shape)[usize::from(!self.a.transposed)];
        Ok(Tensor::from_fn(shape, |place| {
            let (matrix, row, col) = (place / (rows * cols), place / cols % rows, place % cols);
            (0..inner)
                .map(|k| self.a.element(a, matrix, [row, k]) * self.b.element(b, matrix, [k, col]))
                .sum()
        }))
    }

    /// C = A·B, for each matrix of a batch, or with the dimensions of A before its last two taken
    /// as rows: dA = G·Bᵀ, dB = Aᵀ·G, each transposed again where the factor was.
    fn differentiate(&self, _: Node, g: Node, pass: &mut Adjoints) -> Result<()> {
        let Self { a, b } = *self;
        let is_batched = pass.builder.graph().is_batched(a, b);
        pass.give(a.node, |pass| match a.transposed {
            false => pass.builder.matmul(g, b.flipped()),
            true => pass.builder.matmul(b, g.transpose()),
        })?;
        let [a_shape, g_shape] = [a.node, g].map(|node| pass.builder.graph().shape(node));
        let (a_shape, g_shape) = (a_shape?, g_shape?);
        let (a, g) = match a_shape.rank() {
            _ if is_batched => (a, g),
            2 => (a, g),
            _ => (
                pass.builder.reshape(a.node, a_shape.matrix())?.into(),
                pass.builder.reshape(g, g_shape.matrix())?,
            ),
        };
        pass.give(b.node, |pass| match b.transposed {
            false => pass.builder.matmul(a.flipped(), g),
            true => pass.builder.matmul(g.transpose(), a),
        })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: Shape, y: View) -> Result<()> {
        if !lowering.graph.is_batched(self.a, self.b) {
            return self.launch(lowering, GemmEpilogue::default(), y);
        }
        let operand = |factor: Factor| {
            let shape = lowering.shape(factor.node);
            let [rows, cols] = last_two(shape);
            let count = shape.fixed()[..shape.rank() - 2].iter().product();
            let matrices = Matrices::new(lowering.views[&factor.node], count, rows, cols);
            if factor.transposed {
                matrices.transpose()
            } else {
                matrices
            }
        };
        let (a, b) = (operand(self.a), operand(self.b));
        lowering.plan.gemm_batched(a, b, y)
    }
}

impl MatMul {
    /// Records a product with its tail. A vector goes to the matrix-vector kernel if the matrix has
    /// the layout that this kernel reads.
    pub(super) fn launch(
        &self,
        lowering: &mut Lowering<'_>,
        tail: GemmEpilogue,
        y: View,
    ) -> Result<()> {
        let Self { a, b } = *self;
        let [a_sizes, b_sizes] = [a, b].map(|factor| lowering.shape(factor.node).matrix());
        let [a_view, b_view] = [a, b].map(|factor| lowering.views[&factor.node]);
        let (m, n) = (
            a_sizes[usize::from(a.transposed)],
            b_sizes[usize::from(!b.transposed)],
        );
        if m == 1 && b.transposed {
            lowering.plan.matvec(b_view, a_view, y, tail)
        } else if n == 1 && !a.transposed && tail.bias.is_none() {
            lowering.plan.matvec(a_view, b_view, y, tail)
        } else {
            let matrix = |factor: Factor, view, [rows, cols]: [usize; 2]| {
                let matrix = Matrix::new(view, rows, cols);
                if factor.transposed {
                    matrix.transpose()
                } else {
                    matrix
                }
            };
            lowering.plan.gemm(
                matrix(a, a_view, a_sizes),
                matrix(b, b_view, b_sizes),
                y,
                tail,
            )
        }
    }
}

impl Call for MatMul {
    const NAME: &'static str = "matmul";

    fn parse(builder: &mut GraphBuilder, text: &CallText<'_>, _: Shape) -> Result<Node> {
        builder.matmul(Factor::parse(text, 0)?, Factor::parse(text, 1)?)
    }
}

impl GraphBuilder {
    /// Adds the product a·b; either operand may be [transposed](Node::transpose) in its last two
    /// dimensions.
    ///
    /// # Shapes
    /// `a` [.., m, k], `b` [k, n], after transposition; gives [.., m, n]. Or one product for each
    /// matrix of a batch: `a` [.., m, k], `b` [.., k, n] with the same leading dimensions.
    /// # Errors
    /// `Invalid` if the inner sizes or the leading dimensions differ, `a` is transposed and has
    /// more dimensions than `b`, or a node is not of this graph.
    pub fn matmul(&mut self, a: impl Into<Factor>, b: impl Into<Factor>) -> Result<Node> {
        let (a, b) = (a.into(), b.into());
        let shape = self.product_shape("matmul", a, b)?;
        Ok(self.push(MatMul { a, b }, shape))
    }

    /// The shape of a product whose operands fit.
    pub(super) fn product_shape(&self, op: &str, a: Factor, b: Factor) -> Result<Shape> {
        let (a_shape, b_shape) = (self.shape(op, a.node)?, self.shape(op, b.node)?);
        if a_shape.rank() < 2 || b_shape.rank() < 2 {
            return Err(self.fault(format_args!(
                "{op}: lhs {a_shape:?}, rhs {b_shape:?}: at least two dimensions are needed"
            )));
        }
        let ([m, k], [b_rows, n]) = (a.oriented(a_shape), b.oriented(b_shape));
        let before = |shape: Shape| shape.dims()[..shape.rank() - 2].to_vec();
        let shown = |shape: Shape, [rows, cols]: [Dim; 2]| {
            Shape::of(&[&before(shape)[..], &[rows, cols]].concat())
        };
        let (a_shown, b_shown) = (shown(a_shape, [m, k]), shown(b_shape, [b_rows, n]));
        if k != b_rows {
            return Err(self.fault(format_args!(
                "{op}: lhs {a_shown:?}, rhs {b_shown:?}: inner sizes {k:?} and {b_rows:?} differ"
            )));
        }
        let is_shared = b_shape.rank() == 2 && (a_shape.rank() == 2 || !a.transposed);
        if !is_shared && before(a_shape) != before(b_shape) {
            return Err(self.fault(format_args!(
                "{op}: lhs {a_shown:?}, rhs {b_shown:?}: the dimensions before the matrices differ"
            )));
        }
        let shape = shown(a_shape, [m, n]);
        self.check_shape(op, shape)?;
        Ok(shape)
    }
}

impl Graph {
    /// Whether a product is batched, which has no tail.
    pub(crate) fn is_batched(&self, a: Factor, b: Factor) -> bool {
        self.nodes[&b.node].shape.rank() > 2
            || (a.transposed && self.nodes[&a.node].shape.rank() > 2)
    }
}
