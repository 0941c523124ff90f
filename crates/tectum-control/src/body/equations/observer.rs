//! Estimates of the states of an equation file that no observation shows: a Kalman filter in its
//! steady state, around the equilibrium.

use nalgebra::{DMatrix, DVector};
use tectum::{Error, Result};
use tectum_equations::{Input, System};

use crate::body::wrapped_rad;
use crate::riccati;

/// Standard deviation of an input in each period, as a share of its range.
const INPUT_DEVIATION: f64 = 0.01;
/// Standard deviation of a state in each period, as a share of the greatest magnitude of its range,
/// or of one of its unit.
const STATE_DEVIATION: f64 = 1e-3;
/// Standard deviation of an observation, as a share of its typical magnitude.
const OBSERVATION_DEVIATION: f64 = 1e-3;

/// The corrections of the states that no observation shows.
///
/// What is not known about disturbances is assumed: inputs deviate by 1 % of their range, states by
/// a thousandth of theirs, observations by a thousandth of their typical magnitude, in addition to
/// the declared noise.
pub(super) struct Observer {
    /// What an error of the predicted observations adds to the states, [S, O], in base units; rows
    /// of states that are observed are 0.
    gain: DMatrix<f64>,
}

impl Observer {
    /// None if every state is observed.
    ///
    /// # Errors
    /// `Unsupported` naming a state that the observations do not determine.
    pub fn new(system: &System, parameters: &[f64]) -> Result<Option<Self>> {
        let mut is_observed = vec![false; system.states().len()];
        for state in system.observed_states().into_iter().flatten() {
            is_observed[state] = true;
        }
        if is_observed.iter().all(|observed| *observed) {
            return Ok(None);
        }
        let (state, inputs) = system.equilibrium(parameters);
        let linear = system.linearize(parameters, &state, &inputs);
        let (s, u, o) = (state.len(), inputs.len(), system.observations().len());
        let a = DMatrix::from_row_slice(s, s, &linear.a);
        let b = DMatrix::from_row_slice(s, u, &linear.b);
        let e = DMatrix::from_row_slice(s, system.noises().len(), &linear.e);
        let c = DMatrix::from_row_slice(o, s, &linear.c);
        if [&a, &b, &c, &e]
            .iter()
            .any(|matrix| matrix.iter().any(|slope| !slope.is_finite()))
        {
            return Err(Error::unsupported(
                "the states that are not observed cannot be estimated: a slope at the equilibrium is not finite; `equilibrium VALUE` of states and inputs moves it",
            ));
        }
        let squares = |deviations: Vec<f64>| {
            let squares = deviations
                .into_iter()
                .map(|deviation| deviation * deviation);
            DMatrix::from_diagonal(&DVector::from_iterator(squares.len(), squares))
        };
        let of_inputs = squares(system.inputs().iter().map(input_deviation).collect());
        let driven = &b * of_inputs * b.transpose()
            + &e * squares(system.noise_deviations(parameters)) * e.transpose();
        let mut of_states: Vec<f64> = system
            .states()
            .iter()
            .map(|state| {
                let magnitude = state
                    .range
                    .map_or(state.unit.scale, |[low, high]| low.abs().max(high.abs()));
                STATE_DEVIATION * magnitude
            })
            .collect();
        let observations = system.observations().iter();
        let of_observations = squares(
            observations
                .map(|shown| OBSERVATION_DEVIATION * shown.scale * shown.unit.scale)
                .collect(),
        );
        // The filter is the regulator of the transposed system.
        let (a_transposed, c_transposed) = (a.transpose(), c.transpose());
        let covariance = loop {
            let disturbances = &driven + squares(of_states.clone());
            let solved = riccati::solve(
                &a_transposed,
                &c_transposed,
                &disturbances,
                &of_observations,
            );
            if let Some((covariance, _)) = solved {
                break covariance;
            }
            let states = riccati::unstabilised(&a_transposed, &c_transposed);
            // A clock or a constant is known without being observed.
            let is_known = |place: &usize| driven[(*place, *place)] == 0.0;
            match states
                .iter()
                .find(|place| is_known(place) && of_states[**place] > 0.0)
            {
                Some(place) => of_states[*place] = 0.0,
                None => {
                    let place = states.iter().find(|place| !is_known(place));
                    let name = place.map_or("the state", |place| &system.states()[*place].name);
                    return Err(Error::unsupported(format!(
                        "{name} is not observed, and what is observed does not determine it: `observe` it, or a number that depends on it"
                    )));
                }
            }
        };
        let spread = &covariance * &c_transposed;
        let gain = (&c * &spread + of_observations)
            .lu()
            .solve(&spread.transpose())
            .ok_or_else(|| Error::unsupported("the observations contradict each other"))?;
        let mut gain = gain.transpose();
        for (place, observed) in is_observed.into_iter().enumerate() {
            if observed {
                gain.row_mut(place).fill(0.0);
            }
        }
        Ok(Some(Self { gain }))
    }

    /// Corrects the predicted state by an observation, in the units of the observations.
    pub fn correct(
        &self,
        system: &System,
        parameters: &[f64],
        state: &mut [f64],
        observation: &[f32],
    ) {
        let predicted = system.observe(parameters, state);
        for (place, shown) in system.observations().iter().enumerate() {
            let error = (f64::from(observation[place]) - predicted[place]) * shown.unit.scale;
            let error = if shown.wraps {
                wrapped_rad(error)
            } else {
                error
            };
            for (number, gain) in state.iter_mut().zip(self.gain.column(place).iter()) {
                *number += gain * error;
            }
        }
    }
}

/// The deviation of an input, in base units.
fn input_deviation(input: &Input) -> f64 {
    let range = input.range[1] - input.range[0];
    let range = if range.is_finite() { range } else { 1.0 };
    INPUT_DEVIATION * range * input.unit.scale
}
