//! The adaptive regulator on rigs that it does not know.

use std::ops::ControlFlow;

use tectum::{Device, ErrorKind, Session, WorkProgress};
use tectum_control::body::rig::RigParameters;
use tectum_control::body::rig::disturbed::{Disturbances, DisturbedRig};
use tectum_control::body::{Body, ExactState, Start, body};
use tectum_control::brain::Brain;
use tectum_control::brain::field::learning::compare;
use tectum_control::brain::field::spec::FieldSpec;
use tectum_control::brain::lqr::adaptive::Adaptive;
use tectum_control::closed_loop::{Conditions, Trial, rig_trials, summarize};

fn adaptive() -> Adaptive {
    Adaptive::new(body("rig", None).expect("known").spec()).expect("the rig")
}

fn rigs(count: u64, outlier_fraction: f64) -> Vec<Trial> {
    let common = Disturbances {
        delay_samples: 1,
        noise: 1.0,
        outlier_fraction,
        ..Disturbances::default()
    };
    let conditions = Conditions {
        length_spread: 0.3,
        common,
    };
    let trials = rig_trials(
        &conditions,
        count,
        &|| Ok(Box::new(adaptive())),
        &mut tectum::WorkProgress::ignore,
    )
    .expect("it runs");
    eprintln!(
        "other rigs: outliers {outlier_fraction}: {:?}",
        summarize(&trials)
    );
    trials
}

/// Additional disturbances of the hundred rigs: one more sample of delay, and the recording's
/// noise.
#[test]
fn a_hundred_of_a_hundred_rigs_are_swung_up_and_upright_for_90_percent_of_a_minute() {
    let trials = rigs(100, 0.0);
    let lengths = trials.iter().map(|trial| trial.pole_length);
    assert!(
        lengths.clone().fold(f64::MAX, f64::min) < 0.71 && lengths.fold(0.0, f64::max) > 1.29,
        "the whole spread is there"
    );
    for trial in trials {
        assert!(
            trial.upright_fraction >= 0.9 && trial.longest_s > 30.0,
            "{trial:?}"
        );
    }
}

/// As many angles are anywhere as rows of the recording have a jump.
#[test]
fn angle_outliers_are_rejected() {
    let trials = rigs(30, 0.02);
    assert_eq!(summarize(&trials).met_target, 30, "{trials:?}");
}

#[test]
fn a_snapshot_goes_on_as_the_uninterrupted_one() {
    let disturbances = Disturbances {
        pole_length: 0.8,
        delay_samples: 1,
        noise: 1.0,
        outlier_fraction: 0.02,
    };
    let mut plant =
        DisturbedRig::new(RigParameters::default(), disturbances, Start::Hanging).expect("a rig");
    plant.reset(7);
    let mut brain = adaptive();
    let run = |plant: &mut DisturbedRig, brain: &mut Adaptive, ticks: usize| -> Vec<f32> {
        let (mut seen, mut action) = ([0.0; 4], [0.0]);
        let mut tick = || {
            plant.observe(&mut seen);
            brain.tick(&seen, &mut action).expect("it runs");
            plant.step(&action);
            action[0]
        };
        (0..ticks).map(|_| tick()).collect()
    };
    run(&mut plant, &mut brain, 61);
    let (state, place) = (brain.snapshot().expect("a snapshot"), plant.state());
    let whole = run(&mut plant, &mut brain, 200);
    assert!(
        (brain.selected().0 - 0.8).abs() < 0.03 && brain.selected().1 == 1,
        "{:?}",
        brain.selected()
    );
    let (mut other, mut elsewhere) = (
        adaptive(),
        DisturbedRig::new(RigParameters::default(), disturbances, Start::Hanging).expect("a rig"),
    );
    other.restore(&state).expect("it fits");
    elsewhere.set_state(&place).expect("it fits");
    assert_eq!(run(&mut elsewhere, &mut other, 200), whole);
}

/// Ten readings that are not finite get 0 V; the models continue by prediction.
#[test]
fn a_reading_that_is_no_number_gets_the_safe_action() {
    let mut brain = adaptive();
    let mut action = [9.0];
    brain.tick(&[f32::NAN; 4], &mut action).expect("it runs");
    assert_eq!(action, [0.0]);
    brain
        .tick(&[0.0, 0.0, 0.0, 178.0], &mut action)
        .expect("it runs");
    assert!(action[0].abs() > 0.1, "it pumps: {action:?}");
    brain
        .tick(&[0.0, f32::INFINITY, 0.0, 178.0], &mut action)
        .expect("it runs");
    assert_eq!(action, [0.0]);
}

/// Trials, identification and the comparison of controllers have no result before their end.
#[test]
fn sweeps_that_are_broken_off_are_cancelled() {
    fn stop(progress: WorkProgress<'_>) -> ControlFlow<()> {
        if progress.done >= 1 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
    let conditions = Conditions {
        length_spread: 0.3,
        common: Disturbances::default(),
    };
    let trials = rig_trials(&conditions, 8, &|| Ok(Box::new(adaptive())), &mut stop).map(drop);
    let spec = FieldSpec {
        cells: vec![8, 8, 8],
        channels: 32,
        ..FieldSpec::default()
    };
    let cpu = Device::open("cpu").expect("cpu");
    let compared = compare(&spec, &mut Session::new(&cpu), 1, 20, &mut stop).map(drop);
    for (ended, message) in [
        (trials, "trials: broken off after "),
        (compared, "field, learning: broken off after 1 of 4"),
    ] {
        let error = ended.expect_err("broken off");
        assert!(
            error.kind() == ErrorKind::Cancelled && error.to_string().starts_with(message),
            "{error}"
        );
    }
}
