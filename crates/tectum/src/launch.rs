//! The flat list that a device executes, and what an execution reports.
//!
//! A device does not know tensors: it receives buffers by number, launches that bind ranges of
//! them, one upload block that the host fills before a run and the buffers that the host reads
//! after it.

use std::sync::Arc;

use serde::Serialize;

use crate::content_hash::ContentHash;
use crate::kernel::Kernel;

/// Alignment of every bound range, in bytes: the largest that a Vulkan, Metal or DX12 device may
/// require.
pub const BINDING_ALIGNMENT: usize = 256;

/// Rounds up to [`BINDING_ALIGNMENT`].
pub fn align(bytes: usize) -> usize {
    bytes.next_multiple_of(BINDING_ALIGNMENT)
}

/// A bound range of a numbered buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The buffer's place in the list.
    pub buffer: usize,
    /// First byte; a multiple of [`BINDING_ALIGNMENT`].
    pub offset: usize,
    /// Length in bytes; never 0.
    pub bytes: usize,
}

/// One launch of a kernel.
#[derive(Debug, Clone)]
pub struct Launch {
    /// The device code.
    pub kernel: Arc<Kernel>,
    /// One range for each of the kernel's bindings.
    pub regions: Vec<Region>,
    /// One word for each of the kernel's parameters.
    pub params: Vec<u32>,
    /// Workgroups along x and y, each 1 to 65,535.
    pub groups: [u32; 2],
}

/// Everything a device needs to execute a plan, except the memory of the buffers.
#[derive(Debug, Clone)]
pub struct LaunchList {
    /// The plan's name.
    #[cfg_attr(
        not(any(feature = "cuda", feature = "wgpu")),
        allow(dead_code, reason = "labels of drivers and their errors")
    )]
    pub name: String,
    /// Bytes of each buffer.
    pub buffer_bytes: Vec<usize>,
    /// The launches in order.
    pub launches: Vec<Launch>,
    /// The buffer that the host fills before each run.
    pub upload: Option<usize>,
    /// The ranges that the host reads after each run.
    pub downloads: Vec<Region>,
    /// Buffers that other executables may access too.
    pub shared: Vec<usize>,
}

/// What one run did, filled by the device. Copies of data inside a device are not transfers.
///
/// A transfer is one contiguous block passed across the boundary between host and device, by copy
/// or by mapping. The CPU device has no such boundary and reports none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RunStats {
    /// Bytes passed to the device.
    pub bytes_up: u64,
    /// Bytes returned.
    pub bytes_down: u64,
    /// Transfers to the device.
    pub transfers_up: u32,
    /// Transfers back.
    pub transfers_down: u32,
    /// Kernel launches.
    pub launches: u32,
    /// Submissions to a device queue.
    pub submissions: u32,
    /// Time of the launches by the device's clock, where it has one; on the CPU the wall time of
    /// the run.
    pub device_ns: Option<u64>,
    /// Time of the transfers to the device by its clock; where memory is unified, of the host's
    /// copy into it. None without one.
    pub up_ns: Option<u64>,
    /// Time of the transfers back by the device's clock, including the gathering of the data.
    pub down_ns: Option<u64>,
    /// Launches that ran on another device than the chosen one.
    pub fallbacks: u32,
}

/// A code object that ran: a kernel, or a routine of a library.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct CodeObject {
    /// The kernel's name; with the library and its version where a library routine replaced it.
    pub kernel: String,
    /// The executed code.
    pub form: CodeForm,
    /// For native code [`Kernel::native_hash`](crate::Kernel::native_hash), for device code the
    /// content hash of its WGSL module, for a routine of its name.
    pub hash: ContentHash,
}

/// The form in which a kernel was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CodeForm {
    /// Compiled Rust, on the CPU.
    Native,
    /// WGSL, translated for the device.
    Device,
    /// A routine of a library.
    Library,
}

/// The time of one launch, from a traced run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LaunchTime {
    /// The kernel's name.
    pub kernel: String,
    /// Nanoseconds by the device's clock; none where it has none.
    pub ns: Option<u64>,
}

impl RunStats {
    /// Adds another run's numbers.
    pub fn add(&mut self, other: &RunStats) {
        self.bytes_up += other.bytes_up;
        self.bytes_down += other.bytes_down;
        self.transfers_up += other.transfers_up;
        self.transfers_down += other.transfers_down;
        self.launches += other.launches;
        self.submissions += other.submissions;
        for (total, ns) in [
            (&mut self.device_ns, other.device_ns),
            (&mut self.up_ns, other.up_ns),
            (&mut self.down_ns, other.down_ns),
        ] {
            *total = total.map_or(ns, |sum| Some(sum + ns.unwrap_or(0)));
        }
        self.fallbacks += other.fallbacks;
    }
}
