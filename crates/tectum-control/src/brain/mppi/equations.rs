//! The rollout over an equation file: its step and cost as straight code, as WGSL and over SIMD
//! lanes.

use std::fmt::Write;
use std::sync::Arc;

use tectum::kernel::arguments::{NoBindings, Slices};
use tectum::kernel::loops_over;
use tectum::kernel::native::for_each_columns;
use tectum::{NativeCall, PlanBuilder, Prelude, Result, TypedKernel, View, kernel_arguments};
use tectum_equations::code::{Code, LANES, Lanes, Number, Recorder};
use tectum_equations::{Arithmetic, BinaryOp, Comparison, System};

use super::{ActionLimits, MppiParameters, ROLLOUT_SAMPLES};
use crate::body::control::{MAX_COST, Regulator};
use crate::body::equations::batch::{applied, within};
use crate::body::{BodySettings, BodySpec, ControlModel, control_model};
use crate::brain::lqr::Lqr;
use crate::kernel::generated;

kernel_arguments! {
    /// Costs of the rollouts of controls from a state; a sample is regulated from the share
    /// `handover` of the horizon on.
    struct EquationRollout {
        read observation: f32, read handover: f32, read_write u: f32, write costs: f32;
        samples: usize, horizon: usize, terminal_multiplier: f32
    }
}

/// A body from an equation file as the model of MPPI.
#[derive(Debug)]
pub struct EquationModel {
    settings: BodySettings,
    spec: BodySpec,
    states: usize,
    /// The action of the equilibrium, in the units of the channels.
    rest: Vec<f32>,
    has_regulator: bool,
    kernel: TypedKernel<EquationRollout>,
}

/// A step of a rollout and its end.
struct Rollout {
    /// Inputs: states, actions, 1 if they are regulated, 1 if the episode ended. Results: states,
    /// actions, 1 if it ended, cost.
    step: Code,
    /// Inputs: states. Result: their cost.
    end: Code,
    states: usize,
    actions: usize,
}

impl EquationModel {
    /// Records the rollout of a body.
    ///
    /// # Errors
    /// A regulator whose Riccati equation does not converge.
    pub(super) fn new(
        settings: &BodySettings,
        system: &System,
        parameters: &[f64],
    ) -> Result<Self> {
        let body = settings.model()?;
        let spec = body.spec().clone();
        let gains = match settings.regulator() {
            Ok(Regulator { weights, .. }) => {
                Some(Lqr::with_weights(body, &weights, None)?.gain().to_vec())
            }
            Err(_) => None,
        };
        let rest = control_model(settings.model()?)?.equilibrium().action;
        let rollout = record(&spec, system, parameters, gains.as_deref());
        let text = wgsl(&rollout);
        let loops = |EquationRollout {
                         samples, horizon, ..
                     }: EquationRollout<NoBindings>,
                     groups: u32| {
            loops_over(
                samples as u64,
                groups.saturating_mul(ROLLOUT_SAMPLES as u32),
                horizon as u64,
            )
        };
        let builder = EquationRollout::define("mppi_equations")
            .prelude(Prelude::Math)
            .body(text)
            .data(Arc::new(rollout))
            .loops(loops);
        let kernel = generated(builder, roll_out_lanes)?;
        Ok(Self {
            settings: settings.clone(),
            states: system.states().len(),
            rest,
            has_regulator: gains.is_some(),
            spec,
            kernel,
        })
    }

    /// States of the system.
    pub(super) fn states(&self) -> usize {
        self.states
    }

    /// The range of each number of an action.
    pub(super) fn actions(&self) -> Vec<ActionLimits> {
        let half_range =
            |index: usize| 0.5 * (self.spec.action[index].high - self.spec.action[index].low);
        let limits = self.spec.action.iter().enumerate().map(|(index, channel)| {
            let scale = half_range(index) / half_range(0);
            ActionLimits {
                low: channel.low,
                high: channel.high,
                discrete: channel.discrete,
                scale,
            }
        });
        limits.collect()
    }

    /// The action of the equilibrium.
    pub(super) fn rest(&self) -> Vec<f32> {
        self.rest.clone()
    }

    /// Whether samples may switch to a regulator.
    pub(super) fn has_regulator(&self) -> bool {
        self.has_regulator
    }

    /// A body that follows the observations.
    ///
    /// # Errors
    /// A body that cannot be made.
    pub(super) fn observer(&self) -> Result<Box<dyn ControlModel>> {
        control_model(self.settings.model()?)
    }

    /// Controls to costs.
    pub(super) fn roll_out(
        &self,
        plan: &mut PlanBuilder,
        parameters: &MppiParameters,
        [observation, handover]: [View; 2],
        [u, costs]: [View; 2],
    ) -> Result<()> {
        let MppiParameters {
            samples,
            horizon,
            terminal_multiplier,
            ..
        } = *parameters;
        let arguments = EquationRollout {
            observation,
            handover,
            u,
            costs,
            samples,
            horizon,
            terminal_multiplier,
        };
        plan.launch(
            &self.kernel,
            arguments,
            samples.div_ceil(ROLLOUT_SAMPLES) as u32,
        )
    }
}

/// Records a step: the action drawn or regulated, the cost of state and action, then what the
/// system does.
///
/// The cost is Σ w (s − s₀)² + Σ w (u − u₀)² with the weights of the file around its equilibrium,
/// or the negative reward of a file without weights. An episode that ended costs in each step what
/// all states at the ends of their ranges do.
fn record(spec: &BodySpec, system: &System, parameters: &[f64], gains: Option<&[f64]>) -> Rollout {
    let (states, actions) = (system.states().len(), system.inputs().len());
    let mut recorder = Recorder::default();
    let [mut state, drawn] =
        [states, actions].map(|count| (0..count).map(|_| recorder.input()).collect::<Vec<_>>());
    let [is_regulated, had_ended] = [(); 2].map(|()| recorder.input());
    let action = match gains {
        Some(gains) => regulated(
            &mut recorder,
            spec,
            system,
            parameters,
            gains,
            &state,
            &drawn,
            &is_regulated,
        ),
        None => drawn,
    };
    let inputs = applied(&mut recorder, spec, system, &action);
    let weighs = is_weighed(system);
    let mut cost = Number::Constant(0.0);
    if weighs {
        cost = deviation(
            &mut recorder,
            &state,
            &system.equilibrium(parameters).0,
            system.weights().states,
            &system.wrapped_states(),
        );
        let of_action = deviation(
            &mut recorder,
            &inputs,
            &system.equilibrium(parameters).1,
            system.weights().inputs,
            &vec![false; actions],
        );
        cost = recorder.add(&cost, &of_action);
    }
    let noise = vec![Number::Constant(0.0); system.noises().len()];
    let (reward, terminated) =
        system.step_with(&mut recorder, parameters, &mut state, [&inputs, &noise]);
    if !weighs {
        cost = recorder.unary(tectum_equations::UnaryOp::Negate, &reward);
    }
    let ends = recorder.flag(&terminated);
    let ended = recorder.binary(BinaryOp::Maximum, &had_ended, &ends);
    let penalty = recorder.scaled(&ended, end_cost(system));
    cost = recorder.add(&cost, &penalty);
    let results: Vec<Number> = state
        .into_iter()
        .chain(action)
        .chain([ended, cost])
        .collect();
    let mut last = Recorder::default();
    let state: Vec<Number> = (0..states).map(|_| last.input()).collect();
    let cost = if weighs {
        deviation(
            &mut last,
            &state,
            &system.equilibrium(parameters).0,
            system.weights().states,
            &system.wrapped_states(),
        )
    } else {
        Number::Constant(0.0)
    };
    Rollout {
        step: recorder.finish(&results),
        end: last.finish(&[cost]),
        states,
        actions,
    }
}

fn is_weighed(system: &System) -> bool {
    system.weights().states.iter().any(|weight| *weight > 0.0)
}

/// The drawn action, or u₀ − K (s − s₀) within its range.
#[allow(clippy::too_many_arguments, reason = "the parts of one formula")]
fn regulated(
    recorder: &mut Recorder,
    spec: &BodySpec,
    system: &System,
    parameters: &[f64],
    gains: &[f64],
    state: &[Number],
    drawn: &[Number],
    is_regulated: &Number,
) -> Vec<Number> {
    let (rest, rest_inputs) = system.equilibrium(parameters);
    let wraps = system.wrapped_states();
    let is_regulated = recorder.compare(Comparison::Greater, is_regulated, &Number::Constant(0.0));
    // The gains of a body with noise have columns for its hidden numbers, which are 0.
    let rows = gains.chunks(gains.len() / drawn.len());
    let regulated = spec
        .action
        .iter()
        .zip(drawn)
        .zip(rows)
        .zip(rest_inputs.iter().zip(system.inputs()))
        .map(|(((channel, drawn), gains), (rest_input, input))| {
            let mut value = Number::Constant(rest_input / input.unit.scale);
            for (place, number) in state.iter().enumerate() {
                let off = difference(recorder, number, rest[place], wraps[place]);
                let part = recorder.scaled(&off, -gains[place]);
                value = recorder.add(&value, &part);
            }
            let value = if channel.discrete {
                value
            } else {
                within(recorder, channel, &value)
            };
            // The state of a sample that is dropped may be NaN: its action must not be.
            let is_number = recorder.is_finite(&value);
            let value = recorder.select(&is_number, &value, drawn);
            recorder.select(&is_regulated, &value, drawn)
        });
    regulated.collect()
}

/// x − x₀, of an angle around the circle.
fn difference(recorder: &mut Recorder, number: &Number, rest: f64, wraps: bool) -> Number {
    let off = recorder.subtract(number, &Number::Constant(rest));
    if wraps {
        recorder.wrap_angle(&off)
    } else {
        off
    }
}

/// Σ w (x − x₀)².
fn deviation(
    recorder: &mut Recorder,
    numbers: &[Number],
    rest: &[f64],
    weights: &[f64],
    wraps: &[bool],
) -> Number {
    let mut sum = Number::Constant(0.0);
    for (place, weight) in weights
        .iter()
        .enumerate()
        .filter(|(_, weight)| **weight > 0.0)
    {
        let off = difference(recorder, &numbers[place], rest[place], wraps[place]);
        let square = recorder.multiply(&off, &off);
        let part = recorder.scaled(&square, *weight);
        sum = recorder.add(&sum, &part);
    }
    sum
}

/// What a step costs after the end of an episode.
fn end_cost(system: &System) -> f64 {
    let edge = |range: Option<[f64; 2]>| range.map_or(1.0, |[low, high]| low.abs().max(high.abs()));
    let edges = system
        .states()
        .iter()
        .zip(system.weights().states)
        .map(|(state, weight)| weight * edge(state.range).powi(2));
    edges.sum::<f64>().max(1.0)
}

fn wgsl(rollout: &Rollout) -> String {
    let Rollout {
        step,
        end,
        states,
        actions,
    } = rollout;
    let mut text = String::from(
        "@compute @workgroup_size(64)\nfn main(@builtin(global_invocation_id) id: vec3<u32>, @builtin(num_workgroups) groups: vec3<u32>) {\n    \
         for (var k = id.x; k < params.samples; k += groups.x * 64u) {\n    \
         let share = min(u32(handover[k] * f32(params.horizon + 1u)), params.horizon);\n    \
         let drawn = select(share, params.horizon, k == 0u);\n    \
         var cost = 0.0;\n    var ended = 0.0;\n",
    );
    for state in 0..*states {
        let _ = writeln!(text, "    var s{state} = observation[{state}];");
    }
    text += "    for (var t = 1u; t <= params.horizon; t += 1u) {\n";
    for state in 0..*states {
        let _ = writeln!(text, "    let i{state} = s{state};");
    }
    for action in 0..*actions {
        let _ = writeln!(
            text,
            "    let i{} = u[(t * {actions}u + {action}u) * params.samples + k];",
            states + action
        );
    }
    let _ = writeln!(
        text,
        "    let i{} = select(0.0, 1.0, t > drawn);\n    let i{} = ended;",
        states + actions,
        states + actions + 1
    );
    text += step.wgsl();
    for (place, result) in step.wgsl_results().iter().enumerate() {
        let _ = if place < *states {
            writeln!(text, "    s{place} = {result};")
        } else if place < states + actions {
            writeln!(
                text,
                "    u[(t * {actions}u + {}u) * params.samples + k] = {result};",
                place - states
            )
        } else {
            writeln!(
                text,
                "    {} {result};",
                if place == states + actions {
                    "ended ="
                } else {
                    "cost +="
                }
            )
        };
    }
    text += "    }\n";
    for state in 0..*states {
        let _ = writeln!(text, "    let i{state} = s{state};");
    }
    text += end.wgsl();
    let _ = writeln!(
        text,
        "    cost += params.terminal_multiplier * {};",
        end.wgsl_results()[0]
    );
    let _ = writeln!(
        text,
        "    costs[k] = select({MAX_COST:?}f, min(cost, {MAX_COST:?}f), (bitcast<u32>(cost) & 0x7fffffffu) < 0x7f800000u);\n    }}\n}}"
    );
    text
}

/// The rollouts of all samples, in f32.
fn roll_out_lanes(call: &NativeCall<'_>, arguments: EquationRollout<Slices<'_>>) {
    let EquationRollout {
        observation,
        handover,
        u,
        costs,
        samples,
        horizon,
        terminal_multiplier,
    } = arguments;
    let Rollout {
        step,
        end,
        states,
        actions,
    } = call.data::<Rollout>();
    let threads = call.threads_for(step.operations() * samples * horizon / 16);
    let rows = &mut u[actions * samples..][..horizon * actions * samples];
    for_each_columns(
        rows,
        (&mut costs[..samples], 1),
        LANES,
        threads,
        |block, mut u, costs| {
            let (mut slots, mut last, lanes) = (step.slots(), end.slots(), costs.len());
            for (slot, number) in slots[..*states].iter_mut().zip(observation) {
                slot.fill(*number);
            }
            // The step from which each sample is regulated.
            let mut drawn = [0; LANES];
            for (lane, drawn) in drawn[..lanes].iter_mut().enumerate() {
                let share = (handover[block * LANES + lane] * (horizon + 1) as f32) as usize;
                *drawn = if block + lane == 0 {
                    horizon
                } else {
                    share.min(horizon)
                };
            }
            let mut cost = [0.0f32; LANES];
            let mut results = vec![Lanes::of(0.0); step.results().len()];
            for t in 0..horizon {
                for action in 0..*actions {
                    slots[states + action][..lanes].copy_from_slice(u.row(t * actions + action));
                }
                for (lane, drawn) in drawn.iter().enumerate() {
                    slots[states + actions][lane] = if t >= *drawn { 1.0 } else { 0.0 };
                }
                step.run(&mut slots);
                // All at once: a result may be another state as it was.
                results
                    .iter_mut()
                    .zip(step.results())
                    .for_each(|(result, place)| *result = slots[*place]);
                slots[..*states].copy_from_slice(&results[..*states]);
                for action in 0..*actions {
                    u.row(t * actions + action)
                        .copy_from_slice(&results[states + action][..lanes]);
                }
                slots[states + actions + 1] = results[states + actions];
                cost.iter_mut()
                    .zip(results[states + actions + 1].iter())
                    .for_each(|(sum, cost)| *sum += cost);
            }
            last[..*states].copy_from_slice(&slots[..*states]);
            end.run(&mut last);
            for ((cost, of_step), at_end) in costs
                .iter_mut()
                .zip(cost)
                .zip(last[end.results()[0]].iter())
            {
                let sum = of_step + terminal_multiplier * at_end;
                *cost = if sum.is_finite() {
                    sum.min(MAX_COST)
                } else {
                    MAX_COST
                };
            }
        },
    );
}
