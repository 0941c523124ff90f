//! Linearising a body by differences, and solving the discrete Riccati equation.

use tectum::{Error, Result};

use crate::body::control::Linear;
use crate::body::{Equilibrium, ExactState};

const SWEEPS: usize = 100_000;
const TOLERANCE: f64 = 1e-9;

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

impl Linear {
    /// The gain K of the regulator u = −K s that minimises Σ s'Qs + u'Ru with diagonal Q and R, m ×
    /// n.
    ///
    /// # Errors
    /// As [`Linear::riccati`].
    pub fn gain(&self, state_weights: &[f64], action_weights: &[f64]) -> Result<Vec<f64>> {
        self.riccati(state_weights, action_weights)
            .map(|(gain, _)| gain)
    }

    /// The regulator's gain K, m × n, and P, n × n: s'Ps is the cost-to-go from s.
    ///
    /// P ← Q + A'PA − A'PB (R + B'PB)⁻¹ B'PA until it converges; K = (R + B'PB)⁻¹ B'PA.
    ///
    /// # Errors
    /// Weights of the wrong length; an iteration that does not converge (the pair is not
    /// stabilisable).
    pub fn riccati(
        &self,
        state_weights: &[f64],
        action_weights: &[f64],
    ) -> Result<(Vec<f64>, Vec<f64>)> {
        let n = self.a.len().isqrt();
        let m = self.b.len() / n.max(1);
        if (state_weights.len(), action_weights.len()) != (n, m) {
            let given = format!(
                "{} state weights and {} of actions",
                state_weights.len(),
                action_weights.len()
            );
            return Err(Error::invalid(format!(
                "lqr: {given}; the state has {n} numbers, an action {m}"
            )));
        }
        let b_transposed: Vec<f64> = (0..m * n).map(|at| self.b[at % n * m + at / n]).collect();
        let (mut p, mut growing) = (diagonal(state_weights), 0);
        for _ in 0..SWEEPS {
            let pa = product(&p, &self.a, n);
            let pb = product(&p, &self.b, n);
            let mut bpa = product(&b_transposed, &pa, n);
            let mut s = product(&b_transposed, &pb, n);
            (0..m).for_each(|input| s[input * m + input] += action_weights[input]);
            eliminate(&mut s, &mut bpa);
            let mut next = diagonal(state_weights);
            for i in 0..n {
                // Both halves from one: otherwise rounding makes P asymmetric and the iteration
                // leaves its fixed point.
                for j in 0..=i {
                    let apa: f64 = (0..n).map(|k| self.a[k * n + i] * pa[k * n + j]).sum();
                    let regulated: f64 = (0..m)
                        .map(|input| bpa[input * n + i] * bpa[input * n + j] / s[input * m + input])
                        .sum();
                    next[i * n + j] += apa - regulated;
                    next[j * n + i] = next[i * n + j];
                }
            }
            let size = next
                .iter()
                .fold(0.0f64, |size, value| size.max(value.abs()));
            let growth = |place: usize| next[place * n + place] - p[place * n + place];
            growing = (0..n)
                .max_by(|a, b| growth(*a).total_cmp(&growth(*b)))
                .unwrap_or(0);
            let change = next
                .iter()
                .zip(&p)
                .fold(0.0f64, |change, (new, old)| change.max((new - old).abs()));
            p = next;
            // The largest magnitude ignores NaN.
            if !(size.is_finite() && p.iter().all(|value| value.is_finite())) {
                break;
            }
            if change <= TOLERANCE * size {
                substitute(&s, &mut bpa);
                return Ok((bpa, p));
            }
        }
        Err(Error::invalid(format!(
            "lqr: the Riccati iteration did not converge; no input controls number {growing} of the state, which the weights count"
        )))
    }
}

/// Gaussian elimination of a symmetric positive definite S = L D L', m × m, in S X = R for R, m ×
/// n: S becomes D L', and R becomes L⁻¹R, so that R'S⁻¹R is R'D⁻¹R of the new R.
fn eliminate(s: &mut [f64], r: &mut [f64]) {
    let m = s.len().isqrt();
    let n = r.len() / m.max(1);
    for pivot in 0..m {
        for row in pivot + 1..m {
            let factor = s[row * m + pivot] / s[pivot * m + pivot];
            (pivot..m).for_each(|column| s[row * m + column] -= factor * s[pivot * m + column]);
            (0..n).for_each(|column| r[row * n + column] -= factor * r[pivot * n + column]);
        }
    }
}

/// Back substitution after [`eliminate`]: R becomes X.
fn substitute(s: &[f64], r: &mut [f64]) {
    let m = s.len().isqrt();
    let n = r.len() / m.max(1);
    for row in (0..m).rev() {
        for column in 0..n {
            let known: f64 = (row + 1..m)
                .map(|later| s[row * m + later] * r[later * n + column])
                .sum();
            r[row * n + column] = (r[row * n + column] - known) / s[row * m + row];
        }
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

/// The product of matrices with `inner` columns and rows.
fn product(left: &[f64], right: &[f64], inner: usize) -> Vec<f64> {
    let (rows, columns) = (left.len() / inner.max(1), right.len() / inner.max(1));
    let mut out = vec![0.0; rows * columns];
    for i in 0..rows {
        for k in 0..inner {
            for j in 0..columns {
                out[i * columns + j] += left[i * inner + k] * right[k * columns + j];
            }
        }
    }
    out
}

pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter()
        .zip(right)
        .map(|(left, right)| left * right)
        .sum()
}

#[cfg(test)]
mod tests {
    use crate::body::control::Linear;

    #[test]
    fn a_scalar_plant_has_its_closed_form_gain() {
        // p = q + a²p r/(r + b²p) with a = 2, b = q = r = 1: p² − 4p − 1 = 0, p = 2 + √5, K = 2p/(1 +
        // p).
        let gain = Linear {
            a: vec![2.0],
            b: vec![1.0],
        }
        .gain(&[1.0], &[1.0])
        .expect("stabilisable");
        let p = 2.0 + 5.0f64.sqrt();
        assert!((gain[0] - 2.0 * p / (1.0 + p)).abs() < 1e-9, "{gain:?}");
    }

    #[test]
    fn independent_plants_have_the_gains_that_each_has_alone() {
        let gain = |linear: Linear, q: &[f64], r: &[f64]| linear.gain(q, r).expect("stabilisable");
        let [first, second] = [(2.0, 1.0, 1.0), (1.5, 0.5, 3.0)].map(|(a, b, r)| {
            gain(
                Linear {
                    a: vec![a],
                    b: vec![b],
                },
                &[1.0],
                &[r],
            )[0]
        });
        let both = gain(
            Linear {
                a: vec![2.0, 0.0, 0.0, 1.5],
                b: vec![1.0, 0.0, 0.0, 0.5],
            },
            &[1.0; 2],
            &[1.0, 3.0],
        );
        for (found, expected) in both.iter().zip([first, 0.0, 0.0, second]) {
            assert!((found - expected).abs() < 1e-8, "{both:?}");
        }
    }

    #[test]
    fn a_plant_out_of_reach_is_refused() {
        let error = Linear {
            a: vec![2.0],
            b: vec![0.0],
        }
        .gain(&[1.0], &[1.0])
        .expect_err("unreachable");
        assert!(error.to_string().contains("did not converge"), "{error}");
    }
}
