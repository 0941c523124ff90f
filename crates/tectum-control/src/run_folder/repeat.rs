//! Repeating the run of a folder, to compare its trace.

use std::ops::ControlFlow;
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use tectum::{Device, Error, Receipt, Result, Watch, WorkProgress};

use super::{RECEIPT_FILE, SUMMARY_FILE, TRACE_FILE, read_scenario};
use crate::clock::{ClockKind, SimClock};
use crate::closed_loop::{Discard, End};
use crate::recording::Trace;
use crate::scenario::build::{brain_recipe, build_body, build_loop};

/// A run that was repeated.
#[derive(Debug)]
pub struct Repetition {
    /// Id of the device that it was repeated on.
    pub device: String,
    /// Periods.
    pub ticks: u64,
    /// Hash of the trace in the folder's receipt.
    pub expected: String,
    /// Hash of the repetition's trace.
    pub found: String,
    /// Receipt of the repetition.
    pub receipt: Receipt,
}

/// As much of a receipt as a repetition needs.
#[derive(Deserialize)]
struct WrittenReceipt {
    device: WrittenDevice,
    injected: Vec<serde_json::Value>,
    recovery_count: u64,
    trace: Option<String>,
}

#[derive(Deserialize)]
struct WrittenDevice {
    id: String,
}

/// As much of a summary as a repetition needs.
#[derive(Deserialize)]
struct WrittenSummary {
    ticks: u64,
    resumed_at_tick: u64,
    deadline_misses: u64,
}

/// Runs the scenario of a folder again, under a simulated clock and for as many periods; on the
/// receipt's device unless another is named.
///
/// # Errors
/// `Invalid` for a run that cannot be repeated: faults, late answers, or a continuation of an
/// earlier run; a body or a brain that is not registered in this process; `Io` or `Data` naming the
/// file; what the device reports; `Cancelled` if the watch breaks it off.
pub fn repeat(folder: &Path, device: Option<&Device>, watch: &mut Watch<'_>) -> Result<Repetition> {
    let refused = |reason: &str| Error::invalid(format!("repeat {}: {reason}", folder.display()));
    let receipt: WrittenReceipt = read(&folder.join(RECEIPT_FILE))?;
    let summary: WrittenSummary = read(&folder.join(SUMMARY_FILE))?;
    let expected = receipt
        .trace
        .ok_or_else(|| refused("its receipt has no trace"))?;
    if !receipt.injected.is_empty() || receipt.recovery_count > 0 {
        return Err(refused("faults were injected or happened"));
    } else if summary.resumed_at_tick > 0 {
        return Err(refused("it continued an earlier run"));
    } else if summary.deadline_misses > 0 {
        return Err(refused(
            "answers were late, which a simulated clock does not repeat",
        ));
    }
    let mut scenario = read_scenario(folder)?;
    scenario.set_clock(ClockKind::Sim);
    let device = device.map_or_else(
        || Device::open(&receipt.device.id),
        |device| Ok(device.clone()),
    )?;
    let body = build_body(&scenario)?;
    scenario.set_seconds(summary.ticks as f64 * body.spec().dt_s)?;
    let recipe = brain_recipe(&scenario, body.spec())?;
    let mut closed_loop = build_loop(&scenario, body, recipe, &device, watch)?;
    closed_loop.set_workload(scenario.workload()?)?;
    let path = folder.join(TRACE_FILE);
    if !closed_loop.commands().is_empty() && path.is_file() {
        let repeated = closed_loop.repeat_commands(Trace::read(&path)?.commands());
        repeated.map_err(|error| error.at(path.display()))?;
    }
    let mut broken_off = Ok(());
    let outcome = closed_loop.run(&mut SimClock::new(), &mut Discard, &mut |progress| {
        broken_off = WorkProgress {
            stage: "repeating",
            done: progress.tick,
            total: progress.ticks,
        }
        .report(watch);
        if broken_off.is_ok() {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    broken_off?;
    if let End::Failed(error) = outcome.end {
        return Err(error.at(format_args!(
            "repeat {} stopped at tick {}",
            folder.display(),
            outcome.metrics.ticks
        )));
    }
    let found = outcome
        .receipt
        .trace
        .map(|trace| trace.to_string())
        .unwrap_or_default();
    Ok(Repetition {
        device: device.info().id.clone(),
        ticks: outcome.metrics.ticks,
        expected,
        found,
        receipt: outcome.receipt,
    })
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = std::fs::read(path).map_err(|source| Error::io(path.display(), source))?;
    serde_json::from_slice(&bytes)
        .map_err(|source| Error::data(path.display().to_string()).with_source(source))
}
