//! A part of an input: where its numbers come from, and what is done with them.

use tectum::Result;

use super::history::{Fill, History};
use super::text;
use crate::document::{Key, Section};

/// The maximum number of an axis.
const MAX_AXIS: u64 = 7;

/// A part of an input.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Term {
    /// The input that it belongs to, if that is not the contract's.
    pub input: Option<String>,
    /// Where its numbers come from.
    pub source: TermSource,
    /// What is computed of the numbers.
    pub function: TermFunction,
    /// The order of a quaternion's numbers, for functions of rotations.
    pub quaternion: Option<QuaternionOrder>,
    /// The order in which the axes of an array enter, as in NumPy's `transpose`; their own without
    /// it.
    pub axes: Vec<usize>,
    /// The unit that the policy expects; the body's own without it.
    pub unit: Option<String>,
    /// Subtracted, one for all numbers, one for each, or of an array one for each place on its last
    /// axis, such as each colour; the same holds for bounds and scales.
    pub offset: Vec<f64>,
    /// Lower and upper bounds, one pair for all numbers or one for each; none without it.
    pub clip: Vec<[f64; 2]>,
    /// Multiplied, one for all numbers or one for each.
    pub scale: Vec<f64>,
    /// The order in which function, offset, clip and scale apply; [`TermStep::ORDER`] without it.
    pub apply: Option<Vec<TermStep>>,
    /// Which of the last values it holds.
    pub history: History,
    /// What precedes the first value of an episode; the input's rule without it.
    pub fill: Option<Fill>,
    /// Whether numbers are rounded to the nearest whole one, for inputs of integers.
    pub is_rounded: bool,
    /// Its place in the contract.
    pub place: String,
}

/// Where the numbers of a term come from.
#[derive(Debug, Clone, PartialEq)]
pub enum TermSource {
    /// Channels of the body's observation, commands, clocks, and outputs of the last inference, by
    /// name.
    Channels(Vec<String>),
    /// The action of the tick before; zeros at the start of an episode.
    PreviousAction(ActionStage),
    /// Fixed numbers.
    Constant(Vec<f64>),
    /// The number of the tick in its episode.
    Step,
    /// The output of another network of the policy, by its name.
    Network(String),
}

impl Default for TermSource {
    fn default() -> Self {
        Self::Constant(Vec::new())
    }
}

/// A stage of an action on its way from the network to the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ActionStage {
    /// As the network gave it.
    #[default]
    Raw,
    /// After the fade-in and the bounds, before the scale.
    Clipped,
    /// As it was sent to the body, in the unit of the action.
    Sent,
}

impl ActionStage {
    pub(super) const NAMES: [(&'static str, Self); 3] = [
        ("raw", Self::Raw),
        ("clipped", Self::Clipped),
        ("sent", Self::Sent),
    ];
}

/// What is computed of the numbers of a term. Rotations are those of unit quaternions q that turn
/// vectors of the body's frame into those of the world; R is the matrix of q.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TermFunction {
    /// The numbers themselves.
    #[default]
    Identity,
    /// The sine of each angle.
    Sin,
    /// The cosine of each angle.
    Cos,
    /// Sine and cosine of each angle, one after the other.
    SinCos,
    /// Each angle in [-π, π).
    Wrap,
    /// The Euclidean norm of all numbers.
    Norm,
    /// Rᵀ (0, 0, -1) of a quaternion: 4 numbers to 3.
    Gravity,
    /// Roll and pitch of a quaternion, in rad: 4 numbers to 2.
    RollPitch,
    /// Roll, pitch and yaw of a quaternion, in rad: 4 numbers to 3.
    Euler,
    /// Yaw of a quaternion, in rad: 4 numbers to 1.
    Heading,
    /// The first two columns of R, row by row: 4 numbers to 6.
    Rotation6d,
    /// R, row by row: 4 numbers to 9.
    RotationMatrix,
    /// The first two columns of R₁ᵀ R₂, row by row: 4 + 4 numbers to 6.
    RelativeRotation6d,
    /// Rᵀ (b - a) of a quaternion and the positions a and b: 4 + 3 + 3 numbers to 3.
    RelativePosition,
    /// Rᵀ v of a quaternion and a vector: 4 + 3 numbers to 3.
    RotateInverse,
}

impl TermFunction {
    pub(super) const NAMES: [(&'static str, Self); 15] = [
        ("identity", Self::Identity),
        ("sin", Self::Sin),
        ("cos", Self::Cos),
        ("sin_cos", Self::SinCos),
        ("wrap", Self::Wrap),
        ("norm", Self::Norm),
        ("gravity", Self::Gravity),
        ("roll_pitch", Self::RollPitch),
        ("euler", Self::Euler),
        ("heading", Self::Heading),
        ("rotation_6d", Self::Rotation6d),
        ("rotation_matrix", Self::RotationMatrix),
        ("relative_rotation_6d", Self::RelativeRotation6d),
        ("relative_position", Self::RelativePosition),
        ("rotate_inverse", Self::RotateInverse),
    ];

    /// The name in contracts.
    pub fn name(self) -> &'static str {
        text::name_of(&Self::NAMES, self)
    }

    /// Whether it takes angles, which are converted to radians.
    pub fn is_of_angles(self) -> bool {
        matches!(self, Self::Sin | Self::Cos | Self::SinCos | Self::Wrap)
    }

    /// Whether the first four numbers of each group are a quaternion.
    pub fn is_of_quaternions(self) -> bool {
        self.group().is_some()
    }

    /// How many numbers a rotation takes and gives; none for other functions.
    pub fn group(self) -> Option<(usize, usize)> {
        match self {
            Self::Identity | Self::Sin | Self::Cos | Self::SinCos | Self::Wrap | Self::Norm => None,
            Self::Gravity | Self::Euler => Some((4, 3)),
            Self::RollPitch => Some((4, 2)),
            Self::Heading => Some((4, 1)),
            Self::Rotation6d => Some((4, 6)),
            Self::RotationMatrix => Some((4, 9)),
            Self::RelativeRotation6d => Some((8, 6)),
            Self::RelativePosition => Some((10, 3)),
            Self::RotateInverse => Some((7, 3)),
        }
    }

    /// How many numbers it gives of `count`; none if it does not take as many.
    pub fn len(self, count: usize) -> Option<usize> {
        match (self, self.group()) {
            (Self::Norm, _) => Some(1),
            (Self::SinCos, _) => Some(2 * count),
            (_, None) => Some(count),
            (_, Some((takes, gives))) => {
                (count > 0 && count.is_multiple_of(takes)).then_some(count / takes * gives)
            }
        }
    }
}

/// The order of a quaternion's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QuaternionOrder {
    /// The real part first.
    Wxyz,
    /// The real part last.
    Xyzw,
}

impl QuaternionOrder {
    pub(super) const NAMES: [(&'static str, Self); 2] =
        [("wxyz", Self::Wxyz), ("xyzw", Self::Xyzw)];
}

/// A step of the way from a source to an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TermStep {
    /// The function.
    Function,
    /// The offset is subtracted.
    Offset,
    /// The bounds.
    Clip,
    /// The scale is multiplied.
    Scale,
}

impl TermStep {
    /// The steps in their usual order, as in Isaac Lab and its family.
    pub const ORDER: [Self; 4] = [Self::Function, Self::Offset, Self::Clip, Self::Scale];
    pub(super) const NAMES: [(&'static str, Self); 4] = [
        ("function", Self::Function),
        ("offset", Self::Offset),
        ("clip", Self::Clip),
        ("scale", Self::Scale),
    ];
}

impl Term {
    /// A term of channels as the body has them.
    pub fn of_channels(channels: Vec<String>, place: impl Into<String>) -> Self {
        Self {
            source: TermSource::Channels(channels),
            place: place.into(),
            ..Self::default()
        }
    }

    pub(super) fn read(mut section: Section<'_, '_>, place: String) -> Result<Self> {
        let source = Self::read_source(&mut section)?;
        let term = Self {
            input: text::name(&mut section, "input", "the input, if it is another one")?,
            source,
            function: section.choice_or(
                Key::new("function", "what is computed of the numbers"),
                &TermFunction::NAMES,
                TermFunction::Identity,
            )?,
            quaternion: section.choice(
                Key::new("quaternion", "the order of a quaternion's numbers"),
                &QuaternionOrder::NAMES,
            )?,
            axes: section
                .whole_list(
                    Key::new(
                        "axes",
                        "the order in which the axes of an array enter: [2, 0, 1] puts the colours of a picture first",
                    )
                    .or("the array's own"),
                    0..=MAX_AXIS,
                )?
                .unwrap_or_default()
                .into_iter()
                .map(|axis| axis as usize)
                .collect(),
            unit: text::name(
                &mut section,
                "unit",
                "the unit that the policy expects; the body's own without it",
            )?,
            offset: section
                .numbers(Key::new("offset", "subtracted").or(0))?
                .unwrap_or_default(),
            clip: section
                .bounds(Key::new("clip", "lower and upper bound"))?
                .unwrap_or_default(),
            scale: section
                .numbers(Key::new("scale", "multiplied").or(1))?
                .unwrap_or_default(),
            apply: Self::read_order(&mut section)?,
            history: History::read(&mut section, "history")?,
            fill: Fill::read(&mut section)?,
            is_rounded: section
                .flag(Key::new("round", "rounded to the nearest whole number").or(false))?
                .unwrap_or(false),
            place,
        };
        match (&term.quaternion, term.function.is_of_quaternions()) {
            (None, true) => {
                return Err(section.fault(format_args!(
                    "function {:?} needs the key quaternion, \"wxyz\" or \"xyzw\"",
                    term.function.name()
                )));
            }
            (Some(_), false) => {
                return Err(section.fault("quaternion has no effect without a function of one"));
            }
            _ => {}
        }
        section.finish()?;
        Ok(term)
    }

    fn read_source(section: &mut Section<'_, '_>) -> Result<TermSource> {
        let channels = section.texts(Key::new(
            "channels",
            "channels of the body, `command.NAME`, `clock.NAME`, `output.NAME`, in the order of the policy",
        ))?;
        let stage = section.choice(
            Key::new("as", "which stage of the previous action").or("\"raw\""),
            &ActionStage::NAMES,
        )?;
        let sources = [
            (
                "previous action",
                TermSource::PreviousAction(stage.unwrap_or_default()),
            ),
            ("step", TermSource::Step),
        ];
        let named = section
            .string(
                Key::new("source", "a source that is no channel")
                    .values("\"previous action\" or \"step\""),
            )?
            .map(|text| text.value.to_owned());
        let constant = section.numbers(Key::new("value", "fixed numbers"))?;
        let network = text::name(section, "network", "a network of [[network]]: its output")?;
        let count = [
            channels.is_some(),
            named.is_some(),
            constant.is_some(),
            network.is_some(),
        ]
        .into_iter()
        .filter(|is_stated| *is_stated)
        .count();
        if count != 1 {
            return Err(section.fault("needs one of the keys channels, source, value and network"));
        }
        let source = match (channels, named, constant, network) {
            (Some(channels), ..) => TermSource::Channels(channels),
            (_, Some(name), ..) => match sources.into_iter().find(|(known, _)| *known == name) {
                Some((_, source)) => source,
                None => {
                    return Err(section.fault(format_args!(
                        "source {name:?} is unknown; known: previous action, step"
                    )));
                }
            },
            (.., Some(network)) => TermSource::Network(network),
            (.., constant, None) => TermSource::Constant(constant.unwrap_or_default()),
        };
        if stage.is_some() && !matches!(source, TermSource::PreviousAction(_)) {
            return Err(section.fault("as is for the source \"previous action\""));
        }
        Ok(source)
    }

    /// The stated order of the steps, without those that the list leaves out.
    fn read_order(section: &mut Section<'_, '_>) -> Result<Option<Vec<TermStep>>> {
        let Some(names) = section.texts(
            Key::new(
                "apply",
                "the order of `function`, `offset`, `clip` and `scale`",
            )
            .or("[\"function\", \"offset\", \"clip\", \"scale\"]"),
        )?
        else {
            return Ok(None);
        };
        let mut steps = Vec::new();
        for name in &names {
            let step = TermStep::NAMES.iter().find(|(known, _)| known == name);
            match step {
                Some((_, step)) if !steps.contains(step) => steps.push(*step),
                Some(_) => return Err(section.fault(format_args!("apply names {name} twice"))),
                None => {
                    return Err(section.fault(format_args!(
                        "apply: {name:?} is unknown; known: function, offset, clip, scale"
                    )));
                }
            }
        }
        for (name, step) in TermStep::NAMES {
            if !steps.contains(&step) && section.has(name) {
                return Err(section.fault(format_args!("apply does not name {name}")));
            }
        }
        Ok(Some(steps))
    }

    /// The order in which the steps apply.
    pub fn order(&self) -> &[TermStep] {
        self.apply.as_deref().unwrap_or(&TermStep::ORDER)
    }
}
