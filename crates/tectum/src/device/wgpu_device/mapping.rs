//! Whether a buffer that the host requested is mapped yet.
//!
//! wgpu runs a mapping's callback on whichever thread polls the device. A wait for a submission can
//! therefore return while another thread is still about to run the callback; [`Mapping::wait`]
//! waits for the callback itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use super::Context;
use crate::error::{Error, Result};

const PENDING: u8 = 0;
const MAPPED: u8 = 1;
const FAILED: u8 = 2;

/// The state of one buffer's mapping.
#[derive(Default)]
pub(super) struct Mapping(Arc<AtomicU8>);

impl Mapping {
    /// Requests the mapping of the buffer once the device is done with it.
    pub(super) fn request(&self, buffer: &wgpu::Buffer, mode: wgpu::MapMode) {
        self.0.store(PENDING, Ordering::Release);
        let state = self.0.clone();
        buffer.map_async(mode, .., move |result| {
            state.store(
                if result.is_ok() { MAPPED } else { FAILED },
                Ordering::Release,
            );
        });
    }

    /// Waits until the callback has run; the submission that used the buffer is done.
    pub(super) fn wait(&self, context: &Context, doing: &str) -> Result<()> {
        loop {
            match self.0.load(Ordering::Acquire) {
                MAPPED => return Ok(()),
                FAILED => {
                    return Err(Error::device_lost(format!(
                        "{}: {doing}: mapping failed",
                        context.info.id
                    )));
                }
                _ => context.faults.check(&context.info.id, doing)?,
            }
            context.device.poll(wgpu::PollType::Poll).map_err(|error| {
                Error::device_lost(format!("{}: {doing}: polling failed", context.info.id))
                    .with_source(error)
            })?;
            std::thread::yield_now();
        }
    }
}
