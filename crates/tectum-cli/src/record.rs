//! `tectum record`: what a body observes at its safe action, as a run folder.

use std::path::PathBuf;

use clap::Args;
use tectum::{Device, Error, ErrorKind, Result};
use tectum_control::run_folder;
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::body_scenario;

use crate::count::counted;
use crate::interrupt::Interrupt;
use crate::messages;
use crate::table::{print_json, report, short};
use crate::workload::Workload;

/// Records what a body observes while it gets its safe action.
///
/// It is `tectum run` with the brain `safe`, for a machine that is moved by hand or by its own
/// controller. The run folder is that of any run: `tectum replay` and `tectum train` read it.
#[derive(Args)]
pub struct RecordArgs {
    /// A scenario, of which the brain is replaced, or a body by its name or address.
    #[arg(value_name = "SCENARIO|BODY")]
    thing: String,
    /// The folder in which the run folder is created.
    #[arg(short, long = "runs", value_name = "DIR", default_value = "runs")]
    output: PathBuf,
    /// How long it records, in the body's time; that of the scenario if not given, else 60.
    #[arg(long)]
    seconds: Option<f64>,
    /// Prints the result as one line of JSON; the report for people goes to standard error.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// Any error of the scenario and the body; before the first tick nothing is left on disk, after it
/// the run folder is completed.
pub fn record(args: &RecordArgs) -> Result<()> {
    let path = std::path::Path::new(&args.thing);
    let is_scenario = Workload::of(path).is_ok_and(|kind| kind == Workload::Scenario)
        && (path.is_file() || Scenario::open(&args.thing).is_ok());
    let mut scenario = match is_scenario {
        true => Scenario::open(&args.thing)?,
        false => body_scenario(&args.thing)?,
    };
    scenario.warnings.iter().for_each(messages::warning);
    scenario.set_brain("safe")?;
    scenario.run.stand_in = None;
    if let Some(seconds) = args.seconds {
        scenario.set_seconds(seconds)?;
    }
    let interrupt = Interrupt::watch()?;
    let cpu = Device::open("cpu")?;
    let summary = run_folder::run(&scenario, &args.output, &cpu, &mut |_| interrupt.flow())?;
    let text = format!(
        "recorded {} of {} s of {}\nrun folder: {}\n",
        counted(summary.ticks, "period"),
        short(summary.period_ms / 1e3),
        summary.body,
        summary.run_folder
    );
    report(&text, args.json)?;
    if args.json {
        print_json(&summary)?;
    }
    match summary.error {
        None => Ok(()),
        Some(reason) => Err(Error::new(
            ErrorKind::Data,
            format!("record stopped at tick {}: {reason}", summary.ticks),
        )),
    }
}
