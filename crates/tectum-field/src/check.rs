//! `tectum check field`: bytes and time of each pass of a cycle, and its difference from the
//! reference.

use std::time::Instant;

use serde::Serialize;
use tectum::{Api, Device, Receipt, Result, Watch, WorkProgress};

use super::agreement::{self, Difference};
use super::reference::ImprintSite;
use super::simulation::Simulation;

/// Cycles whose median time is reported.
const TIMED: usize = 15;
/// The pass that reads and writes the field.
const EVOLVE: &str = "field_evolve";
/// Below this, statistics have as many bytes as the field.
const SMALL_BYTES: f64 = 1e6;
/// Passes that read the library of patterns, not the field.
const LIBRARY_PASSES: [&str; 2] = ["field_similarity", "field_recall"];
/// The reward of every cycle.
const REWARD: f32 = 0.5;

/// A launch of a cycle.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pass {
    /// The kernel.
    pub kernel: String,
    /// Bytes that it binds; bytes that are read and written in place count twice.
    pub bytes: f64,
    /// The median of its times by the device's clock, in seconds; none if the device has no clock
    /// or the field is split.
    pub median_s: Option<f64>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// The launches of a cycle in order.
    pub passes: Vec<Pass>,
    /// Bytes that a cycle must move: the field read and written once.
    pub min_bytes: f64,
    /// The devices' rate of a large copy, in bytes read and written per second: the sum over
    /// devices, each measured alone.
    pub copy_bytes_per_s: f64,
    /// Transfers of a cycle to the device and back.
    pub transfers: [u32; 2],
    /// Bytes of these transfers.
    pub transfer_bytes: [u64; 2],
    /// The worst difference of each kind of number over all compared cycles.
    pub agreement: Vec<Difference>,
    /// Cycles compared with the reference.
    pub compared: usize,
    /// Cycles in which the device's library made another choice within a near-tie.
    pub recall_ties: usize,
    /// The time of cycles, from sensors to motors.
    pub latency: Latency,
    /// The devices and the code that computed the field.
    pub receipt: Receipt,
    /// Places for which the device made another choice, each with the reference's place and the
    /// difference of their scores.
    pub ties: Vec<(ImprintSite, ImprintSite, f64)>,
}

/// Times of all cycles of a check, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Timed cycles.
    pub cycles: usize,
    /// The median.
    pub p50_s: f64,
    /// The 99th percentile.
    pub p99_s: f64,
    /// The 99.9th percentile.
    pub p999_s: f64,
    /// The maximum.
    pub max_s: f64,
}

impl Latency {
    fn of(mut seconds: Vec<f64>) -> Self {
        seconds.sort_unstable_by(f64::total_cmp);
        let quantile = |part: f64| {
            seconds
                .get(((seconds.len() as f64 * part).ceil() as usize).saturating_sub(1))
                .copied()
                .unwrap_or(0.0)
        };
        Self {
            cycles: seconds.len(),
            p50_s: quantile(0.5),
            p99_s: quantile(0.99),
            p999_s: quantile(0.999),
            max_s: quantile(1.0),
        }
    }
}

/// A requirement on the cycles of a field, and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What is judged.
    pub what: &'static str,
    /// What was found.
    pub found: String,
    /// What is needed.
    pub needed: String,
    /// Whether it is met.
    pub is_met: bool,
}

impl CheckReport {
    /// Judges whether a cycle is as the field is designed to run: transfers, passes over the field,
    /// device, agreement with float64.
    ///
    /// A field that is split exchanges planes in every cycle; the number of its transfers is not
    /// judged.
    pub fn findings(&self) -> Vec<Finding> {
        let [up, down] = self.transfers;
        let devices = 1 + self.receipt.other_devices.len();
        let (needed, is_met) = match devices {
            1 if self.receipt.device.api == Api::Cpu => (
                "none: the field is in the memory of the CPU".to_owned(),
                up == 0 && down == 0,
            ),
            1 => (
                "at most 1 in each direction".to_owned(),
                up <= 1 && down <= 1,
            ),
            _ => (format!("those between {devices} devices"), true),
        };
        let transfers = Finding {
            what: "transfers a cycle",
            found: format!("{up} up, {down} down"),
            needed,
            is_met,
        };
        // Each part of a split field is evolved by a launch.
        let parts = self
            .passes
            .iter()
            .filter(|pass| pass.kernel.starts_with(EVOLVE))
            .count()
            .max(1);
        let is_whole = |pass: &&Pass| {
            pass.bytes * parts as f64 >= self.min_bytes
                && !LIBRARY_PASSES.contains(&pass.kernel.as_str())
        };
        let whole = self.passes.iter().filter(is_whole).count().div_ceil(parts);
        let (found, is_met) = match self.min_bytes < SMALL_BYTES {
            true => (
                format!(
                    "{} launches; the field is too small to judge them by their bytes",
                    self.passes.len()
                ),
                true,
            ),
            false => (
                format!("{whole}, in {} launches", self.passes.len()),
                whole <= 1,
            ),
        };
        let passes = Finding {
            what: "passes over the field",
            found,
            needed: "at most 1".to_owned(),
            is_met,
        };
        let device = &self.receipt.device;
        let all = || std::iter::once(device).chain(&self.receipt.other_devices);
        let found = all()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" and ");
        let is_met = all().all(|device| device.executes() && !device.software);
        let device = Finding {
            what: "device",
            found,
            needed: "a CPU or a GPU, not a GPU in software".to_owned(),
            is_met,
        };
        let worst = self
            .agreement
            .iter()
            .map(|difference| difference.worst / difference.tolerance)
            .fold(0.0, f64::max);
        let found = format!(
            "{:.0} % of the tolerance in {} cycles",
            100.0 * worst,
            self.compared
        );
        let agreement = Finding {
            what: "difference from float64",
            found,
            needed: "at most 100 %".to_owned(),
            is_met: worst <= 1.0,
        };
        vec![transfers, passes, device, agreement]
    }
}

/// Runs a field, compares one of `every` cycles with the reference, `compared` in total, and times
/// the passes. `devices` are those of the field.
///
/// # Errors
/// Device errors; `Mismatch` naming the quantity that differs from the reference by more than its
/// tolerance; `Cancelled` if the watch, which sees each compared cycle, breaks it off.
pub fn check(
    mut field: Simulation,
    devices: &[Device],
    compared: usize,
    every: usize,
    watch: &mut Watch<'_>,
) -> Result<CheckReport> {
    let rates = devices
        .iter()
        .map(|device| device.measure().map(|measured| measured.copy_bytes_per_s))
        .collect::<Result<Vec<_>>>()?;
    let mut report = CheckReport {
        passes: Vec::new(),
        min_bytes: 8.0 * field.options().storage.words(field.shape().elements()) as f64,
        copy_bytes_per_s: rates.into_iter().sum(),
        transfers: [0; 2],
        transfer_bytes: [0; 2],
        agreement: Vec::new(),
        compared,
        recall_ties: 0,
        latency: Latency::default(),
        receipt: field.session().receipt(),
        ties: Vec::new(),
    };
    let mut seconds = Vec::with_capacity(compared * every);
    for index in 1..=compared as u64 {
        for _ in 1..every {
            tick(&mut field, &mut seconds)?;
        }
        compare(&mut field, &mut seconds, &mut report)?;
        WorkProgress {
            stage: "comparing cycles",
            done: index,
            total: compared as u64,
        }
        .report(watch)?;
    }
    report.latency = Latency::of(seconds);
    let stats = field.stats();
    report.transfers = [stats.transfers_up, stats.transfers_down];
    report.transfer_bytes = [stats.bytes_up, stats.bytes_down];
    report.passes = passes(&mut field)?;
    report.receipt = field.session().receipt();
    Ok(report)
}

/// The field's input in its next cycle.
fn sensors(field: &Simulation) -> Vec<f32> {
    let cycle = field.cycle() as f32;
    (0..field.options().sensors)
        .map(|i| (0.05 * cycle * (1.0 + i as f32 / 7.0)).sin())
        .collect()
}

fn tick(field: &mut Simulation, seconds: &mut Vec<f64>) -> Result<()> {
    let sensors = sensors(field);
    let start = Instant::now();
    field.tick(&sensors, REWARD)?;
    seconds.push(start.elapsed().as_secs_f64());
    Ok(())
}

/// A compared cycle.
fn compare(field: &mut Simulation, seconds: &mut Vec<f64>, report: &mut CheckReport) -> Result<()> {
    let agreement = agreement::compare(field, &sensors(field), REWARD)?;
    seconds.push(agreement.seconds);
    report.recall_ties += usize::from(agreement.is_recall_tie);
    report.ties.extend(agreement.tie);
    if report.agreement.is_empty() {
        report.agreement.clone_from(&agreement.differences);
    }
    for (worst, found) in report.agreement.iter_mut().zip(agreement.differences) {
        if found.worst > worst.worst {
            *worst = found;
        }
    }
    Ok(())
}

/// The launches with the medians of their times.
fn passes(field: &mut Simulation) -> Result<Vec<Pass>> {
    let traces = (0..TIMED)
        .map(|_| field.trace())
        .collect::<Result<Vec<_>>>()?;
    let launches = field.work().launches.iter().enumerate();
    let pass = |(index, launch): (usize, &tectum::LaunchWork)| {
        let mut times: Vec<u64> = traces
            .iter()
            .filter_map(|trace| trace.get(index)?.ns)
            .collect();
        times.sort_unstable();
        Pass {
            kernel: launch.kernel.clone(),
            bytes: launch.bytes,
            median_s: times.get(times.len() / 2).map(|ns| *ns as f64 * 1e-9),
        }
    };
    Ok(launches.map(pass).collect())
}
