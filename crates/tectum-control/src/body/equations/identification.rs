//! Parameters of an equation file from a recording.
//!
//! The recording is cut into windows. In each the plant is stepped from a start of its own under
//! the recorded inputs; starts and parameters are those that explain the observations best. Starts
//! are found within each window (Gauss-Newton), parameters over all (Levenberg-Marquardt).

use rayon::prelude::*;
use serde::Serialize;
use tectum::{Error, Result, Watch, WorkProgress};
use tectum_equations::System;

use super::recording::PlantRecording;
use crate::least_squares::{Fit, FitParameter, fit, solve};

/// Rows of the first part of a window that a start is fitted to; then twice as many, and so on.
const FIRST_ROWS: usize = 4;
/// Minimum windows.
const MIN_WINDOWS: usize = 4;
/// Maximum steps of the search for a start.
const START_STEPS: usize = 12;
/// Residuals beyond this many times the noise, as estimated from a first fit, count linearly
/// instead of as their square.
const OUTLIER: f64 = 4.0;
/// Maximum fits, each from the values of the one before.
const MAX_PASSES: usize = 4;
/// A pass whose residuals are not smaller than this share of those before is the last.
const BETTER: f64 = 0.9;
/// A fit whose root mean square is larger than this many times the noise is tried again.
const ROUGH: f64 = 1.2;
/// Share of the recording, at its end, that is not fitted to.
const HELD_OUT: f64 = 0.15;
/// Steps of a fit that are typical, for its progress.
const TYPICAL_STEPS: u64 = 12;
/// Steps ahead over which a fitted plant must predict better than the reading that stays as it was.
const DOUBT_STEPS: usize = 10;
/// By how much the fitted plant may predict worse: a plant at rest with noise is predicted about as
/// well by staying.
const WORSE: f64 = 1.5;

/// What to fit, and to how long stretches.
#[derive(Debug, Clone, PartialEq)]
pub struct IdentificationSettings {
    /// The parameters to fit; all with a range in the file if empty.
    pub parameters: Vec<String>,
    /// Length of a window in seconds.
    pub window_s: f64,
}

/// A fitted parameter, in its unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Estimate {
    /// Its name.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Its value.
    pub value: f64,
    /// Its standard error, with windows as clusters; infinite for a parameter that the recording
    /// says nothing about, which keeps its value.
    pub error: f64,
    /// Whether the value is an end of the parameter's range.
    pub is_at_limit: bool,
}

/// How far an observation is from the fitted plant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Residual {
    /// The observation.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Root of the mean square.
    pub rms: f64,
}

/// How well an observation is predicted over the rows that were not fitted to, in its unit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Prediction {
    /// The observation.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// Steps ahead of the last row that the start was fitted to.
    pub steps: usize,
    /// Root of the mean squared error of the fitted plant, and of the reading that stays as it was.
    pub rms: [f64; 2],
}

/// The result of an identification.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PlantIdentification {
    /// The fitted parameters.
    pub parameters: Vec<Estimate>,
    /// Windows that were fitted, and rows in them.
    pub windows: usize,
    /// Rows of the windows.
    pub rows: usize,
    /// The residuals of each recorded observation over the fitted windows.
    pub residuals: Vec<Residual>,
    /// Why the result is not to be trusted: parameters of which only a combination is determined,
    /// one at the end of its range or below its error, an observation that the plant predicts worse
    /// than the reading that stays as it was.
    pub doubts: Vec<String>,
    /// Values of all parameters, in base units.
    #[serde(skip)]
    pub values: Vec<f64>,
}

/// Rows of a recording.
#[derive(Debug, Clone)]
struct Window {
    first: usize,
    rows: usize,
    /// The start from which searches begin: the best one for the values before this stage.
    start: Vec<f64>,
}

struct Problem<'r> {
    system: &'r System,
    recording: &'r PlantRecording,
    /// The numbers of the fitted parameters.
    fitted: Vec<usize>,
    values: Vec<f64>,
    /// Of each observation, by how much a residual is divided; the noise.
    noise: Vec<f64>,
    windows: Vec<Window>,
}

/// Fits parameters of a plant to a recording.
///
/// # Errors
/// `Invalid` for an unknown parameter or one without a range; `Data` for a recording with fewer
/// than four windows of consecutive rows, or residuals that are not finite. `Cancelled` if the
/// watch breaks it off.
pub fn identify(
    system: &System,
    values: &[f64],
    recording: &PlantRecording,
    settings: &IdentificationSettings,
    watch: &mut Watch<'_>,
) -> Result<PlantIdentification> {
    let rows = (settings.window_s / system.period_s())
        .round()
        .max(2.0 * FIRST_ROWS as f64) as usize;
    let kept = recording.len() - (recording.len() as f64 * HELD_OUT) as usize;
    let windows = windows(recording, system.period_s(), rows, 0..kept);
    if windows.len() < MIN_WINDOWS {
        return Err(too_short(
            recording,
            system.period_s(),
            rows,
            kept,
            windows.len(),
        ));
    }
    let fitted = fitted(system, &settings.parameters)?;
    let changes: Vec<f64> = recording
        .observations
        .iter()
        .map(|numbers| numbers.as_deref().map_or(1.0, change))
        .collect();
    let mut problem = Problem {
        system,
        recording,
        fitted,
        values: values.to_vec(),
        noise: changes.clone(),
        windows,
    };
    // How many evaluations a fit takes is known only when it ends; this many are typical.
    let (typical, mut done) = (2 * TYPICAL_STEPS * (problem.fitted.len() as u64 + 1), 0);
    let mut tick = |stage: &str| {
        done += 1;
        WorkProgress {
            stage,
            done,
            total: typical.max(done + 1),
        }
        .report(watch)
    };
    let mut best: Option<PlantIdentification> = None;
    for _ in 0..MAX_PASSES {
        // First all residuals alike, to find the noise; then outliers count less.
        tick("finding starts")?;
        problem.noise.clone_from(&changes);
        problem.find_starts(f64::INFINITY);
        problem.fit(f64::INFINITY, &mut || tick("fitting"))?;
        problem.noise = problem.deviations();
        problem.find_starts(OUTLIER);
        let found = problem.fit(OUTLIER, &mut || tick("fitting without outliers"))?;
        let report = problem.report(&found);
        let total = |report: &PlantIdentification| {
            problem
                .recorded()
                .iter()
                .zip(&report.residuals)
                .map(|(at, found)| found.rms / changes[*at])
                .sum::<f64>()
        };
        let is_better = best
            .as_ref()
            .is_none_or(|best| total(&report) < BETTER * total(best));
        // A few windows that are far off make the mean square much larger than the typical
        // residual: a minimum that is not the lowest, or outliers.
        let is_rough = problem
            .recorded()
            .iter()
            .zip(&report.residuals)
            .any(|(at, found)| {
                let unit = system.observations()[*at].unit.scale;
                found.rms * unit > ROUGH * problem.noise[*at]
            });
        if best.is_none() || is_better {
            best = Some(report);
        }
        if !(is_rough && is_better) {
            break;
        }
    }
    best.ok_or_else(|| Error::data("no fit was made"))
}

/// Why a recording has too few windows.
fn too_short(
    recording: &PlantRecording,
    period_s: f64,
    rows: usize,
    kept: usize,
    found: usize,
) -> Error {
    let (window_s, kept_s) = (rows as f64 * period_s, kept as f64 * period_s);
    let late = (1..kept)
        .filter(|row| !recording.is_on_time(*row, period_s))
        .collect::<Vec<_>>();
    Error::data(match late.first() {
        Some(row) if kept >= MIN_WINDOWS * rows => {
            let (count, step_ms, period_ms) =
                (late.len(), recording.elapsed_s[*row] * 1e3, period_s * 1e3);
            format!(
                "{count} of {kept} steps are not a period of {period_ms:.4} ms long, the first in line {} ({step_ms:.4} ms): {found} windows of {window_s:.2} s \
                 are without such a step, and {MIN_WINDOWS} are needed",
                row + 2
            )
        }
        _ => format!(
            "the recording is too short: {kept_s:.2} s of it are fitted to, and {MIN_WINDOWS} windows of {window_s:.2} s are needed; --window makes them shorter"
        ),
    })
}

/// The numbers of the parameters to fit.
fn fitted(system: &System, names: &[String]) -> Result<Vec<usize>> {
    let has_range = |number: &usize| {
        system.parameters()[*number]
            .range
            .iter()
            .all(|bound| bound.is_finite())
    };
    if names.is_empty() {
        let all: Vec<usize> = (0..system.parameters().len()).filter(has_range).collect();
        return if all.is_empty() {
            Err(Error::invalid(format!(
                "body {}: no parameter has a range to be fitted in",
                system.name()
            )))
        } else {
            Ok(all)
        };
    }
    let number = |name: &String| {
        let place = system
            .parameters()
            .iter()
            .position(|parameter| parameter.name == *name);
        let known = || {
            system
                .parameters()
                .iter()
                .map(|parameter| parameter.name.as_str())
                .collect::<Vec<_>>()
                .join(", ")
        };
        let number = place.ok_or_else(|| {
            Error::invalid(format!(
                "body {}: it has no parameter {name:?}; known: {}",
                system.name(),
                known()
            ))
        })?;
        let limited = has_range(&number).then_some(number);
        limited.ok_or_else(|| {
            Error::invalid(format!(
                "body {}: parameter {name} has no range; add `in LOW .. HIGH` to its line",
                system.name()
            ))
        })
    };
    names.iter().map(number).collect()
}

/// Consecutive stretches of rows on time; the last row of one is the first of the next.
fn windows(
    recording: &PlantRecording,
    period_s: f64,
    rows: usize,
    within: std::ops::Range<usize>,
) -> Vec<Window> {
    let (mut windows, mut first) = (Vec::new(), within.start);
    while first + rows <= within.end {
        match (first + 1..first + rows)
            .rev()
            .find(|row| !recording.is_on_time(*row, period_s))
        {
            Some(late) => first = late,
            None => {
                windows.push(Window {
                    first,
                    rows,
                    start: Vec::new(),
                });
                first += rows - 1;
            }
        }
    }
    windows
}

/// The typical change from row to row, to begin with; not 0.
fn change(numbers: &[f64]) -> f64 {
    let squares = numbers
        .windows(2)
        .map(|pair| (pair[1] - pair[0]).powi(2))
        .sum::<f64>();
    let change = (squares / numbers.len() as f64).sqrt();
    if change > 0.0 { change } else { 1.0 }
}

impl Problem<'_> {
    fn unknowns(&self) -> Vec<FitParameter> {
        let unknown = |number: &usize| {
            let [low, high] = self.system.parameters()[*number].range;
            FitParameter {
                start: self.values[*number],
                step: 1e-6 * (high - low),
                range: low..=high,
            }
        };
        self.fitted.iter().map(unknown).collect()
    }

    /// Fits the parameters from the present starts.
    fn fit(&mut self, outlier: f64, tick: &mut dyn FnMut() -> Result<()>) -> Result<Fit> {
        let found = fit(&self.unknowns(), |unknowns| {
            tick()?;
            Ok(self.residuals(unknowns, outlier))
        })?;
        self.fitted
            .iter()
            .zip(&found.values)
            .for_each(|(number, value)| self.values[*number] = *value);
        Ok(found)
    }

    fn with(&self, unknowns: &[f64]) -> Vec<f64> {
        let mut values = self.values.clone();
        self.fitted
            .iter()
            .zip(unknowns)
            .for_each(|(number, value)| values[*number] = *value);
        values
    }

    /// Searches the starts of all windows.
    fn find_starts(&mut self, outlier: f64) {
        let starts: Vec<Vec<f64>> = self
            .windows
            .par_iter()
            .map(|window| self.find_start(&self.values, window, outlier))
            .collect();
        self.windows
            .iter_mut()
            .zip(starts)
            .for_each(|(window, start)| window.start = start);
    }

    /// The residuals of each window from its best start, over the noise.
    fn residuals(&self, unknowns: &[f64], outlier: f64) -> Vec<Vec<f64>> {
        let values = self.with(unknowns);
        self.windows
            .par_iter()
            .map(|window| {
                self.fit_start(&values, window, outlier)
                    .1
                    .into_iter()
                    .map(|residual| huber(residual, outlier))
                    .collect()
            })
            .collect()
    }

    /// The noise of each observation: 1.5 times the median magnitude of its residuals.
    fn deviations(&self) -> Vec<f64> {
        let mut sizes: Vec<Vec<f64>> = vec![Vec::new(); self.noise.len()];
        for window in &self.windows {
            let (_, residuals) = self.fit_start(&self.values, window, f64::INFINITY);
            for (at, residual) in residuals.iter().enumerate() {
                let observation = self.recorded()[at % self.recorded().len()];
                sizes[observation].push(residual.abs() * self.noise[observation]);
            }
        }
        let median = |sizes: &mut Vec<f64>| {
            sizes.sort_unstable_by(f64::total_cmp);
            sizes.get(sizes.len() / 2).copied().unwrap_or(1.0)
        };
        sizes
            .iter_mut()
            .zip(&self.noise)
            .map(|(sizes, change)| (1.483 * median(sizes)).max(1e-9 * change))
            .collect()
    }

    /// The observations that have a column.
    fn recorded(&self) -> Vec<usize> {
        (0..self.recording.observations.len())
            .filter(|number| self.recording.observations[*number].is_some())
            .collect()
    }

    /// The residuals of the first rows of a window from a start, in the order of rows.
    fn run(&self, values: &[f64], window: &Window, start: &[f64], rows: usize) -> Vec<f64> {
        let mut state = start.to_vec();
        let calm = vec![0.0; self.system.noises().len()];
        let mut residuals = Vec::with_capacity(rows * self.recording.observations.len());
        for row in window.first..window.first + rows {
            if row > window.first {
                // Clipped to their limits, as the body clips them.
                let recorded = self.recording.inputs.iter().zip(self.system.inputs());
                let inputs: Vec<f64> = recorded
                    .map(|(numbers, input)| {
                        numbers[row - 1].clamp(
                            input.range[0] * input.unit.scale,
                            input.range[1] * input.unit.scale,
                        )
                    })
                    .collect();
                self.system.step(values, &mut state, &inputs, &calm);
            }
            let shown = self.system.observe(values, &state);
            for ((numbers, shown), (observation, noise)) in self
                .recording
                .observations
                .iter()
                .zip(shown)
                .zip(self.system.observations().iter().zip(&self.noise))
            {
                let Some(numbers) = numbers else { continue };
                let off = shown * observation.unit.scale - numbers[row];
                let off = if observation.wraps {
                    off - std::f64::consts::TAU * (off / std::f64::consts::TAU).round()
                } else {
                    off
                };
                residuals.push(off / noise);
            }
        }
        residuals
    }

    /// The start that explains a window best, and the residuals from there.
    fn fit_start(&self, values: &[f64], window: &Window, outlier: f64) -> (Vec<f64>, Vec<f64>) {
        let mut start = window.start.clone();
        let residuals = self.gauss_newton(values, window, &mut start, window.rows, outlier);
        (start, residuals)
    }

    /// A start to search from. Near an unstable equilibrium a tiny difference decides where a plant
    /// goes, so the first rows are fitted first, then more.
    fn find_start(&self, values: &[f64], window: &Window, outlier: f64) -> Vec<f64> {
        let mut start = self.first_guess(values, window);
        let mut rows = FIRST_ROWS;
        while rows < window.rows {
            self.gauss_newton(values, window, &mut start, rows, outlier);
            rows *= 2;
        }
        self.gauss_newton(values, window, &mut start, window.rows, outlier);
        start
    }

    /// Observed states as they are read, their rates from two readings, the others as they start.
    fn first_guess(&self, values: &[f64], window: &Window) -> Vec<f64> {
        let mut start = self.system.start(values, || 0.5);
        let readings = self
            .system
            .observed_states()
            .into_iter()
            .zip(&self.recording.observations)
            .zip(self.system.observations());
        for ((state, numbers), observation) in readings {
            let (Some(state), Some(numbers)) = (state, numbers) else {
                continue;
            };
            start[state] = numbers[window.first];
            if let Some(rate) = self.system.rate_state(state) {
                let off = numbers[window.first + 1] - numbers[window.first];
                let off = if observation.wraps {
                    off - std::f64::consts::TAU * (off / std::f64::consts::TAU).round()
                } else {
                    off
                };
                start[rate] = off / self.system.period_s();
            }
        }
        start
    }

    /// Gauss-Newton on the first rows of a window, each step halved until it improves the fit.
    fn gauss_newton(
        &self,
        values: &[f64],
        window: &Window,
        start: &mut Vec<f64>,
        rows: usize,
        outlier: f64,
    ) -> Vec<f64> {
        const HALVINGS: i32 = 6;
        let states = start.len();
        let sum = |residuals: &[f64]| {
            residuals
                .iter()
                .map(|residual| huber(*residual, outlier).powi(2))
                .sum::<f64>()
        };
        let mut here = self.run(values, window, start, rows);
        for _ in 0..START_STEPS {
            let slopes: Vec<Vec<f64>> = (0..states)
                .map(|state| {
                    let step = 1e-6 * start[state].abs().max(1.0);
                    let mut moved = start.clone();
                    moved[state] += step;
                    self.run(values, window, &moved, rows)
                        .iter()
                        .zip(&here)
                        .map(|(there, here)| (there - here) / step)
                        .collect()
                })
                .collect();
            let (mut hessian, mut gradient) = (vec![0.0; states * states], vec![0.0; states]);
            for (at, residual) in here.iter().enumerate() {
                // An outlier's weight is the slope of its Huber loss.
                let weight = (outlier / residual.abs().max(1e-300)).min(1.0);
                for i in 0..states {
                    gradient[i] += weight * slopes[i][at] * residual;
                    (0..states).for_each(|j| {
                        hessian[i * states + j] += weight * slopes[i][at] * slopes[j][at]
                    });
                }
            }
            // A state that these rows do not show stays as it is.
            let greatest = (0..states)
                .map(|i| hessian[i * states + i])
                .fold(0.0, f64::max);
            (0..states).for_each(|i| hessian[i * states + i] += 1e-12 * greatest + 1e-300);
            let Some(step) = solve(&hessian, &gradient) else {
                break;
            };
            let before = sum(&here);
            let better = (0..HALVINGS).find_map(|half| {
                let next: Vec<f64> = start
                    .iter()
                    .zip(&step)
                    .map(|(number, step)| number - 0.5f64.powi(half) * step)
                    .collect();
                let there = self.run(values, window, &next, rows);
                (sum(&there) < before).then_some((next, there))
            });
            let Some((next, there)) = better else { break };
            let gain = before - sum(&there);
            (*start, here) = (next, there);
            if gain < 1e-8 * before {
                break;
            }
        }
        here
    }

    /// What speaks against a result.
    fn doubts(&self, parameters: &[Estimate], together: &[usize]) -> Vec<String> {
        let names: Vec<&str> = together
            .iter()
            .map(|place| parameters[*place].name.as_str())
            .collect();
        let combined = (names.len() > 1).then(|| {
            format!("the recording determines only a combination of {}; --fit names those to be fitted, and the others keep their values", names.join(", "))
        });
        let limits = parameters
            .iter()
            .filter(|found| found.is_at_limit)
            .map(|found| format!("{} is at the end of its range", found.name));
        let vague = parameters
            .iter()
            .filter(|found| found.error.is_finite() && found.error > found.value.abs());
        let vague = vague.map(|found| {
            format!(
                "{} is {}, with an error of {}",
                found.name,
                short(found.value),
                short(found.error)
            )
        });
        // A recording whose end is too short for predictions is not at fault.
        let ahead = predictions(self.system, &self.values, self.recording, &[DOUBT_STEPS])
            .unwrap_or_default();
        let poor = ahead.iter().filter(|found| found.rms[0] > WORSE * found.rms[1] && found.rms[1] > 0.0).map(|found| {
            let Prediction { name, unit, steps, rms: [own, stays] } = found;
            format!("{name} is predicted {steps} steps ahead within {} {unit}, worse than by staying as it was ({} {unit})", short(*own), short(*stays))
        });
        combined
            .into_iter()
            .chain(limits)
            .chain(vague)
            .chain(poor)
            .collect()
    }

    fn report(
        &self,
        Fit {
            errors, together, ..
        }: &Fit,
    ) -> PlantIdentification {
        let estimate = |(number, error): (&usize, &f64)| {
            let parameter = &self.system.parameters()[*number];
            let (value, scale) = (self.values[*number], parameter.unit.scale);
            let is_at_limit = error.is_finite() && parameter.range.contains(&value);
            Estimate {
                name: parameter.name.clone(),
                unit: parameter.unit_text.clone(),
                value: value / scale,
                error: error / scale,
                is_at_limit,
            }
        };
        let mut squares = vec![(0.0, 0usize); self.noise.len()];
        let recorded = self.recorded();
        for window in &self.windows {
            let (_, residuals) = self.fit_start(&self.values, window, OUTLIER);
            for (at, residual) in residuals.iter().enumerate() {
                let observation = recorded[at % recorded.len()];
                squares[observation].0 += (residual * self.noise[observation]).powi(2);
                squares[observation].1 += 1;
            }
        }
        let residuals = recorded.iter().map(|number| {
            let (observation, (sum, count)) =
                (&self.system.observations()[*number], squares[*number]);
            Residual {
                name: observation.name.clone(),
                unit: observation.unit_text.clone(),
                rms: (sum / count as f64).sqrt() / observation.unit.scale,
            }
        });
        let parameters: Vec<Estimate> = self.fitted.iter().zip(errors).map(estimate).collect();
        PlantIdentification {
            doubts: self.doubts(&parameters, together),
            parameters,
            windows: self.windows.len(),
            rows: self.windows.iter().map(|window| window.rows).sum(),
            residuals: residuals.collect(),
            values: self.values.clone(),
        }
    }
}

/// Predicts the held-out rows of a recording: a start fitted to a second of rows, then steps ahead
/// without looking.
///
/// # Errors
/// `Data` for a recording whose held-out rows are too few.
pub fn predictions(
    system: &System,
    values: &[f64],
    recording: &PlantRecording,
    horizons: &[usize],
) -> Result<Vec<Prediction>> {
    let longest = horizons.iter().copied().max().unwrap_or(1);
    let seen = (0.5 / system.period_s())
        .round()
        .clamp(FIRST_ROWS as f64, 100.0) as usize;
    let from = recording.len() - (recording.len() as f64 * HELD_OUT) as usize;
    let windows = windows(
        recording,
        system.period_s(),
        seen + longest,
        from..recording.len(),
    );
    if windows.is_empty() {
        let needed = (seen + longest) as f64 * system.period_s();
        return Err(Error::data(format!(
            "the last 15 % of the recording have no stretch of {needed:.2} s without gaps"
        )));
    }
    let noise = recording
        .observations
        .iter()
        .map(|numbers| numbers.as_deref().map_or(1.0, change))
        .collect();
    let problem = Problem {
        system,
        recording,
        fitted: Vec::new(),
        values: values.to_vec(),
        noise,
        windows,
    };
    let recorded = problem.recorded();
    let mut squares = vec![[0.0; 2]; recorded.len() * horizons.len()];
    for window in &problem.windows {
        let start = problem.find_start(
            values,
            &Window {
                rows: seen,
                ..window.clone()
            },
            f64::INFINITY,
        );
        let off = problem.run(values, window, &start, window.rows);
        for (place, number) in recorded.iter().enumerate() {
            let numbers = recording.observations[*number]
                .as_deref()
                .expect("invariant: it is recorded");
            for (which, ahead) in horizons.iter().enumerate() {
                let row = seen - 1 + ahead;
                let stays = numbers[window.first + row] - numbers[window.first + seen - 1];
                let turn = std::f64::consts::TAU;
                let stays = if system.observations()[*number].wraps {
                    stays - turn * (stays / turn).round()
                } else {
                    stays
                };
                let sums = &mut squares[place * horizons.len() + which];
                sums[0] += (off[row * recorded.len() + place] * problem.noise[*number]).powi(2);
                sums[1] += stays.powi(2);
            }
        }
    }
    let mut found = Vec::new();
    for (place, number) in recorded.iter().enumerate() {
        let observation = &system.observations()[*number];
        for (which, steps) in horizons.iter().enumerate() {
            let rms = squares[place * horizons.len() + which]
                .map(|sum| (sum / problem.windows.len() as f64).sqrt() / observation.unit.scale);
            found.push(Prediction {
                name: observation.name.clone(),
                unit: observation.unit_text.clone(),
                steps: *steps,
                rms,
            });
        }
    }
    Ok(found)
}

/// A number with four digits.
fn short(number: f64) -> f64 {
    format!("{number:.3e}").parse().unwrap_or(number)
}

/// A residual whose square grows linearly beyond a bound (Huber).
fn huber(residual: f64, bound: f64) -> f64 {
    let size = residual.abs();
    if size <= bound {
        residual
    } else {
        (bound * (2.0 * size - bound)).sqrt().copysign(residual)
    }
}
