//! Receipts: the proof of where a session's results were computed, by which code, with which
//! traffic.
//!
//! A [`Session`] collects the [`RunStats`] of its runs in constant memory and closes into a
//! [`Receipt`]. The JSON form is described by `receipt.schema.json`.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;
use serde_json::Value;

use crate::content_hash::{ContentHash, ContentHasher};
use crate::device::{Device, DeviceInfo, PoolStats};
use crate::error::{Error, Result};
use crate::latency::{Latency, LatencyHistogram};
use crate::launch::{CodeObject, LaunchTime, RunStats};
use crate::plan::Executable;

/// The version of the JSON form.
pub const RECEIPT_SCHEMA: &str = "tectum.receipt/3";

/// A file whose content a session's results depend on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InputFile {
    /// The file, as it was named.
    pub path: String,
    /// Hash of its content.
    pub hash: ContentHash,
}

/// Bytes of a file that are hashed at a time.
const PIECE_BYTES: usize = 1 << 20;

impl InputFile {
    /// Hashes the current content of a file; to be called before the file is read.
    ///
    /// # Errors
    /// `Io` naming the file.
    ///
    /// # Cost
    /// Reads the whole file, a mebibyte at a time.
    pub fn of(path: &Path) -> Result<Self> {
        let failed = |source| Error::io(path.display(), source);
        let mut file = File::open(path).map_err(failed)?;
        let (mut hasher, mut piece) = (ContentHasher::default(), vec![0; PIECE_BYTES]);
        loop {
            match file.read(&mut piece) {
                Ok(0) => {
                    return Ok(Self {
                        path: path.display().to_string(),
                        hash: hasher.finish(),
                    });
                }
                Ok(count) => hasher.update(&piece[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

/// Work that ran elsewhere than requested, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fallback {
    /// What fell back.
    pub what: String,
    /// Why.
    pub reason: String,
    /// How often.
    pub count: u64,
}

/// A fault that was injected on purpose, to show its effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InjectedFault {
    /// The requested fault, as given.
    pub fault: String,
    /// The tick in which it occurred; none if the session ended before.
    pub tick: Option<u64>,
}

/// A loop's recovery after its brain failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recovery {
    /// The tick that failed, or the next one when the state was found invalid.
    pub tick: u64,
    /// What failed.
    pub reason: String,
    /// Whether the failure was injected.
    pub injected: bool,
    /// The device before; none for plain host arithmetic.
    pub from: Option<String>,
    /// The device after; none for plain host arithmetic.
    pub to: Option<String>,
    /// The tick that the restored state was taken before; the tick itself if the state survived.
    pub snapshot_tick: u64,
    /// The first tick that the brain answered again; none if the session ended before.
    pub resumed_at_tick: Option<u64>,
    /// Ticks between the restored state and the first answer from it: ticks unknown to the brain.
    pub ticks_lost: u64,
    /// Ticks that got the safe action.
    pub safe_ticks: u64,
}

/// Maximum recoveries that a receipt lists; all are counted.
pub const MAX_LISTED_RECOVERIES: usize = 64;

/// What a session did, on which devices and with which code.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Receipt {
    /// [`RECEIPT_SCHEMA`].
    pub schema: &'static str,
    /// Version of this library.
    pub tectum: &'static str,
    /// The device; of several, the first.
    pub device: DeviceInfo,
    /// Other devices that shared its work, without duplicates.
    pub other_devices: Vec<DeviceInfo>,
    /// Every code object that ran, without duplicate contents, in the order of names.
    pub code: Vec<CodeObject>,
    /// Files that the results depend on.
    pub inputs: Vec<InputFile>,
    /// Runs counted.
    pub runs: u64,
    /// Sums over all runs.
    pub totals: RunStats,
    /// Host time of a run.
    pub latency_ms: Latency,
    /// The device's memory pool at the end; its peak covers the device's whole life.
    pub pool: PoolStats,
    /// Energy of the whole device during a session of at least a second, in joules, if its driver
    /// measures it.
    pub energy_j: Option<f64>,
    /// Mean utilisation over at least a second of the session, its end if it is long, if the
    /// device's driver measures it.
    pub utilisation: Option<f64>,
    /// Every fallback with its reason.
    pub fallbacks: Vec<Fallback>,
    /// Injected faults.
    pub injected: Vec<InjectedFault>,
    /// Recoveries in all.
    pub recovery_count: u64,
    /// The first [`MAX_LISTED_RECOVERIES`] of them.
    pub recoveries: Vec<Recovery>,
    /// The time of each launch of one more run, if the session was traced.
    pub launches: Option<Vec<LaunchTime>>,
    /// The hash of every period of a loop, including observation, action and reward: a repetition
    /// on the same device gives the same hash. None for sessions without a loop.
    pub trace: Option<ContentHash>,
    /// What was run, as its program names it: of a closed loop the names and settings of body and
    /// brain. None for sessions that name nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload: Option<Value>,
}

/// Minimum duration of a session for reporting its energy: counters update some ten times a second.
const MIN_METERED_DURATION: Duration = Duration::from_secs(1);

/// A receipt under construction.
#[derive(Debug, Clone)]
pub struct Session {
    device: Device,
    other_devices: Vec<DeviceInfo>,
    code: BTreeSet<CodeObject>,
    inputs: Vec<InputFile>,
    runs: u64,
    totals: RunStats,
    latency: LatencyHistogram,
    fallbacks: Vec<Fallback>,
    injected: Vec<InjectedFault>,
    recovery_count: u64,
    recoveries: Vec<Recovery>,
    launches: Option<Vec<LaunchTime>>,
    trace: Option<ContentHash>,
    workload: Option<Value>,
    began: (Instant, SystemTime),
    /// The device's energy counter at the start.
    energy_j: Option<f64>,
}

impl Session {
    /// Starts a session on a device.
    pub fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
            other_devices: Vec::new(),
            code: BTreeSet::new(),
            inputs: Vec::new(),
            runs: 0,
            totals: RunStats::default(),
            latency: LatencyHistogram::default(),
            fallbacks: Vec::new(),
            injected: Vec::new(),
            recovery_count: 0,
            recoveries: Vec::new(),
            launches: None,
            trace: None,
            workload: None,
            began: (Instant::now(), SystemTime::now()),
            energy_j: device.readings().and_then(|readings| readings.energy_j),
        }
    }

    /// Starts a session of work that several devices share.
    ///
    /// # Errors
    /// `Invalid` without a device.
    pub fn of_shared_work(devices: &[Device]) -> Result<Self> {
        let (first, others) = devices
            .split_first()
            .ok_or_else(|| Error::invalid("a session needs at least one device"))?;
        let mut session = Self::new(first);
        for info in others
            .iter()
            .map(Device::info)
            .filter(|info| info.id != first.info().id)
        {
            if session
                .other_devices
                .iter()
                .all(|known| known.id != info.id)
            {
                session.other_devices.push(info.clone());
            }
        }
        Ok(session)
    }

    /// The device; of several, the first.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Executes a plan once, counts the run with its host time and records its code.
    ///
    /// # Errors
    /// As [`Executable::run`].
    pub fn run(&mut self, executable: &mut Executable) -> Result<RunStats> {
        let start = Instant::now();
        let stats = executable.run()?;
        self.record(&stats, start.elapsed().as_nanos() as u64);
        if executable
            .code()
            .iter()
            .any(|code| !self.code.contains(code))
        {
            self.uses(executable);
        }
        Ok(stats)
    }

    /// Records the code that runs of this executable launch, for runs that are not made by
    /// [`Session::run`].
    pub fn uses(&mut self, executable: &Executable) {
        self.uses_code(executable.code());
    }

    /// Records code.
    pub fn uses_code(&mut self, code: &[CodeObject]) {
        self.code.extend(code.iter().cloned());
    }

    /// Records the hash of a loop's periods.
    pub fn record_trace(&mut self, trace: ContentHash) {
        self.trace = Some(trace);
    }

    /// Records what is run, as its program names it.
    pub fn record_workload(&mut self, workload: Value) {
        self.workload = Some(workload);
    }

    /// Records a file that the results depend on.
    pub fn reads(&mut self, input: InputFile) {
        self.inputs.push(input);
    }

    /// Counts a run and its host time.
    pub fn record(&mut self, stats: &RunStats, host_ns: u64) {
        self.runs += 1;
        self.totals.add(stats);
        self.latency.record(host_ns);
    }

    /// Records work that ran elsewhere than requested; the first of equal ones is logged.
    pub fn record_fallback(&mut self, what: &str, reason: &str) {
        if self.add_fallback(what, reason) {
            crate::log!(warn, what, reason, "fallback");
        }
    }

    /// Records why a run ended early. The caller has the error, so it is not logged.
    pub fn record_end(&mut self, what: &str, error: &Error) {
        self.add_fallback(what, &error.to_string());
    }

    /// Counts a fallback; returns whether it is the first of its kind.
    fn add_fallback(&mut self, what: &str, reason: &str) -> bool {
        if let Some(fallback) = self
            .fallbacks
            .iter_mut()
            .find(|fallback| fallback.what == what && fallback.reason == reason)
        {
            fallback.count += 1;
            return false;
        }
        self.fallbacks.push(Fallback {
            what: what.to_owned(),
            reason: reason.to_owned(),
            count: 1,
        });
        true
    }

    /// Records an injected fault.
    pub fn record_injected_fault(&mut self, fault: InjectedFault) {
        self.injected.push(fault);
    }

    /// Records a recovery after a failure.
    pub fn recovered(&mut self, recovery: Recovery) {
        let Recovery {
            tick,
            resumed_at_tick,
            ticks_lost,
            ..
        } = recovery;
        crate::log!(
            warn,
            tick,
            resumed_at_tick,
            ticks_lost,
            from = recovery.from,
            to = recovery.to,
            reason = recovery.reason,
            "recovery"
        );
        self.recovery_count += 1;
        if self.recoveries.len() < MAX_LISTED_RECOVERIES {
            self.recoveries.push(recovery);
        }
    }

    /// Keeps the launch times of a traced run.
    pub fn traced(&mut self, launches: Vec<LaunchTime>) {
        self.launches = Some(launches);
    }

    /// Runs counted so far.
    pub fn runs(&self) -> u64 {
        self.runs
    }

    /// Sums so far.
    pub fn totals(&self) -> &RunStats {
        &self.totals
    }

    /// Host times of the runs so far.
    pub fn latency(&self) -> &LatencyHistogram {
        &self.latency
    }

    /// The receipt of everything so far; the session continues.
    pub fn receipt(&self) -> Receipt {
        Receipt {
            schema: RECEIPT_SCHEMA,
            tectum: env!("CARGO_PKG_VERSION"),
            device: self.device.info().clone(),
            other_devices: self.other_devices.clone(),
            code: self.code.iter().cloned().collect(),
            inputs: self.inputs.clone(),
            runs: self.runs,
            totals: self.totals,
            latency_ms: self.latency.percentiles(),
            pool: self.device.pool().stats(),
            energy_j: self.energy_j(),
            utilisation: self.utilisation(),
            fallbacks: self.fallbacks.clone(),
            injected: self.injected.clone(),
            recovery_count: self.recovery_count,
            recoveries: self.recoveries.clone(),
            launches: self.launches.clone(),
            trace: self.trace,
            workload: self.workload.clone(),
        }
    }

    fn energy_j(&self) -> Option<f64> {
        let long_enough = self.began.0.elapsed() >= MIN_METERED_DURATION;
        let now_j = self.device.readings().filter(|_| long_enough)?.energy_j?;
        Some(now_j - self.energy_j?)
    }

    fn utilisation(&self) -> Option<f64> {
        let sensors = self
            .device
            .backend()
            .sensors()
            .filter(|_| self.began.0.elapsed() >= MIN_METERED_DURATION)?;
        sensors.mean_utilisation(self.began.1)
    }
}
