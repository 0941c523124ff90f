//! Typed buffers in a device's memory; handles free themselves, once.

use std::marker::PhantomData;
use std::sync::Arc;

use crate::device::{Block, CopyPath, Device, HOST_COPY_BYTES, Role};
use crate::dtype::Element;
use crate::error::{Error, Result};

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
pub struct Buffer<T: Element> {
    device: Device,
    block: Arc<Block>,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self { device: self.device.clone(), block: self.block.clone(), len: self.len, element: PhantomData }
    }
}

impl<T: Element> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer<{:?}>[{}] on {:?}", T::DTYPE, self.len, self.device)
    }
}

impl Device {
    /// Allocates a zeroed buffer of `len` elements.
    ///
    /// # Errors
    /// `OutOfMemory` with the numbers, after the pool was trimmed and the allocation retried.
    pub fn buffer<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        // Beyond the maximum size no pool has a bucket.
        let block = self.pool().acquire_zeroed(len.saturating_mul(size_of::<T>()), Role::Device)?;
        Ok(Buffer::from_block(self.clone(), block, len))
    }

    /// Allocates a buffer and copies `data` into it.
    ///
    /// # Errors
    /// As [`Device::buffer`].
    pub fn buffer_from<T: Element>(&self, data: &[T]) -> Result<Buffer<T>> {
        let block = self.pool().acquire(size_of_val(data), Role::Device)?;
        let buffer = Buffer::from_block(self.clone(), block, data.len());
        buffer.write(data)?;
        Ok(buffer)
    }
}

impl<T: Element> Buffer<T> {
    pub(crate) fn from_block(device: Device, block: Arc<Block>, len: usize) -> Self {
        Self { device, block, len, element: PhantomData }
    }

    pub(crate) fn block(&self) -> &Arc<Block> {
        &self.block
    }

    /// The device that holds it.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it holds no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Replaces the contents.
    ///
    /// # Errors
    /// `Invalid` if `data` has another length; whatever the device reports.
    pub fn write(&self, data: &[T]) -> Result<()> {
        if data.len() != self.len {
            return Err(Error::invalid(format!("buffer of {} elements written with {}", self.len, data.len())));
        }
        if data.is_empty() {
            return Ok(());
        }
        self.device.backend().write(self.block.allocation(), 0, bytemuck::cast_slice(data))
    }

    /// Copies the contents to the host, after the device's earlier work.
    ///
    /// # Errors
    /// Whatever the device reports.
    pub fn read(&self) -> Result<Vec<T>> {
        let mut data = vec![T::zeroed(); self.len];
        if self.len > 0 {
            self.device.backend().read(self.block.allocation(), 0, bytemuck::cast_slice_mut(&mut data))?;
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
        if to.len != self.len {
            return Err(Error::invalid(format!("buffer of {} elements copied to one of {}", self.len, to.len)));
        }
        if self.len == 0 || Arc::ptr_eq(&self.block, &to.block) {
            return Ok(CopyPath::Device);
        }
        let (source, target) = (self.block.allocation(), to.block.allocation());
        let bytes = self.len * size_of::<T>();
        if let Some(path) = self.device.backend().copy(source, target, bytes)? {
            return Ok(path);
        }
        let mut piece = vec![0; bytes.min(HOST_COPY_BYTES)];
        for offset in (0..bytes).step_by(HOST_COPY_BYTES) {
            let piece = &mut piece[..(bytes - offset).min(HOST_COPY_BYTES)];
            self.device.backend().read(source, offset, piece)?;
            to.device.backend().write(target, offset, piece)?;
        }
        Ok(CopyPath::Host)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn defect_19_a_buffer_of_the_greatest_length_is_an_error() {
        for device in [Device::open("cpu").expect("always there"), Device::null_with_capacity(1 << 20)] {
            for len in [usize::MAX, usize::MAX / 4, 1 << 62, isize::MAX as usize] {
                assert_eq!(device.buffer::<f32>(len).expect_err("no memory has it").kind(), ErrorKind::OutOfMemory, "{len}");
            }
            assert_eq!(device.buffer::<f32>(3).expect("fits").len(), 3);
        }
    }
}
