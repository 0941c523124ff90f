//! Kernels of the caller's own, and plans of launches.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{
    PyKeyError, PyKeyboardInterrupt, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::internal::TwoPhaseRun;
use tectum::kernel::{Groups, NativeCall, groups_for};
use tectum::{
    DType, Element, Executable as Compiled, Kernel as Definition, KernelBuilder, PlanBuilder,
    Prelude, RunStats, View as Slot, Work,
};

use crate::array::{Array, array};
use crate::buffer::Buffer;
use crate::device::DeviceArgument;
use crate::dtype;
use crate::error::OrRaise;
use crate::exclusive::{Exclusive, Held, Turn, called_back};
use crate::interned::interned;
use crate::interrupt::{LongWork, run_long};
use crate::job::new_number;
use crate::mutex::locked;
use crate::process;
use crate::receipt::{Receipt, Runs};
use crate::sequence::Sequence;
use crate::whole;

/// The form of a kernel on the CPU: a function of Python.
pub(crate) struct Twin {
    /// The kernel's name.
    kernel: String,
    function: Py<PyAny>,
    /// The exception of the last launch that raised.
    pub(crate) raised: Mutex<Option<PyErr>>,
    /// Held by the run that launches it: exceptions are those of one run.
    pub(crate) turn: Exclusive<()>,
    /// Python's number of the thread that calls the function.
    running: Mutex<Option<u64>>,
    /// Whether the caller of the run that has the turn has left it.
    left: Mutex<Arc<AtomicBool>>,
}

impl Twin {
    /// A run whose caller waits for it has the turn now.
    pub(crate) fn begin_waited_run(&self) {
        *locked(&self.left) = Arc::default();
    }

    /// Raises KeyboardInterrupt in the function, if the run that has this flag is calling it.
    fn interrupt(&self, py: Python<'_>, left: &Arc<AtomicBool>) -> PyResult<()> {
        let is_of_run = Arc::ptr_eq(&locked(&self.left), left);
        let Some(thread) = locked(&self.running).filter(|_| is_of_run) else {
            return Ok(());
        };
        let ctypes = py.import("ctypes")?;
        let interrupt = py.get_type::<PyKeyboardInterrupt>();
        ctypes.getattr("pythonapi")?.call_method1(
            "PyThreadState_SetAsyncExc",
            (
                ctypes.call_method1("c_ulong", (thread,))?,
                ctypes.call_method1("py_object", (interrupt,))?,
            ),
        )?;
        Ok(())
    }
}

/// The source of a function, which the hash of a kernel's code covers; its bytecode if there is no
/// source.
fn source_of(py: Python<'_>, function: &Py<PyAny>) -> PyResult<String> {
    if let Ok(source) = py.import("inspect")?.call_method1("getsource", (function,)) {
        return source.extract();
    }
    match function.bind(py).getattr("__code__") {
        Ok(code) => Ok(format!(
            "{} {}",
            code.getattr("co_code")?.repr()?,
            code.getattr("co_consts")?.repr()?
        )),
        Err(_) => Ok(function.bind(py).get_type().repr()?.to_string()),
    }
}

/// Calls a function of Python with a launch's arrays and parameters, and takes over what it wrote.
fn call_twin(call: &NativeCall<'_>) {
    let (twin, bindings, params) =
        call.data::<(Arc<Twin>, Vec<(String, DType, bool)>, Vec<(String, DType)>)>();
    let called = |py: Python<'_>| -> PyResult<()> {
        let arguments = PyDict::new(py);
        let mut written = Vec::new();
        for (index, (name, dtype, writes)) in bindings.iter().enumerate() {
            let array = match (dtype, writes) {
                (DType::F32, false) => PyArray1::from_slice(py, call.read::<f32>(index)).into_any(),
                (DType::F64, false) => PyArray1::from_slice(py, call.read::<f64>(index)).into_any(),
                (DType::I32, false) => PyArray1::from_slice(py, call.read::<i32>(index)).into_any(),
                (DType::U32, false) => PyArray1::from_slice(py, call.read::<u32>(index)).into_any(),
                (DType::F32, true) => taken(py, Written::F32(call.write(index)), &mut written),
                (DType::F64, true) => taken(py, Written::F64(call.write(index)), &mut written),
                (DType::I32, true) => taken(py, Written::I32(call.write(index)), &mut written),
                (DType::U32, true) => taken(py, Written::U32(call.write(index)), &mut written),
            };
            arguments.set_item(name, array)?;
        }
        for (index, (name, dtype)) in params.iter().enumerate() {
            match dtype {
                DType::F32 => arguments.set_item(name, call.f32(index))?,
                DType::I32 => arguments.set_item(name, call.u32(index) as i32)?,
                _ => arguments.set_item(name, call.u32(index))?,
            }
        }
        let thread = py.import("threading")?.call_method0("get_ident")?;
        if locked(&twin.left).load(Ordering::Relaxed) {
            return Err(PyKeyboardInterrupt::new_err("the caller has left the run"));
        }
        *locked(&twin.running) = Some(thread.extract()?);
        let called = twin.function.bind(py).call((), Some(&arguments));
        *locked(&twin.running) = None;
        let returned = called?;
        // NumPy's functions return the array of `out=`.
        if !returned.is_none() && !written.iter().any(|(array, _)| returned.is(array)) {
            return Err(PyTypeError::new_err(format!(
                "kernel {}: its twin returned a value of {}; a twin changes its arrays in place, such as y[:] = 2 * x, and returns nothing",
                twin.kernel,
                returned.get_type().name()?
            )));
        }
        written
            .into_iter()
            .try_for_each(|(array, region)| region.take(&array))
    };
    // The run has failed: what is left of it has no use.
    if locked(&twin.raised).is_some() {
        return;
    }
    if let Err(error) = called_back(|| process::attach(called)) {
        locked(&twin.raised).get_or_insert(error);
    }
}

/// A region that a launch writes.
enum Written<'a> {
    F32(&'a mut [f32]),
    F64(&'a mut [f64]),
    I32(&'a mut [i32]),
    U32(&'a mut [u32]),
}

/// An array with the contents of a region, which takes the array's contents after the call.
fn taken<'py, 'a>(
    py: Python<'py>,
    region: Written<'a>,
    written: &mut Vec<(Bound<'py, PyAny>, Written<'a>)>,
) -> Bound<'py, PyAny> {
    let array = match &region {
        Written::F32(region) => PyArray1::from_slice(py, region).into_any(),
        Written::F64(region) => PyArray1::from_slice(py, region).into_any(),
        Written::I32(region) => PyArray1::from_slice(py, region).into_any(),
        Written::U32(region) => PyArray1::from_slice(py, region).into_any(),
    };
    written.push((array.clone(), region));
    array
}

fn take_elements<T: Copy>(region: &mut [T], elements: &[T]) -> PyResult<()> {
    if elements.len() != region.len() {
        return Err(PyValueError::new_err(format!(
            "a twin left an array of {} elements in place of {}",
            elements.len(),
            region.len()
        )));
    }
    region.copy_from_slice(elements);
    Ok(())
}

impl Written<'_> {
    fn take(self, array: &Bound<'_, PyAny>) -> PyResult<()> {
        match self {
            Written::F32(region) => take_elements(
                region,
                array.extract::<PyReadonlyArray1<'_, f32>>()?.as_slice()?,
            )?,
            Written::F64(region) => take_elements(
                region,
                array.extract::<PyReadonlyArray1<'_, f64>>()?.as_slice()?,
            )?,
            Written::I32(region) => take_elements(
                region,
                array.extract::<PyReadonlyArray1<'_, i32>>()?.as_slice()?,
            )?,
            Written::U32(region) => take_elements(
                region,
                array.extract::<PyReadonlyArray1<'_, u32>>()?.as_slice()?,
            )?,
        }
        Ok(())
    }
}

/// A kernel of one's own: device code in WGSL, with a function of Python as its form on the CPU
/// (docs/kernels.md).
///
/// `bindings` lists name, access ("read", "write", "read_write" or "atomic") and type of each
/// array, `params` name and type of each number of a launch. The WGSL has an entry point `main` and
/// reads parameters as `params.NAME`. `twin` is called with an array for each binding, whose
/// contents it changes in place where the kernel writes, and the numbers, all as keywords; it
/// returns nothing. `preludes` are names such as "linear_index", "math" or "random". `counts` names
/// parameters that count elements of bindings, such as `{"count": ["x", "y"]}`: a launch whose
/// arrays have fewer is refused.
///
/// Raises ValueError for WGSL that is not valid, naming line and column.
///
/// >>> import numpy as np, tectum as tt
/// >>> def twin(x, y, count, factor):
/// ...     y[:count] = factor * x[:count]
/// >>> scale = tt.Kernel(
/// ...     "scale",
/// ...     '''
/// ...     @compute @workgroup_size(64)
/// ...     fn main(invocation: TectumInvocation) {
/// ...         let i = tectum_linear_index(invocation);
/// ...         if i < params.count { y[i] = params.factor * x[i]; }
/// ...     }
/// ...     ''',
/// ...     [("x", "read", "float32"), ("y", "write", "float32")],
/// ...     [("count", "uint32"), ("factor", "float32")],
/// ...     twin,
/// ...     preludes=["linear_index"],
/// ...     counts={"count": ["x", "y"]},
/// ... )
/// >>> plan = tt.Plan("example")
/// >>> x, y = plan.input("x", 4), plan.output("y", 4)
/// >>> plan.launch(scale, [x, y], count=4, factor=2.0)
/// >>> plan.compile().run(x=np.arange(4))["y"].tolist()
/// [0.0, 2.0, 4.0, 6.0]
#[pyclass(frozen, module = "tectum")]
pub struct Kernel {
    pub(crate) inner: Arc<Definition>,
    params: Vec<(String, DType)>,
    pub(crate) twin: Arc<Twin>,
}

impl Kernel {
    /// The words of the parameters that a caller gives by name.
    ///
    /// Raises KeyError for a parameter that is missing.
    pub(crate) fn param_words(
        &self,
        values: &HashMap<String, Bound<'_, PyAny>>,
    ) -> PyResult<Vec<u32>> {
        let word = |(name, dtype): &(String, DType)| {
            let value = values.get(name).ok_or_else(|| {
                PyKeyError::new_err(format!(
                    "kernel {}: parameter {name} is missing",
                    self.inner.name()
                ))
            })?;
            match dtype {
                DType::F32 => Ok(value.extract::<f32>()?.to_bits()),
                DType::I32 => Ok(value.extract::<i32>()? as u32),
                _ => value.extract(),
            }
        };
        self.params.iter().map(word).collect()
    }

    /// The names of the parameters.
    pub(crate) fn param_names(&self) -> impl Iterator<Item = &str> {
        self.params.iter().map(|(name, _)| name.as_str())
    }
}

#[pymethods]
impl Kernel {
    #[new]
    #[pyo3(signature = (name, wgsl, bindings, params, twin, *, preludes = Sequence(Vec::new()), counts = BTreeMap::new()))]
    #[allow(
        clippy::too_many_arguments,
        reason = "the definition of a kernel in one call"
    )]
    fn new(
        py: Python<'_>,
        name: &str,
        wgsl: &str,
        bindings: Sequence<(String, String, String)>,
        params: Sequence<(String, String)>,
        twin: Py<PyAny>,
        preludes: Sequence<String>,
        counts: BTreeMap<String, Vec<String>>,
    ) -> PyResult<Self> {
        let _call = process::enter(py)?;
        let (Sequence(bindings), Sequence(params), Sequence(preludes)) =
            (bindings, params, preludes);
        let mut builder: KernelBuilder = Definition::define(name);
        let mut declared = Vec::new();
        for (binding, access, dtype) in bindings {
            let (dtype, known) = (dtype::parse(&dtype)?, interned(binding.clone()));
            builder = match access.as_str() {
                "read" => builder.read(known, dtype),
                "write" => builder.write(known, dtype),
                "read_write" => builder.read_write(known, dtype),
                "atomic" => builder.atomic(known, dtype),
                other => {
                    return Err(PyValueError::new_err(format!(
                        "binding {binding}: access {other:?}, needs read, write, read_write or atomic"
                    )));
                }
            };
            declared.push((binding, dtype, access != "read"));
        }
        let params = params
            .into_iter()
            .map(|(name, dtype)| Ok((name, dtype::parse(&dtype)?)))
            .collect::<PyResult<Vec<_>>>()?;
        if let Some((name, _)) = params.iter().find(|(_, dtype)| *dtype == DType::F64) {
            return Err(PyValueError::new_err(format!(
                "parameter {name}: float64 is not possible"
            )));
        }
        for (name, dtype) in &params {
            builder = builder.param(interned(name.clone()), *dtype);
        }
        for prelude in preludes {
            builder = builder.prelude(match prelude.as_str() {
                "math" => Prelude::Math,
                "functions" => Prelude::Functions,
                "random" => Prelude::Random,
                "tree" => Prelude::Tree,
                "order" => Prelude::Order,
                "activation" => Prelude::Activation,
                "linear_index" => Prelude::LinearIndex,
                other => return Err(PyValueError::new_err(format!("prelude {other:?}: needs math, functions, random, tree, order, activation or linear_index"))),
            });
        }
        for (parameter, counted) in counts {
            let counted: Vec<&str> = counted.iter().map(String::as_str).collect();
            builder = builder.counts(interned(parameter), &counted);
        }
        let source = source_of(py, &twin)?;
        let twin = Arc::new(Twin {
            kernel: name.to_owned(),
            function: twin,
            raised: Mutex::default(),
            turn: Exclusive::new(()),
            running: Mutex::default(),
            left: Mutex::default(),
        });
        let data = (twin.clone(), declared, params.clone());
        let inner = builder
            .body(wgsl)
            .revision(interned(source))
            .data(Arc::new(data))
            .native(call_twin)
            .or_raise()?;
        Ok(Self {
            inner,
            params,
            twin,
        })
    }

    /// The name.
    #[getter]
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// The whole device code, with the declarations of bindings and parameters.
    #[getter]
    fn wgsl(&self) -> &str {
        self.inner.wgsl()
    }

    fn __repr__(&self) -> String {
        format!("<tectum kernel '{}'>", self.inner.name())
    }
}

/// A part of a plan's memory.
#[pyclass(frozen, from_py_object, module = "tectum")]
#[derive(Clone, Copy)]
pub struct View {
    inner: Slot,
}

#[pymethods]
impl View {
    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// NumPy's name of the element type.
    #[getter]
    fn dtype(&self) -> &'static str {
        dtype::name(self.inner.dtype())
    }

    fn __repr__(&self) -> String {
        format!(
            "<tectum view: {} of {}>",
            self.inner.len(),
            dtype::name(self.inner.dtype())
        )
    }
}

/// Launches over views of memory, recorded once and run many times: one upload, one submission, one
/// download.
///
/// >>> import tectum as tt
/// >>> plan = tt.Plan("example")
/// >>> x, y = plan.input("x", 3), plan.output("y", 3)
/// >>> plan.unary("relu", x, y)
/// >>> plan.compile().run(x=[-1.0, 0.5, 2.0])["y"].tolist()
/// [0.0, 0.5, 2.0]
#[pyclass(frozen, module = "tectum")]
pub struct Plan {
    inner: Exclusive<Recorded>,
}

/// A plan while it is recorded.
struct Recorded {
    /// None after it was compiled.
    builder: Option<PlanBuilder>,
    inputs: Vec<(String, Slot)>,
    outputs: Vec<(String, Slot)>,
    states: Vec<(String, Slot)>,
    twins: Vec<Arc<Twin>>,
}

impl Recorded {
    fn builder(&mut self) -> tectum::Result<&mut PlanBuilder> {
        self.builder
            .as_mut()
            .ok_or_else(|| tectum::Error::invalid("the plan is compiled already; record another"))
    }
}

impl Plan {
    fn record<T>(
        &self,
        py: Python<'_>,
        record: impl FnOnce(&mut Recorded) -> tectum::Result<T>,
    ) -> PyResult<T> {
        let _call = process::enter(py)?;
        record(&mut *self.inner.lock(py)?).or_raise()
    }
}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (name = "plan"))]
    fn new(name: &str) -> Self {
        let builder = Some(PlanBuilder::new(name));
        Self {
            inner: Exclusive::new(Recorded {
                builder,
                inputs: Vec::new(),
                outputs: Vec::new(),
                states: Vec::new(),
                twins: Vec::new(),
            }),
        }
    }

    /// Adds an input, part of the one upload.
    #[pyo3(signature = (name, length: "int", dtype = "float32"))]
    fn input(
        &self,
        py: Python<'_>,
        name: String,
        #[pyo3(from_py_with = whole::length)] length: usize,
        dtype: &str,
    ) -> PyResult<View> {
        let dtype = dtype::parse(dtype)?;
        let inner = self.record(py, |recorded| {
            let inner = recorded.builder()?.input(&name, dtype, length);
            recorded.inputs.push((name, inner));
            Ok(inner)
        })?;
        Ok(View { inner })
    }

    /// Adds an output, part of the one download.
    #[pyo3(signature = (name, length: "int", dtype = "float32"))]
    fn output(
        &self,
        py: Python<'_>,
        name: String,
        #[pyo3(from_py_with = whole::length)] length: usize,
        dtype: &str,
    ) -> PyResult<View> {
        let dtype = dtype::parse(dtype)?;
        let inner = self.record(py, |recorded| {
            let inner = recorded.builder()?.output(&name, dtype, length);
            recorded.outputs.push((name, inner));
            Ok(inner)
        })?;
        Ok(View { inner })
    }

    /// Adds a state, which stays on the device from run to run; zero at first.
    #[pyo3(signature = (name, length: "int", dtype = "float32"))]
    fn state(
        &self,
        py: Python<'_>,
        name: String,
        #[pyo3(from_py_with = whole::length)] length: usize,
        dtype: &str,
    ) -> PyResult<View> {
        let dtype = dtype::parse(dtype)?;
        let inner = self.record(py, |recorded| {
            let inner = recorded.builder()?.state(&name, dtype, length);
            recorded.states.push((name, inner));
            Ok(inner)
        })?;
        Ok(View { inner })
    }

    /// Adds a temporary, whose memory is used again after its last reader.
    #[pyo3(signature = (length: "int", dtype = "float32"))]
    fn temporary(
        &self,
        py: Python<'_>,
        #[pyo3(from_py_with = whole::length)] length: usize,
        dtype: &str,
    ) -> PyResult<View> {
        let dtype = dtype::parse(dtype)?;
        Ok(View {
            inner: self.record(py, |plan| Ok(plan.builder()?.temp(dtype, length)))?,
        })
    }

    /// Adds a constant array of float32.
    fn constant(&self, py: Python<'_>, name: &str, values: &Bound<'_, PyAny>) -> PyResult<View> {
        let _call = process::enter(py)?;
        let values = crate::array::floats(values, name)?.into_vec()?;
        Ok(View {
            inner: self.record(py, |plan| Ok(plan.builder()?.constant(name, &values)))?,
        })
    }

    /// Records a launch: a view for each binding, and each parameter as a keyword. Without `groups`
    /// there are as many workgroups as the longest view needs, with an element an invocation.
    ///
    /// Raises KeyError for a parameter that is missing or unknown, ValueError for a view that does
    /// not fit, and for more than 65,535 workgroups of a kernel that takes its index neither from
    /// `tectum_linear_index` nor in a loop over the stride.
    #[pyo3(signature = (kernel, views, *, groups: "int | None" = None, **params))]
    fn launch(
        &self,
        py: Python<'_>,
        kernel: &Kernel,
        views: Sequence<View>,
        #[pyo3(from_py_with = whole::groups)] groups: Option<u32>,
        params: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let _call = process::enter(py)?;
        let given: HashMap<String, Bound<'_, PyAny>> =
            params.map_or_else(|| Ok(HashMap::new()), |params| params.extract())?;
        if let Some(unknown) = given
            .keys()
            .find(|name| !kernel.param_names().any(|known| known == *name))
        {
            let known: Vec<&str> = kernel.param_names().collect();
            return Err(PyKeyError::new_err(format!(
                "kernel {}: no parameter {unknown}; there are {}",
                kernel.inner.name(),
                known.join(", ")
            )));
        }
        let words = kernel.param_words(&given)?;
        let views: Vec<Slot> = views.0.into_iter().map(|view| view.inner).collect();
        let groups = groups.map_or_else(
            || groups_for(views.iter().map(Slot::len).max().unwrap_or(1)),
            Groups::from,
        );
        let mut recorded = self.inner.lock(py)?;
        recorded
            .builder()
            .and_then(|plan| plan.launch_dynamic(&kernel.inner, &views, &words, groups))
            .or_raise()?;
        recorded.twins.push(kernel.twin.clone());
        Ok(())
    }

    /// Records a built-in function of each element, such as "relu" or "exp".
    fn unary(&self, py: Python<'_>, name: &str, x: View, y: View) -> PyResult<()> {
        self.record(py, |plan| plan.builder()?.unary(name, x.inner, y.inner))
    }

    /// Records a built-in function of two elements, such as "add" or "max".
    fn binary(&self, py: Python<'_>, name: &str, a: View, b: View, y: View) -> PyResult<()> {
        self.record(py, |plan| {
            plan.builder()?.binary(name, a.inner, b.inner, y.inner)
        })
    }

    /// Records a copy.
    fn copy(&self, py: Python<'_>, x: View, y: View) -> PyResult<()> {
        self.record(py, |plan| plan.builder()?.copy(x.inner, y.inner))
    }

    /// Compiles the plan for a device; it records nothing more then. `states` has buffers of that
    /// device, by the names of the states that use their memory; several plans may share one.
    ///
    /// Raises ValueError for an output that nothing writes, and a buffer of another type, length
    /// or device; the plan is lost then. KeyError for an unknown state.
    #[pyo3(signature = (*, device = DeviceArgument::Id("cpu".to_owned()), states: "dict[str, Buffer] | None" = None))]
    fn compile(
        &self,
        py: Python<'_>,
        device: DeviceArgument<'_>,
        states: Option<HashMap<String, PyRef<'_, Buffer>>>,
    ) -> PyResult<Executable> {
        let _call = process::enter(py)?;
        let shared = {
            let recorded = self.inner.lock(py)?;
            let states = states.iter().flatten().map(|(name, buffer)| {
                let view = *port(&recorded.states, "state", name)?;
                Ok((view, buffer.inner.clone()))
            });
            states.collect::<PyResult<Vec<_>>>()?
        };
        let device = if shared.is_empty() {
            device.open(py)?
        } else {
            Some(device.open_named(py)?)
        };
        let (builder, ports, twins) = {
            let mut recorded = self.inner.lock(py)?;
            let ports = Ports {
                inputs: recorded.inputs.clone(),
                outputs: recorded.outputs.clone(),
                states: recorded.states.clone(),
            };
            (recorded.builder.take(), ports, recorded.twins.clone())
        };
        let builder = builder
            .ok_or_else(|| PyValueError::new_err("the plan is compiled already; record another"))?;
        let run = run_long(py, move || {
            let plan = builder.finish()?;
            match device {
                Some(device) if !shared.is_empty() => {
                    let shared: Vec<_> =
                        shared.iter().map(|(view, state)| (*view, state)).collect();
                    plan.compile_with(&device, &shared)
                }
                device => plan.compile(device.as_ref()),
            }
        })?;
        // On other devices no twin is called. All runs wait for their twins in one order.
        let mut twins = if run.device().info().id == "cpu" {
            twins
        } else {
            Vec::new()
        };
        twins.sort_by_key(|twin| Arc::as_ptr(twin).addr());
        twins.dedup_by_key(|twin| Arc::as_ptr(twin).addr());
        Ok(Executable {
            runs: Runs::new(run.device(), run.code()),
            inner: Exclusive::new(run),
            ports,
            twins,
        })
    }
}

/// Views by name.
struct Ports {
    inputs: Vec<(String, Slot)>,
    outputs: Vec<(String, Slot)>,
    states: Vec<(String, Slot)>,
}

fn port<'p>(ports: &'p [(String, Slot)], kind: &str, name: &str) -> PyResult<&'p Slot> {
    let known = || {
        ports
            .iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    };
    let found = ports
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, view)| view);
    found.ok_or_else(|| PyKeyError::new_err(format!("no {kind} {name:?}; there are {}", known())))
}

/// A plan compiled for a device: `run` takes the inputs as keywords and returns a dict of the
/// outputs.
#[pyclass(frozen, module = "tectum")]
pub struct Executable {
    inner: Exclusive<Compiled>,
    ports: Ports,
    twins: Vec<Arc<Twin>>,
    runs: Runs,
}

/// The contents of a view, converted from an array.
enum Values<'py> {
    F32(Array<'py, f32>),
    F64(Array<'py, f64>),
    I32(Array<'py, i32>),
    U32(Array<'py, u32>),
}

impl<'py> Values<'py> {
    fn new(value: &Bound<'py, PyAny>, name: &str, view: Slot) -> PyResult<Self> {
        let values = match view.dtype() {
            DType::F32 => Self::F32(array(value, name)?),
            DType::F64 => Self::F64(array(value, name)?),
            DType::I32 => Self::I32(array(value, name)?),
            DType::U32 => Self::U32(array(value, name)?),
        };
        let elements: usize = values.shape().iter().product();
        if elements != view.len() {
            return Err(PyValueError::new_err(format!(
                "{name} has {elements} elements, needs {}",
                view.len()
            )));
        }
        Ok(values)
    }

    fn shape(&self) -> &[usize] {
        match self {
            Self::F32(array) => array.shape(),
            Self::F64(array) => array.shape(),
            Self::I32(array) => array.shape(),
            Self::U32(array) => array.shape(),
        }
    }

    fn copy_to_input(&self, run: &mut Compiled, view: Slot) -> PyResult<()> {
        match self {
            Self::F32(array) => array.with(|data| run.input::<f32>(view).copy_from_slice(data)),
            Self::F64(array) => array.with(|data| run.input::<f64>(view).copy_from_slice(data)),
            Self::I32(array) => array.with(|data| run.input::<i32>(view).copy_from_slice(data)),
            Self::U32(array) => array.with(|data| run.input::<u32>(view).copy_from_slice(data)),
        }
    }

    fn write_to_state(&self, run: &mut Compiled, view: Slot) -> PyResult<()> {
        match self {
            Self::F32(array) => array.with(|data| run.write_state(view, data))?,
            Self::F64(array) => array.with(|data| run.write_state(view, data))?,
            Self::I32(array) => array.with(|data| run.write_state(view, data))?,
            Self::U32(array) => array.with(|data| run.write_state(view, data))?,
        }
        .or_raise()
    }
}

/// The elements of an output.
pub enum Elements {
    F32(Vec<f32>),
    F64(Vec<f64>),
    I32(Vec<i32>),
    U32(Vec<u32>),
}

impl Elements {
    fn of(run: &Compiled, view: Slot) -> Self {
        match view.dtype() {
            DType::F32 => Self::F32(run.output(view).to_vec()),
            DType::F64 => Self::F64(run.output(view).to_vec()),
            DType::I32 => Self::I32(run.output(view).to_vec()),
            DType::U32 => Self::U32(run.output(view).to_vec()),
        }
    }

    pub fn into_array(self, py: Python<'_>) -> Bound<'_, PyAny> {
        match self {
            Self::F32(elements) => PyArray1::from_vec(py, elements).into_any(),
            Self::F64(elements) => PyArray1::from_vec(py, elements).into_any(),
            Self::I32(elements) => PyArray1::from_vec(py, elements).into_any(),
            Self::U32(elements) => PyArray1::from_vec(py, elements).into_any(),
        }
    }
}

/// A run that a stream executes. It has the executable until it ends.
pub struct SubmittedRun {
    /// None after the run.
    turn: Option<Turn<Compiled>>,
    views: Vec<(String, Slot)>,
    pub outputs: Vec<(String, Elements)>,
    runs: Runs,
    start: Instant,
}

impl Work for SubmittedRun {}

impl TwoPhaseRun for SubmittedRun {
    fn begin(&mut self) -> tectum::Result<()> {
        let begun = self
            .turn
            .as_ref()
            .map_or(Ok(()), |turn| turn.with(Compiled::begin));
        if begun.is_err() {
            self.turn = None;
        }
        begun
    }

    fn finish(&mut self) -> tectum::Result<RunStats> {
        let Some(turn) = self.turn.take() else {
            return Ok(RunStats::default());
        };
        let (stats, outputs) = turn.with(|run| {
            let stats = run.finish()?;
            let outputs = self.views.iter();
            let outputs = outputs.map(|(name, view)| (name.clone(), Elements::of(run, *view)));
            Ok::<_, tectum::Error>((stats, outputs.collect()))
        })?;
        self.outputs = outputs;
        self.runs.record(&stats, self.start.elapsed());
        Ok(stats)
    }
}

/// Runs a plan once, and raises what a twin raised.
fn run_once(
    run: &mut Compiled,
    twins: &[Arc<Twin>],
    runs: &Runs,
    left: &Arc<AtomicBool>,
) -> PyResult<()> {
    let _turns = twins
        .iter()
        .map(|twin| twin.turn.lock_detached())
        .collect::<tectum::Result<Vec<_>>>()
        .map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
    twins
        .iter()
        .for_each(|twin| *locked(&twin.left) = left.clone());
    let has_raised = || twins.iter().any(|twin| locked(&twin.raised).is_some());
    let ended = runs.timed(|| {
        let stats = run.run()?;
        if has_raised() {
            Err(tectum::Error::invalid("a twin raised"))
        } else {
            Ok(stats)
        }
    });
    match twins.iter().find_map(|twin| locked(&twin.raised).take()) {
        Some(error) => Err(error),
        None => ended.or_raise(),
    }
}

impl Executable {
    /// The executable with these inputs, for one call.
    fn locked_with(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Held<'_, Compiled>> {
        let mut converted = Vec::new();
        for (name, value) in inputs.into_iter().flatten() {
            let name: String = name.extract()?;
            let view = *port(&self.ports.inputs, "input", &name)?;
            converted.push((view, Values::new(&value, &name, view)?));
        }
        let mut run = self.inner.lock(py)?;
        for (view, values) in &converted {
            values.copy_to_input(&mut run, *view)?;
        }
        Ok(run)
    }

    /// A run with these inputs, for a stream.
    pub fn submitted(
        &self,
        py: Python<'_>,
        inputs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<SubmittedRun> {
        if let Some(twin) = self.twins.first() {
            return Err(PyValueError::new_err(format!(
                "kernel {}: on the CPU it is a function of Python, which a stream does not call; use run",
                twin.kernel
            )));
        }
        let turn = self.locked_with(py, inputs)?.into_turn(new_number());
        Ok(SubmittedRun {
            turn: Some(turn),
            views: self.ports.outputs.clone(),
            outputs: Vec::new(),
            runs: self.runs.clone(),
            start: Instant::now(),
        })
    }

    /// A state, copied from the device.
    fn read<T: Element + Send>(&self, py: Python<'_>, view: Slot) -> PyResult<Vec<T>> {
        let run = self.inner.lock(py)?;
        let (_, values) = self
            .inner
            .run(py, run, move |run| run.read_state::<T>(view))?;
        Ok(values)
    }
}

#[pymethods]
impl Executable {
    /// Runs once. Inputs that are not given keep their values.
    ///
    /// Raises KeyError for an unknown input, ValueError for another number of elements, what the
    /// device reports, and what a twin raised.
    #[pyo3(signature = (**inputs))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        inputs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let _call = process::enter(py)?;
        let run = self.locked_with(py, inputs)?;
        let (twins, runs) = (self.twins.clone(), self.runs.clone());
        let (interrupted, left) = (self.twins.clone(), Arc::new(AtomicBool::new(false)));
        let is_left = left.clone();
        let work = LongWork::silent().ended_by(move |py| {
            is_left.store(true, Ordering::Relaxed);
            // Without ctypes they end by themselves.
            let _ = interrupted
                .iter()
                .try_for_each(|twin| twin.interrupt(py, &is_left));
        });
        let (run, ()) = self.inner.run_watched(py, work, run, move |run, _| {
            run_once(run, &twins, &runs, &left)
        })?;
        let outputs = PyDict::new(py);
        for (name, view) in &self.ports.outputs {
            outputs.set_item(name, Elements::of(&run, *view).into_array(py))?;
        }
        Ok(outputs)
    }

    /// Copies a state from the device.
    fn read_state<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        let _call = process::enter(py)?;
        let view = *port(&self.ports.states, "state", name)?;
        Ok(match view.dtype() {
            DType::F32 => PyArray1::from_vec(py, self.read::<f32>(py, view)?).into_any(),
            DType::F64 => PyArray1::from_vec(py, self.read::<f64>(py, view)?).into_any(),
            DType::I32 => PyArray1::from_vec(py, self.read::<i32>(py, view)?).into_any(),
            DType::U32 => PyArray1::from_vec(py, self.read::<u32>(py, view)?).into_any(),
        })
    }

    /// Replaces a state on the device.
    fn write_state(&self, py: Python<'_>, name: &str, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let _call = process::enter(py)?;
        let view = *port(&self.ports.states, "state", name)?;
        let values = Values::new(values, name, view)?;
        values.write_to_state(&mut *self.inner.lock(py)?, view)
    }

    /// The memory of a state: another plan may be compiled with it, and on a CUDA device other
    /// libraries use it in place.
    ///
    /// Raises KeyError for an unknown state.
    fn state(&self, py: Python<'_>, name: &str) -> PyResult<Buffer> {
        let _call = process::enter(py)?;
        let view = *port(&self.ports.states, "state", name)?;
        let inner = self.inner.lock(py)?.state_buffer(view).or_raise()?;
        Buffer::of(inner)
    }

    /// On which device and by which code the runs were computed.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> PyResult<Receipt> {
        self.runs.receipt(py)
    }

    fn __repr__(&self) -> String {
        let names = |ports: &[(String, Slot)]| {
            ports
                .iter()
                .map(|(name, _)| name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        format!(
            "<tectum executable: {} -> {}>",
            names(&self.ports.inputs),
            names(&self.ports.outputs)
        )
    }
}
