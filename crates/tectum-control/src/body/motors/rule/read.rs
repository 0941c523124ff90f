//! The tables of a contract that state the motors.

use tectum::Result;

use super::{Control, Gains, HeldRule, MAX_DECIMATION, MotorRule, MotorState, SafeRule, StartRule};
use crate::document::{Key, Section};

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
