//! Lane-level programs over arrays.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tectum_programs::{
    ArrayLaunch, BufferAccess, BufferDeclaration, BufferIndex, Checked, LaunchConfig,
    LaunchRequest, ProgramCache, Recognize, Type,
};

use crate::device::DeviceArgument;
use crate::error::{OrRaise, exception};
use crate::exclusive::Exclusive;
use crate::interrupt::run_long;
use crate::process;
use crate::receipt::{Receipt, Runs};
use crate::sequence::Sequence;
use crate::whole;

/// NumPy's name of a type; bits as unsigned words where NumPy has none.
fn dtype(ty: Type) -> &'static str {
    match ty {
        Type::I8 => "int8",
        Type::I16 => "int16",
        Type::I32 => "int32",
        Type::I64 => "int64",
        Type::U8 => "uint8",
        Type::U16 | Type::Bf16 => "uint16",
        Type::U32 => "uint32",
        Type::U64 => "uint64",
        Type::F16 => "float16",
        Type::F32 => "float32",
        Type::F64 => "float64",
    }
}

/// A lane-level program (docs/programs.md), checked. `tectum.program` makes one from its text.
#[pyclass(frozen, module = "tectum")]
pub struct Program {
    inner: Arc<Checked>,
    last: Exclusive<LastRun>,
}

/// The last run of a program.
#[derive(Default)]
struct LastRun {
    runs: Option<Runs>,
    /// Bytes of its buffers.
    bytes: u64,
}

/// Reads and checks a program from its text, or from a file with the ending .atlas.
///
/// Raises ValueError naming line and column of what is malformed or cannot be proved.
///
/// >>> import tectum as tt
/// >>> saxpy = tt.program('''
/// ... buffer x: f32 read
/// ... buffer y: f32 read_write
/// ... mov_imm.f32 r0, 2.0
/// ... ldg.f32 r1, [x]
/// ... ldg.f32 r2, [y]
/// ... fma.f32 r2, r0, r1, r2
/// ... stg.f32 [y], r2
/// ... ''')
/// >>> import numpy as np
/// >>> saxpy.run(x=np.array([1, 2, 3], np.float32), y=np.ones(3, np.float32))["y"].tolist()
/// [3.0, 5.0, 7.0]
#[pyfunction]
pub fn program(py: Python<'_>, text: PathBuf) -> PyResult<Program> {
    let _call = process::enter(py)?;
    let is_path = |text: &str| !text.contains('\n') && text.ends_with(".atlas");
    let (text, path) = match text.to_str() {
        Some(text) if !is_path(text) => (text.to_owned(), None),
        _ => (read(&text)?, Some(text)),
    };
    let inner = run_long(py, move || {
        let checked = tectum_programs::Program::parse(&text).and_then(|program| program.check());
        checked.map_err(|error| {
            if let Some(path) = path {
                error.at(path.display())
            } else {
                error
            }
        })
    })?;
    Ok(Program {
        inner: Arc::new(inner),
        last: Exclusive::new(LastRun::default()),
    })
}

/// The text of a file.
fn read(path: &Path) -> PyResult<String> {
    std::fs::read_to_string(path)
        .map_err(|error| exception(tectum::Error::io(path.display(), error)))
}

/// An argument of a run: an array, or the shape of an output.
struct Argument<'py> {
    /// In row-major order, of the buffer's type.
    array: Option<Bound<'py, PyAny>>,
    shape: Option<Vec<u64>>,
}

impl<'py> Argument<'py> {
    fn of(buffer: &BufferDeclaration, value: Option<Bound<'py, PyAny>>) -> PyResult<Self> {
        let (reads, name) = (buffer.access.reads(), &buffer.name);
        let Some(value) = value else {
            return if buffer.access.writes() {
                Ok(Self {
                    array: None,
                    shape: None,
                })
            } else {
                Err(PyKeyError::new_err(format!(
                    "buffer {name} is read and has no contents: give an array"
                )))
            };
        };
        let size = value.extract::<u64>().map(|size| vec![size]).or_else(|_| {
            let tuple = value.extract::<Bound<'_, PyTuple>>()?;
            tuple.extract::<Sequence<u64>>().map(|shape| shape.0)
        });
        if let (true, Ok(shape)) = (buffer.access.writes(), size) {
            return Ok(Self {
                array: None,
                shape: Some(shape),
            });
        }
        if !reads {
            return Err(PyValueError::new_err(format!(
                "buffer {name} is only written: give its number of elements, or its shape as a tuple"
            )));
        }
        let array = value
            .py()
            .import("numpy")?
            .call_method1("ascontiguousarray", (value,))?;
        let found: String = array.getattr("dtype")?.getattr("name")?.extract()?;
        let array = if buffer.ty == Type::U8 && found != "uint8" {
            array.call_method1("view", ("uint8",))?
        } else {
            array
        };
        if found != dtype(buffer.ty) && buffer.ty != Type::U8 {
            return Err(PyValueError::new_err(format!(
                "buffer {name}: the array has the type {found}, {} needs {}",
                buffer.ty,
                dtype(buffer.ty)
            )));
        }
        // In the order of bytes of this machine.
        let array = array
            .py()
            .import("numpy")?
            .call_method1("ascontiguousarray", (&array, dtype(buffer.ty)))?;
        let shape: Vec<u64> = array.getattr("shape")?.extract()?;
        Ok(Self {
            array: Some(array),
            shape: Some(shape),
        })
    }
}

/// The bytes of an array in row-major order.
fn bytes_of(array: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let flat = array
        .call_method1("reshape", (-1,))?
        .call_method1("view", ("uint8",))?;
    Ok(flat
        .extract::<PyReadonlyArray1<'_, u8>>()?
        .as_slice()?
        .to_vec())
}

/// Runs a program over the contents of its buffers; zeros where there are none. Returns the
/// contents of the buffers that it writes.
fn run_over(
    program: &Checked,
    launch: &LaunchConfig,
    sizes: &[u64],
    device: Option<&tectum::Device>,
    recognize: Recognize,
    contents: &[Option<Vec<u8>>],
) -> tectum::Result<(Runs, Vec<Vec<u8>>)> {
    let buffers = program.program().buffers();
    let index = |place: usize| BufferIndex(place as u32);
    // Their values decide which accesses need no test.
    let integers: Vec<(BufferIndex, &[u8])> = buffers
        .iter()
        .zip(contents)
        .enumerate()
        .filter(|(_, (buffer, _))| buffer.access == BufferAccess::Read && buffer.ty.is_integer())
        .filter_map(|(place, (_, bytes))| Some((index(place), bytes.as_deref()?)))
        .collect();
    let bounded = program.bound(launch, sizes)?;
    let run = ProgramCache::shared().run_as(&bounded, device, recognize, &integers)?;
    let mut run = run.lock().unwrap_or_else(PoisonError::into_inner);
    for (place, bytes) in contents.iter().enumerate() {
        let input = run.input(index(place));
        match bytes {
            _ if input.is_empty() => {}
            Some(bytes) => input.copy_from_slice(bytes),
            // The last run may have left something.
            None => input.fill(0),
        }
    }
    let runs = Runs::new(run.executable().device(), run.executable().code());
    run.fallback()
        .into_iter()
        .for_each(|fallback| runs.record_fallback(fallback));
    runs.timed(|| run.run())?;
    let results = buffers
        .iter()
        .enumerate()
        .filter(|(_, buffer)| buffer.access.writes())
        .map(|(place, _)| run.output(index(place)).to_vec())
        .collect();
    Ok((runs, results))
}

#[pymethods]
impl Program {
    /// The name, as the text declares it.
    #[getter]
    fn name(&self) -> &str {
        self.inner.program().name()
    }

    /// Name, type ("f32", …) and access ("read", "write" or "read_write") of each buffer.
    #[getter]
    fn buffers(&self) -> Vec<(String, &'static str, &'static str)> {
        let buffers = self.inner.program().buffers().iter();
        buffers
            .map(|buffer| (buffer.name.clone(), buffer.ty.name(), buffer.access.name()))
            .collect()
    }

    /// Runs the program over arrays, one keyword for each buffer, and returns the buffers that it
    /// writes as a dict of arrays.
    ///
    /// A buffer that is only written gets its number of elements, or its shape as a tuple; without
    /// it, as many elements as the arrays that lanes access by their own number. `grid` and `block`
    /// are sizes in x, y and z; without them there is a lane for each element. With `reassociate`,
    /// sums of floats may change their order. A launch that was compiled before is used again.
    ///
    /// Raises KeyError for a buffer without contents, ValueError for an array of another type or a
    /// lane's fault with its line.
    #[pyo3(signature = (*, device = DeviceArgument::Id("cpu".to_owned()), grid: "tuple[int, int, int] | None" = None, block: "tuple[int, int, int] | None" = None, shared_bytes: "int | None" = None, max_loop_iterations: "int | None" = None, reassociate = false, **arrays))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn run<'py>(
        &self,
        py: Python<'py>,
        device: DeviceArgument<'py>,
        #[pyo3(from_py_with = whole::grid)] grid: Option<(u32, u32, u32)>,
        #[pyo3(from_py_with = whole::block)] block: Option<(u32, u32, u32)>,
        #[pyo3(from_py_with = whole::shared_bytes)] shared_bytes: Option<u32>,
        #[pyo3(from_py_with = whole::max_loop_iterations)] max_loop_iterations: Option<u32>,
        reassociate: bool,
        arrays: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let _call = process::enter(py)?;
        let program = self.inner.program();
        let buffers = program.buffers();
        let arrays = arrays.map_or_else(|| PyDict::new(py), Clone::clone);
        for name in arrays.keys() {
            let name: String = name.extract()?;
            if !buffers.iter().any(|buffer| buffer.name == name) {
                let known: Vec<&str> = buffers.iter().map(|buffer| buffer.name.as_str()).collect();
                return Err(PyKeyError::new_err(format!(
                    "no buffer {name:?}; there are {}",
                    known.join(", ")
                )));
            }
        }
        let given = buffers
            .iter()
            .map(|buffer| Argument::of(buffer, arrays.get_item(&buffer.name)?))
            .collect::<PyResult<Vec<_>>>()?;
        let request = LaunchRequest {
            grid: grid.map(Into::into),
            block: block.map(Into::into),
            shared_bytes,
            max_loop_iterations,
        };
        let shapes: Vec<Option<Vec<u64>>> = given
            .iter()
            .map(|argument| argument.shape.clone())
            .collect();
        let ArrayLaunch { launch, shapes, .. } =
            program.launch_over(&shapes, &request).or_raise()?;
        let bytes = |(buffer, shape): (&BufferDeclaration, &Vec<u64>)| {
            let bytes = shape
                .iter()
                .try_fold(buffer.ty.bytes(), |bytes, size| bytes.checked_mul(*size))
                .filter(|bytes| *bytes <= u64::from(u32::MAX));
            bytes.ok_or_else(|| {
                PyValueError::new_err(format!(
                    "buffer {}: {shape:?} of {}; a buffer has at most {} bytes",
                    buffer.name,
                    buffer.ty,
                    u32::MAX
                ))
            })
        };
        let sizes = buffers
            .iter()
            .zip(&shapes)
            .map(bytes)
            .collect::<PyResult<Vec<u64>>>()?;
        let mut contents = Vec::with_capacity(buffers.len());
        for ((buffer, argument), size) in buffers.iter().zip(&given).zip(&sizes) {
            let bytes = argument.array.as_ref().map(bytes_of).transpose()?;
            if let Some(bytes) = bytes.as_ref().filter(|bytes| bytes.len() as u64 != *size) {
                return Err(PyValueError::new_err(format!(
                    "buffer {}: the array was changed during the call: {} bytes, needs {size}",
                    buffer.name,
                    bytes.len()
                )));
            }
            contents.push(bytes);
        }
        let (device, checked) = (device.open(py)?, self.inner.clone());
        let total: u64 = sizes.iter().sum();
        let last = self.last.lock(py)?;
        if total > last.bytes {
            self.last.expect_slow();
        }
        let recognize = if reassociate {
            Recognize::Reassociated
        } else {
            Recognize::Exact
        };
        let (_, results) = self.last.run(py, last, move |last| {
            let (runs, results) = run_over(
                &checked,
                &launch,
                &sizes,
                device.as_ref(),
                recognize,
                &contents,
            )?;
            (last.runs, last.bytes) = (Some(runs), total);
            Ok(results)
        })?;
        let outputs = PyDict::new(py);
        let written = buffers
            .iter()
            .zip(&shapes)
            .filter(|(buffer, _)| buffer.access.writes());
        for ((buffer, shape), bytes) in written.zip(results) {
            let bytes = PyArray1::from_vec(py, bytes);
            let typed = bytes.call_method1("view", (dtype(buffer.ty),))?;
            outputs.set_item(
                &buffer.name,
                typed.call_method1("reshape", (PyTuple::new(py, shape)?,))?,
            )?;
        }
        Ok(outputs)
    }

    /// On which device and by which code the last run was computed; None before the first.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> PyResult<Option<Receipt>> {
        let _call = process::enter(py)?;
        let runs = self.last.lock(py)?.runs.clone();
        runs.map(|runs| runs.receipt(py)).transpose()
    }

    fn __repr__(&self) -> String {
        let program = self.inner.program();
        format!(
            "<tectum program '{}': {} instructions, {} buffers>",
            program.name(),
            program.instructions().len(),
            program.buffers().len()
        )
    }

    fn __str__(&self) -> String {
        self.inner.program().to_string()
    }
}
