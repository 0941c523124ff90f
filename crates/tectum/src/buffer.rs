//! Typed buffers in a device's memory; handles free themselves, once.

use std::marker::PhantomData;

use crate::device::{CopyPath, Device, Role};
use crate::dtype::Element;
use crate::error::{Error, Result};
use crate::host_memory;
use crate::shared_state::SharedState;

/// A typed buffer in a device's memory, freed when its last handle is dropped.
///
/// # Example
/// ```
/// use tectum::Device;
/// let device = Device::open("cpu")?;
/// let buffer = device.buffer_from(&[1.0f32, 2.0, 3.0])?;
/// assert_eq!(buffer.read()?, [1.0, 2.0, 3.0]);
/// # Ok::<(), tectum::Error>(())
/// ```
#[derive(Clone)]
pub struct Buffer<T: Element> {
    state: SharedState,
    element: PhantomData<T>,
}

impl<T: Element> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Buffer<{:?}>[{}] on {:?}",
            T::DTYPE,
            self.len(),
            self.device()
        )
    }
}

impl Device {
    /// Allocates a zeroed buffer of `len` elements.
    ///
    /// # Errors
    /// `OutOfMemory` with the numbers, after the pool was trimmed and the allocation retried.
    pub fn buffer<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        // Beyond the maximum size no pool has a bucket.
        let block = self
            .pool()
            .acquire_zeroed(len.saturating_mul(size_of::<T>()), Role::Device)?;
        Ok(Buffer::of(SharedState {
            device: self.clone(),
            block,
            len,
            dtype: T::DTYPE,
        }))
    }

    /// Allocates a buffer and copies `data` into it.
    ///
    /// # Errors
    /// As [`Device::buffer`].
    pub fn buffer_from<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        let block = self.pool().acquire(size_of_val(data), Role::Device)?;
        let buffer = Buffer::of(SharedState {
            device: self.clone(),
            block,
            len: data.len(),
            dtype: T::DTYPE,
        });
        buffer.write(data)?;
        Ok(buffer)
    }
}

impl SharedState {
    /// The same memory as a typed buffer.
    ///
    /// # Errors
    /// `Invalid` if its elements have another type.
    pub fn typed<T: Element>(&self) -> Result<Buffer<T>> {
        if self.dtype == T::DTYPE {
            Ok(Buffer::of(self.clone()))
        } else {
            Err(Error::invalid(format!(
                "{self:?} is no buffer of {}",
                T::DTYPE.wgsl()
            )))
        }
    }
}

impl<T: Element> Buffer<T> {
    /// A state of this type as a buffer.
    pub(crate) fn of(state: SharedState) -> Self {
        Self {
            state,
            element: PhantomData,
        }
    }

    /// Its memory, to be bound to a state of executables.
    pub fn as_state(&self) -> &SharedState {
        &self.state
    }

    /// The device that holds it.
    pub fn device(&self) -> &Device {
        &self.state.device
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.state.len
    }

    /// Whether it holds no elements.
    pub fn is_empty(&self) -> bool {
        self.state.len == 0
    }

    /// Replaces the contents.
    ///
    /// # Errors
    /// `Invalid` if `data` has another length; whatever the device reports.
    pub fn write(&self, data: &[T]) -> Result<()> {
        if data.len() != self.len() {
            return Err(Error::invalid(format!(
                "buffer of {} elements written with {}",
                self.len(),
                data.len()
            )));
        }
        if data.is_empty() {
            return Ok(());
        }
        self.state.device.backend().write(
            self.state.block.allocation(),
            0,
            bytemuck::cast_slice(data),
        )
    }

    /// Copies the contents to the host, after the device's earlier work.
    ///
    /// # Errors
    /// `OutOfMemory` if the host lacks memory for the copy; whatever the device reports.
    pub fn read(&self) -> Result<Vec<T>> {
        let mut data = host_memory::filled("a copy of a buffer", T::zeroed(), self.len())?;
        if !self.is_empty() {
            self.state.device.backend().read(
                self.state.block.allocation(),
                0,
                bytemuck::cast_slice_mut(&mut data),
            )?;
        }
        Ok(data)
    }

    /// Copies the contents to a buffer of any device, after both devices' earlier work, and waits.
    ///
    /// # Errors
    /// `Invalid` if the lengths differ; whatever either device reports.
    /// # Example
    /// ```
    /// use tectum::{CopyPath, Device};
    /// let device = Device::open("cpu")?;
    /// let (from, to) = (device.buffer_from(&[1u32, 2])?, device.buffer::<u32>(2)?);
    /// assert_eq!(from.copy_to(&to)?, CopyPath::Host);
    /// assert_eq!(to.read()?, [1, 2]);
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn copy_to(&self, to: &Buffer<T>) -> Result<CopyPath> {
        if to.len() != self.len() {
            return Err(Error::invalid(format!(
                "buffer of {} elements copied to one of {}",
                self.len(),
                to.len()
            )));
        }
        self.state.copy_to(&to.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn defect_19_a_buffer_of_the_greatest_length_is_an_error() {
        for device in [
            Device::open("cpu").expect("always there"),
            Device::null_with_capacity(1 << 20),
        ] {
            for len in [usize::MAX, usize::MAX / 4, 1 << 62, isize::MAX as usize] {
                assert_eq!(
                    device
                        .buffer::<f32>(len)
                        .expect_err("no memory has it")
                        .kind(),
                    ErrorKind::OutOfMemory,
                    "{len}"
                );
            }
            assert_eq!(device.buffer::<f32>(3).expect("fits").len(), 3);
        }
    }
}
