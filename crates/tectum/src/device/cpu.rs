//! The CPU device: native twins over host memory, no transfers.

use std::alloc::Layout;
use std::collections::HashSet;
#[cfg(target_os = "linux")]
use std::ffi::{c_int, c_void};
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Instant;

use super::buffer_lock::{BufferLock, BufferLocks};
use super::thread_pool::{ThreadPool, with_spinning_workers};
use super::{
    Allocation, Api, Backend, Block, Compiled, DeviceInfo, DeviceKind, DeviceLimits, Role,
};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::kernel::native::{NativeRegion, ThreadBudget, WORK_PER_THREAD};
use crate::kernel::{Kernel, NativeCall};
use crate::launch::{LaunchList, RunStats};

/// The alignment of small allocations: a cache line.
const LINE: usize = 64;
/// The size and alignment of a huge page on x86-64 and on AArch64 with 4 KiB pages.
const HUGE_PAGE: usize = 2 << 20;

/// The advice to use huge pages.
#[cfg(target_os = "linux")]
const MADV_HUGEPAGE: c_int = 14;

#[cfg(target_os = "linux")]
unsafe extern "C" {
    /// Of the C library, which the standard library links: advice on the use of a range of pages.
    fn madvise(start: *mut c_void, bytes: usize, advice: c_int) -> c_int;
}

/// Host memory that executables and the host access in turn.
pub(crate) struct CpuMemory {
    start: NonNull<u8>,
    layout: Layout,
    lock: BufferLock,
}

// SAFETY: the bytes are owned by this value and reached only through `read` and `write`, which hold
// `lock`, and through a `CpuCompiled`, which holds `lock` of every shared allocation while it runs
// and is the only owner of the others.
unsafe impl Send for CpuMemory {}
// SAFETY: as for `Send`.
unsafe impl Sync for CpuMemory {}

impl CpuMemory {
    /// Zeroed memory. Large allocations request huge pages, so that the TLB covers many more
    /// bytes: streaming through several arrays at once no longer waits for the page table.
    fn allocate(bytes: usize) -> Result<Self> {
        let align = if bytes >= 2 * HUGE_PAGE {
            HUGE_PAGE
        } else {
            LINE
        };
        let layout = Layout::from_size_align(bytes.next_multiple_of(LINE).max(LINE), align).ok();
        let out_of_memory = || {
            Error::new(
                ErrorKind::OutOfMemory,
                format!("cpu: {bytes} bytes could not be allocated"),
            )
        };
        let layout = layout.ok_or_else(out_of_memory)?;
        // SAFETY: the layout's size is not zero.
        let start = NonNull::new(unsafe { std::alloc::alloc(layout) }).ok_or_else(out_of_memory)?;
        #[cfg(target_os = "linux")]
        if align == HUGE_PAGE {
            // SAFETY: the range was just allocated, begins on a page and nothing is stored in it.
            // It is advice: where the kernel has no huge pages the call fails and ordinary pages
            // are used.
            unsafe {
                madvise(
                    start.as_ptr().cast(),
                    layout.size() / HUGE_PAGE * HUGE_PAGE,
                    MADV_HUGEPAGE,
                )
            };
        }
        // SAFETY: the allocation is `layout.size()` bytes long.
        unsafe { start.write_bytes(0, layout.size()) };
        Ok(Self {
            start,
            layout,
            lock: BufferLock::new(),
        })
    }

    fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    fn write(&self, offset: usize, data: &[u8]) {
        let _turn = self.lock.lock(true);
        // SAFETY: the allocation is `layout.size()` bytes long and initialised; the lock excludes
        // every run and copy.
        let bytes = unsafe { std::slice::from_raw_parts_mut(self.start(), self.layout.size()) };
        bytes[offset..][..data.len()].copy_from_slice(data);
    }

    fn read(&self, offset: usize, data: &mut [u8]) {
        let _turn = self.lock.lock(false);
        // SAFETY: as above; the lock excludes all writers.
        let bytes = unsafe { std::slice::from_raw_parts(self.start(), self.layout.size()) };
        data.copy_from_slice(&bytes[offset..][..data.len()]);
    }
}

impl Drop for CpuMemory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no longer reachable.
        unsafe { std::alloc::dealloc(self.start(), self.layout) };
    }
}

/// The host's processor.
pub(super) struct CpuDevice {
    info: DeviceInfo,
    /// Threads of each executable; if none, those that rayon has where it is compiled.
    threads: Option<usize>,
}

impl CpuDevice {
    pub(super) fn new(threads: Option<usize>) -> Self {
        Self {
            info: DeviceInfo {
                compute_units: Some(threads.unwrap_or_else(rayon_core::current_num_threads) as u32),
                ..info()
            },
            threads,
        }
    }
}

/// The CPU's properties.
pub(super) fn info() -> DeviceInfo {
    let memory = crate::host_memory::total_bytes();
    DeviceInfo {
        id: "cpu".into(),
        name: processor_name(),
        uuid: None,
        pci: None,
        driver: format!("native twins, tectum {}", env!("CARGO_PKG_VERSION")),
        api: Api::Cpu,
        kind: DeviceKind::Cpu,
        software: false,
        memory_bytes: memory,
        compute_units: Some(rayon_core::current_num_threads() as u32),
        simd_width: (simd_lanes(), simd_lanes()),
        unified_memory: true,
        limits: DeviceLimits {
            max_binding_bytes: super::INDEXABLE_BYTES,
            max_buffer_bytes: memory.unwrap_or(u64::MAX),
            max_groups: crate::kernel::MAX_GROUPS,
            workgroup_memory_bytes: 16 << 10,
            max_workgroup_size: 256,
            max_loop_iterations: None,
        },
        dtypes: vec![DType::F32, DType::U32, DType::I32, DType::F64],
    }
}

fn processor_name() -> String {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'));
    model.map_or_else(
        || std::env::consts::ARCH.to_owned(),
        |(_, name)| name.trim().to_owned(),
    )
}

#[cfg(target_arch = "x86_64")]
fn simd_lanes() -> u32 {
    match (
        is_x86_feature_detected!("avx512f"),
        is_x86_feature_detected!("avx2"),
    ) {
        (true, _) => 16,
        (false, true) => 8,
        _ => 4,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn simd_lanes() -> u32 {
    4
}

fn memory_of(allocation: &Allocation) -> &CpuMemory {
    match allocation {
        Allocation::Cpu(memory) => memory,
        _ => unreachable!("invariant: the pool of the CPU device holds CPU memory alone"),
    }
}

impl Backend for CpuDevice {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn allocate(&self, bytes: usize, _: Role) -> Result<Allocation> {
        CpuMemory::allocate(bytes).map(Allocation::Cpu)
    }

    fn write(&self, to: &Allocation, offset: usize, data: &[u8]) -> Result<()> {
        memory_of(to).write(offset, data);
        Ok(())
    }

    fn read(&self, from: &Allocation, offset: usize, data: &mut [u8]) -> Result<()> {
        memory_of(from).read(offset, data);
        Ok(())
    }

    fn compile(&self, list: &LaunchList, memory: Vec<Arc<Block>>) -> Result<Box<dyn Compiled>> {
        let mut regions = Vec::new();
        let mut calls = Vec::with_capacity(list.launches.len());
        for launch in &list.launches {
            let first = regions.len();
            for (binding, region) in launch.kernel.bindings().iter().zip(&launch.regions) {
                let start = memory_of(memory[region.buffer].allocation()).start();
                regions.push(NativeRegion {
                    start: start.wrapping_add(region.offset),
                    bytes: region.bytes,
                    dtype: binding.dtype,
                    writable: binding.access.writes(),
                });
            }
            calls.push(Call {
                kernel: launch.kernel.clone(),
                params: launch.params.clone(),
                regions: first..regions.len(),
            });
        }
        let turns = turns(list, &memory);
        let threads = self.threads.unwrap_or_else(rayon_core::current_num_threads);
        Ok(Box::new(CpuCompiled {
            list: list.clone(),
            memory,
            calls,
            regions,
            turns,
            threads,
            pool: None,
            shares: None,
        }))
    }
}

/// Locks of the buffers that others may access.
fn turns(list: &LaunchList, memory: &[Arc<Block>]) -> BufferLocks {
    let address = |buffer: usize| Arc::as_ptr(&memory[buffer]) as usize;
    let bound = list
        .launches
        .iter()
        .flat_map(|launch| launch.kernel.bindings().iter().zip(&launch.regions));
    let written: HashSet<usize> = bound
        .filter(|(binding, _)| binding.access.writes())
        .map(|(_, region)| address(region.buffer))
        .collect();
    BufferLocks::new(
        list.shared
            .iter()
            .map(|&buffer| (buffer, address(buffer), written.contains(&address(buffer)))),
    )
}

struct Call {
    kernel: Arc<Kernel>,
    params: Vec<u32>,
    regions: std::ops::Range<usize>,
}

/// A launch list with its pointers resolved.
struct CpuCompiled {
    list: LaunchList,
    memory: Vec<Arc<Block>>,
    calls: Vec<Call>,
    regions: Vec<NativeRegion>,
    turns: BufferLocks,
    threads: usize,
    /// Created when a run first needs it.
    pool: Option<Arc<ThreadPool>>,
    /// Whether the last run had launches that benefit from more than one thread; none before the
    /// first.
    shares: Option<bool>,
}

// SAFETY: the pointers in `regions` point into `memory`, which this value keeps alive and which
// does not move.
unsafe impl Send for CpuCompiled {}

impl CpuCompiled {
    fn bytes(&self, buffer: usize, offset: usize, bytes: usize) -> *mut u8 {
        let block = &self.memory[buffer];
        assert!(
            offset + bytes <= block.bytes(),
            "invariant: the plan checked every range"
        );
        memory_of(block.allocation()).start().wrapping_add(offset)
    }

    /// Runs; calls `done` after each launch.
    ///
    /// Runs on this thread if it belongs to a pool, if the previous run had nothing to share, or if
    /// the pool shares another run. Otherwise runs in a pool, with the locks taken first: within
    /// it, two runs that access one buffer would wait for each other. If the previous run shared
    /// launches, the pool's other threads stay awake.
    fn run(&mut self, done: &mut (dyn FnMut() + Send)) -> Result<()> {
        let shared = self.shares == Some(true);
        let is_member = ThreadPool::is_pool_thread();
        let may_share = self.threads > 1 && self.shares != Some(false);
        if !is_member && may_share && self.pool.is_none() {
            self.pool = Some(ThreadPool::shared(self.threads)?);
        }
        let sharing = |alone| ThreadBudget {
            threads: self.threads,
            min_work_per_thread: if shared {
                WORK_PER_THREAD / 8
            } else {
                WORK_PER_THREAD
            },
            alone,
        };
        let run = |alone| Run {
            plan: &self.list.name,
            calls: &self.calls,
            regions: &self.regions,
            sharing: sharing(alone),
        };
        let awake = if shared { self.threads } else { 1 };
        let work = || {
            let occupied = match &self.pool {
                _ if is_member => ThreadPool::try_reserve_current(),
                Some(pool) if may_share => pool.try_reserve(),
                _ => None,
            };
            let run = run(occupied.is_none());
            match &self.pool {
                _ if occupied.is_none() => run.run(done),
                Some(pool) if !is_member => pool
                    .install_blocking(move || with_spinning_workers(awake, move || run.run(done))),
                _ => with_spinning_workers(awake, move || run.run(done)),
            }
        };
        self.shares = Some(self.turns.with_locks(
            &|buffer| &memory_of(self.memory[buffer].allocation()).lock,
            work,
        )?);
        Ok(())
    }
}

/// The launches of a run.
struct Run<'a> {
    /// The plan's name.
    plan: &'a str,
    calls: &'a [Call],
    regions: &'a [NativeRegion],
    sharing: ThreadBudget,
}

// SAFETY: as for `CpuCompiled`, which is borrowed exclusively during its run.
unsafe impl Send for Run<'_> {}

impl Run<'_> {
    /// Receives whether a launch benefits from more than one thread.
    fn run(self, done: &mut dyn FnMut()) -> Result<bool> {
        let mut shares = false;
        for (index, call) in self.calls.iter().enumerate() {
            // SAFETY: the plan checked that every range lies in its buffer and that no written
            // range overlaps another of the launch; shared buffers are locked, exclusively where a
            // launch writes, the others belong only to the executable, which is borrowed
            // exclusively; memory is initialised at allocation and 64-byte aligned.
            let arguments = unsafe {
                NativeCall::new(
                    &call.kernel,
                    &call.params,
                    &self.regions[call.regions.clone()],
                    self.sharing,
                )
            };
            call.kernel.run_native(&arguments).map_err(|error| {
                let kernel = call.kernel.name();
                error.at(format_args!(
                    "plan {}: launch {index}, kernel {kernel}",
                    self.plan
                ))
            })?;
            shares |= arguments.benefits_from_threads();
            done();
        }
        Ok(shares)
    }
}

impl Compiled for CpuCompiled {
    fn upload_mut(&mut self) -> &mut [u8] {
        let Some(buffer) = self.list.upload else {
            return &mut [];
        };
        let bytes = self.list.buffer_bytes[buffer];
        // SAFETY: the upload block belongs to this value alone, and `&mut self` excludes a run.
        unsafe { std::slice::from_raw_parts_mut(self.bytes(buffer, 0, bytes), bytes) }
    }

    fn download(&self, index: usize) -> &[u8] {
        let region = self.list.downloads[index];
        // SAFETY: downloads belong to this value alone, and `&self` excludes a run, which needs
        // `&mut self`.
        unsafe {
            std::slice::from_raw_parts(
                self.bytes(region.buffer, region.offset, region.bytes),
                region.bytes,
            )
        }
    }

    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> Result<RunStats> {
        let start = Instant::now();
        self.run(&mut || {})?;
        let elapsed = start.elapsed().as_nanos() as u64;
        Ok(RunStats {
            launches: self.calls.len() as u32,
            submissions: 1,
            device_ns: Some(elapsed),
            ..RunStats::default()
        })
    }

    fn trace(&mut self) -> Result<Vec<Option<u64>>> {
        let mut times = Vec::with_capacity(self.calls.len());
        let mut last = Instant::now();
        self.run(&mut || {
            let now = Instant::now();
            times.push(Some((now - last).as_nanos() as u64));
            last = now;
        })?;
        Ok(times)
    }
}
