//! NVIDIA GPUs through only their driver, loaded at run time.
//!
//! Kernels go from WGSL through naga's checks to PTX, which the driver assembles. A run is one CUDA
//! graph: the upload block from pinned memory, all launches, the downloads gathered into one block
//! in pinned memory. One stream orders all work of a device.

mod code;
mod compiled;
mod context;
mod cublas_lt;
mod download_layout;
mod driver;
mod enumeration;
mod event;
mod graph;
mod memory;
mod peer;
mod product;
mod sensors;
mod symbols;

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cudarc::driver::sys::CUdeviceptr;

use super::{Allocation, Backend, Block, Compiled, CopyPath, DeviceInfo, Role, Sensors};
use crate::error::Result;
use crate::launch::{LaunchList, Region};
use code::Modules;
use context::Context;
use cublas_lt::CublasLt;
pub(super) use enumeration::{absent, list};
pub(crate) use memory::CudaMemory;
use memory::Pinned;
use sensors::NvmlSensors;

/// Pinned staging memory for copies of buffers, piece by piece.
const STAGING_BYTES: usize = 4 << 20;

/// A GPU behind the CUDA driver.
pub(super) struct CudaDevice {
    context: Arc<Context>,
    modules: Modules,
    staging: Mutex<Pinned>,
    /// Loaded when the first product is compiled.
    library: OnceLock<Option<Arc<CublasLt>>>,
    sensors: Option<NvmlSensors>,
}

/// Opens a device by its number, if it is there.
pub(super) fn open(number: usize) -> Result<Option<CudaDevice>> {
    let Some(found) = enumeration::find(number) else {
        return Ok(None);
    };
    let context = Context::open(found)?;
    let staging = Mutex::new(Pinned::allocate(&context, STAGING_BYTES)?);
    let sensors = context.info.pci.as_deref().and_then(NvmlSensors::of);
    Ok(Some(CudaDevice {
        context,
        modules: Modules::new(),
        staging,
        library: OnceLock::new(),
        sensors,
    }))
}

fn memory_of(allocation: &Allocation) -> &CudaMemory {
    match allocation {
        Allocation::Cuda(memory) => memory,
        _ => unreachable!("invariant: the pool of a CUDA device holds CUDA memory alone"),
    }
}

/// The device address of a region.
fn address_of(memory: &[Arc<Block>], region: &Region) -> CUdeviceptr {
    memory_of(memory[region.buffer].allocation()).address(region.offset, region.bytes)
}

impl CudaDevice {
    fn library(&self) -> Option<Arc<CublasLt>> {
        self.library
            .get_or_init(|| CublasLt::open(&self.context))
            .clone()
    }
}

impl Backend for CudaDevice {
    fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    fn allocate(&self, bytes: usize, _: Role) -> Result<Allocation> {
        CudaMemory::allocate(&self.context, bytes).map(Allocation::Cuda)
    }

    fn write(&self, to: &Allocation, offset: usize, data: &[u8]) -> Result<()> {
        self.context.bind()?;
        let to = memory_of(to).address(offset, data.len());
        let mut staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, piece) in data.chunks(STAGING_BYTES).enumerate() {
            staging.bytes_mut()[..piece.len()].copy_from_slice(piece);
            let to = to + (index * STAGING_BYTES) as CUdeviceptr;
            // SAFETY: the range lies in the allocation; the staging block is locked until the
            // stream is past the copy.
            unsafe {
                self.context
                    .at(staging.upload(to, piece.len(), self.context.stream()))
            }?;
            self.context.synchronize()?;
        }
        Ok(())
    }

    fn read(&self, from: &Allocation, offset: usize, data: &mut [u8]) -> Result<()> {
        self.context.bind()?;
        let from = memory_of(from).address(offset, data.len());
        let staging = self.staging.lock().unwrap_or_else(PoisonError::into_inner);
        for (index, piece) in data.chunks_mut(STAGING_BYTES).enumerate() {
            let from = from + (index * STAGING_BYTES) as CUdeviceptr;
            // SAFETY: the range lies in the allocation; the staging block is locked and read once
            // the stream is done.
            unsafe {
                self.context
                    .at(staging.download(from, piece.len(), self.context.stream()))
            }?;
            self.context.synchronize()?;
            piece.copy_from_slice(&staging.bytes()[..piece.len()]);
        }
        Ok(())
    }

    fn compile(&self, list: &LaunchList, memory: Vec<Arc<Block>>) -> Result<Box<dyn Compiled>> {
        let compiled = compiled::CudaCompiled::new(
            &self.context,
            &self.modules,
            || self.library(),
            list,
            memory,
        )?;
        Ok(Box::new(compiled))
    }

    fn copy(&self, from: &Allocation, to: &Allocation, bytes: usize) -> Result<Option<CopyPath>> {
        match to {
            Allocation::Cuda(to) => peer::copy(memory_of(from), to, bytes),
            _ => Ok(None),
        }
    }

    fn sensors(&self) -> Option<&dyn Sensors> {
        self.sensors.as_ref().map(|sensors| sensors as _)
    }
}
