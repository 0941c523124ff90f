//! A point of the stream's time.

use std::sync::Arc;

use cudarc::driver::sys::CUevent;

use super::context::Context;
use super::driver::call;
use crate::error::Result;

/// An event with a time: for traces, and for the end of runs that are not waited for at once.
pub(super) struct Event {
    context: Arc<Context>,
    handle: CUevent,
}

// SAFETY: the handle is only passed to the driver, with the context current.
unsafe impl Send for Event {}

impl Event {
    /// Puts a new event on the device's stream; the caller has bound the context.
    pub fn record(context: &Arc<Context>) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current; one handle is written, then recorded on the context's stream.
        unsafe {
            context.at(call!(context.driver, cuEventCreate(&raw mut handle, 0)))?;
            let event = Self { context: context.clone(), handle };
            context.at(call!(context.driver, cuEventRecord(handle, context.stream())))?;
            Ok(event)
        }
    }

    /// Waits until the stream has passed it; the caller has bound the context.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the event is recorded in this context.
        self.context.at(unsafe { call!(self.context.driver, cuEventSynchronize(self.handle)) })
    }

    /// Nanoseconds from an earlier event to this one; the stream has passed both.
    pub fn ns_since(&self, earlier: &Event) -> Result<u64> {
        let mut milliseconds = 0.0f32;
        // SAFETY: both events are recorded in this context; one float is written.
        self.context.at(unsafe { call!(self.context.driver, cuEventElapsedTime(&raw mut milliseconds, earlier.handle, self.handle)) })?;
        Ok((f64::from(milliseconds) * 1e6) as u64)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: made by `record`; the context is current.
            unsafe { (self.context.driver.cuEventDestroy_v2)(self.handle) };
        }
    }
}
