//! The rig's servo compared with the recording of the real one, where it is present.

use std::path::Path;

use tectum_control::body::rig::RigParameters;
use tectum_control::body::rig::disturbed::{
    RECORDED_ANGLE_DEG, RECORDED_ANGLE_STEP_DEG, RECORDED_POSITION_IN,
};
use tectum_control::rig_csv::{DEAD_ZONE_DEG, RigRecording};

/// Read in place; a checkout without it skips the test and reports it.
const RECORDING: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/data/pendulum/rig.csv"
);

fn recording(what: &str) -> Option<RigRecording> {
    if !Path::new(RECORDING).exists() {
        eprintln!("skipped: rig.csv of the reference data is absent: {what}");
        return None;
    }
    Some(RigRecording::read(Path::new(RECORDING)).expect("the recording"))
}

/// Deviation of a reading's noise, from the second differences of rows whose neighbours, two to
/// either side, are all within `quiet` of them.
fn noise(readings: &[f64], quiet: f64) -> f64 {
    let is_settled = |five: &&[f64]| {
        five.iter()
            .all(|reading| *reading != DEAD_ZONE_DEG && (reading - five[2]).abs() < quiet)
    };
    let bends: Vec<f64> = readings
        .windows(5)
        .filter(is_settled)
        .map(|five| five[3] - 2.0 * five[2] + five[1])
        .collect();
    let mean = bends.iter().sum::<f64>() / bends.len() as f64;
    let variance = bends.iter().map(|bend| (bend - mean).powi(2)).sum::<f64>() / bends.len() as f64;
    println!("noise {} of {} rows", (variance / 6.0).sqrt(), bends.len());
    (variance / 6.0).sqrt()
}

#[test]
fn the_noise_of_disturbed_rigs_is_the_recordings() {
    let Some(recording) = recording("the noise of its readings") else {
        return;
    };
    let angle = noise(&recording.pend_position_deg, 1.5);
    assert!((angle / RECORDED_ANGLE_DEG - 1.0).abs() < 0.1, "{angle}");
    let position = noise(&recording.la_position_in, 0.002);
    assert!(
        (position / RECORDED_POSITION_IN - 1.0).abs() < 0.2,
        "{position}"
    );
    let steps = recording
        .pend_position_deg
        .iter()
        .map(|angle| (angle + 180.0) / RECORDED_ANGLE_STEP_DEG);
    let off = steps
        .map(|step| (step - step.round()).abs())
        .fold(0.0, f64::max);
    assert!(off < 0.01, "angles are whole steps but for {off} of one");
    let share = recording.jumps as f64 / recording.len() as f64;
    assert!((share - 0.02).abs() < 1e-4, "{share} of the rows jump");
}

#[test]
fn the_servo_law_explains_the_recorded_velocity() {
    let Some(recording) = recording("the rig recording") else {
        return;
    };
    assert_eq!((recording.len(), recording.jumps), (10_101, 202));
    let rig = RigParameters::default();
    let (saturating, linear) = (
        unexplained(&recording, |v| rig.commanded_velocity(v) / 0.0254),
        unexplained(&recording, |v| -2.71 * v),
    );
    println!(
        "unexplained share of the velocity's variance: saturating servo {saturating:.4}, linear {linear:.4}"
    );
    assert!(saturating < 0.035, "{saturating}");
    assert!(linear > 2.0 * saturating, "{linear}");
}

/// Share of the variance of the cart's interval velocity, away from the stops, that a law of the
/// row's command leaves.
fn unexplained(recording: &RigRecording, law_in_per_s: impl Fn(f64) -> f64) -> f64 {
    let x = &recording.la_position_in;
    let rows = (1..x.len() - 1).filter(|&i| x[i].abs() < 3.6 && x[i + 1].abs() < 3.6);
    let pairs: Vec<(f64, f64)> = rows
        .map(|i| {
            (
                (x[i + 1] - x[i]) / recording.elapsed_ms[i + 1] * 1000.0,
                law_in_per_s(recording.cmd_volts[i]),
            )
        })
        .collect();
    let mean = pairs.iter().map(|(velocity, _)| velocity).sum::<f64>() / pairs.len() as f64;
    let residual: f64 = pairs
        .iter()
        .map(|(velocity, law)| (velocity - law).powi(2))
        .sum();
    let variance: f64 = pairs
        .iter()
        .map(|(velocity, _)| (velocity - mean).powi(2))
        .sum();
    residual / variance
}
