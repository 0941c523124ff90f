//! A graph on a device.

use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::{DType, Device};
use tectum_graph::{CompiledGraph as Compiled, Graph, Shape};

use crate::array::{Array, array, floats, shaped};
use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::interrupt::run_long;
use crate::process;
use crate::receipt::{Receipt, Runs};

/// A value that is given or computed.
struct Port {
    name: String,
    shape: Vec<usize>,
    dtype: DType,
    /// How many rows its numbers select from.
    rows: Option<usize>,
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
            rows: graph.rows(node),
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

    /// Converts and checks inputs by name. This runs functions of Python: the network is not locked
    /// yet.
    pub fn convert<'py>(
        &self,
        inputs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<(String, Values<'py>)>> {
        let mut converted = Vec::new();
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
            let values = match port.dtype {
                DType::F32 => {
                    let array = floats(&value, &name)?;
                    port.check(array.shape())?;
                    Values::Floats(array)
                }
                DType::U32 => {
                    let array = array(&value, &name)?;
                    port.check(array.shape())?;
                    array.with(|numbers| port.check_rows(numbers))??;
                    Values::Rows(array)
                }
                _ => {
                    let array = array(&value, &name)?;
                    port.check(array.shape())?;
                    Values::Integers(array)
                }
            };
            converted.push((name, values));
        }
        Ok(converted)
    }
}

/// An input that is converted.
pub enum Values<'py> {
    Floats(Array<'py, f32>),
    Rows(Array<'py, u32>),
    Integers(Array<'py, i32>),
}

/// Fills inputs by name; those that are not given keep their values.
pub fn fill(inputs: &[(String, Values<'_>)], to: &mut impl Inputs) -> PyResult<()> {
    inputs.iter().try_for_each(|(name, values)| {
        match values {
            Values::Floats(array) => array.with(|data| to.set_floats(name, data))?,
            Values::Rows(array) => array.with(|data| to.set_rows(name, data))?,
            Values::Integers(array) => array.with(|data| to.set_integers(name, data))?,
        }
        .or_raise()
    })
}

impl Port {
    /// Refuses numbers of rows that no table and no logits have.
    fn check_rows(&self, numbers: &[u32]) -> PyResult<()> {
        let Some(rows) = self.rows else {
            return Ok(());
        };
        match numbers.iter().position(|number| *number as usize >= rows) {
            None => Ok(()),
            Some(place) => Err(PyValueError::new_err(format!(
                "input {:?}: row {place} has the number {}, needs 0 to {}",
                self.name,
                numbers[place],
                rows.saturating_sub(1)
            ))),
        }
    }

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

/// The parameters of a graph, read one by one.
pub fn read_parameters(
    graph: &Graph,
    read: impl Fn(&str) -> tectum::Result<Vec<f32>>,
) -> tectum::Result<Vec<Vec<f32>>> {
    graph.parameters().map(|(name, ..)| read(name)).collect()
}

/// The parameters of a graph as a dict of arrays.
pub fn parameters<'py>(
    py: Python<'py>,
    graph: &Graph,
    read: Vec<Vec<f32>>,
) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    for ((name, _, shape), read) in graph.parameters().zip(read) {
        values.set_item(name, shaped(py, read, &shape.sizes().unwrap_or_default())?)?;
    }
    Ok(values)
}

/// Converts and checks parameters of a dict of arrays.
pub fn convert_parameters(
    graph: &Graph,
    values: &Bound<'_, PyDict>,
) -> PyResult<Vec<(String, Vec<f32>)>> {
    let mut converted = Vec::new();
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
        converted.push((name, array.into_vec()?));
    }
    Ok(converted)
}

/// A graph on a device: calling it with its inputs as keywords returns a dict of its outputs.
///
/// Inputs that are not given keep the values of the call before.
#[pyclass(frozen, module = "tectum")]
pub struct CompiledGraph {
    inner: Exclusive<Compiled>,
    runs: Runs,
    graph: Arc<Graph>,
    inputs: InputPorts,
    outputs: Vec<Port>,
}

impl CompiledGraph {
    pub fn new(py: Python<'_>, graph: Graph, device: Option<Device>) -> PyResult<Self> {
        run_long(py, move || {
            let inner = graph.compile(device.as_ref())?;
            let runs = Runs::new(inner.device(), inner.code());
            let outputs = graph
                .outputs()
                .map(|output| Port::new(&graph, output))
                .collect::<tectum::Result<_>>()?;
            Ok(Self {
                inner: Exclusive::new(inner),
                runs,
                inputs: InputPorts::new(&graph)?,
                outputs,
                graph: Arc::new(graph),
            })
        })
    }
}

#[pymethods]
impl CompiledGraph {
    /// Computes the outputs.
    ///
    /// Raises KeyError for an unknown input, ValueError for a wrong shape, a number that the input
    /// cannot hold, a number of a row that does not exist, or an input or a parameter that was never
    /// given.
    #[pyo3(signature = (**inputs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let _call = process::enter(py)?;
        let converted = self.inputs.convert(inputs)?;
        let mut network = self.inner.lock(py)?;
        fill(&converted, &mut *network)?;
        let runs = self.runs.clone();
        let (network, ()) = self
            .inner
            .run(py, network, move |network| runs.timed(|| network.run()))?;
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
        let _call = process::enter(py)?;
        let (network, graph) = (self.inner.lock(py)?, self.graph.clone());
        let (_, read) = self.inner.run(py, network, move |network| {
            read_parameters(&graph, |name| network.parameter(name))
        })?;
        parameters(py, &self.graph, read)
    }

    /// Replaces parameters, from a dict of arrays by name.
    ///
    /// Raises KeyError for an unknown name, ValueError for a wrong shape; nothing changes then.
    fn set_parameters(&self, py: Python<'_>, values: &Bound<'_, PyDict>) -> PyResult<()> {
        let _call = process::enter(py)?;
        let converted = convert_parameters(&self.graph, values)?;
        let network = self.inner.lock(py)?;
        self.inner.run(py, network, move |network| {
            let mut parameters = converted.iter();
            parameters.try_for_each(|(name, data)| network.set_parameter(name, data))
        })?;
        Ok(())
    }

    /// On which device and by which code the calls were computed.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> PyResult<Receipt> {
        self.runs.receipt(py)
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
