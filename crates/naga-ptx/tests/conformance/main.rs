//! One table of WGSL cases for every way to run them: the PTX in an interpreter, the assembler, a
//! GPU through its driver, and the same WGSL through wgpu.
//!
//! ```text
//! conformance [--filter TEXT] [--only refusals|interpreter|ptxas|vulkan|cuda] [--json FILE] [--list] [--dump CASE]
//! ```
//!
//! A line beginning `skipped: ` says that a runner could not run. Failures end the process with 1.

mod arguments;
mod case;
mod cuda;
mod interpreter;
mod kernel;
mod known_faults;
mod lanes;
mod module;
mod pool;
mod ptxas;
mod refusals;
mod report;
mod table;
mod vulkan;

use std::process::ExitCode;
use std::time::Instant;

use arguments::Arguments;
use case::Case;
use report::{Report, Run};

type Runner = fn(&[&Case]) -> Result<Vec<Run>, String>;

const RUNNERS: &[(&str, Runner)] = &[
    ("interpreter", interpreter::run),
    ("ptxas", ptxas::run),
    ("vulkan", vulkan::run),
    ("cuda", cuda::run),
];

fn main() -> ExitCode {
    let arguments = match Arguments::parse(std::env::args().skip(1)) {
        Ok(arguments) => arguments,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    let table = table::cases();
    let cases = table
        .iter()
        .filter(|case| arguments.selects(&case.name))
        .collect::<Vec<_>>();
    if arguments.list {
        cases.iter().for_each(|case| println!("{}", case.name));
        return ExitCode::SUCCESS;
    }
    if let Some(name) = &arguments.dump {
        return dump(&table, name);
    }
    let report = run(&arguments, &cases);
    if let Some(path) = &arguments.json
        && let Err(error) = std::fs::write(path, format!("{:#}\n", report.json()))
    {
        eprintln!("{path}: {error}");
        return ExitCode::FAILURE;
    }
    if report.conclude() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints a case's source and its PTX, in every variant.
fn dump(table: &[Case], name: &str) -> ExitCode {
    let Some(case) = table.iter().find(|case| case.name == name) else {
        eprintln!("no case is named {name}");
        return ExitCode::from(2);
    };
    println!("{}", case.source);
    for variant in kernel::VARIANTS {
        match variant.translate(case) {
            Ok(kernel) => println!("// {}\n{}", variant.name, kernel.ptx),
            Err(error) => println!("// {}: {error}", variant.name),
        }
    }
    ExitCode::SUCCESS
}

fn run(arguments: &Arguments, cases: &[&Case]) -> Report {
    let mut report = Report::default();
    let wanted = |name: &str| arguments.only.as_deref().is_none_or(|only| only == name);
    if wanted("refusals") && arguments.filter.is_none() {
        let refusals = refusals::run();
        refusals.print();
        report.runs.push(refusals);
    }
    for &(name, runner) in RUNNERS.iter().filter(|(name, _)| wanted(name)) {
        let began = Instant::now();
        match runner(cases) {
            Ok(runs) => runs.into_iter().for_each(|mut run| {
                known_faults::apply(&mut run);
                run.print();
                report.runs.push(run);
            }),
            Err(why) => {
                println!("skipped: conformance on {name}: {why}");
                report.absent.push((name, why));
            }
        }
        println!("{name} took {:.1} s", began.elapsed().as_secs_f64());
    }
    report
}
