//! A recording of any robot as a body: `[body] recording = "walk.mcap"`.
//!
//! The scenario maps channels to fields of topics. In each period a channel has the value of the
//! latest message at or before the beginning of the period, an action that of the latest message
//! before its end. The body ignores actions.

mod keys;
mod mapping;
mod series;

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use serde::Serialize;
use tectum::{Error, InputFile, Result};
use toml::Table;

use crate::body::{
    ActionChannel, Body, BodySettings, BodySpec, Descriptor, Family, ObservationChannel,
    PlantSettings, Start, StatedChannel, Step, register_family, task,
};
use crate::document::{Key, Section};
use crate::recording::{RecordingContents, TraceTick};
use keys::Keys;
pub use keys::RecordingClock;
use series::Series;

/// How the names of these bodies begin.
const PREFIX: &str = "recording:";

static DESCRIPTOR: Descriptor =
    Descriptor::with_settings::<RecordedSettings>("recording", &[Start::Random], || {
        task::keep(0, 0.0, 1.0)
    });

/// Recordings as bodies.
static FAMILY: Family = Family {
    prefix: PREFIX,
    key: "recording",
    about: "MCAP file of any robot, whose messages replace the body",
    descriptor: &DESCRIPTOR,
    read_keys,
    example: EXAMPLE,
    heading: "A recording of a robot has keys of its own; [robots.md](robots.md#recordings-of-other-robots) explains them:",
};

const EXAMPLE: &str = r#"[body]
recording = "walk.mcap"
period = 0.02
clock = "log_time"
gap = 0.06
safe_action = [0.0]

[[body.observation]]
name = "hip"
topic = "/joint_states"
field = "position"
joint = "hip_joint"
unit = "rad"
low = -3.2
high = 3.2

[[body.action]]
name = "hip"
topic = "/commands"
field = "data[0]"
unit = "N m"
low = -2.0
high = 2.0
"#;

/// Makes recordings words of scenarios: the key `recording` of `[body]`. The readers of scenarios
/// call it.
pub(crate) fn register() -> Result<()> {
    register_family(&FAMILY)
}

/// A recording of a robot in periods.
#[derive(Debug)]
pub struct Recorded {
    spec: BodySpec,
    observation: Vec<Series>,
    action: Vec<Series>,
    /// The beginning of the first period.
    begin_ns: u64,
    report: RecordedReport,
}

/// How a recording became periods.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedReport {
    /// The file.
    pub file: String,
    /// Which time of a message is used.
    pub clock: RecordingClock,
    /// The period in seconds.
    pub period_s: f64,
    /// Periods.
    pub periods: u64,
    /// Periods with a value that is older than the limit of its channel.
    pub stale_periods: u64,
    /// What precedes the first period, whose channels do not all have a message.
    pub skipped_before_s: f64,
    /// What follows the last period, in which a channel has no more messages.
    pub skipped_after_s: f64,
    /// Where the values come from, for each channel of the observation and of the action.
    pub channels: Vec<ChannelReport>,
    /// All topics of the file.
    #[serde(flatten)]
    pub contents: RecordingContents,
}

/// Where the values of a channel come from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ChannelReport {
    /// `observation` or `action`.
    pub kind: &'static str,
    /// Its name.
    pub channel: String,
    /// The topic.
    pub topic: String,
    /// Messages that have a value for it.
    pub messages: u64,
    /// How long a value is used, in seconds.
    pub gap_limit_s: f64,
    /// Intervals between two messages that are longer.
    pub gaps: u64,
    /// The longest interval, in seconds.
    pub longest_s: f64,
}

impl Recorded {
    /// The recording that a body is; none of another body.
    pub fn of(body: &BodySettings) -> Option<&Arc<Self>> {
        let settings = body.custom.as_ref()?.as_any()?;
        let own = settings.downcast_ref::<RecordedSettings>();
        own.map(|settings| &settings.recorded)
    }

    /// How the recording became periods.
    pub fn report(&self) -> &RecordedReport {
        &self.report
    }

    /// The constants of the body.
    pub fn spec(&self) -> &BodySpec {
        &self.spec
    }

    /// The recorded actions, period by period, without observations. Periods with a value that is
    /// older than its limit are marked as held.
    pub fn actions(&self) -> Vec<TraceTick> {
        let period_ns = self.period_ns();
        (0..self.report.periods)
            .map(|tick| {
                let begin_ns = self.begin_ns.saturating_add(tick * period_ns);
                let action = self.action.iter();
                let action = action.map(|series| f64::from(series.number(tick)));
                let mut all = self.observation.iter().chain(&self.action);
                TraceTick {
                    tick,
                    time_ns: begin_ns,
                    action: action.collect(),
                    held: all.any(|series| series.is_stale(tick, begin_ns)),
                    ..TraceTick::default()
                }
            })
            .collect()
    }

    fn period_ns(&self) -> u64 {
        period_ns(self.spec.dt_s)
    }
}

/// A period as the loop counts it.
fn period_ns(period_s: f64) -> u64 {
    (period_s * 1e9).round() as u64
}

/// A recording as a body, in one of its periods.
pub struct RecordedBody {
    recorded: Arc<Recorded>,
    tick: u64,
    failure: Option<String>,
}

impl RecordedBody {
    /// The body in its first period.
    pub fn new(recorded: Arc<Recorded>) -> Self {
        Self {
            recorded,
            tick: 0,
            failure: None,
        }
    }
}

impl Body for RecordedBody {
    fn spec(&self) -> &BodySpec {
        &self.recorded.spec
    }

    /// The first period.
    fn reset(&mut self, _seed: u64) {
        (self.tick, self.failure) = (0, None);
    }

    fn observe(&self, observation: &mut [f32]) {
        let recorded = &self.recorded;
        let ranges = recorded.spec.ranges();
        for (series, range) in recorded.observation.iter().zip(ranges) {
            series.write(self.tick, &mut observation[range]);
        }
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let periods = self.recorded.report.periods;
        if self.tick >= periods {
            self.failure = Some(format!("the recording ends after {periods} periods"));
        }
        self.tick += 1;
        Step {
            refused: action.iter().any(|number| !number.is_finite()),
            ..Step::default()
        }
    }

    fn health(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some(reason) => Err(Error::data(format!(
                "body {}: {reason}",
                self.recorded.spec.name
            ))),
        }
    }
}

/// The keys of a recording in a scenario, and the recording.
#[derive(Debug, Clone, Serialize)]
pub struct RecordedSettings {
    #[serde(flatten)]
    keys: Keys,
    #[serde(skip)]
    recorded: Arc<Recorded>,
    #[serde(skip)]
    file: InputFile,
}

impl PlantSettings for RecordedSettings {
    fn read(section: &mut Section<'_, '_>) -> Result<Self> {
        let path = read_path(section)?;
        let keys = Keys::read(section)?;
        let name = format!("{PREFIX}{path}");
        let file = InputFile::of(Path::new(&path))?;
        let recorded = mapping::read(Path::new(&path), &name, &keys)
            .map_err(|error| error.at(format_args!("body {name}")))?;
        Ok(Self {
            keys,
            recorded: Arc::new(recorded),
            file,
        })
    }

    fn make(&self, _start: Start) -> Result<Box<dyn Body>> {
        Ok(Box::new(RecordedBody::new(Arc::clone(&self.recorded))))
    }

    fn has_default_task(&self) -> bool {
        false
    }

    fn input_files(&self) -> Vec<InputFile> {
        vec![self.file.clone()]
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// The file that `recording` or `name` states.
fn read_path(section: &mut Section<'_, '_>) -> Result<String> {
    let key = Key::new(FAMILY.key, FAMILY.about).or("none");
    let value = match section.string(key)? {
        Some(value) => value.value,
        None => section.required("name")?.value,
    };
    Ok(value.strip_prefix(PREFIX).unwrap_or(value).to_owned())
}

/// Reads all keys, for the reference of scenarios.
fn read_keys(section: &mut Section<'_, '_>) -> Result<Table> {
    read_path(section)?;
    Keys::read(section)?;
    Ok(Table::new())
}

/// What a scenario states of a channel, and what the recording adds.
fn completed(stated: &StatedChannel, series: &Series) -> StatedChannel {
    let [low, high] = series.range(stated).map(f64::from);
    StatedChannel {
        unit: Some(stated.unit.clone().unwrap_or_else(|| "1".to_owned())),
        low: Some(low),
        high: Some(high),
        ..stated.clone()
    }
}

fn observation_channel(stated: &StatedChannel, series: &Series) -> ObservationChannel {
    let channel = completed(stated, series).observation();
    match series.shape() {
        None => channel,
        Some((shape, element)) => channel.array(shape, element),
    }
}

fn action_channel(stated: &StatedChannel, series: &Series) -> ActionChannel {
    completed(stated, series).action()
}
