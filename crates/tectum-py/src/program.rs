//! Lane-level programs over arrays.

use std::path::PathBuf;
use std::sync::Mutex;

use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tectum_programs::{
    ArrayLaunch, BufferAccess, BufferDeclaration, BufferIndex, Checked, LaunchRequest,
    ProgramCache, Recognize, Type,
};

use crate::body::locked;
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::interrupt::detached;
use crate::receipt::{Receipt, Runs};
use crate::sequence::Sequence;

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
    inner: Checked,
    /// Of the last run.
    last: Mutex<Option<Runs>>,
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
pub fn program(py: Python<'_>, text: &str) -> PyResult<Program> {
    let is_path = !text.contains('\n') && text.ends_with(".atlas");
    let (text, path) = if is_path {
        (std::fs::read_to_string(text)?, Some(PathBuf::from(text)))
    } else {
        (text.to_owned(), None)
    };
    let inner = detached(py, || {
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
        inner,
        last: Mutex::default(),
    })
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
fn copy_bytes(array: &Bound<'_, PyAny>, to: &mut [u8]) -> PyResult<()> {
    let flat = array
        .call_method1("reshape", (-1,))?
        .call_method1("view", ("uint8",))?;
    to.copy_from_slice(flat.extract::<PyReadonlyArray1<'_, u8>>()?.as_slice()?);
    Ok(())
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
    #[pyo3(signature = (*, device = DeviceArgument::Id("cpu".to_owned()), grid = None, block = None, shared_bytes = None, max_loop_iterations = None, reassociate = false, **arrays))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn run<'py>(
        &self,
        py: Python<'py>,
        device: DeviceArgument<'py>,
        grid: Option<(u32, u32, u32)>,
        block: Option<(u32, u32, u32)>,
        shared_bytes: Option<u32>,
        max_loop_iterations: Option<u32>,
        reassociate: bool,
        arrays: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
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
        let mut integers = Vec::new();
        for (index, (buffer, argument)) in buffers.iter().zip(&given).enumerate() {
            if let (BufferAccess::Read, true, Some(array)) =
                (buffer.access, buffer.ty.is_integer(), &argument.array)
            {
                let mut contents = vec![0; sizes[index] as usize];
                copy_bytes(array, &mut contents)?;
                integers.push((BufferIndex(index as u32), contents));
            }
        }
        let device = device.open(py)?;
        let run = detached(py, || {
            let contents: Vec<(BufferIndex, &[u8])> = integers
                .iter()
                .map(|(index, bytes)| (*index, bytes.as_slice()))
                .collect();
            let how = if reassociate {
                Recognize::Reassociated
            } else {
                Recognize::Exact
            };
            ProgramCache::shared().run_as(
                &self.inner.bound(&launch, &sizes)?,
                device.as_ref(),
                how,
                &contents,
            )
        })?;
        let mut run = pyo3::sync::MutexExt::lock_py_attached(&*run, py)
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        for (index, argument) in given.iter().enumerate() {
            let input = run.input(BufferIndex(index as u32));
            match &argument.array {
                _ if input.is_empty() => {}
                Some(array) => copy_bytes(array, input)?,
                // The last run may have left something.
                None => input.fill(0),
            }
        }
        {
            let run = &mut *run;
            detached(py, || {
                let runs = Runs::new(run.executable().device(), run.executable().code());
                run.fallback()
                    .into_iter()
                    .for_each(|fallback| runs.record_fallback(fallback));
                runs.timed(|| run.run())?;
                *locked(&self.last) = Some(runs);
                Ok(())
            })?;
        }
        let outputs = PyDict::new(py);
        for (index, (buffer, shape)) in buffers
            .iter()
            .zip(&shapes)
            .enumerate()
            .filter(|(_, (buffer, _))| buffer.access.writes())
        {
            let bytes = PyArray1::from_slice(py, run.output(BufferIndex(index as u32)));
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
    fn receipt(&self) -> Option<Receipt> {
        locked(&self.last).as_ref().map(Runs::receipt)
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
