//! The rig's servo against the recording of the real one, where it is present.

use std::path::Path;

use tectum_models::body::rig::RigParameters;
use tectum_models::rig_csv::RigRecording;

/// Read in place; a checkout without it skips the test and says so.
const RECORDING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/pendulum/rig.csv");

#[test]
fn the_servo_law_explains_the_recorded_velocity() {
    if !Path::new(RECORDING).exists() {
        eprintln!("skipped: ../shared/data/pendulum/rig.csv is absent: the rig recording");
        return;
    }
    let recording = RigRecording::read(Path::new(RECORDING)).expect("the recording");
    assert_eq!((recording.len(), recording.jumps), (10_101, 202));
    let rig = RigParameters::default();
    let (saturating, linear) = (unexplained(&recording, |v| rig.commanded_velocity(v) / 0.0254), unexplained(&recording, |v| -2.71 * v));
    println!("unexplained share of the velocity's variance: saturating servo {saturating:.4}, linear {linear:.4}");
    assert!(saturating < 0.035, "{saturating}");
    assert!(linear > 2.0 * saturating, "{linear}");
}

/// Share of the variance of the cart's interval velocity, away from the stops, that a law of the row's command leaves.
fn unexplained(recording: &RigRecording, law_in_per_s: impl Fn(f64) -> f64) -> f64 {
    let x = &recording.la_position_in;
    let rows = (1..x.len() - 1).filter(|&i| x[i].abs() < 3.6 && x[i + 1].abs() < 3.6);
    let pairs: Vec<(f64, f64)> = rows
        .map(|i| ((x[i + 1] - x[i]) / recording.elapsed_ms[i + 1] * 1000.0, law_in_per_s(recording.cmd_volts[i])))
        .collect();
    let mean = pairs.iter().map(|(velocity, _)| velocity).sum::<f64>() / pairs.len() as f64;
    let residual: f64 = pairs.iter().map(|(velocity, law)| (velocity - law).powi(2)).sum();
    let variance: f64 = pairs.iter().map(|(velocity, _)| (velocity - mean).powi(2)).sum();
    residual / variance
}
