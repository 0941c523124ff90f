//! What a contract or a scenario states of the motors.

use tectum::Result;

use crate::document::{Key, Section};

/// The maximum number of the body's periods in one of the policy's.
pub(super) const MAX_DECIMATION: u64 = 10_000;

/// The stage between an action and the motors of a body.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MotorRule {
    /// The joints that an action drives, in its order; the channels of the action without it.
    pub joints: Option<Vec<String>>,
    /// Observation channels of their positions; `joint_pos.JOINT` without it.
    pub position: Option<Vec<String>>,
    /// Observation channels of their velocities; `joint_vel.JOINT` without it.
    pub velocity: Option<Vec<String>>,
    /// Action channels of the body; those with the joints' names without it.
    pub actuators: Option<Vec<String>>,
    /// What the numbers of an action are, one for all joints or one for each.
    pub control: Vec<Control>,
    /// Gain of positions, N m/rad or N/m.
    pub stiffness: Vec<f64>,
    /// Gain of velocities, N m s/rad or N s/m.
    pub damping: Vec<f64>,
    /// Bounds of torques, ±N m or ±N.
    pub torque_limit: Vec<f64>,
    /// Bounds of target velocities, and how fast targets of positions move, rad/s or m/s.
    pub velocity_limit: Vec<f64>,
    /// Bounds of target positions, rad or m.
    pub position_limit: Vec<[f64; 2]>,
    /// The default pose, rad or m; the offset of the action without it.
    pub default: Vec<f64>,
    /// Periods of the body in one of the policy.
    pub decimation: Option<u64>,
    /// Cut-off frequency of the low-pass filter of targets, Hz.
    pub filter_hz: Option<f64>,
    /// Time constant of the actuators' torque, s.
    pub lag_s: Option<f64>,
    /// Joints that are held at stated targets.
    pub held: Vec<HeldRule>,
    /// What motors do before the policy runs.
    pub start: Vec<StartRule>,
    /// What motors do without an answer.
    pub safe: SafeRule,
}

/// What a number of an action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Control {
    /// A target position: torque = stiffness (target - position) - damping velocity.
    #[default]
    Position,
    /// A target velocity: torque = damping (target - velocity).
    Velocity,
    /// A torque or force.
    Torque,
}

impl Control {
    /// The names in contracts.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("position", Self::Position),
        ("velocity", Self::Velocity),
        ("torque", Self::Torque),
    ];
}

/// Joints that an action does not drive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeldRule {
    /// Their names.
    pub joints: Vec<String>,
    /// Target positions, rad or m.
    pub target: Vec<f64>,
    /// As above.
    pub stiffness: Vec<f64>,
    /// As above.
    pub damping: Vec<f64>,
}

/// What motors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MotorState {
    /// No torque.
    ZeroTorque,
    /// They move linearly to the default pose.
    Move,
    /// They hold the default pose.
    #[default]
    Hold,
    /// They damp: a stiffness of 0.
    Damping,
    /// They follow the policy.
    Run,
}

impl MotorState {
    /// The names in contracts of states without a policy.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("zero torque", Self::ZeroTorque),
        ("move", Self::Move),
        ("hold", Self::Hold),
        ("damping", Self::Damping),
    ];
}

/// A state before the policy runs.
#[derive(Debug, Clone, PartialEq)]
pub struct StartRule {
    /// What the motors do.
    pub state: MotorState,
    /// How long.
    pub seconds: f64,
    /// Gains in this state; those of the motors without it.
    pub gains: Gains,
}

/// Gains of a state, one for all joints or one for each; those of the motors where it has none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gains {
    /// Gain of positions.
    pub stiffness: Vec<f64>,
    /// Gain of velocities.
    pub damping: Vec<f64>,
}

/// What motors do without an answer, and after an emergency stop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SafeRule {
    /// To hold the default pose, unless another state is stated.
    pub state: MotorState,
    /// Gains in this state.
    pub gains: Gains,
}

fn list(section: &mut Section<'_, '_>, key: Key<'_>) -> Result<Vec<f64>> {
    Ok(section.numbers(key)?.unwrap_or_default())
}

impl Gains {
    fn read(section: &mut Section<'_, '_>) -> Result<Self> {
        Ok(Self {
            stiffness: list(
                section,
                Key::new("stiffness", "gain of positions").unit("N m/rad"),
            )?,
            damping: list(
                section,
                Key::new("damping", "gain of velocities").unit("N m s/rad"),
            )?,
        })
    }
}

impl MotorRule {
    /// Reads the section `[motors]`, if there is one.
    ///
    /// # Errors
    /// `Data` naming file and line.
    pub(crate) fn read(root: &mut Section<'_, '_>) -> Result<Option<Self>> {
        let is_stated = root.has("motors");
        let section = root.section(Key::new(
            "motors",
            "The stage between the action and the motors.",
        ))?;
        Self::read_section(section).map(|rule| is_stated.then_some(rule))
    }

    fn read_section(mut section: Section<'_, '_>) -> Result<Self> {
        let joints = section.texts(
            Key::new("joints", "the joints that the action drives, in its order")
                .or("the channels of the action"),
        )?;
        let position = section.texts(
            Key::new("position", "observation channels of their positions").or("`joint_pos.JOINT`"),
        )?;
        let velocity = section.texts(
            Key::new("velocity", "observation channels of their velocities")
                .or("`joint_vel.JOINT`"),
        )?;
        let actuators = section
            .texts(Key::new("actuators", "action channels of the body").or("the joints' names"))?;
        let gains = Gains::read(&mut section)?;
        let rule = Self {
            joints,
            position,
            velocity,
            actuators,
            control: Self::read_control(&mut section)?,
            stiffness: gains.stiffness,
            damping: gains.damping,
            torque_limit: list(
                &mut section,
                Key::new("torque_limit", "bounds of torques, ±").unit("N m"),
            )?,
            velocity_limit: list(
                &mut section,
                Key::new("velocity_limit", "bounds of target velocities, ±").unit("rad/s"),
            )?,
            position_limit: section
                .bounds(Key::new("position_limit", "bounds of target positions").unit("rad"))?
                .unwrap_or_default(),
            default: list(
                &mut section,
                Key::new("default", "the default pose")
                    .unit("rad")
                    .or("the offset of the action"),
            )?,
            decimation: section.whole(
                Key::new("decimation", "periods of the body in one of the policy")
                    .or("from the contract's period"),
                1..=MAX_DECIMATION,
            )?,
            filter_hz: section.positive(
                Key::new(
                    "filter",
                    "cut-off frequency of the targets' low-pass filter",
                )
                .unit("Hz"),
            )?,
            lag_s: section
                .positive(Key::new("lag", "time constant of the actuators' torque").unit("s"))?,
            held: section
                .sections(Key::new("held", "Joints that are held at stated targets."))?
                .into_iter()
                .map(HeldRule::read)
                .collect::<Result<_>>()?,
            start: section
                .sections(Key::new("start", "What motors do before the policy runs."))?
                .into_iter()
                .map(StartRule::read)
                .collect::<Result<_>>()?,
            safe: SafeRule::read(section.section(Key::new(
                "safe",
                "What motors do without an answer, and after an emergency stop.",
            ))?)?,
        };
        section.finish()?;
        Ok(rule)
    }

    fn read_control(section: &mut Section<'_, '_>) -> Result<Vec<Control>> {
        let key = Key::new("control", "what the numbers of the action are")
            .values("\"position\", \"velocity\", \"torque\", or a list with one for each joint")
            .or("\"position\"");
        if !section.is_list("control") {
            return Ok(section.choice(key, &Control::NAMES)?.into_iter().collect());
        }
        let names = section.texts(key)?.unwrap_or_default();
        names
            .iter()
            .map(|name| {
                Control::NAMES
                    .iter()
                    .find(|(known, _)| known == name)
                    .map(|(_, control)| *control)
                    .ok_or_else(|| {
                        section.fault(format_args!(
                            "control {name:?} is unknown; known: position, velocity, torque"
                        ))
                    })
            })
            .collect()
    }
}

impl HeldRule {
    fn read(mut section: Section<'_, '_>) -> Result<Self> {
        let joints = section
            .texts(Key::new("joints", "their names"))?
            .ok_or_else(|| section.missing("joints"))?;
        let target = section
            .numbers(Key::new("target", "target positions").unit("rad"))?
            .ok_or_else(|| section.missing("target"))?;
        let Gains { stiffness, damping } = Gains::read(&mut section)?;
        section.finish()?;
        Ok(Self {
            joints,
            target,
            stiffness,
            damping,
        })
    }
}

impl StartRule {
    fn read(mut section: Section<'_, '_>) -> Result<Self> {
        let state = section
            .choice(Key::new("state", "what the motors do"), &MotorState::NAMES)?
            .ok_or_else(|| section.missing("state"))?;
        let seconds = section
            .positive(Key::new("seconds", "how long").unit("s"))?
            .ok_or_else(|| section.missing("seconds"))?;
        let gains = Gains::read(&mut section)?;
        section.finish()?;
        Ok(Self {
            state,
            seconds,
            gains,
        })
    }
}

impl SafeRule {
    fn read(mut section: Section<'_, '_>) -> Result<Self> {
        let states = MotorState::NAMES.map(|(name, state)| (name, state));
        let state = section.choice_or(
            Key::new("state", "what the motors do"),
            &states,
            MotorState::Hold,
        )?;
        if state == MotorState::Move {
            return Err(section.fault("state \"move\" is for the start"));
        }
        let gains = Gains::read(&mut section)?;
        section.finish()?;
        Ok(Self { state, gains })
    }
}
