//! The cost model.

use super::{CACHED_BYTES, Calibration, Rates};
use crate::device::{DeviceInfo, DeviceKind};
use crate::kernel::native::WORK_PER_THREAD;
use crate::plan::{LaunchWork, PlanWork};

/// Predicts the host time of a run, in seconds:
///
/// `run + Σ_launches (launch + max(bytes / memory rate, flops / arithmetic rate)) + Σ_transfers
/// (latency + bytes / rate)`
///
/// The rates of a launch are the device's times the share that it fills: the rate of its lanes over
/// that of the whole device, at most 1. A launch of one workgroup leaves the others idle. On the
/// CPU a lane is a thread, a launch has as many as its size justifies, and a single thread reaches
/// the full memory rate.
///
/// # Numerics
/// f64; the same input gives the same bits.
pub fn predict(work: &PlanWork, calibration: &Calibration) -> f64 {
    let rates = &calibration.rates;
    let launches = work
        .launches
        .iter()
        .map(|launch| rates.launch_s + launch_seconds(launch, &calibration.device, rates));
    let up = transfer_seconds(work.bytes_up, rates.upload_bytes_per_s, rates);
    let down = transfer_seconds(work.bytes_down, rates.download_bytes_per_s, rates);
    rates.run_s + launches.sum::<f64>() + up + down
}

fn launch_seconds(launch: &LaunchWork, info: &DeviceInfo, rates: &Rates) -> f64 {
    let (lanes, memory_bytes_per_s) = match info.kind {
        DeviceKind::Cpu if launch.bytes <= CACHED_BYTES => {
            (threads(launch, info), rates.cached_bytes_per_s)
        }
        DeviceKind::Cpu => (threads(launch, info), rates.memory_bytes_per_s),
        _ => (
            launch.lanes,
            rates.memory_bytes_per_s * share(launch.lanes, rates),
        ),
    };
    (launch.bytes / memory_bytes_per_s).max(launch.flops / (rates.flop_per_s * share(lanes, rates)))
}

/// The part of the device that this many lanes fill.
fn share(lanes: f64, rates: &Rates) -> f64 {
    (lanes * rates.lane_flop_per_s / rates.flop_per_s).clamp(f64::EPSILON, 1.0)
}

/// Threads that the CPU's native twins would use: see [`crate::kernel::NativeCall::threads_for`].
fn threads(launch: &LaunchWork, info: &DeviceInfo) -> f64 {
    let work = (launch.bytes / 4.0).max(launch.flops / 32.0);
    (work / WORK_PER_THREAD as f64)
        .floor()
        .clamp(1.0, f64::from(info.compute_units.unwrap_or(1).max(1)))
}

fn transfer_seconds(bytes: f64, rate: Option<f64>, rates: &Rates) -> f64 {
    match rate {
        Some(rate) if bytes > 0.0 => rates.transfer_s + bytes / rate,
        _ => 0.0,
    }
}
