//! The adaptive regulator on rigs that it is not told of.

use tectum_models::body::body;
use tectum_models::body::rig::disturbed::Disturbances;
use tectum_models::brain::Brain;
use tectum_models::brain::lqr::adaptive::Adaptive;
use tectum_models::closed_loop::{Conditions, Trial, rig_trials, tally};

fn adaptive() -> Adaptive {
    Adaptive::new(body("rig", None).expect("known").spec()).expect("the rig")
}

fn hundred(leaps: f64) -> Vec<Trial> {
    let common = Disturbances { late: 1, noise: 1.0, leaps, ..Disturbances::default() };
    let conditions = Conditions { length_spread: 0.3, common };
    let trials = rig_trials(&conditions, 100, &|| Ok(Box::new(adaptive()))).expect("it runs");
    let shares = trials.iter().map(|trial| trial.pole_length);
    assert!(shares.clone().fold(f64::MAX, f64::min) < 0.71 && shares.fold(0.0, f64::max) > 1.29, "the whole spread is there");
    eprintln!("other rigs: leaps {leaps}: {:?}", tally(&trials));
    trials
}

/// What the hundred rigs have besides: a sample of delay more, and the recording's noise.
#[test]
fn a_hundred_of_a_hundred_rigs_are_swung_up_and_upright_for_90_percent_of_a_minute() {
    for trial in hundred(0.0) {
        assert!(trial.upright_share >= 0.9 && trial.longest_s > 30.0, "{trial:?}");
    }
}

/// As many angles are anywhere as rows of the recording leap.
#[test]
fn angles_that_leap_are_not_believed() {
    let trials = hundred(0.02);
    assert!(tally(&trials).as_wanted >= 98, "{trials:?}");
}
