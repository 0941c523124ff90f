//! Values of a graph, with the operators of Python.

use numpy::PyUntypedArray;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tectum::Result;
use tectum_graph::{BinaryOp, Factor, GraphBuilder, Reduction, Shape};

use super::{Shared, constant_shape, shape_of, shape_to_python};
use crate::array::floats;
use crate::error::OrRaise;
use crate::process;
use crate::sequence::Sequence;
use crate::whole;

/// A value of a graph: what an operation computes.
///
/// Operators work element by element, `@` multiplies matrices; numbers and arrays are constants. `.T` is the
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

/// An operand: a node, or a constant.
#[derive(FromPyObject)]
pub enum Operand<'py> {
    Node(Node),
    Array(Bound<'py, PyUntypedArray>),
    Number(f32),
}

impl Node {
    /// Adds an operation to a graph.
    pub fn add(
        py: Python<'_>,
        builder: &Shared,
        operation: impl FnOnce(&mut GraphBuilder) -> Result<tectum_graph::Node>,
    ) -> PyResult<Self> {
        let _call = process::enter(py)?;
        let node = operation(&mut *builder.lock(py)?).or_raise()?;
        Ok(Self {
            builder: builder.clone(),
            node,
            is_transposed: false,
        })
    }

    fn map(
        &self,
        py: Python<'_>,
        operation: impl FnOnce(&mut GraphBuilder, tectum_graph::Node) -> Result<tectum_graph::Node>,
    ) -> PyResult<Self> {
        self.plain()?;
        Self::add(py, &self.builder, |graph| operation(graph, self.node))
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

    fn binary(
        &self,
        py: Python<'_>,
        op: BinaryOp,
        other: &Operand<'_>,
        is_reversed: bool,
    ) -> PyResult<Self> {
        self.plain()?;
        let _call = process::enter(py)?;
        let (values, shape) = match other {
            Operand::Node(other) => {
                other.plain()?;
                (Vec::new(), [1].into())
            }
            Operand::Number(number) => (vec![*number], [1].into()),
            Operand::Array(array) => {
                let array = floats(array, "operand")?;
                let shape = constant_shape(array.shape())?;
                (array.into_vec()?, shape)
            }
        };
        Self::add(py, &self.builder, |graph| {
            let other = match other {
                Operand::Node(other) => other.node,
                Operand::Array(_) | Operand::Number(_) => graph.constant(&values, shape)?,
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
    fn axis(&self, py: Python<'_>, axis: isize) -> PyResult<usize> {
        let _call = process::enter(py)?;
        let rank = self
            .builder
            .lock(py)?
            .shape_of(self.node)
            .or_raise()?
            .rank();
        let place = if axis < 0 { axis + rank as isize } else { axis };
        usize::try_from(place)
            .ok()
            .filter(|place| *place < rank)
            .ok_or_else(|| PyValueError::new_err(format!("axis {axis} of {rank} dimensions")))
    }

    fn reduced(&self, py: Python<'_>, reduction: Reduction, axis: isize) -> PyResult<Self> {
        let axis = self.axis(py, axis)?;
        self.map(py, |graph, x| {
            let reduced = graph.reduce_axes(reduction, x, &[axis])?;
            let mut dims = graph.shape_of(reduced)?.dims().to_vec();
            dims.remove(axis);
            graph.reshape(reduced, Shape::of(&dims))
        })
    }
}

#[pymethods]
impl Node {
    /// NumPy leaves operators with nodes to this class.
    #[classattr]
    fn __array_ufunc__() -> Option<bool> {
        None
    }

    /// Sizes, and letters for dimensions without one.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let _call = process::enter(py)?;
        let shape = self.builder.lock(py)?.shape_of(self.node).or_raise()?;
        shape_to_python(py, shape)
    }

    /// The transpose of a matrix, for `@`.
    #[getter(T)]
    fn transposed(&self) -> Self {
        Self {
            is_transposed: !self.is_transposed,
            ..self.clone()
        }
    }

    fn __add__(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        self.binary(py, BinaryOp::Add, &other, false)
    }

    fn __radd__(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        self.binary(py, BinaryOp::Add, &other, true)
    }

    fn __sub__(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        self.binary(py, BinaryOp::Sub, &other, false)
    }

    fn __rsub__(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        self.binary(py, BinaryOp::Sub, &other, true)
    }

    fn __mul__(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        match other {
            Operand::Number(factor) => self.map(py, |graph, x| graph.scale(x, factor)),
            Operand::Node(_) | Operand::Array(_) => self.binary(py, BinaryOp::Mul, &other, false),
        }
    }

    fn __rmul__(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        self.__mul__(py, other)
    }

    fn __truediv__(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        self.binary(py, BinaryOp::Div, &other, false)
    }

    fn __rtruediv__(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        self.binary(py, BinaryOp::Div, &other, true)
    }

    fn __pow__(
        &self,
        py: Python<'_>,
        other: Operand<'_>,
        modulo: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        match modulo {
            None => self.binary(py, BinaryOp::Pow, &other, false),
            Some(_) => Err(PyTypeError::new_err("pow: a modulus is not possible")),
        }
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<Self> {
        self.map(py, |graph, x| graph.scale(x, -1.0))
    }

    fn __matmul__(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        Self::add(py, &self.builder, |graph| {
            graph.matmul(self.factor(), other.factor())
        })
    }

    /// The maximum of two values, element by element.
    fn maximum(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        self.binary(py, BinaryOp::Max, &other, false)
    }

    /// The minimum of two values, element by element.
    fn minimum(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        self.binary(py, BinaryOp::Min, &other, false)
    }

    /// A function of each element by its name: exp, log, sqrt, erf, abs, sign, floor, ceil, round,
    /// sin, cos, tan, their inverses and hyperbolic forms, reciprocal, or an activation. Raises
    /// ValueError listing the names.
    fn apply(&self, py: Python<'_>, name: &str) -> PyResult<Self> {
        self.map(py, |graph, x| graph.apply(name, x))
    }

    /// max(x, 0)
    fn relu(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply(py, "relu")
    }

    /// tanh(x)
    fn tanh(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply(py, "tanh")
    }

    /// 1 / (1 + exp(-x))
    fn sigmoid(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply(py, "sigmoid")
    }

    /// The tanh form of GELU.
    fn gelu(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply(py, "gelu")
    }

    /// x / (1 + exp(-x))
    fn silu(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply(py, "silu")
    }

    /// exp(x)
    fn exp(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply(py, "exp")
    }

    /// The natural logarithm.
    fn log(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply(py, "log")
    }

    /// The square root.
    fn sqrt(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply(py, "sqrt")
    }

    /// exp(x) divided by its sum along an axis.
    #[pyo3(signature = (axis: "int" = -1))]
    fn softmax(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::axis)] axis: isize,
    ) -> PyResult<Self> {
        let axis = self.axis(py, axis)?;
        self.map(py, |graph, x| graph.softmax(x, axis))
    }

    /// The sum along an axis, which is removed; without one the sum of all elements, of shape (1,
    /// 1).
    #[pyo3(signature = (axis: "int | None" = None))]
    fn sum(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::axis)] axis: Option<isize>,
    ) -> PyResult<Self> {
        match axis {
            None => self.map(py, GraphBuilder::sum),
            Some(axis) => self.reduced(py, Reduction::Sum, axis),
        }
    }

    /// The mean of all elements, of shape (1, 1).
    fn mean(&self, py: Python<'_>) -> PyResult<Self> {
        self.map(py, GraphBuilder::mean)
    }

    /// The maximum along an axis, which is removed.
    #[pyo3(signature = (axis: "int" = -1))]
    fn max(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::axis)] axis: isize,
    ) -> PyResult<Self> {
        self.reduced(py, Reduction::Max, axis)
    }

    /// The minimum along an axis, which is removed.
    #[pyo3(signature = (axis: "int" = -1))]
    fn min(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::axis)] axis: isize,
    ) -> PyResult<Self> {
        self.reduced(py, Reduction::Min, axis)
    }

    /// The same elements in another shape.
    fn reshape(&self, py: Python<'_>, shape: &Bound<'_, PyAny>) -> PyResult<Self> {
        let shape = shape_of(shape)?;
        self.map(py, |graph, x| graph.reshape(x, shape))
    }

    /// The axes in another order.
    #[pyo3(signature = (order: "Sequence[int]"))]
    fn permute(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::order)] order: Sequence<usize>,
    ) -> PyResult<Self> {
        self.map(py, |graph, x| graph.permute(x, &order.0))
    }

    /// `length` elements of an axis from `start` on.
    #[pyo3(signature = (axis: "int", start: "int", length: "int"))]
    fn slice(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::axis)] axis: isize,
        #[pyo3(from_py_with = whole::start)] start: usize,
        #[pyo3(from_py_with = whole::length)] length: usize,
    ) -> PyResult<Self> {
        let axis = self.axis(py, axis)?;
        self.map(py, |graph, x| graph.slice(x, axis, start, length))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let _call = process::enter(py)?;
        let shape = self.builder.lock(py)?.shape_of(self.node).or_raise()?;
        Ok(format!("<tectum node %{} {shape:?}>", self.node))
    }
}
