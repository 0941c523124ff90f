//! `tectum train plant`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use serde_json::json;
use tectum::{Device, Error, InputFile, Result, RunStats, Session, WorkProgress};
use tectum_control::body::equations::identification::{
    IdentificationSettings, PlantIdentification, identify,
};
use tectum_control::body::equations::recording::{Column, PlantRecording};
use tectum_control::body::equations::{ENDING, EquationSettings};

use crate::count::counted;
use crate::file_ending::FileEnding;
use crate::interrupt::Interrupt;
use crate::messages;
use crate::progress::{Bar, Unit};
use crate::receipt::ReceiptArgs;
use crate::table::{print, table};

/// Fits the parameters of an equation file to a recording, and writes the file with their values.
///
/// The recording is cut into windows; in each the plant is stepped from a start of its own under
/// the recorded inputs. The last 15 % are not used: `tectum inspect FILE.plant --data DATA.csv`
/// compares the file with them.
#[derive(Args)]
pub struct PlantArgs {
    /// The equation file, or the name of one that ships.
    #[arg(value_name = "FILE.plant")]
    plant: String,
    /// The recording: CSV with the plant's inputs, one or more observations, and the time.
    ///
    /// The time is in `time` (s) or in `elapsed` since the row before (ms). A header such as
    /// `angle [deg]` states the unit.
    #[arg(value_name = "DATA.csv")]
    data: PathBuf,
    /// The output file.
    #[arg(short, long, value_name = "FILE.plant", value_parser = FileEnding(&["plant"]))]
    output: PathBuf,
    /// A column of another name or unit, as NAME=HEADER or NAME=HEADER:UNIT; may be given several
    /// times.
    #[arg(long = "column", value_name = "NAME=HEADER[:UNIT]")]
    columns: Vec<String>,
    /// A parameter to fit; may be given several times. All with a range in the file if none is
    /// given.
    #[arg(long = "fit", value_name = "NAME")]
    parameters: Vec<String>,
    /// Length of a window in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 0.8)]
    window: f64,
    #[command(flatten)]
    receipt: ReceiptArgs,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A file or a recording that is invalid or has too little information; an output that cannot be
/// written.
pub fn train_plant(args: &PlantArgs) -> Result<()> {
    if !(args.window > 0.0 && args.window <= 1e4) {
        return Err(Error::invalid(format!(
            "--window {}: needs a number above 0, at most 10000",
            args.window
        )));
    }
    if !args.plant.ends_with(ENDING)
        && args
            .data
            .to_str()
            .is_some_and(|data| data.ends_with(ENDING))
    {
        return Err(Error::invalid(format!(
            "train plant: the equation file comes first: tectum train plant {} {}",
            args.data.display(),
            args.plant
        )));
    }
    if Path::new(&args.plant) == args.output {
        return Err(Error::invalid(format!(
            "train plant: -o {} is the equation file itself; another name keeps it",
            args.plant
        )));
    }
    let input = InputFile::of(&args.data)?;
    let (text, is_shipped) = EquationSettings::text(&args.plant)?;
    let settings = EquationSettings::open(&args.plant)?;
    let (system, values) = settings.system();
    system.warnings().iter().for_each(messages::warning);
    let columns = args
        .columns
        .iter()
        .map(|column| Column::parse(column))
        .collect::<Result<Vec<_>>>()?;
    let recording = PlantRecording::read(&args.data, system, &columns)?;
    // Host arithmetic: a run without launches, like that of the reference interpreter.
    let (mut session, start) = (Session::new(&Device::open("cpu")?), Instant::now());
    recording
        .constant_columns(system)
        .iter()
        .for_each(messages::warning);
    messages::note(format_args!(
        "{}: {}, fitting",
        args.data.display(),
        counted(recording.len(), "row")
    ));
    let (bar, interrupt) = (Bar::new(Unit::Steps), Interrupt::watch()?);
    let mut watch = bar.watch();
    let mut watch = |progress: WorkProgress<'_>| {
        if interrupt.is_raised() {
            ControlFlow::Break(())
        } else {
            watch(progress)
        }
    };
    let wanted = IdentificationSettings {
        parameters: args.parameters.clone(),
        window_s: args.window,
    };
    let found = identify(system, values, &recording, &wanted, &mut watch)
        .map_err(|error| error.at(args.data.display()))?;
    bar.clear();
    found.doubts.iter().for_each(|doubt| {
        messages::warning(format_args!("{doubt}: the result is not to be trusted"))
    });
    let note = format!(
        "# Parameters fitted to {} (blake3 {}): {}.\n",
        args.data.display(),
        input.hash,
        summary(&found)
    );
    let fitted = note + &system.text_with(&text, &args.plant, &found.values)?;
    tectum::file::write(&args.output, fitted.as_bytes())?;
    session.reads(input);
    if !is_shipped {
        session.reads(InputFile::of(args.plant.as_ref())?);
    }
    session.record(&RunStats::default(), start.elapsed().as_nanos() as u64);
    let receipt = session.receipt();
    args.receipt.save(&receipt)?;
    if args.json {
        return print(&format!(
            "{}\n",
            json!({ "data": args.data, "plant": args.output, "rows": recording.len(), "found": found, "receipt": receipt })
        ));
    }
    print(&format!(
        "{}: {}\n\n{}\n{}\nwritten to {}\n",
        args.data.display(),
        counted(recording.len(), "row"),
        parameters(&found),
        summary(&found),
        args.output.display()
    ))
}

fn parameters(found: &PlantIdentification) -> String {
    let mut rows = vec![
        ["parameter", "value", "standard error", "unit", ""]
            .map(str::to_owned)
            .to_vec(),
    ];
    for estimate in &found.parameters {
        let error = if estimate.error.is_finite() {
            digits(estimate.error)
        } else {
            String::new()
        };
        let note = match (estimate.error.is_finite(), estimate.is_at_limit) {
            (false, _) => "the recording says nothing about it: kept",
            (true, true) => "at the end of its range",
            (true, false) => "",
        };
        rows.push(vec![
            estimate.name.clone(),
            digits(estimate.value),
            error,
            estimate.unit.clone(),
            note.to_owned(),
        ]);
    }
    table(&rows)
}

/// A number with five significant digits.
fn digits(number: f64) -> String {
    format!("{number:.4e}")
        .parse()
        .map_or_else(|_| number.to_string(), |rounded: f64| rounded.to_string())
}

fn summary(found: &PlantIdentification) -> String {
    let residuals = found
        .residuals
        .iter()
        .map(|residual| {
            format!(
                "{} {:.3} {} rms",
                residual.name, residual.rms, residual.unit
            )
        })
        .collect::<Vec<_>>()
        .join(", ");
    format!(
        "{} of {}, {residuals}",
        counted(found.windows, "window"),
        counted(found.rows / found.windows, "row")
    )
}
