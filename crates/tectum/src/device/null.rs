//! The null device: checks and accounts for everything and executes nothing. Reads return zeros.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    Allocation, Api, Backend, Block, Compiled, DeviceInfo, DeviceKind, DeviceLimits, Role,
};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::host_memory;
use crate::launch::{LaunchList, RunStats};

/// A device without memory or arithmetic.
pub(super) struct NullDevice {
    info: DeviceInfo,
    left: Arc<AtomicU64>,
}

/// Returns the bytes to the null device when the allocation is dropped.
pub(crate) struct NullMemory {
    bytes: u64,
    left: Arc<AtomicU64>,
}

impl Drop for NullMemory {
    fn drop(&mut self) {
        self.left.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

impl NullDevice {
    pub(super) fn new(capacity_bytes: u64) -> Self {
        let memory_bytes = (capacity_bytes < u64::MAX).then_some(capacity_bytes);
        Self {
            info: DeviceInfo {
                memory_bytes,
                ..info()
            },
            left: Arc::new(AtomicU64::new(capacity_bytes)),
        }
    }
}

/// The null device's properties.
pub(super) fn info() -> DeviceInfo {
    DeviceInfo {
        id: "null".into(),
        name: "null (executes nothing)".into(),
        uuid: None,
        pci: None,
        driver: "none".into(),
        api: Api::Null,
        kind: DeviceKind::Null,
        software: true,
        memory_bytes: None,
        compute_units: None,
        simd_width: (1, 1),
        unified_memory: false,
        limits: DeviceLimits {
            max_binding_bytes: super::INDEXABLE_BYTES,
            max_buffer_bytes: i32::MAX as u64,
            max_groups: crate::kernel::MAX_GROUPS,
            workgroup_memory_bytes: 16 << 10,
            max_workgroup_size: 256,
            max_loop_iterations: None,
        },
        dtypes: vec![DType::F32, DType::U32, DType::I32, DType::F64],
    }
}

impl Backend for NullDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: usize, _: Role) -> Result<Allocation> {
        let bytes = bytes as u64;
        let taken = self
            .left
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                left.checked_sub(bytes)
            });
        taken
            .map(|_| {
                Allocation::Null(NullMemory {
                    bytes,
                    left: self.left.clone(),
                })
            })
            .map_err(|left| {
                Error::new(
                    ErrorKind::OutOfMemory,
                    format!("null: {bytes} bytes requested, {left} left"),
                )
            })
    }

    fn write(&self, _: &Allocation, _: usize, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn read(&self, _: &Allocation, _: usize, data: &mut [u8]) -> Result<()> {
        data.fill(0);
        Ok(())
    }

    fn compile(&self, list: &LaunchList, memory: Vec<Arc<Block>>) -> Result<Box<dyn Compiled>> {
        let upload = host_memory::filled(
            "inputs on the device null",
            0u64,
            list.upload
                .map_or(0, |buffer| list.buffer_bytes[buffer].div_ceil(8)),
        )?;
        let down: usize = list.downloads.iter().map(|region| region.bytes).sum();
        let stats = RunStats {
            bytes_up: 8 * upload.len() as u64,
            bytes_down: down as u64,
            transfers_up: u32::from(!upload.is_empty()),
            transfers_down: u32::from(down > 0),
            launches: list.launches.len() as u32,
            submissions: 1,
            ..RunStats::default()
        };
        let longest = list
            .downloads
            .iter()
            .map(|region| region.bytes)
            .max()
            .unwrap_or(0);
        Ok(Box::new(NullCompiled {
            upload,
            zeros: host_memory::filled("outputs on the device null", 0, longest.div_ceil(4))?,
            lengths: list.downloads.iter().map(|region| region.bytes).collect(),
            stats,
            _memory: memory,
        }))
    }
}

/// The work of a GPU with one upload and one download, counted but not executed.
struct NullCompiled {
    upload: Vec<u64>,
    zeros: Vec<u32>,
    lengths: Vec<usize>,
    stats: RunStats,
    _memory: Vec<Arc<Block>>,
}

impl Compiled for NullCompiled {
    fn upload_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.upload)
    }

    fn download(&self, index: usize) -> &[u8] {
        &bytemuck::cast_slice(&self.zeros)[..self.lengths[index]]
    }

    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<RunStats> {
        Ok(self.stats)
    }

    fn trace(&mut self) -> Result<Vec<Option<u64>>> {
        Ok(vec![None; self.stats.launches as usize])
    }
}
