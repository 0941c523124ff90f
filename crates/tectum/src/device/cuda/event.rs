//! A point of the stream's time.

use cudarc::driver::sys::CUevent;

use super::context::Context;
use super::driver::call;
use crate::error::Result;

/// An event with a time; only traces use any.
pub(super) struct Event<'a> {
    context: &'a Context,
    handle: CUevent,
}

impl<'a> Event<'a> {
    /// Puts a new event on the device's stream; the caller has bound the context.
    pub fn record(context: &'a Context) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current; one handle is written, then recorded on the context's stream.
        unsafe {
            context.at(call!(context.driver, cuEventCreate(&raw mut handle, 0)))?;
            let event = Self { context, handle };
            context.at(call!(context.driver, cuEventRecord(handle, context.stream())))?;
            Ok(event)
        }
    }

    /// Nanoseconds from an earlier event to this one; the stream has passed both.
    pub fn ns_since(&self, earlier: &Event<'_>) -> Result<u64> {
        let mut milliseconds = 0.0f32;
        // SAFETY: both events are recorded in this context; one float is written.
        self.context.at(unsafe { call!(self.context.driver, cuEventElapsedTime(&raw mut milliseconds, earlier.handle, self.handle)) })?;
        Ok((f64::from(milliseconds) * 1e6) as u64)
    }
}

impl Drop for Event<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `record` in the context that is current there.
        unsafe { (self.context.driver.cuEventDestroy_v2)(self.handle) };
    }
}
