//! Which neurons a body's channels are written to and read from.

use std::ops::Range;

use tectum::{Error, Result};

use super::spec::{Coding, GenomeSpec};
use crate::body::BodySpec;
use tectum_spiking::genome::{Area, AreaRole, Genome};

/// Sensors and motors, checked against genome and body.
#[derive(Debug, Clone)]
pub(super) struct Wiring {
    sensors: Vec<Sensor>,
    motors: Vec<Motor>,
    /// For every channel of the action: the value of channels without a motor.
    safe_action: Vec<f32>,
}

#[derive(Debug, Clone)]
struct Sensor {
    channel: usize,
    scale: Scale,
    coding: Coding,
    column: Column,
    /// What a neuron of each voxel along z receives.
    amounts: Vec<f32>,
}

#[derive(Debug, Clone)]
struct Motor {
    channel: usize,
    scale: Scale,
    coding: Coding,
    column: Column,
    /// In the channel's unit.
    rest: f32,
    /// What it is in a message: the channel's name, and the area.
    name: String,
}

/// A channel's range.
#[derive(Debug, Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
}

/// The voxels at one x and y, whose neurons are consecutive along z.
#[derive(Debug, Clone, Copy)]
struct Column {
    first: u32,
    per_voxel: u32,
    depth: u32,
}

impl Wiring {
    /// Finds areas and columns.
    ///
    /// # Errors
    /// `Invalid`, naming the key, for an area that is missing, has another role or is too small,
    /// two sensors in one column, two motors of one channel.
    pub fn new(spec: &GenomeSpec, genome: &Genome, body: &BodySpec) -> Result<Self> {
        let mut sensors: Vec<Sensor> = Vec::new();
        for (index, given) in spec.sensors.iter().enumerate() {
            let key = format!("{}: brain.sensors[{index}]", given.line);
            let area = area(genome, &spec.genome, &given.area, AreaRole::Input)
                .map_err(|error| error.at(format!("{key}.area")))?;
            let column = Column::new(area, given.x, given.y).map_err(|error| error.at(&key))?;
            if let Some(before) = sensors
                .iter()
                .position(|sensor| sensor.column.first == column.first)
            {
                return Err(Error::invalid(format!(
                    "{key}: brain.sensors[{before}] writes to the same column"
                )));
            }
            let amount = |z: u32| {
                given.amount.map_or_else(
                    || area.threshold_at([given.x, given.y, z]),
                    |amount| amount as f32,
                )
            };
            let channel = &body.observation[given.channel];
            if channel.is_array() {
                return Err(Error::invalid(format!(
                    "{key}.channel: {} is an array; a column is written from one number",
                    channel.name
                )));
            }
            sensors.push(Sensor {
                channel: body.range(given.channel).start,
                scale: Scale {
                    low: f64::from(channel.low),
                    high: f64::from(channel.high),
                },
                coding: given.coding,
                amounts: (0..column.depth).map(amount).collect(),
                column,
            });
        }
        let mut motors: Vec<Motor> = Vec::new();
        for (index, given) in spec.motors.iter().enumerate() {
            let key = format!("{}: brain.motors[{index}]", given.line);
            let area = area(genome, &spec.genome, &given.area, AreaRole::Output)
                .map_err(|error| error.at(format!("{key}.area")))?;
            let column = Column::new(area, given.x, given.y).map_err(|error| error.at(&key))?;
            let channel = &body.action[given.channel];
            if let Some(before) = motors
                .iter()
                .position(|motor| motor.channel == given.channel)
            {
                return Err(Error::invalid(format!(
                    "{key}.channel: {} is moved by brain.motors[{before}]",
                    channel.name
                )));
            }
            motors.push(Motor {
                channel: given.channel,
                scale: Scale {
                    low: f64::from(channel.low),
                    high: f64::from(channel.high),
                },
                coding: given.coding,
                column,
                rest: given
                    .rest
                    .map_or(body.safe_action[given.channel], |rest| rest as f32),
                name: format!("motor {} (area {})", channel.name, area.id),
            });
        }
        Ok(Self {
            sensors,
            motors,
            safe_action: body.safe_action.clone(),
        })
    }

    /// The maximum that is injected into a neuron.
    pub fn max_injected(&self) -> f32 {
        self.sensors
            .iter()
            .flat_map(|sensor| &sensor.amounts)
            .fold(0.0, |most, amount| most.max(amount.abs()))
    }

    /// The maximum number of injections per tick.
    pub fn max_inputs(&self) -> usize {
        self.sensors
            .iter()
            .map(|sensor| sensor.column.neurons().len())
            .sum()
    }

    /// The neurons that motors read.
    pub fn watched(&self) -> Vec<Range<u32>> {
        self.motors
            .iter()
            .map(|motor| motor.column.neurons())
            .collect()
    }

    /// The injections of an observation; a number that is not finite has none.
    pub fn sense(&self, observation: &[f32], injected: &mut Vec<(u32, f32)>) {
        injected.clear();
        for sensor in &self.sensors {
            let number = f64::from(observation[sensor.channel]);
            if number.is_finite() {
                sensor
                    .coding
                    .encode(sensor.scale.share(number), sensor.column.depth, &mut |z| {
                        injected.extend(
                            sensor
                                .column
                                .voxel(z)
                                .map(|neuron| (neuron, sensor.amounts[z as usize])),
                        );
                    });
            }
        }
    }

    /// The names of the motors, for messages.
    pub fn motor_names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.motors.iter().map(|motor| motor.name.as_str())
    }

    /// The action that firing neurons encode. `fired` counts, for each motor, the calls in which a
    /// neuron of its column fired.
    pub fn act(&self, has_fired: impl Fn(u32) -> bool, action: &mut [f32], fired: &mut [u64]) {
        action.copy_from_slice(&self.safe_action);
        for (motor, fired) in self.motors.iter().zip(fired) {
            let fires = |z: u32| motor.column.voxel(z).any(&has_fired);
            let share = motor.coding.decode(motor.column.depth, fires);
            *fired += u64::from(share.is_some());
            action[motor.channel] = share.map_or(motor.rest, |share| motor.scale.at(share));
        }
    }
}

impl Scale {
    /// The position of a number in the range, from 0 to 1.
    fn share(self, number: f64) -> f64 {
        ((number - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    fn at(self, share: f64) -> f32 {
        (self.low + share * (self.high - self.low)) as f32
    }
}

impl Column {
    fn new(area: &Area, x: u32, y: u32) -> Result<Self> {
        for (key, place, side) in [("x", x, area.size[0]), ("y", y, area.size[1])] {
            if place >= side {
                return Err(Error::invalid(format!(
                    "{key} is {place}; area {} has {side} {} along it",
                    area.id,
                    if side == 1 { "voxel" } else { "voxels" }
                )));
            }
        }
        // One voxel along z could only signal that there is a number.
        if area.size[2] < 2 {
            return Err(Error::invalid(format!(
                "area: {} has 1 voxel along z; a coding needs 2 or more",
                area.id
            )));
        }
        Ok(Self {
            first: area.first_neuron([x, y, 0]),
            per_voxel: area.per_voxel,
            depth: area.size[2],
        })
    }

    fn voxel(self, z: u32) -> Range<u32> {
        let first = self.first + z * self.per_voxel;
        first..first + self.per_voxel
    }

    fn neurons(self) -> Range<u32> {
        self.first..self.first + self.depth * self.per_voxel
    }
}

/// The area of a name, if it has the role.
fn area<'a>(genome: &'a Genome, file: &str, name: &str, role: AreaRole) -> Result<&'a Area> {
    let word = if role == AreaRole::Input {
        "input"
    } else {
        "output"
    };
    let ids = || {
        let fitting = genome
            .areas()
            .iter()
            .filter(|area| area.role == role)
            .map(|area| area.id.to_string())
            .collect::<Vec<_>>();
        if fitting.is_empty() {
            format!("it has no {word} area")
        } else {
            format!("its {word} areas: {}", fitting.join(", "))
        }
    };
    match genome.area(name).map(|index| &genome.areas()[index]) {
        Some(area) if area.role == role => Ok(area),
        Some(area) => Err(Error::invalid(format!(
            "area {} of {file} is no {word} area; {}",
            area.id,
            ids()
        ))),
        None => Err(Error::invalid(format!(
            "{file} has no area {name:?}; {}",
            ids()
        ))),
    }
}
