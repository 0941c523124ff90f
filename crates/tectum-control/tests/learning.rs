//! An untrained twin that learns while it controls, on Pendulum-v1.

use std::ops::ControlFlow;

use tectum::{Device, Result};
use tectum_control::body::rig::{Rig, RigParameters};
use tectum_control::body::{Body, Start, body, pendulum};
use tectum_control::brain::Brain;
use tectum_control::brain::mppi::{Model, Mppi, MppiParameters, OnlineLearning};
use tectum_control::twin::{OnlineSettings, Transitions, Twin, TwinLayout, TwinRecipe, train};

const SETTINGS: OnlineSettings = OnlineSettings {
    warm_up: 40,
    every: 25,
    replay_capacity: 1000,
    is_threaded: false,
};

fn cpu() -> Device {
    Device::open("cpu").expect("always there")
}

fn layout() -> TwinLayout {
    TwinLayout::of(body("pendulum", None).expect("known").spec(), false).expect("one action")
}

fn recipe() -> TwinRecipe {
    TwinRecipe {
        hidden: vec![32, 32],
        steps: 500,
        batch: 128,
        ..TwinRecipe::default()
    }
}

fn parameters() -> MppiParameters {
    MppiParameters::for_body("pendulum").expect("known")
}

fn beginner(
    settings: OnlineSettings,
    recipe: TwinRecipe,
    parameters: &MppiParameters,
    seed: u64,
) -> Mppi {
    let twin = Twin::untrained(&layout(), &recipe.hidden).expect("widths above 0");
    let online = OnlineLearning { settings, recipe };
    Mppi::online(twin, online, parameters, &cpu(), seed).expect("it compiles")
}

/// One step of body and brain; returns the action and the reward.
fn step(plant: &mut dyn Body, brain: &mut dyn Brain) -> Result<(f32, f64)> {
    let (mut seen, mut action) = ([0.0; 2], [0.0]);
    plant.observe(&mut seen);
    brain.tick(&seen, &mut action)?;
    Ok((action[0], plant.step(&action).reward))
}

/// `count` steps; returns the sum of the rewards.
fn steps(plant: &mut dyn Body, brain: &mut dyn Brain, count: usize) -> f64 {
    (0..count)
        .map(|_| step(plant, brain).expect("it runs").1)
        .sum()
}

/// Published, with 100 random steps and a round every 50: 231 to 299, mean of four 250.
#[test]
fn from_nothing_it_balances_within_250_steps_in_the_mean_of_20_seeds() {
    let mut needed = Vec::new();
    for seed in 0..20 {
        let mut plant = body("pendulum", Some(Start::Hanging)).expect("known");
        plant.reset(seed);
        let mut brain = beginner(SETTINGS, recipe(), &parameters(), seed);
        let (mut taken, mut upright, mut task) = (0, 0, (pendulum::DESCRIPTOR.task)());
        // Upright within 0.1 rad for a second.
        while upright < 20 {
            step(plant.as_mut(), &mut brain).expect("it runs");
            taken += 1;
            upright = if task.value(plant.as_ref()).abs() < 0.1 {
                upright + 1
            } else {
                0
            };
            assert!(taken < 600, "seed {seed} does not balance");
        }
        needed.push(taken);
    }
    let mean = f64::from(needed.iter().sum::<u32>()) / needed.len() as f64;
    eprintln!("learning: balanced after {mean:.1} steps on average, {needed:?}");
    assert!(mean <= 250.0, "{mean}: {needed:?}");
}

/// Gymnasium's starts of seeds 0 to 99, as in `pendulum_regret.rs`.
fn starts() -> Vec<[f64; 2]> {
    let mut reader = csv::Reader::from_reader(&include_bytes!("data/pendulum_starts.csv")[..]);
    let rows = reader
        .deserialize::<(u64, f64, f64)>()
        .map(|row| row.expect("as it was written"));
    rows.map(|(_, angle, speed)| [angle, speed]).collect()
}

/// Five episodes of 200 steps from other random starts, then its weights are frozen.
#[test]
fn a_thousand_steps_of_the_body_teach_it_to_within_10_of_the_optimum() {
    // As in `pendulum_regret.rs`.
    const OPTIMUM: f64 = -132.83;
    let parameters = parameters();
    let mut plant = body("pendulum", Some(Start::Random)).expect("known");
    let mut brain = beginner(SETTINGS, recipe(), &parameters, 1);
    for episode in 0..5 {
        plant.reset(1000 + episode);
        brain.interrupted();
        steps(plant.as_mut(), &mut brain, 200);
    }
    let learned = brain.learning().expect("it learns");
    assert!(
        learned.transitions < 1000 && learned.lost == 0,
        "{learned:?}"
    );
    let state = brain.snapshot().expect("reads");
    let starts = starts();
    let mut total = 0.0;
    for (seed, start) in starts.iter().enumerate() {
        let twin = Twin::untrained(&layout(), &recipe().hidden).expect("widths above 0");
        let mut frozen =
            Mppi::new(Model::Twin(twin), &parameters, &cpu(), seed as u64).expect("it compiles");
        frozen.restore(&state).expect("the same network");
        plant.set_state(start).expect("two numbers");
        total += steps(plant.as_mut(), &mut frozen, 200);
    }
    let found = total / starts.len() as f64;
    eprintln!(
        "learning: mean return {found:.2} over {} starts, regret {:.2}, {learned:?}",
        starts.len(),
        OPTIMUM - found
    );
    assert!(
        (-0.5..=10.0).contains(&(OPTIMUM - found)),
        "mean return {found}, regret {}",
        OPTIMUM - found
    );
}

/// A twin of the identified rig controls rigs whose poles are shorter by 30 and by 20 %.
#[test]
fn on_a_rig_that_differs_it_learns_what_a_fixed_twin_cannot() {
    let mut nominal = body("rig", None).expect("known");
    let parameters = MppiParameters::for_body("rig").expect("known");
    let layout = TwinLayout::of(nominal.spec(), parameters.previous_action).expect("one action");
    let known = Transitions::simulate(
        nominal.require_randomized().expect("random states"),
        &layout,
        30_000,
        1,
    );
    let (twin, _) = train(
        &layout,
        &known,
        &TwinRecipe::default(),
        &cpu(),
        1,
        |_, _| ControlFlow::Continue(()),
    )
    .expect("it learns");
    let recipe = TwinRecipe {
        steps: 300,
        batch: 128,
        learning_rate: 2e-3,
        ..TwinRecipe::default()
    };
    let settings = OnlineSettings {
        warm_up: 0,
        every: 25,
        replay_capacity: 2000,
        is_threaded: false,
    };
    for scale in [0.7, 0.8] {
        let mut rig = RigParameters::default();
        rig.dynamics.length_m *= scale;
        // The share of a minute that begins upright.
        let upright = |mut brain: Mppi| {
            let mut plant = Rig::new(rig, Start::Hanging).expect("a rig");
            plant.reset(2);
            let (mut seen, mut action, mut upright) = ([0.0; 4], [0.0], 0);
            for _ in 0..1500 {
                plant.observe(&mut seen);
                brain.tick(&seen, &mut action).expect("it runs");
                upright += u32::from(plant.step(&action).reward > 0.0);
            }
            f64::from(upright) / 1500.0
        };
        let fixed = upright(
            Mppi::new(Model::Twin(twin.clone()), &parameters, &cpu(), 2).expect("it compiles"),
        );
        let online = OnlineLearning {
            settings,
            recipe: recipe.clone(),
        };
        let learning = upright(
            Mppi::online(twin.clone(), online, &parameters, &cpu(), 2).expect("it compiles"),
        );
        eprintln!(
            "learning: pole of {scale} of the length upright for {fixed:.3} of a minute with a fixed twin, {learning:.3} with one that learns"
        );
        assert!(
            learning > 0.8 && learning > fixed + 0.3,
            "{scale}: {learning} after {fixed}"
        );
    }
}

#[test]
fn it_goes_on_from_a_snapshot_as_if_nothing_had_been() {
    let parameters = MppiParameters {
        samples: 128,
        ..parameters()
    };
    let recipe = TwinRecipe {
        steps: 40,
        ..recipe()
    };
    // The last one kept gives way at once; before the first round; between two; with weights.
    for (settings, before) in [
        (
            OnlineSettings {
                replay_capacity: 40,
                ..SETTINGS
            },
            95,
        ),
        (SETTINGS, 30),
        (SETTINGS, 55),
        (SETTINGS, 66),
    ] {
        let mut plant = body("pendulum", Some(Start::Hanging)).expect("known");
        let mut brain = beginner(settings, recipe.clone(), &parameters, 5);
        steps(plant.as_mut(), &mut brain, before);
        let (state, place) = (
            brain.snapshot().expect("reads"),
            plant.state().expect("exact"),
        );
        let whole: Vec<f32> = (0..60)
            .map(|_| step(plant.as_mut(), &mut brain).expect("it runs").0)
            .collect();
        let mut other = beginner(settings, recipe.clone(), &parameters, 99);
        other.restore(&state).expect("it fits");
        plant.set_state(&place).expect("two numbers");
        let resumed: Vec<f32> = (0..60)
            .map(|_| step(plant.as_mut(), &mut other).expect("it runs").0)
            .collect();
        assert_eq!(whole, resumed, "from step {before}");
        assert_eq!(brain.learning(), other.learning());
    }
    let mut other = beginner(
        OnlineSettings {
            replay_capacity: 30,
            warm_up: 20,
            ..SETTINGS
        },
        recipe.clone(),
        &parameters,
        1,
    );
    let mut brain = beginner(SETTINGS, recipe, &parameters, 5);
    let mut plant = body("pendulum", Some(Start::Hanging)).expect("known");
    steps(plant.as_mut(), &mut brain, 150);
    let error = other
        .restore(&brain.snapshot().expect("reads"))
        .expect_err("more than it keeps");
    assert!(error.to_string().contains("149 transitions"), "{error}");
}

#[test]
fn weights_that_predict_no_better_are_rejected() {
    let layout = layout();
    let mut plant = body("pendulum", Some(Start::Hanging)).expect("known");
    let base = Transitions::simulate(
        plant.require_randomized().expect("random states"),
        &layout,
        2000,
        3,
    );
    let (twin, _) = train(
        &layout,
        &base,
        &TwinRecipe {
            steps: 600,
            ..recipe()
        },
        &cpu(),
        3,
        |_, _| ControlFlow::Continue(()),
    )
    .expect("it learns");
    let settings = OnlineSettings {
        warm_up: 0,
        ..SETTINGS
    };
    // At a rate of 1 a few steps destroy the trained weights.
    let spoiling = TwinRecipe {
        steps: 20,
        learning_rate: 1.0,
        ..recipe()
    };
    let online = OnlineLearning {
        settings,
        recipe: spoiling,
    };
    let mut brain = Mppi::online(
        twin.clone(),
        online,
        &MppiParameters {
            samples: 128,
            ..parameters()
        },
        &cpu(),
        3,
    )
    .expect("it compiles");
    plant.reset(3);
    steps(plant.as_mut(), &mut brain, 60);
    let learned = brain.learning().expect("it learns");
    assert_eq!((learned.rounds, learned.rejected), (2, 2));
    let weights = brain
        .snapshot()
        .expect("reads")
        .f32("weights", twin.weights.len())
        .expect("a twin")
        .to_vec();
    assert_eq!(weights, twin.weights);
    // Weights so large that their loss is not a number are rejected even if there are none yet.
    let boundless = TwinRecipe {
        steps: 1,
        learning_rate: 1e38,
        ..recipe()
    };
    let mut brain = beginner(
        SETTINGS,
        boundless,
        &MppiParameters {
            samples: 64,
            ..parameters()
        },
        3,
    );
    steps(plant.as_mut(), &mut brain, 45);
    let learned = brain.learning().expect("it learns");
    assert_eq!((learned.rounds, learned.rejected), (1, 1));
    assert_eq!(
        brain
            .snapshot()
            .expect("reads")
            .u64("has_learned", 1)
            .expect("one number"),
        [0]
    );
}

#[test]
fn a_concurrent_round_delays_no_tick_and_its_weights_arrive() {
    let settings = OnlineSettings {
        is_threaded: true,
        ..SETTINGS
    };
    // Some seconds of work.
    let mut brain = beginner(
        settings,
        TwinRecipe {
            steps: 20_000,
            ..recipe()
        },
        &MppiParameters {
            samples: 64,
            ..parameters()
        },
        2,
    );
    let mut plant = body("pendulum", Some(Start::Hanging)).expect("known");
    steps(plant.as_mut(), &mut brain, 100);
    let learned = brain.learning().expect("it learns");
    assert_eq!(
        (learned.transitions, learned.rounds),
        (99, 0),
        "the ticks were done before the first round was"
    );
    assert_eq!(
        brain
            .snapshot()
            .expect("reads")
            .u64("has_learned", 1)
            .expect("one number"),
        [0]
    );
    let begin = std::time::Instant::now();
    while brain.learning().expect("it learns").rounds == 0 {
        assert!(begin.elapsed().as_secs() < 600, "no round ends");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    step(plant.as_mut(), &mut brain).expect("it runs");
    assert_eq!(
        brain
            .snapshot()
            .expect("reads")
            .u64("has_learned", 1)
            .expect("one number"),
        [1]
    );
}

#[test]
fn settings_that_none_can_have_are_named() {
    for (needle, settings) in [
        (
            "every is 0",
            OnlineSettings {
                every: 0,
                ..SETTINGS
            },
        ),
        (
            "replay_capacity is 19",
            OnlineSettings {
                replay_capacity: 19,
                ..SETTINGS
            },
        ),
        (
            "warm_up is 7",
            OnlineSettings {
                warm_up: 7,
                ..SETTINGS
            },
        ),
        (
            "warm_up is 1001",
            OnlineSettings {
                warm_up: 1001,
                ..SETTINGS
            },
        ),
    ] {
        let twin = Twin::untrained(&layout(), &[8]).expect("a width above 0");
        let online = OnlineLearning {
            settings,
            recipe: recipe(),
        };
        let error = Mppi::online(twin, online, &parameters(), &cpu(), 1)
            .err()
            .expect(needle);
        assert!(error.to_string().contains(needle), "{error}");
    }
}
