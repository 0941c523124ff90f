//! The suite `field`: whole cycles, compared with a 27-point pass, the noise and the tanh that they
//! hold, each alone.

use tectum::{
    Boundary, CodeObject, DType, Device, Executable, PlanBuilder, Points, Result, RunStats,
};
use tectum_bench::bench::{Case, Prepare, Roofline, Suite, Workload};

use super::kernels::{NOISE, Noise};
use super::layout::{LIVE_WORDS, MAX_PATTERNS, OCTANTS, TRAIT_WORDS};
use super::{Options, Shape, Simulation, State, Storage};

/// Cells along each axis and channels.
const SIZES: [(usize, usize); 4] = [(16, 32), (32, 64), (64, 64), (64, 256)];
/// Elements of an observation.
const SENSORS: usize = 16;

/// The suite.
pub fn suite() -> Suite {
    Suite {
        name: "field",
        about: "cycles of the field brain compared with the passes that bound them",
        cases,
    }
}

fn cases(device: &Device) -> Vec<Case> {
    let most = if device.info().software { 16 } else { 64 };
    SIZES
        .into_iter()
        .filter(|(cells, _)| *cells <= most)
        .flat_map(|(cells, channels)| rows(cells, channels))
        .collect()
}

/// The rows of a size. All read and write their elements, except the noise, which is only written.
fn rows(cells: usize, channels: usize) -> Vec<Case> {
    let elements = cells * cells * cells * channels;
    let evolving = elements / channels * (channels - super::shape::DYNAMICS);
    let field = format!("{cells}x{cells}x{cells}x{channels}");
    let case = |key: String, amount: usize, prepare: Box<Prepare>| Case {
        key: format!("field.{key}"),
        roofline: Roofline::Copy,
        threads: None,
        amount: amount as f64,
        prepare,
        alternatives: Vec::new(),
    };
    let cycle = |storage: Storage| -> Box<Prepare> {
        Box::new(move |device| {
            Ok(Box::new(FieldWorkload::new(
                cells, channels, storage, device,
            )?))
        })
    };
    let library = 4 * MAX_PATTERNS * OCTANTS * (3 * channels / 4 - super::shape::DYNAMICS);
    vec![
        case(format!("cycle.{field}"), 8 * elements, cycle(Storage::F32)),
        case(
            format!("cycle.{field}.bf16"),
            4 * elements,
            cycle(Storage::Bf16),
        ),
        // All places of the library are used: a cycle must read them too.
        case(
            format!("cycle.{field}.library"),
            8 * elements + library,
            Box::new(move |device| Ok(Box::new(FieldWorkload::full(cells, channels, device)?))),
        ),
        // Once more next to peers that compile theirs.
        case(
            format!("cycle.{field}.compiled"),
            8 * elements,
            cycle(Storage::F32),
        ),
        case(
            format!("stencil27.{field}"),
            8 * elements,
            Box::new(move |device| Ok(Box::new(stencil27(cells, channels, device)?))),
        ),
        case(
            format!("noise.n{evolving}"),
            4 * evolving,
            Box::new(move |device| Ok(Box::new(noise(evolving, device)?))),
        ),
        case(
            format!("tanh.n{evolving}"),
            8 * evolving,
            Box::new(move |device| Ok(Box::new(tanh(evolving, device)?))),
        ),
    ]
}

/// A field that runs continuously.
struct FieldWorkload {
    field: Simulation,
    sensors: Vec<f32>,
}

impl FieldWorkload {
    fn new(cells: usize, channels: usize, storage: Storage, device: &Device) -> Result<Self> {
        let options = Options {
            sensors: SENSORS,
            motors: 4,
            boundary: Boundary::Closed,
            seed: 1,
            patterns: 0,
            storage,
        };
        Ok(Self {
            field: Simulation::new(Shape::new([cells; 3], channels)?, options, device)?,
            sensors: vec![0.0; SENSORS],
        })
    }

    /// With a library of the maximum number of patterns, all dissimilar.
    fn full(cells: usize, channels: usize, device: &Device) -> Result<Self> {
        let shape = Shape::new([cells; 3], channels)?;
        let options = Options {
            sensors: SENSORS,
            motors: 4,
            boundary: Boundary::Closed,
            seed: 1,
            patterns: MAX_PATTERNS,
            storage: Storage::F32,
        };
        let mut state = State::new(&shape, options.seed).with_patterns(&shape, MAX_PATTERNS);
        let width = OCTANTS * shape.content();
        let patterns = state
            .library
            .chunks_exact_mut(width)
            .zip(state.traits.chunks_exact_mut(TRAIT_WORDS))
            .take(MAX_PATTERNS);
        for (row, (pattern, traits)) in patterns.enumerate() {
            pattern.iter_mut().enumerate().for_each(|(i, v)| {
                *v = super::draw::draw((row * width + i) as u32, [1, 2]) as f32 / 510.0
            });
            traits[0] = pattern.iter().map(|v| v * v).sum::<f32>().sqrt();
        }
        let mut field = Simulation::new(shape, options, device)?;
        field.set_state(&state)?;
        Ok(Self {
            field,
            sensors: vec![0.0; SENSORS],
        })
    }
}

impl Workload for FieldWorkload {
    fn run(&mut self) -> Result<RunStats> {
        for (index, sensor) in self.sensors.iter_mut().enumerate() {
            *sensor = (0.05 * self.field.cycle() as f32 + index as f32).sin();
        }
        self.field.tick(&self.sensors, 0.0)?;
        Ok(self.field.stats())
    }

    fn code(&self) -> &[CodeObject] {
        self.field.code()
    }
}

fn stencil27(cells: usize, channels: usize, device: &Device) -> Result<Executable> {
    let n = cells * cells * cells * channels;
    let mut plan = PlanBuilder::new("stencil27");
    let x = plan.state("x", DType::F32, n);
    let y = plan.state("y", DType::F32, n);
    let weights = plan.constant("weights", &[0.4f32, 0.05, 0.02, 0.0075]);
    plan.stencil(
        Points::TwentySeven,
        x,
        weights,
        y,
        [cells, cells, cells, channels],
        Boundary::Closed,
    )?;
    filled(plan.finish()?.compile(device)?, x)
}

fn noise(n: usize, device: &Device) -> Result<Executable> {
    let mut plan = PlanBuilder::new("noise");
    let live = plan.input("live", DType::U32, LIVE_WORDS);
    let noise = plan.state("noise", DType::F32, n);
    plan.launch(
        &NOISE,
        Noise {
            live,
            noise,
            first: 0,
            n,
        },
        tectum::kernel::groups_for(n),
    )?;
    plan.finish()?.compile(device)
}

fn tanh(n: usize, device: &Device) -> Result<Executable> {
    let mut plan = PlanBuilder::new("tanh");
    let x = plan.state("x", DType::F32, n);
    let y = plan.state("y", DType::F32, n);
    plan.unary("tanh", x, y)?;
    filled(plan.finish()?.compile(device)?, x)
}

/// Numbers in (0, 1] without denormals.
fn filled(mut run: Executable, x: tectum::View) -> Result<Executable> {
    let numbers: Vec<f32> = (0..x.len() as u32)
        .map(|i| (super::draw::draw(i, [1, 2]) + 511) as f32 / 1021.0)
        .collect();
    run.write_state(x, &numbers)?;
    Ok(run)
}
