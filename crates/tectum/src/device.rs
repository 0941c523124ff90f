//! Devices: the CPU, NVIDIA GPUs, every GPU that wgpu reaches, and a null device that executes
//! nothing.
//!
//! A device allocates memory, copies to and from it, and compiles a [`LaunchList`] into something
//! that runs. It never sees a tensor operation, a graph or a model.
//!
//! A [`Pool`] keeps freed allocations in size buckets and reuses them; the least recently used are
//! dropped first when its caps are exceeded. When a device runs out, the pool is trimmed and the
//! allocation tried once more before the error, which carries the numbers. Backend and pool are one
//! module: a backend compiles lists over the pool's blocks, and a pool allocates from a backend.

mod buffer_lock;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
mod info;
mod null;
mod pool_reservation;
#[cfg(test)]
mod tests;
mod thread_pool;
#[cfg(feature = "wgpu")]
mod wgpu_device;

/// The primitives of [`buffer_lock`] and [`pool_reservation`]; `tests/models.rs` replaces them with
/// the types of a model checker.
mod sync {
    pub(super) use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic, mpsc};
}

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::SystemTime;

use serde::Serialize;

pub(crate) use self::info::INDEXABLE_BYTES;
pub use self::info::{AbsentDevice, Api, DeviceInfo, DeviceKind, DeviceLimits, LayoutPreferences};
pub use self::thread_pool::ThreadPool;
use crate::error::{Error, ErrorKind, Result};
use crate::host_memory;
use crate::launch::{LaunchList, RunStats};

/// Readings of a device's sensors; none for what they do not measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Readings {
    /// Energy since the driver was loaded.
    pub energy_j: Option<f64>,
    /// Share of the driver's last sampling period in which a kernel ran.
    pub utilisation: Option<f64>,
    /// Power drawn.
    pub power_w: Option<f64>,
    /// Temperature of the chip.
    pub temperature_c: Option<u32>,
    /// Clock of the multiprocessors.
    pub clock_mhz: Option<u32>,
    /// Clock of the memory.
    pub memory_clock_mhz: Option<u32>,
    /// Memory in use, by every process.
    pub memory_used_bytes: Option<u64>,
}

/// A device's sensors.
pub(crate) trait Sensors {
    fn read(&self) -> Readings;
    /// The mean utilisation since then, if samples cover at least a second of it.
    fn mean_utilisation(&self, since: SystemTime) -> Option<f64>;
}

/// What an allocation is for; the pool keeps the roles apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Read and written by kernels, copied by the device.
    Device,
    /// Filled by the host before each run; mapped where memory is unified.
    Upload,
}

/// The path of a copy between two buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CopyPath {
    /// Within one device.
    Device,
    /// From one device's memory directly to another's.
    Peer,
    /// Through the host's memory.
    Host,
}

/// Maximum bytes that a copy through the host holds there at a time.
pub(crate) const HOST_COPY_BYTES: usize = 8 << 20;

/// Device memory, owned by one backend.
pub(crate) enum Allocation {
    Cpu(cpu::CpuMemory),
    #[cfg(feature = "cuda")]
    Cuda(cuda::CudaMemory),
    Null(#[expect(dead_code, reason = "held for its drop")] null::NullMemory),
    #[cfg(feature = "wgpu")]
    Wgpu(wgpu::Buffer),
}

impl Allocation {
    /// The address of the first bytes on a CUDA device.
    pub fn cuda_address(&self) -> Option<u64> {
        match self {
            #[cfg(feature = "cuda")]
            Self::Cuda(memory) => Some(memory.address(0, 0)),
            _ => None,
        }
    }
}

/// What each kind of device implements.
pub(crate) trait Backend: Send + Sync {
    fn info(&self) -> &DeviceInfo;
    /// Allocates; on `OutOfMemory` the pool trims and tries again.
    fn allocate(&self, bytes: usize, role: Role) -> Result<Allocation>;
    /// Copies from the host, in order with the device's other work.
    fn write(&self, to: &Allocation, offset: usize, data: &[u8]) -> Result<()>;
    /// Copies to the host, after the device's earlier work.
    fn read(&self, from: &Allocation, offset: usize, data: &mut [u8]) -> Result<()>;
    /// Prepares a list for running over the given memory, one allocation for each of its buffers.
    fn compile(&self, list: &LaunchList, memory: Vec<Arc<Block>>) -> Result<Box<dyn Compiled>>;
    /// Copies the first bytes of one of its allocations to any device's, after earlier work,
    /// without the host; none where that is not possible.
    fn copy(
        &self,
        _from: &Allocation,
        _to: &Allocation,
        _bytes: usize,
    ) -> Result<Option<CopyPath>> {
        Ok(None)
    }
    /// The sensors of its driver, if there are any.
    fn sensors(&self) -> Option<&dyn Sensors> {
        None
    }
}

/// A compiled launch list.
pub(crate) trait Compiled: Send {
    /// The upload block.
    fn upload_mut(&mut self) -> &mut [u8];
    /// The bytes of a download after a run.
    fn download(&self, index: usize) -> &[u8];
    /// The library's routine that replaces the kernel of a launch, with its version.
    fn routine(&self, _launch: usize) -> Option<&str> {
        None
    }
    /// Begins to execute the list once; a device that cannot run in the background executes it in
    /// `finish`. A run that is begun is finished before anything else is done here.
    fn begin(&mut self) -> Result<()>;
    /// Marks the end of the begun run in the device's work, so that `finish` waits for no more than
    /// that.
    fn record_end(&mut self) -> Result<()> {
        Ok(())
    }
    /// Waits for the run and its downloads.
    fn finish(&mut self) -> Result<RunStats>;
    /// Executes the launches once, one at a time, and returns each one's time by the device's clock
    /// in nanoseconds; none where the device has no clock. The uploaded data are those of the last
    /// run.
    fn trace(&mut self) -> Result<Vec<Option<u64>>>;
}

/// Caps on what a pool keeps and allocates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolCaps {
    /// Maximum bytes kept for reuse.
    pub pooled_bytes: u64,
    /// Maximum allocations kept for reuse.
    pub pooled_count: usize,
    /// Maximum bytes in use at a time.
    pub live_bytes: u64,
}

impl Default for PoolCaps {
    fn default() -> Self {
        Self {
            pooled_bytes: 1 << 30,
            pooled_count: 4096,
            live_bytes: u64::MAX,
        }
    }
}

/// The contents and counters of a pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct PoolStats {
    /// Bytes in use.
    pub live_bytes: u64,
    /// Allocations in use.
    pub live_count: u64,
    /// Bytes kept for reuse.
    pub pooled_bytes: u64,
    /// Allocations kept for reuse.
    pub pooled_count: u64,
    /// The maximum of `live_bytes` so far.
    pub peak_bytes: u64,
    /// Requests served from the pool.
    pub hits: u64,
    /// Requests that allocated.
    pub misses: u64,
    /// Allocations dropped to stay within the caps.
    pub evictions: u64,
    /// How often everything kept was dropped because memory ran out or on request.
    pub trims: u64,
}

struct Pooled {
    allocation: Allocation,
    bytes: usize,
    role: Role,
}

#[derive(Default)]
struct PoolState {
    /// Least recently freed first.
    free: Vec<Pooled>,
    caps: PoolCaps,
    stats: PoolStats,
    /// Bytes of allocations under way: they count towards the cap, so that several threads do not
    /// exceed it together, and are not live yet.
    reserved_bytes: u64,
}

struct PoolInner {
    backend: Arc<dyn Backend>,
    state: Mutex<PoolState>,
}

/// The pool that all memory of a device comes from.
#[derive(Clone)]
pub struct Pool(Arc<PoolInner>);

/// Pooled device memory: returned to the pool when dropped.
pub(crate) struct Block {
    allocation: Option<Allocation>,
    bytes: usize,
    role: Role,
    pool: Weak<PoolInner>,
}

impl Block {
    pub(crate) fn allocation(&self) -> &Allocation {
        self.allocation
            .as_ref()
            .expect("invariant: taken only in drop")
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let (Some(allocation), Some(pool)) = (self.allocation.take(), self.pool.upgrade()) else {
            return;
        };
        let evicted = pool.lock().recycle(Pooled {
            allocation,
            bytes: self.bytes,
            role: self.role,
        });
        drop(evicted);
    }
}

impl PoolInner {
    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PoolState {
    fn take(&mut self, bytes: usize, role: Role) -> Option<Allocation> {
        let index = self
            .free
            .iter()
            .rposition(|kept| kept.bytes == bytes && kept.role == role)?;
        let kept = self.free.remove(index);
        self.stats.pooled_bytes -= bytes as u64;
        self.stats.pooled_count -= 1;
        Some(kept.allocation)
    }

    /// What was reserved is allocated.
    fn count_live(&mut self, bytes: usize, is_pooled: bool) {
        let stats = &mut self.stats;
        self.reserved_bytes -= bytes as u64;
        stats.live_bytes += bytes as u64;
        stats.live_count += 1;
        stats.peak_bytes = stats.peak_bytes.max(stats.live_bytes);
        if is_pooled {
            stats.hits += 1
        } else {
            stats.misses += 1
        }
    }

    fn recycle(&mut self, freed: Pooled) -> Vec<Pooled> {
        self.stats.live_bytes -= freed.bytes as u64;
        self.stats.live_count -= 1;
        self.stats.pooled_bytes += freed.bytes as u64;
        self.stats.pooled_count += 1;
        self.free.push(freed);
        self.evict()
    }

    fn evict(&mut self) -> Vec<Pooled> {
        let mut evicted = Vec::new();
        while self.stats.pooled_bytes > self.caps.pooled_bytes
            || self.free.len() > self.caps.pooled_count
        {
            let oldest = self.free.remove(0);
            self.stats.pooled_bytes -= oldest.bytes as u64;
            self.stats.pooled_count -= 1;
            self.stats.evictions += 1;
            evicted.push(oldest);
        }
        evicted
    }

    fn trim(&mut self) -> Vec<Pooled> {
        self.stats.pooled_bytes = 0;
        self.stats.pooled_count = 0;
        self.stats.trims += 1;
        std::mem::take(&mut self.free)
    }
}

impl Pool {
    pub(crate) fn new(backend: Arc<dyn Backend>) -> Self {
        Self(Arc::new(PoolInner {
            backend,
            state: Mutex::default(),
        }))
    }

    /// The contents and counters of the pool.
    pub fn stats(&self) -> PoolStats {
        self.0.lock().stats
    }

    /// Sets the caps; allocations kept beyond them are dropped immediately.
    pub fn set_caps(&self, caps: PoolCaps) {
        let mut state = self.0.lock();
        state.caps = caps;
        let evicted = state.evict();
        drop(state);
        drop(evicted);
    }

    /// Drops everything kept for reuse.
    pub fn trim(&self) {
        let kept = self.0.lock().trim();
        drop(kept);
    }

    /// Uninitialised memory with arbitrary previous contents: for a caller that writes all of it.
    pub(crate) fn acquire(&self, bytes: usize, role: Role) -> Result<Arc<Block>> {
        let bucket = bucket(bytes).ok_or_else(|| {
            self.out_of_memory(
                bytes,
                &self.stats(),
                "an address reaches",
                isize::MAX as u64,
            )
        })?;
        let pooled = {
            let mut state = self.0.lock();
            let under_way = state.reserved_bytes.checked_add(bucket as u64);
            let after = under_way.and_then(|bytes| bytes.checked_add(state.stats.live_bytes));
            if after.is_none_or(|after| after > state.caps.live_bytes) {
                return Err(self.out_of_memory(
                    bucket,
                    &state.stats,
                    "the pool's cap on live bytes",
                    state.caps.live_bytes,
                ));
            }
            state.reserved_bytes += bucket as u64;
            state.take(bucket, role)
        };
        let is_pooled = pooled.is_some();
        let allocation = match pooled.map_or_else(|| self.allocate(bucket, role), Ok) {
            Ok(allocation) => allocation,
            Err(error) => {
                self.0.lock().reserved_bytes -= bucket as u64;
                return Err(error);
            }
        };
        self.0.lock().count_live(bucket, is_pooled);
        Ok(Arc::new(Block {
            allocation: Some(allocation),
            bytes: bucket,
            role,
            pool: Arc::downgrade(&self.0),
        }))
    }

    /// Zeroed memory: no data of its former owner remain.
    pub(crate) fn acquire_zeroed(&self, bytes: usize, role: Role) -> Result<Arc<Block>> {
        let block = self.acquire(bytes, role)?;
        let zeros = vec![0; bytes.min(HOST_COPY_BYTES)];
        for offset in (0..bytes).step_by(HOST_COPY_BYTES) {
            self.0.backend.write(
                block.allocation(),
                offset,
                &zeros[..(bytes - offset).min(HOST_COPY_BYTES)],
            )?;
        }
        Ok(block)
    }

    fn allocate(&self, bytes: usize, role: Role) -> Result<Allocation> {
        let backend = &self.0.backend;
        let allocate = || {
            // Such a device allocates more than there is, and the system ends the process when the
            // memory is used.
            if matches!(backend.info().kind, DeviceKind::Cpu | DeviceKind::Software) {
                host_memory::check("a buffer", bytes as u64)?;
            }
            backend.allocate(bytes, role)
        };
        match allocate() {
            Err(error) if error.kind() == ErrorKind::OutOfMemory => {
                self.trim();
                allocate().map_err(|error| {
                    let capacity = backend.info().memory_bytes.unwrap_or(0);
                    self.out_of_memory(bytes, &self.stats(), "the device's memory", capacity)
                        .with_source(error)
                })
            }
            other => other,
        }
    }

    fn out_of_memory(&self, asked: usize, stats: &PoolStats, what: &str, limit: u64) -> Error {
        Error::new(
            ErrorKind::OutOfMemory,
            format!(
                "{}: out of memory: {asked} bytes requested, {} live in {} buffers, {} kept for reuse, {what} is {limit}",
                self.0.backend.info().id,
                stats.live_bytes,
                stats.live_count,
                stats.pooled_bytes
            ),
        )
    }
}

struct DeviceInner {
    backend: Arc<dyn Backend>,
    pool: Pool,
}

/// The devices that are open, by id.
static OPEN: Mutex<Vec<(String, Weak<DeviceInner>)>> = Mutex::new(Vec::new());

/// The CPU device before it is opened; [`Device::cpu`] starts it.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuBuilder {
    threads: Option<usize>,
}

impl CpuBuilder {
    /// Sets how many threads share a launch, including the one that waits for it, 1 to 1024.
    /// Without it they are those of the process ([`ThreadPool::start_global`]). Results have the
    /// same bits with any number.
    ///
    /// An executable that runs on a thread of a [`ThreadPool`] shares its launches among the
    /// threads of that pool instead, or none of them with 1.
    #[must_use]
    pub fn threads(self, threads: usize) -> Self {
        Self {
            threads: Some(threads),
        }
    }

    /// Opens the device. The same settings return the same device object as long as one is alive;
    /// devices of different settings share no buffers.
    ///
    /// # Errors
    /// `Invalid` for an impossible number of threads, here or in the environment variable
    /// `TECTUM_THREADS`.
    pub fn open(self) -> Result<Device> {
        let Some(threads) = self.threads else {
            return Device::open("cpu");
        };
        let threads = thread_pool::check_threads("cpu", threads)?;
        Device::open_once(&format!("cpu with {threads} threads"), || {
            Ok(Arc::new(cpu::CpuDevice::new(Some(threads))))
        })
    }
}

/// A device, cheap to clone.
#[derive(Clone)]
pub struct Device(Arc<DeviceInner>);

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.info().id)
    }
}

impl Device {
    /// Lists every device of this machine; probes adapters but opens none.
    pub fn list() -> Vec<DeviceInfo> {
        // Opening the CPU reports a mistake in the number of threads; the devices are there all the
        // same.
        let _ = ThreadPool::start_global(None);
        [
            vec![cpu::info(), null::info()],
            cuda_devices().0,
            wgpu_devices().0,
        ]
        .concat()
    }

    /// Lists what [`Device::list`] cannot: devices without a usable driver or below the
    /// requirements of kernels, with the reason.
    pub fn absent() -> Vec<AbsentDevice> {
        let left_out = LEFT_OUT.iter().map(|(api, feature)| AbsentDevice {
            device: (*api).to_owned(),
            reason: format!(
                "this build leaves it out: the feature \"{feature}\" of the crate tectum is off"
            ),
        });
        cuda_devices()
            .1
            .into_iter()
            .chain(wgpu_devices().1)
            .chain(left_out)
            .collect()
    }

    /// Opens the device of an id: `auto`, `cpu`, `null`, `cuda:N`, `vulkan:N`, `metal:N` or
    /// `dx12:N`.
    ///
    /// `auto` takes the CPU: without a plan there is nothing to route; [`crate::route::open`] picks
    /// a device for one. The same id returns the same device object as long as one is alive.
    ///
    /// # Errors
    /// `Invalid` for an id of another form, or an impossible number in the environment variable
    /// `TECTUM_THREADS`; `Unsupported`, with the reason if one is known and the ids that exist, for
    /// a device that this machine lacks.
    pub fn open(id: &str) -> Result<Device> {
        let id = if id == "auto" { "cpu" } else { id };
        Device::open_once(id, || open_backend(id))
    }

    /// The open device of a name; makes it if none is open.
    fn open_once(name: &str, backend: impl FnOnce() -> Result<Arc<dyn Backend>>) -> Result<Device> {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|(_, device)| device.strong_count() > 0);
        if let Some(device) = open
            .iter()
            .find(|(known, _)| known == name)
            .and_then(|(_, device)| device.upgrade())
        {
            return Ok(Device(device));
        }
        let device = Device::with_backend(backend()?);
        open.push((name.to_owned(), Arc::downgrade(&device.0)));
        drop(open);
        // Without the lock: the receiver of the record may open devices.
        crate::log!(
            info,
            device = name,
            name = device.info().name,
            software = device.info().software,
            "device opened"
        );
        Ok(device)
    }

    /// Starts to open the CPU device with settings of its own.
    ///
    /// # Example
    /// ```
    /// let device = tectum::Device::cpu().threads(2).open()?;
    /// assert_eq!((device.info().id.as_str(), device.info().compute_units), ("cpu", Some(2)));
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn cpu() -> CpuBuilder {
        CpuBuilder::default()
    }

    /// Opens the device of an id as [`Device::open`] does; none if this machine lacks it.
    ///
    /// # Errors
    /// As [`Device::open`], except `Unsupported`: a device that is present and cannot be opened is
    /// an error.
    pub fn open_if_present(id: &str) -> Result<Option<Device>> {
        match Device::open(id) {
            Ok(device) => Ok(Some(device)),
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a null device that holds at most `bytes`, for tests of plans and of memory running
    /// out.
    pub fn null_with_capacity(bytes: u64) -> Device {
        Device::with_backend(Arc::new(null::NullDevice::new(bytes)))
    }

    fn with_backend(backend: Arc<dyn Backend>) -> Device {
        Device(Arc::new(DeviceInner {
            pool: Pool::new(backend.clone()),
            backend,
        }))
    }

    /// The device's properties.
    pub fn info(&self) -> &DeviceInfo {
        self.0.backend.info()
    }

    /// The pool that all memory of this device comes from.
    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// Readings of the device's sensors; none where its driver has no sensors.
    pub fn readings(&self) -> Option<Readings> {
        Some(self.backend().sensors()?.read())
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }
}

fn open_backend(id: &str) -> Result<Arc<dyn Backend>> {
    match id {
        "cpu" => {
            ThreadPool::start_global(None)?;
            return Ok(Arc::new(cpu::CpuDevice::new(None)));
        }
        "null" => return Ok(Arc::new(null::NullDevice::new(u64::MAX))),
        _ => {}
    }
    let (api, number) = id.split_once(':').ok_or_else(|| unknown_device(id))?;
    let api = match api {
        "cuda" => Api::Cuda,
        "vulkan" => Api::Vulkan,
        "metal" => Api::Metal,
        "dx12" => Api::Dx12,
        _ => return Err(unknown_device(id)),
    };
    // One device has one id: `vulkan:00` and `vulkan:+0` are not other names of `vulkan:0`.
    let number = number
        .parse::<usize>()
        .ok()
        .filter(|parsed| parsed.to_string() == number)
        .ok_or_else(|| unknown_device(id))?;
    let device: Option<Arc<dyn Backend>> = match (api, number) {
        #[cfg(feature = "cuda")]
        (Api::Cuda, number) => cuda::open(number)?.map(|device| Arc::new(device) as _),
        #[cfg(feature = "wgpu")]
        (Api::Vulkan | Api::Metal | Api::Dx12, number) => {
            wgpu_device::open(api, number)?.map(|device| Arc::new(device) as _)
        }
        _ => None,
    };
    device.ok_or_else(|| missing_device(id))
}

/// APIs without a device in this build, with the feature that adds them.
const LEFT_OUT: &[(&str, &str)] = match (cfg!(feature = "cuda"), cfg!(feature = "wgpu")) {
    (true, true) => &[],
    (false, true) => &[("cuda", "cuda")],
    (true, false) => &[("vulkan", "wgpu"), ("metal", "wgpu"), ("dx12", "wgpu")],
    (false, false) => &[
        ("cuda", "cuda"),
        ("vulkan", "wgpu"),
        ("metal", "wgpu"),
        ("dx12", "wgpu"),
    ],
};

/// NVIDIA GPUs that kernels run on, and those that kernels do not run on.
fn cuda_devices() -> (Vec<DeviceInfo>, Vec<AbsentDevice>) {
    #[cfg(feature = "cuda")]
    return (cuda::list(), cuda::absent());
    #[cfg(not(feature = "cuda"))]
    (Vec::new(), Vec::new())
}

/// Adapters of wgpu, and the API of this operating system if it has none.
fn wgpu_devices() -> (Vec<DeviceInfo>, Option<AbsentDevice>) {
    #[cfg(feature = "wgpu")]
    return (wgpu_device::list(), wgpu_device::absent());
    #[cfg(not(feature = "wgpu"))]
    (Vec::new(), None)
}

fn missing_device(id: &str) -> Error {
    let covers = |absent: &AbsentDevice| {
        absent.device == id
            || id
                .strip_prefix(&absent.device)
                .is_some_and(|rest| rest.starts_with(':'))
    };
    let reason = Device::absent()
        .into_iter()
        .find(covers)
        .map_or_else(|| "no such device here".to_owned(), |absent| absent.reason);
    Error::unsupported(format!("device {id}: {reason}; present: {}", present()))
}

/// A UUID in its usual form.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
fn format_uuid(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!(
        "{}-{}-{}-{}-{}",
        &hex[..8],
        &hex[8..12],
        &hex[12..16],
        &hex[16..20],
        &hex[20..]
    )
}

fn unknown_device(id: &str) -> Error {
    Error::invalid(format!(
        "device {id:?}: expected auto, cpu, null, cuda:N, vulkan:N, metal:N or dx12:N; tectum devices lists those present"
    ))
}

fn present() -> String {
    Device::list()
        .iter()
        .map(|info| info.id.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

/// The bucket of a size: at least 256 bytes, then four steps to each doubling, so that at most a
/// fifth is unused; none beyond the maximum pointer offset.
fn bucket(bytes: usize) -> Option<usize> {
    if bytes <= 1024 {
        return Some(bytes.max(1).next_multiple_of(256));
    }
    let step = 1 << (usize::BITS - 1 - bytes.leading_zeros() - 2);
    bytes
        .checked_next_multiple_of(step)
        .filter(|bucket| isize::try_from(*bucket).is_ok())
}
