//! A running field: its state whole on one device, or split over several.
//!
//! ```text
//! (similarity → recall →) sensors → sense → place → evolve → pool → act → motors
//! ```

use std::time::Instant;

use serde::Serialize;
use tectum::route::{self, Choice};
use tectum::{CodeObject, Device, Error, LaunchTime, PlanWork, Result, RunStats, Session};

use super::coefficients::Coefficients;
use super::draw::key;
use super::layout::*;
use super::options::Options;
use super::record::FieldConfig;
use super::shape::Shape;
use super::split::Split;
use super::state::State;
use super::waves::Waves;
use super::whole::Whole;

/// Timed cycles of a trial; the same number of untimed cycles precedes them.
const TRIAL_CYCLES: usize = 4;

/// The reason for the place of an imprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum ImprintSiteKind {
    /// The field already holds the pattern there.
    Existing,
    /// The neighbourhood resonates with the pattern.
    Resonant,
    /// It is most similar to the pattern.
    Correlated,
    /// No place is similar to the pattern; this is the emptiest.
    Emptiest,
}

impl ImprintSiteKind {
    /// All kinds, in the order of their codes.
    pub const ALL: [ImprintSiteKind; 4] = [
        Self::Existing,
        Self::Resonant,
        Self::Correlated,
        Self::Emptiest,
    ];
}

/// The library's work in a cycle; patterns and attractors by their indices.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recall {
    /// The pattern most similar to the current one; none in an empty library.
    pub nearest: Option<usize>,
    /// The patterns with the highest scores, in descending order.
    pub top: Vec<usize>,
    /// Index at which the current pattern was stored; none if it was familiar.
    pub stored: Option<usize>,
    /// Index at which it was stored as an attractor; none without a reward.
    pub attractor: Option<usize>,
    /// Patterns in the library after the cycle.
    pub kept: usize,
}

/// Results of a cycle, with the symbols of `docs/field.md`.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The motors, −1 to 1.
    pub motors: Vec<f32>,
    /// Internal drive, 0 to 1.
    pub drive: f32,
    /// Exploration, 0 to 1.
    pub explore: f32,
    /// J of the imprint.
    pub intensity: f32,
    /// The cell of the imprint.
    pub place: [usize; 3],
    /// The reason for this place.
    pub place_kind: ImprintSiteKind,
    /// Novelty, 0 to 1.
    pub novelty: f32,
    /// The weighted mean error of the prediction.
    pub error: f32,
    /// Information.
    pub information: f32,
    /// Confidence, 0 to 1.
    pub confidence: f32,
    /// Mean content after the cycle.
    pub mean: f32,
    /// Mean size of the content.
    pub size: f32,
    /// Variance of the content.
    pub variance: f32,
    /// Differences of mean content between the end slices along X, Y and Z.
    pub gradient: [f32; 3],
    /// The library's work; empty without a library.
    pub recall: Recall,
}

/// The placement of the field.
enum Placement {
    Whole(Whole),
    Split(Split),
}

/// A field with its state on one device or several.
pub struct Simulation {
    shape: Shape,
    options: Options,
    coefficients: Coefficients,
    seed: u64,
    cycle: u64,
    waves: Waves,
    placement: Placement,
    stats: RunStats,
    session: Session,
}

impl Placement {
    fn code(&self) -> &[CodeObject] {
        match self {
            Placement::Whole(whole) => whole.code(),
            Placement::Split(split) => split.code(),
        }
    }
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "Simulation({:?}, {:?}, cycle {})",
            self.shape, self.options, self.cycle
        )
    }
}

impl Simulation {
    /// Makes the standard field for a number of sensors and motors: 32³ cells of 64 channels with
    /// [`Options::new`].
    ///
    /// # Errors
    /// `Invalid` for a number of sensors outside 1 to 256 or of motors outside 1 to 16; as
    /// [`Simulation::new`].
    ///
    /// # Example
    /// ```
    /// use tectum::Device;
    /// use tectum_field::Simulation;
    /// let mut field = Simulation::standard(16, 4, &Device::open("cpu")?)?;
    /// assert_eq!(field.tick(&[0.1; 16], 0.0)?.motors.len(), 4);
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn standard(sensors: usize, motors: usize, device: &Device) -> Result<Self> {
        Self::new(
            Shape::new([32; 3], 64)?,
            Options::new(sensors, motors),
            device,
        )
    }

    /// Puts a field on a device, in the initial state of its seed.
    ///
    /// # Errors
    /// As [`Options::check`]; errors of compiling a plan.
    pub fn new(shape: Shape, options: Options, device: &Device) -> Result<Self> {
        Self::split(shape, options, std::slice::from_ref(device))
    }

    /// Opens the device with the minimum time of a trial of some cycles without input.
    ///
    /// # Errors
    /// As [`Options::check`] and [`route::open_by_trial`].
    pub fn choose_device(shape: Shape, options: Options) -> Result<(Device, Choice)> {
        options.check()?;
        route::open_by_trial("field", &mut |device| {
            let mut field = Self::new(shape, options, device)?;
            let sensors = vec![0.0; options.sensors];
            let mut cycles =
                || (0..TRIAL_CYCLES).try_for_each(|_| field.tick(&sensors, 0.0).map(drop));
            cycles()?;
            let start = Instant::now();
            cycles()?;
            Ok(start.elapsed())
        })
    }

    /// Splits a field along X over devices, which may repeat; the first one senses and acts. Each
    /// cycle the devices exchange adjacent planes. The elements equal those of a field on one
    /// device.
    ///
    /// # Errors
    /// As [`Simulation::new`]; `Invalid` without a device, and for more devices than sites along X.
    pub fn split(shape: Shape, options: Options, devices: &[Device]) -> Result<Self> {
        options.check()?;
        let waves = Waves::new(options.seed);
        let source = FieldConfig {
            shape: &shape,
            options: &options,
            waves: &waves,
        };
        let placement = match devices {
            [] => return Err(Error::invalid("field: on no device")),
            [device] => Placement::Whole(Whole::new(&source, device)?),
            devices => Placement::Split(Split::new(&source, devices)?),
        };
        let mut session = Session::of_shared_work(devices)?;
        session.uses_code(placement.code());
        let (coefficients, seed, stats) =
            (Coefficients::default(), options.seed, RunStats::default());
        let mut simulation = Self {
            shape,
            options,
            coefficients,
            seed,
            cycle: 0,
            waves,
            placement,
            stats,
            session,
        };
        let mut first = State::new(&shape, options.seed).with_patterns(&shape, options.patterns);
        first.field = options.storage.unpack(&options.storage.pack(&first.field));
        first.recompute_means(&shape);
        simulation.set_state(&first)?;
        Ok(simulation)
    }

    /// The size.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The options.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Cycles done.
    pub fn cycle(&self) -> u64 {
        self.cycle
    }

    /// The coefficients of the next cycle.
    pub fn coefficients(&self) -> &Coefficients {
        &self.coefficients
    }

    /// Changes the coefficients from the next cycle on.
    ///
    /// # Errors
    /// As [`Coefficients::check`]; nothing changes then.
    pub fn set_coefficients(&mut self, coefficients: Coefficients) -> Result<()> {
        coefficients.check()?;
        self.coefficients = coefficients;
        Ok(())
    }

    /// Runs a cycle: sensors in, motors out.
    ///
    /// # Shapes
    /// `sensors` \[sensors\], clamped to ±1; a NaN counts as 0. `reward` is clamped to ±1.
    ///
    /// # Errors
    /// `Invalid` for a wrong number of sensors; device errors.
    ///
    /// # Cost
    /// One upload, one submission, one download; no device memory is allocated and nothing is
    /// compiled. A split field has these for every device's planes, and two more of each for the
    /// first device.
    pub fn tick(&mut self, sensors: &[f32], reward: f32) -> Result<Report> {
        if sensors.len() != self.options.sensors {
            return Err(Error::invalid(format!(
                "field: {} sensors given, {} needed",
                sensors.len(),
                self.options.sensors
            )));
        }
        let words = live_words(
            self.cycle,
            self.seed,
            &self.waves,
            &self.coefficients,
            sensors,
            reward,
        );
        let cycle = self.cycle;
        let start = Instant::now();
        self.stats = match &mut self.placement {
            Placement::Whole(whole) => whole.tick(cycle, &words)?,
            Placement::Split(split) => split.tick(cycle, &words)?,
        };
        self.session
            .record(&self.stats, start.elapsed().as_nanos() as u64);
        self.cycle += 1;
        let told = match &self.placement {
            Placement::Whole(whole) => whole.report(cycle),
            Placement::Split(split) => split.report(),
        };
        Ok(read_report(told, self.options.motors))
    }

    /// The devices' counters of the last cycle.
    pub fn stats(&self) -> RunStats {
        self.stats
    }

    /// The work of a cycle on the devices.
    pub fn work(&self) -> &PlanWork {
        match &self.placement {
            Placement::Whole(whole) => whole.work(),
            Placement::Split(split) => split.work(),
        }
    }

    /// Runs one more cycle on the last sensors and returns the time of each launch; a split field
    /// runs no cycle and returns none.
    ///
    /// # Errors
    /// Device errors.
    pub fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        let Placement::Whole(whole) = &mut self.placement else {
            return Ok(Vec::new());
        };
        let times = whole.trace(self.cycle)?;
        self.cycle += 1;
        Ok(times)
    }

    /// The code objects that run: kernel and content hash.
    pub fn code(&self) -> &[CodeObject] {
        self.placement.code()
    }

    /// The work by device since the field was made, for a receipt: a run is a cycle.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Copies the state to the host.
    ///
    /// # Errors
    /// Device errors.
    pub fn state(&self) -> Result<State> {
        match &self.placement {
            Placement::Whole(whole) => whole.state(self.cycle, self.seed),
            Placement::Split(split) => split.state(self.cycle, self.seed),
        }
    }

    /// Restores a state; bf16 storage rounds each element to the nearest. Noise continues from the
    /// state's seed, the waves keep this field's directions.
    ///
    /// # Errors
    /// `Invalid`, and nothing changes, for an array of wrong length; device errors.
    pub fn set_state(&mut self, state: &State) -> Result<()> {
        state.check(&self.shape, self.options.patterns)?;
        match &mut self.placement {
            Placement::Whole(whole) => whole.set_state(state)?,
            Placement::Split(split) => split.set_state(state)?,
        }
        (self.cycle, self.seed) = (state.cycle, state.seed);
        Ok(())
    }
}

/// The words that the host writes before a cycle.
pub(super) fn live_words(
    cycle: u64,
    seed: u64,
    waves: &Waves,
    coefficients: &Coefficients,
    sensors: &[f32],
    reward: f32,
) -> Vec<u32> {
    let mut words = vec![0u32; LIVE_WORDS];
    words[LIVE_KEY..][..2].copy_from_slice(&key(seed, cycle));
    let n = cycle as f64;
    let mut set = |at: usize, value: f32| words[at] = value.to_bits();
    set(LIVE_AGE, (0.01 + 0.09 * (1.0 + n / 1000.0).log10()) as f32);
    set(LIVE_MOMENTUM, (0.9 - (n / 1000.0).min(0.2)) as f32);
    set(LIVE_WANDER, (0.1 * (0.01 * n).sin()) as f32);
    set(
        LIVE_REWARD,
        if reward.is_nan() {
            0.0
        } else {
            reward.clamp(-1.0, 1.0)
        },
    );
    let c = coefficients;
    let singles = [
        (LIVE_RETENTION, c.retention),
        (LIVE_DECAY_DEPTH, c.decay_depth),
        (LIVE_COUPLING, c.coupling),
        (LIVE_NOISE, c.noise),
        (LIVE_WAVE, c.wave),
        (LIVE_ERROR_DRIVE, c.error_drive),
        (LIVE_IMPRINT, c.imprint),
        (LIVE_DYNAMICS_RATE, c.dynamics_rate),
        (LIVE_ECHO, c.echo),
        (LIVE_EXPLORATION, c.exploration),
        (LIVE_SATURATION, c.saturation),
        (LIVE_RECALL, c.recall),
        (LIVE_FAMILIAR, c.familiar),
        (LIVE_ATTRACTION, c.attraction),
        (LIVE_STRATEGY, c.strategy),
    ];
    singles.into_iter().for_each(|(at, value)| set(at, value));
    for axis in 0..3 {
        set(LIVE_DIFFUSION + axis, c.diffusion[axis]);
        set(LIVE_DIFFUSION_DEPTH + axis, c.diffusion_depth[axis]);
    }
    for (at, number) in waves.phases(cycle).into_iter().flatten().enumerate() {
        set(LIVE_PHASES + at, number as f32);
    }
    for (at, sensor) in sensors.iter().enumerate() {
        set(
            LIVE_SENSORS + at,
            if sensor.is_nan() {
                0.0
            } else {
                sensor.clamp(-1.0, 1.0)
            },
        );
    }
    words
}

fn read_report(words: &[f32], motors: usize) -> Report {
    let number = |at: usize| (words[at] >= 0.0).then_some(words[at] as usize);
    Report {
        motors: words[REPORT_MOTORS..][..motors].to_vec(),
        drive: words[REPORT_DRIVE],
        explore: words[REPORT_EXPLORE],
        intensity: words[REPORT_INTENSITY],
        place: [0, 1, 2].map(|axis| words[REPORT_PLACE + axis] as usize),
        place_kind: ImprintSiteKind::ALL[(words[REPORT_PLACE_KIND] as usize).min(3)],
        novelty: words[REPORT_NOVELTY],
        error: words[REPORT_ERROR],
        information: words[REPORT_INFORMATION],
        confidence: words[REPORT_CONFIDENCE],
        mean: words[REPORT_MEAN],
        size: words[REPORT_SIZE],
        variance: words[REPORT_VARIANCE],
        gradient: [0, 1, 2].map(|axis| words[REPORT_GRADIENT + axis]),
        recall: Recall {
            nearest: number(REPORT_NEAREST),
            top: (REPORT_TOP..REPORT_TOP + TOP).filter_map(number).collect(),
            stored: number(REPORT_STORED),
            attractor: number(REPORT_ATTRACTOR),
            kept: number(REPORT_KEPT).unwrap_or(0),
        },
    }
}
