//! `tectum check`: checks and shows a program, compares the field brain with its reference or
//! caches of fewer bits with float64, or runs the rig's regulators on different rigs.

mod cache;
mod field;
mod policy;
mod rig;

use std::path::PathBuf;

use clap::Args;
use serde_json::json;
use tectum::{Error, Result};
use tectum_programs::Program;

use crate::library::program_text;
use crate::table::{print, print_json};
use crate::workload::Workload;

/// Checks a lane-level program, a policy, the field brain, formats of caches, or regulators of the
/// rig.
///
/// A policy (ONNX) is compared with the arrays of a file: --against CASE.npz.
///
/// A program is shown as it was understood, mistakes with their lines. `field` compares the field
/// brain with float64 and lists what each pass moves and how long it takes. `cache` measures the
/// error of each format of keys and values for a text. `rig` counts the rigs, of many that differ,
/// that the regulators keep upright.
#[derive(Args)]
pub struct CheckArgs {
    /// A program in its text form, a policy, or the word field, cache or rig.
    #[arg(value_name = "FILE.atlas|POLICY.onnx|field|cache|rig")]
    thing: PathBuf,
    #[command(flatten)]
    policy: policy::PolicyArgs,
    /// The folder of an encoder whose keys and values are kept; after the word cache.
    #[arg(requires = "text")]
    model: Option<PathBuf>,
    /// The text that the encoder reads, of which the first 480 tokens count.
    #[arg(long, value_name = "FILE", requires = "model")]
    text: Option<PathBuf>,
    #[command(flatten)]
    field: field::FieldArgs,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read; a program that is malformed or that the check rejects; `Mismatch`
/// for a policy or field that differs from its reference, or a field that misses a requirement; a
/// folder that is not an encoder's.
pub fn check(args: &CheckArgs) -> Result<()> {
    args.field.threads.apply()?;
    if let Some(option) = args.field.receipt.given().filter(|_| {
        !["field", "cache", "rig"]
            .iter()
            .any(|name| args.thing.as_os_str() == *name)
    }) {
        return Err(Error::invalid(format!(
            "check {}: {option} is only for check field, check cache and check rig",
            args.thing.display()
        )));
    }
    match (args.thing.as_os_str() == "cache", &args.model, &args.text) {
        (true, Some(model), Some(text)) => {
            return cache::check_cache(
                model,
                text,
                &args.field.device,
                &args.field.receipt,
                args.field.json,
            );
        }
        (true, ..) => {
            return Err(Error::invalid(
                "check cache: the folder of an encoder and --text FILE are missing",
            ));
        }
        (false, Some(model), _) => {
            return Err(Error::invalid(format!(
                "{}: a folder is only for check cache",
                model.display()
            )));
        }
        _ => {}
    }
    if Workload::of(&args.thing).is_ok_and(|kind| kind == Workload::Policy) {
        return policy::check_policy(
            &args.thing,
            &args.policy,
            &args.field.device,
            args.field.json,
        );
    }
    if let Some(option) = args.policy.given() {
        return Err(Error::invalid(format!(
            "check {}: {option} is for policies",
            args.thing.display()
        )));
    }
    match args.thing.to_str() {
        Some("field") => field::check_field(&args.field),
        Some("rig") => rig::check_rig(
            args.field.seeds.unwrap_or(100),
            &args.field.receipt,
            args.field.json,
        ),
        _ => check_program(args),
    }
}

fn check_program(args: &CheckArgs) -> Result<()> {
    let path = args.thing.display();
    if Workload::of(&args.thing).is_ok_and(|kind| kind == Workload::Plant) {
        return Err(Error::invalid(format!(
            "check {path}: a plant; tectum inspect {path} checks and shows it"
        )));
    }
    let text = program_text(&args.thing)?;
    let program = Program::parse(&text)
        .and_then(|program| program.check())
        .map_err(|error| error.at(&path))?;
    let warnings: Vec<String> = program.warnings().iter().map(ToString::to_string).collect();
    let program = program.program();
    let count = program.instructions().len();
    if args.field.json {
        let buffers = program
            .buffers()
            .iter()
            .map(|buffer| &buffer.name)
            .collect::<Vec<_>>();
        return print_json(&json!({
            "file": args.thing, "program": program.to_string(), "instructions": count, "buffers": buffers, "warnings": warnings, "valid": true
        }));
    }
    let warnings: String = warnings
        .iter()
        .map(|warning| format!("{path}: warning: {warning}\n"))
        .collect();
    print(&format!(
        "{program}\n{warnings}{path}: {count} instructions, {} buffers, valid\n",
        program.buffers().len()
    ))
}
