//! Input and output of a twin of the recorded rig: it reads the last rows and predicts the next
//! row.
//!
//! At row k, with commands known up to row k + 1 (which acts before that row's sample), for each of
//! the last rows: position of the cart (that of row k; of earlier rows the distance from it),
//! recorded velocity, sine and cosine of the angle, its change from the row before; then the
//! commands from row k + 1 back; then how much longer than 40 ms the step is. The outputs are the
//! changes of the cart's position and of the recorded velocity, and the difference between the
//! angle's next change and its last.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use tectum::{Error, Result};

use super::fit::{Physics, Samples};
use crate::body::rig::RigParameters;
use crate::rig_csv::{DEAD_ZONE_DEG, RigRecording, wrapped_deg};

/// Numbers that are predicted: position of the cart, velocity of the pole, its angle.
pub const CHANNELS: usize = 3;
/// Their names with their units.
pub const CHANNEL_NAMES: [(&str, &str); CHANNELS] = [
    ("la_position", "in"),
    ("pend_velocity", "deg/s"),
    ("pend_position", "deg"),
];
/// The command with its unit.
pub const COMMAND: (&str, &str) = ("cmd_volts", "V");
/// The maximum number of rows that are read.
pub const MAX_LAGS: usize = 16;
/// Numbers read of each row.
const ROW_NUMBERS: usize = 5;
/// Divisors of the numbers: inches, degrees per second, degrees in a step, volts, seconds.
const SCALES: [f64; 5] = [4.0, 500.0, 40.0, 5.0, 0.04];
/// The first four of them, as kernels use them.
pub const CHANNEL_SCALES: [f32; 4] = [
    SCALES[0] as f32,
    SCALES[1] as f32,
    SCALES[2] as f32,
    SCALES[3] as f32,
];
/// Rows of a block of time.
const BLOCK: usize = 500;
/// One block in this many is held out from the fit, for early stopping.
const BLOCKS_PER_HELD_OUT: usize = 8;

/// How many rows are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SequenceLayout {
    /// Rows, including the present one: 1 to 16.
    pub lags: usize,
}

/// Rows so far, the last is the present one; commands and steps have one more row.
#[derive(Debug, Clone)]
pub struct RowHistory {
    /// Position of the cart, inches.
    pub position: Vec<f64>,
    /// Recorded velocity of the pole, degrees per second.
    pub velocity: Vec<f64>,
    /// Angle of the pole, degrees.
    pub angle: Vec<f64>,
    /// Commands, volts.
    pub command: Vec<f64>,
    /// Time since the row before, seconds.
    pub seconds: Vec<f64>,
}

/// A part of the recording, by the rows that its samples may touch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataSplit {
    /// The part that is fitted to.
    Train,
    /// Blocks within it for early stopping.
    Validation,
    /// The end, which was not used for any choice.
    Test,
}

impl SequenceLayout {
    /// Checks the number.
    ///
    /// # Errors
    /// `Invalid` for 0 or more than 16.
    pub fn check(self) -> Result<()> {
        match self.lags {
            1..=MAX_LAGS => Ok(()),
            lags => Err(Error::invalid(format!(
                "twin: {lags} rows; needs 1 to {MAX_LAGS}"
            ))),
        }
    }

    /// Numbers that the network reads.
    pub fn features(self) -> usize {
        self.lags * ROW_NUMBERS + self.lags + 2
    }

    /// Rows that a sample touches before the next row: one more than are read, for the first
    /// change.
    pub fn rows(self) -> usize {
        self.lags + 1
    }

    /// Appends the network's input.
    ///
    /// # Panics
    /// If the past is shorter than [`SequenceLayout::rows`].
    pub fn encode(self, past: &RowHistory, features: &mut Vec<f32>) {
        let now = past.angle.len() - 1;
        let [inches, speed, turn, volts, seconds] = SCALES;
        for row in (0..self.lags).map(|back| now - back) {
            let position = if row == now {
                past.position[row]
            } else {
                past.position[row] - past.position[now]
            };
            let (sine, cosine) = past.angle[row].to_radians().sin_cos();
            let change = wrapped_deg(past.angle[row] - past.angle[row - 1]);
            features.extend(
                [
                    position / inches,
                    past.velocity[row] / speed,
                    sine,
                    cosine,
                    change / turn,
                ]
                .map(|number| number as f32),
            );
        }
        features.extend((0..=self.lags).map(|back| (past.command[now + 1 - back] / volts) as f32));
        features.push((past.seconds[now + 1] / seconds - 1.0) as f32);
    }

    /// The next row according to a prediction.
    pub fn next(self, past: &RowHistory, predicted: [f64; CHANNELS]) -> [f64; CHANNELS] {
        let now = past.angle.len() - 1;
        let last = wrapped_deg(past.angle[now] - past.angle[now - 1]);
        [
            past.position[now] + predicted[0],
            past.velocity[now] + predicted[1],
            wrapped_deg(past.angle[now] + last + predicted[2]),
        ]
    }

    /// The rows k of a part of the recording whose sample, from row k − lags to k + `ahead`,
    /// touches no sensor jump and no reading of the dead zone.
    pub fn rows_of(
        self,
        recording: &RigRecording,
        part: DataSplit,
        test_start: usize,
        ahead: usize,
    ) -> Vec<usize> {
        let is_trusted = |row: usize| {
            recording.angle_is_valid[row] && recording.pend_position_deg[row] != DEAD_ZONE_DEG
        };
        let touches = |row: usize| row - self.lags..row + ahead + 1;
        let is_of = |row: usize| match part {
            _ if row >= test_start => part == DataSplit::Test,
            DataSplit::Test => false,
            part => {
                (row / BLOCK % BLOCKS_PER_HELD_OUT == BLOCKS_PER_HELD_OUT - 1)
                    == (part == DataSplit::Validation)
            }
        };
        let rows = self.lags..recording.len().saturating_sub(ahead);
        rows.filter(|row| touches(*row).all(|row| is_trusted(row) && is_of(row)))
            .collect()
    }
}

impl RowHistory {
    /// The rows of a recording up to a given row, as many as a layout needs.
    pub fn of(recording: &RigRecording, layout: SequenceLayout, row: usize) -> Self {
        let rows = row - layout.lags..row + 1;
        let known = rows.start..row + 2;
        Self {
            position: recording.la_position_in[rows.clone()].to_vec(),
            velocity: recording.pend_velocity_deg_per_s[rows.clone()].to_vec(),
            angle: recording.pend_position_deg[rows].to_vec(),
            command: recording.cmd_volts[known.clone()].to_vec(),
            seconds: recording.elapsed_ms[known]
                .iter()
                .map(|ms| ms / 1000.0)
                .collect(),
        }
    }

    /// Appends a row, and the known values of the row after it.
    pub fn push(&mut self, row: [f64; CHANNELS], command: f64, seconds: f64) {
        let columns = [
            &mut self.position,
            &mut self.velocity,
            &mut self.angle,
            &mut self.command,
            &mut self.seconds,
        ];
        for (column, number) in columns
            .into_iter()
            .zip(row.into_iter().chain([command, seconds]))
        {
            column.rotate_left(1);
            column
                .last_mut()
                .into_iter()
                .for_each(|last| *last = number);
        }
    }
}

/// The targets of each row: changes of position and velocity, and of the angle's change.
pub fn changes(recording: &RigRecording, rows: &[usize]) -> Vec<f64> {
    let angle = &recording.pend_position_deg;
    let one = |&row: &usize| {
        let [last, next] = [row - 1, row].map(|row| wrapped_deg(angle[row + 1] - angle[row]));
        let position = recording.la_position_in[row + 1] - recording.la_position_in[row];
        [
            position,
            recording.pend_velocity_deg_per_s[row + 1] - recording.pend_velocity_deg_per_s[row],
            wrapped_deg(next - last),
        ]
    };
    rows.iter().flat_map(one).collect()
}

/// Samples of some rows, changes minus `mean` divided by `deviation`.
pub fn samples(
    recording: &RigRecording,
    layout: SequenceLayout,
    rows: &[usize],
    mean: &[f32],
    deviation: &[f32],
) -> Samples {
    let mut features = Vec::with_capacity(rows.len() * layout.features());
    rows.iter()
        .for_each(|&row| layout.encode(&RowHistory::of(recording, layout, row), &mut features));
    let scaled = |(i, change): (usize, &f64)| {
        (*change as f32 - mean[i % CHANNELS]) / deviation[i % CHANNELS]
    };
    Samples {
        features,
        targets: changes(recording, rows)
            .iter()
            .enumerate()
            .map(scaled)
            .collect(),
        physics: None,
    }
}

/// The energy balance of some rows as an equation of the normalised outputs.
///
/// Only damping and the cart change E = ω²/2 + (g/l)·cos θ, in units of g/l: between the midpoints
/// of the steps before and after a row, ω̄·Δω − (g/l)·sin θ·Δθ = −c·ω̄²·Δt − (Δv/l)·cos θ·ω̄, v the
/// cart's velocity. ω̄ is the recorded one, so the equation is linear in the prediction, and exact
/// except for terms of the third order in a step.
pub fn energy_balance(
    recording: &RigRecording,
    rig: &RigParameters,
    rows: &[usize],
    mean: &[f32],
    deviation: &[f32],
) -> Physics {
    let (length, damping) = (rig.dynamics.length_m, rig.dynamics.pole_damping_per_s);
    let stiffness = rig.dynamics.gravity / length;
    let (mean, deviation) = (
        f64::from(mean[2]).to_radians(),
        f64::from(deviation[2]).to_radians(),
    );
    let mut physics = Physics::default();
    for &row in rows {
        let angle = |row: usize| recording.pend_position_deg[row];
        let [last, next] =
            [row - 1, row].map(|row| wrapped_deg(angle(row + 1) - angle(row)).to_radians());
        let seconds = (recording.elapsed_ms[row] + recording.elapsed_ms[row + 1]) / 2000.0;
        let speed = (last + next) / (2.0 * seconds);
        let (sine, cosine) = angle(row).to_radians().sin_cos();
        let cart = |row: usize| {
            let moved_m = (recording.la_position_in[row] - recording.la_position_in[row - 1])
                * crate::body::rig::M_PER_IN;
            moved_m / recording.elapsed_ms[row] * 1000.0
        };
        let work = -damping * speed * speed * seconds
            - (cart(row + 1) - cart(row)) / length * cosine * speed;
        // With a = next − last: ω̄·a/Δt − (g/l)·sin θ·(last + a/2) = work.
        let slope = (speed / seconds - 0.5 * stiffness * sine) / stiffness;
        let value = (work + stiffness * sine * last) / stiffness;
        physics
            .slopes
            .extend([0.0, 0.0, (slope * deviation) as f32]);
        physics.values.push((value - slope * mean) as f32);
    }
    physics
}

/// Mean and deviation of each channel's change.
pub fn statistics(changes: &[f64]) -> (Vec<f32>, Vec<f32>) {
    let count = (changes.len() / CHANNELS) as f64;
    let column = |channel: usize| changes.iter().skip(channel).step_by(CHANNELS);
    let of = |channel: usize| {
        let mean = column(channel).sum::<f64>() / count;
        let variance = column(channel).map(|x| (x - mean).powi(2)).sum::<f64>() / count;
        (mean as f32, variance.sqrt().max(1e-6) as f32)
    };
    (0..CHANNELS).map(of).unzip()
}

/// Where the last 15 % of the rows begin.
pub fn test_start(rows: usize) -> usize {
    rows * 85 / 100
}

/// The rows of a range as a separate recording.
pub fn part_of(recording: &RigRecording, rows: Range<usize>) -> RigRecording {
    RigRecording {
        la_position_in: recording.la_position_in[rows.clone()].to_vec(),
        pend_velocity_deg_per_s: recording.pend_velocity_deg_per_s[rows.clone()].to_vec(),
        pend_position_deg: recording.pend_position_deg[rows.clone()].to_vec(),
        cmd_volts: recording.cmd_volts[rows.clone()].to_vec(),
        elapsed_ms: recording.elapsed_ms[rows.clone()].to_vec(),
        angle_is_valid: recording.angle_is_valid[rows].to_vec(),
        jumps: 0,
    }
}
