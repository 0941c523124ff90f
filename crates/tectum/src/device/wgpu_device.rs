//! Every GPU that wgpu reaches: Vulkan, Metal and DX12, loaded at run time.
//!
//! Modules go from WGSL through naga's checks to wgpu as naga IR; those of trusted kernels, which
//! bound their own accesses, without checks of indices, others with all checks. One run is one
//! submission: the upload block, all launches in one compute pass, the downloads gathered into one
//! block that is read back.

mod adapter;
mod compiled;
mod mapping;

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use super::{Allocation, Backend, Block, Compiled, DeviceInfo, Role};
use crate::content_hash::CodeText;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::Kernel;
use crate::launch::LaunchList;
use crate::lru_cache::LruCache;
pub(super) use adapter::{absent, list, open};
use mapping::Mapping;

/// Maximum compiled kernels that a device keeps.
const PIPELINE_CAP: usize = 512;

/// A compiled kernel.
struct Pipeline {
    pipeline: wgpu::ComputePipeline,
    layout: wgpu::BindGroupLayout,
}

/// The first fault that the driver reported outside a call, and whether the device is lost.
#[derive(Default)]
struct UncapturedErrors {
    message: Mutex<Option<String>>,
}

impl UncapturedErrors {
    fn report(&self, message: String) {
        self.message
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert(message);
    }

    fn check(&self, device: &str, doing: &str) -> Result<()> {
        match self
            .message
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .as_ref()
        {
            Some(message) => Err(Error::device_lost(format!("{device}: {doing}: {message}"))),
            None => Ok(()),
        }
    }
}

/// What a compiled list shares with its device.
struct Context {
    info: DeviceInfo,
    device: wgpu::Device,
    queue: wgpu::Queue,
    faults: Arc<UncapturedErrors>,
    /// Which operations the device can time.
    timestamps: wgpu::Features,
}

/// A GPU behind wgpu.
pub(super) struct WgpuDevice {
    context: Arc<Context>,
    pipelines: Mutex<LruCache<CodeText, Arc<Pipeline>>>,
}

fn buffer_of(allocation: &Allocation) -> &wgpu::Buffer {
    match allocation {
        Allocation::Wgpu(buffer) => buffer,
        _ => unreachable!("invariant: the pool of a wgpu device holds wgpu buffers alone"),
    }
}

impl Context {
    /// Runs `create` and converts what wgpu reports about it into an error.
    fn checked<T>(&self, doing: &str, create: impl FnOnce() -> T) -> Result<T> {
        let memory = self.device.push_error_scope(wgpu::ErrorFilter::OutOfMemory);
        let internal = self.device.push_error_scope(wgpu::ErrorFilter::Internal);
        let validation = self.device.push_error_scope(wgpu::ErrorFilter::Validation);
        let value = create();
        let faults = [validation.pop(), internal.pop()].map(pollster::block_on);
        let exhausted = pollster::block_on(memory.pop());
        if let Some(error) = exhausted {
            return Err(
                Error::new(ErrorKind::OutOfMemory, format!("{}: {doing}", self.info.id))
                    .with_source(error),
            );
        }
        match faults.into_iter().flatten().next() {
            Some(error) => {
                Err(Error::unsupported(format!("{}: {doing}", self.info.id)).with_source(error))
            }
            None => Ok(value),
        }
    }

    fn times_passes(&self) -> bool {
        self.timestamps.contains(wgpu::Features::TIMESTAMP_QUERY)
    }

    fn times_copies(&self) -> bool {
        self.timestamps.contains(
            wgpu::Features::TIMESTAMP_QUERY | wgpu::Features::TIMESTAMP_QUERY_INSIDE_ENCODERS,
        )
    }

    fn buffer(&self, label: &str, bytes: usize, usage: wgpu::BufferUsages) -> Result<wgpu::Buffer> {
        let size = (bytes as u64).next_multiple_of(4).max(4);
        if size > self.info.limits.max_buffer_bytes {
            return Err(Error::unsupported(format!(
                "{}: a buffer of {size} bytes for {label}; this device's longest is {} bytes",
                self.info.id, self.info.limits.max_buffer_bytes
            )));
        }
        self.checked(&format!("allocating {size} bytes for {label}"), || {
            self.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(label),
                size,
                usage,
                mapped_at_creation: false,
            })
        })
    }

    /// Waits for a submission.
    fn wait(&self, submission: wgpu::SubmissionIndex, doing: &str) -> Result<()> {
        let wait = wgpu::PollType::Wait {
            submission_index: Some(submission),
            timeout: None,
        };
        self.device.poll(wait).map_err(|error| {
            Error::device_lost(format!("{}: {doing}: waiting failed", self.info.id))
                .with_source(error)
        })?;
        self.faults.check(&self.info.id, doing)
    }
}

impl WgpuDevice {
    fn pipeline(&self, kernel: &Kernel) -> Result<Arc<Pipeline>> {
        let mut pipelines = self
            .pipelines
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        pipelines.get_or_insert_with(kernel.code_text().clone(), || {
            self.build_pipeline(kernel).map(Arc::new)
        })
    }

    fn build_pipeline(&self, kernel: &Kernel) -> Result<Pipeline> {
        let (module, _) = kernel.module()?;
        let device = &self.context.device;
        let entry = |binding: u32, ty: wgpu::BufferBindingType| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty,
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        };
        let storage = kernel
            .bindings()
            .iter()
            .enumerate()
            .map(|(index, binding)| {
                entry(
                    index as u32 + 1,
                    wgpu::BufferBindingType::Storage {
                        read_only: !binding.access.writes(),
                    },
                )
            });
        let entries: Vec<_> = std::iter::once(entry(0, wgpu::BufferBindingType::Uniform))
            .chain(storage)
            .collect();
        let checks = wgpu::ShaderRuntimeChecks {
            int_div_checks: true,
            ..wgpu::ShaderRuntimeChecks::unchecked()
        };
        self.context
            .checked(&format!("compiling kernel {}", kernel.name()), || {
                let label = Some(kernel.name());
                let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
                    label,
                    entries: &entries,
                });
                let pipeline_layout =
                    device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
                        label,
                        bind_group_layouts: &[Some(&layout)],
                        immediate_size: 0,
                    });
                let source = wgpu::ShaderSource::Naga(Cow::Owned(module));
                let descriptor = wgpu::ShaderModuleDescriptor { label, source };
                let shader = if kernel.is_trusted() {
                    // SAFETY: as `KernelBuilder::trusted` requires; the checks on integer division
                    // stay on.
                    unsafe { device.create_shader_module_trusted(descriptor, checks) }
                } else {
                    device.create_shader_module(descriptor)
                };
                let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                    label,
                    layout: Some(&pipeline_layout),
                    module: &shader,
                    entry_point: Some("main"),
                    compilation_options: wgpu::PipelineCompilationOptions::default(),
                    cache: None,
                });
                crate::log!(
                    debug,
                    kernel = kernel.name(),
                    device = self.info().id,
                    "kernel compiled"
                );
                Pipeline { pipeline, layout }
            })
    }
}

impl Backend for WgpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    fn allocate(&self, bytes: usize, role: Role) -> Result<Allocation> {
        use wgpu::BufferUsages as Usage;
        let usage = match role {
            Role::Upload if self.context.info.unified_memory => Usage::MAP_WRITE | Usage::STORAGE,
            Role::Upload => Usage::COPY_DST | Usage::STORAGE,
            Role::Device => Usage::COPY_DST | Usage::COPY_SRC | Usage::STORAGE,
        };
        self.context
            .buffer("pool", bytes, usage)
            .map(Allocation::Wgpu)
    }

    fn write(&self, to: &Allocation, offset: usize, data: &[u8]) -> Result<()> {
        self.context
            .queue
            .write_buffer(buffer_of(to), offset as u64, data);
        // Staged by the queue and copied in order before later work; nothing waits for it here.
        self.context.queue.submit([]);
        self.context
            .faults
            .check(&self.context.info.id, "writing a buffer")
    }

    fn read(&self, from: &Allocation, offset: usize, data: &mut [u8]) -> Result<()> {
        let usage = wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ;
        let staging = self.context.buffer("readback", data.len(), usage)?;
        let mut encoder = self
            .context
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(
            buffer_of(from),
            offset as u64,
            &staging,
            0,
            Some(data.len() as u64),
        );
        let submission = self.context.queue.submit([encoder.finish()]);
        let mapping = Mapping::default();
        mapping.request(&staging, wgpu::MapMode::Read);
        self.context.wait(submission, "reading a buffer")?;
        mapping.wait(&self.context, "reading a buffer")?;
        let view = staging
            .get_mapped_range(..data.len() as u64)
            .map_err(|error| {
                Error::device_lost(format!("{}: reading a buffer", self.context.info.id))
                    .with_source(error)
            })?;
        data.copy_from_slice(&view);
        Ok(())
    }

    fn compile(&self, list: &LaunchList, memory: Vec<Arc<Block>>) -> Result<Box<dyn Compiled>> {
        let pipelines = list
            .launches
            .iter()
            .map(|launch| self.pipeline(&launch.kernel))
            .collect::<Result<Vec<_>>>()?;
        let compiled = compiled::WgpuCompiled::new(self.context.clone(), list, pipelines, memory)?;
        Ok(Box::new(compiled))
    }
}
