//! `tectum export`: the periods of a run as a table for other programs.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tectum::{Error, Result, file};
use tectum_control::body::BodySpec;
use tectum_control::body::task::Measure;
use tectum_control::recording::{Trace, TraceTick};
use tectum_control::run_folder::{TRACE_FILE, read_body};

use crate::count::counted;
use crate::csv::cell;
use crate::file_ending::FileEnding;
use crate::messages;
use crate::table::{print, print_json, table};
use tectum::npy;

/// Writes every period of a run as CSV and `.npy`, with a column for each channel.
///
/// The `.npy` file is an array of records: numpy.load(FILE)["reward"] is a column. A number that
/// was not recorded is NaN there and an empty cell in CSV.
#[derive(Args)]
pub struct ExportArgs {
    /// The run folder, for example runs/1, or a recording (trace.mcap).
    #[arg(value_name = "DIR|FILE.mcap")]
    run: PathBuf,
    /// The output file; without it trace.csv and trace.npy next to the recording.
    #[arg(long, value_name = "FILE.csv|FILE.npy", value_parser = FileEnding(&["csv", "npy"]))]
    out: Option<PathBuf>,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// A column and how to read it from a period.
#[derive(Serialize)]
struct Column {
    name: String,
    unit: String,
    meaning: String,
    #[serde(skip)]
    cells: Cells,
}

enum Cells {
    Count(fn(&TraceTick) -> u64),
    Flag(fn(&TraceTick) -> bool),
    Number(Box<dyn Fn(&TraceTick) -> f64>),
}

/// What was written.
#[derive(Serialize)]
struct Report {
    rows: usize,
    columns: Vec<Column>,
    files: Vec<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A folder or file without a recording of periods; a file that cannot be written.
pub fn export(args: &ExportArgs) -> Result<()> {
    let is_folder = args.run.is_dir();
    let recording = if is_folder {
        args.run.join(TRACE_FILE)
    } else {
        args.run.clone()
    };
    let trace = Trace::read(&recording)?;
    if trace.ticks.is_empty() {
        let spikes = "a recording of spikes cannot be exported; tectum run GENOME.json --spikes FILE.npy writes every firing";
        return Err(Error::data(format!(
            "{}: it has no period of a run ({spikes})",
            recording.display()
        )));
    }
    // Units are not needed: a recording alone, or of a body that this build lacks, is exported
    // without them.
    let (body, measure) = if is_folder {
        read_body(&args.run).ok()
    } else {
        None
    }
    .unzip();
    let columns = columns(
        &trace,
        body.as_deref().map(|body| body.spec()),
        measure.flatten().as_ref(),
    );
    let files = args.out.clone().map_or_else(
        || {
            ["csv", "npy"]
                .map(|ending| recording.with_extension(ending))
                .to_vec()
        },
        |path| vec![path],
    );
    for path in &files {
        let is_csv = path.extension().is_some_and(|ending| ending == "csv");
        file::write(
            path,
            &if is_csv {
                csv(&columns, &trace.ticks)
            } else {
                records(&columns, &trace.ticks)
            },
        )?;
    }
    let report = Report {
        rows: trace.ticks.len(),
        columns,
        files,
    };
    if args.json {
        print_json(&report)
    } else {
        print(&text(&report, messages::is_quiet()))
    }
}

/// The columns of a recording. Where two have the same name, those of observation and action get it
/// with a prefix.
fn columns(trace: &Trace, body: Option<&BodySpec>, measure: Option<&Measure>) -> Vec<Column> {
    let number =
        |name: &str, unit: &str, meaning: &str, of: Box<dyn Fn(&TraceTick) -> f64>| Column {
            name: name.to_owned(),
            unit: unit.to_owned(),
            meaning: meaning.to_owned(),
            cells: Cells::Number(of),
        };
    let count = |name: &str, meaning: &str, cells| Column {
        name: name.to_owned(),
        unit: String::new(),
        meaning: meaning.to_owned(),
        cells,
    };
    let unit = |channels: Option<Vec<(&String, &String)>>, name: &str| {
        channels
            .into_iter()
            .flatten()
            .find(|(known, _)| *known == name)
            .map_or_else(String::new, |(_, unit)| unit.clone())
    };
    let observed = || {
        body.map(|body| {
            body.observation
                .iter()
                .map(|channel| (&channel.name, &channel.unit))
                .collect()
        })
    };
    let acted = || {
        body.map(|body| {
            body.action
                .iter()
                .map(|channel| (&channel.name, &channel.unit))
                .collect()
        })
    };
    let mut columns = vec![
        count(
            "tick",
            "number of the period",
            Cells::Count(|tick| tick.tick),
        ),
        number(
            "time_s",
            "s",
            "its beginning in the body's time",
            Box::new(|tick| tick.time_ns as f64 / 1e9),
        ),
    ];
    for (place, name) in trace.observation_names.iter().enumerate() {
        columns.push(number(
            name,
            &unit(observed(), name),
            "observation",
            Box::new(move |tick| tick.observation[place]),
        ));
    }
    for (place, name) in trace.action_names.iter().enumerate() {
        columns.push(number(
            name,
            &unit(acted(), name),
            "action",
            Box::new(move |tick| tick.action[place]),
        ));
    }
    if let Some(name) = &trace.measure_name {
        let unit = measure
            .filter(|measure| measure.name == *name)
            .map_or("", |measure| &measure.unit);
        columns.push(number(
            name,
            unit,
            "what the task measured",
            Box::new(|tick| tick.measure),
        ));
    }
    columns.push(number(
        "reward",
        "",
        "score of the period",
        Box::new(|tick| tick.reward),
    ));
    columns.push(count(
        "held",
        "the answer was late",
        Cells::Flag(|tick| tick.held),
    ));
    columns.push(count(
        "fallback",
        "the brain failed",
        Cells::Flag(|tick| tick.fallback),
    ));
    columns.push(count(
        "terminated",
        "the episode ended with it",
        Cells::Flag(|tick| tick.terminated),
    ));
    if trace.ticks.iter().any(|tick| tick.latency_ms.is_some()) {
        columns.push(number(
            "latency_ms",
            "ms",
            "host time of the answer",
            Box::new(|tick| tick.latency_ms.unwrap_or(f64::NAN)),
        ));
        columns.push(number(
            "lateness_ms",
            "ms",
            "from its beginning to the observation",
            Box::new(|tick| tick.lateness_ms.unwrap_or(f64::NAN)),
        ));
    }
    let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
    for column in columns
        .iter_mut()
        .filter(|column| ["observation", "action"].contains(&column.meaning.as_str()))
    {
        if names.iter().filter(|name| **name == column.name).count() > 1 {
            column.name = format!("{}_{}", column.meaning, column.name);
        }
    }
    columns
}

fn csv(columns: &[Column], ticks: &[TraceTick]) -> Vec<u8> {
    let names = columns
        .iter()
        .map(|column| cell(&column.name))
        .collect::<Vec<_>>();
    let mut text = names.join(",") + "\n";
    for tick in ticks {
        let cells = columns.iter().map(|column| match &column.cells {
            Cells::Count(of) => of(tick).to_string(),
            Cells::Flag(of) => of(tick).to_string(),
            Cells::Number(of) => Some(of(tick))
                .filter(|number| number.is_finite())
                .map_or_else(String::new, |number| number.to_string()),
        });
        text += &(cells.collect::<Vec<_>>().join(",") + "\n");
    }
    text.into_bytes()
}

fn records(columns: &[Column], ticks: &[TraceTick]) -> Vec<u8> {
    let descr = |column: &Column| match column.cells {
        Cells::Count(_) => "<u8",
        Cells::Flag(_) => "|b1",
        Cells::Number(_) => "<f8",
    };
    let fields: Vec<(&str, &str)> = columns
        .iter()
        .map(|column| (column.name.as_str(), descr(column)))
        .collect();
    let mut bytes = npy::head_of_records(&fields, ticks.len() as u64);
    for tick in ticks {
        for column in columns {
            match &column.cells {
                Cells::Count(of) => bytes.extend(of(tick).to_le_bytes()),
                Cells::Flag(of) => bytes.push(u8::from(of(tick))),
                Cells::Number(of) => bytes.extend(of(tick).to_le_bytes()),
            }
        }
    }
    bytes
}

/// The files, and unless only results are printed the columns.
fn text(report: &Report, is_quiet: bool) -> String {
    let head = ["column", "unit", "meaning"].map(str::to_owned).to_vec();
    let rows = report.columns.iter().map(|column| {
        vec![
            column.name.clone(),
            column.unit.clone(),
            column.meaning.clone(),
        ]
    });
    let files: String = report
        .files
        .iter()
        .map(|path| written(path, report.rows))
        .collect();
    if is_quiet {
        files
    } else {
        format!(
            "{}\n{files}",
            table(&std::iter::once(head).chain(rows).collect::<Vec<_>>())
        )
    }
}

fn written(path: &Path, rows: usize) -> String {
    format!("{}: {}\n", path.display(), counted(rows, "row"))
}
