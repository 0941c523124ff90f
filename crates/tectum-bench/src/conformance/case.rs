//! One case: inputs, a recorded operation, expected outputs, and the comparison.

use std::collections::BTreeSet;
use std::time::Instant;

use tectum::kernel::random;
use tectum::{
    CodeObject, ContentHash, DType, Device, Error, ErrorKind, PlanBuilder, Result, RunStats,
    Session, View,
};

/// What outputs hold before a run: a NaN that no operation produces, an impossible index.
const POISON: u32 = 0x7fed_cba9;
/// The same as an f64: 1.6e308.
const POISON_DOUBLE: u64 = (POISON as u64) << 32 | POISON as u64;
/// Elements of poison before and after each output.
const GUARD: usize = 64;
/// Devices may flush numbers below the smallest normal one, and our functions do: this error is
/// allowed everywhere.
const FLUSH: f64 = f32::MIN_POSITIVE as f64 * 16.0;
/// The same for f64.
const FLUSH_DOUBLE: f64 = f64::MIN_POSITIVE * 16.0;

/// Host data of one of the element types.
#[derive(Debug, Clone)]
pub enum Data {
    /// Floats.
    F32(Vec<f32>),
    /// Unsigned words.
    U32(Vec<u32>),
    /// Floats of double width.
    F64(Vec<f64>),
}

impl Data {
    fn dtype(&self) -> DType {
        match self {
            Data::F32(_) => DType::F32,
            Data::U32(_) => DType::U32,
            Data::F64(_) => DType::F64,
        }
    }

    fn words(&self) -> &[u32] {
        match self {
            Data::F32(data) => bytemuck::cast_slice(data),
            Data::U32(data) => data,
            Data::F64(data) => bytemuck::cast_slice(data),
        }
    }

    fn len(&self) -> usize {
        self.words().len() * 4 / self.dtype().bytes()
    }
}

/// The expected value of one element of a float output, and its tolerance.
#[derive(Debug, Clone, Copy)]
pub struct Expected {
    /// The float64 reference.
    pub value: f64,
    /// The absolute error allowed.
    pub bound: f64,
}

/// An output with what it holds before (in-place operations) and should hold after.
#[derive(Debug, Clone)]
pub enum Output {
    /// Floats within bounds.
    Near(Vec<Expected>),
    /// Floats of double width within bounds, which include the rounding of the reference.
    NearDouble(Vec<Expected>),
    /// Floats as in [`Output::Near`], computed in place from these values.
    NearInPlace(Vec<f32>, Vec<Expected>),
    /// Words, exactly, computed in place from those before.
    ExactInPlace(Vec<u32>, Vec<u32>),
    /// Words, exactly; float outputs by their bits.
    Exact(Data),
    /// Words of which the first are exact and the rest keep the poison.
    ExactPrefix(Vec<u32>, usize),
}

impl Output {
    fn len(&self) -> usize {
        match self {
            Output::Near(expected)
            | Output::NearInPlace(_, expected)
            | Output::NearDouble(expected) => expected.len(),
            Output::Exact(data) => data.len(),
            Output::ExactInPlace(_, words) => words.len(),
            Output::ExactPrefix(_, len) => *len,
        }
    }

    fn dtype(&self) -> DType {
        match self {
            Output::Near(_) | Output::NearInPlace(..) => DType::F32,
            Output::ExactInPlace(..) => DType::U32,
            Output::Exact(data) => data.dtype(),
            Output::ExactPrefix(..) => DType::U32,
            Output::NearDouble(_) => DType::F64,
        }
    }

    /// Compares; returns the greatest error as a share of its bound.
    fn compare(&self, got: &[u32]) -> std::result::Result<f64, String> {
        match self {
            Output::Near(expected) | Output::NearInPlace(_, expected) => {
                let mut worst = 0.0f64;
                for (index, (expected, &got)) in expected.iter().zip(got).enumerate() {
                    worst = worst.max(
                        expected
                            .share(got)
                            .map_err(|fault| format!("element {index}: {fault}"))?,
                    );
                }
                Ok(worst)
            }
            Output::NearDouble(expected) => {
                let got: &[f64] = bytemuck::cast_slice(got);
                let mut worst = 0.0f64;
                for (index, (expected, &got)) in expected.iter().zip(got).enumerate() {
                    worst = worst.max(
                        expected
                            .share_double(got)
                            .map_err(|fault| format!("element {index}: {fault}"))?,
                    );
                }
                Ok(worst)
            }
            Output::Exact(data) => exact(data.words(), got),
            Output::ExactInPlace(_, words) => exact(words, got),
            Output::ExactPrefix(words, len) => {
                let poisoned: Vec<u32> = words
                    .iter()
                    .copied()
                    .chain(std::iter::repeat(POISON))
                    .take(*len)
                    .collect();
                exact(&poisoned, got)
            }
        }
    }
}

impl Expected {
    /// Exactly this value (or a flushed zero).
    pub fn exactly(value: f64) -> Self {
        Self { value, bound: 0.0 }
    }

    fn share(&self, got: u32) -> std::result::Result<f64, String> {
        let float = f32::from_bits(got);
        let fault = || {
            Err(format!(
                "got {float:?} (0x{got:08x}), expected {:?} ± {:e}",
                self.value, self.bound
            ))
        };
        if got == POISON {
            return Err(format!("was never written, expected {:?}", self.value));
        }
        // A reference beyond f32's range is that infinity; one at its edge may round either way.
        let rounded = self.value as f32;
        if rounded.is_nan() || rounded.is_infinite() {
            let edge = self.value.is_finite()
                && self.value.abs() < f64::from(f32::MAX) * (1.0 + 1e-5)
                && float.abs() == f32::MAX;
            let same =
                (rounded.is_nan() && (got & 0x7fff_ffff) > 0x7f80_0000) || rounded.to_bits() == got;
            return if same || edge { Ok(0.0) } else { fault() };
        }
        let error = (f64::from(float) - self.value).abs();
        if error <= FLUSH {
            return Ok(0.0);
        }
        if error <= self.bound {
            Ok(error / self.bound)
        } else {
            fault()
        }
    }
}

impl Expected {
    /// As `share`, for an f64.
    fn share_double(&self, got: f64) -> std::result::Result<f64, String> {
        let fault = || {
            Err(format!(
                "got {got:?} (0x{:016x}), expected {:?} ± {:e}",
                got.to_bits(),
                self.value,
                self.bound
            ))
        };
        if got.to_bits() == POISON_DOUBLE {
            return Err(format!("was never written, expected {:?}", self.value));
        }
        if !self.value.is_finite() {
            let same = (self.value.is_nan() && got.is_nan()) || self.value == got;
            return if same { Ok(0.0) } else { fault() };
        }
        let error = (got - self.value).abs();
        if error <= FLUSH_DOUBLE {
            return Ok(0.0);
        }
        if error <= self.bound {
            Ok(error / self.bound)
        } else {
            fault()
        }
    }
}

fn exact(expected: &[u32], got: &[u32]) -> std::result::Result<f64, String> {
    match expected.iter().zip(got).position(|(a, b)| a != b) {
        None => Ok(0.0),
        Some(index) => Err(format!(
            "element {index}: got 0x{:08x}, expected 0x{:08x}",
            got[index], expected[index]
        )),
    }
}

/// Where a case runs, and the log of what ran.
pub struct CaseContext<'a> {
    /// The device.
    pub device: &'a Device,
    /// The session that counts runs and names code.
    pub session: &'a mut Session,
    /// Names of the kernels launched so far.
    pub launched: &'a mut BTreeSet<String>,
}

impl CaseContext<'_> {
    /// Records the code of something that runs by itself, such as a simulation.
    pub fn uses(&mut self, code: &[CodeObject]) {
        self.session.uses_code(code);
        self.launched
            .extend(code.iter().map(|code| code.kernel.clone()));
    }

    /// Counts a run that began at the given time.
    pub fn record(&mut self, stats: &RunStats, start: Instant) {
        self.session
            .record(stats, start.elapsed().as_nanos() as u64);
    }
}

type Record = dyn Fn(&mut PlanBuilder, &[View], &[View]) -> Result<()>;
type RunCase = dyn Fn(&mut CaseContext<'_>) -> Result<f64>;

/// What a case does.
enum Work {
    /// Runs an operation once and compares its outputs.
    Operation {
        inputs: Vec<Data>,
        outputs: Vec<Output>,
        record: Box<Record>,
    },
    /// Runs and compares by itself.
    Run { elements: usize, run: Box<RunCase> },
}

/// One case.
pub struct Case {
    /// The shape and whatever else distinguishes it from the other cases.
    pub shape: String,
    work: Work,
}

impl Case {
    /// A case of an operation: host data, one plan input each; expected outputs; and a function
    /// that records the operation, given views of both. For an empty shape it records what the
    /// operation launches then, often nothing: a launch of no groups is refused.
    pub fn new(
        shape: impl Into<String>,
        inputs: Vec<Data>,
        outputs: Vec<Output>,
        record: impl Fn(&mut PlanBuilder, &[View], &[View]) -> Result<()> + 'static,
    ) -> Self {
        Self {
            shape: shape.into(),
            work: Work::Operation {
                inputs,
                outputs,
                record: Box::new(record),
            },
        }
    }

    /// A case of something with a state of this many elements. The function runs it, returns the
    /// greatest error as a share of its bound, and reports an error beyond the bound as a
    /// `Mismatch`.
    pub fn of_run(
        shape: impl Into<String>,
        elements: usize,
        run: impl Fn(&mut CaseContext<'_>) -> Result<f64> + 'static,
    ) -> Self {
        Self {
            shape: shape.into(),
            work: Work::Run {
                elements,
                run: Box::new(run),
            },
        }
    }

    /// Elements of inputs and outputs together, or of the state.
    pub fn elements(&self) -> usize {
        match &self.work {
            Work::Operation {
                inputs, outputs, ..
            } => inputs
                .iter()
                .map(Data::len)
                .chain(outputs.iter().map(Output::len))
                .sum(),
            Work::Run { elements, .. } => *elements,
        }
    }

    /// Runs the case; returns the greatest error as a share of its bound.
    ///
    /// # Errors
    /// `Mismatch` naming case and element; what plan and device report.
    pub fn run(&self, trial: &mut CaseContext<'_>) -> Result<f64> {
        match &self.work {
            Work::Operation {
                inputs,
                outputs,
                record,
            } => self.run_operation(inputs, outputs, record, trial),
            Work::Run { run, .. } => run(trial),
        }
    }

    fn run_operation(
        &self,
        given: &[Data],
        expected: &[Output],
        record: &Record,
        trial: &mut CaseContext<'_>,
    ) -> Result<f64> {
        let mut plan = PlanBuilder::new("verify");
        let inputs: Vec<View> = given
            .iter()
            .map(|data| plan.input("in", data.dtype(), data.len()))
            .collect();
        let guarded: Vec<View> = expected
            .iter()
            .map(|out| plan.state("out", out.dtype(), out.len() + 2 * GUARD))
            .collect();
        let outputs: Vec<View> = guarded
            .iter()
            .zip(expected)
            .map(|(view, out)| view.part(GUARD..GUARD + out.len()))
            .collect();
        record(&mut plan, &inputs, &outputs)?;
        let plan = plan.finish()?;
        trial
            .launched
            .extend(plan.kernels().map(|kernel| kernel.name().to_owned()));
        let mut run = plan.compile(trial.device)?;
        for (view, data) in inputs.iter().zip(given) {
            run.input::<u32>(view.reinterpret(DType::U32))
                .copy_from_slice(data.words());
        }
        for (view, output) in guarded.iter().zip(expected) {
            let mut words = vec![POISON; view.reinterpret(DType::U32).len()];
            if let Output::NearInPlace(before, _) = output {
                words[GUARD..GUARD + before.len()].copy_from_slice(bytemuck::cast_slice(before));
            }
            if let Output::ExactInPlace(before, _) = output {
                words[GUARD..GUARD + before.len()].copy_from_slice(before);
            }
            run.write_state(view.reinterpret(DType::U32), &words)?;
        }
        trial.session.uses(&run);
        trial.session.run(&mut run)?;
        let mut worst = 0.0f64;
        for (number, (view, output)) in guarded.iter().zip(expected).enumerate() {
            let words = run.read_state::<u32>(view.reinterpret(DType::U32))?;
            let width = view.dtype().bytes() / 4;
            let (before, rest) = words.split_at(GUARD * width);
            let (got, after) = rest.split_at(output.len() * width);
            let result = if before.iter().chain(after).any(|&word| word != POISON) {
                Err("wrote outside of its range".to_owned())
            } else {
                output.compare(got)
            };
            let share = result.map_err(|fault| {
                let kernels: Vec<_> = plan.kernels().map(|kernel| kernel.name()).collect();
                let place = format!("{} [{}] output {number}", kernels.join("+"), self.shape);
                Error::new(ErrorKind::Mismatch, format!("{place}: {fault}"))
            })?;
            worst = worst.max(share);
        }
        Ok(worst)
    }
}

/// Deterministic test data: Philox words from a seed and a name.
pub struct Seed {
    key: [u32; 2],
    counter: u32,
    words: Vec<u32>,
}

impl Seed {
    /// Starts the stream of an operation.
    pub fn new(seed: u64, name: &str) -> Self {
        let key = seed ^ ContentHash::of(name.as_bytes()).words()[0];
        Self {
            key: [key as u32, (key >> 32) as u32],
            counter: 0,
            words: Vec::new(),
        }
    }

    /// 32 random bits.
    pub fn word(&mut self) -> u32 {
        if self.words.is_empty() {
            self.words = random::philox([self.counter, 0, 0, 0], self.key).to_vec();
            self.counter += 1;
        }
        self.words.pop().unwrap_or_default()
    }

    /// A whole number in `low..=high`.
    pub fn size(&mut self, low: usize, high: usize) -> usize {
        low + self.word() as usize % (high - low + 1)
    }

    /// A float between `low` and `high`.
    pub fn float(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * random::uniform(self.word())
    }

    /// `n` doubles between `low` and `high`, all 53 bits of them random.
    pub fn doubles(&mut self, n: usize, low: f64, high: f64) -> Vec<f64> {
        let mut unit = || {
            f64::from(self.word()) / 4_294_967_296.0
                + f64::from(self.word()) / 18_446_744_073_709_551_616.0
        };
        (0..n).map(|_| low + (high - low) * unit()).collect()
    }

    /// `n` floats between `low` and `high`.
    pub fn floats(&mut self, n: usize, low: f32, high: f32) -> Vec<f32> {
        (0..n).map(|_| self.float(low, high)).collect()
    }

    /// Sizes zero, one, odd and large, two of them random.
    pub fn sizes(&mut self, large: usize) -> Vec<usize> {
        vec![
            0,
            1,
            3,
            255,
            1024,
            4097,
            self.size(2, 5000),
            self.size(5000, large),
            large,
        ]
    }
}

/// Floats that every function must handle as stated.
pub(super) const SPECIAL: [f32; 18] = [
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    87.0,
    -87.0,
    89.0,
    -89.0,
    104.0,
    -104.0,
    f32::MAX,
    f32::MIN,
    f32::MIN_POSITIVE,
];
