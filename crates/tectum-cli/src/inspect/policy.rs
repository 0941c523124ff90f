//! `tectum inspect` of a policy.

use std::time::Instant;

use serde_json::json;
use tectum::{Device, Error, Result};
use tectum_control::brain::policy;
use tectum_control::scenario::build::named_body;
use tectum_onnx::{Assumption, Model, Network};

use super::InspectArgs;
use crate::messages;
use crate::table::{print, print_json, table};

/// Runs before those that are timed, and how many are.
const RUNS: usize = 200;

/// Sizes of named dimensions, from `NAME=SIZE`.
///
/// # Errors
/// `Invalid` for a text of another form.
pub fn dims(texts: &[String]) -> Result<Vec<(&str, usize)>> {
    let pair = |text: &'_ String| -> Option<(usize, usize)> {
        let (name, size) = text.split_once('=')?;
        Some((name.len(), size.parse().ok().filter(|size| *size > 0)?))
    };
    texts
        .iter()
        .map(|text| match pair(text) {
            Some((end, size)) => Ok((&text[..end], size)),
            None => Err(Error::invalid(format!(
                "--dim {text}: NAME=SIZE with a size above 0 is needed"
            ))),
        })
        .collect()
}

/// Shows what a policy's file holds.
///
/// # Errors
/// A file that is not valid or has an operator that is not supported; a contract that does not fit
/// the body.
pub fn inspect_policy(args: &InspectArgs) -> Result<()> {
    let path = &args.file;
    let model = Model::open(path)?;
    let (network, others) = model
        .load_supported(&dims(&args.dims)?)
        .map_err(|error| error.at(path.display()))?;
    for (output, error) in &others {
        messages::warning(format!("output {output} is left out: {error}"));
    }
    for assumption in network.assumptions() {
        messages::warning(match assumption {
            Assumption::Seed => format!("{assumption} (assumed)"),
            _ => format!(
                "{assumption} (assumed; --dim sets it, an axis without a name as INPUT.AXIS=SIZE)"
            ),
        });
    }
    let tick_us = tick_us(&network)?;
    let binding = match &args.body {
        Some(name) => Some(policy::check(
            path,
            args.contract.as_deref(),
            named_body(name, None)?.spec(),
        )?),
        None => None,
    };
    let operators = model.operators();
    let metadata = model.metadata();
    if args.json {
        let ports = |ports: Vec<&tectum_onnx::NetworkPort>| {
            ports.into_iter().map(|port| json!({ "name": port.name, "shape": port.dims, "type": port.element.name() })).collect::<Vec<_>>()
        };
        return print_json(&json!({
            "kind": "policy", "producer": model.producer(), "opset": model.opset(), "inputs": ports(network.inputs().iter().collect()),
            "left_out": others.iter().map(|(output, _)| output).collect::<Vec<_>>(), "outputs": ports(network.outputs().collect()), "operators": operators, "parameters": network.parameters(),
            "tick_us": tick_us, "metadata": metadata, "notes": binding.map(|binding| binding.notes),
        }));
    }
    let mut rows = vec![["", "name", "shape", "type"].map(str::to_owned).to_vec()];
    let ports = network
        .inputs()
        .iter()
        .map(|port| ("input", port))
        .chain(network.outputs().map(|port| ("output", port)));
    rows.extend(ports.map(|(kind, port)| {
        vec![
            kind.to_owned(),
            port.name.clone(),
            format!("{:?}", port.dims),
            port.element.name().to_owned(),
        ]
    }));
    rows.extend(others.iter().map(|(output, _)| {
        let cells = ["output", output.as_str(), "not supported", ""];
        cells.map(str::to_owned).to_vec()
    }));
    let counts: Vec<String> = operators
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    let parameters = network.parameters();
    let by = if model.producer().is_empty() {
        String::new()
    } else {
        format!(" by {}", model.producer())
    };
    let mut text = format!(
        "{}: policy{by}, opset {}\n\n{}",
        path.display(),
        model.opset(),
        table(&rows)
    );
    text += &format!(
        "\n{parameters} parameters ({:.1} kB in f32), a run on the CPU takes {tick_us:.1} µs\noperators: {}\n",
        parameters as f64 * 4e-3,
        counts.join(", ")
    );
    let short = |text: &str| {
        if text.chars().count() > 100 {
            format!("{} …", text.chars().take(100).collect::<String>())
        } else {
            text.to_owned()
        }
    };
    metadata
        .iter()
        .for_each(|(key, value)| text += &format!("metadata {key}: {}\n", short(value)));
    if let Some(binding) = binding {
        text += &format!(
            "\non the body {}: the contract fits\n",
            args.body.as_deref().unwrap_or_default()
        );
        binding
            .notes
            .iter()
            .for_each(|note| text += &format!("  {note}\n"));
    }
    print(&text)
}

/// The median time of a run on the CPU, in microseconds.
fn tick_us(network: &Network) -> Result<f64> {
    let mut compiled = network.compile(&Device::open("cpu")?)?;
    for port in network.inputs() {
        compiled.set(
            &port.name,
            &tectum_onnx::Array::new(
                port.element,
                &port.dims,
                vec![0.0; port.dims.iter().product()],
            )?,
        )?;
    }
    let mut times = Vec::with_capacity(RUNS);
    let start = Instant::now();
    for run in 0..2 * RUNS {
        let begin = Instant::now();
        compiled.run()?;
        if run > 2 {
            times.push(begin.elapsed().as_secs_f64() * 1e6);
        }
        // A large network is timed a few times.
        if run > 5 && start.elapsed().as_secs() >= 1 {
            break;
        }
    }
    times.sort_by(f64::total_cmp);
    Ok(times[times.len() / 2])
}
