//! The record of a benchmark: what was measured, where, at which commit, compared with which peers.
//! One JSON form, written and read here.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tectum::{Device, Error, Measurement, Result, file};

use super::interval::{median, spread};
use super::{Interval, Machine, Roofline};

/// The version of the JSON form.
pub const RECORD_SCHEMA: &str = "tectum.bench/1";

/// A run of one or more suites.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchRecord {
    /// [`RECORD_SCHEMA`].
    pub schema: String,
    /// The day in UTC.
    pub date: String,
    /// The commit, with `+` after it if files differed from it.
    pub commit: String,
    /// Notes for the reader.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// For an incomplete record, of a run that was interrupted: what it was to measure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupted: Option<Planned>,
    /// The suites that ran.
    pub suites: Vec<String>,
    /// The host.
    pub machine: Machine,
    /// The device.
    pub device: DeviceBrief,
    /// The requested peers.
    pub peers: Vec<PeerBrief>,
    /// The rooflines: the best of several measurements over the run.
    pub measured: Measurement,
    /// One row for each case; of an incomplete record, those that were measured, some of them in
    /// fewer rounds.
    pub rows: Vec<Row>,
    /// Kernels of the core without a row; empty unless the whole core suite ran to its end.
    pub kernels_missed: Vec<String>,
    /// The receipt of all runs.
    pub receipt: serde_json::Value,
    /// Results of `tectum run … --json` that were taken with the rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<serde_json::Value>,
}

/// What an interrupted run was to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// Rows.
    pub rows: usize,
    /// Rounds of each row.
    pub rounds: usize,
}

/// The device's properties that matter for figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceBrief {
    /// `cpu`, `vulkan:0` …
    pub id: String,
    /// The vendor's name for it.
    pub name: String,
    /// Driver name and version.
    pub driver: String,
    /// As in receipts: cpu, discrete, integrated, virtual, software, null or unknown.
    pub kind: String,
}

/// A requested peer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerBrief {
    /// The name of its script.
    pub name: String,
    /// Versions of the libraries that matter.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub versions: BTreeMap<String, String>,
    /// Threads that it reports to use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Why it did not run, if it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

/// One measured operation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Dotted name: suite, operation, shape.
    pub key: String,
    /// The kernels launched.
    pub kernels: Vec<String>,
    /// Median over the rounds of a run's time on the host's clock, in seconds.
    pub median_s: f64,
    /// Half the distance between the rounds' quartiles over the median.
    pub spread: f64,
    /// Runs timed, in all rounds.
    pub repeats: usize,
    /// Bytes or operations of a run.
    pub amount: f64,
    /// Bytes or operations each second.
    pub rate: f64,
    /// What the rate counts.
    pub roofline: Roofline,
    /// Threads of the row and its roofline, if not all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// The rate as percent of the run's best roofline of this kind on as many threads.
    pub percent_of_roofline: f64,
    /// Each round's median time in seconds.
    #[serde(default)]
    pub rounds_s: Vec<f64>,
    /// The roofline's rate as measured in each round, just before the row.
    #[serde(default)]
    pub roofline_rounds: Vec<f64>,
    /// The same operation by peers, in the same rounds.
    #[serde(default)]
    pub peers: Vec<PeerRow>,
}

/// A peer's part of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PeerRow {
    /// The peer.
    pub peer: String,
    /// The call that was timed.
    pub call: String,
    /// Each round's median time in seconds.
    #[serde(default)]
    pub rounds_s: Vec<f64>,
    /// Median over the rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub median_s: Option<f64>,
    /// The peer's time over ours, round by round: above 1 we are faster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ratio: Option<Interval>,
    /// Why it was not timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
}

impl Row {
    /// Computes every derived figure from the rounds.
    pub(super) fn summarize(&mut self, roofline: f64) {
        self.median_s = median(&self.rounds_s);
        self.spread = spread(&self.rounds_s);
        self.rate = self.amount / self.median_s;
        self.percent_of_roofline = 100.0 * self.rate / roofline;
        for peer in &mut self.peers {
            peer.ratio = peer.time_ratio(&self.rounds_s);
            peer.median_s = peer.ratio.map(|_| median(&peer.rounds_s));
        }
    }

    /// Every derived figure with its name.
    fn derived(&self) -> Vec<(String, f64)> {
        let own = [
            ("median_s", self.median_s),
            ("spread", self.spread),
            ("rate", self.rate),
            ("percent_of_roofline", self.percent_of_roofline),
        ];
        let own = own.map(|(name, value)| (name.to_owned(), value));
        let of_peer = |peer: &PeerRow| {
            let ratio = peer.ratio.unwrap_or(Interval {
                median: f64::NAN,
                low: f64::NAN,
                high: f64::NAN,
            });
            let values = [
                ("median_s", peer.median_s.unwrap_or(f64::NAN)),
                ("ratio", ratio.median),
                ("ratio's low end", ratio.low),
                ("ratio's high end", ratio.high),
            ];
            values.map(|(name, value)| (format!("{} of {}", name, peer.peer), value))
        };
        own.into_iter()
            .chain(self.peers.iter().flat_map(of_peer))
            .collect()
    }

    /// The rate as a share of the roofline measured in the same round; from the summary where a
    /// record has no rounds.
    pub fn roofline_ratio(&self) -> Interval {
        let rounds = self
            .rounds_s
            .iter()
            .zip(&self.roofline_rounds)
            .map(|(seconds, roofline)| self.amount / seconds / roofline);
        let summary = || Interval::around(self.percent_of_roofline / 100.0, self.spread);
        Interval::of(&rounds.collect::<Vec<_>>()).unwrap_or_else(summary)
    }

    /// A peer's time over ours, round by round.
    pub fn peer_ratio(&self, name: &str) -> Option<Interval> {
        self.peers
            .iter()
            .find(|peer| peer.peer == name)?
            .time_ratio(&self.rounds_s)
    }
}

/// Both absent, or equal within 1e-9.
fn is_near(a: f64, b: f64) -> bool {
    (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-9 * b.abs()
}

impl PeerRow {
    fn time_ratio(&self, ours_s: &[f64]) -> Option<Interval> {
        let rounds = self
            .rounds_s
            .iter()
            .zip(ours_s)
            .map(|(peer, ours)| peer / ours);
        if self.skipped.is_some() {
            None
        } else {
            Interval::of(&rounds.collect::<Vec<_>>())
        }
    }
}

impl std::fmt::Display for DeviceBrief {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} ({}{})",
            self.id,
            self.name,
            if self.kind == "software" {
                ", software"
            } else {
                ""
            }
        )
    }
}

impl DeviceBrief {
    pub(super) fn of(device: &Device) -> Self {
        let info = device.info();
        let kind = format!("{:?}", info.kind).to_lowercase();
        Self {
            id: info.id.clone(),
            name: info.name.clone(),
            driver: info.driver.clone(),
            kind,
        }
    }
}

impl BenchRecord {
    /// Reads a record.
    ///
    /// # Errors
    /// `Io` for a file that cannot be read, `Data` for one that is not a record of this version.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).map_err(|error| Error::io(path.display(), error))?;
        let no_record = |source| {
            Error::data(format!(
                "{}: not a record of {RECORD_SCHEMA}",
                path.display()
            ))
            .with_source(source)
        };
        let record: Self = serde_json::from_str(&text).map_err(no_record)?;
        if record.schema == RECORD_SCHEMA {
            return Ok(record);
        }
        Err(Error::data(format!(
            "{}: the record is of {}, needs {RECORD_SCHEMA}",
            path.display(),
            record.schema
        )))
    }

    /// The first derived figure that does not follow from the raw rounds within 1e-9, with both
    /// values; none if all do. Rows of old records without rounds are not checked.
    pub fn discrepancy(&self) -> Option<String> {
        self.rows
            .iter()
            .filter(|row| !row.rounds_s.is_empty())
            .find_map(|row| {
                let mut again = row.clone();
                again.summarize(best_roofline(&self.rows, row, &self.measured));
                let differing = row
                    .derived()
                    .into_iter()
                    .zip(again.derived())
                    .find(|((_, kept), (_, made))| !is_near(*kept, *made));
                differing.map(|((what, kept), (_, made))| {
                    format!("{}: {what} is {kept}, its rounds give {made}", row.key)
                })
            })
    }

    /// Writes the record into a folder as `DATE-DEVICE.json`, or `DATE-DEVICE-2.json` and so on
    /// where that exists. The stem of an incomplete record is `DATE-DEVICE-incomplete`.
    ///
    /// # Errors
    /// `Io` if the folder cannot be made or written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf> {
        std::fs::create_dir_all(folder).map_err(|error| Error::io(folder.display(), error))?;
        let end = self.interrupted.map_or("", |_| "-incomplete");
        let stem = format!("{}-{}{end}", self.date, self.device.id.replace(':', "-"));
        let names = std::iter::once(format!("{stem}.json"))
            .chain((2..).map(|number| format!("{stem}-{number}.json")));
        let mut text = serde_json::to_string_pretty(self)
            .map_err(|source| Error::data("record: cannot be encoded").with_source(source))?;
        text.push('\n');
        for path in names.map(|name| folder.join(name)) {
            if file::write_new(&path, text.as_bytes())? {
                return Ok(path);
            }
        }
        unreachable!("the names never end")
    }
}

/// The run's best roofline of a row: the device's measured rate, or the best of its kind's rounds.
pub(super) fn best_roofline(rows: &[Row], row: &Row, measured: &Measurement) -> f64 {
    match (row.roofline, row.threads) {
        (Roofline::Copy, None) => measured.copy_bytes_per_s,
        (Roofline::Gemm, None) => measured.gemm_flop_per_s,
        _ => {
            let alike = rows
                .iter()
                .filter(|other| (other.roofline, other.threads) == (row.roofline, row.threads));
            alike
                .flat_map(|other| &other.roofline_rounds)
                .copied()
                .fold(0.0, f64::max)
        }
    }
}
