//! Speed-ups: the rows of one device compared with those of another, by their times.

use serde::Serialize;
use tectum::{Error, Result};

use super::{BenchRecord, DeviceBrief, Interval, Row};

/// The rows of two records side by side.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speedups {
    /// The device whose speed-up is given.
    pub device: DeviceBrief,
    /// The device that it is compared with.
    pub baseline: DeviceBrief,
    /// Threads of the baseline's host.
    pub baseline_threads: u32,
    /// One entry for each row that both have.
    pub rows: Vec<Speedup>,
    /// Keys of the device that the baseline lacks.
    pub alone: Vec<String>,
}

/// One operation on both devices.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Speedup {
    /// The row.
    pub key: String,
    /// Its median time, in seconds.
    pub median_s: f64,
    /// The baseline's row: the same, or that of the maximum number of threads where the baseline
    /// has a row for each number.
    pub baseline_key: String,
    /// Its median time, in seconds.
    pub baseline_median_s: f64,
    /// The baseline's time over the device's: above 1 the device is faster.
    pub ratio: Interval,
}

/// Compares the times of two records, row by row.
///
/// # Numerics
/// The rounds of the two were not interleaved, so the interval of a ratio is the quotient of both
/// medians' intervals.
///
/// # Errors
/// `Invalid` if the records have no row in common.
pub fn speedups(record: &BenchRecord, baseline: &BenchRecord) -> Result<Speedups> {
    let (both, alone): (Vec<_>, Vec<_>) = record
        .rows
        .iter()
        .map(|row| (row, counterpart(row, baseline)))
        .partition(|(_, other)| other.is_some());
    let rows: Vec<Speedup> = both
        .into_iter()
        .filter_map(|(row, other)| Some(speedup(row, other?)))
        .collect();
    if rows.is_empty() {
        return Err(Error::invalid(format!(
            "speedup: the records of {} and {} have no row in common",
            record.device.id, baseline.device.id
        )));
    }
    Ok(Speedups {
        device: record.device.clone(),
        baseline: baseline.device.clone(),
        baseline_threads: baseline.machine.threads,
        rows,
        alone: alone.into_iter().map(|(row, _)| row.key.clone()).collect(),
    })
}

/// The baseline's row of the same key, or of that key with the greatest number of threads after it.
fn counterpart<'r>(row: &Row, baseline: &'r BenchRecord) -> Option<&'r Row> {
    let threads = |other: &Row| -> Option<usize> {
        let tail = other.key.strip_prefix(&row.key)?;
        if tail.is_empty() {
            Some(usize::MAX)
        } else {
            tail.strip_prefix(".t")?.parse().ok()
        }
    };
    baseline
        .rows
        .iter()
        .filter_map(|other| Some((threads(other)?, other)))
        .max_by_key(|(threads, _)| *threads)
        .map(|(_, other)| other)
}

fn speedup(row: &Row, baseline: &Row) -> Speedup {
    let time = |row: &Row| {
        Interval::of(&row.rounds_s).unwrap_or_else(|| Interval::around(row.median_s, row.spread))
    };
    Speedup {
        key: row.key.clone(),
        median_s: row.median_s,
        baseline_key: baseline.key.clone(),
        baseline_median_s: baseline.median_s,
        ratio: time(baseline).over(&time(row)),
    }
}
