//! A field that runs: its state on one device, cycle after cycle, two plans in turn over the same buffers.
//!
//! ```text
//! (similarity → recall →) sensors → sense → place → evolve → pool → act → motors
//! ```

use tectum::{Boundary, DType, Device, Error, Executable, LaunchTime, Plan, PlanBuilder, PlanWork, Result, RunStats, View};

use super::coefficients::Coefficients;
use super::draw::key;
use super::kernels::{ACT, EVOLVE, PLACE, POOL, RECALL, SENSE, SIMILARITY};
use super::layout::*;
use super::shape::{REGIONS, Shape};
use super::state::{State, library_lengths};
use super::waves::Waves;

/// Patterns that a workgroup compares at once.
const ROWS_PER_GROUP: usize = 16;

/// How a field is made.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Options {
    /// Numbers of an observation, 1 to 256.
    pub sensors: usize,
    /// Numbers of an action, 1 to 16.
    pub motors: usize,
    /// What lies outside the field.
    pub boundary: Boundary,
    /// What the first state, noise and waves are drawn from.
    pub seed: u64,
    /// Places of the library of patterns, 0 (there is none) to 4,096.
    pub patterns: usize,
}

impl Options {
    /// Checks the numbers.
    ///
    /// # Errors
    /// `Invalid` for more sensors or motors than a field has, or none; for more patterns than a library has.
    pub fn check(&self) -> Result<()> {
        for (name, number, most) in [("sensors", self.sensors, MOST_SENSORS), ("motors", self.motors, MOST_MOTORS)] {
            if !(1..=most).contains(&number) {
                return Err(Error::invalid(format!("field: {number} {name}; needs 1 to {most}")));
            }
        }
        if self.patterns > MOST_PATTERNS {
            return Err(Error::invalid(format!("field: a library of {} patterns; needs 0 to {MOST_PATTERNS}", self.patterns)));
        }
        Ok(())
    }
}

/// Why a place was chosen for the imprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaceKind {
    /// The field holds the pattern there already.
    Existing,
    /// What is around there resounds.
    Resonant,
    /// It is most like the pattern.
    Correlated,
    /// Nothing is like the pattern; it is the emptiest.
    Emptiest,
}

impl PlaceKind {
    /// All of them, in the order of their codes.
    pub const ALL: [PlaceKind; 4] = [Self::Existing, Self::Resonant, Self::Correlated, Self::Emptiest];
}

/// What the library did in a cycle; patterns and attractors by the numbers of their places.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recall {
    /// The pattern most like the present one; none in an empty library.
    pub nearest: Option<usize>,
    /// The patterns of the greatest scores, the greatest first.
    pub top: Vec<usize>,
    /// Where the present pattern was stored; none if it was familiar.
    pub stored: Option<usize>,
    /// Where it was stored as an attractor; none without a reward.
    pub attractor: Option<usize>,
    /// Patterns in the library after the cycle.
    pub kept: usize,
}

/// What a cycle did, in the letters of `docs/field.md`.
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
    /// Why there.
    pub place_kind: PlaceKind,
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
    /// What the library did; nothing without one.
    pub recall: Recall,
}

/// The slots of a cycle's plan.
#[derive(Clone, Copy)]
struct Views {
    live: View,
    fields: [View; 2],
    memory: View,
    sites: View,
    descriptor: View,
    pull: View,
    /// The library and its traits.
    library: Option<[View; 2]>,
    report: View,
}

/// A field with its state on a device.
pub struct Simulation {
    shape: Shape,
    options: Options,
    coefficients: Coefficients,
    seed: u64,
    cycle: u64,
    waves: Waves,
    /// The plan from the first buffer to the second, and back.
    cycles: [Executable; 2],
    views: Views,
    stats: RunStats,
    work: PlanWork,
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Simulation({:?}, {:?}, cycle {})", self.shape, self.options, self.cycle)
    }
}

impl Simulation {
    /// Puts a field on a device, in the first state of its seed.
    ///
    /// # Errors
    /// As [`Options::check`]; what compiling a plan reports.
    pub fn new(shape: Shape, options: Options, device: &Device) -> Result<Self> {
        options.check()?;
        let waves = Waves::new(options.seed);
        let (there, views) = record(&shape, &options, &waves, false)?;
        let work = there.work();
        let there = there.compile(device)?;
        let (back, _) = record(&shape, &options, &waves, true)?;
        let kept = views.library.into_iter().flatten();
        let states: Vec<View> = [views.fields[0], views.fields[1], views.memory, views.sites, views.descriptor, views.pull].into_iter().chain(kept).collect();
        let buffers = states.iter().map(|view| there.state_buffer(*view)).collect::<Result<Vec<_>>>()?;
        let shared: Vec<_> = states.into_iter().zip(&buffers).collect();
        let back = back.compile_with(device, &shared)?;
        let mut simulation =
            Self { shape, options, coefficients: Coefficients::default(), seed: options.seed, cycle: 0, waves, cycles: [there, back], views, stats: RunStats::default(), work };
        simulation.set_state(&State::new(&shape, options.seed).with_patterns(&shape, options.patterns))?;
        Ok(simulation)
    }

    /// The size.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How it was made.
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
    /// As [`Coefficients::check`]; nothing is changed then.
    pub fn set_coefficients(&mut self, coefficients: Coefficients) -> Result<()> {
        coefficients.check()?;
        self.coefficients = coefficients;
        Ok(())
    }

    /// Runs a cycle: sensors in, motors out.
    ///
    /// # Shapes
    /// `sensors` \[sensors\], held to ±1; a NaN counts as 0. `reward` is held to ±1.
    ///
    /// # Errors
    /// `Invalid` for another number of sensors; what the device reports.
    ///
    /// # Cost
    /// One upload, one submission, one download; neither allocates device memory nor compiles.
    pub fn tick(&mut self, sensors: &[f32], reward: f32) -> Result<Report> {
        if sensors.len() != self.options.sensors {
            return Err(Error::invalid(format!("field: {} sensors given, {} needed", sensors.len(), self.options.sensors)));
        }
        let words = live_words(self.cycle, self.seed, &self.waves, &self.coefficients, sensors, reward);
        let run = &mut self.cycles[(self.cycle % 2) as usize];
        run.input::<u32>(self.views.live).copy_from_slice(&words);
        self.stats = run.run()?;
        self.cycle += 1;
        Ok(read_report(run.output::<f32>(self.views.report), self.options.motors))
    }

    /// What the device counted in the last cycle.
    pub fn stats(&self) -> RunStats {
        self.stats
    }

    /// What a cycle asks of a device.
    pub fn work(&self) -> &PlanWork {
        &self.work
    }

    /// The time of each launch of one more cycle on the last sensors.
    ///
    /// # Errors
    /// What the device reports.
    pub fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        let times = self.cycles[(self.cycle % 2) as usize].trace()?;
        self.cycle += 1;
        Ok(times)
    }

    /// The code objects that run: kernel and content hash.
    pub fn code(&self) -> &[(String, u64)] {
        self.cycles[0].code()
    }

    /// Copies the state to the host.
    ///
    /// # Errors
    /// What the device reports.
    pub fn state(&self) -> Result<State> {
        let run = &self.cycles[0];
        let kept = |index: usize| self.views.library.map_or(Ok(Vec::new()), |views| run.read_state(views[index]));
        Ok(State {
            cycle: self.cycle,
            seed: self.seed,
            field: run.read_state(self.views.fields[(self.cycle % 2) as usize])?,
            memory: run.read_state(self.views.memory)?,
            sites: run.read_state(self.views.sites)?,
            descriptor: run.read_state(self.views.descriptor)?,
            library: kept(0)?,
            traits: kept(1)?,
        })
    }

    /// Takes up a state; noise goes on from its seed, the waves keep the directions that this field was made with.
    ///
    /// # Errors
    /// `Invalid` for an array of another length; what the device reports.
    pub fn set_state(&mut self, state: &State) -> Result<()> {
        let run = &mut self.cycles[0];
        run.write_state(self.views.fields[(state.cycle % 2) as usize], &state.field)?;
        run.write_state(self.views.memory, &state.memory)?;
        run.write_state(self.views.sites, &state.sites)?;
        run.write_state(self.views.descriptor, &state.descriptor)?;
        if let Some([library, traits]) = self.views.library {
            run.write_state(library, &state.library)?;
            run.write_state(traits, &state.traits)?;
        }
        (self.cycle, self.seed) = (state.cycle, state.seed);
        Ok(())
    }
}

/// The words that the host writes before a cycle.
pub(super) fn live_words(cycle: u64, seed: u64, waves: &Waves, coefficients: &Coefficients, sensors: &[f32], reward: f32) -> Vec<u32> {
    let mut words = vec![0u32; LIVE_WORDS];
    words[LIVE_KEY..][..2].copy_from_slice(&key(seed, cycle));
    let n = cycle as f64;
    let mut set = |at: usize, value: f32| words[at] = value.to_bits();
    set(LIVE_AGE, (0.01 + 0.09 * (1.0 + n / 1000.0).log10()) as f32);
    set(LIVE_MOMENTUM, (0.9 - (n / 1000.0).min(0.2)) as f32);
    set(LIVE_WANDER, (0.1 * (0.01 * n).sin()) as f32);
    set(LIVE_REWARD, if reward.is_nan() { 0.0 } else { reward.clamp(-1.0, 1.0) });
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
        set(LIVE_SENSORS + at, if sensor.is_nan() { 0.0 } else { sensor.clamp(-1.0, 1.0) });
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
        place_kind: PlaceKind::ALL[(words[REPORT_PLACE_KIND] as usize).min(3)],
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

/// Records a cycle from one buffer of the field to the other.
fn record(shape: &Shape, options: &Options, waves: &Waves, is_back: bool) -> Result<(Plan, Views)> {
    let mut plan = PlanBuilder::new("field");
    let content = shape.content();
    let [nx, ny, nz] = shape.cells().map(|size| size as u32);
    let sites = shape.sites();
    let [library, traits] = library_lengths(shape, options.patterns);
    let is_kept = options.patterns > 0;
    let views = Views {
        live: plan.input("live", DType::U32, LIVE_WORDS),
        fields: ["field", "other field"].map(|name| plan.state(name, DType::F32, shape.elements())),
        memory: plan.state("memory", DType::F32, MEMORY_WORDS),
        sites: plan.state("sites", DType::F32, sites.iter().product::<usize>() * content),
        descriptor: plan.state("descriptor", DType::F32, REGIONS * content),
        pull: plan.state("pull", DType::F32, REGIONS * content),
        library: is_kept.then(|| [plan.state("library", DType::F32, library), plan.state("traits", DType::F32, traits)]),
        report: plan.output("report", DType::F32, REPORT_WORDS),
    };
    let tables = plan.constant("waves", &waves.tables(shape));
    let control = plan.temp(DType::F32, CONTROL_WORDS);
    let rows = plan.temp(DType::F32, shape.rows() * ROW_WORDS);
    let pooled = plan.temp(DType::F32, shape.rows() * sites[2] * content);
    let (old, new) = if is_back { (views.fields[1], views.fields[0]) } else { (views.fields[0], views.fields[1]) };

    let [channels, block, content] = [shape.channels(), shape.block(), content].map(|number| number as u32);
    let [sensors, motors] = [options.sensors, options.motors].map(|number| number as u32);
    if let Some([library, traits]) = views.library {
        let kept = options.patterns + ATTRACTORS;
        let products = plan.temp(DType::F32, kept);
        plan.launch(&SIMILARITY, &[views.descriptor, library, traits, products], &[kept as u32, content], kept.div_ceil(ROWS_PER_GROUP) as u32)?;
        let bound = [views.live, views.descriptor, products, library, traits, views.memory, views.pull];
        plan.launch(&RECALL, &bound, &[options.patterns as u32, content, channels], 1)?;
    }
    plan.launch(&SENSE, &[views.live, views.descriptor, views.memory, control], &[sensors, motors, content, channels], 1)?;
    let [sites_x, sites_y, sites_z] = sites.map(|size| size as u32);
    plan.launch(&PLACE, &[views.sites, control], &[sites_x, sites_y, sites_z, content, block], 1)?;
    let bound = [old, views.live, control, tables, views.pull, new, rows, pooled];
    plan.launch(&EVOLVE, &bound, &[nx, ny, nz, channels, options.boundary as u32, block], shape.rows() as u32)?;
    let groups = tectum::kernel::groups_for(views.sites.len());
    plan.launch(&POOL, &[pooled, views.sites], &[nx, ny, nz, content, block], groups)?;
    let bound = [rows, views.live, control, views.sites, views.memory, views.descriptor, views.report];
    plan.launch(&ACT, &bound, &[nx, ny, nz, content, channels, block, motors], 1)?;
    Ok((plan.finish()?, views))
}
