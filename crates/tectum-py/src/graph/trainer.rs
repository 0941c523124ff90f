//! Training by AdamW.

use std::path::PathBuf;
use std::sync::Arc;

use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum_graph::{Batches, Graph, Init, Trainer as Training};

use super::compiled::{InputPorts, Inputs, convert_parameters, fill, parameters, read_parameters};
use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::process;
use crate::receipt::{Receipt, Runs};
use crate::whole;

impl Inputs for Training {
    fn set_floats(&mut self, name: &str, data: &[f32]) -> tectum::Result<()> {
        self.set_input(name, data)
    }

    fn set_rows(&mut self, name: &str, data: &[u32]) -> tectum::Result<()> {
        self.set_indices(name, data)
    }

    fn set_integers(&mut self, name: &str, _: &[i32]) -> tectum::Result<()> {
        Err(tectum::Error::unsupported(format!(
            "training: input {name} holds integers"
        )))
    }
}

/// First values of a parameter: a number, or a rule by name with its numbers.
#[derive(FromPyObject)]
enum InitArgument {
    Number(f32),
    Named(String),
    Pair(String, f32, f32),
}

impl InitArgument {
    fn init(self) -> PyResult<Init> {
        match self {
            Self::Number(number) => Ok(Init::Constant(number)),
            Self::Named(name) if name == "zeros" => Ok(Init::Zeros),
            Self::Named(name) if name == "ones" => Ok(Init::Ones),
            Self::Named(name) if name == "xavier_uniform" => Ok(Init::XavierUniform),
            Self::Named(name) if name == "kaiming_normal" => Ok(Init::KaimingNormal),
            Self::Pair(name, low, high) if name == "uniform" => Ok(Init::Uniform { low, high }),
            Self::Pair(name, mean, deviation) if name == "normal" => {
                Ok(Init::Normal { mean, deviation })
            }
            Self::Named(name) | Self::Pair(name, ..) => Err(PyValueError::new_err(format!(
                "rule {name:?}: needs a number, \"zeros\", \"ones\", \"xavier_uniform\", \"kaiming_normal\", (\"uniform\", low, high) or (\"normal\", mean, deviation)"
            ))),
        }
    }
}

/// The training of a graph's parameters by AdamW; `Graph.trainer` makes one.
///
/// Parameters are zero until `initialize`, `set_parameters` or `load`. The same parameters, inputs
/// and device give the same bits.
#[pyclass(frozen, module = "tectum")]
pub struct Trainer {
    inner: Exclusive<Training>,
    runs: Runs,
    graph: Arc<Graph>,
    inputs: InputPorts,
}

impl Trainer {
    pub fn new(graph: Graph, inner: Training) -> tectum::Result<Self> {
        Ok(Self {
            runs: Runs::new(inner.device(), inner.code()),
            inner: Exclusive::new(inner),
            inputs: InputPorts::new(&graph)?,
            graph: Arc::new(graph),
        })
    }
}

#[pymethods]
impl Trainer {
    /// Draws the parameters by seed. `rules` maps patterns of names, in which `*` matches any
    /// characters, to "zeros", "ones", "xavier_uniform", "kaiming_normal", ("uniform", low, high),
    /// ("normal", mean, deviation) or a number; the first that matches counts, and others are
    /// unchanged.
    ///
    /// Without rules, parameters whose names end in `bias` are zeros, in `gain` ones, others
    /// "xavier_uniform". Raises ValueError for a rule that matches none.
    #[pyo3(signature = (seed: "int", rules = None))]
    fn initialize(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::seed)] seed: u64,
        rules: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let _call = process::enter(py)?;
        let mut given: Vec<(String, Init)> = Vec::new();
        for (pattern, rule) in rules.into_iter().flatten() {
            let rule = rule.extract::<InitArgument>().map_err(|_| {
                PyTypeError::new_err(format!(
                    "rule of {pattern}: a name, a number or a tuple is needed"
                ))
            })?;
            given.push((pattern.extract()?, rule.init()?));
        }
        if rules.is_none() {
            let standard = |name: &str| match name {
                name if name.ends_with("bias") => Init::Zeros,
                name if name.ends_with("gain") => Init::Ones,
                _ => Init::XavierUniform,
            };
            given = self
                .graph
                .parameters()
                .map(|(name, ..)| (name.to_owned(), standard(name)))
                .collect();
        }
        let training = self.inner.lock(py)?;
        self.inner.run(py, training, move |training| {
            let rules: Vec<(&str, Init)> = given
                .iter()
                .map(|(pattern, init)| (pattern.as_str(), *init))
                .collect();
            training.initialize(seed, &rules)
        })?;
        Ok(())
    }

    /// Takes one step on the inputs given as keywords and returns the loss before it. Inputs that
    /// are not given keep their values.
    ///
    /// If a handler of signals raises during a long step, such as Ctrl-C, the step is completed
    /// without its caller, and the next call waits for it.
    ///
    /// Raises KeyError for an unknown input, ValueError for a wrong shape, a number that the input
    /// cannot hold, a class that the logits do not have, or an input that was never given.
    #[pyo3(signature = (**inputs))]
    fn step(&self, py: Python<'_>, inputs: Option<&Bound<'_, PyDict>>) -> PyResult<f32> {
        let _call = process::enter(py)?;
        let converted = self.inputs.convert(inputs)?;
        let mut training = self.inner.lock(py)?;
        fill(&converted, &mut *training)?;
        let runs = self.runs.clone();
        let (_, loss) = self.inner.run(py, training, move |training| {
            let mut loss = 0.0;
            runs.timed(|| {
                loss = training.step()?;
                Ok(*training.last_run())
            })?;
            Ok(loss)
        })?;
        Ok(loss)
    }

    /// Takes steps over shuffled batches of whole arrays, one for each input, with a sample in each
    /// row, and returns the mean loss of each epoch.
    ///
    /// The first dimension of the inputs is the size of a batch; samples that do not fill a batch
    /// are left out, others in each epoch. With `progress`, tqdm shows the epochs. Ctrl-C ends it
    /// after a step.
    ///
    /// Raises ValueError for arrays of different lengths or fewer samples than a batch has.
    #[pyo3(signature = (*, epochs: "int" = 1, seed: "int" = 0, progress = false, **arrays))]
    fn fit<'py>(
        &self,
        py: Python<'py>,
        #[pyo3(from_py_with = whole::epochs)] epochs: u32,
        #[pyo3(from_py_with = whole::seed)] seed: u64,
        progress: bool,
        arrays: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Vec<f32>> {
        let _call = process::enter(py)?;
        let numpy = py.import("numpy")?;
        let mut whole: Vec<(String, Bound<'py, PyAny>)> = Vec::new();
        for (name, value) in arrays.into_iter().flatten() {
            whole.push((name.extract()?, numpy.call_method1("asarray", (value,))?));
        }
        let Some((first, samples)) = whole
            .first()
            .map(|(name, array)| Ok::<_, PyErr>((name.clone(), array.len()?)))
            .transpose()?
        else {
            return Err(PyValueError::new_err(
                "fit: an array for each input is needed",
            ));
        };
        for (name, array) in &whole {
            if array.len()? != samples {
                return Err(PyValueError::new_err(format!(
                    "fit: {first} has {samples} samples and {name} {}",
                    array.len()?
                )));
            }
        }
        let size = self
            .inputs
            .batch(&first)
            .ok_or_else(|| PyKeyError::new_err(format!("no input {first:?}")))?;
        let batches = Batches::new(samples, size, seed).or_raise()?;
        let bar = if progress {
            Some(py.import("tqdm.auto")?.call_method1(
                "tqdm",
                (pyo3::types::PyRange::new(py, 0, epochs as isize)?,),
            )?)
        } else {
            None
        };
        let mut losses = Vec::new();
        for epoch in 0..epochs {
            let (mut sum, mut count) = (0.0, 0);
            for rows in batches.epoch(epoch) {
                py.check_signals()?;
                let batch = PyDict::new(py);
                let rows = numpy::PyArray1::from_iter(py, rows.into_iter().map(|row| row as i64));
                for (name, array) in &whole {
                    batch.set_item(name, array.get_item(&rows)?)?;
                }
                sum += self.step(py, Some(&batch))?;
                count += 1;
            }
            losses.push(sum / count.max(1) as f32);
            if let Some(bar) = &bar {
                bar.call_method1("update", (1,))?;
                let text = PyDict::new(py);
                text.set_item("loss", losses[epoch as usize])?;
                bar.call_method("set_postfix", (), Some(&text))?;
            }
        }
        if let Some(bar) = &bar {
            bar.call_method0("close")?;
        }
        Ok(losses)
    }

    /// Steps taken, including those before a checkpoint that was loaded.
    #[getter]
    fn steps(&self, py: Python<'_>) -> PyResult<u64> {
        let _call = process::enter(py)?;
        Ok(self.inner.lock(py)?.steps())
    }

    /// The parameters by name, copied from the device.
    #[getter]
    fn parameters<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let _call = process::enter(py)?;
        let (training, graph) = (self.inner.lock(py)?, self.graph.clone());
        let (_, read) = self.inner.run(py, training, move |training| {
            read_parameters(&graph, |name| training.parameter(name))
        })?;
        parameters(py, &self.graph, read)
    }

    /// Replaces parameters, from a dict of arrays by name; moments are unchanged.
    ///
    /// Raises KeyError for an unknown name, ValueError for a wrong shape; nothing changes then.
    fn set_parameters(&self, py: Python<'_>, values: &Bound<'_, PyDict>) -> PyResult<()> {
        let _call = process::enter(py)?;
        let converted = convert_parameters(&self.graph, values)?;
        let training = self.inner.lock(py)?;
        self.inner.run(py, training, move |training| {
            let mut parameters = converted.iter();
            parameters.try_for_each(|(name, data)| training.set_parameter(name, data))
        })?;
        Ok(())
    }

    /// Writes parameters, moments and the number of steps to a safetensors file.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let _call = process::enter(py)?;
        let training = self.inner.lock(py)?;
        self.inner
            .run(py, training, move |training| training.save(&path))?;
        Ok(())
    }

    /// Continues from a checkpoint, with the same bits as without the interruption.
    ///
    /// Raises DataError naming the array that does not fit; nothing changes then.
    fn load(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let _call = process::enter(py)?;
        let training = self.inner.lock(py)?;
        self.inner
            .run(py, training, move |training| training.load(&path))?;
        Ok(())
    }

    /// On which device and by which code the steps were computed.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> PyResult<Receipt> {
        self.runs.receipt(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let _call = process::enter(py)?;
        Ok(format!(
            "<tectum trainer: {} parameters, {} steps>",
            self.graph.parameters().count(),
            self.inner.lock(py)?.steps()
        ))
    }
}
