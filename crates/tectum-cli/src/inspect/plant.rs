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
    let file = args
        .file
        .to_str()
        .ok_or_else(|| Error::invalid(format!("{}: the name is not UTF-8", args.file.display())))?;
    let settings = EquationSettings::open(file)?;
    let (system, values) = settings.system();
    system.warnings().iter().for_each(crate::messages::warning);
    let columns = args
        .columns
        .iter()
        .map(|column| Column::parse(column))
        .collect::<Result<Vec<_>>>()?;
    let found = match &args.data {
        Some(path) => {
            let recording = PlantRecording::read(path, system, &columns)?;
            predictions(system, values, &recording, &HORIZONS)
                .map_err(|error| error.at(path.display()))?
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
    print(&(about(args, system, values) + &report(&found)))
}

fn about(args: &InspectArgs, system: &System, values: &[f64]) -> String {
    let mut rows = vec![
        [
            "",
            "name",
            "value",
            "range",
            "unit",
            "equilibrium",
            "weight",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let between = |[low, high]: [f64; 2]| format!("{} .. {}", short(low), short(high));
    let ranged = |range: Option<[f64; 2]>| {
        range
            .filter(|range| range.iter().all(|bound| bound.is_finite()))
            .map(between)
            .unwrap_or_default()
    };
    let mut add = |kind: &str,
                   name: &str,
                   value: String,
                   range: Option<[f64; 2]>,
                   unit: &str,
                   control: Option<[f64; 2]>| {
        let [equilibrium, weight] =
            control.map_or_else(Default::default, |numbers| numbers.map(short));
        rows.push(vec![
            kind.to_owned(),
            name.to_owned(),
            value,
            ranged(range),
            unit.to_owned(),
            equilibrium,
            weight,
        ]);
    };
    for parameter in system.parameters() {
        let scale = parameter.unit.scale;
        add(
            "parameter",
            &parameter.name,
            short(parameter.value / scale),
            Some(parameter.range.map(|bound| bound / scale)),
            &parameter.unit_text,
            None,
        );
    }
    let (weights, (states, inputs)) = (system.weights(), system.equilibrium(values));
    let starts = [0.0, 1.0].map(|uniform| system.start(values, || uniform));
    for (place, state) in system.states().iter().enumerate() {
        let [low, high] = [0, 1].map(|end| starts[end][place] / state.unit.scale);
        let start = if low == high {
            short(low)
        } else {
            between([low, high])
        };
        let control = [states[place] / state.unit.scale, weights.states[place]];
        add(
            "state",
            &state.name,
            format!("starts at {start}"),
            state
                .range
                .map(|range| range.map(|bound| bound / state.unit.scale)),
            &state.unit_text,
            Some(control),
        );
    }
    for (place, input) in system.inputs().iter().enumerate() {
        let kind = if input.is_discrete { "two values" } else { "" };
        add(
            "input",
            &input.name,
            kind.to_owned(),
            Some(input.range),
            &input.unit_text,
            Some([inputs[place] / input.unit.scale, weights.inputs[place]]),
        );
    }
    for (noise, scale) in system.noises().iter().zip(system.noise_scales(values)) {
        let kind = if noise.is_uniform {
            "uniform ±"
        } else {
            "normal, deviation "
        };
        add(
            "noise",
            &noise.name,
            format!("{kind}{}", short(scale / noise.unit.scale)),
            None,
            &noise.unit_text,
            None,
        );
    }
    for observation in system.observations() {
        let kind = if observation.wraps { "wraps" } else { "" };
        add(
            "observation",
            &observation.name,
            kind.to_owned(),
            Some(observation.range),
            &observation.unit_text,
            None,
        );
    }
    let (name, period_ms) = (system.name(), short(system.period_s() * 1e3));
    let goal = match system.goal() {
        Some(goal) => format!(
            "success: {} within {} {}",
            goal.label,
            short(goal.bound / goal.unit.scale),
            goal.unit_text
        )
        .trim_end()
        .to_owned(),
        None => "no `keep`: a run measures no success".to_owned(),
    };
    format!(
        "{}: plant {name}, a step every {period_ms} ms\n\n{}\n{goal}\n",
        args.file.display(),
        table(&rows)
    )
}

/// A number without noise in its last digits.
fn short(number: f64) -> String {
    format!("{}", (number * 1e6).round() / 1e6)
}

fn report(found: &[Prediction]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let mut rows = vec![
        [
            "observation",
            "steps ahead",
            "rms",
            "if it stayed as it was",
            "unit",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    for prediction in found {
        let [own, stays] = prediction.rms.map(|rms| format!("{rms:.4}"));
        rows.push(vec![
            prediction.name.clone(),
            prediction.steps.to_string(),
            own,
            stays,
            prediction.unit.clone(),
        ]);
    }
    format!("\nlast 15 % of the recording\n{}", table(&rows))
}
