//! Linear model predictive control: the regulator's problem over a horizon, under bounds.
//!
//! Minimises ½ Σ (s'Qs + r u²) + ½ s_N' P s_N over u_0 … u_{N−1}, with s_{k+1} = A s_k + B u_k, u
//! within its limits, and numbers of the state within theirs; s and u are deviations from the
//! equilibrium. P is the regulator's own, so if no bound is active the actions are the regulator's.
//! A bound of the state is soft: a violation costs 10⁶ times its square divided by that of the
//! bound, so that a solution always exists.
//!
//! # Cost
//! A plan takes 6 to 25 Newton steps, each about 4·N·n³ operations; it does not allocate.
//!
//! # Source
//! Rao, Wright, Rawlings, *Application of interior-point methods to model predictive control*, JOTA
//! 99 (1998), whose Newton step is a Riccati recursion; predictor and corrector of Mehrotra, SIAM
//! J. Optim. 2 (1992).

use tectum::Result;

use super::regulation::{Regulation, dot};
use crate::body::control::{Bound, Linear, LqrWeights};

/// Weight of a bound violation's square, relative to the square of the bound, in units of the cost
/// of balancing at full action.
const SOFT_BOUND_PENALTY: f64 = 1e6;
/// Maximum number of Newton steps of a plan.
const MAX_STEPS: usize = 50;
/// Mean product of slack and multiplier, in units set by the start, and relative residual of the
/// equations at which a plan has converged.
const CONVERGENCE_TOLERANCE: f64 = 1e-9;
/// Share of the initial soft-bound violation that is the unit: smaller products are lost in
/// rounding.
const VIOLATION_UNIT: f64 = 1e-3;
/// Maximum share of the distance to the nearest bound in one step.
const FRACTION_TO_BOUNDARY: f64 = 0.99;

/// The limits of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct Limits {
    /// Steps of the plan.
    pub horizon: usize,
    /// Minimum and maximum action, as deviations from the equilibrium: below and above 0.
    pub action: [f64; 2],
    /// Bounds of the state.
    pub states: Vec<Bound>,
}

/// The planner.
#[derive(Debug, Clone)]
pub struct LinearMpc {
    linear: Linear,
    weights: LqrWeights,
    /// K, and P, n × n.
    gain: Vec<f64>,
    end: Vec<f64>,
    /// The bounded variables of each step: the action, then numbers of the state after it.
    bounded: Vec<BoundedVariable>,
    /// Slacks and multipliers, N × bounded × (low, high).
    sides: Vec<[BoundSide; 2]>,
    stages: Vec<Stage>,
    actions: Vec<f64>,
    /// s_0 … s_N.
    states: Vec<f64>,
    /// V, V A and the gradient of the cost-to-go of a step, in the backward sweep.
    value: Vec<f64>,
    product: Vec<f64>,
    slope: Vec<f64>,
    before: Vec<f64>,
}

#[derive(Debug, Clone, Copy)]
struct BoundedVariable {
    /// The number of the state; none for the action.
    state: Option<usize>,
    low: f64,
    high: f64,
    /// Violation of the bound per unit of multiplier.
    softness: f64,
}

/// One side of a bound, and its Newton step.
#[derive(Debug, Clone, Copy, Default)]
struct BoundSide {
    slack: f64,
    multiplier: f64,
    slack_step: f64,
    multiplier_step: f64,
}

/// A step of the plan: results of the backward sweep for the forward one, and the Newton step.
#[derive(Debug, Clone)]
struct Stage {
    /// B'VB + r, plus the contribution of the bounds.
    curvature: f64,
    /// A'VB.
    coupling: Vec<f64>,
    offset: f64,
    action_step: f64,
    /// Newton step of the state after it.
    state_step: Vec<f64>,
}

impl BoundSide {
    /// The bound's contribution to the curvature.
    fn stiffness(&self, softness: f64) -> f64 {
        self.multiplier / (self.slack + self.multiplier * softness)
    }

    /// Change of the multiplier if the bounded number does not change.
    fn multiplier_delta(&self, room: f64, softness: f64, wanted: f64) -> f64 {
        let lacking = room + softness * self.multiplier - self.slack;
        (wanted - self.slack * self.multiplier - self.multiplier * lacking)
            / (self.slack + self.multiplier * softness)
    }
}

impl BoundedVariable {
    /// Distances from a number down to the low bound and up to the high one.
    fn distances_to_bounds(&self, number: f64) -> [f64; 2] {
        [number - self.low, self.high - number]
    }
}

/// Sign of the force of the low and the high bound's multiplier.
const BOUND_SIGNS: [f64; 2] = [-1.0, 1.0];

impl LinearMpc {
    /// Makes the planner of a linear model; `names` has the names of the numbers of the state, for
    /// errors.
    ///
    /// # Errors
    /// As [`Linear::regulation`].
    pub fn new(
        linear: &Linear,
        weights: &LqrWeights,
        limits: &Limits,
        names: &[String],
    ) -> Result<Self> {
        let (n, horizon) = (linear.b.len(), limits.horizon);
        let [low, high] = limits.action;
        let full = weights.action[0] * high.max(-low).powi(2);
        let soft = |bound: &Bound| BoundedVariable {
            state: Some(bound.state),
            low: -bound.max_abs,
            high: bound.max_abs,
            softness: bound.max_abs * bound.max_abs / (SOFT_BOUND_PENALTY * full),
        };
        let action = BoundedVariable {
            state: None,
            low,
            high,
            softness: 0.0,
        };
        let bounded = std::iter::once(action)
            .chain(limits.states.iter().map(soft))
            .collect::<Vec<_>>();
        let stage = Stage {
            curvature: 1.0,
            coupling: vec![0.0; n],
            offset: 0.0,
            action_step: 0.0,
            state_step: vec![0.0; n],
        };
        let Regulation { gain, cost_to_go } = linear.regulation(weights, names)?;
        Ok(Self {
            gain,
            end: cost_to_go,
            linear: linear.clone(),
            weights: weights.clone(),
            sides: vec![[BoundSide::default(); 2]; horizon * bounded.len()],
            bounded,
            stages: vec![stage; horizon],
            actions: vec![0.0; horizon],
            states: vec![0.0; (horizon + 1) * n],
            value: vec![0.0; n * n],
            product: vec![0.0; n * n],
            slope: vec![0.0; n],
            before: vec![0.0; n],
        })
    }

    /// The planned actions, the next one first.
    pub fn actions(&self) -> &[f64] {
        &self.actions
    }

    /// The predicted states under these actions, as deviations from upright, n numbers per step,
    /// the present one first.
    pub fn states(&self) -> &[f64] {
        &self.states
    }

    /// Plans from a deviation from upright, independent of earlier plans; returns the number of
    /// Newton steps.
    ///
    /// # Panics
    /// If the deviation does not have one number for each number of the state.
    pub fn plan(&mut self, deviation: &[f64]) -> usize {
        let unit = self.begin(deviation);
        let mut lacking = 1.0;
        for step in 1..=MAX_STEPS {
            self.factor();
            // Predictor step straight to the bounds first, to determine how much centring is
            // needed.
            let now = self.products(0.0);
            self.solve(0.0, false);
            let ahead = self.products(self.max_step_length());
            self.solve((ahead / now).powi(3) * now, true);
            let reach = (FRACTION_TO_BOUNDARY * self.max_step_length()).min(1.0);
            self.advance(reach);
            lacking *= 1.0 - reach;
            if self.products(0.0) <= CONVERGENCE_TOLERANCE * unit
                && lacking <= CONVERGENCE_TOLERANCE
            {
                return step;
            }
        }
        MAX_STEPS
    }

    /// The regulator's actions, well within the limits, with slacks and multipliers of suitable
    /// size; returns the unit of their products: the cost of full action, or a share of the initial
    /// soft-bound violation if that is more.
    fn begin(&mut self, deviation: &[f64]) -> f64 {
        let n = self.linear.b.len();
        self.states[..n].copy_from_slice(deviation);
        let BoundedVariable { low, high, .. } = self.bounded[0];
        for (step, action) in self.actions.iter_mut().enumerate() {
            let (past, future) = self.states.split_at_mut((step + 1) * n);
            let state = &past[step * n..];
            *action = (-dot(&self.gain, state)).clamp(0.9 * low, 0.9 * high);
            for (i, number) in future[..n].iter_mut().enumerate() {
                *number = dot(&self.linear.a[i * n..][..n], state) + self.linear.b[i] * *action;
            }
        }
        let full = self.weights.action[0] * high.max(-low).powi(2);
        // Mean cost of soft-bound violations over all bounds: multipliers have about that size.
        let mut beyond = 0.0;
        for place in 0..self.sides.len() {
            let (step, bounded) = (
                place / self.bounded.len(),
                self.bounded[place % self.bounded.len()],
            );
            let rooms = bounded
                .distances_to_bounds(self.number(step, bounded.state))
                .into_iter();
            beyond += rooms
                .map(|room| room.min(0.0).powi(2) / bounded.softness.max(f64::MIN_POSITIVE))
                .sum::<f64>();
        }
        let start = full.max(beyond / (2 * self.sides.len()) as f64);
        for place in 0..self.sides.len() {
            let (step, bounded) = (
                place / self.bounded.len(),
                self.bounded[place % self.bounded.len()],
            );
            // With slack = room + softness·multiplier, so that the residual is 0 at the start.
            self.sides[place] = bounded
                .distances_to_bounds(self.number(step, bounded.state))
                .map(|room| {
                    let root = (room * room + 4.0 * bounded.softness * start).sqrt();
                    let multiplier = if room > 0.0 {
                        2.0 * start / (room + root)
                    } else {
                        (root - room) / (2.0 * bounded.softness)
                    };
                    BoundSide {
                        slack: start / multiplier,
                        multiplier,
                        ..BoundSide::default()
                    }
                });
        }
        full.max(VIOLATION_UNIT * start)
    }

    /// The action of a step or a number of the state after it.
    fn number(&self, step: usize, state: Option<usize>) -> f64 {
        state.map_or(self.actions[step], |state| {
            self.states[(step + 1) * self.linear.b.len() + state]
        })
    }

    /// The mean product of slack and multiplier after a share of the Newton step.
    fn products(&self, share: f64) -> f64 {
        let after = |side: &BoundSide| {
            (side.slack + share * side.slack_step)
                * (side.multiplier + share * side.multiplier_step)
        };
        self.sides.iter().flatten().map(after).sum::<f64>() / (2 * self.sides.len()) as f64
    }

    /// The backward sweep of the curvatures.
    fn factor(&mut self) {
        let n = self.linear.b.len();
        let (a, b) = (&self.linear.a, &self.linear.b);
        let stiffness = |sides: &[[BoundSide; 2]], bounded: &[BoundedVariable], place: usize| {
            let softness = bounded[place].softness;
            sides[place]
                .iter()
                .map(|side| side.stiffness(softness))
                .sum::<f64>()
        };
        self.value.copy_from_slice(&self.end);
        for (step, stage) in self.stages.iter_mut().enumerate().rev() {
            let sides = &self.sides[step * self.bounded.len()..][..self.bounded.len()];
            for (place, bounded) in self.bounded.iter().enumerate() {
                if let Some(state) = bounded.state {
                    self.value[state * n + state] += stiffness(sides, &self.bounded, place);
                }
            }
            for (row, value) in self
                .product
                .chunks_exact_mut(n)
                .zip(self.value.chunks_exact(n))
            {
                for (j, number) in row.iter_mut().enumerate() {
                    *number = (0..n).map(|k| value[k] * a[k * n + j]).sum();
                }
            }
            for (i, row) in self.value.chunks_exact(n).enumerate() {
                self.before[i] = dot(row, b);
            }
            stage.curvature =
                self.weights.action[0] + stiffness(sides, &self.bounded, 0) + dot(b, &self.before);
            for (j, coupling) in stage.coupling.iter_mut().enumerate() {
                *coupling = (0..n).map(|k| a[k * n + j] * self.before[k]).sum();
            }
            for i in 0..n {
                for j in 0..=i {
                    let through: f64 = (0..n).map(|k| a[k * n + i] * self.product[k * n + j]).sum();
                    let value = through - stage.coupling[i] * stage.coupling[j] / stage.curvature;
                    self.value[i * n + j] = value;
                    self.value[j * n + i] = value;
                }
                self.value[i * n + i] += self.weights.state[i];
            }
        }
    }

    /// The Newton step towards products of slack and multiplier that all equal `centre`; with or
    /// without the second order of the last step.
    fn solve(&mut self, centre: f64, is_corrector: bool) {
        let n = self.linear.b.len();
        let (a, b, width) = (&self.linear.a, &self.linear.b, self.bounded.len());
        let wanted = |side: &BoundSide| {
            centre
                - if is_corrector {
                    side.slack_step * side.multiplier_step
                } else {
                    0.0
                }
        };
        for (row, slope) in self.end.chunks_exact(n).zip(&mut self.slope) {
            *slope = dot(row, &self.states[self.stages.len() * n..]);
        }
        for (step, stage) in self.stages.iter_mut().enumerate().rev() {
            let after = &self.states[(step + 1) * n..][..n];
            let mut pulled = self.weights.action[0] * self.actions[step];
            for (bounded, sides) in self.bounded.iter().zip(&self.sides[step * width..]) {
                let number = bounded
                    .state
                    .map_or(self.actions[step], |state| after[state]);
                let pull = |(room, (side, pull)): (f64, (&BoundSide, f64))| {
                    pull * (side.multiplier
                        + side.multiplier_delta(room, bounded.softness, wanted(side)))
                };
                let pull: f64 = bounded
                    .distances_to_bounds(number)
                    .into_iter()
                    .zip(sides.iter().zip(BOUND_SIGNS))
                    .map(pull)
                    .sum();
                *bounded
                    .state
                    .map_or(&mut pulled, |state| &mut self.slope[state]) += pull;
            }
            stage.offset = (pulled + dot(b, &self.slope)) / stage.curvature;
            let state = &self.states[step * n..][..n];
            for (j, number) in self.before.iter_mut().enumerate() {
                let through: f64 = (0..n).map(|k| a[k * n + j] * self.slope[k]).sum();
                *number =
                    self.weights.state[j] * state[j] + through - stage.coupling[j] * stage.offset;
            }
            std::mem::swap(&mut self.slope, &mut self.before);
        }
        self.before.fill(0.0);
        for (step, stage) in self.stages.iter_mut().enumerate() {
            stage.action_step =
                -stage.offset - dot(&stage.coupling, &self.before) / stage.curvature;
            for (i, number) in stage.state_step.iter_mut().enumerate() {
                *number = dot(&a[i * n..][..n], &self.before) + b[i] * stage.action_step;
            }
            self.before.copy_from_slice(&stage.state_step);
            let after = &self.states[(step + 1) * n..][..n];
            for (bounded, sides) in self.bounded.iter().zip(&mut self.sides[step * width..]) {
                let (number, moved) = bounded
                    .state
                    .map_or((self.actions[step], stage.action_step), |state| {
                        (after[state], stage.state_step[state])
                    });
                for ((side, pull), room) in sides
                    .iter_mut()
                    .zip(BOUND_SIGNS)
                    .zip(bounded.distances_to_bounds(number))
                {
                    let rise = side.multiplier_delta(room, bounded.softness, wanted(side))
                        + side.stiffness(bounded.softness) * pull * moved;
                    side.slack_step = room + bounded.softness * (side.multiplier + rise)
                        - pull * moved
                        - side.slack;
                    side.multiplier_step = rise;
                }
            }
        }
    }

    /// The share of the Newton step after which the first slack or multiplier would be 0.
    fn max_step_length(&self) -> f64 {
        let until = |now: f64, step: f64| {
            if step < 0.0 {
                -now / step
            } else {
                f64::INFINITY
            }
        };
        let sides = self.sides.iter().flatten();
        sides.fold(1.0 / FRACTION_TO_BOUNDARY, |reach, side| {
            reach
                .min(until(side.slack, side.slack_step))
                .min(until(side.multiplier, side.multiplier_step))
        })
    }

    fn advance(&mut self, share: f64) {
        let n = self.linear.b.len();
        for ((stage, action), state) in self
            .stages
            .iter()
            .zip(&mut self.actions)
            .zip(self.states[n..].chunks_exact_mut(n))
        {
            *action += share * stage.action_step;
            state
                .iter_mut()
                .zip(&stage.state_step)
                .for_each(|(number, step)| *number += share * step);
        }
        for side in self.sides.iter_mut().flatten() {
            side.slack += share * side.slack_step;
            side.multiplier += share * side.multiplier_step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, LinearMpc, SOFT_BOUND_PENALTY};
    use crate::body::control::{Bound, Linear, LqrWeights};
    use crate::body::uniform::Uniform;
    use crate::brain::lqr::regulation::dot;

    /// A model similar to a cart with a pole: unstable, with a driven position.
    fn plant() -> (Linear, LqrWeights) {
        let a = vec![
            1.0, 0.04, 0.0, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.0, 1.05, 0.04, 0.0, 2.0, 2.3, 1.05,
        ];
        (
            Linear {
                a,
                b: vec![0.01, 0.9, -0.1, -5.0],
            },
            LqrWeights {
                state: vec![625.0, 0.0, 100.0, 0.0],
                action: vec![0.25],
            },
        )
    }

    fn limits(action: f64) -> Limits {
        Limits {
            horizon: 30,
            action: [-action, action],
            states: vec![
                Bound {
                    state: 0,
                    max_abs: 0.1,
                },
                Bound {
                    state: 1,
                    max_abs: 0.3,
                },
            ],
        }
    }

    /// The cost of a sequence of actions, by definition.
    fn cost(start: &[f64], actions: &[f64], most: f64) -> f64 {
        let (linear, weights) = plant();
        let end = linear
            .regulation(&weights, &[])
            .expect("stabilisable")
            .cost_to_go;
        let mut state = start.to_vec();
        let mut cost = 0.0;
        for action in actions {
            cost += state
                .iter()
                .zip(&weights.state)
                .map(|(s, q)| q * s * s)
                .sum::<f64>()
                + weights.action[0] * action * action;
            state = linear
                .a
                .chunks_exact(4)
                .zip(&linear.b)
                .map(|(row, b)| dot(row, &state) + b * action)
                .collect();
            for bound in limits(most).states {
                let beyond = (state[bound.state].abs() - bound.max_abs).max(0.0) / bound.max_abs;
                cost += SOFT_BOUND_PENALTY * weights.action[0] * most * most * beyond * beyond;
            }
        }
        0.5 * (cost
            + state
                .iter()
                .zip(end.chunks_exact(4))
                .map(|(s, row)| s * dot(row, &state))
                .sum::<f64>())
    }

    #[test]
    fn where_no_bound_is_met_the_plan_is_the_regulators() {
        let (linear, weights) = plant();
        let gain = linear.regulation(&weights, &[]).expect("stabilisable").gain;
        let mut planner =
            LinearMpc::new(&linear, &weights, &limits(1.0), &[]).expect("stabilisable");
        planner.plan(&[0.01, 0.0, 0.001, 0.0]);
        for (action, state) in planner
            .actions()
            .iter()
            .zip(planner.states().chunks_exact(4))
        {
            assert!(
                (action + dot(&gain, state)).abs() < 1e-7,
                "{action} at {state:?}"
            );
        }
    }

    #[test]
    fn no_action_that_is_allowed_costs_less_than_the_planned_ones() {
        let (linear, weights) = plant();
        // The speed's bound is reached before the wide limit, and after the narrow one.
        let mut planners = [1.0, 0.2].map(|most| {
            (
                most,
                LinearMpc::new(&linear, &weights, &limits(most), &[]).expect("stabilisable"),
            )
        });
        let mut uniform = Uniform::new(3);
        let (mut at_limit, mut beyond, mut most_steps) = (0, 0, 0);
        for turn in 0..200 {
            let (most, planner) = &mut planners[turn % 2];
            let start = [0.15, 0.4, 0.3, 0.5].map(|size| uniform.within(size));
            most_steps = most_steps.max(planner.plan(&start));
            let actions = planner.actions().to_vec();
            beyond += usize::from(
                planner
                    .states()
                    .chunks_exact(4)
                    .skip(1)
                    .any(|state| state[0].abs() > 0.1 || state[1].abs() > 0.3),
            );
            // The problem is convex: it is enough that no single action can be changed to reduce
            // the cost.
            for place in 0..actions.len() {
                let slope = |step: f64| {
                    let mut moved = actions.clone();
                    moved[place] += step;
                    cost(&start, &moved, *most)
                };
                let (slope, curvature) = (
                    (slope(1e-5) - slope(-1e-5)) / 2e-5,
                    (slope(1e-5) + slope(-1e-5) - 2.0 * slope(0.0)) / 1e-10,
                );
                let is_stuck =
                    (actions[place].abs() - *most).abs() < 1e-6 && slope * actions[place] < 0.0;
                at_limit += usize::from(is_stuck);
                let lacking = slope.abs() / curvature.max(weights.action[0]);
                assert!(
                    is_stuck || lacking < 1e-5,
                    "from {start:?} action {place} ({}) is {lacking:.1e} off",
                    actions[place]
                );
                assert!(actions[place].abs() <= *most);
            }
        }
        println!(
            "{at_limit} actions at a limit, {beyond} of 200 plans beyond a soft bound, at most {most_steps} steps"
        );
        assert!(at_limit > 20 && beyond > 20 && most_steps < 30);
    }
}
