//! The resources that a plan requires of a device: the input of routing.

use serde::Serialize;

use super::Plan;
use super::executable::Layout;
use crate::dtype::DType;
use crate::kernel::Access;

/// The requirements of one launch.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LaunchWork {
    /// The kernel's name.
    pub kernel: String,
    /// Bytes of the bound ranges, twice for those read and written in place; of a table, those of
    /// the rows that are read.
    pub bytes: f64,
    /// Bytes of the ranges that are read.
    pub read_bytes: f64,
    /// Operations; one for each word of `bytes` where the kernel does not state them.
    pub flops: f64,
    /// Invocations that the device may run in parallel.
    pub lanes: f64,
}

/// The requirements of one run of a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlanWork {
    /// The plan's name.
    pub plan: String,
    /// Its launches in order.
    pub launches: Vec<LaunchWork>,
    /// Bytes that the host uploads before each run.
    pub bytes_up: f64,
    /// Bytes that it downloads after each run.
    pub bytes_down: f64,
    /// Memory of all buffers.
    pub memory_bytes: u64,
    /// The longest range that a launch binds.
    pub longest_binding_bytes: u64,
    /// Element types that device code uses.
    pub dtypes: Vec<DType>,
}

impl Plan {
    /// The requirements of one run.
    ///
    /// # Example
    /// ```
    /// use tectum::{DType, GemmEpilogue, Matrix, PlanBuilder};
    /// let mut plan = PlanBuilder::new("product");
    /// let [a, b] = ["a", "b"].map(|name| plan.state(name, DType::F32, 64 * 64));
    /// let y = plan.output("y", DType::F32, 64 * 64);
    /// plan.gemm(Matrix::new(a, 64, 64), Matrix::new(b, 64, 64), y, GemmEpilogue::default())?;
    /// let work = plan.finish()?.work();
    /// assert_eq!((work.launches[0].flops, work.launches[0].bytes), (2.0 * 64.0f64.powi(3), 3.0 * 16384.0));
    /// assert_eq!((work.bytes_up, work.bytes_down), (0.0, 16384.0));
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn work(&self) -> PlanWork {
        let list = Layout::new(self).list;
        let mut dtypes = Vec::new();
        let mut longest = 0;
        let mut launches = Vec::with_capacity(list.launches.len());
        for launch in &list.launches {
            let (mut bytes, mut read_bytes) = (0.0, 0.0);
            for (binding, region) in launch.kernel.bindings().iter().zip(&launch.regions) {
                let passes = if binding.access == Access::ReadWrite {
                    2.0
                } else {
                    1.0
                };
                let bound = region.bytes as f64;
                let used = launch
                    .kernel
                    .read_words(binding.name, &launch.params)
                    .map_or(bound, |words| bound.min(4.0 * words));
                bytes += passes * used;
                if binding.access != Access::Write {
                    read_bytes += used;
                }
                longest = longest.max(region.bytes as u64);
                if !dtypes.contains(&binding.dtype) {
                    dtypes.push(binding.dtype);
                }
            }
            launches.push(LaunchWork {
                kernel: launch.kernel.name().to_owned(),
                bytes,
                read_bytes,
                flops: launch.kernel.flops(&launch.params).unwrap_or(bytes / 4.0),
                lanes: launch.groups.map(f64::from).iter().product::<f64>()
                    * f64::from(launch.kernel.workgroup()),
            });
        }
        PlanWork {
            plan: self.name.clone(),
            launches,
            bytes_up: list
                .upload
                .map_or(0.0, |buffer| list.buffer_bytes[buffer] as f64),
            bytes_down: list
                .downloads
                .iter()
                .map(|region| region.bytes as f64)
                .sum(),
            memory_bytes: list.buffer_bytes.iter().map(|bytes| *bytes as u64).sum(),
            longest_binding_bytes: longest,
            dtypes,
        }
    }
}
