//! A cycle in float64, plain and slow, written only from `docs/field.md`. Every device is compared
//! with it.

mod recall;

use serde::Serialize;
use tectum::Boundary;

use super::coefficients::Coefficients;
use super::draw::key;
use super::layout::*;
use super::options::Options;
use super::shape::{DYNAMICS, REGIONS, Shape};
use super::simulation::{ImprintSiteKind, Recall};
use super::state::{State, means};
use super::storage::Storage;
use super::waves::Waves;

/// The result of a cycle.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The field after the cycle, [X, Y, Z, C].
    pub field: Vec<f64>,
    /// Statistics, modulation and history after the cycle.
    pub memory: Vec<f64>,
    /// The plateau before the cycle.
    pub plateau: f64,
    /// The storage format of the field.
    pub storage: Storage,
    /// Mean content of the sites.
    pub sites: Vec<f64>,
    /// Mean content of the regions.
    pub descriptor: Vec<f64>,
    /// Patterns and attractors of the library.
    pub library: Vec<f64>,
    /// The traits of each.
    pub traits: Vec<f64>,
    /// The motors.
    pub motors: Vec<f64>,
    /// The library's choices.
    pub recall: Recall,
    /// The place of the imprint.
    pub place: ImprintSite,
    /// Differences between end slices.
    pub gradient: [f64; 3],
    /// Exploration.
    pub explore: f64,
    /// Novelty.
    pub novelty: f64,
    /// Weighted mean error of the prediction.
    pub error: f64,
    /// J of the imprint.
    pub intensity: f64,
    /// Internal drive.
    pub drive: f64,
}

/// A candidate place of the imprint.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ImprintSite {
    /// The reason for this place.
    pub kind: ImprintSiteKind,
    /// The site's number.
    pub site: usize,
    /// The cell at its centre.
    pub cell: [usize; 3],
}

/// The inputs of a cycle.
#[derive(Debug, Clone, Copy)]
pub struct Cycle<'a> {
    /// The size of the field.
    pub shape: &'a Shape,
    /// The options.
    pub options: &'a Options,
    /// The coefficients.
    pub coefficients: &'a Coefficients,
    /// The observation.
    pub sensors: &'a [f32],
    /// The reward.
    pub reward: f32,
}

/// Results of steps 1 and 2 for the later steps.
struct Modulation {
    drive: f64,
    explore: f64,
    novelty: f64,
    error: f64,
    error_mean: f64,
    intensity: f64,
    step: f64,
    rate: f64,
    retention: f64,
    region_errors: [Option<f64>; REGIONS],
    pattern: Vec<f64>,
    /// T by octant.
    pull: Vec<f64>,
}

/// The hash of an element in the cycle of a key: products modulo 2³², in wider integers that do not
/// wrap.
fn hash(element: u32, [first, second]: [u32; 2]) -> u64 {
    let word = |number: u64| number % (1 << 32);
    let h = word(2_654_435_761 * u64::from(element) + u64::from(first));
    let h = word((h ^ (h >> 16)) * 2_246_822_507) ^ u64::from(second);
    let h = word((h ^ (h >> 13)) * 3_266_489_909);
    h ^ (h >> 16)
}

/// The draw of an element, an integer from −510 to 510.
pub(super) fn draw(element: u32, key: [u32; 2]) -> i32 {
    (0..4)
        .map(|byte| (hash(element, key) >> (8 * byte) & 0xff) as i32)
        .sum::<i32>()
        - 510
}

/// A number as bf16, with 16-bit stochastic rounding.
fn stochastic_round_bf16(value: f32, element: u32, key: [u32; 2]) -> f32 {
    let chance = (hash(element, key) * 2_654_435_761 % (1 << 32)) >> 16;
    f32::from_bits(((u64::from(value.to_bits()) + chance) as u32) & 0xffff_0000)
}

fn ramp(x: f64, low: f64, high: f64) -> f64 {
    ((x - low) / (high - low)).clamp(0.0, 1.0)
}

fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

impl Cycle<'_> {
    /// Advances a state by one cycle. If a place and the library's choices are given, they are
    /// used, so that a near-tie does not hide other differences.
    pub fn advance(
        &self,
        state: &State,
        given: Option<ImprintSite>,
        recall: Option<&Recall>,
    ) -> Outcome {
        let mut memory: Vec<f64> = state.memory.iter().map(|v| f64::from(*v)).collect();
        let moved = memory[MEMORY_MOTORS..][..self.options.motors].to_vec();
        let recall = recall.cloned().unwrap_or_else(|| self.recall(state));
        let (library, traits, pull) = self.update_library(state, &recall, &mut memory);
        let modulation = Modulation {
            pull,
            ..self.modulate(state, &mut memory)
        };
        let place = given.unwrap_or_else(|| self.place(state, &modulation.pattern)[0].0);
        let field = self.evolve(state, &modulation, place, &memory, &moved);
        let key = key(state.seed, state.cycle);
        let stored = field
            .iter()
            .enumerate()
            .map(|(at, v)| match self.options.storage {
                Storage::F32 => *v,
                Storage::Bf16 => f64::from(stochastic_round_bf16(*v as f32, at as u32, key)),
            });
        let field: Vec<f64> = stored.collect();
        let sites = means(self.shape, &field, self.shape.sites());
        let descriptor = means(self.shape, &field, [4; 3]);
        let gradient = self.statistics(&field, &mut memory);
        let motors = self.motors(state, &memory, &modulation, gradient);
        memory[MEMORY_MOTORS..][..MAX_MOTORS].fill(0.0);
        memory[MEMORY_MOTORS..][..motors.len()].copy_from_slice(&motors);
        let Modulation {
            drive,
            explore,
            novelty,
            error_mean: error,
            intensity,
            ..
        } = modulation;
        let plateau = f64::from(state.memory[MEMORY_PLATEAU]);
        Outcome {
            field,
            memory,
            plateau,
            storage: self.options.storage,
            sites,
            descriptor,
            library,
            traits,
            motors,
            recall,
            place,
            gradient,
            explore,
            novelty,
            error,
            intensity,
            drive,
        }
    }

    /// Steps 1 and 2.
    fn modulate(&self, state: &State, memory: &mut [f64]) -> Modulation {
        let (content, n) = (self.shape.content(), state.cycle as f64);
        let sensors: Vec<f64> = self
            .sensors
            .iter()
            .map(|s| f64::from(*s).clamp(-1.0, 1.0))
            .collect();
        let (size, variance) = (memory[MEMORY_SIZE], memory[MEMORY_VARIANCE]);
        let mut errors = Vec::new();
        for (i, now) in sensors.iter().enumerate() {
            let [s1, s2, s3] = [0, 1, 2].map(|age| memory[MEMORY_HISTORY + age * MAX_SENSORS + i]);
            let (d1, d2) = (s1 - s2, s1 - 2.0 * s2 + s3);
            let recalled = f64::from(state.descriptor[i % REGIONS * content + i % content]);
            let trust = memory[MEMORY_TRUST + i];
            let predicted =
                0.3 * (s1 + 0.5 * d1 + 0.3 * d2) + trust * recalled / (1.0 + d1.abs()) + 0.1 * size;
            let error = (now - predicted.clamp(-1.0, 1.0)).abs();
            for (age, value) in [*now, s1, s2].into_iter().enumerate() {
                memory[MEMORY_HISTORY + age * MAX_SENSORS + i] = value;
            }
            memory[MEMORY_TRUST + i] = 0.9 * trust + 0.1 / (1.0 + 5.0 * error);
            errors.push(error);
        }
        let count = sensors.len() as f64;
        let error_mean =
            (1.5 - 0.5 * (count.min(64.0) / 50.0).min(1.0)) * errors.iter().sum::<f64>() / count;
        let momentum = 0.9 - (n / 1000.0).min(0.2);
        let before = memory[MEMORY_ERROR];
        let error = momentum * before + (1.0 - momentum) * error_mean;
        let confidence = 0.9 * memory[MEMORY_CONFIDENCE] + 0.1 / (1.0 + 5.0 * error_mean);
        let information = 0.95 * memory[MEMORY_INFORMATION] + 0.05 * size * (1.0 + variance);
        let idle = if sensors.iter().any(|s| *s != 0.0) {
            0.0
        } else {
            memory[MEMORY_IDLE] + 1.0
        };
        let norm = (information / 1.5).clamp(0.0, 1.0);
        let drive = if idle > 100.0 {
            0.95
        } else {
            (norm + confidence) / 2.0
        };
        let plateau = (memory[MEMORY_PLATEAU] + 1.0) * (1.0 - ramp(before - error, 0.0, 0.01));
        let novelty = (1.0 - memory[MEMORY_SIMILARITY] + 0.1 * (0.01 * n).sin()).clamp(0.0, 1.0);
        let eager =
            ((1.0 - norm) * (0.5 + 0.5 * novelty) + (plateau / 200.0).min(0.5) + 0.3).min(1.0);
        let explore = (eager * (0.8 + 0.7 * ramp(error - before, -0.01, 0.01))
            + 0.2 * (1.0 - confidence))
            .min(1.0);
        let boost = (1.0 + 4.0 * error).min(3.0);
        let strength = (0.1 + 0.7 * (1.0 - drive)) * (1.0 + 0.5 * (1.0 - confidence));
        let reward = f64::from(self.reward).clamp(-1.0, 1.0);
        let kept = [
            (MEMORY_ERROR, error),
            (MEMORY_CONFIDENCE, confidence),
            (MEMORY_INFORMATION, information),
            (MEMORY_IDLE, idle.min(1000.0)),
            (MEMORY_PLATEAU, plateau.min(1000.0)),
        ];
        kept.into_iter().for_each(|(at, value)| memory[at] = value);
        Modulation {
            drive,
            explore,
            novelty,
            error,
            error_mean,
            intensity: f64::from(self.coefficients.imprint)
                * (0.5 + 0.5 * reward)
                * strength
                * (0.1 + 0.9 * error_mean.min(1.0)),
            step: ((0.01 + 0.09 * (1.0 + n / 1000.0).log10()) * boost).min(0.3),
            rate: 0.1 * boost * f64::from(self.coefficients.error_drive),
            retention: f64::from(self.coefficients.retention) * (0.999 - 0.01 * norm),
            region_errors: std::array::from_fn(|region| {
                mean_of(errors.iter().skip(region).step_by(REGIONS)).map(|error| error.min(1.0))
            }),
            pattern: (0..content)
                .map(|c| mean_of(sensors.iter().skip(c).step_by(content)).unwrap_or(0.0))
                .collect(),
            pull: vec![0.0; OCTANTS * content],
        }
    }

    /// Step 3: every place that could be chosen if scores and thresholds differed a little, each
    /// with the difference that this requires; the first is the choice.
    pub fn places(&self, state: &State) -> Vec<(ImprintSite, f64)> {
        let mut memory: Vec<f64> = state.memory.iter().map(|v| f64::from(*v)).collect();
        let modulation = self.modulate(state, &mut memory);
        self.place(state, &modulation.pattern)
    }

    fn place(&self, state: &State, pattern: &[f64]) -> Vec<(ImprintSite, f64)> {
        let (size, content) = (self.shape.sites(), self.shape.content());
        let length = pattern.iter().map(|p| p * p).sum::<f64>().sqrt();
        let sites: Vec<Vec<f64>> = state
            .sites
            .chunks_exact(content)
            .map(|site| site.iter().map(|v| f64::from(*v)).collect())
            .collect();
        let squares: Vec<f64> = sites
            .iter()
            .map(|u| u.iter().map(|v| v * v).sum())
            .collect();
        let products: Vec<f64> = sites
            .iter()
            .map(|u| u.iter().zip(pattern).map(|(v, p)| v * p).sum())
            .collect();
        let split = |site: usize| {
            [
                site / (size[1] * size[2]),
                site / size[2] % size[1],
                site % size[2],
            ]
        };
        let cosines: Vec<f64> = products
            .iter()
            .zip(&squares)
            .map(|(product, square)| product / (length * square.sqrt() + 1e-6))
            .collect();
        let resonance = |site: usize| {
            let near = (0..sites.len()).filter(|other| {
                split(*other)
                    .into_iter()
                    .zip(split(site))
                    .all(|(a, b)| a.abs_diff(b) <= 1)
            });
            mean_of(near.map(|other| &products[other])).unwrap_or(0.0) / (length + 1e-6)
        };
        let all = || 0..sites.len();
        // The smaller of the margins of the score and of the energy.
        let known = all().map(|site| {
            (
                cosines[site],
                (cosines[site] - 0.9).min(2.0 - squares[site] / content as f64),
            )
        });
        let ways: [(ImprintSiteKind, Vec<(f64, f64)>); 4] = [
            (ImprintSiteKind::Existing, known.collect()),
            (
                ImprintSiteKind::Resonant,
                all().map(|site| (resonance(site), f64::INFINITY)).collect(),
            ),
            (
                ImprintSiteKind::Correlated,
                all().map(|site| (cosines[site], f64::INFINITY)).collect(),
            ),
            (
                ImprintSiteKind::Emptiest,
                all()
                    .map(|site| (-squares[site] / content as f64, f64::INFINITY))
                    .collect(),
            ),
        ];
        let thresholds = [0.9, 0.3, 0.1, f64::NEG_INFINITY];
        let mut found = Vec::new();
        // The score that the earlier kinds would have to lose for this one to be tried.
        let mut lost: f64 = 0.0;
        for ((kind, scores), threshold) in ways.into_iter().zip(thresholds) {
            let best = scores
                .iter()
                .filter(|(_, inside)| *inside > 0.0)
                .map(|(score, _)| *score)
                .fold(f64::NEG_INFINITY, f64::max);
            for (site, (score, inside)) in scores.iter().enumerate() {
                let short = (best - score)
                    .max(threshold - score)
                    .max(-inside)
                    .max(lost)
                    .max(0.0);
                let cell =
                    split(site).map(|place| place * self.shape.block() + self.shape.block() / 2);
                found.push((ImprintSite { kind, site, cell }, short));
            }
            let over = scores
                .iter()
                .map(|(score, inside)| (score - threshold).min(*inside))
                .fold(f64::NEG_INFINITY, f64::max);
            lost = lost.max(over.max(0.0));
        }
        // The sort is stable: among equals the first kind and the lowest site come first.
        found.sort_by(|a, b| a.1.total_cmp(&b.1));
        found
    }

    /// Step 4.
    fn evolve(
        &self,
        state: &State,
        modulation: &Modulation,
        place: ImprintSite,
        memory: &[f64],
        moved: &[f64],
    ) -> Vec<f64> {
        let (cells, channels, content) = (
            self.shape.cells(),
            self.shape.channels(),
            self.shape.content(),
        );
        let waves = Waves::new(self.options.seed);
        let phases = waves.phases(state.cycle);
        let mut next = vec![0.0; self.shape.elements()];
        for x in 0..cells[0] {
            for y in 0..cells[1] {
                for z in 0..cells[2] {
                    let at = self.shape.at([x, y, z], 0);
                    let wave = waves.at([x, y, z], &phases);
                    let cell = &mut next[at..at + channels];
                    self.evolve_cell(state, modulation, [x, y, z], wave, cell);
                    let away: Vec<usize> = [x, y, z]
                        .into_iter()
                        .zip(place.cell)
                        .map(|(a, b)| a.abs_diff(b))
                        .collect();
                    if away.iter().all(|away| *away <= 2) {
                        let intensity =
                            modulation.intensity * 0.8f64.powi(away.iter().sum::<usize>() as i32);
                        cell[..content]
                            .iter_mut()
                            .zip(&modulation.pattern)
                            .for_each(|(v, pattern)| *v += intensity * pattern);
                    }
                    let along =
                        |axis: usize| 2.0 * [x, y, z][axis] as f64 / (cells[axis] - 1) as f64 - 1.0;
                    let echo = f64::from(self.coefficients.echo);
                    let last = channels - DYNAMICS;
                    cell[last - 2] += 0.3
                        * echo
                        * (moved[0] * along(2) + moved.get(1).unwrap_or(&0.0) * along(1));
                    cell[last - 1] += 0.2 * echo * moved.iter().map(|m| m.abs()).sum::<f64>()
                        / moved.len() as f64;
                    let weight = memory[MEMORY_STRATEGIC_WEIGHT];
                    let pattern = &memory[MEMORY_STRATEGIC..][..self.shape.temporal()];
                    cell[content..last]
                        .iter_mut()
                        .zip(pattern)
                        .for_each(|(v, pattern)| *v = (1.0 - weight) * *v + weight * pattern);
                    let octant = [x, y, z]
                        .into_iter()
                        .zip(cells)
                        .fold(0, |octant, (place, size)| 2 * octant + 2 * place / size);
                    for (c, v) in cell[..content].iter_mut().enumerate() {
                        let here = f64::from(state.field[at + c]);
                        *v += modulation.pull[octant * content + c] - memory[MEMORY_PULL] * here
                            + 0.2 * memory[MEMORY_STRATEGIC_DRIVE];
                    }
                    let saturation = f64::from(self.coefficients.saturation);
                    cell[..last]
                        .iter_mut()
                        .for_each(|v| *v = saturation * (*v / saturation).tanh());
                }
            }
        }
        next
    }

    /// A cell before imprint, echo and saturation; its dynamics are complete.
    fn evolve_cell(
        &self,
        state: &State,
        modulation: &Modulation,
        place: [usize; 3],
        wave: f64,
        next: &mut [f64],
    ) {
        let (channels, content, c) = (
            self.shape.channels(),
            self.shape.content(),
            self.coefficients,
        );
        let evolving = channels - DYNAMICS;
        let old = |step: [isize; 3], channel: usize| self.neighbour(state, place, step, channel);
        let d: Vec<f64> = (0..DYNAMICS).map(|i| old([0; 3], evolving + i)).collect();
        let decay = |s: usize| {
            modulation.retention * (1.0 - f64::from(c.decay_depth) * (1.0 - sigmoid(d[s])))
        };
        let mean_decay = (0..4).map(decay).sum::<f64>() / 4.0;
        let diffusion: [f64; 3] = std::array::from_fn(|a| {
            f64::from(c.diffusion[a]) + f64::from(c.diffusion_depth[a]) * d[4 + a].tanh()
        });
        let coupling = f64::from(c.coupling)
            * sigmoid(d[12])
            * sigmoid(d[13])
            * (d[8..12].iter().sum::<f64>() / 4.0).tanh();
        let key = key(state.seed, state.cycle);
        let region = (0..3).fold(0, |region, axis| {
            4 * region + place[axis] * 4 / self.shape.cells()[axis]
        });
        let push = self.error_drive(modulation, place, region);
        for (channel, next) in next[..evolving].iter_mut().enumerate() {
            let here = old([0; 3], channel);
            let mut spread = 0.0;
            for (axis, rate) in diffusion.iter().enumerate() {
                let mut step = [0; 3];
                step[axis] = 1;
                spread += rate * (old(step, channel) + old(step.map(|s| -s), channel) - 2.0 * here);
            }
            let n = f64::from(draw(self.shape.at(place, channel) as u32, key)) / 21845f64.sqrt();
            let spontaneous =
                modulation.drive * (f64::from(c.noise) * n + 0.2 * f64::from(c.wave) * wave);
            *next = if channel < content {
                let mut around = 0.0;
                for step in 0..27isize {
                    let step = [step / 9 - 1, step / 3 % 3 - 1, step % 3 - 1];
                    around += if step == [0; 3] {
                        0.0
                    } else {
                        old(step, channel) / 26.0
                    };
                }
                decay(channel % 4) * (here + spread + coupling * around) + spontaneous + push
            } else {
                mean_decay * (0.85 * (here + spread) + 0.15 * old([0; 3], channel - 1))
                    + spontaneous
            };
        }

        let contents: Vec<f64> = (0..content).map(|channel| old([0; 3], channel)).collect();
        let mean = contents.iter().sum::<f64>() / content as f64;
        let variance = contents.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / content as f64;
        let quiet =
            contents.iter().filter(|v| (**v as f32).abs() < 0.1).count() as f64 / content as f64;
        let (s, error) = (
            modulation.step,
            modulation.region_errors[region].unwrap_or(0.0),
        );
        let targets = [
            2.0 - error * s,
            variance * s,
            0.5 * quiet * s,
            0.5 * s * (error * modulation.explore - 0.5),
        ];
        for (i, now) in d.iter().enumerate() {
            next[evolving + i] =
                (now + f64::from(c.dynamics_rate) * (targets[i / 4] - now)).clamp(-5.0, 5.0);
        }
    }

    /// F.
    fn error_drive(&self, modulation: &Modulation, place: [usize; 3], region: usize) -> f64 {
        let everywhere = modulation.rate * 0.05 * modulation.error;
        let Some(error) = modulation.region_errors[region] else {
            return everywhere;
        };
        let size = self.shape.cells().map(|size| size / 4);
        let farthest = (0..3)
            .map(|axis| (place[axis] % size[axis]).abs_diff(size[axis] / 2))
            .max()
            .unwrap_or(0);
        let part = ramp(error, 0.09, 0.11);
        let near = if farthest <= 1 {
            part * 2.0 * error
        } else {
            0.0
        };
        let far = if farthest <= 2 {
            -(1.0 - part) * 0.1 * (1.0 - error)
        } else {
            0.0
        };
        everywhere + modulation.rate * (near + far)
    }

    fn neighbour(&self, state: &State, place: [usize; 3], step: [isize; 3], channel: usize) -> f64 {
        let mut there = [0; 3];
        for axis in 0..3 {
            let size = self.shape.cells()[axis] as isize;
            let at = place[axis] as isize + step[axis];
            there[axis] = match self.options.boundary {
                Boundary::Periodic => at.rem_euclid(size) as usize,
                Boundary::Closed => at.clamp(0, size - 1) as usize,
                Boundary::Zero if at < 0 || at >= size => return 0.0,
                Boundary::Zero => at as usize,
            };
        }
        f64::from(state.field[self.shape.at(there, channel)])
    }

    /// Step 5, and the gradient of step 6.
    fn statistics(&self, field: &[f64], memory: &mut [f64]) -> [f64; 3] {
        let (cells, channels, content) = (
            self.shape.cells(),
            self.shape.channels(),
            self.shape.content(),
        );
        let contents = || {
            field
                .chunks_exact(channels)
                .flat_map(|cell| &cell[..content])
        };
        let count = contents().count() as f64;
        let mean = contents().sum::<f64>() / count;
        memory[MEMORY_MEAN] = mean;
        memory[MEMORY_SIZE] = contents().map(|v| v.abs()).sum::<f64>() / count;
        memory[MEMORY_VARIANCE] = contents().map(|v| (v - mean).powi(2)).sum::<f64>() / count;
        memory[MEMORY_TEMPORAL] = mean_of(
            field
                .chunks_exact(channels)
                .flat_map(|cell| &cell[content..channels - DYNAMICS])
                .map(|v| v.abs())
                .collect::<Vec<_>>()
                .iter(),
        )
        .unwrap_or(0.0);
        std::array::from_fn(|axis| {
            let slice = |at: usize| {
                let inside = field
                    .chunks_exact(channels)
                    .enumerate()
                    .filter(|(cell, _)| {
                        let place = [
                            cell / (cells[1] * cells[2]),
                            cell / cells[2] % cells[1],
                            cell % cells[2],
                        ];
                        place[axis] == at
                    });
                mean_of(inside.flat_map(|(_, cell)| &cell[..content])).unwrap_or(0.0)
            };
            slice(cells[axis] - 1) - slice(0)
        })
    }

    /// Step 6.
    fn motors(
        &self,
        state: &State,
        memory: &[f64],
        modulation: &Modulation,
        gradient: [f64; 3],
    ) -> Vec<f64> {
        let key = key(state.seed, state.cycle);
        let noise = |index: usize| {
            f64::from(draw(0u32.wrapping_sub(512) + index as u32, key)) / 21845f64.sqrt()
        };
        let confidence = memory[MEMORY_CONFIDENCE];
        let gain = (1.0
            + ramp(0.32 - confidence, 0.0, 0.04) * (0.5 + 2.0 * (0.3 - confidence).max(0.0)))
        .min(3.0);
        let motor = |j: usize| {
            let raw = match j {
                0 => 5.0 * gradient[0],
                1 => 5.0 * gradient[1],
                2 => memory[MEMORY_TEMPORAL] * memory[MEMORY_STRATEGIC_WEIGHT] / 0.3,
                3 => 0.5 * gradient[2],
                _ => 0.1 * noise(2 * j),
            };
            let explored = raw
                + 0.3
                    * f64::from(self.coefficients.exploration)
                    * modulation.explore
                    * noise(2 * j + 1);
            (gain * explored.tanh()).clamp(-1.0, 1.0)
        };
        (0..self.options.motors).map(motor).collect()
    }
}

fn mean_of<'a>(values: impl Iterator<Item = &'a f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    (count > 0.0).then(|| sum / count)
}
