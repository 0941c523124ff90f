//! Direct copies between buffers of CUDA devices, without the host.

use std::sync::Arc;

use cudarc::driver::sys::{CUmemAccess_flags, CUmemAccessDesc, CUmemLocation, CUmemLocationType};

use super::context::Context;
use super::driver::{PEER_ACCESS_ALREADY_ENABLED, call};
use super::memory::CudaMemory;
use crate::device::CopyPath;
use crate::error::Result;

/// Copies the first `bytes`, after the earlier work of both devices, and waits; none where the two
/// devices cannot access each other.
pub(super) fn copy(from: &CudaMemory, to: &CudaMemory, bytes: usize) -> Result<Option<CopyPath>> {
    let (source, target) = (from.context(), to.context());
    let (start, end) = (from.address(0, bytes), to.address(0, bytes));
    if Arc::ptr_eq(source, target) {
        target.bind()?;
        // SAFETY: both ranges lie in their allocations, which the caller holds until the stream is
        // done.
        unsafe {
            target.at(call!(
                target.driver,
                cuMemcpyDtoDAsync_v2(end, start, bytes, target.stream())
            ))?
        };
        target.synchronize()?;
        return Ok(Some(CopyPath::Device));
    }
    source.bind()?;
    source.synchronize()?;
    target.bind()?;
    if !reaches(target, source) {
        return Ok(None);
    }
    // SAFETY: as above; the source's earlier work is done, and the target's stream is waited for.
    unsafe {
        let call = call!(
            target.driver,
            cuMemcpyPeerAsync(
                end,
                target.primary,
                start,
                source.primary,
                bytes,
                target.stream()
            )
        );
        target.at(call)?;
    }
    target.synchronize()?;
    Ok(Some(CopyPath::Peer))
}

/// Whether `target`, whose context is current, may read `source`'s memory; enables access if
/// needed.
fn reaches(target: &Context, source: &Context) -> bool {
    let mut possible = 0;
    let driver = target.driver;
    // SAFETY: both handles are the driver's; one int is written.
    let asked = unsafe {
        call!(
            driver,
            cuDeviceCanAccessPeer(&raw mut possible, target.handle, source.handle)
        )
    };
    if asked.is_err() || possible == 0 {
        return false;
    }
    // SAFETY: both contexts live; enabling access twice returns a separate code.
    let code = unsafe { (driver.cuCtxEnablePeerAccess)(source.primary, 0) };
    let opened =
        code == PEER_ACCESS_ALREADY_ENABLED || driver.check("cuCtxEnablePeerAccess", code).is_ok();
    opened
        && source.pool.is_none_or(|pool| {
            let location = CUmemLocation {
                type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE,
                id: target.handle,
            };
            let access = CUmemAccessDesc {
                location,
                flags: CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
            };
            // SAFETY: the pool is the source device's, which lives; one description is read.
            unsafe { call!(driver, cuMemPoolSetAccess(pool, &raw const access, 1)) }.is_ok()
        })
}
