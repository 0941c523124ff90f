//! The regulator balances every body from its start, and resumes exactly.

use tectum_control::body::task::Task;
use tectum_control::body::{Body, Descriptor, Start, body};
use tectum_control::brain::Brain as _;
use tectum_control::brain::lqr::Lqr;

struct Run {
    upright_share: f64,
    last_fallen_s: f64,
    reward: f64,
}

fn run(plant: &mut dyn Body, lqr: &mut Lqr, ticks: usize) -> Run {
    let mut observation = vec![0.0; plant.spec().observation.len()];
    let mut action = [0.0];
    let mut task = task_of(plant);
    let mut result = Run {
        upright_share: 0.0,
        last_fallen_s: 0.0,
        reward: 0.0,
    };
    for tick in 0..ticks {
        plant.observe(&mut observation);
        lqr.tick(&observation, &mut action);
        let step = plant.step(&action);
        result.reward += step.reward;
        if task.value(plant).abs() < 10f64.to_radians() {
            result.upright_share += 1.0 / ticks as f64;
        } else {
            result.last_fallen_s = (tick + 1) as f64 * plant.spec().dt_s;
        }
        if step.terminated {
            break;
        }
    }
    result
}

fn task_of(plant: &dyn Body) -> Box<dyn Task> {
    (Descriptor::of(&plant.spec().name)
        .expect("a known body")
        .task)()
}

fn pair(name: &str, start: Start) -> (Box<dyn Body>, Lqr) {
    let plant = body(name, Some(start)).expect("a known body");
    let lqr = Lqr::new(body(name, Some(start)).expect("a known body")).expect("stabilisable");
    (plant, lqr)
}

#[test]
fn swings_the_rig_up_and_holds_it() {
    for seed in 0..20 {
        let (mut plant, mut lqr) = pair("rig", Start::Hanging);
        plant.reset(seed);
        let result = run(plant.as_mut(), &mut lqr, 1500);
        println!(
            "rig seed {seed}: upright {:.3}, last fallen {:.2} s, gain {:?}",
            result.upright_share,
            result.last_fallen_s,
            lqr.gain()
        );
        assert!(
            result.upright_share > 0.8,
            "seed {seed}: {}",
            result.upright_share
        );
    }
}

#[test]
fn swings_the_pendulum_up_and_holds_it() {
    for seed in 0..20 {
        let (mut plant, mut lqr) = pair("pendulum", Start::Hanging);
        plant.reset(seed);
        let result = run(plant.as_mut(), &mut lqr, 400);
        println!(
            "pendulum seed {seed}: upright {:.3}, last fallen {:.2} s",
            result.upright_share, result.last_fallen_s
        );
        assert!(
            result.upright_share > 0.7,
            "seed {seed}: {}",
            result.upright_share
        );
    }
}

#[test]
fn keeps_the_cart_pole_up_for_a_whole_episode() {
    for seed in 0..50 {
        let (mut plant, mut lqr) = pair("cart_pole", Start::Random);
        plant.reset(seed);
        assert_eq!(
            run(plant.as_mut(), &mut lqr, 500).reward,
            500.0,
            "seed {seed}"
        );
    }
}

fn planner(name: &str, start: Start) -> Lqr {
    Lqr::with_mpc(body(name, Some(start)).expect("a known body")).expect("stabilisable")
}

#[test]
fn a_planner_swings_up_and_holds_what_the_regulator_does() {
    for (name, ticks, share) in [("rig", 1500, 0.9), ("pendulum", 400, 0.7)] {
        let mut shares = Vec::new();
        for seed in 0..20 {
            let (mut plant, _) = pair(name, Start::Hanging);
            plant.reset(seed);
            shares
                .push(run(plant.as_mut(), &mut planner(name, Start::Hanging), ticks).upright_share);
        }
        println!("{name}: {shares:.3?}");
        assert!(shares.iter().all(|upright| *upright > share), "{name}");
    }
    for seed in 0..20 {
        let (mut plant, _) = pair("cart_pole", Start::Random);
        plant.reset(seed);
        assert_eq!(
            run(
                plant.as_mut(),
                &mut planner("cart_pole", Start::Random),
                500
            )
            .reward,
            500.0,
            "seed {seed}"
        );
    }
}

#[test]
fn a_planner_keeps_the_cart_off_its_stops_where_the_regulator_runs_into_them() {
    let far_in = |lqr: &mut Lqr, start: &[f64]| {
        let (mut plant, _) = pair("rig", Start::Hanging);
        plant.set_state(start).expect("six numbers");
        let mut task = task_of(plant.as_ref());
        let (mut observation, mut action, mut far, mut fallen) = ([0.0; 4], [0.0], 0.0f32, false);
        for _ in 0..125 {
            plant.observe(&mut observation);
            far = far.max(observation[0].abs());
            lqr.tick(&observation, &mut action);
            plant.step(&action);
            fallen |= task.value(plant.as_ref()).abs() > 0.7;
        }
        (far, fallen)
    };
    let (mut regulator, mut plan, mut hit) = (0, 0, [0, 0]);
    for place in 0..8 {
        for tilt in -6..=6 {
            let start = [
                0.5 * f64::from(place) * 0.0254,
                0.0,
                0.04 * f64::from(tilt),
                0.0,
                0.0,
                0.0,
            ];
            let ends = [
                far_in(&mut pair("rig", Start::Hanging).1, &start),
                far_in(&mut planner("rig", Start::Hanging), &start),
            ];
            regulator += usize::from(!ends[0].1);
            plan += usize::from(!ends[1].1);
            hit.iter_mut()
                .zip(ends)
                .for_each(|(hit, (far, fallen))| *hit += usize::from(!fallen && far >= 4.0));
            assert!(
                ends[0].1 || !ends[1].1,
                "the regulator holds {start:?}, the plan does not"
            );
        }
    }
    println!(
        "of 104 starts upright at rest the regulator holds {regulator}, {} of them by the stops; the plan {plan}, {} of them",
        hit[0], hit[1]
    );
    assert!(plan >= regulator && hit[0] > 0 && hit[1] == 0);
}

#[test]
fn a_restored_regulator_answers_exactly_as_before() {
    let (mut plant, mut lqr) = pair("rig", Start::Hanging);
    run(plant.as_mut(), &mut lqr, 75);
    let (plant_state, lqr_state) = (plant.state().expect("exact"), lqr.state());
    run(plant.as_mut(), &mut lqr, 40);
    let (mut other_plant, mut other_lqr) = pair("rig", Start::Hanging);
    other_plant
        .set_state(&plant_state)
        .expect("a state of its own");
    other_lqr.set_state(&lqr_state).expect("a state of its own");
    run(other_plant.as_mut(), &mut other_lqr, 40);
    assert_eq!(
        other_plant.state().expect("exact"),
        plant.state().expect("exact")
    );
    assert_eq!(other_lqr.state(), lqr.state());
}

#[test]
fn an_observation_that_is_not_finite_gets_the_safe_action_and_does_no_lasting_harm() {
    let (mut plant, mut lqr) = pair("rig", Start::Hanging);
    run(plant.as_mut(), &mut lqr, 500);
    let mut action = [1.0];
    lqr.tick(&[0.0, f32::NAN, 0.0, 0.0], &mut action);
    assert_eq!(action, [0.0]);
    plant.step(&action);
    assert!(run(plant.as_mut(), &mut lqr, 250).upright_share > 0.7);
}

/// The answers to the first observations of a pendulum that is not controlled.
fn first_answers(lqr: &mut Lqr) -> Vec<f32> {
    let mut plant = body("pendulum", Some(Start::Random)).expect("a known body");
    plant.reset(1);
    let mut observation = vec![0.0; plant.spec().observation.len()];
    let mut answers = Vec::new();
    for _ in 0..40 {
        plant.observe(&mut observation);
        let mut action = [0.0];
        lqr.tick(&observation, &mut action);
        answers.push(action[0]);
        plant.step(&[0.0]);
    }
    answers
}

#[test]
fn an_episode_begins_as_the_first_did() {
    let (mut plant, mut used) = pair("pendulum", Start::Random);
    let fresh = first_answers(&mut pair("pendulum", Start::Random).1);
    plant.reset(1);
    run(plant.as_mut(), &mut used, 200);
    assert_ne!(first_answers(&mut used), fresh, "it balances");
    run(plant.as_mut(), &mut used, 200);
    used.episode_ended();
    assert_eq!(first_answers(&mut used), fresh);
}
