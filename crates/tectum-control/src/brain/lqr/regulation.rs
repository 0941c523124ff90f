//! Linearising a body by differences, and the gain of the regulator of a linear model.

use nalgebra::{DMatrix, DVector};
use tectum::{Error, Result};

use crate::body::control::{Linear, LqrWeights};
use crate::body::{Equilibrium, ExactState};
use crate::riccati;

/// Takes central differences of one step around the equilibrium.
///
/// # Errors
/// A state that the body rejects.
pub fn linearise(body: &mut dyn ExactState, equilibrium: &Equilibrium) -> Result<Linear> {
    let (n, m) = (equilibrium.state.len(), equilibrium.action.len());
    let mut linear = Linear {
        a: vec![0.0; n * n],
        b: vec![0.0; n * m],
    };
    let pushed = |input: usize, by: f32| {
        let mut action = equilibrium.action.clone();
        action[input] += by;
        action
    };
    for (input, &u) in equilibrium.action_step.iter().enumerate() {
        let (ahead, behind) = (
            after(body, &equilibrium.state, &pushed(input, u))?,
            after(body, &equilibrium.state, &pushed(input, -u))?,
        );
        for row in 0..n {
            linear.b[row * m + input] = (ahead[row] - behind[row]) / (2.0 * f64::from(u));
        }
    }
    // A discrete action cannot be 0: the mean of both pushes replaces it.
    let discrete = body
        .spec()
        .action
        .iter()
        .position(|channel| channel.discrete);
    let actions = match discrete {
        Some(input) => vec![
            pushed(input, equilibrium.action_step[input]),
            pushed(input, -equilibrium.action_step[input]),
        ],
        None => vec![equilibrium.action.clone()],
    };
    for column in (0..n).filter(|&column| equilibrium.state_step[column] != 0.0) {
        let step = equilibrium.state_step[column];
        let moved = |sign: f64| {
            let mut state = equilibrium.state.clone();
            state[column] += sign * step;
            state
        };
        for action in &actions {
            let (ahead, behind) = (
                after(body, &moved(1.0), action)?,
                after(body, &moved(-1.0), action)?,
            );
            for row in 0..n {
                linear.a[row * n + column] +=
                    (ahead[row] - behind[row]) / (2.0 * step * actions.len() as f64);
            }
        }
    }
    Ok(linear)
}

fn after(body: &mut dyn ExactState, state: &[f64], action: &[f32]) -> Result<Vec<f64>> {
    body.set_state(state)?;
    body.step(action);
    Ok(body.state())
}

/// The solution of a Riccati equation.
pub struct Regulation {
    /// The regulator's gain K, m × n, row-major.
    pub gain: Vec<f64>,
    /// P, n × n: s'Ps is the cost-to-go from s.
    pub cost_to_go: Vec<f64>,
}

impl Linear {
    /// The regulator u = −K s that minimises Σ s'Qs + u'Ru with diagonal Q and R.
    ///
    /// `names` has the names of the numbers of the state, for errors.
    ///
    /// # Errors
    /// `Invalid` for weights of the wrong length or of an action that are not positive, and for a
    /// number of the state that the weights count and no input stabilises, by name.
    pub fn regulation(&self, weights: &LqrWeights, names: &[String]) -> Result<Regulation> {
        let n = self.a.len().isqrt();
        let m = self.b.len() / n.max(1);
        let LqrWeights { state, action } = weights;
        if (state.len(), action.len()) != (n, m) {
            return Err(Error::invalid(format!(
                "lqr: {} weights of the state and {} of an action; the state has {n} numbers, an action {m}",
                state.len(),
                action.len()
            )));
        }
        if let Some(place) = action
            .iter()
            .position(|weight| weight.is_nan() || *weight <= 0.0)
        {
            return Err(Error::invalid(format!(
                "lqr: action {place} has weight {}; a positive one is needed",
                action[place]
            )));
        }
        let (a, b) = (
            DMatrix::from_row_slice(n, n, &self.a),
            DMatrix::from_row_slice(n, m, &self.b),
        );
        let [q, r] = [state, action].map(|weights| DVector::from_column_slice(weights));
        let solved = riccati::solve(
            &a,
            &b,
            &DMatrix::from_diagonal(&q),
            &DMatrix::from_diagonal(&r),
        );
        let Some((p, gain)) = solved else {
            let states = riccati::unstabilised(&a, &b);
            let weighed = states.iter().find(|place| state[**place] > 0.0);
            return Err(Error::invalid(match weighed.or(states.first()) {
                Some(state) => format!(
                    "lqr: no input stabilises {}, which the weights count",
                    named(names, *state)
                ),
                None => "lqr: no regulator stabilises the state with these weights: an unstable combination of numbers has no weight".to_owned(),
            }));
        };
        Ok(Regulation {
            gain: gain.transpose().data.into(),
            cost_to_go: p.data.into(),
        })
    }
}

/// A number of the state in messages.
fn named(names: &[String], state: usize) -> String {
    match names.get(state) {
        Some(name) => name.clone(),
        None => format!("number {state} of the state"),
    }
}

pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter()
        .zip(right)
        .map(|(left, right)| left * right)
        .sum()
}

#[cfg(test)]
mod tests {
    use crate::body::control::{Linear, LqrWeights};

    fn gain(a: &[f64], b: &[f64], state: &[f64], action: &[f64]) -> tectum::Result<Vec<f64>> {
        let linear = Linear {
            a: a.to_vec(),
            b: b.to_vec(),
        };
        let weights = LqrWeights {
            state: state.to_vec(),
            action: action.to_vec(),
        };
        let names = ["x", "y"].map(str::to_owned);
        linear.regulation(&weights, &names).map(|found| found.gain)
    }

    #[test]
    fn a_scalar_plant_has_its_closed_form_gain() {
        // p = q + a²p r/(r + b²p) with a = 2, b = q = r = 1: p² − 4p − 1 = 0, p = 2 + √5, K = 2p/(1 +
        // p).
        let gain = gain(&[2.0], &[1.0], &[1.0], &[1.0]).expect("stabilisable");
        let p = 2.0 + 5.0f64.sqrt();
        assert!((gain[0] - 2.0 * p / (1.0 + p)).abs() < 1e-12, "{gain:?}");
    }

    #[test]
    fn independent_plants_have_the_gains_that_each_has_alone() {
        let [first, second] = [(2.0, 1.0, 1.0), (1.5, 0.5, 3.0)]
            .map(|(a, b, r)| gain(&[a], &[b], &[1.0], &[r]).expect("stabilisable")[0]);
        let both = gain(
            &[2.0, 0.0, 0.0, 1.5],
            &[1.0, 0.0, 0.0, 0.5],
            &[1.0; 2],
            &[1.0, 3.0],
        );
        for (found, expected) in both
            .expect("stabilisable")
            .iter()
            .zip([first, 0.0, 0.0, second])
        {
            assert!((found - expected).abs() < 1e-12);
        }
    }

    #[test]
    fn a_small_weight_next_to_a_large_one_counts() {
        // Two integrators over 10 ms: the gains of each alone in closed form,
        // p = (q + √(q² + 4 q r/b²))/2.
        let (b, weights) = (0.01, [1e6, 1e-6]);
        let gain = gain(
            &[1.0, 0.0, 0.0, 1.0],
            &[b, 0.0, 0.0, b],
            &weights,
            &[1.0; 2],
        );
        let gain = gain.expect("stabilisable");
        for (place, q) in [(0, weights[0]), (3, weights[1])] {
            let p = 0.5 * (q + (q * q + 4.0 * q / (b * b)).sqrt());
            let expected = p * b / (1.0 + b * b * p);
            assert!(
                (gain[place] / expected - 1.0).abs() < 1e-9,
                "{gain:?}, not {expected}"
            );
        }
    }

    #[test]
    fn a_plant_of_hours_has_a_gain_at_a_period_of_milliseconds() {
        // Walls of an hour and of a minute, stepped by Euler's method over 10 ms.
        let [slow, fast] = [0.01 / 3600.0, 0.01 / 60.0];
        let gain = gain(
            &[1.0 - slow, slow, 0.0, 1.0 - fast],
            &[0.0, fast],
            &[1.0, 0.0],
            &[1.0],
        );
        // SciPy 1.17, linalg.solve_discrete_are.
        for (found, expected) in gain.expect("stable").iter().zip(SLOW_GAIN) {
            assert!(
                (found / expected - 1.0).abs() < 1e-6,
                "{found}, not {expected}"
            );
        }
    }

    const SLOW_GAIN: [f64; 2] = [0.40744489, 0.00676788];

    #[test]
    fn a_state_out_of_reach_is_refused_by_name() {
        for (a, name) in [([1.1, 0.0, 0.0, 0.0], "x"), ([0.5, 0.0, 0.0, 1.0], "y")] {
            let b = if name == "x" { [0.0, 1.0] } else { [1.0, 0.0] };
            let error = gain(&a, &b, &[1.0; 2], &[1.0]).expect_err("unreachable");
            let message = format!("no input stabilises {name}, which the weights count");
            assert!(error.to_string().contains(&message), "{error}");
        }
    }

    #[test]
    fn a_state_out_of_reach_without_weight_does_not_count() {
        let gain = gain(&[0.5, 0.0, 0.0, 1.0], &[1.0, 0.0], &[1.0, 0.0], &[1.0]);
        assert!(gain.expect("the weights do not count it")[0] > 0.0);
    }

    #[derive(serde::Deserialize)]
    struct SciPy {
        a: Vec<f64>,
        b: Vec<f64>,
        state_weights: Vec<f64>,
        action_weights: Vec<f64>,
        gain: Vec<f64>,
    }

    /// Systems of `bench/peers/riccati.py`, weights from 1e-6 to 1e6.
    #[test]
    fn gains_of_random_systems_are_those_of_scipy() {
        let tracked = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/riccati.json");
        let path = std::env::var("TECTUM_RICCATI").unwrap_or_else(|_| tracked.to_owned());
        let text = std::fs::read(path).expect("readable");
        let systems: Vec<SciPy> = serde_json::from_slice(&text).expect("systems");
        let mut worst = 0.0f64;
        for (place, system) in systems.iter().enumerate() {
            let SciPy { a, b, .. } = system;
            let found = gain(a, b, &system.state_weights, &system.action_weights);
            let found = found.unwrap_or_else(|error| panic!("system {place}: {error}"));
            let size = system.gain.iter().fold(0.0f64, |size, x| size.max(x.abs()));
            for (found, expected) in found.iter().zip(&system.gain) {
                let error = (found - expected).abs() / size;
                assert!(error < 1e-6, "system {place}: {found}, not {expected}");
                worst = worst.max(error);
            }
        }
        println!("{} systems, worst {worst:.1e}", systems.len());
        assert!(systems.len() >= 40);
    }
}
