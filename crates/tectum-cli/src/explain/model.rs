//! `tectum explain MODEL`: the launches of a model's run, its device and the reasons.

use std::path::Path;

use clap::Args;
use serde::Serialize;
use tectum::operation::product::panel_format::PanelFormat;
use tectum::route::{self, Calibration, Choice};
use tectum::{CacheFormats, Device, DeviceInfo, Result};
use tectum_transformer::{Model, Routing, RunExplanation};

use super::choice_text;
use crate::table::{bytes, print, print_json, table};

/// What only models take.
#[derive(Args)]
pub struct ModelArgs {
    /// Of a model: tokens of the run, 128 if not given, or as many as it takes at once.
    #[arg(long)]
    tokens: Option<usize>,
    /// Of a model: the format of the weights of products: f32, f16, bf16 or int8.
    ///
    /// Without it, the format of the file.
    #[arg(long, value_name = "FORMAT")]
    weights: Option<PanelFormat>,
    /// Of a decoder: how keys and values are kept: f32, f16, q8, k8v4 or q4; f32 if not given.
    #[arg(long, value_name = "FORMAT")]
    cache: Option<CacheFormats>,
    /// Of a model: how auto chooses, measured or fixed.
    #[arg(long, value_name = "HOW")]
    route: Option<Routing>,
}

impl ModelArgs {
    /// The option, if it was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--tokens", self.tokens.is_some()),
            ("--weights", self.weights.is_some()),
            ("--cache", self.cache.is_some()),
            ("--route", self.route.is_some()),
        ];
        given
            .into_iter()
            .find_map(|(option, is_given)| is_given.then_some(option))
    }
}

/// The output, as JSON.
#[derive(Serialize)]
struct Explanation<'a> {
    kind: &'static str,
    file: String,
    #[serde(serialize_with = "id")]
    device: &'a DeviceInfo,
    software: bool,
    /// Why it runs there.
    cause: String,
    run: &'a RunExplanation,
    /// The routing of such a run.
    route: &'a Choice,
}

/// Prints the explanation.
pub fn explain_model(
    path: &Path,
    device: Option<&str>,
    args: &ModelArgs,
    json: bool,
) -> Result<()> {
    let model = Model::open(path)?;
    let (device, choice) =
        model.open_device(device.unwrap_or("auto"), args.route.unwrap_or_default())?;
    let run = model
        .explain(&device, args.tokens, args.weights, args.cache)
        .map_err(|error| error.at(path.display()))?;
    let kind = if matches!(model, Model::Decoder(_)) {
        "decoder"
    } else {
        "encoder"
    };
    let found = route::calibrate_all(route::default_path().as_deref(), false);
    let known: Vec<Calibration> = found
        .into_iter()
        .filter_map(|(_, calibration)| calibration.ok())
        .collect();
    let route = match args.route.unwrap_or_default() {
        Routing::Measured => route::choose(&run.work, &known)?,
        Routing::Fixed => route::choose_fixed(&run.work, Device::list())?,
    };
    let cause = choice.map_or_else(|| "it was requested".to_owned(), |choice| choice.reason);
    let explanation = Explanation {
        kind,
        file: path.display().to_string(),
        device: device.info(),
        software: device.info().software,
        cause,
        run: &run,
        route: &route,
    };
    if json {
        print_json(&explanation)
    } else {
        print(&text(&explanation))
    }
}

fn id<S: serde::Serializer>(
    device: &DeviceInfo,
    serializer: S,
) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&device.id)
}

fn text(explanation: &Explanation<'_>) -> String {
    let Explanation {
        kind,
        file,
        device,
        cause,
        run,
        route,
        ..
    } = explanation;
    let head = ["node", "operation", "shape", "place", "bytes", "MFLOP"]
        .map(str::to_owned)
        .to_vec();
    let computed = run.nodes.iter().filter(|node| node.made != "fed");
    let rows = computed.map(|node| {
        let place = match node.kernels.as_slice() {
            [] => format!("{}: no launch", node.made),
            [kernel] => format!("{}: {kernel}", device.id),
            [before @ .., kernel] => format!("{}: {kernel}, {} before it", device.id, before.len()),
        };
        let amount = |amount: f64, text: String| if amount > 0.0 { text } else { String::new() };
        let flops = amount(node.flops, format!("{:.3}", node.flops / 1e6));
        vec![
            format!("%{}", node.node),
            node.operation.clone(),
            node.shape.clone(),
            place,
            amount(node.bytes, bytes(node.bytes)),
            flops,
        ]
    });
    let mut text = format!("{}, {kind} of {file}\n\n", run.work.plan);
    text += &table(&[vec![head], rows.collect()].concat());
    let rows = [
        ("place", format!("{device}: {cause}")),
        ("launches", run.work.launches.len().to_string()),
        (
            "weights",
            format!("{}, copied once", bytes(run.weight_bytes as f64)),
        ),
        (
            "keys and values",
            if run.cache_bytes > 0 {
                format!("{}, kept there", bytes(run.cache_bytes as f64))
            } else {
                "none".to_owned()
            },
        ),
        (
            "other values",
            format!(
                "{} at their peak, {} without using memory again",
                bytes(run.temporary_bytes as f64),
                bytes(run.temporary_bytes_unshared as f64)
            ),
        ),
        (
            "copies of a run",
            format!(
                "{} up, {} down",
                bytes(run.work.bytes_up),
                bytes(run.work.bytes_down)
            ),
        ),
    ];
    text += &format!(
        "\n{}",
        table(&rows.map(|(name, value)| vec![name.to_owned(), value]))
    );
    text + &choice_text(route)
}
