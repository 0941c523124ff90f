//! A device's context: one stream that orders all of its work, and its memory.

use std::ffi::c_void;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUdeviceptr, CUmemPool_attribute, CUmemoryPool, CUstream,
};

use super::driver::{Driver, call};
use super::enumeration::Found;
use crate::device::DeviceInfo;
use crate::error::{ErrorKind, Result};

/// `CU_STREAM_NON_BLOCKING`: no order with the legacy default stream.
pub(super) const NON_BLOCKING: u32 = 1;

/// State shared by everything on a device. Work is ordered only by `stream`, so buffers may be
/// shared freely.
pub(super) struct Context {
    pub info: DeviceInfo,
    pub driver: &'static Driver,
    pub handle: CUdevice,
    /// The device's primary context, which libraries of the CUDA runtime use too.
    pub primary: CUcontext,
    /// The driver's pool of stream-ordered memory; none where the device does not support it.
    pub pool: Option<CUmemoryPool>,
    stream: CUstream,
    /// Locked while work of several parts is enqueued on the stream.
    turn: Mutex<()>,
}

// SAFETY: the driver's functions may be called from any thread once the context is current there
// (`bind`), handles are only passed to it, and a stream orders what several threads enqueue.
unsafe impl Send for Context {}
// SAFETY: as above; what is behind the handles is only accessed through the driver.
unsafe impl Sync for Context {}

impl Context {
    pub fn open(found: &'static Found) -> Result<Arc<Self>> {
        let driver = found.driver;
        let (mut primary, mut stream) = (std::ptr::null_mut(), std::ptr::null_mut());
        let info = found.info.clone();
        let id = info.id.clone();
        // SAFETY: the driver is initialised, the device handle comes from it, and each call writes
        // one handle. The context is current when the stream is made, and is released again if that
        // fails.
        unsafe {
            call!(
                driver,
                cuDevicePrimaryCtxRetain(&raw mut primary, found.handle)
            )
            .map_err(|e| e.at(&id))?;
            let made = call!(driver, cuCtxSetCurrent(primary))
                .and_then(|()| call!(driver, cuStreamCreate(&raw mut stream, NON_BLOCKING)));
            if let Err(error) = made {
                (driver.cuDevicePrimaryCtxRelease_v2)(found.handle);
                return Err(error.at(&id));
            }
        }
        let mut context = Self {
            info,
            driver,
            handle: found.handle,
            primary,
            pool: None,
            stream,
            turn: Mutex::new(()),
        };
        if found.memory_pools {
            context.pool = Some(context.default_pool()?);
        }
        Ok(Arc::new(context))
    }

    /// The device's default pool, configured to keep freed memory.
    fn default_pool(&self) -> Result<CUmemoryPool> {
        let mut pool = std::ptr::null_mut();
        let mut threshold = u64::MAX;
        // SAFETY: the handle is the driver's; the first call writes a handle, the second reads the
        // 64-bit threshold.
        unsafe {
            self.at(call!(
                self.driver,
                cuDeviceGetDefaultMemPool(&raw mut pool, self.handle)
            ))?;
            let attribute = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
            self.at(call!(
                self.driver,
                cuMemPoolSetAttribute(pool, attribute, (&raw mut threshold).cast::<c_void>())
            ))?;
        }
        Ok(pool)
    }

    /// Names the device in an error.
    pub fn at<T>(&self, result: Result<T>) -> Result<T> {
        result.map_err(|error| error.at(&self.info.id))
    }

    /// Makes the context current on the calling thread; every entry into this backend begins with
    /// it.
    pub fn bind(&self) -> Result<()> {
        // SAFETY: the context is retained for as long as this value lives.
        self.at(unsafe { call!(self.driver, cuCtxSetCurrent(self.primary)) })
    }

    pub fn stream(&self) -> CUstream {
        self.stream
    }

    /// Locks the stream to enqueue work of several parts.
    pub fn lock_stream(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for everything on the stream.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the stream belongs to this value; the caller has bound the context.
        self.at(unsafe { call!(self.driver, cuStreamSynchronize(self.stream)) })
    }

    /// Allocates this much memory in stream order; retries after the driver's pool has released
    /// what it keeps.
    pub fn address_of(&self, bytes: usize) -> Result<CUdeviceptr> {
        self.bind()?;
        match self.take(bytes) {
            Err(error) if error.kind() == ErrorKind::OutOfMemory && self.pool.is_some() => {
                self.trim()?;
                self.take(bytes)
            }
            other => other,
        }
    }

    fn take(&self, bytes: usize) -> Result<CUdeviceptr> {
        let mut address = 0;
        // SAFETY: the context is current, the stream belongs to it, and one address is written.
        let taken = unsafe {
            match self.pool {
                Some(_) => call!(
                    self.driver,
                    cuMemAllocAsync(&raw mut address, bytes, self.stream)
                ),
                None => call!(self.driver, cuMemAlloc_v2(&raw mut address, bytes)),
            }
        };
        taken.map_err(|error| {
            error.at(format_args!("{}: allocating {bytes} bytes", self.info.id))
        })?;
        Ok(address)
    }

    fn trim(&self) -> Result<()> {
        self.synchronize()?;
        let Some(pool) = self.pool else { return Ok(()) };
        // SAFETY: the pool belongs to the device.
        self.at(unsafe { call!(self.driver, cuMemPoolTrimTo(pool, 0)) })
    }

    /// Frees memory in stream order: work that is already on the stream may still use it.
    ///
    /// # Safety
    /// The address came from `allocate` and nothing enqueued from now on uses it.
    pub unsafe fn free(&self, address: CUdeviceptr) {
        // A lost context has freed its memory: the codes carry no more information.
        if self.bind().is_err() {
            return;
        }
        // SAFETY: the caller guarantees no later use; memory without a pool is freed once the
        // stream is done with it, because `cuMemFree` waits for the device.
        unsafe {
            match self.pool {
                Some(_) => (self.driver.cuMemFreeAsync)(address, self.stream),
                None => (self.driver.cuMemFree_v2)(address),
            };
        }
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if self.bind().is_ok() {
            // SAFETY: the last owner destroys the stream; the driver finishes its work first.
            unsafe { (self.driver.cuStreamDestroy_v2)(self.stream) };
        }
        // SAFETY: retained once in `open`.
        unsafe { (self.driver.cuDevicePrimaryCtxRelease_v2)(self.handle) };
    }
}
