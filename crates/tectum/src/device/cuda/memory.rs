//! Device memory, and host memory that the device copies from and to.

use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Arc;

use cudarc::driver::sys::{CUdeviceptr, CUstream};

use super::context::Context;
use super::driver::call;
use crate::error::{Error, Result};

/// Device memory, freed in stream order when dropped.
pub(crate) struct CudaMemory {
    context: Arc<Context>,
    address: CUdeviceptr,
    bytes: usize,
}

impl CudaMemory {
    /// Device memory of a context.
    pub(super) fn allocate(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        Ok(Self {
            address: context.address_of(bytes)?,
            context: context.clone(),
            bytes,
        })
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.context
    }

    /// The address of a range, which must lie within the memory.
    pub(in crate::device) fn address(&self, offset: usize, bytes: usize) -> CUdeviceptr {
        assert!(
            offset + bytes <= self.bytes,
            "invariant: the plan and the buffers checked every range"
        );
        self.address + offset as CUdeviceptr
    }
}

impl Drop for CudaMemory {
    fn drop(&mut self) {
        // SAFETY: the address came from the context's `allocate`, and the only owner releases it.
        unsafe { self.context.free(self.address) };
    }
}

/// Page-locked host memory: the device copies from and to it by itself.
pub(super) struct Pinned {
    context: Arc<Context>,
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is the process's and is accessed only through this value.
unsafe impl Send for Pinned {}

impl Pinned {
    /// Allocates zeroed memory, at least a byte.
    pub fn allocate(context: &Arc<Context>, bytes: usize) -> Result<Self> {
        let bytes = bytes.max(1);
        context.bind()?;
        let mut start: *mut c_void = std::ptr::null_mut();
        // SAFETY: the context is current and one pointer is written.
        unsafe { call!(context.driver, cuMemHostAlloc(&raw mut start, bytes, 0)) }.map_err(
            |error| {
                error.at(format_args!(
                    "{}: {bytes} bytes of pinned host memory",
                    context.info.id
                ))
            },
        )?;
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(|| {
            Error::unsupported(format!(
                "{}: cuMemHostAlloc gave no memory",
                context.info.id
            ))
        })?;
        // SAFETY: the allocation holds `bytes` bytes and nothing else refers to it yet.
        unsafe { start.write_bytes(0, bytes) };
        Ok(Self {
            context: context.clone(),
            start,
            bytes,
        })
    }

    pub fn len(&self) -> usize {
        self.bytes
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: initialised at allocation; copies only write it while a run or a read borrows its
        // owner exclusively and waits for the stream.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.bytes) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as `bytes`; the exclusive borrow excludes every other slice.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.bytes) }
    }

    /// Enqueues a copy of the first `bytes` to the device on a stream.
    ///
    /// # Safety
    /// `to` is device memory of at least `bytes` bytes; this value outlives the copy (and the
    /// graph, if the stream is being captured) and is not written before the stream is past it.
    pub unsafe fn upload(&self, to: CUdeviceptr, bytes: usize, stream: CUstream) -> Result<()> {
        assert!(
            bytes <= self.bytes,
            "invariant: copies fit their pinned block"
        );
        // SAFETY: the caller vouches for the device's side and for the lifetime.
        unsafe {
            call!(
                self.context.driver,
                cuMemcpyHtoDAsync_v2(to, self.start.as_ptr().cast(), bytes, stream)
            )
        }
    }

    /// Enqueues a copy from the device to the first `bytes` on a stream.
    ///
    /// # Safety
    /// As [`Pinned::upload`]; nothing reads this value before the stream is past the copy.
    pub unsafe fn download(&self, from: CUdeviceptr, bytes: usize, stream: CUstream) -> Result<()> {
        assert!(
            bytes <= self.bytes,
            "invariant: copies fit their pinned block"
        );
        // SAFETY: the caller vouches for the device's side and for the lifetime.
        unsafe {
            call!(
                self.context.driver,
                cuMemcpyDtoHAsync_v2(self.start.as_ptr().cast(), from, bytes, stream)
            )
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: allocated by `allocate`; the owner waited for the stream after the last copy.
            unsafe { (self.context.driver.cuMemFreeHost)(self.start.as_ptr().cast()) };
        }
    }
}
