//! `tectum inspect` of a twin of the recorded rig.

use serde_json::json;
use tectum::{Device, Result};
use tectum_control::rig_csv::RigRecording;
use tectum_control::twin::{
    CHANNEL_NAMES, Ensemble, ErrorStats, GAUSSIAN_COVERAGE, Inspection, inspect,
};

use super::InspectArgs;
use crate::count::counted;
use crate::table::{print, table};

/// Shows what a twin is and, with a recording, how well it predicts it.
///
/// # Errors
/// A file that is not a twin; a recording that is invalid or has too little information.
pub fn inspect_twin(args: &InspectArgs) -> Result<()> {
    let ensemble = Ensemble::load(&args.file)?;
    let found = match &args.data {
        Some(path) => Some(
            inspect(&ensemble, &RigRecording::read(path)?, &Device::open("cpu")?)
                .map_err(|error| error.at(path.display()))?,
        ),
        None => None,
    };
    if args.json {
        let Ensemble {
            layout,
            origin,
            mean,
            deviation,
            noise,
            members,
            network,
            ..
        } = &ensemble;
        let line = json!({
            "kind": "twin", "lags": layout.lags, "networks": members.len(), "hidden": network.hidden(), "origin": origin,
            "change_mean": mean, "change_deviation": deviation, "noise": noise, "inspection": found,
        });
        return print(&format!("{line}\n"));
    }
    print(&(about(args, &ensemble) + &found.as_ref().map(report).unwrap_or_default()))
}

fn about(args: &InspectArgs, ensemble: &Ensemble) -> String {
    let origin = &ensemble.origin;
    let hidden = ensemble
        .network
        .hidden()
        .iter()
        .map(usize::to_string)
        .collect::<Vec<_>>()
        .join("-");
    let mut rows = vec![
        ["channel", "mean change", "deviation", "noise", "unit"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (channel, (name, unit)) in CHANNEL_NAMES.iter().enumerate() {
        let numbers = [&ensemble.mean, &ensemble.deviation, &ensemble.noise]
            .map(|numbers| format!("{:.4}", numbers[channel]));
        rows.push(
            std::iter::once((*name).to_owned())
                .chain(numbers)
                .chain([(*unit).to_owned()])
                .collect(),
        );
    }
    format!(
        "{}: {} of {hidden} tanh over {}, {} read\nfrom {}, {} with {}, {}, seed {}\n\n{}",
        args.file.display(),
        counted(ensemble.members.len(), "network"),
        counted(ensemble.layout.lags, "row"),
        counted(ensemble.layout.features(), "number"),
        origin.data,
        counted(origin.rows, "row"),
        counted(origin.jumps, "sensor jump"),
        counted(origin.samples[0], "sample"),
        origin.seed,
        table(&rows)
    )
}

fn report(found: &Inspection) -> String {
    let mut text = format!(
        "\nrecording: {}, {} touching {} of them, {} of the dead zone; tested from row {} on\n",
        counted(found.rows, "row"),
        counted(found.jumps, "sensor jump"),
        found.jump_rows,
        counted(found.dead_zone_rows, "reading"),
        found.test_start
    );
    let errors = |first: String, rows: &[&ErrorStats]| {
        let head = [
            first,
            "median".to_owned(),
            "p90".to_owned(),
            "rms".to_owned(),
            "unit".to_owned(),
        ]
        .to_vec();
        let row = |row: &&ErrorStats| {
            let numbers = [row.median, row.p90, row.rms].map(|size| format!("{size:.2}"));
            std::iter::once(row.method.name().to_owned())
                .chain(numbers)
                .chain([row.unit.to_owned()])
                .collect::<Vec<_>>()
        };
        table(
            &std::iter::once(head)
                .chain(rows.iter().map(row))
                .collect::<Vec<_>>(),
        )
    };
    for (channel, _) in CHANNEL_NAMES.iter().rev() {
        let rows: Vec<&ErrorStats> = found
            .one_step
            .iter()
            .filter(|row| row.channel == *channel)
            .collect();
        text += &format!(
            "\n{}",
            errors(
                format!(
                    "{channel}, 1 step, {} rows clear of jumps and dead zone",
                    found.usable
                ),
                &rows
            )
        );
    }
    let rows: Vec<&ErrorStats> = found.angle_without_jump.iter().collect();
    let head = format!(
        "pend_position, 1 step, {} rows without a jump, {} of them predicted",
        found.without_jump, found.predictable_rows
    );
    text += &format!("\n{}", errors(head, &rows));
    for horizon in found
        .horizons
        .iter()
        .filter(|horizon| horizon.steps > 1 && horizon.rows > 0)
    {
        let rows: Vec<&ErrorStats> = horizon.errors.iter().collect();
        text += &format!(
            "\n{}",
            errors(
                format!(
                    "pend_position, {} steps, {} rows",
                    horizon.steps, horizon.rows
                ),
                &rows
            )
        );
    }
    let mut rows = vec![
        [
            "within what the networks tell",
            "1 deviation",
            "2 deviations",
            "median deviation",
        ]
        .map(str::to_owned)
        .to_vec(),
    ];
    let percent = |part: f64| format!("{:.1} %", 100.0 * part);
    for (coverage, (_, unit)) in found.coverage.iter().zip(CHANNEL_NAMES) {
        rows.push(vec![
            coverage.channel.to_owned(),
            percent(coverage.within[0]),
            percent(coverage.within[1]),
            format!("{:.2} {unit}", coverage.deviation),
        ]);
    }
    rows.push(vec![
        "a Gaussian".to_owned(),
        percent(GAUSSIAN_COVERAGE[0]),
        percent(GAUSSIAN_COVERAGE[1]),
        String::new(),
    ]);
    text + &format!("\n{}", table(&rows))
}
