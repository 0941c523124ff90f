//! Routing by measurement: which device a plan is sent to.
//!
//! Each device is calibrated once ([`calibrate`]), the rates are stored in a file
//! ([`CalibrationCache`]), and a plan goes to the device with the minimum predicted time
//! ([`choose`]). If only one device may be chosen, nothing is measured.

mod cache;
mod calibration;
mod cost;
mod target;

use std::path::Path;
use std::time::Duration;

use serde::Serialize;

use crate::device::{Device, DeviceInfo, DeviceKind};
use crate::error::{Error, Result};
use crate::plan::{LaunchWork, PlanWork};
pub use cache::{CACHE_SCHEMA, CalibrationCache, default_path};
pub use calibration::{CACHED_BYTES, Calibration, Rates, calibrate};
pub use cost::predict;
pub use target::Target;

/// The assessment of one device for a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The device's id.
    pub device: String,
    /// Predicted host time of a run, or the measured time of a trial; none where the device was
    /// neither calibrated nor tried.
    pub seconds: Option<f64>,
    /// Why it may not be chosen.
    pub refused: Option<String>,
}

/// The device choice for a plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Choice {
    /// The plan's name.
    pub plan: String,
    /// The chosen device's id.
    pub device: String,
    /// Every device that was considered.
    pub predicted: Vec<Prediction>,
    /// Why this one.
    pub reason: String,
}

/// Picks the device with the minimum predicted time among those that may be chosen; the first of
/// equals.
///
/// # Errors
/// `Unsupported`, with the reason for each, where none may be chosen.
pub fn choose(work: &PlanWork, calibrations: &[Calibration]) -> Result<Choice> {
    let predicted = calibrations.iter().map(|calibration| Prediction {
        device: calibration.device.id.clone(),
        seconds: Some(predict(work, calibration)),
        refused: refusal(work, &calibration.device),
    });
    decide(&work.plan, predicted.collect(), "predicted")
}

/// Every device of this machine but the null device, with its calibration or why there is none:
/// from the cache, or measured now and added to it.
pub fn calibrate_all(
    path: Option<&Path>,
    recalibrate: bool,
) -> Vec<(DeviceInfo, Result<Calibration>)> {
    let present = Device::list()
        .into_iter()
        .filter(|info| info.kind != DeviceKind::Null);
    calibrate_these(present.collect(), path, recalibrate)
}

/// Opens the device that a plan goes to: the meaning of `auto` once the plan is known. The
/// machine's GPUs and CPU are calibrated at the first call that has a choice, about a second each.
///
/// # Errors
/// As [`choose`]; what opening reports. A device that cannot be calibrated is not chosen.
pub fn open(work: &PlanWork) -> Result<(Device, Choice)> {
    let (may_be, refused): (Vec<_>, Vec<_>) = Device::list()
        .into_iter()
        .map(|info| (refusal(work, &info), info))
        .partition(|(refused, _)| refused.is_none());
    let mut predicted: Vec<Prediction> = if may_be.len() == 1 {
        may_be
            .into_iter()
            .map(|(_, info)| Prediction {
                device: info.id,
                seconds: None,
                refused: None,
            })
            .collect()
    } else {
        let infos = may_be.into_iter().map(|(_, info)| info).collect();
        calibrate_these(infos, default_path().as_deref(), false)
            .into_iter()
            .map(|(info, found)| prediction(work, info, found))
            .collect()
    };
    predicted.extend(refused.into_iter().map(|(refused, info)| Prediction {
        device: info.id,
        seconds: None,
        refused,
    }));
    open_chosen(decide(&work.plan, predicted, "predicted")?)
}

/// Opens the device with the minimum measured time: for work that no plan describes in advance,
/// because its amount depends on its data. `trial` does a part of it on a device and returns the
/// time; if only one device may be chosen, nothing is measured.
///
/// # Errors
/// `Unsupported`, with the reason for each device, where none may be chosen; as [`Device::open`]. A
/// device on which the trial fails is not chosen.
pub fn open_by_trial(
    name: &str,
    trial: &mut dyn FnMut(&Device) -> Result<Duration>,
) -> Result<(Device, Choice)> {
    open_chosen(choose_by_trial(name, Device::list(), &mut |id| {
        Device::open(id).and_then(|device| trial(&device))
    })?)
}

/// Opens the chosen device.
fn open_chosen(choice: Choice) -> Result<(Device, Choice)> {
    for Prediction {
        device,
        seconds,
        refused,
    } in &choice.predicted
    {
        crate::log!(info, device, seconds, refused, "device considered");
    }
    crate::log!(
        info,
        work = choice.plan,
        device = choice.device,
        reason = choice.reason,
        "device chosen"
    );
    Ok((Device::open(&choice.device)?, choice))
}

fn choose_by_trial(
    name: &str,
    infos: Vec<DeviceInfo>,
    trial: &mut dyn FnMut(&str) -> Result<Duration>,
) -> Result<Choice> {
    let is_one = infos.iter().filter(|info| unfit(info).is_none()).count() == 1;
    let predicted = infos.into_iter().map(|info| match unfit(&info) {
        Some(refused) => Prediction {
            device: info.id,
            seconds: None,
            refused: Some(refused),
        },
        None if is_one => Prediction {
            device: info.id,
            seconds: None,
            refused: None,
        },
        None => match trial(&info.id) {
            Ok(time) => Prediction {
                device: info.id,
                seconds: Some(time.as_secs_f64()),
                refused: None,
            },
            Err(error) => Prediction {
                device: info.id,
                seconds: None,
                refused: Some(format!("its trial failed: {error}")),
            },
        },
    });
    decide(name, predicted.collect(), "measured")
}

/// Opens the device of a plan by the fixed thresholds of the previous system ([`choose_fixed`]):
/// nothing is measured.
///
/// # Errors
/// `Unsupported`, with the reason for each device, where none may be chosen; as [`Device::open`].
pub fn open_fixed(work: &PlanWork) -> Result<(Device, Choice)> {
    open_chosen(choose_fixed(work, Device::list())?)
}

/// Elements of operands beyond which the previous system chose a GPU: for a product alone, and for
/// one with a bias or a residual.
const FIXED: [f64; 2] = [500.0, 1000.0];

/// Picks by fixed thresholds: a GPU if any matrix product of the plan reads more than 500 elements,
/// 1,000 if bias or residual are a part of it; else, or if no GPU may be chosen, the CPU. A plan
/// goes to one device; the previous system chose a device for each operation.
///
/// # Errors
/// As [`choose`].
pub fn choose_fixed(work: &PlanWork, infos: Vec<DeviceInfo>) -> Result<Choice> {
    let is_large = |launch: &&LaunchWork| {
        let is_product = launch.kernel.starts_with("gemm") || launch.kernel.starts_with("matvec");
        let is_fused = launch.kernel.contains("bias") || launch.kernel.contains("residual");
        is_product && launch.read_bytes / 4.0 > FIXED[usize::from(is_fused)]
    };
    let large = work.launches.iter().find(is_large);
    let predicted: Vec<Prediction> = infos
        .into_iter()
        .map(|info| Prediction {
            refused: refusal(work, &info),
            device: info.id,
            seconds: None,
        })
        .collect();
    let may_be = |is_cpu: bool| {
        predicted.iter().find(|prediction| {
            prediction.refused.is_none() && (prediction.device == "cpu") == is_cpu
        })
    };
    let (chosen, reason) = match (large, may_be(false), may_be(true)) {
        (Some(launch), Some(gpu), _) => (
            gpu,
            format!(
                "fixed thresholds: {} reads {} elements",
                launch.kernel,
                launch.read_bytes / 4.0
            ),
        ),
        (Some(launch), None, Some(cpu)) => (
            cpu,
            format!(
                "fixed thresholds: {} requires a GPU, and none may be chosen",
                launch.kernel
            ),
        ),
        (None, _, Some(cpu)) => (
            cpu,
            "fixed thresholds: no product is large enough for a GPU".to_owned(),
        ),
        (_, _, None) => return decide(&work.plan, predicted, "predicted"),
    };
    Ok(Choice {
        plan: work.plan.clone(),
        device: chosen.device.clone(),
        reason,
        predicted,
    })
}

fn prediction(work: &PlanWork, info: DeviceInfo, found: Result<Calibration>) -> Prediction {
    match found {
        Ok(calibration) => Prediction {
            device: info.id,
            seconds: Some(predict(work, &calibration)),
            refused: None,
        },
        Err(error) => Prediction {
            device: info.id,
            seconds: None,
            refused: Some(format!("it could not be calibrated: {error}")),
        },
    }
}

fn calibrate_these(
    infos: Vec<DeviceInfo>,
    path: Option<&Path>,
    recalibrate: bool,
) -> Vec<(DeviceInfo, Result<Calibration>)> {
    // A cache that cannot be read is measured again and replaced.
    let mut cache = path
        .and_then(|path| CalibrationCache::load(path).ok())
        .unwrap_or_default();
    let mut is_changed = false;
    let mut found = Vec::with_capacity(infos.len());
    for info in infos {
        let known = if recalibrate {
            None
        } else {
            cache.rates(&info)
        };
        let calibration = match known {
            Some(rates) => Ok(Calibration {
                device: info.clone(),
                rates,
            }),
            None => Device::open(&info.id)
                .and_then(|device| calibrate(&device))
                .inspect(|calibration| {
                    crate::log!(info, device = info.id, "device calibrated");
                    cache.insert(calibration);
                    is_changed = true;
                }),
        };
        found.push((info, calibration));
    }
    if let Some(path) = path.filter(|_| is_changed) {
        // A cache that cannot be written costs the next process a second; it is not a reason to
        // fail this one.
        let _ = cache.save(path);
    }
    found
}

/// Why a device may not be chosen for any plan.
fn unfit(info: &DeviceInfo) -> Option<String> {
    let reason = match info.kind {
        DeviceKind::Null => "it executes nothing",
        _ if info.software => "a software adapter is never chosen",
        _ => return None,
    };
    Some(reason.to_owned())
}

/// Why a device may not be chosen for a plan.
fn refusal(work: &PlanWork, info: &DeviceInfo) -> Option<String> {
    let limits = &info.limits;
    if let Some(reason) = unfit(info) {
        return Some(reason);
    } else if let Some(dtype) = work
        .dtypes
        .iter()
        .find(|dtype| !info.dtypes.contains(dtype))
    {
        return Some(format!("its device code has no {}", dtype.wgsl()));
    } else if work.longest_binding_bytes > limits.max_binding_bytes {
        return Some(format!(
            "a launch binds {} bytes, at most {} are possible",
            work.longest_binding_bytes, limits.max_binding_bytes
        ));
    }
    let memory_bytes = info
        .memory_bytes
        .filter(|memory_bytes| work.memory_bytes > *memory_bytes)?;
    Some(format!(
        "the plan needs {} bytes of memory, there are {memory_bytes}",
        work.memory_bytes
    ))
}

fn decide(plan: &str, predicted: Vec<Prediction>, how: &str) -> Result<Choice> {
    let mut open: Vec<&Prediction> = predicted
        .iter()
        .filter(|prediction| prediction.refused.is_none())
        .collect();
    open.sort_by(|a, b| {
        a.seconds
            .unwrap_or(0.0)
            .total_cmp(&b.seconds.unwrap_or(0.0))
    });
    let (device, reason) = match open.as_slice() {
        [] => {
            let reasons = predicted.iter().map(|prediction| {
                format!(
                    "{}: {}",
                    prediction.device,
                    prediction.refused.as_deref().unwrap_or("")
                )
            });
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            return Err(Error::unsupported(format!(
                "plan {plan}: no device may be chosen: {reasons}"
            )));
        }
        [only] => (
            only.device.clone(),
            "the only device that may be chosen".to_owned(),
        ),
        [first, second, ..] => {
            let ratio =
                second.seconds.unwrap_or(0.0) / first.seconds.unwrap_or(0.0).max(f64::MIN_POSITIVE);
            (
                first.device.clone(),
                format!(
                    "least {how} time; {} would take {ratio:.2} times as long",
                    second.device
                ),
            )
        }
    };
    Ok(Choice {
        plan: plan.to_owned(),
        device,
        predicted,
        reason,
    })
}

#[cfg(test)]
mod tests;
