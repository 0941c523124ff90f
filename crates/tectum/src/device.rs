//! Devices: the CPU, NVIDIA GPUs, every GPU that wgpu reaches, and a null device that executes nothing.
//!
//! A device allocates memory, copies to and from it, and compiles a [`LaunchList`] into something that runs. It never sees
//! a tensor operation, a graph or a model.

mod buffer_lock;
mod cpu;
#[cfg(feature = "cuda")]
mod cuda;
pub(crate) mod memory;
mod null;
mod pool_reservation;
mod thread_pool;
#[cfg(feature = "wgpu")]
mod wgpu_device;

/// What [`turn`] and [`handover`] are made of; `tests/models.rs` puts the types of a model checker in its place.
mod sync {
    pub(super) use std::sync::{Arc, RwLock, RwLockReadGuard, RwLockWriteGuard, atomic, mpsc};
}

use std::sync::{Arc, Mutex, Weak};
use std::time::SystemTime;

use serde::Serialize;

pub use self::thread_pool::ThreadPool;
use crate::device::memory::{CopyPath, Pool, Role};
use crate::dtype::DType;
use crate::error::{Error, ErrorKind, Result};
use crate::launch::{LaunchList, RunStats};

/// How kernels reach the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Api {
    /// Native twins on the host's processor.
    Cpu,
    /// Nothing is executed.
    Null,
    /// PTX through the NVIDIA driver.
    Cuda,
    /// Vulkan through wgpu.
    Vulkan,
    /// Metal through wgpu.
    Metal,
    /// Direct3D 12 through wgpu.
    Dx12,
}

impl Api {
    /// The prefix of the device's id.
    pub fn name(self) -> &'static str {
        match self {
            Api::Cpu => "cpu",
            Api::Null => "null",
            Api::Cuda => "cuda",
            Api::Vulkan => "vulkan",
            Api::Metal => "metal",
            Api::Dx12 => "dx12",
        }
    }
}

/// What a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DeviceKind {
    /// A processor that runs native twins.
    Cpu,
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the host's memory.
    Integrated,
    /// A GPU seen through a hypervisor.
    Virtual,
    /// A GPU API executed by the host's processor: never counted as a GPU, never chosen by `auto`.
    Software,
    /// Executes nothing.
    Null,
    /// The driver does not say.
    Unknown,
}

/// The longest binding where a device has no limit of its own: 2³¹ words, so that an index in u32 plus a launch's stride cannot wrap.
pub(crate) const INDEXABLE_BYTES: u64 = 4 << 31;

/// Limits that plans are checked against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceLimits {
    /// The longest range that one binding may cover; a plan that binds more is refused when it is compiled.
    pub max_binding_bytes: u64,
    /// The longest buffer.
    pub max_buffer_bytes: u64,
    /// The most workgroups of one launch.
    pub max_groups: u32,
    /// Workgroup memory of one launch.
    pub workgroup_memory_bytes: u32,
    /// The most invocations in a workgroup.
    pub max_workgroup_size: u32,
    /// The number of turns of all its loops together after which the device ends the loops of an invocation without an error; none if it is not known to.
    #[serde(rename = "max_loop_turns")]
    pub max_loop_iterations: Option<u32>,
}

/// The properties of a device, as shown by `tectum devices` and kept in receipts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceInfo {
    /// The id that `--device` takes: `cpu`, `null`, `cuda:0`, `vulkan:0` …
    pub id: String,
    /// The maker's name for it.
    pub name: String,
    /// The driver's UUID, if it gives one.
    pub uuid: Option<String>,
    /// PCI address (or vendor and device number where no address is given).
    pub pci: Option<String>,
    /// Driver name and version.
    pub driver: String,
    /// How kernels reach it.
    pub api: Api,
    /// What it is.
    pub kind: DeviceKind,
    /// Whether a processor only plays the device.
    pub software: bool,
    /// Memory in bytes, if known.
    pub memory_bytes: Option<u64>,
    /// Cores or multiprocessors, if known.
    pub compute_units: Option<u32>,
    /// Least and greatest width of SIMD (f32 lanes) or subgroups.
    pub simd_width: (u32, u32),
    /// Whether host and device share memory, so that blocks are passed without a copy.
    pub unified_memory: bool,
    /// Limits of launches and buffers.
    pub limits: DeviceLimits,
    /// Element types that device code may use.
    pub dtypes: Vec<DType>,
}

impl DeviceInfo {
    /// Whether launches compute anything: the null device only counts them.
    pub fn executes(&self) -> bool {
        self.api != Api::Null
    }
}

/// The id with the maker's name, marked if the device is software: `vulkan:0 (llvmpipe, software)`.
impl std::fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({}{})", self.id, self.name, if self.software { ", software" } else { "" })
    }
}

/// A device that cannot be used here, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AbsentDevice {
    /// The id, `cuda:1`, or the API's name, `cuda`, where nothing can be said of single devices.
    pub device: String,
    /// What is missing.
    pub reason: String,
}

/// What a device's own sensors show; none for what they do not measure.
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
    /// The mean utilisation since then, if samples reach over at least a second of it.
    fn mean_utilisation(&self, since: SystemTime) -> Option<f64>;
}

/// Device memory, owned by one backend.
pub(crate) enum Allocation {
    Cpu(cpu::CpuMemory),
    #[cfg(feature = "cuda")]
    Cuda(cuda::CudaMemory),
    Null(#[expect(dead_code, reason = "held for its drop")] null::NullMemory),
    #[cfg(feature = "wgpu")]
    Wgpu(wgpu::Buffer),
}

/// What each kind of device implements.
pub(crate) trait Backend: Send + Sync {
    fn info(&self) -> &DeviceInfo;
    /// Allocates; `OutOfMemory` asks the pool to trim and try again.
    fn allocate(&self, bytes: usize, role: Role) -> Result<Allocation>;
    /// Copies from the host, in order with the device's other work.
    fn write(&self, to: &Allocation, offset: usize, data: &[u8]) -> Result<()>;
    /// Copies to the host, after the device's earlier work.
    fn read(&self, from: &Allocation, offset: usize, data: &mut [u8]) -> Result<()>;
    /// Prepares a list for running over the given memory, one allocation for each of its buffers.
    fn compile(&self, list: &LaunchList, memory: Vec<Arc<crate::device::memory::Block>>) -> Result<Box<dyn Compiled>>;
    /// Copies the first bytes of one of its allocations to any device's, after earlier work, without the host; none where
    /// it cannot.
    fn copy(&self, _from: &Allocation, _to: &Allocation, _bytes: usize) -> Result<Option<CopyPath>> {
        Ok(None)
    }
    /// What its driver measures, if anything.
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
    /// The library's routine that stands in for the kernel of a launch, with its version.
    fn routine(&self, _launch: usize) -> Option<&str> {
        None
    }
    /// Begins to execute the list once; a device that cannot go on by itself does so in `finish`. A run that is begun is finished
    /// before anything else is done here.
    fn begin(&mut self) -> Result<()>;
    /// Notes where the run that was begun ends among the device's work, so that `finish` waits for no more than that.
    fn record_end(&mut self) -> Result<()> {
        Ok(())
    }
    /// Waits for the run and its downloads.
    fn finish(&mut self) -> Result<RunStats>;
    /// Executes the launches once, one by one, and gives each one's time by the device's clock in nanoseconds; none where
    /// the device has no clock. What the host uploads is as at the last run.
    fn trace(&mut self) -> Result<Vec<Option<u64>>>;
}

struct DeviceInner {
    backend: Arc<dyn Backend>,
    pool: Pool,
}

/// The devices that are open, by id.
static OPEN: Mutex<Vec<(String, Weak<DeviceInner>)>> = Mutex::new(Vec::new());

/// A device, cheap to clone.
#[derive(Clone)]
pub struct Device(Arc<DeviceInner>);

impl std::fmt::Debug for Device {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Device({})", self.info().id)
    }
}

impl Device {
    /// Lists every device of this machine; adapters are probed, none is opened.
    pub fn list() -> Vec<DeviceInfo> {
        [vec![cpu::info(), null::info()], cuda_devices().0, wgpu_devices()].concat()
    }

    /// Lists what [`Device::list`] cannot: devices without a usable driver or below what kernels need, with the reason.
    pub fn absent() -> Vec<AbsentDevice> {
        let left_out = LEFT_OUT.iter().map(|(api, feature)| AbsentDevice {
            device: (*api).to_owned(),
            reason: format!("this build leaves it out: the feature \"{feature}\" of the crate tectum is off"),
        });
        cuda_devices().1.into_iter().chain(left_out).collect()
    }

    /// Opens the device of an id: `auto`, `cpu`, `null`, `cuda:N`, `vulkan:N`, `metal:N` or `dx12:N`.
    ///
    /// `auto` takes the CPU: without a plan there is nothing to route; [`crate::route::open`] picks a device for one. The same
    /// id gives the same device object as long as one is alive.
    ///
    /// # Errors
    /// `Invalid` for an id of another form, `Unsupported`, with the reason if one is known and the ids that exist, for a
    /// device that this machine lacks.
    pub fn open(id: &str) -> Result<Device> {
        let id = if id == "auto" { "cpu" } else { id };
        let mut open = OPEN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        open.retain(|(_, device)| device.strong_count() > 0);
        if let Some(device) = open.iter().find(|(name, _)| name == id).and_then(|(_, device)| device.upgrade()) {
            return Ok(Device(device));
        }
        let device = Device::with_backend(open_backend(id)?);
        open.push((id.to_owned(), Arc::downgrade(&device.0)));
        Ok(device)
    }

    /// Opens the device of an id as [`Device::open`] does; none if this machine lacks it.
    ///
    /// # Errors
    /// As [`Device::open`], but for `Unsupported`: a device that is here and cannot be opened is an error.
    pub fn open_if_present(id: &str) -> Result<Option<Device>> {
        match Device::open(id) {
            Ok(device) => Ok(Some(device)),
            Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Makes a null device that holds at most `bytes`, for tests of plans and of memory running out.
    pub fn null_with_capacity(bytes: u64) -> Device {
        Device::with_backend(Arc::new(null::NullDevice::new(bytes)))
    }

    fn with_backend(backend: Arc<dyn Backend>) -> Device {
        Device(Arc::new(DeviceInner { pool: Pool::new(backend.clone()), backend }))
    }

    /// The device's properties.
    pub fn info(&self) -> &DeviceInfo {
        self.0.backend.info()
    }

    /// The pool that all memory of this device comes from.
    pub fn pool(&self) -> &Pool {
        &self.0.pool
    }

    /// What the device's sensors show; none where its driver has none.
    pub fn readings(&self) -> Option<Readings> {
        Some(self.backend().sensors()?.read())
    }

    pub(crate) fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }
}

fn open_backend(id: &str) -> Result<Arc<dyn Backend>> {
    match id {
        "cpu" => return Ok(Arc::new(cpu::CpuDevice::new())),
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
    let number = number.parse::<usize>().ok().filter(|parsed| parsed.to_string() == number).ok_or_else(|| unknown_device(id))?;
    let device: Option<Arc<dyn Backend>> = match (api, number) {
        #[cfg(feature = "cuda")]
        (Api::Cuda, number) => cuda::open(number)?.map(|device| Arc::new(device) as _),
        #[cfg(feature = "wgpu")]
        (Api::Vulkan | Api::Metal | Api::Dx12, number) => wgpu_device::open(api, number)?.map(|device| Arc::new(device) as _),
        _ => None,
    };
    device.ok_or_else(|| missing_device(id))
}

/// APIs that this build has no device for, with the feature that adds them.
const LEFT_OUT: &[(&str, &str)] = match (cfg!(feature = "cuda"), cfg!(feature = "wgpu")) {
    (true, true) => &[],
    (false, true) => &[("cuda", "cuda")],
    (true, false) => &[("vulkan", "wgpu"), ("metal", "wgpu"), ("dx12", "wgpu")],
    (false, false) => &[("cuda", "cuda"), ("vulkan", "wgpu"), ("metal", "wgpu"), ("dx12", "wgpu")],
};

/// NVIDIA GPUs that kernels run on, and those that they do not.
fn cuda_devices() -> (Vec<DeviceInfo>, Vec<AbsentDevice>) {
    #[cfg(feature = "cuda")]
    return (cuda::list(), cuda::absent());
    #[cfg(not(feature = "cuda"))]
    (Vec::new(), Vec::new())
}

fn wgpu_devices() -> Vec<DeviceInfo> {
    #[cfg(feature = "wgpu")]
    return wgpu_device::list();
    #[cfg(not(feature = "wgpu"))]
    Vec::new()
}

fn missing_device(id: &str) -> Error {
    let covers = |absent: &AbsentDevice| absent.device == id || id.strip_prefix(&absent.device).is_some_and(|rest| rest.starts_with(':'));
    let reason = Device::absent().into_iter().find(covers).map_or_else(|| "no such device here".to_owned(), |absent| absent.reason);
    Error::unsupported(format!("device {id}: {reason}; present: {}", present()))
}

/// A UUID in its usual form.
#[cfg(any(feature = "cuda", feature = "wgpu"))]
fn format_uuid(bytes: &[u8; 16]) -> String {
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

fn unknown_device(id: &str) -> Error {
    Error::invalid(format!("device {id:?}: expected auto, cpu, null, cuda:N, vulkan:N, metal:N or dx12:N; tectum devices lists those present"))
}

fn present() -> String {
    Device::list().iter().map(|info| info.id.as_str()).collect::<Vec<_>>().join(", ")
}
