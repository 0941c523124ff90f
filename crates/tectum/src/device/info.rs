//! The description of a device: its properties, its limits, or the reason why it is absent.

use serde::Serialize;

use crate::dtype::DType;

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
    /// A GPU with its own memory.
    Discrete,
    /// A GPU that shares the host's memory.
    Integrated,
    /// A GPU seen through a hypervisor.
    Virtual,
    /// A GPU API executed by the host's processor: never counted as a GPU, never chosen by `auto`.
    Software,
    /// Executes nothing.
    Null,
    /// The driver does not report it.
    Unknown,
}

/// The longest binding where a device sets no limit: 2³¹ words, so that an index in u32 plus a
/// launch's stride cannot wrap.
pub(crate) const INDEXABLE_BYTES: u64 = 4 << 31;

/// Limits that plans are checked against.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceLimits {
    /// The longest range that one binding may cover; a plan that binds more is refused when it is
    /// compiled.
    pub max_binding_bytes: u64,
    /// The longest buffer.
    pub max_buffer_bytes: u64,
    /// Maximum workgroups of one launch.
    pub max_groups: u32,
    /// Workgroup memory of one launch.
    pub workgroup_memory_bytes: u32,
    /// Maximum invocations in a workgroup.
    pub max_workgroup_size: u32,
    /// Iterations of all loops of an invocation together after which the device ends them without
    /// an error; none without a known limit.
    #[serde(rename = "max_loop_turns")]
    pub max_loop_iterations: Option<u32>,
}

/// The properties of a device, as shown by `tectum devices` and kept in receipts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceInfo {
    /// The id that `--device` takes: `cpu`, `null`, `cuda:0`, `vulkan:0` …
    pub id: String,
    /// The vendor's name for it.
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
    /// Whether the device is emulated in software.
    pub software: bool,
    /// Memory in bytes, if known.
    pub memory_bytes: Option<u64>,
    /// Cores or multiprocessors, if known.
    pub compute_units: Option<u32>,
    /// Minimum and maximum width of SIMD (f32 lanes) or subgroups.
    pub simd_width: (u32, u32),
    /// Whether host and device share memory, so that blocks are passed without a copy.
    pub unified_memory: bool,
    /// Limits of launches and buffers.
    pub limits: DeviceLimits,
    /// Element types that device code may use.
    pub dtypes: Vec<DType>,
}

/// How a device wants work laid out: what recorders ask for, instead of which device it is. Every
/// layout runs on every device that can bind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayoutPreferences {
    /// Weights of products in panels and in the format of their file, so that each tile reads one
    /// stream. Libraries of GPUs read plain matrices of f32.
    pub packed_weights: bool,
    /// Threads that share a launch out among them, in parts of its data; 1 where a launch is
    /// parallel by itself.
    pub threads: u32,
    /// The longest range that one binding may cover.
    pub max_binding_bytes: u64,
}

impl DeviceInfo {
    /// How the device wants work laid out.
    pub fn preferences(&self) -> LayoutPreferences {
        let is_host = self.api == Api::Cpu;
        let threads = if is_host {
            self.compute_units.unwrap_or(1)
        } else {
            1
        };
        LayoutPreferences {
            packed_weights: is_host,
            threads,
            max_binding_bytes: self.limits.max_binding_bytes,
        }
    }

    /// Whether launches compute anything: the null device only counts them.
    pub fn executes(&self) -> bool {
        self.api != Api::Null
    }
}

/// The id with the vendor's name, marked if the device is software:
/// `vulkan:0 (llvmpipe, software)`.
impl std::fmt::Display for DeviceInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} ({}{})",
            self.id,
            self.name,
            if self.software { ", software" } else { "" }
        )
    }
}

/// A device that cannot be used here, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AbsentDevice {
    /// The id, `cuda:1`, or the API's name, `cuda`, where nothing is known of single devices.
    pub device: String,
    /// What is missing.
    pub reason: String,
}
