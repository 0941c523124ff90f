//! `tectum inspect` of an equation file.

use serde_json::json;
use tectum::{Error, Result};
use tectum_control::body::equations::EquationSettings;
use tectum_control::body::equations::identification::{Prediction, predictions};
use tectum_control::body::equations::recording::{Column, PlantRecording};
use tectum_equations::System;

use super::InspectArgs;
use crate::table::{print, table};

/// Steps ahead that predictions are compared over.
const HORIZONS: [usize; 3] = [1, 5, 10];

/// Shows what an equation file declares and, with a recording, how well it predicts its last 15 %.
///
/// # Errors
/// A file that is not valid; a recording that is invalid or too short.
pub fn inspect_plant(args: &InspectArgs) -> Result<()> {
    let file = args.file.to_str().ok_or_else(|| Error::invalid(format!("{}: the name is not UTF-8", args.file.display())))?;
    let settings = EquationSettings::open(file)?;
    let (system, values) = settings.system();
    let columns = args.columns.iter().map(|column| Column::parse(column)).collect::<Result<Vec<_>>>()?;
    let found = match &args.data {
        Some(path) => {
            let recording = PlantRecording::read(path, system, &columns)?;
            predictions(system, values, &recording, &HORIZONS).map_err(|error| error.at(path.display()))?
        }
        None => Vec::new(),
    };
    if args.json {
        let names = |names: Vec<&str>| names.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let parameters = system
            .parameters()
            .iter()
            .map(|parameter| json!({ "name": parameter.name, "unit": parameter.unit_text, "value": parameter.value / parameter.unit.scale }));
        let line = json!({
            "kind": "plant", "name": system.name(), "period_s": system.period_s(), "parameters": parameters.collect::<Vec<_>>(),
            "states": names(system.states().iter().map(|state| state.name.as_str()).collect()),
            "inputs": names(system.inputs().iter().map(|input| input.name.as_str()).collect()),
            "observations": names(system.observations().iter().map(|observation| observation.name.as_str()).collect()), "predictions": found,
        });
        return print(&format!("{line}\n"));
    }
    print(&(about(args, system) + &report(&found)))
}

fn about(args: &InspectArgs, system: &System) -> String {
    let mut rows = vec![["", "name", "value", "range", "unit"].map(str::to_owned).to_vec()];
    let mut add = |kind: &str, name: &str, value: String, range: Option<[f64; 2]>, unit: &str| {
        let range = range.filter(|range| range.iter().all(|bound| bound.is_finite())).map(|[low, high]| format!("{} .. {}", short(low), short(high)));
        rows.push(vec![kind.to_owned(), name.to_owned(), value, range.unwrap_or_default(), unit.to_owned()]);
    };
    for parameter in system.parameters() {
        let scale = parameter.unit.scale;
        add("parameter", &parameter.name, short(parameter.value / scale), Some(parameter.range.map(|bound| bound / scale)), &parameter.unit_text);
    }
    for state in system.states() {
        add("state", &state.name, String::new(), state.range.map(|range| range.map(|bound| bound / state.unit.scale)), &state.unit_text);
    }
    for input in system.inputs() {
        add("input", &input.name, String::new(), Some(input.range), &input.unit_text);
    }
    for noise in system.noises() {
        add("noise", &noise.name, String::new(), None, "");
    }
    for observation in system.observations() {
        add("observation", &observation.name, String::new(), Some(observation.range), &observation.unit_text);
    }
    let (name, period_ms) = (system.name(), short(system.period_s() * 1e3));
    format!("{}: plant {name}, a step every {period_ms} ms\n\n{}", args.file.display(), table(&rows))
}

/// A number without noise in its last digits.
fn short(number: f64) -> String {
    format!("{}", (number * 1e6).round() / 1e6)
}

fn report(found: &[Prediction]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let mut rows = vec![["observation", "steps ahead", "rms", "if it stayed as it was", "unit"].map(str::to_owned).to_vec()];
    for prediction in found {
        let [own, stays] = prediction.rms.map(|rms| format!("{rms:.4}"));
        rows.push(vec![prediction.name.clone(), prediction.steps.to_string(), own, stays, prediction.unit.clone()]);
    }
    format!("\nlast 15 % of the recording\n{}", table(&rows))
}
