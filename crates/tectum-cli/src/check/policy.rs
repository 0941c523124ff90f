//! `tectum check POLICY.onnx --against CASE.npz`: a policy's outputs compared with arrays of a
//! file.

use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tectum::{Device, Error, ErrorKind, Result};
use tectum_onnx::{Array, Model, read_npz};

use crate::table::{print, print_json, table};

/// What a policy is compared with.
#[derive(Args)]
pub struct PolicyArgs {
    /// Arrays under the names of a policy's inputs and outputs; of an output that has none nothing
    /// is compared.
    #[arg(long, value_name = "CASE.npz")]
    against: Option<PathBuf>,
    /// The error that is allowed relative to the expected number.
    #[arg(long, value_name = "X", requires = "against", default_value_t = 1e-3)]
    relative: f64,
    /// The error that is allowed besides.
    #[arg(long, value_name = "X", requires = "against", default_value_t = 1e-5)]
    absolute: f64,
}

impl PolicyArgs {
    /// The option that was given, for messages.
    pub fn given(&self) -> Option<&'static str> {
        self.against.as_ref().map(|_| "--against")
    }
}

/// An output's row.
#[derive(Serialize)]
struct Row {
    output: String,
    shape: Vec<usize>,
    /// The greatest error.
    error: f64,
    /// The greatest error as a share of what is allowed.
    of_bound: f64,
    passed: bool,
}

/// Runs a policy on the inputs of a file and compares its outputs.
///
/// # Errors
/// A file that cannot be read; arrays that do not fit; `Mismatch` if an output differs.
pub fn check_policy(path: &Path, args: &PolicyArgs, device: &str, json: bool) -> Result<()> {
    let model = Model::open(path)?;
    let Some(case) = &args.against else {
        model.load(&[]).map_err(|error| error.at(path.display()))?;
        return print(&format!(
            "{}: valid; --against CASE.npz compares its outputs\n",
            path.display()
        ));
    };
    let arrays = read_npz(case)?;
    let find = |name: &str| {
        arrays
            .iter()
            .find(|(known, _)| known == name)
            .map(|(_, array)| array)
    };
    let mut sizes: Vec<(String, usize)> = Vec::new();
    for port in model.inputs() {
        let dims = find(&port.name).map_or(&[][..], Array::dims);
        let open = port.open_axes();
        sizes.extend(open.filter_map(|(axis, name)| Some((name, *dims.get(axis)?))));
    }
    let sizes: Vec<(&str, usize)> = sizes
        .iter()
        .map(|(name, size)| (name.as_str(), *size))
        .collect();
    // Of an output that has no array nothing is compared.
    let mut compared: Vec<&str> = model
        .outputs()
        .iter()
        .map(|port| port.name.as_str())
        .filter(|name| find(name).is_some())
        .collect();
    if compared.is_empty() {
        compared = model
            .outputs()
            .iter()
            .map(|port| port.name.as_str())
            .collect();
    }
    let network = model
        .load_outputs(&sizes, &compared)
        .map_err(|error| error.at(path.display()))?;
    let mut compiled = network.compile(&Device::open(if device == "auto" {
        "cpu"
    } else {
        device
    })?)?;
    for port in network.inputs() {
        let array = find(&port.name).ok_or_else(|| {
            Error::invalid(format!(
                "{}: no array {:?} for this input",
                case.display(),
                port.name
            ))
        })?;
        compiled
            .set(&port.name, array)
            .map_err(|error| error.at(case.display()))?;
    }
    compiled.run()?;
    let mut rows = Vec::new();
    for port in network.outputs() {
        let Some(wanted) = find(&port.name) else {
            continue;
        };
        let found = compiled.output(&port.name)?;
        if found.dims() != wanted.dims() {
            return Err(Error::invalid(format!(
                "output {} is {:?}, {} has {:?}",
                port.name,
                found.dims(),
                case.display(),
                wanted.dims()
            )));
        }
        let (mut error, mut of_bound) = (0.0f64, 0.0f64);
        for (found, wanted) in found.to_f64().into_iter().zip(wanted.to_f64()) {
            let is_same = found == wanted || (found.is_nan() && wanted.is_nan());
            let difference = if is_same { 0.0 } else { (found - wanted).abs() };
            let difference = if difference.is_nan() {
                f64::INFINITY
            } else {
                difference
            };
            error = error.max(difference);
            of_bound = of_bound.max(difference / (args.absolute + args.relative * wanted.abs()));
        }
        rows.push(Row {
            output: port.name.clone(),
            shape: port.dims.clone(),
            error,
            of_bound,
            passed: of_bound <= 1.0,
        });
    }
    if rows.is_empty() {
        let names = network
            .outputs()
            .map(|port| port.name.as_str())
            .collect::<Vec<_>>()
            .join(", ");
        return Err(Error::invalid(format!(
            "{}: no array of an output ({names})",
            case.display()
        )));
    }
    if json {
        print_json(&rows)?;
    } else {
        let head = [
            "output",
            "shape",
            "greatest error",
            "of what is allowed",
            "",
        ]
        .map(str::to_owned)
        .to_vec();
        let cells = |row: &Row| {
            vec![
                row.output.clone(),
                format!("{:?}", row.shape),
                format!("{:.2e}", row.error),
                format!("{:.3}", row.of_bound),
                if row.passed { "same" } else { "differs" }.to_owned(),
            ]
        };
        print(&table(
            &std::iter::once(head)
                .chain(rows.iter().map(cells))
                .collect::<Vec<_>>(),
        ))?;
    }
    match rows.iter().find(|row| !row.passed) {
        Some(row) => Err(Error::new(
            ErrorKind::Mismatch,
            format!(
                "{}: output {} differs from {}",
                path.display(),
                row.output,
                case.display()
            ),
        )),
        None => Ok(()),
    }
}
