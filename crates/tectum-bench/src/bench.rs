//! Benchmarks: suites of rows, each compared with the roofline and the peers of the same run,
//! stored as records that can be compared.

mod check;
mod convolution_rows;
mod core_rows;
mod harness;
mod interval;
mod machine;
mod peer;
mod program_rows;
mod record;
mod sizes;
mod speedup;
#[cfg(test)]
mod tests;
mod threads;

use serde::{Deserialize, Serialize};
use tectum::kernel::random;
use tectum::{CodeObject, DType, Device, Executable, Plan, PlanBuilder, Result, RunStats, View};

pub use self::check::{Basis, Comparison, Slowdown, compare};
pub use self::harness::{Options, PeerChoice, run};
pub use self::interval::{CONFIDENCE, Interval};
pub use self::machine::Machine;
pub use self::program_rows::predecessor_seconds;
pub use self::record::{BenchRecord, DeviceBrief, PeerBrief, PeerRow, Planned, RECORD_SCHEMA, Row};
pub use self::sizes::{SizeRow, SizeTable, Timing, sizes};
pub use self::speedup::{Speedup, Speedups, speedups};
pub use self::threads::OnThreads;

/// What a row is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Roofline {
    /// The rate of a large copy, in bytes read plus written.
    Copy,
    /// The rate of a large matrix product, in operations.
    Gemm,
    /// The rate of a large product of int8 matrices, in operations.
    GemmI8,
}

/// A named list of cases. Later suites, of this crate and of others, are further values of this
/// type.
pub struct Suite {
    /// The first part of every key.
    pub name: &'static str,
    /// One line for `--help`.
    pub about: &'static str,
    /// The cases for a device.
    pub cases: fn(&Device) -> Vec<Case>,
}

/// One row before it is measured.
pub struct Case {
    /// Dotted name: suite, operation, shape. Peers know it by this name.
    pub key: String,
    /// What the rate is compared with.
    pub roofline: Roofline,
    /// Threads of the work and its roofline; none for all threads of the device.
    pub threads: Option<usize>,
    /// Bytes read and written, or operations, of one run.
    pub amount: f64,
    /// Prepares the work on a device, operands filled.
    pub prepare: Box<Prepare>,
    /// Our own alternative implementations, timed in the same rounds.
    pub alternatives: Vec<Alternative>,
}

/// An alternative implementation of a case's work.
pub struct Alternative {
    /// Its name in the row, next to the names of peers.
    pub name: String,
    /// Prepares it as [`Case::prepare`] does.
    pub prepare: Box<Prepare>,
}

/// Makes a case's work.
pub type Prepare = dyn Fn(&Device) -> Result<Box<dyn Workload>>;

/// Work that can be timed.
pub trait Workload {
    /// Does the work once and waits for its end.
    ///
    /// # Errors
    /// What the device reports.
    fn run(&mut self) -> Result<RunStats>;

    /// The code objects that it launches: kernel and content hash.
    fn code(&self) -> &[CodeObject];
}

impl Workload for Executable {
    fn run(&mut self) -> Result<RunStats> {
        Executable::run(self)
    }

    fn code(&self) -> &[CodeObject] {
        Executable::code(self)
    }
}

/// The suites of this crate.
pub fn suites() -> Vec<Suite> {
    vec![
        Suite {
            name: "core",
            about: "every kernel of the core",
            cases: core_cases,
        },
        Suite {
            name: "convolution",
            about: "layers of convolutional networks, on one thread and on two",
            cases: convolution_rows::cases,
        },
        Suite {
            name: "programs",
            about: "lane-level programs, and what a dispatch of one costs",
            cases: program_rows::cases,
        },
    ]
}

fn core_cases(device: &Device) -> Vec<Case> {
    let has = |work: &Work| {
        work.operands
            .iter()
            .all(|(dtype, _)| device.info().dtypes.contains(dtype))
    };
    core_rows::rows(device.info().software)
        .into_iter()
        .filter(has)
        .map(|work| Case::of("core", work))
        .collect()
}

/// Records an operation on its operands.
type Record = dyn Fn(&mut PlanBuilder, &[View]) -> Result<()>;

/// A row of one recorded operation.
struct Work {
    name: &'static str,
    shape: String,
    roofline: Roofline,
    /// Bytes read and written, or operations, of one run.
    amount: f64,
    /// Element type and length of each operand; operands start with random numbers.
    operands: Vec<(DType, usize)>,
    /// Integers start below this.
    below: u32,
    record: Box<Record>,
}

impl Case {
    fn of(suite: &str, work: Work) -> Self {
        Self {
            key: format!("{suite}.{}.{}", work.name, work.shape),
            roofline: work.roofline,
            threads: None,
            amount: work.amount,
            prepare: Box::new(move |device| Ok(Box::new(prepare(device, &work)?))),
            alternatives: Vec::new(),
        }
    }
}

fn prepare(device: &Device, work: &Work) -> Result<Executable> {
    let (plan, views) = plan_of(work)?;
    let mut run = plan.compile(device)?;
    fill_all(&mut run, &views, work.below)?;
    Ok(run)
}

/// The plan of a row and its operands.
fn plan_of(work: &Work) -> Result<(Plan, Vec<View>)> {
    let mut plan = PlanBuilder::new(work.name);
    let views: Vec<View> = work
        .operands
        .iter()
        .map(|(dtype, len)| plan.state("operand", *dtype, *len))
        .collect();
    (work.record)(&mut plan, &views)?;
    Ok((plan.finish()?, views))
}

fn fill_all(run: &mut Executable, views: &[View], below: u32) -> Result<()> {
    views
        .iter()
        .zip(0..)
        .try_for_each(|(view, stream)| fill(run, *view, stream, below))
}

/// Uniform floats in (0, 1], or integers below `below`.
fn fill(run: &mut Executable, view: View, stream: u32, below: u32) -> Result<()> {
    let blocks = (0..view.len().div_ceil(4) as u32)
        .flat_map(|block| random::philox([block, stream, 0, 0], [0, 0]));
    let words: Vec<u32> = match view.dtype() {
        DType::F64 => {
            let numbers: Vec<f64> = blocks
                .take(view.len())
                .map(|word| f64::from(1.0 - random::uniform(word)))
                .collect();
            return run.write_state(view, &numbers);
        }
        DType::F32 => blocks
            .take(view.len())
            .map(|word| (1.0 - random::uniform(word)).to_bits())
            .collect(),
        DType::U32 | DType::I32 => blocks.take(view.len()).map(|word| word % below).collect(),
    };
    run.write_state(view.reinterpret(DType::U32), &words)
}
