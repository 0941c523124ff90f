//! A launch list as a CUDA graph: one upload, the launches in order, one download, replayed by one
//! call per run.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys::{CUdeviceptr, CUstream};

use super::code::{Module, Modules, Translation, reads_do_not_alias_writes};
use super::context::Context;
use super::cublas_lt::{Addresses, CublasLt, Matmul};
use super::download_layout::DownloadLayout;
use super::driver::call;
use super::event::Event;
use super::graph::{CaptureMode, Graph};
use super::memory::{CudaMemory, Pinned};
use super::product::Product;
use super::{address_of, memory_of};
use crate::device::{Block, Compiled};
use crate::error::{Error, Result};
use crate::launch::{BINDING_ALIGNMENT, LaunchList, Region, RunStats};

/// The code of one launch.
enum Code {
    Kernel(KernelCall),
    Product(Matmul),
}

/// A kernel with its arguments: an address and a length for each binding.
struct KernelCall {
    module: Arc<Module>,
    groups: [u32; 2],
    block: [u32; 3],
    shared_bytes: u32,
    arguments: Vec<u64>,
}

/// One launch, with its name in errors and receipts.
struct Step {
    name: String,
    /// The library's routine that replaces the kernel.
    routine: Option<String>,
    code: Code,
}

/// The upload block on both sides.
struct Upload {
    host: Pinned,
    device: CUdeviceptr,
}

/// The download block on the host, and on the device where it is gathered from several pieces.
struct Download {
    layout: DownloadLayout,
    host: Pinned,
    gathered: Option<CudaMemory>,
}

/// A launch list compiled for a CUDA device. Fields are dropped in order: a run in flight ends
/// first, then the graph, then what it uses.
pub(super) struct CudaCompiled {
    graph: Graph,
    /// Whether work that uses this value was submitted to the stream and not yet waited for.
    in_flight: bool,
    /// The end of a run that is not finished yet.
    end: Option<Event>,
    work: Work,
}

/// The graph's work and resources.
struct Work {
    context: Arc<Context>,
    name: String,
    steps: Vec<Step>,
    upload: Option<Upload>,
    download: Option<Download>,
    /// Before the upload, between it and the launches, between these and the download, and after
    /// it.
    times: [Event; 4],
    /// Every launch's parameters, written once.
    _params: CudaMemory,
    /// Keeps every bound buffer out of the pool.
    memory: Vec<Arc<Block>>,
}

impl CudaCompiled {
    /// Compiles with the library's products where it supports them, else with kernels alone.
    pub fn new(
        context: &Arc<Context>,
        modules: &Modules,
        library: impl FnOnce() -> Option<Arc<CublasLt>>,
        list: &LaunchList,
        memory: Vec<Arc<Block>>,
    ) -> Result<Self> {
        let has_products = list
            .launches
            .iter()
            .any(|launch| Product::of(launch).is_some());
        if let Some(library) = has_products.then(library).flatten()
            && let Ok(compiled) = Self::record(Work::new(
                context,
                modules,
                Some(&library),
                list,
                memory.clone(),
            )?)
        {
            return Ok(compiled);
        }
        Self::record(Work::new(context, modules, None, list, memory)?)
    }

    /// Waits for work in flight after a call failed: nothing that it uses may be freed or written
    /// before.
    fn settle(&mut self) {
        if std::mem::take(&mut self.in_flight) && self.work.context.bind().is_ok() {
            // An error here is the device's, which the next call reports.
            let _ = self.work.context.synchronize();
        }
        self.end = None;
    }

    fn record(work: Work) -> Result<Self> {
        let products = work
            .steps
            .iter()
            .any(|step| matches!(step.code, Code::Product(_)));
        let mode = if products {
            CaptureMode::Relaxed
        } else {
            CaptureMode::Strict
        };
        // SAFETY: everything that a run names is owned by `work`, which is stored with the graph
        // and dropped after it.
        let graph = unsafe { Graph::record(&work.context, mode, |stream| work.enqueue(stream)) }?;
        Ok(Self {
            graph,
            in_flight: false,
            end: None,
            work,
        })
    }
}

impl Work {
    fn new(
        context: &Arc<Context>,
        modules: &Modules,
        library: Option<&Arc<CublasLt>>,
        list: &LaunchList,
        memory: Vec<Arc<Block>>,
    ) -> Result<Self> {
        let params = params_memory(context, list)?;
        let mut steps = Vec::with_capacity(list.launches.len());
        for index in 0..list.launches.len() {
            let params = params.address(index * BINDING_ALIGNMENT, BINDING_ALIGNMENT);
            let product = library.and_then(|library| product_step(library, list, index, &memory));
            steps.push(match product {
                Some(step) => step,
                None => kernel_step(context, modules, list, index, params, &memory)?,
            });
        }
        let upload = list.upload.map(|buffer| {
            let bytes = list.buffer_bytes[buffer];
            Ok(Upload {
                host: Pinned::allocate(context, bytes)?,
                device: memory_of(memory[buffer].allocation()).address(0, bytes),
            })
        });
        let download = (!list.downloads.is_empty())
            .then(|| Download::new(context, DownloadLayout::of(&list.downloads)));
        context.bind()?;
        let [start, begin, end, last] = [(); 4].map(|()| Event::new(context));
        Ok(Self {
            context: context.clone(),
            name: list.name.clone(),
            steps,
            times: [start?, begin?, end?, last?],
            upload: upload.transpose()?,
            download: download.transpose()?,
            _params: params,
            memory,
        })
    }

    /// Enqueues the whole run on a stream.
    fn enqueue(&self, stream: CUstream) -> Result<()> {
        let [start, begin, end, last] = &self.times;
        start.capture(stream)?;
        if let Some(upload) = &self.upload {
            // SAFETY: the block is as long as the buffer, which `memory` keeps, and is only written
            // between runs.
            unsafe { upload.host.upload(upload.device, upload.host.len(), stream) }
                .map_err(|error| self.place("the upload", error))?;
        }
        begin.capture(stream)?;
        for step in &self.steps {
            self.enqueue_step(step, stream)?;
        }
        end.capture(stream)?;
        if let Some(download) = &self.download {
            download
                .enqueue(&self.context, &self.memory, stream)
                .map_err(|error| self.place("the download", error))?;
        }
        last.capture(stream)
    }

    fn enqueue_step(&self, step: &Step, stream: CUstream) -> Result<()> {
        let enqueued = match &step.code {
            Code::Kernel(kernel) => kernel.enqueue(&self.context, stream),
            // SAFETY: the plan checked the ranges, `memory` keeps them, and every run of the device
            // is on its one stream.
            Code::Product(product) => unsafe { product.enqueue(stream) },
        };
        enqueued.map_err(|error| self.place(&step.name, error))
    }

    /// Enqueues every launch on the stream with an event before and after it.
    fn enqueue_timed(&self) -> Result<Vec<Event>> {
        let _turn = self.context.lock_stream();
        let mut events = vec![Event::record(&self.context)?];
        for step in &self.steps {
            self.enqueue_step(step, self.context.stream())?;
            events.push(Event::record(&self.context)?);
        }
        Ok(events)
    }

    fn place(&self, what: &str, error: Error) -> Error {
        error.at(format_args!(
            "{}: plan {}: {what}",
            self.context.info.id, self.name
        ))
    }

    /// An error that the device reports after the run was submitted: it may come from any of the
    /// launches.
    fn in_flight(&self, error: Error) -> Error {
        let mut names: Vec<&str> = self.steps.iter().map(|step| step.name.as_str()).collect();
        const MAX_SHOWN: usize = 8;
        let rest = names.len().saturating_sub(MAX_SHOWN);
        names.truncate(MAX_SHOWN);
        let more = if rest > 0 {
            format!(" and {rest} more")
        } else {
            String::new()
        };
        error.at(format_args!(
            "plan {}: in flight: {}{more}",
            self.name,
            names.join(", ")
        ))
    }
}

impl KernelCall {
    fn enqueue(&self, context: &Context, stream: CUstream) -> Result<()> {
        let mut pointers: Vec<*mut c_void> = self
            .arguments
            .iter()
            .map(|argument| std::ptr::from_ref(argument).cast_mut().cast())
            .collect();
        let ([columns, rows], [x, y, z]) = (self.groups, self.block);
        // SAFETY: the function takes two 64-bit parameters for each binding, as many as `arguments`
        // holds, and they are copied during the call; the plan checked that the ranges lie in their
        // buffers, which the work keeps, and that params and lengths keep the kernel within them.
        unsafe {
            call!(
                context.driver,
                cuLaunchKernel(
                    self.module.function,
                    columns,
                    rows,
                    1,
                    x,
                    y,
                    z,
                    self.shared_bytes,
                    stream,
                    pointers.as_mut_ptr(),
                    std::ptr::null_mut(),
                )
            )
        }
    }
}

impl Download {
    fn new(context: &Arc<Context>, layout: DownloadLayout) -> Result<Self> {
        let host = Pinned::allocate(context, layout.bytes)?;
        let gathered = if layout.pieces.len() > 1 {
            Some(CudaMemory::allocate(context, layout.bytes)?)
        } else {
            None
        };
        Ok(Self {
            layout,
            host,
            gathered,
        })
    }

    fn enqueue(&self, context: &Context, memory: &[Arc<Block>], stream: CUstream) -> Result<()> {
        let source = |region: &Region| {
            memory_of(memory[region.buffer].allocation()).address(region.offset, region.bytes)
        };
        let bytes = self.layout.bytes;
        let from = match &self.gathered {
            None => source(&self.layout.pieces[0].region),
            Some(block) => {
                for piece in &self.layout.pieces {
                    let to = block.address(piece.place, piece.region.bytes);
                    // SAFETY: both ranges lie in memory that the work keeps and do not overlap.
                    unsafe {
                        call!(
                            context.driver,
                            cuMemcpyDtoDAsync_v2(
                                to,
                                source(&piece.region),
                                piece.region.bytes,
                                stream
                            )
                        )?;
                    }
                }
                block.address(0, bytes)
            }
        };
        // SAFETY: the source holds `bytes`, the host block is as long, and it is read after the run
        // is waited for.
        unsafe { self.host.download(from, bytes, stream) }
    }
}

/// Every launch's parameters, 256 bytes apart in one buffer.
fn params_memory(context: &Arc<Context>, list: &LaunchList) -> Result<CudaMemory> {
    let mut words = vec![0u32; list.launches.len().max(1) * BINDING_ALIGNMENT / 4];
    for (index, launch) in list.launches.iter().enumerate() {
        words[index * BINDING_ALIGNMENT / 4..][..launch.params.len()]
            .copy_from_slice(&launch.params);
    }
    let bytes: &[u8] = bytemuck::cast_slice(&words);
    let memory = CudaMemory::allocate(context, bytes.len())?;
    let mut staged = Pinned::allocate(context, bytes.len())?;
    staged.bytes_mut().copy_from_slice(bytes);
    // SAFETY: the memory is as long as the staged bytes, which live until the stream is done.
    unsafe {
        context.at(staged.upload(
            memory.address(0, bytes.len()),
            bytes.len(),
            context.stream(),
        ))
    }?;
    context.synchronize()?;
    Ok(memory)
}

fn step_name(list: &LaunchList, index: usize) -> String {
    format!(
        "launch {index}, kernel {}",
        list.launches[index].kernel.name()
    )
}

/// A product by the library; none if the launch is not such a product or the library has no
/// algorithm for it.
fn product_step(
    library: &Arc<CublasLt>,
    list: &LaunchList,
    index: usize,
    memory: &[Arc<Block>],
) -> Option<Step> {
    let launch = &list.launches[index];
    let product = Product::of(launch)?;
    let address = |region: usize| address_of(memory, &launch.regions[region]);
    let addresses = Addresses {
        a: address(0),
        b: address(1),
        y: address(2),
        bias: product.bias.map(address),
        residual: product.residual.map(address),
    };
    let matmul = Matmul::new(library, &product, addresses).ok()?;
    Some(Step {
        name: step_name(list, index),
        routine: Some(library.routine(launch.kernel.name())),
        code: Code::Product(matmul),
    })
}

fn kernel_step(
    context: &Arc<Context>,
    modules: &Modules,
    list: &LaunchList,
    index: usize,
    params: CUdeviceptr,
    memory: &[Arc<Block>],
) -> Result<Step> {
    let launch = &list.launches[index];
    let name = step_name(list, index);
    let place = |error: Error| {
        error.at(format_args!(
            "{}: plan {}: {name}",
            context.info.id, list.name
        ))
    };
    let read_only_cache = reads_do_not_alias_writes(launch, |region| address_of(memory, region));
    let translation = Translation::of(&launch.kernel, read_only_cache).map_err(place)?;
    let module = modules.load(context, &launch.kernel, &translation)?;
    let mut arguments = Vec::with_capacity(2 * translation.kernel.bindings.len());
    for binding in &translation.kernel.bindings {
        let (address, bytes) = match binding
            .binding
            .checked_sub(1)
            .map(|number| &launch.regions[number as usize])
        {
            None => (params, BINDING_ALIGNMENT),
            Some(region) => (address_of(memory, region), region.bytes),
        };
        arguments.extend([address, bytes as u64]);
    }
    let facts = &translation.kernel;
    let code = Code::Kernel(KernelCall {
        module,
        groups: launch.groups,
        block: facts.workgroup_size,
        shared_bytes: facts.dynamic_shared_bytes,
        arguments,
    });
    Ok(Step {
        name,
        routine: None,
        code,
    })
}

impl Drop for CudaCompiled {
    fn drop(&mut self) {
        self.settle();
    }
}

impl Compiled for CudaCompiled {
    fn upload_mut(&mut self) -> &mut [u8] {
        match &mut self.work.upload {
            Some(upload) => upload.host.bytes_mut(),
            None => &mut [],
        }
    }

    fn download(&self, index: usize) -> &[u8] {
        match &self.work.download {
            Some(download) => &download.host.bytes()[download.layout.places[index].clone()],
            None => &[],
        }
    }

    fn routine(&self, launch: usize) -> Option<&str> {
        self.work.steps[launch].routine.as_deref()
    }

    fn begin(&mut self) -> Result<()> {
        let work = &self.work;
        work.context.bind()?;
        let _turn = work.context.lock_stream();
        self.graph
            .launch()
            .map_err(|error| work.place("the run", error))?;
        self.in_flight = true;
        Ok(())
    }

    fn record_end(&mut self) -> Result<()> {
        let event = Event::record(&self.work.context).inspect_err(|_| self.settle())?;
        self.end = Some(event);
        Ok(())
    }

    fn finish(&mut self) -> Result<RunStats> {
        let work = &self.work;
        work.context.bind()?;
        let waited = match self.end.take() {
            Some(end) => end.synchronize(),
            None => work.context.synchronize(),
        };
        waited.map_err(|error| work.in_flight(error))?;
        self.in_flight = false;
        let bytes_up = work
            .upload
            .as_ref()
            .map_or(0, |upload| upload.host.len() as u64);
        let bytes_down = work
            .download
            .as_ref()
            .map_or(0, |download| download.layout.bytes as u64);
        let [start, begin, end, last] = &work.times;
        Ok(RunStats {
            bytes_up,
            bytes_down,
            transfers_up: u32::from(bytes_up > 0),
            transfers_down: u32::from(bytes_down > 0),
            launches: work.steps.len() as u32,
            submissions: 1,
            device_ns: Some(end.ns_since(begin)?),
            up_ns: work
                .upload
                .is_some()
                .then(|| begin.ns_since(start))
                .transpose()?,
            down_ns: work
                .download
                .is_some()
                .then(|| last.ns_since(end))
                .transpose()?,
            fallbacks: 0,
        })
    }

    fn trace(&mut self) -> Result<Vec<Option<u64>>> {
        self.work.context.bind()?;
        self.in_flight = true;
        let events = self.work.enqueue_timed().inspect_err(|_| self.settle())?;
        self.work
            .context
            .synchronize()
            .map_err(|error| self.work.in_flight(error))?;
        self.in_flight = false;
        events
            .windows(2)
            .map(|pair| pair[1].ns_since(&pair[0]).map(Some))
            .collect()
    }
}
