//! `tectum check field`: bytes and time of each pass of a cycle, and its difference from the reference.

use std::time::Instant;

use serde::Serialize;
use tectum::{Device, Receipt, Result, Watch, WorkProgress};

use super::agreement::{self, Difference};
use super::options::Options;
use super::reference::ImprintSite;
use super::shape::Shape;
use super::simulation::Simulation;

/// Cycles whose median time is reported.
const TIMED: usize = 15;
/// The reward of every cycle.
const REWARD: f32 = 0.5;

/// A launch of a cycle.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Pass {
    /// The kernel.
    pub kernel: String,
    /// Bytes that it binds; bytes that are read and written in place count twice.
    pub bytes: f64,
    /// The median of its times by the device's clock, in seconds; none if the device has no clock or the field is split.
    pub median_s: Option<f64>,
}

/// The result of a check.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckReport {
    /// The launches of a cycle in order.
    pub passes: Vec<Pass>,
    /// Bytes that a cycle must move: the field read and written once.
    pub min_bytes: f64,
    /// The devices' rate of a large copy, in bytes read and written per second: the sum over devices, each measured alone.
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
    /// Places for which the device made another choice, each with the reference's place and the difference of their scores.
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
        let quantile = |part: f64| seconds.get(((seconds.len() as f64 * part).ceil() as usize).saturating_sub(1)).copied().unwrap_or(0.0);
        Self { cycles: seconds.len(), p50_s: quantile(0.5), p99_s: quantile(0.99), p999_s: quantile(0.999), max_s: quantile(1.0) }
    }
}

/// Runs a field on one device or split over several, compares one of `every` cycles with the reference, `compared` in total, and times the passes.
///
/// # Errors
/// Device errors; `Mismatch` naming the quantity that differs from the reference by more than its tolerance; `Cancelled` if the watch, which sees each
/// compared cycle, breaks it off.
pub fn check(shape: Shape, options: Options, devices: &[Device], compared: usize, every: usize, watch: &mut Watch<'_>) -> Result<CheckReport> {
    let mut field = Simulation::split(shape, options, devices)?;
    let rates = devices.iter().map(|device| device.measure().map(|measured| measured.copy_bytes_per_s)).collect::<Result<Vec<_>>>()?;
    let mut report = CheckReport {
        passes: Vec::new(),
        min_bytes: 8.0 * options.storage.words(shape.elements()) as f64,
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
        WorkProgress { stage: "comparing cycles", done: index, total: compared as u64 }.report(watch)?;
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
    (0..field.options().sensors).map(|i| (0.05 * cycle * (1.0 + i as f32 / 7.0)).sin()).collect()
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
    let traces = (0..TIMED).map(|_| field.trace()).collect::<Result<Vec<_>>>()?;
    let launches = field.work().launches.iter().enumerate();
    let pass = |(index, launch): (usize, &tectum::LaunchWork)| {
        let mut times: Vec<u64> = traces.iter().filter_map(|trace| trace.get(index)?.ns).collect();
        times.sort_unstable();
        Pass { kernel: launch.kernel.clone(), bytes: launch.bytes, median_s: times.get(times.len() / 2).map(|ns| *ns as f64 * 1e-9) }
    };
    Ok(launches.map(pass).collect())
}
