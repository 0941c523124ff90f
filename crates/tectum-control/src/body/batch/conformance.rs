//! Conformance of the kernels of bodies: one step of many instances against the body itself, in
//! f64.

use std::f64::consts::TAU;

use tectum::Result;
use tectum_bench::conformance::{Case, Data, Expected, Output, Seed, Suite};

use super::super::{
    ActionChannel, Body, BodySpec, ChannelKind, ObservationChannel, body, wrapped_rad,
};
use super::{BatchKernel, KERNELS, OUTCOME, StepBodies, kernel_of};

/// Maximum error of a number, relative to its range.
pub const TOLERANCE: f64 = 2e-5;
/// Minimum range of a number of a state.
const MIN_RANGE: f64 = 10.0;
/// Relative perturbation (of 1 or their size) of a state's numbers, to find discontinuities: about
/// fifty times the rounding of f32 in a step.
const NUDGE: f64 = 2e-5;
/// An instance is at a discontinuity if a perturbation changes a number by this much of its range:
/// fifty times the tolerance.
const SEAM: f64 = 1e-3;
/// Maximum draws of an instance; far more than discontinuities need.
const MAX_DRAWS: usize = 1000;

/// A suite for each body.
pub fn suites() -> Vec<Suite> {
    let suite = |name: &'static str| {
        Suite::new(format!("body_{name}"), move |seed: &mut Seed| {
            cases(seed, name).expect("invariant: it has a kernel")
        })
    };
    KERNELS.iter().map(|(name, ..)| suite(name)).collect()
}

/// One instance, an odd number, one more than a workgroup takes, and several workgroups.
fn cases(seed: &mut Seed, name: &'static str) -> Result<Vec<Case>> {
    [1, 37, 65, 1001]
        .into_iter()
        .map(|count| case(seed, name, count))
        .collect()
}

/// Numbers of one instance before and after a step.
struct Instance {
    action: Vec<f32>,
    start: Vec<f64>,
    before: Vec<f64>,
    after: Vec<f64>,
    shown: Vec<f64>,
}

fn case(seed: &mut Seed, name: &'static str, count: usize) -> Result<Case> {
    let mut body = body(name, None)?;
    let (batch, kernel) = kernel_of(name)?;
    let [mut actions, mut starts, mut before] = [(); 3].map(|()| Vec::new());
    let [mut after, mut shown] = [(); 2].map(|()| Vec::new());
    for k in 0..count {
        let instance = instance(seed, body.as_mut(), batch, k)?;
        actions.extend(&instance.action);
        starts.extend(instance.start.iter().map(|number| *number as f32));
        before.extend(instance.before.iter().map(|number| *number as f32));
        after.extend(instance.after.iter().map(|&value| Expected {
            value,
            bound: TOLERANCE * value.abs().max(MIN_RANGE),
        }));
        let ranges = ranges(body.as_ref());
        shown.extend(
            instance
                .shown
                .iter()
                .zip(ranges)
                .map(|(&value, range)| Expected {
                    value,
                    bound: TOLERANCE * range,
                }),
        );
    }
    let inputs = std::iter::once(Data::F32(actions))
        .chain(batch.has_starts.then_some(Data::F32(starts)))
        .collect();
    Ok(Case::new(
        format!("{count} instances"),
        inputs,
        vec![Output::NearInPlace(before, after), Output::Near(shown)],
        move |plan, x, y| {
            (kernel.record)(
                plan,
                StepBodies {
                    actions: x[0],
                    starts: x.get(1).copied(),
                    noise: None,
                    state: y[0],
                    shown: y[1],
                    count,
                },
            )
        },
    ))
}

/// The range of each number in the output of an instance: of a channel, of the reward, of whether
/// the episode ended.
fn ranges(body: &dyn Body) -> impl Iterator<Item = f64> {
    let of_channel = |channel: &ObservationChannel| match channel.kind {
        ChannelKind::Linear => f64::from(channel.high - channel.low),
        ChannelKind::Angle { rad_per_unit } => TAU / rad_per_unit,
    };
    body.spec()
        .observation
        .iter()
        .map(of_channel)
        .chain([20.0, 1.0])
}

/// An instance whose step does not depend on rounding: those at a stop, a wall, an angle's wrap or
/// the edge of an obstacle are drawn again.
fn instance(
    seed: &mut Seed,
    body: &mut dyn Body,
    batch: &BatchKernel,
    k: usize,
) -> Result<Instance> {
    let (spec, numbers) = (body.spec().clone(), batch.numbers);
    let mut tried = Err(tectum::Error::invalid(format!(
        "{}: every instance is at a discontinuity",
        spec.name
    )));
    for _ in 0..MAX_DRAWS {
        // The unobserved part of a state is only valid after a step.
        let [first, given] = [0, k].map(|k| action(seed, &spec, k));
        body.reset(u64::from(seed.word()));
        let start = padded(single(body.state()?), numbers);
        body.require_randomized()?
            .randomize_state(u64::from(seed.word()));
        body.step(&first);
        let mut state = single(body.state()?);
        if batch.has_starts && state.len() == numbers {
            // The last number of the state is 1 if the episode ended; here none has.
            state[numbers - 1] = 0.0;
        }
        if batch.has_starts && k % 7 == 3 {
            // An episode that ended restarts: no step is computed.
            let mut before = padded(state, numbers);
            before[numbers - 1] = 1.0;
            body.set_state(&start[..body.state()?.len()])?;
            let shown = [observed(body), vec![0.0; OUTCOME]].concat();
            return Ok(Instance {
                action: given,
                before,
                after: start.clone(),
                start,
                shown,
            });
        }
        let (after, shown) = stepped(body, &state, &given, batch)?;
        let mut is_seam = false;
        for signs in [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]] {
            // Whole numbers are counts, flags and constants.
            let moved = |(i, x): (usize, &f64)| {
                if x.fract() == 0.0 {
                    *x
                } else {
                    x + NUDGE * x.abs().max(1.0) * signs[i % 2]
                }
            };
            let (other_after, other_shown) = stepped(
                body,
                &state.iter().enumerate().map(moved).collect::<Vec<_>>(),
                &given,
                batch,
            )?;
            let is_far = |(a, b, range): (&f64, &f64, f64)| (a - b).abs() > SEAM * range;
            is_seam |= after
                .iter()
                .zip(&other_after)
                .any(|(a, b)| is_far((a, b, a.abs().max(MIN_RANGE))));
            is_seam |= shown
                .iter()
                .zip(&other_shown)
                .zip(ranges(body))
                .any(|((a, b), range)| is_far((a, b, range)));
        }
        tried = Ok(Instance {
            action: given,
            start,
            before: padded(state, numbers),
            after,
            shown,
        });
        if !is_seam {
            break;
        }
    }
    tried
}

/// An action beyond the range on both sides; occasionally one that is not finite.
fn action(seed: &mut Seed, spec: &BodySpec, k: usize) -> Vec<f32> {
    let drawn = |channel: &ActionChannel| {
        let (middle, half) = (
            (channel.low + channel.high) / 2.0,
            0.6 * (channel.high - channel.low),
        );
        let drawn = seed.float(middle - half, middle + half);
        match k % 50 {
            7 => f32::NAN,
            8 => f32::NEG_INFINITY,
            _ => drawn,
        }
    };
    spec.action.iter().map(drawn).collect()
}

/// State and output after a step in f64.
fn stepped(
    body: &mut dyn Body,
    state: &[f64],
    action: &[f32],
    batch: &BatchKernel,
) -> Result<(Vec<f64>, Vec<f64>)> {
    body.set_state(state)?;
    let step = body.step(action);
    let ended = f64::from(u8::from(step.terminated));
    let mut after = body.state()?;
    for &angle in batch.angles {
        after[angle] = wrapped_rad(after[angle]);
    }
    if after.len() < batch.numbers {
        after.push(ended);
    }
    Ok((after, [observed(body), vec![step.reward, ended]].concat()))
}

fn observed(body: &dyn Body) -> Vec<f64> {
    let mut shown = vec![0.0; body.spec().observation.len()];
    body.observe(&mut shown);
    shown.into_iter().map(f64::from).collect()
}

/// Numbers rounded to f32.
fn single(state: Vec<f64>) -> Vec<f64> {
    state
        .into_iter()
        .map(|number| f64::from(number as f32))
        .collect()
}

fn padded(mut state: Vec<f64>, numbers: usize) -> Vec<f64> {
    state.resize(numbers, 0.0);
    state
}
