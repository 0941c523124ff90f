use std::f64::consts::TAU;

use tectum::{Device, ErrorKind};

use super::super::uniform::Uniform;
use super::super::{ActionChannel, ChannelKind, body};
use super::*;

const INSTANCES: u64 = 1000;
/// Relative to a number's range.
const TOLERANCE: f64 = 2e-5;

fn devices(what: &str) -> Vec<Device> {
    let open = |id: &'static str| {
        Device::open_if_present(id)
            .expect("absent or usable")
            .or_else(|| {
                eprintln!("skipped: {id} is absent: {what}");
                None
            })
    };
    ["cpu", "vulkan:0", "cuda:0"]
        .into_iter()
        .filter_map(open)
        .collect()
}

/// Actions of the whole range and somewhat beyond, some of them not finite.
fn draw(channels: &[ActionChannel], uniform: &mut Uniform, k: u64) -> Vec<f32> {
    let middle = |channel: &ActionChannel| f64::from(channel.low + channel.high) / 2.0;
    let drawn = |channel: &ActionChannel| match k % 50 {
        7 => f32::NAN,
        8 => f32::NEG_INFINITY,
        _ => (middle(channel) + uniform.within(0.6 * f64::from(channel.high - channel.low))) as f32,
    };
    channels.iter().map(drawn).collect()
}

/// Error of a number, relative to its range; angles in the shorter direction.
fn off(found: f32, expected: f64, range: f64, turn: Option<f64>) -> f64 {
    let apart = f64::from(found) - expected;
    (apart - turn.map_or(0.0, |turn| turn * (apart / turn).round())).abs() / range
}

#[test]
fn every_body_steps_as_one_by_one_on_every_device() {
    for (name, kernel, _) in KERNELS.iter() {
        let mut body = body(name, None).expect("known");
        let spec = body.spec().clone();
        let mut uniform = Uniform::new(11);
        let (mut states, mut actions) = (Vec::new(), Vec::new());
        for k in 0..INSTANCES {
            body.randomized().expect("random states").randomize_state(k);
            // The unobserved part of a state is only valid after a step.
            body.step(&draw(&spec.action, &mut uniform, 0));
            states.push(body.state().expect("exact"));
            actions.extend(draw(&spec.action, &mut uniform, k));
        }
        if kernel.has_starts {
            // The last number of the state says whether the episode ended: here none has.
            states
                .iter_mut()
                .filter_map(|state| state.get_mut(kernel.numbers - 1))
                .for_each(|ended| *ended = 0.0);
        }
        for device in devices("bodies side by side") {
            let mut batch = Batch::new(name, INSTANCES as usize, &device).expect("compiles");
            batch.set_states(&states).expect("states of its own");
            batch.step(&actions).expect("steps");
            let after = batch.states().expect("reads");
            let (mut worst, mut seams) = (0.0f64, 0);
            for (k, state) in states.iter().enumerate() {
                body.set_state(state).expect("a state of its own");
                let step = body.step(&actions[k * spec.action.len()..][..spec.action.len()]);
                let mut shown = vec![0.0; spec.observation.len()];
                body.observe(&mut shown);
                let mut errors = Vec::new();
                for ((found, expected), channel) in batch
                    .observation(k)
                    .iter()
                    .zip(&shown)
                    .zip(&spec.observation)
                {
                    let (range, turn) = match channel.kind {
                        ChannelKind::Linear => (f64::from(channel.high - channel.low), None),
                        ChannelKind::Angle { rad_per_unit } => {
                            (TAU / rad_per_unit, Some(TAU / rad_per_unit))
                        }
                    };
                    errors.push(off(*found, f64::from(*expected), range, turn));
                }
                for (found, expected) in after[k].iter().zip(body.state().expect("exact")) {
                    errors.push(
                        off(*found, expected, expected.abs().max(10.0), Some(TAU)).min(off(
                            *found,
                            expected,
                            expected.abs().max(10.0),
                            None,
                        )),
                    );
                }
                errors.push((f64::from(batch.reward(k)) - step.reward).abs() / 20.0);
                errors.push(f64::from(u8::from(
                    batch.is_terminated(k) != step.terminated,
                )));
                let error = errors.into_iter().fold(0.0, f64::max);
                // Rounding may move a body across a discontinuity: a stop, a wall, the end of a
                // whisker at an obstacle's edge.
                if error > TOLERANCE {
                    seams += 1;
                } else {
                    worst = worst.max(error);
                }
            }
            println!(
                "{name} on {}: off by at most {worst:.1e} of a range, {seams} of {INSTANCES} at a seam",
                device.info().id
            );
            assert!(
                seams <= 2,
                "{name} on {}: {seams} instances are off",
                device.info().id
            );
        }
    }
}

#[test]
fn an_ended_episode_resets_to_its_start() {
    for device in devices("episodes that end") {
        let mut poles = Batch::new("cart_pole", 70, &device).expect("compiles");
        poles.reset(5).expect("writes");
        let start = poles.states().expect("reads");
        let (mut lengths, mut ended) = (vec![0; 70], vec![false; 70]);
        for _ in 0..40 {
            poles.step(&[10.0; 70]).expect("steps");
            for k in 0..70 {
                if ended[k] {
                    assert_eq!(
                        (
                            poles.reward(k),
                            poles.is_terminated(k),
                            poles.observation(k)
                        ),
                        (0.0, false, &start[k][..4])
                    );
                    (lengths[k], ended[k]) = (0, false);
                } else {
                    (lengths[k], ended[k]) = (lengths[k] + 1, poles.is_terminated(k));
                    assert_eq!(poles.reward(k), 1.0);
                    assert!(
                        !ended[k] || (7..14).contains(&lengths[k]),
                        "pushed one way it falls in about ten steps: {}",
                        lengths[k]
                    );
                }
            }
        }
        assert!(lengths.iter().all(|length| *length < 14));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let cpu = Device::open("cpu").expect("always there");
    assert!(
        Batch::new("cart_pole", 0, &cpu)
            .err()
            .expect("none")
            .to_string()
            .contains("0 instances")
    );
    assert!(Batch::new("unicycle", 1, &cpu).is_err());
    let mut rigs = Batch::new("rig", 3, &cpu).expect("compiles");
    let error = rigs.step(&[0.0; 2]).expect_err("one too few");
    assert_eq!(
        (error.kind(), error.to_string()),
        (
            ErrorKind::Invalid,
            "3 instances of rig need 3 numbers of actions, given 2".to_owned()
        )
    );
    assert!(
        rigs.set_states(&vec![vec![0.0; 6]; 2])
            .expect_err("one too few")
            .to_string()
            .contains("2 states for 3")
    );
    assert!(rigs.set_states(&vec![vec![f64::NAN; 6]; 3]).is_err());
}
