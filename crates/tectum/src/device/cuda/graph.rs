//! A run recorded once: stream capture into a CUDA graph.

use std::sync::Arc;

use cudarc::driver::sys::{CUgraph, CUgraphExec, CUstream, CUstreamCaptureMode};

use super::context::Context;
use super::driver::call;
use crate::error::Result;

/// What a capture allows its own thread; other threads are unrestricted in both.
#[derive(Clone, Copy)]
pub(super) enum CaptureMode {
    /// Only work for the stream.
    Strict,
    /// A library may load its code.
    Relaxed,
}

/// A recorded run, ready to be launched any number of times.
pub(super) struct Graph {
    context: Arc<Context>,
    executable: CUgraphExec,
}

// SAFETY: the handle is only passed to the driver, by one thread at a time, with the context
// current.
unsafe impl Send for Graph {}

impl Graph {
    /// Records what `enqueue` submits to a separate stream; nothing is executed.
    ///
    /// # Safety
    /// All memory and code that `enqueue` names outlives the graph.
    pub unsafe fn record(
        context: &Arc<Context>,
        mode: CaptureMode,
        enqueue: impl FnOnce(CUstream) -> Result<()>,
    ) -> Result<Self> {
        context.bind()?;
        let driver = context.driver;
        let stream = CaptureStream::new(context)?;
        let mode = match mode {
            CaptureMode::Strict => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            CaptureMode::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        };
        let mut graph: CUgraph = std::ptr::null_mut();
        // SAFETY: the stream belongs to this call and is not yet capturing; the capture is ended in
        // any case, and the graph is destroyed once it is instantiated. The caller guarantees what
        // the graph holds.
        unsafe {
            context.at(call!(driver, cuStreamBeginCapture_v2(stream.handle, mode)))?;
            let recorded = enqueue(stream.handle);
            let ended = call!(driver, cuStreamEndCapture(stream.handle, &raw mut graph));
            let instantiated = recorded
                .and(context.at(ended))
                .and_then(|()| Self::instantiate(context, graph));
            if !graph.is_null() {
                (driver.cuGraphDestroy)(graph);
            }
            instantiated
        }
    }

    /// # Safety
    /// The graph is whole; the context is current.
    unsafe fn instantiate(context: &Arc<Context>, graph: CUgraph) -> Result<Self> {
        let driver = context.driver;
        let mut executable = std::ptr::null_mut();
        // SAFETY: one handle is written.
        context.at(unsafe {
            call!(
                driver,
                cuGraphInstantiateWithFlags(&raw mut executable, graph, 0)
            )
        })?;
        let graph = Self {
            context: context.clone(),
            executable,
        };
        // Moved to the device now, so that the first run is no slower.
        // SAFETY: the executable was just made and the stream is the device's.
        context.at(unsafe { call!(driver, cuGraphUpload(executable, context.stream())) })?;
        Ok(graph)
    }

    /// Launches the whole run on the device's stream; the caller has bound the context.
    pub fn launch(&mut self) -> Result<()> {
        // SAFETY: what the graph holds lives (`record`), and the exclusive borrow serialises
        // launches.
        unsafe {
            call!(
                self.context.driver,
                cuGraphLaunch(self.executable, self.context.stream())
            )
        }
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.context.bind().is_ok() {
            // SAFETY: every run was waited for; the driver keeps an executable that still runs
            // until it is done.
            unsafe { (self.context.driver.cuGraphExecDestroy)(self.executable) };
        }
    }
}

/// A stream to capture on, so that what other threads enqueue on the device's stream is not
/// captured.
struct CaptureStream<'a> {
    context: &'a Context,
    handle: CUstream,
}

impl<'a> CaptureStream<'a> {
    fn new(context: &'a Context) -> Result<Self> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: the context is current; one handle is written.
        context.at(unsafe {
            call!(
                context.driver,
                cuStreamCreate(&raw mut handle, super::context::NON_BLOCKING)
            )
        })?;
        Ok(Self { context, handle })
    }
}

impl Drop for CaptureStream<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, in the context that is current, and no longer capturing.
        unsafe { (self.context.driver.cuStreamDestroy_v2)(self.handle) };
    }
}
