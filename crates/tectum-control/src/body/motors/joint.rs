//! A joint: its channels, gains and limits, and the torque towards a target.

use tectum::{Error, Result};
use tectum_equations::Unit;

use super::super::BodySpec;
use super::super::names::place_of;
use super::rule::{Control, Gains, MotorRule, MotorState};
use crate::nearest::suggestion;

/// The range of targets without a limit, in rad or m and per second.
const WIDE: f64 = 1000.0;

/// A joint of a driven body.
#[derive(Debug, Clone)]
pub(super) struct Joint {
    pub name: String,
    /// Whether an action drives it.
    pub is_driven: bool,
    pub control: Control,
    /// Its position when nothing drives it.
    pub default: f64,
    pub gains: JointGains,
    /// What a target can be.
    pub target_range: [f64; 2],
    torque_limit: f64,
    velocity_limit: f64,
    /// Its channels of the observation, with the factor to rad or m.
    position: (usize, f64),
    velocity: Option<(usize, f64)>,
    output: Output,
    is_linear: bool,
}

/// Gains of a joint.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct JointGains {
    pub stiffness: f64,
    pub damping: f64,
}

/// What a body's own controller or motor receives, by the index of its channel.
#[derive(Debug, Clone, Copy)]
enum Output {
    /// The torque.
    Torque(usize),
    /// The target position.
    Position { index: usize, per_unit: f64 },
    /// Targets, gains and torque, where the body has their channels.
    Targets([Option<usize>; 5]),
}

/// What a joint does in a period of the body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub state: MotorState,
    pub target: f64,
    pub gains: JointGains,
}

impl Joint {
    /// Where it rests: the default pose, or no velocity or torque.
    pub fn rest(&self) -> f64 {
        match self.control {
            Control::Position => self.default,
            Control::Velocity | Control::Torque => 0.0,
        }
    }

    /// The unit of its targets.
    pub fn unit(&self) -> &'static str {
        match (self.control, self.is_linear) {
            (Control::Position, false) => "rad",
            (Control::Position, true) => "m",
            (Control::Velocity, false) => "rad/s",
            (Control::Velocity, true) => "m/s",
            (Control::Torque, false) => "N m",
            (Control::Torque, true) => "N",
        }
    }

    /// Where it is, or where it rests if the reading is not finite.
    pub fn start(&self, observation: &[f32]) -> f64 {
        let position = self.position(observation);
        if position.is_finite() {
            position
        } else {
            self.default
        }
    }

    fn position(&self, observation: &[f32]) -> f64 {
        f64::from(observation[self.position.0]) * self.position.1
    }

    fn velocity(&self, observation: &[f32]) -> f64 {
        self.velocity.map_or(0.0, |(index, factor)| {
            f64::from(observation[index]) * factor
        })
    }

    /// A target within its range, and no further from the last one than the limit of velocities
    /// allows.
    pub fn limited(&self, target: f64, last: f64, dt_s: f64) -> f64 {
        let [low, high] = self.target_range;
        let target = target.clamp(low, high);
        if self.control != Control::Position || self.velocity_limit.is_infinite() {
            return target;
        }
        let reach = self.velocity_limit * dt_s;
        target.clamp(last - reach, last + reach)
    }

    /// The torque in a state, within its limit; NaN if a reading that it depends on is not finite.
    pub fn torque(&self, observation: &[f32], target: &Target) -> f64 {
        let (position, velocity) = (self.position(observation), self.velocity(observation));
        let JointGains { stiffness, damping } = target.gains;
        let torque = match (target.state, self.control) {
            (MotorState::ZeroTorque, _) => 0.0,
            (MotorState::Damping, _) => -damping * velocity,
            (_, Control::Position) => stiffness * (target.target - position) - damping * velocity,
            (_, Control::Velocity) => damping * (target.target - velocity),
            (_, Control::Torque) => target.target,
        };
        torque.clamp(-self.torque_limit, self.torque_limit)
    }

    /// Writes what the body receives.
    pub fn command(&self, action: &mut [f32], target: &Target, torque: f64) {
        match self.output {
            Output::Torque(index) => action[index] = torque as f32,
            Output::Position { index, per_unit } => {
                action[index] = (target.target * per_unit) as f32;
            }
            Output::Targets(channels) => {
                let JointGains { stiffness, damping } = target.gains;
                let is_free = target.state == MotorState::ZeroTorque;
                let holds = !is_free && target.state != MotorState::Damping;
                let moves = self.control == Control::Velocity && holds;
                let numbers = [
                    if self.control == Control::Position {
                        target.target
                    } else {
                        self.default
                    },
                    if moves { target.target } else { 0.0 },
                    if holds && self.control == Control::Position {
                        stiffness
                    } else {
                        0.0
                    },
                    if is_free || self.control == Control::Torque && holds {
                        0.0
                    } else {
                        damping
                    },
                    if holds && self.control == Control::Torque {
                        torque
                    } else {
                        0.0
                    },
                ];
                for (channel, number) in channels.into_iter().zip(numbers) {
                    if let Some(channel) = channel {
                        action[channel] = number as f32;
                    }
                }
            }
        }
    }
}

/// One number for all joints, or one for each.
fn each<T: Copy>(what: &str, numbers: &[T], count: usize, absent: T) -> Result<Vec<T>> {
    match numbers {
        [] => Ok(vec![absent; count]),
        [one] => Ok(vec![*one; count]),
        several if several.len() == count => Ok(several.to_vec()),
        several => Err(Error::invalid(format!(
            "motors: {what} has {} values for {count} joints",
            several.len()
        ))),
    }
}

/// Refuses negative numbers and those that are not finite.
fn check_gains(what: &str, numbers: &[f64]) -> Result<()> {
    match numbers
        .iter()
        .find(|number| !(number.is_finite() && **number >= 0.0))
    {
        None => Ok(()),
        Some(number) => Err(Error::invalid(format!(
            "motors: {what} {number}: finite numbers, 0 or above, are needed"
        ))),
    }
}

/// The gains of a state of the driven joints; others keep their own.
pub(super) fn gains_of(
    gains: &Gains,
    own: &[JointGains],
    driven: usize,
) -> Result<Vec<JointGains>> {
    check_gains("stiffness", &gains.stiffness)?;
    check_gains("damping", &gains.damping)?;
    let mut list = own.to_vec();
    let stiffness = each("stiffness", &gains.stiffness, driven, f64::NAN)?;
    let damping = each("damping", &gains.damping, driven, f64::NAN)?;
    for (own, (stiffness, damping)) in list.iter_mut().zip(stiffness.into_iter().zip(damping)) {
        if !stiffness.is_nan() {
            own.stiffness = stiffness;
        }
        if !damping.is_nan() {
            own.damping = damping;
        }
    }
    Ok(list)
}

/// The joints of a body: those that an action drives, in its order, then those that are held.
///
/// # Errors
/// `Invalid` naming a joint without a channel, or a list of another length.
pub(super) fn bind(rule: &MotorRule, body: &BodySpec) -> Result<Vec<Joint>> {
    let names = rule.joints.as_deref().unwrap_or_default();
    if names.is_empty() {
        return Err(Error::invalid(
            "motors: no joints; `joints` lists them, or `channels` of [action]",
        ));
    }
    let count = names.len();
    let control = each("control", &rule.control, count, Control::Position)?;
    let lists = |what: &str, list: &Option<Vec<String>>| match list {
        Some(list) if list.len() != count => Err(Error::invalid(format!(
            "motors: {what} has {} channels for {count} joints",
            list.len()
        ))),
        _ => Ok(()),
    };
    lists("position", &rule.position)?;
    lists("velocity", &rule.velocity)?;
    lists("actuators", &rule.actuators)?;
    for (what, numbers) in [
        ("stiffness", &rule.stiffness),
        ("damping", &rule.damping),
        ("torque_limit", &rule.torque_limit),
        ("velocity_limit", &rule.velocity_limit),
    ] {
        check_gains(what, numbers)?;
    }
    if let Some([low, high]) = rule
        .position_limit
        .iter()
        .find(|[low, high]| low.is_nan() || high.is_nan() || low > high)
    {
        return Err(Error::invalid(format!(
            "motors: position_limit {low} to {high} is no range"
        )));
    }
    let held = rule.held.iter().flat_map(|held| &held.target);
    if let Some(pose) = rule
        .default
        .iter()
        .chain(held)
        .find(|pose| !pose.is_finite())
    {
        return Err(Error::invalid(format!(
            "motors: a pose has the number {pose}: finite ones are needed"
        )));
    }
    if rule.stiffness.is_empty() && control.contains(&Control::Position) {
        let has_own = names.iter().enumerate().all(|(index, name)| {
            !matches!(
                Places::of(rule, name, Some(index)).output(body),
                Ok(Output::Torque(_) | Output::Targets(_))
            )
        });
        if !has_own {
            return Err(Error::invalid(
                "motors: position control needs `stiffness` and `damping`",
            ));
        }
    }
    let stiffness = each("stiffness", &rule.stiffness, count, 0.0)?;
    let damping = each("damping", &rule.damping, count, 0.0)?;
    let torque_limit = each("torque_limit", &rule.torque_limit, count, f64::INFINITY)?;
    let velocity_limit = each("velocity_limit", &rule.velocity_limit, count, f64::INFINITY)?;
    let position_limit = each("position_limit", &rule.position_limit, count, [-WIDE, WIDE])?;
    let default = each("default", &rule.default, count, 0.0)?;
    let mut joints = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let gains = JointGains {
            stiffness: stiffness[index],
            damping: damping[index],
        };
        let mut joint = Places::of(rule, name, Some(index)).joint(body, gains)?;
        joint.is_driven = true;
        joint.control = control[index];
        joint.default = default[index];
        joint.torque_limit = torque_limit[index];
        joint.velocity_limit = velocity_limit[index];
        joint.target_range = match control[index] {
            Control::Position => position_limit[index],
            Control::Velocity => {
                let limit = velocity_limit[index].min(WIDE);
                [-limit, limit]
            }
            Control::Torque => {
                let limit = torque_limit[index].min(WIDE);
                [-limit, limit]
            }
        };
        joints.push(joint);
    }
    for held in &rule.held {
        let count = held.joints.len();
        check_gains("stiffness of held joints", &held.stiffness)?;
        check_gains("damping of held joints", &held.damping)?;
        let target = each("target of held joints", &held.target, count, 0.0)?;
        let stiffness = each("stiffness of held joints", &held.stiffness, count, 0.0)?;
        let damping = each("damping of held joints", &held.damping, count, 0.0)?;
        for (index, name) in held.joints.iter().enumerate() {
            let gains = JointGains {
                stiffness: stiffness[index],
                damping: damping[index],
            };
            let mut joint = Places::of(rule, name, None).joint(body, gains)?;
            joint.default = target[index];
            joints.push(joint);
        }
    }
    for (index, joint) in joints.iter().enumerate() {
        if joints[..index].iter().any(|other| other.name == joint.name) {
            return Err(Error::invalid(format!(
                "motors: the joint {} is named twice",
                joint.name
            )));
        }
    }
    Ok(joints)
}

/// The channels of a joint, by name.
struct Places<'a> {
    name: &'a str,
    position: String,
    velocity: String,
    actuator: String,
    is_velocity_stated: bool,
}

impl<'a> Places<'a> {
    fn of(rule: &MotorRule, name: &'a str, index: Option<usize>) -> Self {
        let stated = |list: &Option<Vec<String>>| {
            index.and_then(|index| list.as_ref().map(|list| list[index].clone()))
        };
        Self {
            name,
            position: stated(&rule.position).unwrap_or_else(|| format!("joint_pos.{name}")),
            velocity: stated(&rule.velocity).unwrap_or_else(|| format!("joint_vel.{name}")),
            actuator: stated(&rule.actuators).unwrap_or_else(|| name.to_owned()),
            is_velocity_stated: index.is_some() && rule.velocity.is_some(),
        }
    }

    fn joint(&self, body: &BodySpec, gains: JointGains) -> Result<Joint> {
        let position = observed(body, self.name, &self.position)?;
        let is_linear = body.observation[position].unit == "m";
        let factor = |index: usize| {
            let unit = &body.observation[index].unit;
            Unit::parse(unit).map_or(1.0, |unit| unit.scale)
        };
        let velocity = match observed(body, self.name, &self.velocity) {
            Ok(index) => Some((index, factor(index))),
            Err(error) if self.is_velocity_stated || gains.damping > 0.0 => return Err(error),
            Err(_) => None,
        };
        Ok(Joint {
            name: self.name.to_owned(),
            is_driven: false,
            control: Control::Position,
            default: 0.0,
            gains,
            target_range: [-WIDE, WIDE],
            torque_limit: f64::INFINITY,
            velocity_limit: f64::INFINITY,
            position: (body.range(position).start, factor(position)),
            velocity: velocity.map(|(channel, factor)| (body.range(channel).start, factor)),
            output: self.output(body)?,
            is_linear,
        })
    }

    /// The channel of the actuator: by its unit, it receives a torque or a position.
    fn output(&self, body: &BodySpec) -> Result<Output> {
        let index = |name: &str| {
            let known = body.action.iter().map(|channel| channel.name.as_str());
            place_of(name, known)
        };
        let targets = ["position", "velocity", "stiffness", "damping", "torque"]
            .map(|part| index(&format!("{}.{part}", self.actuator)));
        if targets[0].is_some() && targets[2].is_some() {
            return Ok(Output::Targets(targets));
        }
        let Some(index) = index(&self.actuator) else {
            let known = || body.action.iter().map(|channel| channel.name.as_str());
            return Err(Error::invalid(format!(
                "motors: joint {}: the body {} has no action {:?}{}; it has {}",
                self.name,
                body.name,
                self.actuator,
                suggestion(&self.actuator, known()),
                known().collect::<Vec<_>>().join(", ")
            )));
        };
        let unit = body.action[index].unit.as_str();
        let length = Unit::parse("m").map(|unit| unit.dimension);
        Ok(match Unit::parse(unit) {
            Some(parsed) if matches!(unit, "rad" | "deg") || Some(parsed.dimension) == length => {
                Output::Position {
                    index,
                    per_unit: 1.0 / parsed.scale,
                }
            }
            _ => Output::Torque(index),
        })
    }
}

/// Whether a unit is one of a torque or a force.
pub fn is_torque(unit: &str) -> bool {
    let dimension = |unit: &str| Unit::parse(unit).map(|unit| unit.dimension);
    unit == "N m"
        || dimension(unit)
            .is_some_and(|own| ["N*m", "N"].iter().any(|unit| dimension(unit) == Some(own)))
}

fn observed(body: &BodySpec, joint: &str, name: &str) -> Result<usize> {
    let known = || body.observation.iter().map(|channel| channel.name.as_str());
    let place = place_of(name, known()).filter(|place| !body.observation[*place].is_array());
    place.ok_or_else(|| {
        Error::invalid(format!(
            "motors: joint {joint}: the body {} has no observation {name:?}{}",
            body.name,
            suggestion(name, known())
        ))
    })
}
