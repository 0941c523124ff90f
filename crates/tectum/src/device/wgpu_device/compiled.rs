//! A launch list with its bind groups built: one submission per run.

use std::sync::Arc;
use std::time::Instant;

use super::mapping::Mapping;
use super::{Context, Pipeline, buffer_of};
use crate::device::{Block, Compiled};
use crate::error::{Error, Result};
use crate::host_memory;
use crate::launch::{BINDING_ALIGNMENT, LaunchList, Region, RunStats, align};

/// Timestamps of a run: before the upload, begin and end of the launches, after the download. The
/// outer ones exist where the device supports them.
const TIMESTAMPS: u32 = 4;
/// Their bytes, at the start of the download block.
const TIMESTAMP_BYTES: usize = 8 * TIMESTAMPS as usize;

struct Dispatch {
    pipeline: Arc<Pipeline>,
    group: wgpu::BindGroup,
    groups: [u32; 2],
}

/// How the upload block reaches the device.
struct Upload {
    /// The host's side, filled between runs.
    host: Vec<u64>,
    bytes: usize,
    /// The mapped buffer: the upload block itself where memory is unified, else a staging buffer.
    mapped: wgpu::Buffer,
    /// Where the staging buffer is copied to.
    target: Option<wgpu::Buffer>,
    mapping: Mapping,
}

/// How downloads reach the host: gathered into one block, read as one.
struct Download {
    /// Source ranges and their places in the block.
    gather: Vec<(wgpu::Buffer, Region, u64)>,
    places: Vec<std::ops::Range<usize>>,
    bytes: usize,
    /// Where ranges are gathered; the readback buffer itself where memory is unified.
    block: wgpu::Buffer,
    readback: wgpu::Buffer,
    host: Vec<u64>,
    mapping: Mapping,
}

/// A launch list compiled for a wgpu device.
pub(super) struct WgpuCompiled {
    context: Arc<Context>,
    name: String,
    dispatches: Vec<Dispatch>,
    upload: Option<Upload>,
    download: Download,
    queries: Option<wgpu::QuerySet>,
    ns_per_tick: f64,
    /// The run that is not finished yet.
    begun: Option<(wgpu::SubmissionIndex, RunStats)>,
    /// Keeps every bound buffer out of the pool.
    _memory: Vec<Arc<Block>>,
}

impl WgpuCompiled {
    pub(super) fn new(
        context: Arc<Context>,
        list: &LaunchList,
        pipelines: Vec<Arc<Pipeline>>,
        memory: Vec<Arc<Block>>,
    ) -> Result<Self> {
        let params = params_buffer(&context, list)?;
        let mut dispatches = Vec::with_capacity(list.launches.len());
        for (index, pipeline) in pipelines.into_iter().enumerate() {
            let group = bind_group(&context, list, index, &pipeline, &params, &memory)?;
            dispatches.push(Dispatch {
                pipeline,
                group,
                groups: list.launches[index].groups,
            });
        }
        let upload = match list.upload {
            Some(buffer) => Some(Upload::new(
                &context,
                list.buffer_bytes[buffer],
                &memory[buffer],
            )?),
            None => None,
        };
        let queries = context
            .times_passes()
            .then(|| query_set(&context, TIMESTAMPS));
        let download = Download::new(&context, list, &memory)?;
        let ns_per_tick = f64::from(context.queue.get_timestamp_period());
        Ok(Self {
            name: list.name.clone(),
            context,
            dispatches,
            upload,
            download,
            queries,
            ns_per_tick,
            begun: None,
            _memory: memory,
        })
    }

    fn nanoseconds(&self, begin: u64, end: u64) -> u64 {
        (end.wrapping_sub(begin) as f64 * self.ns_per_tick) as u64
    }

    fn encode(&self) -> wgpu::CommandBuffer {
        let mut encoder = self
            .context
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let (queries, times_copies) = (self.queries.as_ref(), self.context.times_copies());
        if let Some(queries) = queries.filter(|_| times_copies) {
            encoder.write_timestamp(queries, 0);
        }
        if let Some(Upload {
            mapped,
            target: Some(target),
            bytes,
            ..
        }) = &self.upload
        {
            encoder.copy_buffer_to_buffer(mapped, 0, target, 0, Some(*bytes as u64));
        }
        self.encode_pass(&mut encoder, &self.dispatches, queries, 1);
        let download = &self.download;
        if download.bytes > 0 {
            for (source, region, place) in &download.gather {
                encoder.copy_buffer_to_buffer(
                    source,
                    region.offset as u64,
                    &download.block,
                    *place,
                    Some(region.bytes as u64),
                );
            }
            if download.block != download.readback {
                encoder.copy_buffer_to_buffer(
                    &download.block,
                    0,
                    &download.readback,
                    0,
                    Some(download.bytes as u64),
                );
            }
            if let Some(queries) = queries {
                let mut taken = 1..3;
                if times_copies {
                    encoder.write_timestamp(queries, 3);
                    taken = 0..TIMESTAMPS;
                }
                encoder.resolve_query_set(queries, taken, &download.block, 0);
                if download.block != download.readback {
                    encoder.copy_buffer_to_buffer(
                        &download.block,
                        0,
                        &download.readback,
                        0,
                        Some(TIMESTAMP_BYTES as u64),
                    );
                }
            }
        }
        encoder.finish()
    }

    /// One compute pass, its begin and end written to `queries` from `first` on.
    fn encode_pass(
        &self,
        encoder: &mut wgpu::CommandEncoder,
        dispatches: &[Dispatch],
        queries: Option<&wgpu::QuerySet>,
        first: u32,
    ) {
        let timestamp_writes = queries.map(|query_set| wgpu::ComputePassTimestampWrites {
            query_set,
            beginning_of_pass_write_index: Some(first),
            end_of_pass_write_index: Some(first + 1),
        });
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor {
            label: Some(&self.name),
            timestamp_writes,
        });
        for dispatch in dispatches {
            pass.set_pipeline(&dispatch.pipeline.pipeline);
            pass.set_bind_group(0, &dispatch.group, &[]);
            let [columns, rows] = dispatch.groups;
            pass.dispatch_workgroups(columns, rows, 1);
        }
    }

    fn lost(&self, doing: &str) -> Error {
        Error::device_lost(format!(
            "{}: plan {}: {doing} failed",
            self.context.info.id, self.name
        ))
    }
}

impl Upload {
    fn new(context: &Context, bytes: usize, block: &Block) -> Result<Self> {
        let target = buffer_of(block.allocation()).clone();
        let (mapped, target) = if context.info.unified_memory {
            (target, None)
        } else {
            let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
            (context.buffer("upload", bytes, usage)?, Some(target))
        };
        let upload = Self {
            host: host_memory::filled("a plan's inputs", 0, bytes.div_ceil(8))?,
            bytes,
            mapped,
            target,
            mapping: Mapping::default(),
        };
        upload.request();
        upload.mapping.wait(context, "mapping the upload block")?;
        Ok(upload)
    }

    /// Requests the mapping of the block once the device has read it.
    fn request(&self) {
        self.mapping.request(&self.mapped, wgpu::MapMode::Write);
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.mapped.unmap();
    }
}

impl Download {
    fn new(context: &Context, list: &LaunchList, memory: &[Arc<Block>]) -> Result<Self> {
        // Without downloads nothing is read back, including the time.
        let mut bytes = if list.downloads.is_empty() {
            0
        } else {
            align(TIMESTAMP_BYTES)
        };
        let (mut gather, mut places) = (Vec::new(), Vec::new());
        for region in &list.downloads {
            gather.push((
                buffer_of(memory[region.buffer].allocation()).clone(),
                *region,
                bytes as u64,
            ));
            places.push(bytes..bytes + region.bytes);
            bytes += align(region.bytes);
        }
        use wgpu::BufferUsages as Usage;
        let gathered = Usage::COPY_DST | Usage::QUERY_RESOLVE;
        let (block, readback) = if context.info.unified_memory {
            let block = context.buffer("download", bytes, gathered | Usage::MAP_READ)?;
            (block.clone(), block)
        } else {
            let block = context.buffer("download", bytes, gathered | Usage::COPY_SRC)?;
            (
                block,
                context.buffer("readback", bytes, Usage::COPY_DST | Usage::MAP_READ)?,
            )
        };
        Ok(Self {
            gather,
            places,
            bytes,
            block,
            readback,
            host: host_memory::filled("a plan's outputs", 0, bytes.div_ceil(8))?,
            mapping: Mapping::default(),
        })
    }

    fn host_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(&self.host)
    }
}

fn query_set(context: &Context, count: u32) -> wgpu::QuerySet {
    let ty = wgpu::QueryType::Timestamp;
    context.device.create_query_set(&wgpu::QuerySetDescriptor {
        label: Some("times"),
        ty,
        count,
    })
}

/// Every launch's parameters, written once: 256 bytes apart in one uniform buffer.
fn params_buffer(context: &Context, list: &LaunchList) -> Result<wgpu::Buffer> {
    let mut words = vec![0u32; list.launches.len().max(1) * BINDING_ALIGNMENT / 4];
    for (index, launch) in list.launches.iter().enumerate() {
        words[index * BINDING_ALIGNMENT / 4..][..launch.params.len()]
            .copy_from_slice(&launch.params);
    }
    let usage = wgpu::BufferUsages::UNIFORM | wgpu::BufferUsages::COPY_DST;
    let buffer = context.buffer("params", words.len() * 4, usage)?;
    context
        .queue
        .write_buffer(&buffer, 0, bytemuck::cast_slice(&words));
    Ok(buffer)
}

fn bind_group(
    context: &Context,
    list: &LaunchList,
    index: usize,
    pipeline: &Pipeline,
    params: &wgpu::Buffer,
    memory: &[Arc<Block>],
) -> Result<wgpu::BindGroup> {
    let launch = &list.launches[index];
    let doing = format!(
        "plan {}: binding launch {index}, kernel {}",
        list.name,
        launch.kernel.name()
    );
    let range = |buffer, offset: usize, bytes: usize| {
        wgpu::BindingResource::Buffer(wgpu::BufferBinding {
            buffer,
            offset: offset as u64,
            size: std::num::NonZeroU64::new(bytes as u64),
        })
    };
    let first = wgpu::BindGroupEntry {
        binding: 0,
        resource: range(params, index * BINDING_ALIGNMENT, BINDING_ALIGNMENT),
    };
    let storage = launch
        .regions
        .iter()
        .enumerate()
        .map(|(binding, region)| wgpu::BindGroupEntry {
            binding: binding as u32 + 1,
            resource: range(
                buffer_of(memory[region.buffer].allocation()),
                region.offset,
                region.bytes,
            ),
        });
    let entries: Vec<_> = std::iter::once(first).chain(storage).collect();
    context.checked(&doing, || {
        context
            .device
            .create_bind_group(&wgpu::BindGroupDescriptor {
                label: Some(launch.kernel.name()),
                layout: &pipeline.layout,
                entries: &entries,
            })
    })
}

impl Compiled for WgpuCompiled {
    fn upload_mut(&mut self) -> &mut [u8] {
        match &mut self.upload {
            Some(upload) => &mut bytemuck::cast_slice_mut(&mut upload.host)[..upload.bytes],
            None => &mut [],
        }
    }

    fn download(&self, index: usize) -> &[u8] {
        &self.download.host_bytes()[self.download.places[index].clone()]
    }

    fn begin(&mut self) -> Result<()> {
        let mut stats = RunStats {
            launches: self.dispatches.len() as u32,
            submissions: 1,
            ..RunStats::default()
        };
        if let Some(upload) = &self.upload {
            upload
                .mapping
                .wait(&self.context, "the upload block")
                .map_err(|e| e.at(&self.name))?;
            let mut view = upload
                .mapped
                .get_mapped_range_mut(..upload.bytes as u64)
                .map_err(|e| self.lost("mapping").with_source(e))?;
            let start = Instant::now();
            view.copy_from_slice(&bytemuck::cast_slice(&upload.host)[..upload.bytes]);
            drop(view);
            upload.mapped.unmap();
            stats.up_ns = upload
                .target
                .is_none()
                .then(|| start.elapsed().as_nanos() as u64);
            (stats.transfers_up, stats.bytes_up) = (1, upload.bytes as u64);
        }
        let submission = self.context.queue.submit([self.encode()]);
        if self.download.bytes > 0 {
            self.download
                .mapping
                .request(&self.download.readback, wgpu::MapMode::Read);
        }
        if let Some(upload) = &self.upload {
            upload.request();
        }
        self.begun = Some((submission, stats));
        Ok(())
    }

    fn finish(&mut self) -> Result<RunStats> {
        let (submission, mut stats) = self.begun.take().expect("invariant: a run was begun");
        let bytes = self.download.bytes;
        self.context
            .wait(submission, &format!("plan {}", self.name))?;
        if bytes == 0 {
            return Ok(stats);
        }
        self.download
            .mapping
            .wait(&self.context, "the download block")
            .map_err(|e| e.at(&self.name))?;
        let view = self
            .download
            .readback
            .get_mapped_range(..bytes as u64)
            .map_err(|e| self.lost("mapping").with_source(e))?;
        bytemuck::cast_slice_mut(&mut self.download.host)[..bytes].copy_from_slice(&view);
        drop(view);
        self.download.readback.unmap();
        (stats.transfers_down, stats.bytes_down) = (1, bytes as u64);
        match (&self.queries, &self.download.host[..]) {
            (Some(_), &[start, begin, end, last, ..]) if self.context.times_copies() => {
                let copied = self
                    .upload
                    .as_ref()
                    .and_then(|upload| upload.target.as_ref())
                    .map(|_| self.nanoseconds(start, begin));
                stats.up_ns = stats.up_ns.or(copied);
                stats.device_ns = Some(self.nanoseconds(begin, end));
                stats.down_ns = Some(self.nanoseconds(end, last));
            }
            (Some(_), &[begin, end, ..]) => stats.device_ns = Some(self.nanoseconds(begin, end)),
            _ => {}
        }
        Ok(stats)
    }

    fn trace(&mut self) -> Result<Vec<Option<u64>>> {
        let count = self.dispatches.len();
        if self.queries.is_none() || count == 0 || 2 * count > wgpu::QUERY_SET_MAX_QUERIES as usize
        {
            return Ok(vec![None; count]);
        }
        // A pass for each launch, so that each has its own begin and end.
        let queries = query_set(&self.context, 2 * count as u32);
        let bytes = 16 * count;
        let resolved = self.context.buffer(
            "times",
            bytes,
            wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC,
        )?;
        let readback = self.context.buffer(
            "times",
            bytes,
            wgpu::BufferUsages::COPY_DST | wgpu::BufferUsages::MAP_READ,
        )?;
        let mut encoder = self
            .context
            .device
            .create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        if let Some(upload) = &self.upload {
            upload.mapped.unmap();
        }
        for (index, dispatch) in self.dispatches.iter().enumerate() {
            self.encode_pass(
                &mut encoder,
                std::slice::from_ref(dispatch),
                Some(&queries),
                2 * index as u32,
            );
        }
        encoder.resolve_query_set(&queries, 0..2 * count as u32, &resolved, 0);
        encoder.copy_buffer_to_buffer(&resolved, 0, &readback, 0, Some(bytes as u64));
        let submission = self.context.queue.submit([encoder.finish()]);
        let mapping = Mapping::default();
        mapping.request(&readback, wgpu::MapMode::Read);
        if let Some(upload) = &self.upload {
            upload.request();
        }
        let doing = format!("tracing plan {}", self.name);
        self.context.wait(submission, &doing)?;
        mapping.wait(&self.context, &doing)?;
        let view = readback
            .get_mapped_range(..bytes as u64)
            .map_err(|e| self.lost("mapping the times").with_source(e))?;
        let ticks: Vec<u64> = bytemuck::pod_collect_to_vec(&view);
        Ok(ticks
            .as_chunks::<2>()
            .0
            .iter()
            .map(|&[begin, end]| Some(self.nanoseconds(begin, end)))
            .collect())
    }
}
