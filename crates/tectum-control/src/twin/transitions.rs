//! Transitions that a twin learns from: simulated on a body, or recorded on the rig.

use tectum::{Error, Result};

use super::TwinLayout;
use crate::body::uniform::Uniform;
use crate::body::{ChannelKind, RandomizeState};
use crate::rig_csv::{DEAD_ZONE_DEG, RigRecording};

/// Transitions recorded after each scattered start.
const STEPS_PER_START: usize = 4;
/// Probability that the action of the previous step is held.
const HOLD_CHANCE: f64 = 0.25;

/// Network inputs and the changes of state that followed.
#[derive(Debug, Clone, Default)]
pub struct Transitions {
    /// [n, features]
    pub features: Vec<f32>,
    /// [n, channels], in the channels' own units; changes of angles are wrapped to the shorter
    /// direction.
    pub changes: Vec<f32>,
    /// Number of transitions.
    pub len: usize,
}

impl Transitions {
    /// Whether there are no transitions.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds the transition from an observation under `[previous action, action]`.
    ///
    /// # Shapes
    /// `before` and `after` \[channels\], in the channels' own units.
    pub fn push(&mut self, layout: &TwinLayout, before: &[f32], actions: [f32; 2], after: &[f32]) {
        layout.encode(before, actions, &mut self.features);
        let changes = layout.channels.iter().zip(before.iter().zip(after));
        self.changes.extend(
            changes.map(|(channel, (before, after))| match channel.kind {
                ChannelKind::Linear => after - before,
                ChannelKind::Angle { rad_per_unit } => {
                    let turn = (std::f64::consts::TAU / rad_per_unit) as f32;
                    let change = after - before;
                    change - turn * (change / turn).round()
                }
            }),
        );
        self.len += 1;
    }

    /// Simulates `len` transitions: scattered starts over the body's whole range, four steps each,
    /// half of the starts with small actions. One unrecorded step after each start makes delay
    /// lines consistent with the observation.
    pub fn simulate(
        body: &mut dyn RandomizeState,
        layout: &TwinLayout,
        len: usize,
        seed: u64,
    ) -> Transitions {
        let mut random = Uniform::new(seed);
        let mut transitions = Transitions::default();
        let (mut before, mut after) = (
            vec![0.0; layout.channels.len()],
            vec![0.0; layout.channels.len()],
        );
        let mut start = 0u64;
        while transitions.len < len {
            body.randomize_state(seed.wrapping_mul(0x9e37_79b9).wrapping_add(start));
            start += 1;
            let small = random.between(0.0, 1.0) < 0.5;
            let amplitude = if small { random.between(0.0, 0.6) } else { 1.0 };
            let mut last = layout.random_action(&mut random, amplitude);
            body.step(&[last]);
            for _ in 0..STEPS_PER_START.min(len - transitions.len) {
                let hold = random.between(0.0, 1.0) < HOLD_CHANCE;
                let action = if hold {
                    last
                } else {
                    layout.random_action(&mut random, amplitude)
                };
                body.observe(&mut before);
                body.step(&[action]);
                body.observe(&mut after);
                transitions.push(layout, &before, [last, action], &after);
                last = action;
            }
        }
        transitions
    }

    /// Takes the transitions of a rig recording, leaving out those that touch a sensor jump or its
    /// dead zone.
    ///
    /// A controller that sees row k acts on row k + 1, so row k's command is the previous action
    /// and row k + 1's the action. The recorded velocity is filtered and late; the angle's central
    /// difference replaces it, because the body that the twin will drive reports its true velocity.
    ///
    /// # Errors
    /// `Data` if the recording has fewer than 100 usable transitions.
    pub fn from_recording(recording: &RigRecording, layout: &TwinLayout) -> Result<Transitions> {
        let velocity = |row: usize| {
            let seconds = recording.elapsed_ms[row] / 1000.0;
            (recording.la_position_in[row] - recording.la_position_in[row - 1]) / seconds
        };
        let turn_deg = |row: usize| {
            let change = recording.pend_position_deg[row + 1] - recording.pend_position_deg[row];
            change - 360.0 * (change / 360.0).round()
        };
        let pole_velocity = |row: usize| {
            let seconds = (recording.elapsed_ms[row] + recording.elapsed_ms[row + 1]) / 1000.0;
            (turn_deg(row - 1) + turn_deg(row)) / seconds
        };
        let observation = |row: usize| {
            [
                recording.la_position_in[row],
                velocity(row),
                pole_velocity(row),
                recording.pend_position_deg[row],
            ]
            .map(|number| number as f32)
        };
        let mut transitions = Transitions::default();
        for row in 1..recording.len().saturating_sub(2) {
            let rows = row - 1..row + 3;
            let stuck = recording.pend_position_deg[rows.clone()].contains(&DEAD_ZONE_DEG);
            if !stuck && recording.angle_is_valid[rows].iter().all(|valid| *valid) {
                let actions = [recording.cmd_volts[row], recording.cmd_volts[row + 1]]
                    .map(|volts| volts as f32);
                transitions.push(layout, &observation(row), actions, &observation(row + 1));
            }
        }
        if transitions.len < 100 {
            return Err(Error::data(format!(
                "the recording holds {} usable transitions; at least 100 are needed",
                transitions.len
            )));
        }
        Ok(transitions)
    }

    /// Mean and standard deviation of each channel's change.
    pub fn change_statistics(&self, channels: usize) -> (Vec<f32>, Vec<f32>) {
        let count = self.len as f64;
        let column = |c: usize| {
            self.changes
                .iter()
                .skip(c)
                .step_by(channels)
                .map(|x| f64::from(*x))
        };
        let statistics = (0..channels).map(|c| {
            let mean = column(c).sum::<f64>() / count;
            let variance = column(c).map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
            (mean as f32, variance.sqrt().max(1e-6) as f32)
        });
        statistics.unzip()
    }
}
