//! Arrays in a device's memory.

use numpy::{PyArray1, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::{CopyPath, DType, Device, Element, SharedState};

use crate::array::array;
use crate::device::DeviceArgument;
use crate::dtype;
use crate::error::OrRaise;
use crate::interrupt::run_long;
use crate::process;

/// Evaluates an expression with `T` as the element type.
macro_rules! with_element {
    ($dtype:expr, $T:ident => $value:expr) => {
        match $dtype {
            DType::F32 => {
                type $T = f32;
                $value
            }
            DType::F64 => {
                type $T = f64;
                $value
            }
            DType::I32 => {
                type $T = i32;
                $value
            }
            DType::U32 => {
                type $T = u32;
                $value
            }
        }
    };
}

/// An array of one dimension in a device's memory, freed with its last reference.
///
/// `Buffer(1000)` is zeroed, of `dtype` "float32" (the default), "float64", "int32" or "uint32";
/// `Buffer(array)` has the elements of an array, in order, and their type. `plan.compile(states=…)`
/// binds buffers to states of plans, `executable.state(name)` is the memory of one.
///
/// On CUDA devices libraries with the CUDA array interface use the memory in place and keep it
/// alive: `torch.as_tensor(buffer, device="cuda:0")`, `cupy.asarray(buffer)`. JAX does not keep it
/// alive, so copy there: `jax.numpy.array(cupy.asarray(buffer))`. What others do with it must be
/// complete before the next run that uses it, for example after `torch.cuda.synchronize()`.
///
/// Raises MemoryError, TypeError for another element type, ValueError for a device of several.
///
/// >>> import numpy as np, tectum as tt
/// >>> buffer = tt.Buffer(np.float32([1, 2, 3]))
/// >>> buffer.write([4, 5, 6])
/// >>> buffer.read()
/// array([4., 5., 6.], dtype=float32)
#[pyclass(frozen, module = "tectum")]
pub struct Buffer {
    pub inner: SharedState,
    device: String,
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // Another reference, so that no driver is used where it must not be.
        if process::leaks() {
            std::mem::forget(self.inner.clone());
        }
    }
}

impl Buffer {
    pub fn of(inner: SharedState) -> PyResult<Self> {
        let id = with_element!(inner.dtype(), T => {
            inner.typed::<T>().or_raise()?.device().info().id.clone()
        });
        Ok(Self { inner, device: id })
    }
}

fn zeroed<T: Element>(device: &Device, len: usize) -> tectum::Result<SharedState> {
    Ok(device.buffer::<T>(len)?.as_state().clone())
}

fn filled<T: Element>(device: &Device, data: &[T]) -> tectum::Result<SharedState> {
    Ok(device.buffer_from(data)?.as_state().clone())
}

#[pymethods]
impl Buffer {
    #[new]
    #[pyo3(signature = (values: "int | ArrayLike", *, dtype: "str | None" = None, device = DeviceArgument::Id("cpu".to_owned())))]
    fn new(
        py: Python<'_>,
        values: &Bound<'_, PyAny>,
        dtype: Option<&str>,
        device: DeviceArgument<'_>,
    ) -> PyResult<Self> {
        let _call = process::enter(py)?;
        let stated = dtype.map(dtype::parse).transpose()?;
        let device = device.open_named(py)?;
        let is_array = values.cast::<PyUntypedArray>().is_ok() || values.hasattr("__array__")?;
        if let (Ok(len), false) = (values.extract::<usize>(), is_array) {
            let dtype = stated.unwrap_or(DType::F32);
            let make = move || with_element!(dtype, T => zeroed::<T>(&device, len));
            return Self::of(run_long(py, make)?);
        }
        let values = py.import("numpy")?.call_method1("asarray", (values,))?;
        let name: String = values
            .cast::<PyUntypedArray>()?
            .dtype()
            .getattr("name")?
            .extract()?;
        let dtype = match stated {
            Some(dtype) => dtype,
            None => dtype::parse(&name).map_err(|_| {
                PyTypeError::new_err(format!(
                    "values are {name}: give dtype, one of float32, float64, int32 and uint32"
                ))
            })?,
        };
        let inner = with_element!(dtype, T => {
            let data = array::<T>(&values, "values")?.into_vec()?;
            run_long(py, move || filled(&device, &data))?
        });
        Self::of(inner)
    }

    fn __len__(&self) -> usize {
        self.inner.len()
    }

    /// NumPy's name of the element type.
    #[getter]
    fn dtype(&self) -> &'static str {
        dtype::name(self.inner.dtype())
    }

    /// The id of the device.
    #[getter]
    fn device(&self) -> &str {
        &self.device
    }

    /// Copies the elements to the host, after the device's earlier work.
    fn read<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let _call = process::enter(py)?;
        let inner = self.inner.clone();
        Ok(with_element!(inner.dtype(), T => {
            let data = run_long(py, move || inner.typed::<T>()?.read())?;
            PyArray1::from_vec(py, data).into_any()
        }))
    }

    /// Replaces all elements. Raises ValueError for another number of them.
    fn write(&self, py: Python<'_>, values: &Bound<'_, PyAny>) -> PyResult<()> {
        let _call = process::enter(py)?;
        let inner = self.inner.clone();
        with_element!(inner.dtype(), T => {
            let data = array::<T>(values, "values")?.into_vec()?;
            run_long(py, move || inner.typed::<T>()?.write(&data))
        })
    }

    /// Copies all elements to a buffer of the same type and length, on any device. Returns how:
    /// "device", "peer" or "host".
    ///
    /// Raises ValueError for another type or length.
    fn copy_to(&self, py: Python<'_>, other: &Self) -> PyResult<&'static str> {
        let _call = process::enter(py)?;
        let (from, to) = (self.inner.clone(), other.inner.clone());
        let path = with_element!(from.dtype(), T => run_long(py, move || {
            from.typed::<T>()?.copy_to(&to.typed::<T>()?)
        }))?;
        Ok(match path {
            CopyPath::Device => "device",
            CopyPath::Peer => "peer",
            CopyPath::Host => "host",
        })
    }

    /// `numpy.asarray(buffer)`: a copy.
    #[pyo3(signature = (dtype = None, copy = None))]
    fn __array__<'py>(
        &self,
        py: Python<'py>,
        dtype: Option<&Bound<'py, PyAny>>,
        copy: Option<bool>,
    ) -> PyResult<Bound<'py, PyAny>> {
        if copy == Some(false) {
            return Err(PyValueError::new_err(
                "an array of a device's memory is always a copy",
            ));
        }
        let read = self.read(py)?;
        match dtype {
            Some(dtype) => read.call_method1("astype", (dtype,)),
            None => Ok(read),
        }
    }

    /// Version 3 of the CUDA array interface: shape, type and address; nothing to wait for. Raises
    /// AttributeError on devices of other kinds.
    #[getter]
    fn __cuda_array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let _call = process::enter(py)?;
        let address = self.inner.cuda_address().ok_or_else(|| {
            PyAttributeError::new_err(format!(
                "the buffer is on {}; only memory of CUDA devices has an address for others",
                self.device()
            ))
        })?;
        let interface = PyDict::new(py);
        interface.set_item("shape", (self.inner.len(),))?;
        interface.set_item(
            "typestr",
            py.import("numpy")?
                .call_method1("dtype", (self.dtype(),))?
                .getattr("str")?,
        )?;
        interface.set_item("data", (address, false))?;
        interface.set_item("version", 3)?;
        interface.set_item("strides", py.None())?;
        interface.set_item("stream", py.None())?;
        Ok(interface)
    }

    fn __repr__(&self) -> String {
        format!(
            "<tectum buffer: {} of {} on {}>",
            self.inner.len(),
            self.dtype(),
            self.device()
        )
    }
}
