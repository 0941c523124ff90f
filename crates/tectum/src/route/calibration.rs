//! Calibrating a device: the few rates that the cost model depends on.

use serde::{Deserialize, Serialize};

use crate::device::{Device, DeviceInfo, DeviceKind};
use crate::dtype::DType;
use crate::error::Result;
use crate::measure::{COPY_LEN, best_seconds, copy_plan, gemm_plan, smallest_plan, transfer_rates};
use crate::plan::PlanBuilder;

/// Launches of the run whose slope gives the time of one.
const MANY_LAUNCHES: usize = 33;
/// Bytes that stay in the CPU's caches between two launches.
pub const CACHED_BYTES: f64 = 262_144.0;
/// Elements of the copy that stays there.
const NEAR_LEN: usize = 8 << 10;
/// Inner size of the product that keeps one workgroup busy.
const NARROW_INNER: usize = 2048;
/// Sides of the product that the CPU computes on one thread.
const ONE_THREAD_SIDE: usize = 96;

/// The measured rates of a device. All positive; the latencies may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Host time of a run in addition to its launches and transfers.
    pub run_s: f64,
    /// Time that each further launch adds.
    pub launch_s: f64,
    /// Latency of a transfer; 0 where there are none.
    pub transfer_s: f64,
    /// Bytes each second to the device; none where it shares the host's memory.
    pub upload_bytes_per_s: Option<f64>,
    /// Bytes each second from the device.
    pub download_bytes_per_s: Option<f64>,
    /// Bytes read plus written each second by a large copy.
    pub memory_bytes_per_s: f64,
    /// The same where a launch touches at most [`CACHED_BYTES`]: the CPU's caches. Other devices
    /// have the rate above.
    #[serde(alias = "near_bytes_per_s")]
    pub cached_bytes_per_s: f64,
    /// Operations each second of a large matrix product; a multiply-add is two.
    pub flop_per_s: f64,
    /// The same of one lane: an invocation of the one workgroup that runs, or a thread of the CPU.
    pub lane_flop_per_s: f64,
}

/// A device and its rates.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Calibration {
    /// The device.
    pub device: DeviceInfo,
    /// Its measured rates.
    pub rates: Rates,
}

impl Rates {
    /// The first number that a measurement cannot produce.
    pub(super) fn fault(&self) -> Option<String> {
        let latencies = [
            ("run_s", self.run_s),
            ("launch_s", self.launch_s),
            ("transfer_s", self.transfer_s),
        ];
        let rates = [
            ("upload_bytes_per_s", self.upload_bytes_per_s.unwrap_or(1.0)),
            (
                "download_bytes_per_s",
                self.download_bytes_per_s.unwrap_or(1.0),
            ),
            ("memory_bytes_per_s", self.memory_bytes_per_s),
            ("near_bytes_per_s", self.cached_bytes_per_s),
            ("flop_per_s", self.flop_per_s),
            ("lane_flop_per_s", self.lane_flop_per_s),
        ];
        let latency = latencies
            .iter()
            .find(|(_, value)| !(value.is_finite() && *value >= 0.0));
        let rate = rates
            .iter()
            .find(|(_, value)| !(value.is_finite() && *value > 0.0));
        latency
            .or(rate)
            .map(|(name, value)| format!("{name} is {value}"))
    }
}

/// Measures a device; takes about a second.
///
/// # Errors
/// Whatever the device reports.
pub fn calibrate(device: &Device) -> Result<Calibration> {
    let info = device.info();
    let one_s = best_seconds(&mut smallest_plan(device, 1)?, 100)?;
    let many_s = best_seconds(&mut smallest_plan(device, MANY_LAUNCHES)?, 50)?;
    let launch_s = (many_s - one_s).max(0.0) / (MANY_LAUNCHES - 1) as f64;
    let run_s = (one_s - launch_s).max(0.0);
    let copy_s = best_seconds(&mut copy_plan(device)?, 4)?;
    let memory_bytes_per_s = 8.0 * COPY_LEN as f64 / (copy_s - one_s).max(1e-9);
    let cached_bytes_per_s = match info.kind {
        DeviceKind::Cpu => near_rate(device, run_s, launch_s)?.max(memory_bytes_per_s),
        _ => memory_bytes_per_s,
    };
    let side = if info.software { 256 } else { 1024 };
    let product_s = best_seconds(&mut gemm_plan(device, side, side)?, 5)?;
    let flop_per_s = 2.0 * (side as f64).powi(3) / (product_s - one_s).max(1e-9);
    let (upload_bytes_per_s, download_bytes_per_s) = transfer_rates(device)?;
    let transfer_s = if upload_bytes_per_s.is_some() {
        (round_trip(device)? - one_s).max(0.0) / 2.0
    } else {
        0.0
    };
    let rates = Rates {
        run_s,
        launch_s,
        transfer_s,
        upload_bytes_per_s,
        download_bytes_per_s,
        memory_bytes_per_s,
        cached_bytes_per_s,
        flop_per_s,
        lane_flop_per_s: lane_rate(device, one_s)?.min(flop_per_s),
    };
    Ok(Calibration {
        device: info.clone(),
        rates,
    })
}

/// The rate of copies that stay in the caches.
fn near_rate(device: &Device, run_s: f64, launch_s: f64) -> Result<f64> {
    let mut plan = PlanBuilder::new("calibrate.near");
    let [x, y] = ["x", "y"].map(|name| plan.state(name, DType::F32, NEAR_LEN));
    for _ in 0..MANY_LAUNCHES {
        plan.copy(x, y)?;
    }
    let seconds = (best_seconds(&mut plan.finish()?.compile(device)?, 50)? - run_s)
        / MANY_LAUNCHES as f64
        - launch_s;
    Ok(8.0 * NEAR_LEN as f64 / seconds.max(1e-9))
}

/// Time of a run with one smallest transfer each way.
fn round_trip(device: &Device) -> Result<f64> {
    let mut plan = PlanBuilder::new("calibrate.transfers");
    let (x, y) = (
        plan.input("x", DType::F32, 1),
        plan.output("y", DType::F32, 1),
    );
    plan.copy(x, y)?;
    best_seconds(&mut plan.finish()?.compile(device)?, 100)
}

/// The rate of a product that one workgroup, or one thread of the CPU, computes, for each of its
/// lanes.
fn lane_rate(device: &Device, one_s: f64) -> Result<f64> {
    let (side, inner, lanes) = match device.info().kind {
        DeviceKind::Cpu => (ONE_THREAD_SIDE, ONE_THREAD_SIDE, 1.0),
        _ => (
            crate::operation::product::gemm::TILE,
            NARROW_INNER,
            f64::from(crate::kernel::WORKGROUP),
        ),
    };
    let seconds = best_seconds(&mut gemm_plan(device, side, inner)?, 20)?;
    Ok(2.0 * (side * side * inner) as f64 / (seconds - one_s).max(1e-9) / lanes)
}
