//! Linearising a body by differences and solving the discrete Riccati equation for one action.

use tectum::{Error, Result};

use crate::body::{Equilibrium, ExactState};

const SWEEPS: usize = 100_000;
const TOLERANCE: f64 = 1e-9;

/// The linear model s' = A s + B u around an equilibrium, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    /// A, n × n.
    pub a: Vec<f64>,
    /// B, n.
    pub b: Vec<f64>,
}

/// Takes central differences of one step around the equilibrium.
///
/// # Errors
/// A body with more than one action, or a state that it rejects.
pub fn linearise(body: &mut dyn ExactState, equilibrium: &Equilibrium) -> Result<Linear> {
    if body.spec().action.len() != 1 {
        let (name, actions) = (&body.spec().name, body.spec().action.len());
        return Err(Error::invalid(format!("lqr: body {name} has {actions} actions, the regulator drives 1")));
    }
    let n = equilibrium.state.len();
    let is_discrete = body.spec().action[0].discrete;
    let mut linear = Linear { a: vec![0.0; n * n], b: vec![0.0; n] };
    let u = equilibrium.action_step;
    let (ahead, behind) = (after(body, &equilibrium.state, u)?, after(body, &equilibrium.state, -u)?);
    for row in 0..n {
        linear.b[row] = (ahead[row] - behind[row]) / (2.0 * f64::from(u));
    }
    for column in (0..n).filter(|&column| equilibrium.state_step[column] != 0.0) {
        let step = equilibrium.state_step[column];
        let moved = |sign: f64| {
            let mut state = equilibrium.state.clone();
            state[column] += sign * step;
            state
        };
        // A discrete action cannot be 0: the mean of both pushes replaces it.
        let pushes: &[f32] = if is_discrete { &[u, -u] } else { &[0.0] };
        for &push in pushes {
            let (ahead, behind) = (after(body, &moved(1.0), push)?, after(body, &moved(-1.0), push)?);
            for row in 0..n {
                linear.a[row * n + column] += (ahead[row] - behind[row]) / (2.0 * step * pushes.len() as f64);
            }
        }
    }
    Ok(linear)
}

fn after(body: &mut dyn ExactState, state: &[f64], action: f32) -> Result<Vec<f64>> {
    body.set_state(state)?;
    body.step(&[action]);
    Ok(body.state())
}

impl Linear {
    /// The gain K of the regulator u = −K s that minimises Σ s'Qs + r u² with diagonal Q.
    ///
    /// # Errors
    /// As [`Linear::riccati`].
    pub fn gain(&self, state_weights: &[f64], action_weight: f64) -> Result<Vec<f64>> {
        self.riccati(state_weights, action_weight).map(|(gain, _)| gain)
    }

    /// The regulator's gain K, and P, n × n: s'Ps is the cost-to-go from s.
    ///
    /// P ← Q + A'PA − A'PB (r + B'PB)⁻¹ B'PA until it converges; K = (r + B'PB)⁻¹ B'PA.
    ///
    /// # Errors
    /// Weights of the wrong length; an iteration that does not converge (the pair is not stabilisable).
    pub fn riccati(&self, state_weights: &[f64], action_weight: f64) -> Result<(Vec<f64>, Vec<f64>)> {
        let n = self.b.len();
        if state_weights.len() != n {
            return Err(Error::invalid(format!("lqr: {} state weights, the state has {n} numbers", state_weights.len())));
        }
        let mut p = diagonal(state_weights);
        for _ in 0..SWEEPS {
            let pa = product(&p, &self.a, n);
            let pb: Vec<f64> = (0..n).map(|i| dot(&p[i * n..(i + 1) * n], &self.b)).collect();
            let s = action_weight + dot(&self.b, &pb);
            let bpa: Vec<f64> = (0..n).map(|j| (0..n).map(|i| self.b[i] * pa[i * n + j]).sum()).collect();
            let mut next = diagonal(state_weights);
            for i in 0..n {
                // Both halves from one: otherwise rounding makes P asymmetric and the iteration leaves its fixed point.
                for j in 0..=i {
                    let apa: f64 = (0..n).map(|k| self.a[k * n + i] * pa[k * n + j]).sum();
                    next[i * n + j] += apa - bpa[i] * bpa[j] / s;
                    next[j * n + i] = next[i * n + j];
                }
            }
            let size = next.iter().fold(0.0f64, |size, value| size.max(value.abs()));
            let change = next.iter().zip(&p).fold(0.0f64, |change, (new, old)| change.max((new - old).abs()));
            p = next;
            if !size.is_finite() {
                break;
            }
            if change <= TOLERANCE * size {
                return Ok((bpa.iter().map(|value| value / s).collect(), p));
            }
        }
        Err(Error::invalid(format!("lqr: the Riccati iteration did not come to rest in {SWEEPS} sweeps")))
    }
}

fn diagonal(values: &[f64]) -> Vec<f64> {
    let n = values.len();
    let mut matrix = vec![0.0; n * n];
    for (i, value) in values.iter().enumerate() {
        matrix[i * n + i] = *value;
    }
    matrix
}

fn product(left: &[f64], right: &[f64], n: usize) -> Vec<f64> {
    let mut out = vec![0.0; n * n];
    for i in 0..n {
        for k in 0..n {
            for j in 0..n {
                out[i * n + j] += left[i * n + k] * right[k * n + j];
            }
        }
    }
    out
}

pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

#[cfg(test)]
mod tests {
    use super::Linear;

    #[test]
    fn a_scalar_plant_has_its_closed_form_gain() {
        // p = q + a²p r/(r + b²p) with a = 2, b = q = r = 1: p² − 4p − 1 = 0, p = 2 + √5, K = 2p/(1 + p).
        let gain = Linear { a: vec![2.0], b: vec![1.0] }.gain(&[1.0], 1.0).expect("stabilisable");
        let p = 2.0 + 5.0f64.sqrt();
        assert!((gain[0] - 2.0 * p / (1.0 + p)).abs() < 1e-9, "{gain:?}");
    }

    #[test]
    fn a_plant_out_of_reach_is_refused() {
        let error = Linear { a: vec![2.0], b: vec![0.0] }.gain(&[1.0], 1.0).expect_err("unreachable");
        assert!(error.to_string().contains("did not come to rest"), "{error}");
    }
}
