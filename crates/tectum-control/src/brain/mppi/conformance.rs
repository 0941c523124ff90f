//! Conformance of the kernels of a tick: each against its equations in float64.

use tectum::kernel::groups_for;
use tectum::{DType, Result};
use tectum_bench::conformance::{Case, Data, Expected, Output, Seed, Suite};

use super::kernels::{CONTROLS, KEEP_COSTS, SCALE_COSTS, SHIFT};
use super::kernels::{Controls, KeepCosts, ScaleCosts, Shift};
use super::learning::channel_table;
use super::rollout::{ModelInput, RolloutViews, rollout_kernel};
use super::{
    ChannelCost, Model, MppiParameters, ROLLOUT_SAMPLES, plant_kernel, plant_kernels,
    recorded_network,
};
use crate::body::{BODIES, ChannelKind, body, wrapped_rad};
use crate::twin::{
    Ensemble, Network, Plant, RecordedTwin, RowHistory, SequenceLayout, TrainingProvenance, Twin,
    TwinLayout,
};

/// A few roundings of f32.
const ROUNDING: f64 = 4.0 / 8_388_608.0;
/// Tolerance of a cost: errors grow over a rollout as the network amplifies them; random weights
/// amplify little.
pub const TOLERANCE: f64 = 2e-4;
/// Tolerance of an action that a regulator chose from a state of the plant.
const REGULATED: f64 = 5e-3;
/// A cost that is not finite, or greater.
const MAX_COST: f64 = 1e9;

/// A suite for each kernel.
pub fn suites() -> Vec<Suite> {
    let bodies = BODIES
        .into_iter()
        .filter(|body| body.mppi.is_some())
        .map(|body| body.name);
    let mut suites = vec![
        Suite::new("mppi_controls", |seed: &mut Seed| {
            [[1, 1, 1, 1], [7, 5, 2, 3], [64, 9, 4, 1], [1000, 31, 3, 2]]
                .map(|sizes| controls(seed, sizes))
                .into()
        }),
        Suite::new("mppi_temper", |seed: &mut Seed| {
            let mut cases: Vec<Case> = [1, 37, 257, 4096]
                .map(|samples| temper(seed, samples, false))
                .into();
            cases.push(temper(seed, 37, true));
            cases
        }),
        Suite::new("mppi_keep", |seed: &mut Seed| {
            [1, 37, 257, 4096].map(|samples| keep(seed, samples)).into()
        }),
        Suite::new("mppi_shift", |seed: &mut Seed| {
            [[1, 1], [7, 3], [256, 1], [300, 2]]
                .map(|[horizon, actions]| shift(seed, horizon, actions))
                .into()
        }),
    ];
    suites.extend(bodies.map(|name| {
        Suite::new(format!("mppi_rollout_{name}"), move |seed: &mut Seed| {
            rollouts(seed, name).expect("invariant: the networks of this file are small enough")
        })
    }));
    suites.push(Suite::new("mppi_rollout_rows", |seed: &mut Seed| {
        [(1, 1), (2, 3), (4, 2)]
            .map(|(lags, members)| {
                recorded_rollout(seed, lags, members)
                    .expect("invariant: the networks are small enough")
            })
            .into()
    }));
    suites.extend(plant_kernels().iter().map(|&(name, _)| {
        Suite::new(format!("mppi_plant_{name}"), move |seed: &mut Seed| {
            [[64, 1], [64, 7], [192, 30]]
                .map(|[samples, horizon]| {
                    plant(seed, name, samples, horizon).expect("invariant: the plant is known")
                })
                .into()
        })
    }));
    suites
}

/// Lowest value, highest value and scale of the noise for each number of an action.
fn limits(seed: &mut Seed, actions: usize) -> Vec<f32> {
    (0..actions)
        .flat_map(|_| {
            [
                seed.float(-1.5, -0.5),
                seed.float(0.4, 1.0),
                seed.float(0.5, 2.0),
            ]
        })
        .collect()
}

fn controls(seed: &mut Seed, [samples, horizon, hold, actions]: [usize; 4]) -> Case {
    let (channels, limits) = (3, limits(seed, actions));
    let observation = seed.floats(channels + actions, -1.0, 1.0);
    let knots = samples * horizon.div_ceil(hold) * actions;
    let [mean, eps, sigma] = [
        (horizon * actions, -1.0, 1.0),
        (knots, -3.0, 3.0),
        (samples, 0.1, 1.0),
    ]
    .map(|(n, low, high)| seed.floats(n, low, high));
    let mut expected: Vec<_> = observation[channels..]
        .iter()
        .flat_map(|last| vec![Expected::exactly(f64::from(*last)); samples])
        .collect();
    for (row, k) in (0..horizon * actions).flat_map(|row| (0..samples).map(move |k| (row, k))) {
        let (t, action) = (row / actions, row % actions);
        let &[low, high, scale] = limits[3 * action..]
            .first_chunk()
            .expect("invariant: three numbers for each action");
        let noise = if k == 0 {
            0.0
        } else {
            f64::from(sigma[k])
                * f64::from(scale)
                * f64::from(eps[(t / hold * actions + action) * samples + k])
        };
        let value = f64::from(mean[row]) + noise;
        expected.push(Expected {
            value: value.clamp(low.into(), high.into()),
            bound: ROUNDING * (f64::from(mean[row].abs()) + noise.abs()),
        });
    }
    let inputs = [observation, mean, eps, sigma, limits]
        .map(Data::F32)
        .into();
    Case::new(
        format!("{samples} samples, {horizon} steps held for {hold}, {actions} actions"),
        inputs,
        vec![Output::Near(expected)],
        move |plan, x, y| {
            let (&[observation, mean, eps, sigma, limits], &[u]) = (x, y) else {
                unreachable!("the case has five inputs and an output")
            };
            let arguments = Controls {
                observation,
                mean,
                eps,
                sigma,
                limits,
                u,
                samples,
                horizon,
                hold,
                channels,
                actions,
            };
            plan.launch(
                &CONTROLS,
                arguments,
                groups_for((horizon + 1) * actions * samples),
            )
        },
    )
}

/// Costs, of which every fifth, or all, are the maximum.
fn costs_of(seed: &mut Seed, samples: usize, none_counts: bool) -> Vec<f32> {
    let mut costs = seed.floats(samples, 1.0, 9.0);
    for (k, cost) in costs.iter_mut().enumerate() {
        if none_counts || k % 5 == 3 {
            *cost = MAX_COST as f32;
        }
    }
    costs
}

fn counts(cost: f32) -> bool {
    f64::from(cost) < MAX_COST
}

fn keep(seed: &mut Seed, samples: usize) -> Case {
    let costs = costs_of(seed, samples, false);
    let negative = costs.iter().map(|cost| -cost).collect();
    let kept = costs
        .iter()
        .map(|cost| if counts(*cost) { *cost } else { 0.0 })
        .chain(costs.iter().map(|cost| f32::from(u8::from(counts(*cost)))))
        .collect();
    Case::new(
        format!("{samples} samples"),
        vec![Data::F32(costs)],
        vec![
            Output::Exact(Data::F32(negative)),
            Output::Exact(Data::F32(kept)),
        ],
        move |plan, x, y| {
            plan.launch(
                &KEEP_COSTS,
                KeepCosts {
                    costs: x[0],
                    negative: y[0],
                    kept: y[1],
                    samples,
                    max_cost: MAX_COST as f32,
                },
                groups_for(samples),
            )
        },
    )
}

fn temper(seed: &mut Seed, samples: usize, none_counts: bool) -> Case {
    let (costs, temperature) = (costs_of(seed, samples, none_counts), seed.float(0.1, 0.9));
    let least = costs.iter().copied().fold(f32::INFINITY, f32::min);
    let kept: Vec<f32> = costs.iter().copied().filter(|cost| counts(*cost)).collect();
    let total = kept.iter().map(|cost| f64::from(*cost)).sum::<f64>() as f32;
    let average = f64::from(total) / kept.len().max(1) as f64;
    let spread = f64::from(temperature) * (average - f64::from(least) + 1e-6);
    // The spread is a difference of numbers below 9.
    let relative = ROUNDING * (1.0 + 9.0 * f64::from(temperature) / spread);
    let expected = costs
        .iter()
        .map(|cost| match (kept.is_empty(), counts(*cost)) {
            (true, _) => Expected::exactly(0.0),
            (false, false) => Expected::exactly(f64::from(-1e30f32)),
            (false, true) => {
                let value = (f64::from(least) - f64::from(*cost)) / spread;
                Expected {
                    value,
                    bound: relative * value.abs(),
                }
            }
        });
    let outputs = vec![Output::Near(expected.collect())];
    let inputs = [costs.clone(), vec![total, kept.len() as f32], vec![-least]]
        .map(Data::F32)
        .into();
    let described = if none_counts {
        ", none of which counts"
    } else {
        ""
    };
    Case::new(
        format!("{samples} samples{described}"),
        inputs,
        outputs,
        move |plan, x, y| {
            plan.launch(
                &SCALE_COSTS,
                ScaleCosts {
                    costs: x[0],
                    totals: x[1],
                    greatest: x[2],
                    y: y[0],
                    samples,
                    temperature,
                    max_cost: MAX_COST as f32,
                },
                groups_for(samples),
            )
        },
    )
}

fn shift(seed: &mut Seed, horizon: usize, actions: usize) -> Case {
    let (rows, limits, samples) = (horizon * actions, limits(seed, actions), 96.0);
    let weighted = seed.floats(rows, -2.0, 2.0);
    let [total, greatest, best] =
        [(100.0, 900.0), (-1.0, 1.0), (0.0, 1.0)].map(|(low, high)| seed.float(low, high));
    let mean = weighted[actions..]
        .iter()
        .chain(&weighted[rows - actions..])
        .map(|next| Expected::exactly(f64::from(*next)))
        .collect();
    let average = f64::from(total) / samples;
    let exactly = |value: f32| Expected::exactly(f64::from(value));
    let action = (0..actions)
        .map(|action| exactly(weighted[action].clamp(limits[3 * action], limits[3 * action + 1])));
    let result = action
        .chain([
            exactly(-greatest),
            Expected {
                value: average,
                bound: ROUNDING * average,
            },
            exactly(best),
            Expected::exactly(samples),
        ])
        .collect();
    let totals = vec![total, samples as f32];
    let inputs = [weighted, totals, vec![greatest], vec![best], limits]
        .map(Data::F32)
        .into();
    Case::new(
        format!("{horizon} steps, {actions} actions"),
        inputs,
        vec![Output::Near(mean), Output::Near(result)],
        move |plan, x, y| {
            let (&[weighted, totals, greatest, best_weight, limits], &[mean, result]) = (x, y)
            else {
                unreachable!("the case has five inputs and two outputs")
            };
            let arguments = Shift {
                weighted,
                totals,
                greatest,
                best_weight,
                limits,
                mean,
                result,
                rows,
                actions,
            };
            plan.launch(&SHIFT, arguments, groups_for(rows))
        },
    )
}

/// Networks of one hidden layer, odd and wide, and of several; one workgroup and several; one step
/// and many.
fn rollouts(seed: &mut Seed, name: &str) -> Result<Vec<Case>> {
    let shapes = [
        (vec![20], 64, 1),
        (vec![9, 33, 64], 192, 7),
        (vec![64, 64], 192, 7),
    ];
    shapes
        .into_iter()
        .map(|(hidden, samples, horizon)| rollout(seed, name, &hidden, samples, horizon))
        .collect()
}

fn rollout(
    seed: &mut Seed,
    name: &str,
    hidden: &[usize],
    samples: usize,
    horizon: usize,
) -> Result<Case> {
    let (twin, mut parameters) = untrained(name, hidden)?;
    (parameters.samples, parameters.horizon) = (samples, horizon);
    let mut u = seed.floats((horizon + 1) * samples, twin.layout.low, twin.layout.high);
    // Costs that are not finite, in samples that share vectors with others.
    (u[samples + 3], u[samples + 17]) = (f32::NAN, f32::INFINITY);
    let mut observation: Vec<f32> = twin
        .layout
        .channels
        .iter()
        .map(|channel| seed.float(channel.low, channel.high))
        .collect();
    let expected = (0..samples).map(|k| {
        let column: Vec<f32> = u.iter().skip(k).step_by(samples).copied().collect();
        let value = reference_cost(&twin, &parameters, &observation, &column);
        Expected {
            value,
            bound: TOLERANCE * value.abs().max(1.0),
        }
    });
    let outputs = vec![Output::Near(expected.collect())];
    observation.push(0.0);
    let inputs = [
        observation,
        u,
        channel_table(
            &twin.layout,
            [&twin.change_mean, &twin.change_deviation],
            &parameters,
        ),
        twin.weights.clone(),
    ]
    .map(Data::F32)
    .into();
    let (kernel, shape, numbers) = rollout_kernel(&twin.network, ModelInput::State, horizon)?;
    Ok(Case::new(
        format!("{hidden:?}, {samples} samples, {horizon} steps"),
        inputs,
        outputs,
        move |plan, x, y| {
            let scratch = plan.temp(DType::F32, numbers * samples);
            let views = RolloutViews {
                observation: x[0],
                u: x[1],
                table: x[2],
                weights: x[3],
                costs: y[0],
                scratch,
            };
            plan.launch(
                &kernel,
                parameters.rollout(&twin.layout, shape, views),
                samples.div_ceil(ROLLOUT_SAMPLES) as u32,
            )
        },
    ))
}

/// Period of the recorded rig, in seconds.
const PERIOD_S: f64 = 0.04;

/// An ensemble with random weights for the rig.
fn recorded(lags: usize, members: u64) -> Result<RecordedTwin> {
    let (layout, network) = (SequenceLayout { lags }, recorded_network(lags)?);
    let members = (0..members)
        .map(|seed| network.initial_weights(seed + 3))
        .collect();
    let channels = std::array::from_fn(|channel| (format!("channel {channel}"), "1".to_owned()));
    let plant = Plant {
        channels,
        command: ("command".to_owned(), "V".to_owned()),
        period_s: PERIOD_S,
    };
    let (mean, deviation) = (vec![0.01, 2.0, -0.3], vec![0.3, 60.0, 4.0]);
    let ensemble = Ensemble {
        layout,
        network,
        members,
        mean,
        deviation,
        noise: vec![0.0; 3],
        plant,
        origin: TrainingProvenance::default(),
        file_hash: None,
    };
    let layout = TwinLayout::of(body("rig", None)?.spec(), true)?;
    Ok(RecordedTwin {
        ensemble,
        path: "made".to_owned(),
        layout,
        period_s: PERIOD_S,
    })
}

/// The mean of an ensemble's networks over rows of the past.
fn recorded_rollout(seed: &mut Seed, lags: usize, members: u64) -> Result<Case> {
    let twin = recorded(lags, members)?;
    let mut parameters = MppiParameters::for_body("rig")?;
    (parameters.samples, parameters.horizon) = (64, 6);
    parameters.channels[1].weight = 0.3;
    let mut u = seed.floats(7 * 64, -5.0, 5.0);
    // The rows so far, and commands one row further: the angle has wrapped at 180 degrees.
    let angles = [170.0, 174.0, 179.0, -176.0, -172.0].map(|angle| angle + 0.25);
    let seen = |row: usize| {
        [
            0.3 * row as f32,
            -1.0,
            100.0 + 20.0 * row as f32,
            angles[row] as f32,
        ]
    };
    let (from, commands) = (4 - lags, [0.5f32, -1.0, 2.0, -3.0, 1.5]);
    let mut rows = twin.rows();
    (from..4).for_each(|row| rows.push(&seen(row), commands[row]));
    let model = Model::Recorded(Box::new(twin.clone()));
    let mut observation = seen(4).to_vec();
    observation.resize(5 + model.model_input().older(), 0.0);
    observation[4] = commands[4];
    // Every sample begins with the last action.
    u[..parameters.samples].fill(commands[4]);
    rows.write(&seen(4), commands[4], &mut observation[5..]);
    let expected = (0..parameters.samples).map(|k| {
        let column: Vec<f32> = u
            .iter()
            .skip(k)
            .step_by(parameters.samples)
            .copied()
            .collect();
        let number = |channel: usize| {
            (from..=4)
                .map(|row| f64::from(seen(row)[channel]))
                .collect::<Vec<f64>>()
        };
        let command = commands[from..]
            .iter()
            .map(|volts| f64::from(*volts))
            .chain([f64::from(column[1])])
            .collect();
        let mut past = RowHistory {
            position: number(0),
            velocity: number(2),
            angle: number(3),
            command,
            seconds: vec![PERIOD_S; lags + 2],
        };
        let mut cost = 0.0;
        for t in 0..parameters.horizon {
            let mut features = Vec::new();
            twin.ensemble.layout.encode(&past, &mut features);
            let mut change = [0.0; 3];
            for member in &twin.ensemble.members {
                let y = reference_network(
                    &twin.ensemble.network,
                    member,
                    features.iter().map(|x| f64::from(*x)).collect(),
                );
                for (channel, change) in change.iter_mut().enumerate() {
                    let (mean, deviation) = (
                        f64::from(twin.ensemble.mean[channel]),
                        f64::from(twin.ensemble.deviation[channel]),
                    );
                    *change += (mean + deviation * y[channel]) / members as f64;
                }
            }
            let next = twin.ensemble.layout.next(&past, change);
            let mut state = [next[0], change[0] / PERIOD_S, next[1], next[2]];
            cost += step_cost(
                &twin.layout,
                &parameters,
                &mut state,
                [column[t], column[t + 1]],
                t,
            );
            past.push(
                next,
                f64::from(*column.get(t + 2).unwrap_or(&0.0)),
                PERIOD_S,
            );
        }
        Expected {
            value: cost,
            bound: TOLERANCE * cost.abs().max(1.0),
        }
    });
    let outputs = vec![Output::Near(expected.collect())];
    let [mean, deviation] = twin.changes();
    let inputs = [
        observation,
        u.clone(),
        channel_table(&twin.layout, [&mean, &deviation], &parameters),
        twin.weights(),
    ]
    .map(Data::F32)
    .into();
    let (kernel, shape, numbers) = rollout_kernel(
        &twin.ensemble.network,
        model.model_input(),
        parameters.horizon,
    )?;
    let samples = parameters.samples;
    Ok(Case::new(
        format!("{lags} rows, {members} networks"),
        inputs,
        outputs,
        move |plan, x, y| {
            let scratch = plan.temp(DType::F32, numbers * samples);
            let views = RolloutViews {
                observation: x[0],
                u: x[1],
                table: x[2],
                weights: x[3],
                costs: y[0],
                scratch,
            };
            plan.launch(
                &kernel,
                parameters.rollout(&twin.layout, shape, views),
                samples.div_ceil(ROLLOUT_SAMPLES) as u32,
            )
        },
    ))
}

/// The reference: the body itself, stepped in f64, with its own reward.
fn plant(seed: &mut Seed, name: &str, samples: usize, horizon: usize) -> Result<Case> {
    let parameters = MppiParameters {
        samples,
        horizon,
        energy_weight: 100.0,
        ..MppiParameters::for_plant(name)?
    };
    let gains = parameters.feedback.unwrap_or_default().map(f64::from);
    let mut plant = body(name, None)?;
    let layout = TwinLayout::of(plant.spec(), false)?;
    let u = seed.floats((horizon + 1) * samples, layout.low, layout.high);
    let start = [seed.float(-3.0, 3.0), seed.float(-8.0, 8.0)];
    // From before the first step to never.
    let shares = seed.floats(samples, 0.0, 1.1);
    let mut applied: Vec<Expected> = u
        .iter()
        .map(|action| Expected::exactly(f64::from(*action)))
        .collect();
    let mut costs = Vec::new();
    for k in 0..samples {
        plant.set_state(&start.map(f64::from))?;
        let drawn = if k == 0 {
            horizon
        } else {
            (shares[k] * (horizon + 1) as f32) as usize
        };
        let mut cost = 0.0;
        for t in 1..=horizon {
            let action = &mut applied[t * samples + k];
            if t > drawn {
                let state = plant.state()?;
                let regulated = -gains[0] * wrapped_rad(state[0]) - gains[1] * state[1];
                *action = Expected {
                    value: regulated.clamp(layout.low.into(), layout.high.into()),
                    bound: REGULATED,
                };
            }
            cost -= plant.step(&[action.value as f32]).reward;
        }
        let state = plant.state()?;
        let (angle, speed) = (state[0], state[1]);
        let energy = speed * speed / 30.0 + angle.cos() - 1.0;
        cost += f64::from(parameters.energy_weight) * energy * energy
            - f64::from(parameters.terminal_multiplier) * plant.step(&[0.0]).reward;
        costs.push(Expected {
            value: cost,
            bound: TOLERANCE * cost.max(1.0),
        });
    }
    let inputs = [vec![start[0], start[1], 0.0], shares]
        .map(Data::F32)
        .into();
    let outputs = vec![Output::NearInPlace(u, applied), Output::Near(costs)];
    let kernel = plant_kernel(name)?;
    Ok(Case::new(
        format!("{samples} samples, {horizon} steps"),
        inputs,
        outputs,
        move |plan, x, y| {
            plan.launch(
                kernel,
                parameters.plant_rollout(&layout, x[0], x[1], [y[0], y[1]]),
                samples.div_ceil(ROLLOUT_SAMPLES) as u32,
            )
        },
    ))
}

/// A twin with random weights: the kernels do not depend on training.
///
/// # Errors
/// A body without defaults; a width of 0.
pub fn untrained(name: &str, hidden: &[usize]) -> Result<(Twin, MppiParameters)> {
    let parameters = MppiParameters::for_body(name)?;
    let layout = TwinLayout::of(body(name, None)?.spec(), parameters.previous_action)?;
    let channels = layout.channels.len();
    let network = Network::new(layout.features(), hidden, channels)?;
    let mut weights = network.initial_weights(7);
    for entry in network
        .parameters()
        .entries()
        .iter()
        .filter(|entry| entry.shape[0] == 1)
    {
        let bias = &mut weights[entry.range()];
        bias.iter_mut()
            .enumerate()
            .for_each(|(i, bias)| *bias = 0.1 * (i as f32).sin());
    }
    let change_mean = (0..channels).map(|c| 0.01 * c as f32).collect();
    let change_deviation = layout
        .channels
        .iter()
        .map(|channel| 0.2 * channel.scale)
        .collect();
    Ok((
        Twin {
            layout,
            network,
            weights,
            change_mean,
            change_deviation,
        },
        parameters,
    ))
}

/// The cost of one sample in float64, straight from the equations at the head of the kernel.
pub fn reference_cost(
    twin: &Twin,
    parameters: &MppiParameters,
    observation: &[f32],
    u: &[f32],
) -> f64 {
    let layout = &twin.layout;
    let half_range = f64::from(0.5 * (layout.high - layout.low));
    let applied = |u: f32| match (layout.discrete, u >= 0.0) {
        (false, _) => f64::from(u),
        (true, true) => f64::from(layout.high),
        (true, false) => f64::from(layout.low),
    };
    let mut state: Vec<f64> = observation.iter().map(|x| f64::from(*x)).collect();
    let mut cost = 0.0;
    for t in 0..parameters.horizon {
        let mut x = Vec::new();
        for (channel, &s) in layout.channels.iter().zip(&state) {
            match channel.kind {
                ChannelKind::Linear => x.push(s / f64::from(channel.scale)),
                ChannelKind::Angle { rad_per_unit } => {
                    x.extend([(s * rad_per_unit).sin(), (s * rad_per_unit).cos()])
                }
            }
        }
        x.extend(layout.previous_action.then(|| applied(u[t]) / half_range));
        x.push(applied(u[t + 1]) / half_range);
        x = reference_network(&twin.network, &twin.weights, x);
        for (c, state) in state.iter_mut().enumerate() {
            *state += f64::from(twin.change_mean[c]) + f64::from(twin.change_deviation[c]) * x[c];
        }
        cost += step_cost(layout, parameters, &mut state, [u[t], u[t + 1]], t);
    }
    if cost.is_finite() {
        cost.min(MAX_COST)
    } else {
        MAX_COST
    }
}

/// The cost of a step that ended in a state, whose angles it wraps.
pub fn step_cost(
    layout: &TwinLayout,
    parameters: &MppiParameters,
    state: &mut [f64],
    [before, now]: [f32; 2],
    t: usize,
) -> f64 {
    let multiplier = if t + 1 == parameters.horizon {
        f64::from(parameters.terminal_multiplier)
    } else {
        1.0
    };
    let (mut cost, mut cosine, mut velocity) = (0.0, 1.0, 0.0);
    for (c, channel) in layout.channels.iter().enumerate() {
        let ChannelCost {
            weight,
            squared_angle,
            barrier_weight,
            barrier_limit,
        } = parameters.channels[c];
        let (charge, barrier_scale) = match channel.kind {
            ChannelKind::Linear => (
                (state[c] / f64::from(channel.scale)).powi(2),
                f64::from(channel.scale),
            ),
            ChannelKind::Angle { rad_per_unit } => {
                let turn = std::f64::consts::TAU / rad_per_unit;
                state[c] -= turn * (state[c] / turn + 0.5).floor();
                let angle = state[c] * rad_per_unit;
                if parameters.angle_channel == Some(c) {
                    cosine = angle.cos();
                }
                (
                    if squared_angle {
                        angle * angle
                    } else {
                        1.0 - angle.cos()
                    },
                    1.0,
                )
            }
        };
        if parameters.velocity_channel == Some(c) {
            velocity = state[c];
        }
        let beyond = (state[c].abs() - f64::from(barrier_limit)).max(0.0) / barrier_scale;
        cost +=
            multiplier * f64::from(weight) * charge + f64::from(barrier_weight) * beyond * beyond;
    }
    let half_range = f64::from(0.5 * (layout.high - layout.low));
    let energy = 0.5 * f64::from(parameters.energy_ratio) * velocity * velocity + cosine - 1.0;
    let (action, rate) = (
        f64::from(now) / half_range,
        f64::from(now - before) / half_range,
    );
    if t + 1 == parameters.horizon || !parameters.energy_at_end {
        cost += f64::from(parameters.energy_weight) * energy * energy;
    }
    cost + f64::from(parameters.action_weight) * action * action
        + f64::from(parameters.rate_weight) * rate * rate
}

/// A network of a layout's numbers in float64.
pub fn reference_network(network: &Network, weights: &[f32], mut x: Vec<f64>) -> Vec<f64> {
    let entries = network.parameters().entries();
    for (index, pair) in entries.chunks_exact(2).enumerate() {
        let ([rows, columns], weight, bias) = (pair[0].shape, pair[0].offset, pair[1].offset);
        let column = |j: usize| {
            let products = (0..rows).map(|i| x[i] * f64::from(weights[weight + i * columns + j]));
            products.sum::<f64>() + f64::from(weights[bias + j])
        };
        let hidden = 2 * (index + 1) < entries.len();
        x = (0..columns)
            .map(column)
            .map(|y| if hidden { y.tanh() } else { y })
            .collect();
    }
    x
}
