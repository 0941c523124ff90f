//! The suite of `tectum bench control`: one command of MPPI on Pendulum-v1, from an observation to
//! an action; a step of many bodies.

use tectum::{CodeObject, Device, Error, Result, RunStats};
use tectum_bench::bench::{Alternative, Case, Roofline, Suite, Workload};

use super::{Model, Mppi, MppiParameters};
use crate::body::batch::Batch;
use crate::body::body;
use crate::brain::Brain;
use crate::twin::{Network, Twin, TwinLayout};

/// Samples and steps of the rows.
const SHAPES: [[usize; 2]; 3] = [[1024, 30], [4096, 40], [16384, 100]];
/// Both hidden layers of the twin.
const WIDTH: usize = 32;
/// Multiply-adds of its network, which reads sine, cosine, speed and torque and outputs two
/// changes.
const PRODUCTS: usize = 4 * WIDTH + WIDTH * WIDTH + 2 * WIDTH;
/// Bodies in a batch, how many, and the bytes that a step of one moves: state read and written,
/// action, output.
const BODIES: [(&str, usize, usize); 2] = [
    ("cart_pole", 1 << 16, 4 * (5 + 5 + 1 + 6)),
    ("acrobot", 1 << 16, 4 * (5 + 5 + 1 + 6)),
];
/// Bodies from equation files: how many, numbers of a state before and after a step with its
/// output, numbers of an action.
const FILES: [(&str, usize, usize, usize); 3] = [
    ("cart_pole.plant", 1 << 16, 5 + 5 + 6, 1),
    ("double_pendulum.plant", 1 << 16, 7 + 7 + 8, 1),
    ("quadrotor.plant", 1 << 16, 7 + 7 + 8, 2),
];
/// Operations of a step of the plant, its cost with them; sine and rounding count as one.
const PLANT_STEP: usize = 24;

/// The suite.
pub fn suite() -> Suite {
    Suite {
        name: "control",
        about: "one command of MPPI on Pendulum-v1 over samples × steps, by a 4-32-32-2 twin or by the equations; one step of many bodies",
        cases,
    }
}

fn cases(_: &Device) -> Vec<Case> {
    let case = |(of_twin, [samples, horizon]): (bool, [usize; 2])| {
        let (name, step) = if of_twin {
            ("twin", 2 * PRODUCTS)
        } else {
            ("plant", PLANT_STEP)
        };
        Case {
            key: format!("control.{name}.{samples}x{horizon}"),
            roofline: Roofline::Gemm,
            threads: None,
            amount: (step * samples * horizon) as f64,
            prepare: Box::new(move |device| prepare(device, of_twin, samples, horizon)),
            alternatives: Vec::new(),
        }
    };
    let bodies = |(name, count, bytes): (&'static str, usize, usize)| Case {
        key: format!("control.{name}.{count}"),
        roofline: Roofline::Copy,
        threads: None,
        amount: (count * bytes) as f64,
        prepare: Box::new(move |device| prepare_bodies(Batch::new(name, count, device)?, 1)),
        alternatives: Vec::new(),
    };
    let files = |(name, count, numbers, actions): (&'static str, usize, usize, usize)| Case {
        key: format!("control.{name}.{count}"),
        roofline: Roofline::Copy,
        threads: None,
        amount: (count * 4 * (numbers + actions)) as f64,
        prepare: Box::new(move |device| prepare_bodies(Batch::new(name, count, device)?, actions)),
        // The same equations by hand.
        alternatives: BODIES
            .into_iter()
            .filter(|(body, ..)| name.starts_with(body))
            .map(|(body, ..)| Alternative {
                name: "by hand".into(),
                prepare: Box::new(move |device| {
                    prepare_bodies(Batch::new(body, count, device)?, 1)
                }),
            })
            .collect(),
    };
    let plans = [true, false]
        .into_iter()
        .flat_map(|of_twin| SHAPES.map(|shape| (of_twin, shape)))
        .map(case);
    plans
        .chain(BODIES.map(bodies))
        .chain(FILES.map(files))
        .collect()
}

fn prepare_bodies(batch: Batch, channels: usize) -> Result<Box<dyn Workload>> {
    // Equal numbers pushed to the left and to the right.
    let actions = (0..batch.count() * channels)
        .map(|k| ((k * 37 % 101) as f32 - 50.0) / 50.0)
        .collect();
    let code = batch.code().to_vec();
    Ok(Box::new(Bodies {
        batch,
        actions,
        code,
    }))
}

struct Bodies {
    batch: Batch,
    actions: Vec<f32>,
    code: Vec<CodeObject>,
}

impl Workload for Bodies {
    fn run(&mut self) -> Result<RunStats> {
        self.batch.step(&self.actions)
    }

    fn code(&self) -> &[CodeObject] {
        &self.code
    }
}

fn prepare(
    device: &Device,
    of_twin: bool,
    samples: usize,
    horizon: usize,
) -> Result<Box<dyn Workload>> {
    let layout = TwinLayout::of(body("pendulum", None)?.spec(), false)?;
    let parameters = MppiParameters {
        samples,
        horizon,
        ..MppiParameters::for_body("pendulum")?
    };
    let model = if of_twin {
        Model::Twin(untrained(layout)?)
    } else {
        Model::Plant {
            body: "pendulum".to_owned(),
            layout,
        }
    };
    let brain = Mppi::new(model, &parameters, device, 1)?;
    let code = brain.code();
    Ok(Box::new(Run {
        brain,
        code,
        action: [0.0],
    }))
}

/// An untrained twin: its weights do not affect the time.
fn untrained(layout: TwinLayout) -> Result<Twin> {
    let network = Network::new(layout.features(), &[WIDTH; 2], layout.channels.len())?;
    if network.features() != 4 {
        return Err(Error::invalid("the suite's network reads four numbers"));
    }
    Ok(Twin {
        layout,
        weights: network.initial_weights(1),
        network,
        change_mean: vec![0.0; 2],
        change_deviation: vec![0.1, 0.5],
    })
}

struct Run {
    brain: Mppi,
    code: Vec<CodeObject>,
    action: [f32; 1],
}

impl Workload for Run {
    fn run(&mut self) -> Result<RunStats> {
        self.brain.tick(&[3.0, 0.5], &mut self.action)
    }

    fn code(&self) -> &[CodeObject] {
        &self.code
    }
}
