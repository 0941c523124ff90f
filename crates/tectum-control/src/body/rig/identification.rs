//! Identifying the rig's constants from a recording.
//!
//! Two least-squares fits, each of few constants. **Servo**: from sample to sample the cart moves
//! like a saturating velocity servo with a dead band and a lag, under commands that act a little
//! before their row's sample; intervals near the stops are left out. **Pole**: in windows of 0.8 s
//! away from the stops and without a sensor jump the whole rig runs under the recorded commands
//! from a start that is fitted for each window, and its angles are compared with the recorded ones;
//! length and damping are common to all windows. Residuals of the angle beyond [`OUTLIER_DEG`] are
//! weighted by their root, so that sensor artefacts do not dominate.
//!
//! Errors are standard errors over clusters, of 4 s for the servo and of a window for the pole, so
//! they are valid for correlated residuals; they do not include what the model leaves out. See
//! `docs/decisions/0002-the-rig.md` and `docs/twin.md`.

use rayon::prelude::*;
use serde::Serialize;
use tectum::{Error, Result, Watch, WorkProgress};

use super::dynamics::Motion;
use super::{M_PER_IN, RigParameters};
use crate::least_squares::{Fit, FitParameter, fit, solve};
use crate::rig_csv::{DEAD_ZONE_DEG, RigRecording, wrapped_deg};

/// Rows of a cluster of the servo's residuals.
const SERVO_CLUSTER: usize = 100;
/// How far from the stops an interval must be, inches.
const STOP_CLEARANCE_IN: f64 = 0.3;
/// Rows of a window.
const WINDOW: usize = 21;
/// A residual of an angle beyond this is weighted less, degrees.
pub const OUTLIER_DEG: f64 = 5.0;
/// A window with a worse fit than this from its best start does not show a swinging pole, degrees
/// rms.
pub const MAX_WINDOW_RMS_DEG: f64 = 15.0;
/// Rows of a window to which its start is fitted first.
const FIRST_ROWS: usize = 5;
/// The longest time to the row before: the pole is integrated over it.
const MAX_ROW_MS: f64 = 1000.0;
/// Gauss-Newton steps for the start of a window.
const START_STEPS: usize = 20;
/// The minimum number of windows.
const MIN_WINDOWS: usize = 10;
/// A pole longer than this indicates wrong units, metres.
const MAX_LENGTH_M: f64 = 5.0;

/// An identified constant.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ParameterEstimate {
    /// Name, as in [`RigParameters`].
    pub name: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// The constant.
    pub value: f64,
    /// Its standard error; infinite (in JSON null) if the recording does not determine the
    /// constant, which then keeps its default.
    pub error: f64,
}

/// Simulates the `ahead` rows after a row under the recorded commands: position of the cart (in),
/// speed of the pole (deg/s) and its angle (deg). The start is the best fit to the last `rows`
/// rows; with fewer than 2 the speed is unknown.
pub fn forecast(
    parameters: &RigParameters,
    recording: &RigRecording,
    row: usize,
    rows: usize,
    ahead: usize,
) -> Vec<[f64; 3]> {
    let mut window = Window::new(recording, row + 1 - rows..row + 1);
    window.fit_start(parameters);
    let mut motion = window.motion();
    let step = |motion: Motion, row: usize| {
        let (seconds, lead) = (
            recording.elapsed_ms[row] / 1000.0,
            parameters.dt_s - parameters.delay_s,
        );
        let heard = parameters.advance(
            motion,
            recording.cmd_volts[row - 1],
            seconds - lead.min(seconds),
        );
        parameters.advance(heard, recording.cmd_volts[row], lead.min(seconds))
    };
    (row + 2 - rows..row + 1).for_each(|row| motion = step(motion, row));
    // The cart was observed; the pole's angle too, but its start was fitted to more than the last
    // reading.
    motion[0] = recording.la_position_in[row] * M_PER_IN;
    let mut following = Vec::with_capacity(ahead);
    for next in row + 1..row + 1 + ahead {
        motion = step(motion, next);
        following.push([
            motion[0] / M_PER_IN,
            motion[3].to_degrees(),
            wrapped_deg(motion[2].to_degrees()),
        ]);
    }
    following
}

/// The rig identified from a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Identification {
    /// The rig with the identified constants.
    pub parameters: RigParameters,
    /// The constants with their errors.
    pub estimates: Vec<ParameterEstimate>,
    /// Intervals that the servo was fitted to.
    pub intervals: usize,
    /// Fraction of the variance of the intervals' velocity that the servo explains.
    pub servo_r2: f64,
    /// Root of the mean squared error of that velocity, inches per second.
    pub servo_rms_in_per_s: f64,
    /// Windows that the pole was fitted to.
    pub windows: usize,
    /// Windows that were dropped, since no start fits them to [`MAX_WINDOW_RMS_DEG`] rms.
    pub dropped: usize,
    /// Root of the mean squared error of the angle, and the median of its size, degrees.
    pub pole_deg: [f64; 2],
}

/// Identifies the servo's and the pole's constants; what a recording does not show (masses, travel)
/// keeps its default.
///
/// # Errors
/// `Data` for a recording with too few rows away from the stops, too few windows without sensor
/// jumps, or an impossible pole; `Cancelled` if the watch, which sees each fit before it begins,
/// breaks it off.
pub fn identify(recording: &RigRecording, watch: &mut Watch<'_>) -> Result<Identification> {
    const FITS: u64 = 4;
    let mut fits = 0..FITS;
    let mut begin = |stage: &str| {
        WorkProgress {
            stage,
            done: fits.next().unwrap_or(FITS),
            total: FITS,
        }
        .report(watch)
    };
    begin("fitting the servo")?;
    let mut parameters = with_period_of(recording);
    let servo = Servo::new(recording, &parameters)?;
    // A cart may have either sign of gain, and the fit cannot move from one to the other in small
    // steps.
    let geared = |sign: f64| {
        fit(&servo_unknowns(&parameters, sign), |values| {
            Ok(servo.residuals(values))
        })
    };
    let one = geared(1.0)?;
    begin("fitting the servo with its sign reversed")?;
    let other = geared(-1.0)?;
    let found = if one.sum <= other.sum { one } else { other };
    set_servo(&mut parameters, &found.values);
    let (intervals, servo_r2, servo_rms) = servo.quality(&found);

    begin("fitting the pole")?;
    let mut pole = Pole::new(recording, &parameters)?;
    let first = fit(
        &pole_unknowns([
            parameters.dynamics.length_m,
            parameters.dynamics.pole_damping_per_s,
        ]),
        |values| Ok(pole.residuals(values)),
    )?;
    let dropped = pole.drop_unexplained(&first.values)?;
    begin("fitting the pole to explained windows")?;
    let swing = fit(
        &pole_unknowns([first.values[0], first.values[1]]),
        |values| Ok(pole.residuals(values)),
    )?;
    if swing.values[0] > MAX_LENGTH_M {
        let length = swing.values[0];
        let needed =
            "are pend_position in degrees, la_position in inches and elapsed in milliseconds?";
        return Err(Error::data(format!(
            "the pole that fits is {length:.1} m long, more than {MAX_LENGTH_M} m; {needed}"
        )));
    }
    [
        parameters.dynamics.length_m,
        parameters.dynamics.pole_damping_per_s,
    ] = [swing.values[0], swing.values[1]];
    let pole_deg = pole.quality(&swing.values);

    let names = [
        ("servo_gain", "in/s/V"),
        ("servo_dead_band", "V"),
        ("servo_limit", "in/s"),
        ("servo_lag", "s"),
        ("command_lead", "s"),
        ("length", "m"),
        ("pole_damping", "1/s"),
    ];
    let values = found
        .values
        .iter()
        .zip(&found.errors)
        .chain(swing.values.iter().zip(&swing.errors));
    let estimates = names
        .into_iter()
        .zip(values)
        .map(|((name, unit), (value, error))| ParameterEstimate {
            name,
            unit,
            value: *value,
            error: *error,
        });
    Ok(Identification {
        parameters,
        estimates: estimates.collect(),
        intervals,
        servo_r2,
        servo_rms_in_per_s: servo_rms,
        windows: pole.windows.len(),
        dropped,
        pole_deg,
    })
}

/// The default rig with the period of a recording: the median time between rows.
fn with_period_of(recording: &RigRecording) -> RigParameters {
    let mut elapsed = recording.elapsed_ms.clone();
    elapsed.sort_unstable_by(f64::total_cmp);
    let mut parameters = RigParameters::default();
    parameters.dt_s = elapsed
        .get(elapsed.len() / 2)
        .map_or(parameters.dt_s, |ms| ms / 1000.0);
    parameters.delay_s = parameters.delay_s.min(parameters.dt_s);
    parameters
}

/// Gain, dead band, limit, lag, and how long before its row's sample a command acts. `sign` is the
/// sign of the initial gain.
fn servo_unknowns(parameters: &RigParameters, sign: f64) -> [FitParameter; 5] {
    let p = parameters;
    [
        FitParameter {
            start: sign * p.servo_gain_in_per_s_per_v.abs(),
            step: 1e-4,
            range: f64::MIN..=f64::MAX,
        },
        FitParameter {
            start: p.servo_dead_band_v,
            step: 1e-5,
            range: 0.0..=f64::MAX,
        },
        FitParameter {
            start: p.servo_limit_in_per_s,
            step: 1e-4,
            range: 0.01..=f64::MAX,
        },
        FitParameter {
            start: p.servo_lag_s,
            step: 1e-6,
            range: 0.002..=f64::MAX,
        },
        FitParameter {
            start: p.dt_s - p.delay_s,
            step: 1e-6,
            range: 0.0..=p.dt_s,
        },
    ]
}

/// Length and damping.
fn pole_unknowns([length_m, damping_per_s]: [f64; 2]) -> [FitParameter; 2] {
    [
        FitParameter {
            start: length_m,
            step: 1e-4,
            range: 0.02..=f64::MAX,
        },
        FitParameter {
            start: damping_per_s,
            step: 1e-3,
            range: f64::MIN..=f64::MAX,
        },
    ]
}

fn set_servo(parameters: &mut RigParameters, values: &[f64]) {
    parameters.servo_gain_in_per_s_per_v = values[0];
    parameters.servo_dead_band_v = values[1];
    parameters.servo_limit_in_per_s = values[2];
    parameters.servo_lag_s = values[3];
    parameters.delay_s = parameters.dt_s - values[4];
}

/// The intervals between samples that a servo is compared with.
struct Servo {
    start: RigParameters,
    /// For each interval: its command, the next one, its length, how far the cart moved, whether it
    /// counts.
    intervals: Vec<(f64, f64, f64, f64, bool)>,
}

impl Servo {
    fn new(recording: &RigRecording, parameters: &RigParameters) -> Result<Self> {
        let position = &recording.la_position_in;
        let is_clear = |row: usize| position[row].abs() < parameters.travel_in - STOP_CLEARANCE_IN;
        let interval = |row: usize| {
            let volts = &recording.cmd_volts;
            let counts = row > 1 && is_clear(row - 1) && is_clear(row);
            (
                volts[row - 1],
                volts[row],
                recording.elapsed_ms[row] / 1000.0,
                position[row] - position[row - 1],
                counts,
            )
        };
        let servo = Self {
            start: *parameters,
            intervals: (1..recording.len()).map(interval).collect(),
        };
        match servo.intervals.iter().filter(|interval| interval.4).count() {
            count if count < SERVO_CLUSTER => Err(Error::data(format!(
                "the recording has {count} intervals clear of the stops; at least {SERVO_CLUSTER} are needed"
            ))),
            _ => Ok(servo),
        }
    }

    /// The recorded velocity minus the servo's mean velocity, in inches per second.
    fn residuals(&self, values: &[f64]) -> Vec<Vec<f64>> {
        let mut parameters = self.start;
        set_servo(&mut parameters, values);
        let lag = parameters.servo_lag_s;
        let (mut velocity, mut residuals) = (0.0, Vec::new());
        for (row, &(before, after, seconds, moved, counts)) in self.intervals.iter().enumerate() {
            if row % SERVO_CLUSTER == 0 {
                residuals.push(Vec::new());
            }
            let lead = values[4].min(seconds);
            let mut distance = 0.0;
            for (command, time) in [(before, seconds - lead), (after, lead)] {
                let target = parameters.commanded_velocity(command) / M_PER_IN;
                let rest = (velocity - target) * (-time / lag).exp();
                distance += target * time + lag * (velocity - target - rest);
                velocity = target + rest;
            }
            let residual = if counts {
                (distance - moved) / seconds
            } else {
                0.0
            };
            residuals
                .last_mut()
                .into_iter()
                .for_each(|cluster| cluster.push(residual));
        }
        residuals
    }

    /// Intervals that count, R², rms.
    fn quality(&self, fit: &Fit) -> (usize, f64, f64) {
        let velocities: Vec<f64> = self
            .intervals
            .iter()
            .filter(|interval| interval.4)
            .map(|(_, _, seconds, moved, _)| moved / seconds)
            .collect();
        let count = velocities.len() as f64;
        let mean = velocities.iter().sum::<f64>() / count;
        let variance = velocities.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        (
            velocities.len(),
            1.0 - fit.sum / variance,
            (fit.sum / count).sqrt(),
        )
    }
}

/// A part of the recording in which every angle is reliable.
#[derive(Clone)]
struct Window {
    angles_deg: Vec<f64>,
    /// Commands from the window's first row on.
    commands: Vec<f64>,
    seconds: Vec<f64>,
    /// Where the cart was, and its velocity before the first row (m/s).
    position_m: Vec<f64>,
    velocity: f64,
    /// Angle (rad) and speed (rad/s) that the window starts with.
    start: [f64; 2],
}

struct Pole {
    windows: Vec<Window>,
    servo: RigParameters,
}

impl Pole {
    fn new(recording: &RigRecording, servo: &RigParameters) -> Result<Self> {
        let is_trusted = |row: usize| {
            let is_seen =
                recording.angle_is_valid[row] && recording.pend_position_deg[row] != DEAD_ZONE_DEG;
            let follows = recording.elapsed_ms[row] <= MAX_ROW_MS;
            is_seen
                && follows
                && recording.la_position_in[row].abs() < servo.travel_in - STOP_CLEARANCE_IN
        };
        let (mut windows, mut start) = (Vec::new(), 1);
        while start + WINDOW <= recording.len() {
            match (start - 1..start + WINDOW)
                .rev()
                .find(|row| !is_trusted(*row))
            {
                Some(row) => start = row + 2,
                None => {
                    windows.push(Window::new(recording, start..start + WINDOW));
                    start += WINDOW - 1;
                }
            }
        }
        if windows.len() < MIN_WINDOWS {
            let count = windows.len();
            let needed = format!("at least {MIN_WINDOWS} are needed");
            return Err(Error::data(format!(
                "the recording has {count} stretches of {WINDOW} rows without sensor jumps or pauses; {needed}"
            )));
        }
        Ok(Self {
            windows,
            servo: *servo,
        })
    }

    /// The error of the rig's angles in each window from its best-fitting start, in degrees. Every
    /// search for a start restarts, so that the same values give the same residuals.
    fn residuals(&self, values: &[f64]) -> Vec<Vec<f64>> {
        let parameters = self.parameters(values);
        self.windows
            .par_iter()
            .map(|window| {
                window
                    .clone()
                    .fit_start(&parameters)
                    .into_iter()
                    .map(huber_residual)
                    .collect()
            })
            .collect()
    }

    /// Drops the windows that a first fit leaves unexplained; returns how many.
    fn drop_unexplained(&mut self, values: &[f64]) -> Result<usize> {
        let (before, parameters) = (self.windows.len(), self.parameters(values));
        self.windows.retain(|window| {
            let off = window.clone().fit_start(&parameters);
            rms(&off) <= MAX_WINDOW_RMS_DEG
        });
        match self.windows.len() {
            count if count < MIN_WINDOWS => Err(Error::data(format!(
                "a swinging pole explains {count} of {before} stretches; at least {MIN_WINDOWS} are needed"
            ))),
            count => Ok(before - count),
        }
    }

    fn parameters(&self, values: &[f64]) -> RigParameters {
        let mut parameters = self.servo;
        parameters.dynamics.length_m = values[0];
        parameters.dynamics.pole_damping_per_s = values[1];
        parameters
    }

    fn quality(&self, values: &[f64]) -> [f64; 2] {
        let parameters = self.parameters(values);
        let mut sizes: Vec<f64> = self
            .windows
            .iter()
            .flat_map(|window| window.clone().fit_start(&parameters))
            .map(f64::abs)
            .collect();
        sizes.sort_unstable_by(f64::total_cmp);
        [rms(&sizes), sizes[sizes.len() / 2]]
    }
}

fn rms(sizes: &[f64]) -> f64 {
    (sizes.iter().map(|size| size * size).sum::<f64>() / sizes.len() as f64).sqrt()
}

/// A residual whose square grows linearly beyond [`OUTLIER_DEG`] (Huber).
fn huber_residual(residual: f64) -> f64 {
    let size = residual.abs();
    if size <= OUTLIER_DEG {
        residual
    } else {
        (OUTLIER_DEG * (2.0 * size - OUTLIER_DEG))
            .sqrt()
            .copysign(residual)
    }
}

impl Window {
    fn new(recording: &RigRecording, rows: std::ops::Range<usize>) -> Self {
        let first = rows.start;
        let turned = wrapped_deg(
            recording.pend_position_deg[first + 1] - recording.pend_position_deg[first - 1],
        );
        let interval_s = (recording.elapsed_ms[first] + recording.elapsed_ms[first + 1]) / 1000.0;
        let cart_m_per_s = (recording.la_position_in[first] - recording.la_position_in[first - 1])
            / recording.elapsed_ms[first]
            * 1000.0
            * M_PER_IN;
        Self {
            angles_deg: recording.pend_position_deg[rows.clone()].to_vec(),
            commands: recording.cmd_volts[rows.clone()].to_vec(),
            seconds: recording.elapsed_ms[rows.clone()]
                .iter()
                .map(|ms| ms / 1000.0)
                .collect(),
            position_m: recording.la_position_in[rows]
                .iter()
                .map(|position| position * M_PER_IN)
                .collect(),
            velocity: cart_m_per_s,
            start: [
                recording.pend_position_deg[first].to_radians(),
                (turned / interval_s).to_radians(),
            ],
        }
    }

    fn motion(&self) -> Motion {
        [
            self.position_m[0],
            self.velocity,
            self.start[0],
            self.start[1],
        ]
    }

    /// The error of the angles of the first rows from a start, in degrees.
    fn run(&self, parameters: &RigParameters, [angle, speed]: [f64; 2], rows: usize) -> Vec<f64> {
        let mut motion: Motion = [self.position_m[0], self.velocity, angle, speed];
        let lead = parameters.dt_s - parameters.delay_s;
        let mut off = Vec::with_capacity(rows);
        off.push(wrapped_deg(angle.to_degrees() - self.angles_deg[0]));
        for row in 1..rows {
            let lead = lead.min(self.seconds[row]);
            // The cart is at its recorded position, so that an error of the servo does not drive it
            // into a stop.
            motion[0] = self.position_m[row - 1];
            motion = parameters.advance(motion, self.commands[row - 1], self.seconds[row] - lead);
            motion = parameters.advance(motion, self.commands[row], lead);
            off.push(wrapped_deg(motion[2].to_degrees() - self.angles_deg[row]));
        }
        off
    }

    /// Moves the start to the minimum of the Huber loss, and returns the angle errors from there.
    ///
    /// Near upright a tiny difference decides to which side a pole falls, so the whole window has
    /// many minima: its first rows are fitted first, then more.
    fn fit_start(&mut self, parameters: &RigParameters) -> Vec<f64> {
        let rows = self.angles_deg.len();
        for first in (FIRST_ROWS..rows).step_by(FIRST_ROWS) {
            self.gauss_newton(parameters, first);
        }
        self.gauss_newton(parameters, rows)
    }

    /// Gauss-Newton on the first rows, each step halved until it improves the fit.
    fn gauss_newton(&mut self, parameters: &RigParameters, rows: usize) -> Vec<f64> {
        const STEP: f64 = 1e-6;
        const HALVINGS: i32 = 6;
        let sum = |off: &[f64]| off.iter().map(|r| huber_residual(*r).powi(2)).sum::<f64>();
        let mut off = self.run(parameters, self.start, rows);
        for _ in 0..START_STEPS {
            let moved = [
                [self.start[0] + STEP, self.start[1]],
                [self.start[0], self.start[1] + STEP],
            ]
            .map(|start| self.run(parameters, start, rows));
            let (mut hessian, mut gradient) = ([0.0; 4], [0.0; 2]);
            for (at, here) in off.iter().enumerate() {
                // An outlier's weight is the slope of its Huber loss.
                let weight = (OUTLIER_DEG / here.abs().max(OUTLIER_DEG)).min(1.0);
                let slope: [f64; 2] =
                    std::array::from_fn(|i| wrapped_deg(moved[i][at] - here) / STEP);
                for i in 0..2 {
                    gradient[i] += weight * slope[i] * here;
                    (0..2).for_each(|j| hessian[2 * i + j] += weight * slope[i] * slope[j]);
                }
            }
            let Some(step) = solve(&hessian, &gradient) else {
                break;
            };
            let before = sum(&off);
            let tried = (0..HALVINGS).map(|half| {
                let part = 0.5f64.powi(half);
                let start = [
                    self.start[0] - part * step[0],
                    self.start[1] - part * step[1],
                ];
                (start, self.run(parameters, start, rows))
            });
            let Some((start, there)) = tried.into_iter().find(|(_, there)| sum(there) < before)
            else {
                break;
            };
            let gain = before - sum(&there);
            (self.start, off) = (start, there);
            if gain < 1e-10 * before {
                break;
            }
        }
        off
    }
}

#[cfg(test)]
mod tests {
    use super::{Identification, identify};
    use crate::body::rig::RigParameters;
    use crate::body::rig::simulated;

    fn value(found: &Identification, name: &str) -> (f64, f64) {
        let estimate = found
            .estimates
            .iter()
            .find(|estimate| estimate.name == name)
            .expect("named");
        (estimate.value, estimate.error)
    }

    #[test]
    fn the_constants_of_a_simulated_rig_are_found_within_their_errors() {
        let mut parameters = RigParameters {
            servo_gain_in_per_s_per_v: -3.7,
            servo_dead_band_v: 0.2,
            servo_limit_in_per_s: 9.0,
            delay_s: 0.022,
            ..RigParameters::default()
        };
        (
            parameters.dynamics.length_m,
            parameters.dynamics.pole_damping_per_s,
        ) = (0.22, 0.5);
        let found = identify(
            &simulated(parameters, 1500, 0.5),
            &mut tectum::WorkProgress::ignore,
        )
        .expect("enough rows");
        let expected = [
            ("servo_gain", -3.7, 0.02),
            ("servo_dead_band", 0.2, 0.005),
            ("servo_limit", 9.0, 0.05),
            ("command_lead", 0.018, 3e-4),
            ("length", 0.22, 2e-3),
            ("pole_damping", 0.5, 0.06),
        ];
        for (name, wanted, tolerance) in expected {
            let (value, error) = value(&found, name);
            assert!(
                (value - wanted).abs() < tolerance,
                "{name} is {value} ± {error}, made with {wanted}"
            );
        }
        let (length, error) = value(&found, "length");
        assert!(
            (length - 0.22).abs() < 4.0 * error && error < 2e-3,
            "{length} ± {error}"
        );
        assert!(
            found.servo_r2 > 0.999 && found.pole_deg[0] < 1.0 && found.windows > 50,
            "{found:?}"
        );
    }

    #[test]
    fn defect_21_a_cart_geared_the_other_way_is_identified() {
        let recording = simulated(RigParameters::default(), 500, 0.2);
        let mut reversed = recording.clone();
        reversed
            .cmd_volts
            .iter_mut()
            .for_each(|volts| *volts = -*volts);
        let [one, other] = [&recording, &reversed].map(|recording| {
            identify(recording, &mut tectum::WorkProgress::ignore).expect("enough rows")
        });
        assert!(
            (value(&one, "servo_gain").0 + value(&other, "servo_gain").0).abs() < 1e-3,
            "{one:?} {other:?}"
        );
        assert!((value(&one, "length").0 - value(&other, "length").0).abs() < 1e-3);
        // A position with the opposite sign convention fits no pole well; the result is an answer
        // or an error, not a panic.
        let mut mirrored = simulated(RigParameters::default(), 160, 0.2);
        mirrored
            .la_position_in
            .iter_mut()
            .for_each(|position| *position = -*position);
        if let Ok(found) = identify(&mirrored, &mut tectum::WorkProgress::ignore) {
            assert!(
                found.parameters.servo_limit_in_per_s > 0.0
                    && found.pole_deg[0] > 2.0 * one.pole_deg[0],
                "{found:?}"
            );
        }
    }

    #[test]
    fn defect_21_a_constant_that_the_recording_does_not_show_keeps_its_default() {
        // Commands at the limit for the whole recording: neither gain nor dead band has an effect.
        let mut recording = simulated(
            RigParameters {
                servo_limit_in_per_s: 1.0,
                ..RigParameters::default()
            },
            1500,
            0.2,
        );
        recording
            .cmd_volts
            .iter_mut()
            .for_each(|volts| *volts = 0.0);
        recording
            .la_position_in
            .iter_mut()
            .for_each(|position| *position = 0.0);
        let found = identify(&recording, &mut tectum::WorkProgress::ignore).expect("enough rows");
        let lead = RigParameters::default().dt_s - RigParameters::default().delay_s;
        assert_eq!(value(&found, "command_lead"), (lead, f64::INFINITY));
    }

    #[test]
    fn a_recording_of_another_period_is_identified() {
        let parameters = RigParameters {
            dt_s: 0.02,
            delay_s: 0.008,
            ..RigParameters::default()
        };
        let mut recording = simulated(parameters, 3000, 0.2);
        recording
            .elapsed_ms
            .iter_mut()
            .for_each(|elapsed| *elapsed = 20.0);
        let found = identify(&recording, &mut tectum::WorkProgress::ignore).expect("enough rows");
        assert!(
            (value(&found, "command_lead").0 - 0.012).abs() < 1e-3 && found.parameters.dt_s == 0.02,
            "{found:?}"
        );
    }

    /// A row after a pause of thirty years is no row to integrate to.
    #[test]
    fn a_pause_ends_a_window() {
        let mut recording = simulated(RigParameters::default(), 3000, 0.2);
        recording.elapsed_ms[1500] = 1e12;
        let found = identify(&recording, &mut tectum::WorkProgress::ignore).expect("enough rows");
        let length = RigParameters::default().dynamics.length_m;
        assert!(
            (value(&found, "length").0 / length - 1.0).abs() < 0.02,
            "{found:?}"
        );
    }

    #[test]
    fn a_recording_with_too_little_information_is_refused() {
        let short = simulated(RigParameters::default(), 50, 0.0);
        assert!(
            identify(&short, &mut tectum::WorkProgress::ignore)
                .expect_err("short")
                .to_string()
                .contains("intervals clear of the stops")
        );
        let mut jumpy = simulated(RigParameters::default(), 1000, 0.0);
        jumpy
            .angle_is_valid
            .iter_mut()
            .step_by(10)
            .for_each(|valid| *valid = false);
        assert!(
            identify(&jumpy, &mut tectum::WorkProgress::ignore)
                .expect_err("no stretch")
                .to_string()
                .contains("without sensor jumps")
        );
    }
}
