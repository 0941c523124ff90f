//! Values of a graph, with the operators of Python.

use numpy::PyUntypedArray;
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PySlice, PyTuple};
use tectum::{Result, host_memory};
use tectum_graph::{BinaryOp, Dim, Factor, GraphBuilder, MAX_RANK, Reduction, Shape};

use super::{Shared, constant_shape, shape_of, shape_to_python};
use crate::array::floats;
use crate::error::OrRaise;
use crate::process;
use crate::sequence::{OneOrEach, Sequence, stated_len};
use crate::whole;

/// A value of a graph: what an operation computes.
///
/// Operators work element by element and broadcast as NumPy's do, `@` multiplies matrices; numbers
/// and arrays are constants. `x[0]`, `x[:, 1:3]`, `x[..., ::2]` and `x[None]` select as in NumPy,
/// without arrays as indices. `.T` is the transpose of a matrix in a product. Functions are
/// methods.
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

/// What an index selects of an axis.
enum Selected {
    All,
    /// One element: the axis is removed.
    One(usize),
    Run {
        start: usize,
        len: usize,
    },
    Places(Vec<usize>),
    /// A new axis of one element.
    New,
}

/// One axis, or several.
type Axes = OneOrEach<isize, isize>;

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
        let other = self.operand(py, other)?;
        other.plain()?;
        let (a, b) = if is_reversed {
            (other.node, self.node)
        } else {
            (self.node, other.node)
        };
        Self::add(py, &self.builder, |graph| graph.binary(op, a, b))
    }

    /// An operand as a node of the same graph.
    fn operand(&self, py: Python<'_>, operand: &Operand<'_>) -> PyResult<Self> {
        let _call = process::enter(py)?;
        let (values, shape) = match operand {
            Operand::Node(node) => return Ok(node.clone()),
            Operand::Number(number) => (vec![*number], [1].into()),
            Operand::Array(array) => {
                let array = floats(array, "operand")?;
                let shape = constant_shape(array.shape())?;
                (array.into_vec()?, shape)
            }
        };
        Self::add(py, &self.builder, |graph| graph.constant(&values, shape))
    }

    fn product(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        Self::add(py, &self.builder, |graph| {
            graph.matmul(self.factor(), other.factor())
        })
    }

    fn own_shape(&self, py: Python<'_>) -> PyResult<Shape> {
        let _call = process::enter(py)?;
        self.builder.lock(py)?.shape_of(self.node).or_raise()
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
        let rank = self.own_shape(py)?.rank();
        let place = if axis < 0 { axis + rank as isize } else { axis };
        usize::try_from(place)
            .ok()
            .filter(|place| *place < rank)
            .ok_or_else(|| PyValueError::new_err(format!("axis {axis} of {rank} dimensions")))
    }

    /// A reduction over axes, or over all: of sums, the mean if asked for.
    fn reduced(
        &self,
        py: Python<'_>,
        (reduction, is_mean): (Reduction, bool),
        axes: Option<&Axes>,
        keepdims: bool,
    ) -> PyResult<Self> {
        let shape = self.own_shape(py)?;
        let axes: Vec<usize> = match axes {
            None => (0..shape.rank()).collect(),
            Some(Axes::One(axis)) => vec![self.axis(py, *axis)?],
            Some(Axes::Each(axes)) => axes
                .iter()
                .map(|axis| self.axis(py, *axis))
                .collect::<PyResult<_>>()?,
        };
        self.map(py, |graph, x| {
            let mut reduced = graph.reduce_axes(reduction, x, &axes)?;
            if is_mean {
                reduced = graph.average(reduced, x)?;
            }
            if keepdims {
                return Ok(reduced);
            }
            let kept = shape.dims().iter().enumerate();
            let kept = kept.filter(|(axis, _)| !axes.contains(axis));
            let dims: Vec<Dim> = kept.map(|(_, dim)| *dim).collect();
            graph.reshape(reduced, Shape::of(&dims))
        })
    }

    /// What one index selects of an axis.
    fn selected(index: &Bound<'_, PyAny>, shape: Shape, axis: usize) -> PyResult<Selected> {
        let size = match shape.dims()[axis] {
            Dim::Size(size) => Some(size),
            Dim::Symbol(_) => None,
        };
        let unknown = || {
            PyValueError::new_err(format!(
                "axis {axis} of {shape:?} has no size yet: only `:` selects of it"
            ))
        };
        if let Ok(slice) = index.cast::<PySlice>() {
            let is_whole = ["start", "stop", "step"]
                .iter()
                .try_fold(true, |all, name| {
                    Ok::<_, PyErr>(all && slice.getattr(*name)?.is_none())
                })?;
            if is_whole {
                return Ok(Selected::All);
            }
            let size = size.ok_or_else(unknown)?;
            let found = slice.indices(size as isize)?;
            if found.slicelength == 0 {
                return Err(PyValueError::new_err(format!(
                    "{index} of axis {axis} of {shape:?} selects nothing"
                )));
            }
            let (start, len) = (found.start as usize, found.slicelength);
            return Ok(match (found.step, len == size) {
                (1, true) => Selected::All,
                (1, false) => Selected::Run { start, len },
                (step, _) => {
                    let mut places =
                        host_memory::with_capacity("the places of a slice", len).or_raise()?;
                    places.extend((0..len as isize).map(|k| (found.start + k * step) as usize));
                    Selected::Places(places)
                }
            });
        }
        let number = index.extract::<isize>().ok();
        let number = number.filter(|_| !index.is_instance_of::<PyBool>());
        let number = number.ok_or_else(|| {
            PyTypeError::new_err(format!(
                "an index is a number, a slice, ... or None, not {}; gather selects rows by their numbers",
                index.get_type()
            ))
        })?;
        let size = size.ok_or_else(unknown)?;
        let place = if number < 0 {
            number + size as isize
        } else {
            number
        };
        let place = usize::try_from(place).ok().filter(|place| *place < size);
        place.map(Selected::One).ok_or_else(|| {
            PyIndexError::new_err(format!("index {number} of axis {axis} of {shape:?}"))
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
        shape_to_python(py, self.own_shape(py)?)
    }

    /// The number of dimensions.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.own_shape(py)?.rank())
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        match self.own_shape(py)?.dims().first() {
            Some(Dim::Size(size)) => Ok(*size),
            _ => Err(PyTypeError::new_err(
                "a node without a first size has no len",
            )),
        }
    }

    fn __getitem__(&self, py: Python<'_>, index: &Bound<'_, PyAny>) -> PyResult<Self> {
        let shape = self.own_shape(py)?;
        let indices: Vec<Bound<'_, PyAny>> = match index.cast::<PyTuple>() {
            Ok(indices) => indices.iter().collect(),
            Err(_) => vec![index.clone()],
        };
        let is_ellipsis = |index: &&Bound<'_, PyAny>| index.is(py.Ellipsis());
        let ellipses = indices.iter().filter(is_ellipsis).count();
        let new = indices.iter().filter(|index| index.is_none()).count();
        let named = indices.len() - ellipses - new;
        if ellipses > 1 || named > shape.rank() {
            return Err(PyIndexError::new_err(format!(
                "{named} indices and {ellipses} `...` for {shape:?}"
            )));
        }
        let mut selected = Vec::new();
        for index in &indices {
            let axis = selected
                .iter()
                .filter(|part| !matches!(part, Selected::New))
                .count();
            if index.is_none() {
                selected.push(Selected::New);
            } else if is_ellipsis(&index) {
                selected.extend((named..shape.rank()).map(|_| Selected::All));
            } else {
                selected.push(Self::selected(index, shape, axis)?);
            }
        }
        self.map(py, |graph, x| {
            let (mut node, mut axis, mut dims, mut is_reshaped) = (x, 0, Vec::new(), false);
            for part in &selected {
                let (is_axis, is_kept) = match part {
                    Selected::All => (true, true),
                    Selected::One(place) => {
                        node = graph.slice(node, axis, *place, 1)?;
                        (true, false)
                    }
                    Selected::Run { start, len } => {
                        node = graph.slice(node, axis, *start, *len)?;
                        (true, true)
                    }
                    Selected::Places(places) => {
                        node = graph.take(node, axis, places)?;
                        (true, true)
                    }
                    Selected::New => (false, true),
                };
                if is_kept {
                    dims.push(if is_axis {
                        graph.shape_of(node)?.dims()[axis]
                    } else {
                        Dim::Size(1)
                    });
                }
                is_reshaped |= is_axis != is_kept;
                axis += usize::from(is_axis);
            }
            dims.extend_from_slice(&graph.shape_of(node)?.dims()[axis..]);
            if is_reshaped {
                graph.reshape(node, Shape::of(&dims))
            } else {
                Ok(node)
            }
        })
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

    fn __rpow__(
        &self,
        py: Python<'_>,
        other: Operand<'_>,
        modulo: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        match modulo {
            None => self.binary(py, BinaryOp::Pow, &other, true),
            Some(_) => Err(PyTypeError::new_err("pow: a modulus is not possible")),
        }
    }

    fn __abs__(&self, py: Python<'_>) -> PyResult<Self> {
        self.apply(py, "abs")
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<Self> {
        self.map(py, |graph, x| graph.scale(x, -1.0))
    }

    fn __matmul__(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        self.product(py, &self.operand(py, &other)?)
    }

    fn __rmatmul__(&self, py: Python<'_>, other: Operand<'_>) -> PyResult<Self> {
        self.operand(py, &other)?.product(py, self)
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

    /// The sum along an axis or several, which are removed unless `keepdims`; without an axis the
    /// sum of all elements, of shape (1, 1).
    #[pyo3(signature = (axis: "int | Sequence[int] | None" = None, keepdims = false))]
    fn sum(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::axis)] axis: Option<Axes>,
        keepdims: bool,
    ) -> PyResult<Self> {
        match axis {
            None if !keepdims => self.map(py, GraphBuilder::sum),
            axis => self.reduced(py, (Reduction::Sum, false), axis.as_ref(), keepdims),
        }
    }

    /// The mean along an axis or several, which are removed unless `keepdims`; without an axis the
    /// mean of all elements, of shape (1, 1).
    #[pyo3(signature = (axis: "int | Sequence[int] | None" = None, keepdims = false))]
    fn mean(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::axis)] axis: Option<Axes>,
        keepdims: bool,
    ) -> PyResult<Self> {
        match axis {
            None if !keepdims => self.map(py, GraphBuilder::mean),
            axis => self.reduced(py, (Reduction::Sum, true), axis.as_ref(), keepdims),
        }
    }

    /// The maximum along an axis or several, which are removed unless `keepdims`; of all for None.
    #[pyo3(signature = (axis: "int | Sequence[int] | None" = Some(Axes::One(-1)), keepdims = false))]
    fn max(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::axis)] axis: Option<Axes>,
        keepdims: bool,
    ) -> PyResult<Self> {
        self.reduced(py, (Reduction::Max, false), axis.as_ref(), keepdims)
    }

    /// The minimum along an axis or several, which are removed unless `keepdims`; of all for None.
    #[pyo3(signature = (axis: "int | Sequence[int] | None" = Some(Axes::One(-1)), keepdims = false))]
    fn min(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::axis)] axis: Option<Axes>,
        keepdims: bool,
    ) -> PyResult<Self> {
        self.reduced(py, (Reduction::Min, false), axis.as_ref(), keepdims)
    }

    /// The same elements in another shape: sizes, or one sequence of them. A size of -1 is what the
    /// others leave.
    #[pyo3(signature = (*shape: "int | str | Sequence[int | str]"))]
    fn reshape(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let dims = match shape.len() {
            1 => shape.get_item(0)?,
            _ => shape.clone().into_any(),
        };
        let dims = match dims.extract::<isize>() {
            Ok(_) => PyTuple::new(py, [dims])?.into_any(),
            Err(_) => dims,
        };
        // A sequence that states too many is refused before its elements are read.
        let is_short = stated_len(&dims) <= MAX_RANK;
        let rest = is_short
            && dims.try_iter().is_ok_and(|mut dims| {
                dims.any(|dim| {
                    dim.is_ok_and(|dim| dim.extract::<isize>().is_ok_and(|dim| dim == -1))
                })
            });
        if !rest {
            let shape = shape_of(&dims)?;
            return self.map(py, |graph, x| graph.reshape(x, shape));
        }
        let own = self.own_shape(py)?;
        let Sequence(sizes) = dims.extract::<Sequence<isize>>()?;
        let fault = || PyValueError::new_err(format!("{own:?} reshaped to {sizes:?}"));
        let elements = own.elements().ok_or_else(fault)?;
        let known = sizes.iter().filter(|size| **size != -1);
        let known = known.map(|size| usize::try_from(*size).ok());
        let product = known
            .clone()
            .try_fold(1usize, |product, size| product.checked_mul(size?));
        let product = product.filter(|product| *product > 0).ok_or_else(fault)?;
        if known.count() + 1 != sizes.len() || !elements.is_multiple_of(product) {
            return Err(fault());
        }
        let dims: Vec<Dim> = sizes
            .iter()
            .map(|size| Dim::Size(usize::try_from(*size).unwrap_or(elements / product)))
            .collect();
        self.map(py, |graph, x| graph.reshape(x, Shape::of(&dims)))
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
        let shape = self.own_shape(py)?;
        Ok(format!("<tectum node %{} {shape:?}>", self.node))
    }
}
