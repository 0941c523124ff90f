//! `tectum check field --learning`: does a field learn to seek light?
//!
//! Four controllers of the same body from the same starts: the field; the field with all learning
//! turned off; uniform random actions; and a hand-written one, which turns to the brighter eye and
//! away from obstacles that the whiskers detect.

use std::time::Instant;

use serde::Serialize;
use tectum::{Result, Session, Watch, WorkProgress};

use super::FieldBrain;
use super::spec::{CoefficientsSpec, FieldSpec};
use crate::body::seeker::Seeker;
use crate::body::uniform::Uniform;
use crate::body::{Body, Start};
use crate::brain::Brain;

/// Number of parts of a run in a learning curve.
pub const PARTS: usize = 10;
/// Index of the reward in the seeker's observation.
const REWARD: usize = 6;

/// The controller of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Controller {
    /// The field as it was given.
    Learning,
    /// The field without reward, library, attractors and strategic patterns, its dynamics fixed;
    /// imprints remain, or it would not sense.
    Fixed,
    /// Speed and turn drawn at random in each step.
    Random,
    /// A few lines of hand-written arithmetic.
    Written,
}

impl Controller {
    /// All of them.
    pub const ALL: [Controller; 4] = [Self::Learning, Self::Fixed, Self::Random, Self::Written];

    /// Its name in a table.
    pub fn name(self) -> &'static str {
        match self {
            Self::Learning => "field, learning",
            Self::Fixed => "field, not learning",
            Self::Random => "random",
            Self::Written => "hand-written",
        }
    }
}

/// A mean over seeds with its standard error.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeanEstimate {
    /// The mean.
    pub mean: f64,
    /// The standard error: deviation of the sample over √seeds; 0 for one seed.
    pub error: f64,
}

impl MeanEstimate {
    /// The mean of some numbers, one for each seed.
    pub fn of(numbers: &[f64]) -> Self {
        let n = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / n;
        let square: f64 = numbers.iter().map(|number| (number - mean).powi(2)).sum();
        Self {
            mean,
            error: (square / (n - 1.0).max(1.0) / n).sqrt(),
        }
    }
}

/// The result of a controller.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Score {
    /// Which one.
    pub controller: Controller,
    /// Mean reward of a step.
    pub reward: MeanEstimate,
    /// Lights found in a run.
    pub found: MeanEstimate,
    /// Mean reward of a step in each tenth of the run.
    pub curve: Vec<MeanEstimate>,
    /// Mean reward of a step in the last tenth minus that in the first, paired by seed.
    pub gain: MeanEstimate,
    /// Mean reward of a step minus that of the field that does not learn, paired by seed.
    pub over_fixed: MeanEstimate,
}

/// Runs every controller from the starts of `seeds` seeds, for `steps` steps of a tenth of a
/// second.
///
/// # Errors
/// As [`FieldBrain::new`]; what the device reports; `Cancelled` if the watch, which sees every run,
/// breaks it off.
///
/// # Panics
/// Without seeds, or with fewer steps than a curve has parts: mistakes in the calling code.
///
/// # Cost
/// Two fields of seeds × steps cycles, one after the other.
pub fn compare(
    spec: &FieldSpec,
    session: &mut Session,
    seeds: u64,
    steps: usize,
    watch: &mut Watch<'_>,
) -> Result<Vec<Score>> {
    assert!(
        seeds > 0 && steps >= PARTS,
        "{seeds} seeds of {steps} steps"
    );
    let mut runs = Vec::new();
    for controller in Controller::ALL {
        let mut of_seeds = Vec::new();
        for seed in 0..seeds {
            of_seeds.push(run(controller, spec, session, seed, steps)?);
            let done = runs.len() as u64 * seeds + seed + 1;
            WorkProgress {
                stage: controller.name(),
                done,
                total: Controller::ALL.len() as u64 * seeds,
            }
            .report(watch)?;
        }
        runs.push((controller, of_seeds));
    }
    let means = |runs: &[Run]| -> Vec<f64> {
        runs.iter()
            .map(|run| run.parts.iter().sum::<f64>() / PARTS as f64)
            .collect()
    };
    let fixed = means(&runs[1].1);
    let score = |(controller, runs): &(Controller, Vec<Run>)| {
        let part = |part: usize| -> Vec<f64> { runs.iter().map(|run| run.parts[part]).collect() };
        let own = means(runs);
        Score {
            controller: *controller,
            reward: MeanEstimate::of(&own),
            found: MeanEstimate::of(&runs.iter().map(|run| run.found as f64).collect::<Vec<_>>()),
            curve: (0..PARTS)
                .map(|index| MeanEstimate::of(&part(index)))
                .collect(),
            gain: MeanEstimate::of(&less(&part(PARTS - 1), &part(0))),
            over_fixed: MeanEstimate::of(&less(&own, &fixed)),
        }
    };
    Ok(runs.iter().map(score).collect())
}

fn less(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// A run of one seed: mean rewards of its parts, and lights found.
struct Run {
    parts: [f64; PARTS],
    found: u64,
}

fn run(
    controller: Controller,
    spec: &FieldSpec,
    session: &mut Session,
    seed: u64,
    steps: usize,
) -> Result<Run> {
    let mut body = Seeker::new(Start::Random)?;
    body.reset(seed);
    let spec_with_reward = FieldSpec {
        reward: Some(body.spec().observation[REWARD].name.clone()),
        ..spec.clone()
    };
    let mut brain = match controller {
        Controller::Learning => Some(FieldBrain::new(
            &spec_with_reward,
            body.spec(),
            session.device(),
            seed,
        )?),
        Controller::Fixed => Some(FieldBrain::new(
            &fixed(&spec_with_reward),
            body.spec(),
            session.device(),
            seed,
        )?),
        Controller::Random | Controller::Written => None,
    };
    brain
        .iter()
        .for_each(|brain| session.uses_code(&brain.code()));
    let mut uniform = Uniform::new(seed ^ 0x5eed);
    let (mut observation, mut action) = ([0.0; REWARD + 1], [0.0; 2]);
    let mut written = Written::default();
    let mut parts = [0.0; PARTS];
    let length = steps / PARTS;
    for step in 0..length * PARTS {
        body.observe(&mut observation);
        match (controller, &mut brain) {
            (Controller::Random, _) => {
                action = [uniform.between(0.0, 0.5) as f32, uniform.within(2.0) as f32]
            }
            (Controller::Written, _) => action = written.act(&observation),
            (_, Some(brain)) => {
                if controller == Controller::Fixed {
                    observation[REWARD] = 0.0;
                }
                let start = Instant::now();
                let stats = brain.tick(&observation, &mut action)?;
                session.record(&stats, start.elapsed().as_nanos() as u64);
            }
            (_, None) => {}
        }
        parts[step / length] += body.step(&action).reward / length as f64;
    }
    Ok(Run {
        parts,
        found: body.found(),
    })
}

fn fixed(spec: &FieldSpec) -> FieldSpec {
    let none = Some(0.0);
    let coefficients = CoefficientsSpec {
        dynamics_rate: none,
        recall: none,
        attraction: none,
        strategy: none,
        ..spec.coefficients
    };
    FieldSpec {
        patterns: 0,
        coefficients,
        ..spec.clone()
    }
}

/// Turns to the brighter eye, or steadily while both are dark; at an obstacle it turns to one side
/// until the way is free, and then drives straight ahead for a while.
#[derive(Default)]
struct Written {
    /// Remaining steps of driving straight ahead.
    escape: u32,
    /// The side that it turns to, 1 for left.
    side: f32,
}

impl Written {
    fn act(&mut self, observation: &[f32; REWARD + 1]) -> [f32; 2] {
        let [left, right, whisker_left, ahead, whisker_right, bump, _] = *observation;
        if bump > 0.0 || ahead > 0.5 || whisker_left.max(whisker_right) > 0.7 {
            if self.escape == 0 {
                self.side = if whisker_left > whisker_right {
                    -1.0
                } else {
                    1.0
                };
            }
            self.escape = 8;
            return [0.0, 2.0 * self.side];
        }
        if self.escape > 0 {
            self.escape -= 1;
            return [0.5, 0.0];
        }
        [
            0.5,
            if left + right < 1e-3 {
                1.0
            } else {
                2.0 * (left - right) / (left + right)
            },
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_estimate_is_the_mean_and_its_standard_error() {
        // Deviations ±1 and 0 around 2: variance 1, over three seeds.
        let found = MeanEstimate::of(&[1.0, 2.0, 3.0]);
        assert!(
            (found.mean - 2.0).abs() < 1e-12 && (found.error - (1.0f64 / 3.0).sqrt()).abs() < 1e-12
        );
        assert_eq!(
            MeanEstimate::of(&[4.0]),
            MeanEstimate {
                mean: 4.0,
                error: 0.0
            }
        );
    }

    #[test]
    fn the_hand_written_controller_finds_lights_and_the_random_one_few() {
        let cpu = || Session::new(&tectum::Device::open("cpu").expect("always there"));
        let spec = FieldSpec {
            cells: vec![4; 3],
            channels: 32,
            patterns: 16,
            ..FieldSpec::default()
        };
        let scores =
            compare(&spec, &mut cpu(), 4, 1000, &mut WorkProgress::ignore).expect("it runs");
        assert_eq!(
            scores
                .iter()
                .map(|score| score.controller)
                .collect::<Vec<_>>(),
            Controller::ALL
        );
        let found = |index: usize| scores[index].found.mean;
        assert!(found(3) > 8.0 && found(3) > 3.0 * found(2), "{scores:?}");
        assert_eq!(
            scores[1].over_fixed,
            MeanEstimate {
                mean: 0.0,
                error: 0.0
            }
        );
        // Learning makes a difference, in either direction.
        assert!(scores[0].over_fixed.error > 0.0, "{scores:?}");
        assert_eq!(
            scores,
            compare(&spec, &mut cpu(), 4, 1000, &mut WorkProgress::ignore).expect("it runs"),
            "it is the same again"
        );
    }
}
