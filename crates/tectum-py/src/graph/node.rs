//! Values of a graph, with the operators of Python.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tectum::Result;
use tectum_graph::{BinaryOp, Factor, GraphBuilder, Reduction, Shape};

use super::{Shared, shape_of, shape_to_python};
use crate::body::locked;
use crate::error::OrRaise;
use crate::sequence::Sequence;

/// A value of a graph: what an operation computes.
///
/// Operators work element by element, `@` multiplies matrices; numbers are constants. `.T` is the
/// transpose of a matrix in a product. Functions are methods.
///
/// >>> import tectum as tt
/// >>> graph = tt.Graph()
/// >>> x = graph.input("x", ("B", 3))
/// >>> ((x @ graph.parameter("w", (3, 2)) + 1.0).relu() / 2).shape
/// ('B', 2)
#[pyclass(frozen, from_py_object, module = "tectum")]
#[derive(Clone)]
pub struct Node {
    builder: Shared,
    pub node: tectum_graph::Node,
    /// Whether products read it transposed.
    is_transposed: bool,
}

/// An operand: a node, or a number.
#[derive(FromPyObject)]
pub enum Operand {
    Node(Node),
    Number(f32),
}

impl Node {
    /// Adds an operation to a graph.
    pub fn add(
        builder: &Shared,
        operation: impl FnOnce(&mut GraphBuilder) -> Result<tectum_graph::Node>,
    ) -> PyResult<Self> {
        let node = operation(&mut locked(builder)).or_raise()?;
        Ok(Self {
            builder: builder.clone(),
            node,
            is_transposed: false,
        })
    }

    fn map(
        &self,
        operation: impl FnOnce(&mut GraphBuilder, tectum_graph::Node) -> Result<tectum_graph::Node>,
    ) -> PyResult<Self> {
        self.plain()?;
        Self::add(&self.builder, |graph| operation(graph, self.node))
    }

    fn plain(&self) -> PyResult<()> {
        if self.is_transposed {
            Err(PyTypeError::new_err(
                "a transposed node is only an operand of @; permute moves its elements",
            ))
        } else {
            Ok(())
        }
    }

    fn binary(&self, op: BinaryOp, other: &Operand, is_reversed: bool) -> PyResult<Self> {
        self.plain()?;
        if let Operand::Node(other) = other {
            other.plain()?;
        }
        Self::add(&self.builder, |graph| {
            let other = match other {
                Operand::Node(other) => other.node,
                Operand::Number(number) => graph.constant(&[*number], [1])?,
            };
            let (a, b) = if is_reversed {
                (other, self.node)
            } else {
                (self.node, other)
            };
            graph.binary(op, a, b)
        })
    }

    fn factor(&self) -> Factor {
        if self.is_transposed {
            self.node.transpose()
        } else {
            self.node.into()
        }
    }

    /// An axis counted from the front; negative ones from the back.
    fn axis(&self, axis: isize) -> PyResult<usize> {
        let rank = locked(&self.builder).shape_of(self.node).or_raise()?.rank();
        let place = if axis < 0 { axis + rank as isize } else { axis };
        usize::try_from(place)
            .ok()
            .filter(|place| *place < rank)
            .ok_or_else(|| PyValueError::new_err(format!("axis {axis} of {rank} dimensions")))
    }

    fn reduced(&self, reduction: Reduction, axis: isize) -> PyResult<Self> {
        let axis = self.axis(axis)?;
        self.map(|graph, x| {
            let reduced = graph.reduce_axes(reduction, x, &[axis])?;
            let mut dims = graph.shape_of(reduced)?.dims().to_vec();
            dims.remove(axis);
            graph.reshape(reduced, Shape::of(&dims))
        })
    }
}

#[pymethods]
impl Node {
    /// Sizes, and letters for dimensions without one.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        shape_to_python(py, locked(&self.builder).shape_of(self.node).or_raise()?)
    }

    /// The transpose of a matrix, for `@`.
    #[getter(T)]
    fn transposed(&self) -> Self {
        Self {
            is_transposed: !self.is_transposed,
            ..self.clone()
        }
    }

    fn __add__(&self, other: Operand) -> PyResult<Self> {
        self.binary(BinaryOp::Add, &other, false)
    }

    fn __radd__(&self, other: Operand) -> PyResult<Self> {
        self.binary(BinaryOp::Add, &other, true)
    }

    fn __sub__(&self, other: Operand) -> PyResult<Self> {
        self.binary(BinaryOp::Sub, &other, false)
    }

    fn __rsub__(&self, other: Operand) -> PyResult<Self> {
        self.binary(BinaryOp::Sub, &other, true)
    }

    fn __mul__(&self, other: Operand) -> PyResult<Self> {
        match other {
            Operand::Number(factor) => self.map(|graph, x| graph.scale(x, factor)),
            Operand::Node(_) => self.binary(BinaryOp::Mul, &other, false),
        }
    }

    fn __rmul__(&self, other: Operand) -> PyResult<Self> {
        self.__mul__(other)
    }

    fn __truediv__(&self, other: Operand) -> PyResult<Self> {
        self.binary(BinaryOp::Div, &other, false)
    }

    fn __rtruediv__(&self, other: Operand) -> PyResult<Self> {
        self.binary(BinaryOp::Div, &other, true)
    }

    fn __pow__(&self, other: Operand, modulo: Option<Py<PyAny>>) -> PyResult<Self> {
        match modulo {
            None => self.binary(BinaryOp::Pow, &other, false),
            Some(_) => Err(PyTypeError::new_err("pow: a modulus is not possible")),
        }
    }

    fn __neg__(&self) -> PyResult<Self> {
        self.map(|graph, x| graph.scale(x, -1.0))
    }

    fn __matmul__(&self, other: &Self) -> PyResult<Self> {
        Self::add(&self.builder, |graph| {
            graph.matmul(self.factor(), other.factor())
        })
    }

    /// The maximum of two values, element by element.
    fn maximum(&self, other: Operand) -> PyResult<Self> {
        self.binary(BinaryOp::Max, &other, false)
    }

    /// The minimum of two values, element by element.
    fn minimum(&self, other: Operand) -> PyResult<Self> {
        self.binary(BinaryOp::Min, &other, false)
    }

    /// A function of each element by its name: exp, log, sqrt, erf, abs, sign, floor, ceil, round,
    /// sin, cos, tan, their inverses and hyperbolic forms, reciprocal, or an activation. Raises
    /// ValueError listing the names.
    fn apply(&self, name: &str) -> PyResult<Self> {
        self.map(|graph, x| graph.apply(name, x))
    }

    /// max(x, 0)
    fn relu(&self) -> PyResult<Self> {
        self.apply("relu")
    }

    /// tanh(x)
    fn tanh(&self) -> PyResult<Self> {
        self.apply("tanh")
    }

    /// 1 / (1 + exp(-x))
    fn sigmoid(&self) -> PyResult<Self> {
        self.apply("sigmoid")
    }

    /// The tanh form of GELU.
    fn gelu(&self) -> PyResult<Self> {
        self.apply("gelu")
    }

    /// x / (1 + exp(-x))
    fn silu(&self) -> PyResult<Self> {
        self.apply("silu")
    }

    /// exp(x)
    fn exp(&self) -> PyResult<Self> {
        self.apply("exp")
    }

    /// The natural logarithm.
    fn log(&self) -> PyResult<Self> {
        self.apply("log")
    }

    /// The square root.
    fn sqrt(&self) -> PyResult<Self> {
        self.apply("sqrt")
    }

    /// exp(x) divided by its sum along an axis.
    #[pyo3(signature = (axis = -1))]
    fn softmax(&self, axis: isize) -> PyResult<Self> {
        let axis = self.axis(axis)?;
        self.map(|graph, x| graph.softmax(x, axis))
    }

    /// The sum along an axis, which is removed; without one the sum of all elements, of shape (1,
    /// 1).
    #[pyo3(signature = (axis = None))]
    fn sum(&self, axis: Option<isize>) -> PyResult<Self> {
        match axis {
            None => self.map(GraphBuilder::sum),
            Some(axis) => self.reduced(Reduction::Sum, axis),
        }
    }

    /// The mean of all elements, of shape (1, 1).
    fn mean(&self) -> PyResult<Self> {
        self.map(GraphBuilder::mean)
    }

    /// The maximum along an axis, which is removed.
    #[pyo3(signature = (axis = -1))]
    fn max(&self, axis: isize) -> PyResult<Self> {
        self.reduced(Reduction::Max, axis)
    }

    /// The minimum along an axis, which is removed.
    #[pyo3(signature = (axis = -1))]
    fn min(&self, axis: isize) -> PyResult<Self> {
        self.reduced(Reduction::Min, axis)
    }

    /// The same elements in another shape.
    fn reshape(&self, shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        let shape = shape_of(shape)?;
        self.map(|graph, x| graph.reshape(x, shape))
    }

    /// The axes in another order.
    fn permute(&self, order: Sequence<usize>) -> PyResult<Self> {
        let Sequence(order) = order;
        self.map(|graph, x| graph.permute(x, &order))
    }

    /// `length` elements of an axis from `start` on.
    fn slice(&self, axis: isize, start: usize, length: usize) -> PyResult<Self> {
        let axis = self.axis(axis)?;
        self.map(|graph, x| graph.slice(x, axis, start, length))
    }

    fn __repr__(&self) -> PyResult<String> {
        let shape = locked(&self.builder).shape_of(self.node).or_raise()?;
        Ok(format!("<tectum node %{} {shape:?}>", self.node))
    }
}
