//! `tectum receipt check`: what a receipt says of code and results, derived again by this build.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use tectum::{CodeForm, Device, Error, ErrorKind, RECEIPT_SCHEMA, Receipt, Result};
use tectum_control::run_folder::{RECEIPT_FILE, Repetition, repeat};

use crate::count::counted;
use crate::run::progress::Display;
use crate::table::{print, print_json, table};
use crate::threads::ThreadsArgs;

/// Checks receipts against this build.
#[derive(Args)]
pub struct ReceiptCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Check(CheckArgs),
}

/// Derives the hashes of a receipt again and reports differences.
///
/// The hash of native code changes with the sources that it is compiled from, that of device code
/// with its WGSL. Kernels that are generated for a network or a program are derived by repeating
/// the run: --rerun runs the scenario of the folder again under a simulated clock and compares the
/// hash of its trace too.
#[derive(Args)]
struct CheckArgs {
    /// A receipt, or the folder of a run.
    #[arg(value_name = "FILE.json|DIR")]
    path: PathBuf,
    /// Repeats the run of the folder and compares the hash of its trace.
    #[arg(long)]
    rerun: bool,
    /// The device to repeat it on; the receipt's if not given.
    #[arg(long, requires = "rerun")]
    device: Option<String>,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// As much of a receipt as is checked.
#[derive(Deserialize)]
struct Written {
    schema: String,
    code: Vec<WrittenCode>,
}

#[derive(Deserialize)]
struct WrittenCode {
    kernel: String,
    form: String,
    hash: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Same,
    Differs,
    /// Generated code or a library's routine, which no name determines.
    Unchecked,
}

#[derive(Serialize)]
struct CodeCheck {
    kernel: String,
    form: String,
    verdict: Verdict,
}

#[derive(Serialize)]
struct TraceCheck {
    device: String,
    ticks: u64,
    expected: String,
    found: String,
    verdict: Verdict,
}

#[derive(Serialize)]
struct Check {
    receipt: String,
    code: Vec<CodeCheck>,
    trace: Option<TraceCheck>,
}

/// Runs the command.
///
/// # Errors
/// `Io` or `Data` for a file that cannot be read; `Invalid` for a run that cannot be repeated;
/// `Mismatch` if something differs.
pub fn receipt(command: &ReceiptCommand) -> Result<()> {
    let Action::Check(args) = &command.action;
    args.threads.apply()?;
    let path = if args.path.is_dir() {
        args.path.join(RECEIPT_FILE)
    } else {
        args.path.clone()
    };
    let written: Written = read(&path)?;
    if written.schema != RECEIPT_SCHEMA {
        return Err(Error::data(format!(
            "{}: {} is given, this build checks {RECEIPT_SCHEMA}",
            path.display(),
            written.schema
        )));
    }
    let repeated = if args.rerun {
        Some(repeat_run(&args.path, args.device.as_deref())?)
    } else {
        None
    };
    let receipt = repeated.as_ref().map(|(receipt, _)| receipt);
    let known = tectum::operation::kernels()
        .into_iter()
        .chain(tectum_control::conformance::kernels()?)
        .collect::<Vec<_>>();
    let derive = |code: &WrittenCode| {
        let of_run = receipt
            .into_iter()
            .flat_map(|receipt| &receipt.code)
            .filter(|found| found.kernel == code.kernel);
        let of_run: Vec<String> = of_run.map(|found| found.hash.to_string()).collect();
        let of_build = known
            .iter()
            .filter(|kernel| kernel.name() == code.kernel && !is_generated(kernel.name()));
        let of_build: Vec<String> = match code.form.as_str() {
            form if form == name(CodeForm::Native) => of_build
                .map(|kernel| kernel.native_hash().to_string())
                .collect(),
            form if form == name(CodeForm::Device) => {
                of_build.map(|kernel| kernel.hash().to_string()).collect()
            }
            _ => Vec::new(),
        };
        let found = if of_run.is_empty() { of_build } else { of_run };
        let verdict = match found.contains(&code.hash) {
            true => Verdict::Same,
            false if found.is_empty() => Verdict::Unchecked,
            false => Verdict::Differs,
        };
        CodeCheck {
            kernel: code.kernel.clone(),
            form: code.form.clone(),
            verdict,
        }
    };
    let code = written.code.iter().map(derive).collect();
    let check = Check {
        receipt: path.display().to_string(),
        code,
        trace: repeated.map(|(_, trace)| trace),
    };
    if args.json {
        print_json(&check)?
    } else {
        print(&text(&check))?
    }
    let differ = check
        .code
        .iter()
        .map(|code| code.verdict)
        .chain(check.trace.iter().map(|trace| trace.verdict))
        .filter(|verdict| *verdict == Verdict::Differs);
    match differ.count() {
        0 => Ok(()),
        count => Err(Error::new(
            ErrorKind::Mismatch,
            format!(
                "{}: {count} hashes differ from this build's",
                path.display()
            ),
        )),
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T> {
    let bytes = std::fs::read(path).map_err(|source| Error::io(path.display(), source))?;
    serde_json::from_slice(&bytes)
        .map_err(|source| Error::data(path.display().to_string()).with_source(source))
}

fn name(form: CodeForm) -> String {
    serde_json::to_value(form)
        .ok()
        .and_then(|name| name.as_str().map(str::to_owned))
        .unwrap_or_default()
}

/// Kernels whose text depends on more than their name.
fn is_generated(name: &str) -> bool {
    name.starts_with("mppi_rollout")
}

/// Runs the scenario of a folder again; its receipt, and how the traces compare.
fn repeat_run(folder: &Path, device: Option<&str>) -> Result<(Receipt, TraceCheck)> {
    if !folder.is_dir() {
        return Err(Error::invalid(format!(
            "--rerun {}: a run is repeated from its folder, which has the scenario",
            folder.display()
        )));
    }
    let display = Display::new();
    let device = device.map(Device::open).transpose()?;
    let Repetition {
        device,
        ticks,
        expected,
        found,
        receipt,
    } = repeat(folder, device.as_ref(), &mut display.watch())?;
    let verdict = if found == expected {
        Verdict::Same
    } else {
        Verdict::Differs
    };
    Ok((
        receipt,
        TraceCheck {
            device,
            ticks,
            expected,
            found,
            verdict,
        },
    ))
}

fn text(check: &Check) -> String {
    let verdict = |verdict: Verdict| match verdict {
        Verdict::Same => "same",
        Verdict::Differs => "DIFFERS",
        Verdict::Unchecked => "not derived from its name; --rerun derives it",
    };
    let head = ["kernel", "form", "hash"].map(str::to_owned).to_vec();
    let rows = check.code.iter().map(|code| {
        vec![
            code.kernel.clone(),
            code.form.clone(),
            verdict(code.verdict).to_owned(),
        ]
    });
    let mut text = table(&std::iter::once(head).chain(rows).collect::<Vec<_>>());
    if let Some(trace) = &check.trace {
        text += &format!(
            "trace of {} on {}: {}\n",
            counted(trace.ticks, "tick"),
            trace.device,
            verdict(trace.verdict)
        );
    }
    text
}
