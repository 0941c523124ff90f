//! A graph on a device.

use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::PyUntypedArrayMethods;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::PyDict;
use tectum::{DType, Device};
use tectum_graph::{CompiledGraph as Compiled, Graph, Shape};

use crate::array::{floats, integers, shaped};
use crate::error::OrRaise;
use crate::interrupt::detached;
use crate::receipt::{Receipt, Runs};

/// A value that is given or computed.
struct Port {
    name: String,
    shape: Vec<usize>,
    dtype: DType,
}

impl Port {
    fn new(
        graph: &Graph,
        (name, node, shape): (&str, tectum_graph::Node, Shape),
    ) -> tectum::Result<Self> {
        Ok(Self {
            name: name.to_owned(),
            shape: shape.sizes().unwrap_or_default(),
            dtype: graph.dtype(node)?,
        })
    }
}

/// Inputs of a run or a training step.
pub trait Inputs {
    /// Fills an input of floats.
    fn set_floats(&mut self, name: &str, data: &[f32]) -> tectum::Result<()>;
    /// Fills an input of row numbers.
    fn set_rows(&mut self, name: &str, data: &[u32]) -> tectum::Result<()>;
    /// Fills an input of integers.
    fn set_integers(&mut self, name: &str, data: &[i32]) -> tectum::Result<()>;
}

impl Inputs for Compiled {
    fn set_floats(&mut self, name: &str, data: &[f32]) -> tectum::Result<()> {
        self.set_input(name, data)
    }

    fn set_rows(&mut self, name: &str, data: &[u32]) -> tectum::Result<()> {
        self.set_indices(name, data)
    }

    fn set_integers(&mut self, name: &str, data: &[i32]) -> tectum::Result<()> {
        Self::set_integers(self, name, data)
    }
}

/// The inputs of a graph, by which arrays of Python are checked.
pub struct InputPorts {
    ports: Vec<Port>,
}

impl InputPorts {
    pub fn new(graph: &Graph) -> tectum::Result<Self> {
        Ok(Self {
            ports: graph
                .inputs()
                .map(|input| Port::new(graph, input))
                .collect::<tectum::Result<_>>()?,
        })
    }

    /// The first dimension of an input.
    pub fn batch(&self, name: &str) -> Option<usize> {
        self.ports
            .iter()
            .find(|port| port.name == name)
            .map(|port| port.shape.first().copied().unwrap_or(1))
    }

    /// Fills inputs by name; those that are not given keep their values.
    pub fn fill(&self, inputs: Option<&Bound<'_, PyDict>>, to: &mut impl Inputs) -> PyResult<()> {
        for (name, value) in inputs.into_iter().flatten() {
            let name: String = name.extract()?;
            let port = self
                .ports
                .iter()
                .find(|port| port.name == name)
                .ok_or_else(|| {
                    let known: Vec<&str> =
                        self.ports.iter().map(|port| port.name.as_str()).collect();
                    PyKeyError::new_err(format!(
                        "no input {name:?}; there are {}",
                        known.join(", ")
                    ))
                })?;
            match port.dtype {
                DType::F32 => {
                    let array = floats(&value, &name)?;
                    port.check(array.shape())?;
                    to.set_floats(&name, array.as_slice()?).or_raise()?;
                }
                dtype => {
                    let array = value
                        .py()
                        .import("numpy")?
                        .call_method1("asarray", (&value,))?;
                    port.check(&array.getattr("shape")?.extract::<Vec<usize>>()?)?;
                    let flat = array.call_method1("reshape", (-1,))?;
                    match dtype {
                        DType::U32 => to.set_rows(&name, &integers(&flat, &name)?).or_raise()?,
                        _ => to
                            .set_integers(&name, &integers(&flat, &name)?)
                            .or_raise()?,
                    }
                }
            }
        }
        Ok(())
    }
}

impl Port {
    fn check(&self, shape: &[usize]) -> PyResult<()> {
        if shape == self.shape {
            return Ok(());
        }
        Err(PyValueError::new_err(format!(
            "input {:?} has the shape {shape:?}, needs {:?}",
            self.name, self.shape
        )))
    }
}

/// The parameters of a graph as a dict of arrays, read one by one.
pub fn parameters<'py>(
    py: Python<'py>,
    graph: &Graph,
    read: impl Fn(&str) -> tectum::Result<Vec<f32>>,
) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    for (name, _, shape) in graph.parameters() {
        values.set_item(
            name,
            shaped(
                py,
                read(name).or_raise()?,
                &shape.sizes().unwrap_or_default(),
            )?,
        )?;
    }
    Ok(values)
}

/// Replaces parameters from a dict of arrays.
pub fn set_parameters(
    graph: &Graph,
    values: &Bound<'_, PyDict>,
    mut write: impl FnMut(&str, &[f32]) -> tectum::Result<()>,
) -> PyResult<()> {
    let mut given = Vec::new();
    for (name, value) in values {
        let name: String = name.extract()?;
        let shape = graph
            .parameters()
            .find(|(known, ..)| *known == name)
            .map(|(.., shape)| shape.sizes().unwrap_or_default());
        let shape = shape.ok_or_else(|| {
            let known: Vec<&str> = graph.parameters().map(|(name, ..)| name).collect();
            PyKeyError::new_err(format!(
                "no parameter {name:?}; there are {}",
                known.join(", ")
            ))
        })?;
        let array = floats(&value, &name)?;
        if array.shape() != shape {
            return Err(PyValueError::new_err(format!(
                "parameter {name:?} has the shape {:?}, needs {shape:?}",
                array.shape()
            )));
        }
        given.push((name, array));
    }
    given
        .iter()
        .try_for_each(|(name, array)| write(name, array.as_slice()?).or_raise())
}

/// A graph on a device: calling it with its inputs as keywords returns a dict of its outputs.
///
/// Inputs that are not given keep the values of the call before.
#[pyclass(frozen, module = "tectum")]
pub struct CompiledGraph {
    inner: Mutex<Compiled>,
    runs: Runs,
    graph: Graph,
    inputs: InputPorts,
    outputs: Vec<Port>,
}

impl CompiledGraph {
    pub fn new(py: Python<'_>, graph: Graph, device: Option<&Device>) -> PyResult<Self> {
        detached(py, || {
            let inner = graph.compile(device)?;
            let runs = Runs::new(inner.device(), inner.code());
            let outputs = graph
                .outputs()
                .map(|output| Port::new(&graph, output))
                .collect::<tectum::Result<_>>()?;
            Ok(Self {
                inner: Mutex::new(inner),
                runs,
                inputs: InputPorts::new(&graph)?,
                outputs,
                graph,
            })
        })
    }

    fn lock(&self, py: Python<'_>) -> MutexGuard<'_, Compiled> {
        self.inner
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl CompiledGraph {
    /// Computes the outputs.
    ///
    /// Raises KeyError for an unknown input, ValueError for a wrong shape or an input that was
    /// never given.
    #[pyo3(signature = (**inputs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let mut network = self.lock(py);
        self.inputs.fill(inputs, &mut *network)?;
        {
            let network = &mut *network;
            detached(py, || self.runs.timed(|| network.run()))?;
        }
        let outputs = PyDict::new(py);
        for port in &self.outputs {
            let array = match port.dtype {
                DType::F32 => shaped(
                    py,
                    network.output(&port.name).or_raise()?.to_vec(),
                    &port.shape,
                )?,
                _ => shaped(
                    py,
                    network.output_integers(&port.name).or_raise()?.to_vec(),
                    &port.shape,
                )?,
            };
            outputs.set_item(&port.name, array)?;
        }
        Ok(outputs)
    }

    /// The parameters by name, copied from the device.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let network = self.lock(py);
        parameters(py, &self.graph, |name| network.parameter(name))
    }

    /// Replaces parameters, from a dict of arrays by name.
    ///
    /// Raises KeyError for an unknown name, ValueError for a wrong shape; nothing changes then.
    fn set_parameters(&self, py: Python<'_>, values: &Bound<'_, PyDict>) -> PyResult<()> {
        let mut network = self.lock(py);
        set_parameters(&self.graph, values, |name, data| {
            network.set_parameter(name, data)
        })
    }

    /// On which device and by which code the calls were computed.
    #[getter]
    fn receipt(&self) -> Receipt {
        self.runs.receipt()
    }

    fn __repr__(&self) -> String {
        let names = |ports: &[Port]| {
            ports
                .iter()
                .map(|port| format!("{} {:?}", port.name, port.shape))
                .collect::<Vec<_>>()
                .join(", ")
        };
        format!(
            "<tectum compiled graph: {} -> {}>",
            names(&self.inputs.ports),
            names(&self.outputs)
        )
    }
}
