//! `tectum train rig`.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use serde_json::json;
use tectum::{Device, InputFile, Result, RunStats, Session};
use tectum_control::body::rig::identification::{Identification, identify};
use tectum_control::rig_csv::{DEAD_ZONE_DEG, RigRecording};

use crate::count::counted;
use crate::progress::{Bar, Unit};
use crate::receipt::{ReceiptArgs, line};
use crate::table::{print, table};

/// Identifies the rig's constants from a recording, with their standard errors.
#[derive(Args)]
pub struct RigArgs {
    /// The recording: columns la_position, pend_velocity, pend_position, cmd_volts, elapsed.
    #[arg(value_name = "DATA.csv")]
    data: PathBuf,
    #[command(flatten)]
    receipt: ReceiptArgs,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A recording that is invalid or has too little information.
pub fn train_rig(args: &RigArgs) -> Result<()> {
    let input = InputFile::of(&args.data)?;
    let recording = RigRecording::read(&args.data)?;
    // Host arithmetic: a run without launches, like that of the reference interpreter.
    let (mut session, start) = (Session::new(&Device::open("cpu")?), Instant::now());
    let bar = Bar::new(Unit::Steps);
    let found =
        identify(&recording, &mut bar.watch()).map_err(|error| error.at(args.data.display()))?;
    bar.clear();
    session.reads(input);
    session.record(&RunStats::default(), start.elapsed().as_nanos() as u64);
    let receipt = session.receipt();
    args.receipt.save(&receipt)?;
    if args.json {
        let Identification {
            estimates,
            intervals,
            servo_r2,
            servo_rms_in_per_s,
            windows,
            dropped,
            pole_deg: [rms, median],
            ..
        } = &found;
        let line = json!({
            "data": args.data, "rows": recording.len(), "jumps": recording.jumps, "estimates": estimates, "servo_intervals": intervals,
            "servo_r2": servo_r2, "servo_rms_in_per_s": servo_rms_in_per_s, "pole_windows": windows, "pole_windows_dropped": dropped,
            "pole_rms_deg": rms, "pole_median_deg": median, "receipt": receipt,
        });
        return print(&format!("{line}\n"));
    }
    print(&(text(args, &recording, &found) + &line(&receipt) + "\n"))
}

fn text(args: &RigArgs, recording: &RigRecording, found: &Identification) -> String {
    let mut rows = vec![
        ["constant", "value", "standard error", "unit"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for estimate in &found.estimates {
        let error = if estimate.error.is_finite() {
            format!("{:.4}", estimate.error)
        } else {
            "not shown by the recording, default kept".to_owned()
        };
        rows.push(vec![
            estimate.name.to_owned(),
            format!("{:.4}", estimate.value),
            error,
            estimate.unit.to_owned(),
        ]);
    }
    let stuck = recording
        .pend_position_deg
        .iter()
        .filter(|angle| **angle == DEAD_ZONE_DEG)
        .count();
    let (rows, shown) = (counted(recording.len(), "row"), table(&rows));
    let mut text = format!(
        "{}: {rows}, {}, {} of the dead zone\n\n{shown}",
        args.data.display(),
        counted(recording.jumps, "sensor jump"),
        counted(stuck, "reading")
    );
    text += &format!(
        "\nservo: R2 {:.4}, {:.2} in/s rms over {} intervals clear of the stops\n",
        found.servo_r2, found.servo_rms_in_per_s, found.intervals
    );
    let [rms, median] = found.pole_deg;
    let Identification {
        windows, dropped, ..
    } = found;
    text += &format!(
        "pole: {rms:.2} deg rms, median {median:.2}, over {windows} windows of 0.8 s without jumps, each with its own start; "
    );
    text + &format!("{dropped} dropped, which no swinging pole explains\n")
}
