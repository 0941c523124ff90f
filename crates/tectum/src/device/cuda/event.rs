//! A point in a stream.

use std::sync::Arc;

use cudarc::driver::sys::{CUevent, CUevent_record_flags, CUstream};

use super::context::Context;
use super::driver::call;
use crate::error::Result;

/// An event with a time: for traces, and for the end of runs that are waited for later.
pub(super) struct Event {
    context: Arc<Context>,
    handle: CUevent,
}

// SAFETY: the handle is only passed to the driver, with the context current.
unsafe impl Send for Event {}

impl Event {
    /// A new event; the caller has bound the context.
    pub fn new(context: &Arc<Context>) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current; one handle is written.
        context.at(unsafe { call!(context.driver, cuEventCreate(&raw mut handle, 0)) })?;
        Ok(Self {
            context: context.clone(),
            handle,
        })
    }

    /// Records a new event on the device's stream; the caller has bound the context.
    pub fn record(context: &Arc<Context>) -> Result<Self> {
        let event = Self::new(context)?;
        // SAFETY: the context is current, and the event and the stream belong to it.
        context.at(unsafe {
            call!(
                context.driver,
                cuEventRecord(event.handle, context.stream())
            )
        })?;
        Ok(event)
    }

    /// Records the event on a stream that is captured: every run of the graph records it there.
    pub fn capture(&self, stream: CUstream) -> Result<()> {
        let flags = CUevent_record_flags::CU_EVENT_RECORD_EXTERNAL as u32;
        // SAFETY: the caller has bound the context, which the event and the stream belong to.
        unsafe {
            call!(
                self.context.driver,
                cuEventRecordWithFlags(self.handle, stream, flags)
            )
        }
    }

    /// Waits until the stream has passed it; the caller has bound the context.
    pub fn synchronize(&self) -> Result<()> {
        // SAFETY: the event is recorded in this context.
        self.context
            .at(unsafe { call!(self.context.driver, cuEventSynchronize(self.handle)) })
    }

    /// Nanoseconds from an earlier event to this one; the stream has passed both.
    pub fn ns_since(&self, earlier: &Event) -> Result<u64> {
        let mut milliseconds = 0.0f32;
        // SAFETY: both events are recorded in this context; one float is written.
        self.context.at(unsafe {
            call!(
                self.context.driver,
                cuEventElapsedTime(&raw mut milliseconds, earlier.handle, self.handle)
            )
        })?;
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
