//! The core's benchmark: every kernel as a share of the copy bandwidth or matrix-product rate measured in the same run.

mod core_rows;

use std::collections::BTreeSet;
use std::time::Instant;

use serde::Serialize;

use crate::device::Device;
use crate::dtype::DType;
use crate::error::Result;
use crate::kernel::{self, random};
use crate::measure::Measurement;
use crate::plan::{Executable, PlanBuilder, View};
use crate::receipt::{Receipt, Session};

/// What a row is held against.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Roofline {
    /// The rate of a large copy, in bytes read plus written.
    Copy,
    /// The rate of a large matrix product, in operations.
    Gemm,
}

/// One measured operation.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// Dotted name: suite, operation, shape.
    pub key: String,
    /// The kernels launched.
    pub kernels: Vec<String>,
    /// Median time of a run on the host's clock, in seconds.
    pub median_s: f64,
    /// Half the distance between the quartiles over the median.
    pub spread: f64,
    /// Runs timed.
    pub repeats: usize,
    /// Bytes (or operations) each second.
    pub rate: f64,
    /// What the rate counts.
    pub roofline: Roofline,
    /// The rate as percent of the roofline's.
    pub percent_of_roofline: f64,
}

/// A suite's rows with the measured rooflines and the receipt.
#[derive(Debug, Clone, Serialize)]
pub struct BenchReport {
    /// The suite.
    pub suite: &'static str,
    /// The rooflines, measured before and after the rows; the better of the two counts.
    pub measured: Measurement,
    /// One row for each operation.
    pub rows: Vec<Row>,
    /// Kernels of this crate without a row.
    pub kernels_missed: Vec<String>,
    /// Where it ran, with which code.
    pub receipt: Receipt,
}

/// Records an operation on its operands.
type Record = dyn Fn(&mut PlanBuilder, &[View]) -> Result<()>;

/// A row before it is measured.
struct Work {
    name: &'static str,
    shape: String,
    roofline: Roofline,
    /// Bytes read and written, or operations, of one run.
    amount: f64,
    /// Element type and length of each operand; operands start with random numbers (words under 2 for integers).
    operands: Vec<(DType, usize)>,
    record: Box<Record>,
}

/// Least time spent on each row.
const ROW_SECONDS: f64 = 0.25;
const MIN_REPEATS: usize = 7;

/// Measures the core suite.
///
/// # Errors
/// What the device reports.
pub fn core(device: &Device, mut progress: impl FnMut(&str)) -> Result<BenchReport> {
    let mut session = Session::new(device);
    let before = device.measure()?;
    let mut covered = BTreeSet::new();
    let mut rows = Vec::new();
    for work in core_rows::rows(device.info().software) {
        progress(work.name);
        rows.push(measure(device, &work, &mut session, &mut covered)?);
    }
    let measured = better(before, device.measure()?);
    for row in &mut rows {
        let roofline = match row.roofline {
            Roofline::Copy => measured.copy_bytes_per_s,
            Roofline::Gemm => measured.gemm_flop_per_s,
        };
        row.percent_of_roofline = 100.0 * row.rate / roofline;
    }
    let missed = kernel::all().into_iter().map(|kernel| kernel.name().to_owned()).filter(|name| !covered.contains(name));
    Ok(BenchReport { suite: "core", measured, rows, kernels_missed: missed.collect(), receipt: session.receipt() })
}

fn better(a: Measurement, b: Measurement) -> Measurement {
    let most = |a: Option<f64>, b: Option<f64>| a.zip(b).map(|(a, b)| a.max(b));
    Measurement {
        copy_bytes_per_s: a.copy_bytes_per_s.max(b.copy_bytes_per_s),
        upload_bytes_per_s: most(a.upload_bytes_per_s, b.upload_bytes_per_s),
        download_bytes_per_s: most(a.download_bytes_per_s, b.download_bytes_per_s),
        launch_s: a.launch_s.min(b.launch_s),
        gemm_flop_per_s: a.gemm_flop_per_s.max(b.gemm_flop_per_s),
    }
}

fn measure(device: &Device, work: &Work, session: &mut Session, covered: &mut BTreeSet<String>) -> Result<Row> {
    let mut plan = PlanBuilder::new(work.name);
    let views: Vec<View> = work.operands.iter().map(|(dtype, len)| plan.state("operand", *dtype, *len)).collect();
    (work.record)(&mut plan, &views)?;
    let plan = plan.finish()?;
    let mut kernels: Vec<String> = plan.kernels().map(|kernel| kernel.name().to_owned()).collect();
    kernels.dedup();
    covered.extend(kernels.iter().cloned());
    let mut run = plan.compile(device)?;
    for (index, view) in views.iter().enumerate() {
        fill(&mut run, *view, index as u32)?;
    }
    session.uses(&run);
    run.run()?;
    let mut times = Vec::new();
    let start = Instant::now();
    while times.len() < MIN_REPEATS || start.elapsed().as_secs_f64() < ROW_SECONDS {
        let start = Instant::now();
        let stats = run.run()?;
        let elapsed = start.elapsed();
        session.record(&stats, elapsed.as_nanos() as u64);
        times.push(elapsed.as_secs_f64());
    }
    times.sort_by(f64::total_cmp);
    let quantile = |q: f64| times[((times.len() - 1) as f64 * q) as usize];
    let median_s = quantile(0.5);
    Ok(Row {
        key: format!("core.{}.{}", work.name, work.shape),
        kernels,
        median_s,
        spread: (quantile(0.75) - quantile(0.25)) / (2.0 * median_s),
        repeats: times.len(),
        rate: work.amount / median_s,
        roofline: work.roofline,
        percent_of_roofline: 0.0,
    })
}

/// Uniform floats in (0, 1], or words of 0 and 1.
fn fill(run: &mut Executable, view: View, stream: u32) -> Result<()> {
    let blocks = (0..view.len().div_ceil(4) as u32).flat_map(|block| random::philox([block, stream, 0, 0], [0, 0]));
    let words: Vec<u32> = match view.dtype() {
        DType::F32 => blocks.take(view.len()).map(|word| (1.0 - random::uniform(word)).to_bits()).collect(),
        DType::U32 | DType::I32 => blocks.take(view.len()).map(|word| word & 1).collect(),
    };
    run.write_state(view.reinterpret(DType::U32), &words)
}
