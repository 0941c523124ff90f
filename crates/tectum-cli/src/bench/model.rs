//! `tectum bench MODEL`: a model in each format of its weights.

use std::path::Path;

use serde::Serialize;
use tectum::Result;
use tectum_transformer::{Accuracy, FormatMeasure, Model, Routing, measure_formats};

use crate::interrupt::Interrupt;
use crate::progress::{Bar, Unit};
use crate::table::{bytes, print, print_json, table};

/// The output of `--json`.
#[derive(Serialize)]
struct Output<'a> {
    model: String,
    device: &'a str,
    software: bool,
    formats: &'a [FormatMeasure],
    /// Of a run that was interrupted: how many formats it would have measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    interrupted: Option<usize>,
}

/// Measures and prints.
pub fn bench(path: &Path, device: &str, json: bool) -> Result<()> {
    let (device, _) = Model::open(path)?.open_device(device, Routing::Measured)?;
    let (bar, interrupt) = (Bar::new(Unit::Steps), Interrupt::watch()?);
    let mut planned = 0;
    let mut watch = bar.watch_until(&interrupt);
    let formats = measure_formats(path, &device, &mut |progress| {
        planned = progress.total as usize;
        watch(progress)
    })?;
    drop(watch);
    bar.clear();
    let interrupted = (formats.len() < planned).then_some(planned);
    let info = device.info();
    if json {
        return print_json(&Output {
            model: path.display().to_string(),
            device: &info.id,
            software: info.software,
            formats: &formats,
            interrupted,
        });
    }
    let is_decoder = formats.iter().any(|made| made.decoded_per_s.is_some());
    let of_kind = if is_decoder {
        ["one at a time", "divergence", "same first"]
    } else {
        ["least cosine", "", ""]
    };
    let columns = if is_decoder { 3 } else { 1 };
    let head: Vec<String> = ["weights", "bytes", "tokens", "at once"]
        .into_iter()
        .chain(of_kind)
        .map(str::to_owned)
        .take(4 + columns)
        .collect();
    let rows: Vec<Vec<String>> = std::iter::once(head)
        .chain(formats.iter().map(row))
        .collect();
    let mut text = format!(
        "{}\non {info}; accuracy against f32, over tokens drawn evenly\n",
        table(&rows)
    );
    if let Some(planned) = interrupted {
        text += &format!(
            "interrupted: {} of {planned} formats measured\n",
            formats.len()
        );
    }
    print(&text)
}

fn row(made: &FormatMeasure) -> Vec<String> {
    let rate = |rate: f64| format!("{rate:.1} tokens/s");
    let mut cells = vec![
        made.weights.to_owned(),
        bytes(made.weight_bytes as f64),
        made.tokens.to_string(),
        rate(made.tokens_per_s),
    ];
    match made.accuracy {
        Accuracy::Vectors { min_cosine } => cells.push(format!("{min_cosine:.6}")),
        Accuracy::Scores {
            mean_divergence,
            top1_agreement,
        } => {
            let decoded = made.decoded_per_s.map_or_else(String::new, rate);
            cells.extend([
                decoded,
                format!("{mean_divergence:.2e} nat"),
                format!("{:.1} %", 100.0 * top1_agreement),
            ]);
        }
    }
    cells
}
