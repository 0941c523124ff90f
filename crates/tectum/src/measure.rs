//! Measuring a device: the basis of `tectum devices --measure` and of percentages of the roofline.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::operation::product::gemm::{Activation, Epilogue, GemmEpilogue, Matrix, TILE};
use crate::operation::product::gemm_panels::{self, GemmPanelsInt8};
use crate::operation::product::panel_format::PanelFormat;
use crate::plan::{Executable, PlanBuilder};

/// Measured rates of a device. Each is the best of several repeats.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// Bytes read plus written each second by a large copy on the device.
    pub copy_bytes_per_s: f64,
    /// Bytes each second from host to device; none where they share memory.
    pub upload_bytes_per_s: Option<f64>,
    /// Bytes each second from device to host.
    pub download_bytes_per_s: Option<f64>,
    /// Host time of a run of one smallest launch, with nothing to transfer.
    pub launch_s: f64,
    /// Multiply-adds each second, times two, of a matrix product of 512³ (1024³ on hardware).
    pub gemm_flop_per_s: f64,
}

/// Elements of the copy: 64 MiB each way.
pub(crate) const COPY_LEN: usize = 16 << 20;
const TRANSFER_LEN: usize = 4 << 20;

impl Measurement {
    /// The best of two measurements, rate by rate.
    #[must_use]
    pub fn better(self, other: Self) -> Self {
        let most = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.max(b));
        Self {
            copy_bytes_per_s: self.copy_bytes_per_s.max(other.copy_bytes_per_s),
            upload_bytes_per_s: most(self.upload_bytes_per_s, other.upload_bytes_per_s),
            download_bytes_per_s: most(self.download_bytes_per_s, other.download_bytes_per_s),
            launch_s: self.launch_s.min(other.launch_s),
            gemm_flop_per_s: self.gemm_flop_per_s.max(other.gemm_flop_per_s),
        }
    }
}

impl Device {
    /// Measures copy bandwidth, transfer rates, launch latency and the rate of a matrix product;
    /// takes about a second.
    ///
    /// # Errors
    /// Whatever the device reports.
    pub fn measure(&self) -> Result<Measurement> {
        let copy_s = best_seconds(&mut copy_plan(self)?, 5)?;
        let side = gemm_side(self);
        let gemm_s = best_seconds(&mut gemm_plan(self, side, side)?, 5)?;
        let launch_s = best_seconds(&mut smallest_plan(self, 1)?, 200)?;
        let (upload_bytes_per_s, download_bytes_per_s) = transfer_rates(self)?;
        Ok(Measurement {
            copy_bytes_per_s: 2.0 * 4.0 * COPY_LEN as f64 / copy_s,
            upload_bytes_per_s,
            download_bytes_per_s,
            launch_s,
            gemm_flop_per_s: 2.0 * (side as f64).powi(3) / gemm_s,
        })
    }
}

/// The work of a roofline, to be timed between other work.
pub struct Reference {
    /// One run of it.
    pub executable: Executable,
    /// Bytes or operations of a run.
    pub amount: f64,
}

impl Reference {
    /// The large copy.
    pub fn copy(device: &Device) -> Result<Self> {
        Ok(Self {
            executable: copy_plan(device)?,
            amount: 2.0 * 4.0 * COPY_LEN as f64,
        })
    }

    /// The large matrix product.
    pub fn gemm(device: &Device) -> Result<Self> {
        let side = gemm_side(device);
        Ok(Self {
            executable: gemm_plan(device, side, side)?,
            amount: 2.0 * (side as f64).powi(3),
        })
    }

    /// The large product of int8 matrices: of codes with packed weights, which is the fastest here
    /// and is what int8 models run.
    pub fn gemm_i8(device: &Device) -> Result<Self> {
        let side = gemm_side(device);
        let mut plan = PlanBuilder::new("measure.gemm_i8");
        let (a, scales) = (
            plan.state("a", DType::U32, side * side / 4),
            plan.state("scales", DType::F32, side),
        );
        let b = plan.state("b", DType::U32, PanelFormat::Int8.words(side, side));
        let y = plan.state("y", DType::F32, side * side);
        let kernel = gemm_panels::int8_kernel(Epilogue {
            bias: false,
            residual: false,
        });
        let (m, n, words, activation) = (side, side, side / 4, Activation::None as u32);
        let arguments = GemmPanelsInt8 {
            a,
            b,
            scales,
            y,
            bias: None,
            residual: None,
            m,
            n,
            words,
            activation,
        };
        plan.launch(kernel, arguments, side.div_ceil(TILE).pow(2) as u32)?;
        Ok(Self {
            executable: plan.finish()?.compile(device)?,
            amount: 2.0 * (side as f64).powi(3),
        })
    }
}

fn gemm_side(device: &Device) -> usize {
    if device.info().software { 512 } else { 1024 }
}

/// Minimum host time of a run.
pub(crate) fn best_seconds(executable: &mut Executable, repeats: usize) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..=repeats {
        let start = Instant::now();
        executable.run()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

pub(crate) fn copy_plan(device: &Device) -> Result<Executable> {
    let mut plan = PlanBuilder::new("measure.copy");
    let (x, y) = (
        plan.state("x", DType::F32, COPY_LEN),
        plan.state("y", DType::F32, COPY_LEN),
    );
    plan.copy(x, y)?;
    plan.finish()?.compile(device)
}

/// A product `[side, inner] · [inner, side]`.
pub(crate) fn gemm_plan(device: &Device, side: usize, inner: usize) -> Result<Executable> {
    let mut plan = PlanBuilder::new("measure.gemm");
    let [a, b] = ["a", "b"].map(|name| plan.state(name, DType::F32, side * inner));
    let y = plan.state("y", DType::F32, side * side);
    plan.gemm(
        Matrix::new(a, side, inner),
        Matrix::new(b, inner, side),
        y,
        GemmEpilogue::default(),
    )?;
    plan.finish()?.compile(device)
}

/// This many smallest launches, without transfers.
pub(crate) fn smallest_plan(device: &Device, launches: usize) -> Result<Executable> {
    let mut plan = PlanBuilder::new("measure.launch");
    let y = plan.state("y", DType::U32, 1);
    for _ in 0..launches {
        plan.fill(y, 1)?;
    }
    plan.finish()?.compile(device)
}

/// Rates of a run that only uploads or downloads, minus the time of the smallest run.
pub(crate) fn transfer_rates(device: &Device) -> Result<(Option<f64>, Option<f64>)> {
    let base_s = best_seconds(&mut smallest_plan(device, 1)?, 50)?;
    let mut plan = PlanBuilder::new("measure.upload");
    let (x, y) = (
        plan.input("x", DType::F32, TRANSFER_LEN),
        plan.state("y", DType::F32, 64),
    );
    plan.copy(x.part(0..64), y)?;
    let mut upload = plan.finish()?.compile(device)?;
    if upload.run()?.transfers_up == 0 {
        return Ok((None, None));
    }
    let mut plan = PlanBuilder::new("measure.download");
    let y = plan.output("y", DType::F32, TRANSFER_LEN);
    plan.fill(y.part(0..64), 0)?;
    let mut download = plan.finish()?.compile(device)?;
    let rate = |seconds: f64| 4.0 * TRANSFER_LEN as f64 / (seconds - base_s).max(1e-9);
    Ok((
        Some(rate(best_seconds(&mut upload, 8)?)),
        Some(rate(best_seconds(&mut download, 8)?)),
    ))
}
