//! Measuring: rounds of roofline, row and peers in turn, so that the machine's noise affects all of
//! them.
//!
//! A row is measured in several passes over the whole suite, with operands and peers rebuilt in
//! each: the effect of a process's memory layout or a busy neighbour on a row for some seconds
//! shows as spread, not as a wrong median.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tectum::internal::Reference;
use tectum::{Device, Error, Result, Session, Watch, WorkProgress};

use super::interval::median;
use super::peer::{self, Peer};
use super::record::{
    BenchRecord, DeviceBrief, PeerBrief, PeerRow, Planned, RECORD_SCHEMA, Row, best_roofline,
};
use super::{Alternative, Case, Machine, OnThreads, Roofline, Suite, Workload, machine};

/// What to measure and how long.
#[derive(Debug, Clone)]
pub struct Options {
    /// Rounds of each row.
    pub rounds: usize,
    /// Only rows whose key contains one of these; all if there are none.
    pub filters: Vec<String>,
    /// The peers of the rows.
    pub peers: PeerChoice,
    /// The folder of peers, if there is one here.
    pub peer_folder: Option<PathBuf>,
    /// The commit that is measured.
    pub commit: String,
    /// What a reader should know.
    pub note: Option<String>,
}

/// Which peers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerChoice {
    /// Every one that the folder has.
    All,
    /// These; none if the list is empty.
    Named(Vec<String>),
}

/// Passes over the suite; the rounds are distributed over them.
const PASSES: usize = 3;
/// Time and runs of a row in a round.
const ROW_SECONDS: f64 = 0.03;
const ROW_RUNS: usize = 3;
/// Time and runs of the roofline in a round.
const ROOFLINE_SECONDS: f64 = 0.01;
const ROOFLINE_RUNS: usize = 3;
/// A run longer than this is timed once a round.
const SLOW_SECONDS: f64 = 0.1;
/// A pause at every change of process: OpenBLAS's idle threads spin for 2²⁶ cycles, OpenMP's for
/// less, and would take a core from the next run.
const SETTLE_TIME: Duration = Duration::from_millis(50);

/// Measures suites on a device.
///
/// If the watch, which sees each row before it is measured, breaks the run off, the record has the
/// rows that were measured by then and is marked as incomplete ([`BenchRecord::interrupted`]).
///
/// # Errors
/// `Invalid` if no key passes the filters, a peer is unknown or there are no rounds; what the
/// device reports. A peer that fails is skipped with its reason. `Cancelled` if the watch breaks
/// it off before the first row.
pub fn run(
    device: &Device,
    suites: &[Suite],
    options: &Options,
    watch: &mut Watch<'_>,
) -> Result<BenchRecord> {
    if options.rounds == 0 {
        return Err(Error::invalid("bench: rounds is 0, needs at least 1"));
    }
    let machine = Machine::here()?;
    let cases = chosen(device, suites, &options.filters)?;
    let keys: Vec<&str> = cases.iter().map(|case| case.key.as_str()).collect();
    let (mut peers, mut briefs) = start_peers(device, options, machine.threads, &keys)?;
    let mut bench = Bench {
        device,
        session: Session::new(device),
        references: References::default(),
    };
    let mut rows: Vec<Row> = cases.iter().map(|case| new_row(case, &peers)).collect();
    let mut measured = device.measure()?;
    let passes = PASSES.min(options.rounds);
    let mut interrupted = None;
    'passes: for pass in 0..passes {
        let rounds = options.rounds / passes + usize::from(pass < options.rounds % passes);
        for (index, (case, row)) in cases.iter().zip(&mut rows).enumerate() {
            let (done, total) = (
                (pass * cases.len() + index) as u64,
                (passes * cases.len()) as u64,
            );
            let progress = WorkProgress {
                stage: &case.key,
                done,
                total,
            };
            match progress.report(watch) {
                Err(_) if done > 0 => {
                    interrupted = Some(Planned {
                        rows: cases.len(),
                        rounds: options.rounds,
                    });
                    break 'passes;
                }
                outcome => outcome?,
            }
            bench.pass(case, row, &mut peers, rounds)?;
        }
        measured = measured.better(device.measure()?);
    }
    rows.retain(|row| !row.rounds_s.is_empty());
    for place in 0..rows.len() {
        let best = best_roofline(&rows, &rows[place], &measured);
        rows[place].summarize(best);
    }
    let is_whole_core = interrupted.is_none()
        && options.filters.is_empty()
        && suites.iter().any(|suite| suite.name == "core");
    briefs.extend(peers.iter().map(|peer| peer.brief.clone()));
    briefs.sort_by(|a, b| a.name.cmp(&b.name));
    let receipt = serde_json::to_value(bench.session.receipt());
    Ok(BenchRecord {
        schema: RECORD_SCHEMA.to_owned(),
        date: machine::today(),
        commit: options.commit.clone(),
        note: options.note.clone(),
        interrupted,
        suites: suites.iter().map(|suite| suite.name.to_owned()).collect(),
        machine,
        device: DeviceBrief::of(device),
        peers: briefs,
        measured,
        kernels_missed: if is_whole_core {
            missed(&rows)
        } else {
            Vec::new()
        },
        rows,
        receipt: receipt
            .map_err(|source| Error::data("receipt: cannot be encoded").with_source(source))?,
        runs: Vec::new(),
    })
}

fn chosen(device: &Device, suites: &[Suite], filters: &[String]) -> Result<Vec<Case>> {
    let mut cases: Vec<Case> = suites
        .iter()
        .flat_map(|suite| (suite.cases)(device))
        .collect();
    cases.retain(|case| {
        filters.is_empty()
            || filters
                .iter()
                .any(|filter| case.key.contains(filter.as_str()))
    });
    if cases.is_empty() {
        return Err(Error::invalid(format!(
            "bench: no row's key contains {}",
            filters.join(" or ")
        )));
    }
    Ok(cases)
}

/// The peers that run, and those that do not with the reason.
fn start_peers(
    device: &Device,
    options: &Options,
    threads: u32,
    keys: &[&str],
) -> Result<(Vec<Peer>, Vec<PeerBrief>)> {
    let absent = |name: &str, reason: String| PeerBrief {
        name: name.to_owned(),
        skipped: Some(reason),
        versions: [].into(),
        threads: None,
    };
    let Some(folder) = options.peer_folder.as_deref() else {
        let names = match &options.peers {
            PeerChoice::All => vec!["all".to_owned()],
            PeerChoice::Named(names) => names.clone(),
        };
        let reason =
            "bench/peers was not found here or in a parent folder; name it with --peer-dir";
        return Ok((
            Vec::new(),
            names
                .iter()
                .map(|name| absent(name, reason.to_owned()))
                .collect(),
        ));
    };
    let api = device.info().id.split(':').next().unwrap_or_default();
    let (mut peers, mut skipped) = (Vec::new(), Vec::new());
    for name in selected_peers(folder, &options.peers)? {
        match Peer::start(folder, &name, api, threads, keys) {
            Ok(peer) => peers.push(peer),
            Err(reason) => skipped.push(absent(&name, reason)),
        }
    }
    Ok((peers, skipped))
}

fn selected_peers(folder: &Path, choice: &PeerChoice) -> Result<Vec<String>> {
    let known = peer::names(folder);
    let PeerChoice::Named(names) = choice else {
        return Ok(known);
    };
    match names.iter().find(|name| !known.contains(name)) {
        Some(name) => Err(Error::invalid(format!(
            "peer \"{name}\" is unknown; known: {}",
            known.join(", ")
        ))),
        None => Ok(names.clone()),
    }
}

fn new_row(case: &Case, peers: &[Peer]) -> Row {
    let new = |name: &str, call: &str| PeerRow {
        peer: name.to_owned(),
        call: call.to_owned(),
        rounds_s: Vec::new(),
        median_s: None,
        ratio: None,
        skipped: None,
    };
    let own = |other: &Alternative| new(&other.name, "tectum");
    let call = |peer: &Peer| {
        peer.calls
            .get(&case.key)
            .map(|call| new(&peer.brief.name, call))
    };
    Row {
        key: case.key.clone(),
        kernels: Vec::new(),
        median_s: 0.0,
        spread: 0.0,
        repeats: 0,
        amount: case.amount,
        rate: 0.0,
        roofline: case.roofline,
        threads: case.threads,
        percent_of_roofline: 0.0,
        rounds_s: Vec::new(),
        roofline_rounds: Vec::new(),
        peers: case
            .alternatives
            .iter()
            .map(own)
            .chain(peers.iter().filter_map(call))
            .collect(),
    }
}

fn missed(rows: &[Row]) -> Vec<String> {
    let covered: BTreeSet<&str> = rows
        .iter()
        .flat_map(|row| &row.kernels)
        .map(String::as_str)
        .collect();
    tectum::operation::kernels()
        .iter()
        .map(|kernel| kernel.name().to_owned())
        .filter(|name| !covered.contains(name.as_str()))
        .collect()
}

/// The rooflines that rows need, each on its threads.
#[derive(Default)]
struct References(Vec<RunningRoofline>);

struct RunningRoofline {
    kind: Roofline,
    threads: Option<usize>,
    work: Box<dyn Workload>,
    /// Bytes or operations of a run.
    amount: f64,
}

impl References {
    /// The work of a roofline and its bytes or operations.
    fn of(
        &mut self,
        device: &Device,
        kind: Roofline,
        threads: Option<usize>,
    ) -> Result<(&mut dyn Workload, f64)> {
        let place = match self
            .0
            .iter()
            .position(|known| (known.kind, known.threads) == (kind, threads))
        {
            Some(place) => place,
            None => {
                let mut amount = 0.0;
                let mut make = || {
                    let reference = match kind {
                        Roofline::Copy => Reference::copy(device)?,
                        Roofline::Gemm => Reference::gemm(device)?,
                        Roofline::GemmI8 => Reference::gemm_i8(device)?,
                    };
                    amount = reference.amount;
                    Ok(reference.executable)
                };
                let work: Box<dyn Workload> = match threads {
                    Some(threads) => Box::new(OnThreads::new(threads, make)?),
                    None => Box::new(make()?),
                };
                self.0.push(RunningRoofline {
                    kind,
                    threads,
                    work,
                    amount,
                });
                self.0.len() - 1
            }
        };
        let known = &mut self.0[place];
        Ok((&mut *known.work, known.amount))
    }
}

struct Bench<'d> {
    device: &'d Device,
    session: Session,
    references: References,
}

/// A peer's place in a row: index among the peers, index among the row's.
type PeerSlot = (usize, usize);

impl Bench<'_> {
    fn pass(
        &mut self,
        case: &Case,
        row: &mut Row,
        peers: &mut [Peer],
        rounds: usize,
    ) -> Result<()> {
        let mut work = (case.prepare)(self.device)?;
        self.session.uses_code(work.code());
        if row.kernels.is_empty() {
            row.kernels = work.code().iter().map(|code| code.kernel.clone()).collect();
        }
        let mut others = Vec::new();
        for other in &case.alternatives {
            others.push((other.prepare)(self.device)?);
        }
        let mut places = prepared(row, peers);
        for round in 0..rounds {
            // The first of one round is the last of the next, so that a clock drift favours none.
            let ours_first = (row.rounds_s.len() + round).is_multiple_of(2);
            if ours_first {
                self.time_device(case, row, &mut *work, !places.is_empty())?;
            }
            for (other, time_peer) in others.iter_mut().zip(&mut row.peers) {
                time_peer.rounds_s.push(median(&self.times(&mut **other)?));
            }
            places.retain(|place| time_peer(row, peers, *place));
            if !ours_first {
                self.time_device(case, row, &mut *work, !places.is_empty())?;
                places.reverse();
            }
        }
        Ok(())
    }

    /// The roofline, then the row.
    fn time_device(
        &mut self,
        case: &Case,
        row: &mut Row,
        work: &mut dyn Workload,
        has_peers: bool,
    ) -> Result<()> {
        if has_peers {
            std::thread::sleep(SETTLE_TIME);
        }
        let (reference, amount) = self
            .references
            .of(self.device, case.roofline, case.threads)?;
        let reference_s = batch(ROOFLINE_SECONDS, ROOFLINE_RUNS, || {
            reference.run().map(|_| ())
        })?;
        row.roofline_rounds.push(amount / median(&reference_s));
        let times_s = self.times(work)?;
        row.repeats += times_s.len();
        row.rounds_s.push(median(&times_s));
        Ok(())
    }

    /// A round of our own.
    fn times(&mut self, work: &mut dyn Workload) -> Result<Vec<f64>> {
        batch(ROW_SECONDS, ROW_RUNS, || {
            let start = Instant::now();
            let stats = work.run()?;
            self.session
                .record(&stats, start.elapsed().as_nanos() as u64);
            Ok(())
        })
    }
}

/// The places of the peers that are ready for a row.
fn prepared(row: &mut Row, peers: &mut [Peer]) -> Vec<PeerSlot> {
    let mut places = Vec::new();
    for (slot, time_peer) in row
        .peers
        .iter_mut()
        .enumerate()
        .filter(|(_, time_peer)| time_peer.skipped.is_none())
    {
        let Some(index) = peers
            .iter()
            .position(|peer| peer.brief.name == time_peer.peer)
        else {
            continue;
        };
        match peers[index].prepare(&row.key) {
            Ok(call) => {
                time_peer.call = call.unwrap_or_else(|| std::mem::take(&mut time_peer.call));
                places.push((index, slot));
            }
            Err(reason) => time_peer.skipped = Some(reason),
        }
    }
    places
}

/// A peer's round; returns whether the peer continues.
fn time_peer(row: &mut Row, peers: &mut [Peer], (index, slot): PeerSlot) -> bool {
    std::thread::sleep(SETTLE_TIME);
    let theirs = &mut row.peers[slot];
    match peers[index].time(ROW_SECONDS, ROW_RUNS) {
        Ok(times_s) => theirs.rounds_s.push(median(&times_s)),
        Err(reason) => theirs.skipped = Some(reason),
    }
    theirs.skipped.is_none()
}

/// Times of runs after one that is not timed: enough runs and time, but only one run where it is
/// slow.
pub(super) fn batch(
    seconds: f64,
    least: usize,
    mut run: impl FnMut() -> Result<()>,
) -> Result<Vec<f64>> {
    run()?;
    let begin = Instant::now();
    let mut times = Vec::new();
    loop {
        let start = Instant::now();
        run()?;
        times.push(start.elapsed().as_secs_f64());
        let elapsed = begin.elapsed().as_secs_f64();
        if elapsed >= SLOW_SECONDS || (elapsed >= seconds && times.len() >= least) {
            return Ok(times);
        }
    }
}
