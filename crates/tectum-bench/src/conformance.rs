//! Conformance: every kernel on a device against a float64 reference, over empty, single-element,
//! odd and large shapes.
//!
//! A [`Case`] of one operation is data: inputs, the operation as recorded in a plan, and the
//! expected outputs with the error allowed to each element. Outputs are poisoned before the run and
//! placed between guards, so that an element left out or written out of place is found. A case of
//! something with a state, such as a simulation, is a function that runs it. The same cases serve
//! `tectum verify` and the test table. [`suites`] are those of this crate; other crates bring their
//! own.

mod attention_cases;
mod cache_cases;
mod case;
mod chain_cases;
mod convolution_cases;
mod double_cases;
mod double_double;
mod elementwise_cases;
mod functions;
mod gemm_cases;
mod integer_cases;
mod move_cases;
mod normalize_cases;
mod product_cases;
mod random_cases;
mod reduce_cases;
mod scatter_cases;
mod select_cases;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use tectum::{
    DType, Device, Error, ErrorKind, Kernel, Receipt, Result, Session, Watch, WorkProgress,
};

pub use case::{Case, CaseContext, Data, Expected, Output, Seed};
pub use functions::{
    FUNCTIONS, FUNCTIONS_F64, Function, FunctionReport, FunctionsReport, Sweep, functions,
};

/// Makes the cases of an operation for a seed.
pub type MakeCases = dyn Fn(&mut Seed) -> Vec<Case>;

/// The cases of one operation.
pub struct Suite {
    /// The operation's name.
    pub name: String,
    /// The element type that a device must support to run the suite.
    pub dtype: DType,
    /// Makes the cases for a seed.
    pub cases: Box<MakeCases>,
}

impl Suite {
    /// A suite for every device.
    pub fn new(name: impl Into<String>, cases: impl Fn(&mut Seed) -> Vec<Case> + 'static) -> Self {
        Self {
            name: name.into(),
            dtype: DType::F32,
            cases: Box::new(cases),
        }
    }

    /// A suite for devices with f64.
    pub fn double(
        name: impl Into<String>,
        cases: impl Fn(&mut Seed) -> Vec<Case> + 'static,
    ) -> Self {
        Self {
            dtype: DType::F64,
            ..Self::new(name, cases)
        }
    }
}

/// A driver fault that makes cases fail, with the reason; a case listed here must fail, or the list
/// is out of date.
pub struct KnownFault {
    /// What the driver's description contains.
    pub driver: &'static str,
    /// The operation.
    pub operation: &'static str,
    /// What is wrong and how it was detected.
    pub reason: &'static str,
}

/// Every known fault.
pub const KNOWN_FAULTS: &[KnownFault] = &[];

/// What `verify` found.
#[derive(Debug, Serialize)]
pub struct Report {
    /// The seed of shapes and data.
    pub seed: u64,
    /// Cases run for each operation, and the worst error as a share of its bound (1 is at the
    /// bound).
    pub operations: Vec<OperationReport>,
    /// Cases run.
    pub cases: usize,
    /// The first offending case of each operation that failed.
    pub failures: Vec<String>,
    /// Kernels that should be covered and that no case launched.
    pub uncovered_kernels: Vec<String>,
    /// Operations on element types that the device lacks.
    pub left_out: Vec<String>,
    /// Where it ran, with which code.
    pub receipt: Receipt,
}

/// One operation's result.
#[derive(Debug, Serialize)]
pub struct OperationReport {
    /// The operation.
    pub name: String,
    /// Cases run.
    pub cases: usize,
    /// Greatest error as a share of what is allowed; 0 for exact operations.
    pub worst_of_bound: f64,
    /// Whether every case passed.
    pub passed: bool,
}

impl Report {
    /// Whether every case passed and every kernel ran.
    pub fn passed(&self) -> bool {
        self.failures.is_empty() && self.uncovered_kernels.is_empty()
    }

    /// The report as a result: an error naming the first offending case.
    ///
    /// # Errors
    /// `Mismatch` if a case failed or a kernel was missed.
    pub fn into_result(self) -> Result<Report> {
        let fault = match (self.failures.first(), self.uncovered_kernels.first()) {
            (Some(failure), _) => failure.clone(),
            (None, Some(kernel)) => format!("kernel {kernel} has no case"),
            (None, None) => return Ok(self),
        };
        Err(Error::new(
            ErrorKind::Mismatch,
            format!("{}: {fault}", self.receipt.device.id),
        ))
    }
}

/// Every suite of this crate; its kernels are [`tectum::operation::kernels`].
pub fn suites() -> Vec<Suite> {
    let mut suites = elementwise_cases::suites();
    suites.extend(integer_cases::suites());
    suites.extend(reduce_cases::suites());
    suites.extend(select_cases::suites());
    suites.extend(gemm_cases::suites());
    suites.extend(random_cases::suites());
    suites.extend(normalize_cases::suites());
    suites.extend(move_cases::suites());
    suites.extend(scatter_cases::suites());
    suites.extend(product_cases::suites());
    suites.extend(convolution_cases::suites());
    suites.extend(chain_cases::suites());
    suites.extend(double_cases::suites());
    suites.extend(attention_cases::suites());
    suites.extend(cache_cases::suites());
    suites
}

/// A part of a list: every so many elements, from one of the first on. Tests on slow devices run
/// another part of the suites in each run.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    index: usize,
    count: usize,
}

impl Part {
    /// The part that `TECTUM_PART` names, for example `2/3` for the second of three; everything
    /// without it.
    ///
    /// # Errors
    /// `Invalid` for a text that is no part.
    pub fn from_environment() -> Result<Self> {
        std::env::var("TECTUM_PART").map_or(Ok(Self { index: 0, count: 1 }), |text| {
            Self::parse(&text).ok_or_else(|| {
                Error::new(
                    ErrorKind::Invalid,
                    format!("TECTUM_PART={text}: a part such as 2/3, the second of three"),
                )
            })
        })
    }

    fn parse(text: &str) -> Option<Self> {
        let (number, count) = text.split_once('/')?;
        let (number, count): (usize, usize) = (number.parse().ok()?, count.parse().ok()?);
        let index = number.checked_sub(1)?;
        (index < count).then_some(Self { index, count })
    }

    /// Whether it is everything.
    pub fn is_whole(self) -> bool {
        self.count == 1
    }

    /// The elements of this part.
    pub fn of<T>(self, all: Vec<T>) -> Vec<T> {
        let from = all.into_iter().skip(self.index);
        from.step_by(self.count).collect()
    }
}

/// Runs every case of every suite on a device. Each of the kernels has to be launched by some case,
/// unless it uses an element type that the device lacks.
///
/// # Errors
/// What the device reports; a wrong result is not an error here but a failure in the report.
/// `Cancelled` if the watch, which sees each suite before it runs, breaks it off.
///
/// # Example
/// ```
/// use tectum_bench::conformance::{suites, verify};
/// let (cpu, mut suites) = (tectum::Device::open("cpu").unwrap(), suites());
/// suites.retain(|suite| suite.name == "adamw");
/// let kernels: Vec<_> = tectum::operation::kernels().into_iter().filter(|kernel| kernel.name() == "adamw").collect();
/// assert!(verify(&cpu, 1, suites, &kernels, &mut tectum::WorkProgress::ignore).unwrap().passed());
/// ```
pub fn verify(
    device: &Device,
    seed: u64,
    suites: Vec<Suite>,
    kernels: &[Arc<Kernel>],
    watch: &mut Watch<'_>,
) -> Result<Report> {
    let mut session = Session::new(device);
    let mut launched: BTreeSet<String> = BTreeSet::new();
    let (mut operations, mut failures) = (Vec::new(), Vec::new());
    let has = |dtype: DType| device.info().dtypes.contains(&dtype);
    let (asked, left_out): (Vec<Suite>, Vec<Suite>) =
        suites.into_iter().partition(|suite| has(suite.dtype));
    let total = asked.len() as u64;
    for (done, suite) in asked.into_iter().enumerate() {
        WorkProgress {
            stage: &suite.name,
            done: done as u64,
            total,
        }
        .report(watch)?;
        let mut operation = OperationReport {
            name: suite.name.clone(),
            cases: 0,
            worst_of_bound: 0.0,
            passed: true,
        };
        let known = KNOWN_FAULTS.iter().find(|fault| {
            fault.operation == suite.name && device.info().driver.contains(fault.driver)
        });
        for case in (suite.cases)(&mut Seed::new(seed, &suite.name)) {
            operation.cases += 1;
            match case.run(&mut CaseContext {
                device,
                session: &mut session,
                launched: &mut launched,
            }) {
                Ok(worst) => operation.worst_of_bound = operation.worst_of_bound.max(worst),
                Err(error) if error.kind() == ErrorKind::Mismatch => {
                    if operation.passed && known.is_none() {
                        failures.push(format!("{}: {error}", suite.name));
                    }
                    operation.passed = false;
                }
                Err(error) => return Err(error.at(format_args!("{} {}", suite.name, case.shape))),
            }
        }
        if let (Some(fault), true) = (known, operation.passed) {
            failures.push(format!(
                "{}: listed as a known fault ({}) but passed",
                suite.name, fault.reason
            ));
        }
        operations.push(operation);
    }
    let usable = |kernel: &Arc<Kernel>| kernel.bindings().iter().all(|binding| has(binding.dtype));
    let missed = kernels
        .iter()
        .filter(|kernel| usable(kernel) && !launched.contains(kernel.name()));
    let uncovered_kernels = missed.map(|kernel| kernel.name().to_owned()).collect();
    let left_out = left_out
        .into_iter()
        .map(|suite| format!("{}: the device has no {}", suite.name, suite.dtype.wgsl()))
        .collect();
    let cases = operations.iter().map(|operation| operation.cases).sum();
    Ok(Report {
        seed,
        operations,
        cases,
        failures,
        uncovered_kernels,
        left_out,
        receipt: session.receipt(),
    })
}

#[cfg(test)]
mod tests {
    use super::Part;

    #[test]
    fn parts_are_disjoint_and_together_everything() {
        let part = |text| Part::parse(text).map(|part| part.of((0..7).collect::<Vec<_>>()));
        assert_eq!(part("1/3"), Some(vec![0, 3, 6]));
        assert_eq!(part("2/3"), Some(vec![1, 4]));
        assert_eq!(part("3/3"), Some(vec![2, 5]));
        assert_eq!(part("1/1"), Some((0..7).collect()));
        for text in ["0/3", "4/3", "1/0", "3", "a/b", ""] {
            assert_eq!(part(text), None, "{text}");
        }
    }
}
