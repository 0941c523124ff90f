//! An ensemble of the recorded rig as the model of a controller.

use std::path::Path;

use tectum::{Error, Result};

use super::{Ensemble, Plant, TwinLayout};
use crate::body::BodySpec;
use tectum::snapshot::{Array, Snapshot};

/// Channels of such a body, in this order: what the networks predict, and the cart's velocity,
/// which follows from its positions.
const CHANNELS: [(&str, &str); 4] = [
    ("la_position", "in"),
    ("la_velocity", "in/s"),
    ("pend_velocity", "deg/s"),
    ("pend_position", "deg"),
];
/// Maximum relative difference between the body's period and the recording's.
const PERIOD_TOLERANCE: f64 = 0.05;
/// Reference for the length of a step, seconds.
const NOMINAL_PERIOD_S: f64 = 0.04;

/// A file of an ensemble, checked against a body.
#[derive(Debug, Clone)]
pub struct RecordedTwin {
    /// The networks.
    pub ensemble: Ensemble,
    /// The file, as given.
    pub path: String,
    /// The body's channels.
    pub layout: TwinLayout,
    /// The body's period, seconds.
    pub period_s: f64,
}

/// What a twin reads in addition to the present observation: the previous rows and commands, the
/// latest first.
#[derive(Debug, Clone)]
pub struct RowBuffer {
    lags: usize,
    period_s: f64,
    /// Position, velocity and angle; empty while they are not known.
    rows: Vec<[f32; 3]>,
    commands: Vec<f32>,
}

impl RecordedTwin {
    /// Reads a file and checks that it was trained on a plant with the body's channels, units and
    /// period.
    ///
    /// # Errors
    /// As [`Ensemble::load`]; `Invalid`, naming the file and what differs, for another plant.
    pub fn load(path: &str, body: &BodySpec) -> Result<Self> {
        let ensemble = Ensemble::load(Path::new(path))?;
        check(&ensemble.plant, body)
            .map_err(|fault| Error::invalid(format!("{path}: metadata tectum.twin: {fault}")))?;
        let layout = TwinLayout::of(body, true)?;
        Ok(Self {
            ensemble,
            path: path.to_owned(),
            layout,
            period_s: body.dt_s,
        })
    }

    /// The weights of all networks, one after the other.
    pub fn weights(&self) -> Vec<f32> {
        self.ensemble.members.concat()
    }

    /// Mean and deviation of the change of each of the body's channels.
    pub fn changes(&self) -> [Vec<f32>; 2] {
        [&self.ensemble.mean, &self.ensemble.deviation]
            .map(|of| vec![of[0], of[0] / self.period_s as f32, of[1], of[2]])
    }

    /// Its identity in snapshots: the file's hash.
    pub fn identity(&self) -> [u64; 4] {
        self.ensemble.file_hash.map_or([0; 4], |hash| hash.words())
    }

    /// An empty row buffer.
    pub fn rows(&self) -> RowBuffer {
        RowBuffer {
            lags: self.ensemble.layout.lags,
            period_s: self.period_s,
            rows: Vec::new(),
            commands: Vec::new(),
        }
    }
}

/// The difference between the plant that a twin was trained on and a body, if any.
fn check(plant: &Plant, body: &BodySpec) -> std::result::Result<(), String> {
    let name = &body.name;
    let found: Vec<(&str, &str)> = body
        .observation
        .iter()
        .map(|channel| (channel.name.as_str(), channel.unit.as_str()))
        .collect();
    for (channel, unit) in plant
        .channels
        .iter()
        .map(|(channel, unit)| (channel.as_str(), unit.as_str()))
        .chain(CHANNELS)
    {
        match found.iter().find(|(name, _)| *name == channel) {
            None => {
                return Err(format!(
                    "the twin is of a plant with the channel {channel}; body {name} has no such channel"
                ));
            }
            Some((_, other)) if *other != unit => {
                return Err(format!(
                    "the twin has {channel} in {unit}, body {name} in {other}"
                ));
            }
            Some(_) => {}
        }
    }
    if found != CHANNELS {
        return Err(format!(
            "the twin is of a plant with four channels, body {name} has {}",
            found.len()
        ));
    }
    let (command, unit) = &plant.command;
    if body.action.len() != 1 || body.action[0].name != *command || body.action[0].unit != *unit {
        return Err(format!(
            "the twin is commanded by {command} in {unit}, which body {name} is not"
        ));
    }
    if (plant.period_s - body.dt_s).abs() > PERIOD_TOLERANCE * body.dt_s {
        return Err(format!(
            "the twin has a period of {} s, body {name} one of {} s",
            plant.period_s, body.dt_s
        ));
    }
    Ok(())
}

impl RowBuffer {
    /// Writes what the networks read in addition to the channels and the last action. Unknown rows
    /// are filled as if cart and pole had moved with their present velocities, under the last
    /// action.
    ///
    /// # Shapes
    /// `older` \[4 lags\]: rows \[lags, 3\], commands \[lags − 1\], how much longer than 40 ms a
    /// period is.
    pub fn write(&self, observation: &[f32], last_action: f32, older: &mut [f32]) {
        let [position, cart, velocity, angle] =
            [0, 1, 2, 3].map(|channel| f64::from(observation[channel]));
        let (rows, rest) = older.split_at_mut(3 * self.lags);
        for (back, row) in rows.as_chunks_mut::<3>().0.iter_mut().enumerate() {
            let seconds = (back + 1) as f64 * self.period_s;
            let moved = || {
                [
                    position - seconds * cart,
                    velocity,
                    angle - seconds * velocity,
                ]
                .map(|number| number as f32)
            };
            *row = self.rows.get(back).copied().unwrap_or_else(moved);
        }
        let (commands, period) = rest.split_at_mut(self.lags - 1);
        commands.iter_mut().enumerate().for_each(|(back, command)| {
            *command = self.commands.get(back).copied().unwrap_or(last_action)
        });
        period[0] = (self.period_s / NOMINAL_PERIOD_S - 1.0) as f32;
    }

    /// Adds a tick: its observation, and the action before it.
    pub fn push(&mut self, observation: &[f32], last_action: f32) {
        self.rows
            .insert(0, [observation[0], observation[2], observation[3]]);
        self.rows.truncate(self.lags);
        self.commands.insert(0, last_action);
        self.commands.truncate(self.lags - 1);
    }

    /// The next observation does not continue the previous ones.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.commands.clear();
    }

    /// Saves the known rows and commands.
    pub fn save(&self, snapshot: &mut Snapshot) {
        snapshot.insert("rows", Array::F32(self.rows.as_flattened().to_vec()));
        snapshot.insert("commands", Array::F32(self.commands.clone()));
    }

    /// Restores what [`RowBuffer::save`] saved.
    ///
    /// # Errors
    /// `Data` naming the array that is missing or has a different length.
    pub fn load(&mut self, snapshot: &Snapshot) -> Result<()> {
        let count = snapshot
            .len_of("rows")
            .map_or(self.lags, |len| (len / 3).min(self.lags));
        let rows = snapshot.f32("rows", 3 * count)?;
        let commands = snapshot.f32("commands", count.min(self.lags - 1))?;
        self.rows = rows.as_chunks().0.to_vec();
        self.commands = commands.to_vec();
        Ok(())
    }
}
