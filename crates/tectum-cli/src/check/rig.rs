//! `tectum check rig`.

use std::ops::ControlFlow;
use std::time::Instant;

use serde::Serialize;
use tectum::{Device, Result, RunStats, Session, WorkProgress};
use tectum_control::body::body;
use tectum_control::body::rig::disturbed::Disturbances;
use tectum_control::brain::Brain;
use tectum_control::brain::lqr::Lqr;
use tectum_control::brain::lqr::adaptive::Adaptive;
use tectum_control::closed_loop::{
    Conditions, MakeController, Trial, TrialSummary, rig_trials, summarize,
};

use crate::progress::{Bar, Unit};
use crate::receipt::{ReceiptArgs, line};
use crate::table::{print, print_json, table};

/// A row of the table.
#[derive(Serialize)]
struct Row {
    controller: &'static str,
    rigs: &'static str,
    conditions: Conditions,
    summary: TrialSummary,
    trials: Vec<Trial>,
}

/// The rigs, each row with the disturbances of the previous row and more.
fn conditions() -> [(&'static str, Conditions); 5] {
    let exact = Disturbances::default();
    let of = |length_spread, common| Conditions {
        length_spread,
        common,
    };
    [
        ("as identified", of(0.0, exact)),
        ("poles ±30 %", of(0.3, exact)),
        (
            "and a sample late",
            of(
                0.3,
                Disturbances {
                    delay_samples: 1,
                    ..exact
                },
            ),
        ),
        (
            "and the recording's noise",
            of(
                0.3,
                Disturbances {
                    delay_samples: 1,
                    noise: 1.0,
                    ..exact
                },
            ),
        ),
        (
            "and 2 % of angles anywhere",
            of(
                0.3,
                Disturbances {
                    delay_samples: 1,
                    noise: 1.0,
                    outlier_fraction: 0.02,
                    ..exact
                },
            ),
        ),
    ]
}

/// Runs the regulators, the one designed for the identified rig and the adaptive one, on many rigs
/// that differ from it.
///
/// # Errors
/// What the controllers report.
pub fn check_rig(seeds: u64, receipt: &ReceiptArgs, json: bool) -> Result<()> {
    let spec = body("rig", None)?.spec().clone();
    let lqr = || -> Result<Box<dyn Brain>> { Ok(Box::new(Lqr::new(body("rig", None)?)?)) };
    let adaptive = || -> Result<Box<dyn Brain>> { Ok(Box::new(Adaptive::new(&spec)?)) };
    let controllers: [(&str, MakeController<'_>); 2] = [("lqr", &lqr), ("adaptive", &adaptive)];
    // Host arithmetic: runs without launches, one per row.
    let mut session = Session::new(&Device::open("cpu")?);
    let (bar, total) = (
        Bar::new(Unit::Steps),
        conditions().len() as u64 * controllers.len() as u64 * seeds,
    );
    let mut rows = Vec::new();
    for (rigs, conditions) in conditions() {
        for (controller, make) in controllers {
            let start = Instant::now();
            let before = rows.len() as u64 * seeds;
            let mut watch = |progress: WorkProgress<'_>| {
                bar.show(
                    before + progress.done,
                    total,
                    format!("{controller}: {rigs}"),
                );
                ControlFlow::Continue(())
            };
            let trials = rig_trials(&conditions, seeds, make, &mut watch)?;
            session.record(&RunStats::default(), start.elapsed().as_nanos() as u64);
            rows.push(Row {
                controller,
                rigs,
                conditions,
                summary: summarize(&trials),
                trials,
            });
        }
    }
    bar.clear();
    let done = session.receipt();
    receipt.save(&done)?;
    if json {
        return print_json(&rows);
    }
    let head = [
        "rigs",
        "controller",
        "upright 90 % of 60 s",
        "over 30 s in one piece",
        "least share",
        "median",
    ]
    .map(str::to_owned)
    .to_vec();
    let shown = |row: &Row| {
        let of = |count: usize| format!("{count} of {}", row.summary.trials);
        let shares =
            [row.summary.min_upright, row.summary.median].map(|share| format!("{share:.3}"));
        let counts = [
            row.rigs.to_owned(),
            row.controller.to_owned(),
            of(row.summary.met_target),
            of(row.summary.for_30_s),
        ];
        counts.into_iter().chain(shares).collect()
    };
    let whole: Vec<Vec<String>> = std::iter::once(head)
        .chain(rows.iter().map(shown))
        .collect();
    print(&(table(&whole) + "\n" + &line(&done) + "\n"))
}
