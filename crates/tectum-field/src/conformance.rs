//! Conformance of the kernels of a cycle: the noise alone, exactly; whole cycles, each from the
//! device's state, compared with the reference.

use tectum::{Boundary, Result};
use tectum_bench::conformance::{Case, CaseContext, Data, Expected, Output, Seed, Suite};

use super::agreement;
use super::coefficients::Coefficients;
use super::kernels::{NOISE, Noise};
use super::layout::{LIVE_KEY, LIVE_WORDS};
use super::options::Options;
use super::reference::draw;
use super::shape::Shape;
use super::simulation::Simulation;
use super::storage::Storage;

/// Coefficients with which every term of a cycle has weight.
pub fn strong() -> Coefficients {
    let remembering = Coefficients {
        recall: 0.2,
        familiar: 0.9999,
        attraction: 0.02,
        strategy: 1.0,
        ..Coefficients::default()
    };
    Coefficients {
        coupling: 1.0,
        noise: 0.02,
        wave: 0.05,
        imprint: 3.0,
        ..remembering
    }
}

/// Cycles of a case; every third is compared.
const CYCLES: u64 = 9;
const EVERY: u64 = 3;

/// Fields by storage format, with and without a library, whole and split.
pub fn suites() -> Vec<Suite> {
    let suite = |name: &'static str, storage: Storage, patterns: &'static [usize], parts: usize| {
        Suite::new(name, move |seed: &mut Seed| {
            cases(seed, storage, patterns, parts)
                .expect("invariant: the shapes of this file are possible")
        })
    };
    vec![
        Suite::new("field_noise", |seed: &mut Seed| {
            [1, 37, 257, 5000].map(|n| noise(seed, n)).into()
        }),
        suite("field", Storage::F32, &[0], 1),
        suite("field_library", Storage::F32, &[1, 12, 300], 1),
        suite("field_bf16", Storage::Bf16, &[12], 1),
        suite("field_split", Storage::F32, &[0, 12], 2),
    ]
}

fn noise(seed: &mut Seed, n: usize) -> Case {
    let (first, key) = (seed.word(), [seed.word(), seed.word()]);
    let mut live = vec![0; LIVE_WORDS];
    live[LIVE_KEY..][..2].copy_from_slice(&key);
    let expected = (0..n as u32)
        .map(|i| Expected::exactly(f64::from(draw(first.wrapping_add(i), key))))
        .collect();
    Case::new(
        format!("{n} from {first}"),
        vec![Data::U32(live)],
        vec![Output::Near(expected)],
        move |plan, x, y| {
            plan.launch(
                &NOISE,
                Noise {
                    live: x[0],
                    noise: y[0],
                    first,
                    n,
                },
                tectum::kernel::groups_for(n),
            )
        },
    )
}

/// The smallest field, one with unequal axes, and one whose rows need several workgroups; every
/// boundary, few and maximum sensors and motors.
fn cases(seed: &mut Seed, storage: Storage, patterns: &[usize], parts: usize) -> Result<Vec<Case>> {
    let shapes = [
        ([4, 4, 4], 32, [1, 1]),
        ([4, 8, 12], 64, [13, 6]),
        ([16, 16, 16], 32, [256, 16]),
        ([8, 4, 4], 256, [5, 3]),
    ];
    let mut cases = Vec::new();
    for (index, (cells, channels, [sensors, motors])) in shapes.into_iter().enumerate() {
        let (shape, patterns) = (
            Shape::new(cells, channels)?,
            patterns[index % patterns.len()],
        );
        for boundary in Boundary::ALL {
            let options = Options {
                sensors,
                motors,
                boundary,
                seed: u64::from(seed.word()),
                patterns,
                storage,
            };
            cases.push(case(shape, options, parts));
        }
    }
    Ok(cases)
}

fn case(shape: Shape, options: Options, parts: usize) -> Case {
    let Options {
        sensors,
        motors,
        boundary,
        patterns,
        ..
    } = options;
    let name = format!(
        "{:?} × {} {boundary:?}, {sensors} sensors, {motors} motors, {patterns} patterns, {parts} parts",
        shape.cells(),
        shape.channels()
    );
    Case::of_run(
        name,
        shape.elements() + patterns * shape.channels(),
        move |trial: &mut CaseContext<'_>| {
            let mut field = Simulation::split(shape, options, &vec![trial.device.clone(); parts])?;
            trial.uses(field.code());
            let mut worst = 0.0f64;
            for cycle in 0..CYCLES {
                // The last ones with the default coefficients.
                field.set_coefficients(if cycle < 2 * EVERY {
                    strong()
                } else {
                    Coefficients::default()
                })?;
                let (sensors, reward) = (observation(cycle, sensors), (0.7 * cycle as f32).sin());
                if !(cycle + 1).is_multiple_of(EVERY) {
                    let start = std::time::Instant::now();
                    field.tick(&sensors, reward)?;
                    trial.record(&field.stats(), start);
                    continue;
                }
                let agreement = agreement::compare(&mut field, &sensors, reward)?;
                trial.record(&field.stats(), agreement.start);
                worst = agreement
                    .differences
                    .iter()
                    .fold(worst, |worst, difference| {
                        worst.max(difference.worst / difference.tolerance)
                    });
            }
            Ok(worst)
        },
    )
}

/// An observation that depends on the cycle: slow sines, with all sensors at 0 for some periods.
pub fn observation(cycle: u64, sensors: usize) -> Vec<f32> {
    let sensor = |index: usize| {
        if cycle % 500 < 380 {
            (0.05 * cycle as f32 * (1.0 + index as f32 / 7.0)).sin()
        } else {
            0.0
        }
    };
    (0..sensors).map(sensor).collect()
}
