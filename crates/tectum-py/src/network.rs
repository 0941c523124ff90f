//! ONNX files as networks.

use std::collections::HashMap;

use numpy::PyArray1;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tectum::DType;
use tectum::operation::product::panel_format::PanelFormat;
use tectum_onnx::{CompiledNetwork, ElementType, Model, NetworkPort};

use crate::array::array;
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::interrupt::run_long;
use crate::process;
use crate::receipt::{Receipt, Runs};

/// A network from an ONNX file, compiled for a device.
///
/// `dims` gives sizes to named dimensions, or to an axis as `INPUT.AXIS`; others are 1. `weights` is
/// "f32", "f16" or "int8": products then read weights of fewer bits. Calling it computes the
/// outputs: `network(obs=array)` returns a dict of arrays by output name.
///
/// Raises FileNotFoundError, DataError for a malformed file, UnsupportedError listing every
/// operator that is not supported.
#[pyclass(frozen, module = "tectum")]
pub struct Network {
    inputs: Vec<NetworkPort>,
    outputs: Vec<NetworkPort>,
    assumptions: Vec<String>,
    inner: Exclusive<CompiledNetwork>,
    runs: Runs,
}

fn check_shape(port: &NetworkPort, shape: &[usize]) -> PyResult<()> {
    // A number is an array of no dimensions.
    if shape == port.dims || port.dims.is_empty() && shape == [1] {
        return Ok(());
    }
    Err(PyValueError::new_err(format!(
        "input {:?} has the shape {shape:?}, needs {:?}",
        port.name, port.dims
    )))
}

#[pymethods]
impl Network {
    #[new]
    #[pyo3(signature = (model, *, device = DeviceArgument::Id("cpu".to_owned()), dims = HashMap::new(), weights = "f32"))]
    fn new(
        py: Python<'_>,
        model: std::path::PathBuf,
        device: DeviceArgument<'_>,
        dims: HashMap<String, usize>,
        weights: &str,
    ) -> PyResult<Self> {
        let _call = process::enter(py)?;
        let format = match weights {
            "f32" => PanelFormat::F32,
            "f16" => PanelFormat::F16,
            "int8" => PanelFormat::Int8,
            other => {
                return Err(PyValueError::new_err(format!(
                    "weights is {other:?}, needs \"f32\", \"f16\" or \"int8\""
                )));
            }
        };
        let device = device.open(py)?;
        run_long(py, move || {
            let bindings: Vec<(&str, usize)> = dims
                .iter()
                .map(|(name, size)| (name.as_str(), *size))
                .collect();
            let network = Model::open(&model).and_then(|model| model.load(&bindings))?;
            let compiled = network.compile_as(device.as_ref(), format)?;
            let cpu = tectum::Device::open("cpu")?;
            Ok(Self {
                runs: Runs::new(compiled.device().unwrap_or(&cpu), &compiled.code()),
                inputs: network.inputs().to_vec(),
                outputs: network.outputs().cloned().collect(),
                assumptions: network
                    .assumptions()
                    .iter()
                    .map(ToString::to_string)
                    .collect(),
                inner: Exclusive::new(compiled),
            })
        })
    }

    /// Name and shape of each input.
    #[getter]
    fn inputs(&self) -> Vec<(String, Vec<usize>)> {
        self.inputs
            .iter()
            .map(|port| (port.name.clone(), port.dims.clone()))
            .collect()
    }

    /// Name and shape of each output.
    #[getter]
    fn outputs(&self) -> Vec<(String, Vec<usize>)> {
        self.outputs
            .iter()
            .map(|port| (port.name.clone(), port.dims.clone()))
            .collect()
    }

    /// What the file does not state, and the values that loading assumed.
    #[getter]
    fn assumptions(&self) -> Vec<String> {
        self.assumptions.clone()
    }

    /// Computes the outputs of the given inputs, all of them by name.
    #[pyo3(signature = (**inputs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let inputs = inputs.map_or_else(|| PyDict::new(py), Clone::clone);
        self.run(py, &inputs)
    }

    /// As calling the network, with a dict of the inputs: for names that are not those of Python.
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let _call = process::enter(py)?;
        for name in inputs.keys() {
            let name: String = name.extract()?;
            if !self.inputs.iter().any(|port| port.name == name) {
                let known: Vec<&str> = self.inputs.iter().map(|port| port.name.as_str()).collect();
                return Err(PyKeyError::new_err(format!(
                    "no input {name:?}; there are {}",
                    known.join(", ")
                )));
            }
        }
        let (mut floats, mut integers) = (Vec::new(), Vec::new());
        for port in &self.inputs {
            let value = inputs
                .get_item(&port.name)?
                .ok_or_else(|| PyKeyError::new_err(format!("input {:?} is missing", port.name)))?;
            if port.element.dtype() == DType::F32 {
                let array = array::<f32>(&value, &port.name)?;
                check_shape(port, array.shape())?;
                floats.push((&port.name, array));
            } else {
                let array = array::<i32>(&value, &port.name)?;
                check_shape(port, array.shape())?;
                integers.push((&port.name, array));
            }
        }
        // Functions of Python, of the inputs, have run: now the network is locked.
        let mut network = self.inner.lock(py)?;
        for (name, array) in &floats {
            array
                .with(|data| network.set_floats(name, data))?
                .or_raise()?;
        }
        for (name, array) in &integers {
            array
                .with(|data| network.set_integers(name, data))?
                .or_raise()?;
        }
        let runs = self.runs.clone();
        let (network, ()) = self
            .inner
            .run(py, network, move |network| runs.timed(|| network.run()))?;
        let outputs = PyDict::new(py);
        for port in &self.outputs {
            let array = network.output(&port.name).or_raise()?;
            let shape = PyTuple::new(py, &port.dims)?;
            let flat = match port.element {
                ElementType::Bool => PyArray1::from_vec(
                    py,
                    array
                        .to_f64()
                        .into_iter()
                        .map(|value| value != 0.0)
                        .collect(),
                )
                .into_any(),
                element if element.dtype() == DType::F32 => {
                    PyArray1::from_vec(py, array.to_f32()).into_any()
                }
                _ => PyArray1::from_vec(
                    py,
                    array
                        .to_f64()
                        .into_iter()
                        .map(|value| value as i64)
                        .collect(),
                )
                .into_any(),
            };
            outputs.set_item(&port.name, flat.call_method1("reshape", (shape,))?)?;
        }
        Ok(outputs)
    }

    /// On which device and by which code the runs were computed.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> PyResult<Receipt> {
        self.runs.receipt(py)
    }

    fn _repr_html_(&self) -> String {
        let ports = |ports: &[NetworkPort]| {
            ports
                .iter()
                .map(|port| format!("{} {:?}", port.name, port.dims))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let rows = [
            ("inputs", ports(&self.inputs)),
            ("outputs", ports(&self.outputs)),
            ("assumed", self.assumptions.join("; ")),
        ];
        crate::html::table("ONNX network", &rows)
    }

    fn __repr__(&self) -> String {
        let ports = |ports: &[NetworkPort]| {
            ports
                .iter()
                .map(|port| format!("{} {:?}", port.name, port.dims))
                .collect::<Vec<_>>()
                .join(", ")
        };
        format!(
            "<tectum network: {} -> {}>",
            ports(&self.inputs),
            ports(&self.outputs)
        )
    }
}
