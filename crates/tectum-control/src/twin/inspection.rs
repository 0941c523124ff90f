//! How well a twin of the recorded rig predicts a recording, compared with methods that need no
//! learning.

use serde::Serialize;
use tectum::{Device, Error, Result, WorkProgress};

use super::ensemble::Ensemble;
use super::quantile::quantile;
use super::sequence::{
    CHANNEL_NAMES, CHANNELS, DataSplit, RowHistory, changes, part_of, samples, test_start,
};
use crate::body::rig::RigParameters;
use crate::body::rig::identification::{forecast, identify};
use crate::rig_csv::{DEAD_ZONE_DEG, RigRecording, wrapped_deg};

/// Steps ahead at which errors are reported.
pub const HORIZONS: [usize; 4] = [1, 5, 10, 25];

/// The prediction method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// The networks.
    Twin,
    /// The rig with constants identified from the recording without its end, from the start that
    /// best fits the same rows.
    Physics,
    /// The last change repeated.
    ConstantVelocity,
    /// The recorded velocity applied for one step.
    RecordedVelocity,
    /// No change.
    Persistence,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 5] = [
        Self::Twin,
        Self::Physics,
        Self::ConstantVelocity,
        Self::RecordedVelocity,
        Self::Persistence,
    ];

    /// The name that is printed.
    pub fn name(self) -> &'static str {
        match self {
            Self::Twin => "twin",
            Self::Physics => "identified physics",
            Self::ConstantVelocity => "constant velocity",
            Self::RecordedVelocity => "recorded velocity",
            Self::Persistence => "persistence",
        }
    }
}

/// Sizes of errors.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ErrorStats {
    /// What made them.
    pub method: Method,
    /// The channel's name.
    pub channel: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// The median size.
    pub median: f64,
    /// The 90th percentile of the size.
    pub p90: f64,
    /// Root of the mean square.
    pub rms: f64,
}

/// Errors a number of steps ahead.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Horizon {
    /// Steps ahead.
    pub steps: usize,
    /// Rows that were predicted.
    pub rows: usize,
    /// Errors of the angle by method.
    pub errors: Vec<ErrorStats>,
}

/// The fraction of errors within one and two of the deviations that the networks report.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Coverage {
    /// The channel's name.
    pub channel: &'static str,
    /// Within one deviation and within two; a Gaussian's are
    /// [`GAUSSIAN_COVERAGE`](super::GAUSSIAN_COVERAGE).
    pub within: [f64; 2],
    /// The median deviation, in the channel's unit.
    pub deviation: f64,
}

/// The result of an inspection.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// Rows of the recording.
    pub rows: usize,
    /// Sensor jumps.
    pub jumps: usize,
    /// Rows affected by a jump, which are left out.
    pub jump_rows: usize,
    /// Readings of the dead zone.
    pub dead_zone_rows: usize,
    /// The first row of the test part at the end.
    pub test_start: usize,
    /// Rows of the end whose last readings and next reading contain neither a jump nor the dead
    /// zone.
    pub usable: usize,
    /// Errors of one step there, by channel and method.
    pub one_step: Vec<ErrorStats>,
    /// Rows of the end without a jump from the row before to the row after, including the dead
    /// zone.
    pub without_jump: usize,
    /// Errors of the angle there: in the dead zone, and where the last rows are not usable, twin
    /// and physics use persistence (in it) or constant velocity (elsewhere).
    pub angle_without_jump: Vec<ErrorStats>,
    /// Rows of those that the networks could predict.
    pub predictable_rows: usize,
    /// Errors of the angle some steps ahead, every method fed with its own predictions.
    pub horizons: Vec<Horizon>,
    /// How often errors stay within the networks' reported deviation.
    pub coverage: Vec<Coverage>,
}

/// Compares an ensemble with the last 15 % of a recording.
///
/// # Errors
/// `Data` for a recording from which no rig can be identified, or with too few usable rows at its
/// end; what the device reports.
pub fn inspect(
    ensemble: &Ensemble,
    recording: &RigRecording,
    device: &Device,
) -> Result<Inspection> {
    let layout = ensemble.layout;
    let tested = test_start(recording.len());
    let rig = identify(&part_of(recording, 0..tested), &mut WorkProgress::ignore)?.parameters;
    let usable = layout.rows_of(recording, DataSplit::Test, tested, 1);
    if usable.len() < 20 {
        return Err(Error::data(format!(
            "the recording has {} usable rows in its last 15 %; 20 are needed",
            usable.len()
        )));
    }
    let view = Evaluation {
        ensemble,
        recording,
        rig: &rig,
        device,
    };
    let (one_step, coverage) = view.one_step(&usable)?;
    let is_jump_free = |row: &usize| (row - 1..row + 2).all(|row| recording.angle_is_valid[row]);
    let without_jump: Vec<usize> = (tested.max(1)..recording.len() - 1)
        .filter(is_jump_free)
        .collect();
    let angle_without_jump = view.without_jump(&without_jump, &usable)?;
    let predictable_rows = without_jump
        .iter()
        .filter(|row| usable.binary_search(row).is_ok())
        .count();
    let horizons = HORIZONS
        .into_iter()
        .map(|steps| view.horizon(steps, tested))
        .collect::<Result<_>>()?;
    Ok(Inspection {
        rows: recording.len(),
        jumps: recording.jumps,
        jump_rows: recording
            .angle_is_valid
            .iter()
            .filter(|valid| !**valid)
            .count(),
        dead_zone_rows: recording
            .pend_position_deg
            .iter()
            .filter(|angle| **angle == DEAD_ZONE_DEG)
            .count(),
        test_start: tested,
        usable: usable.len(),
        one_step,
        without_jump: without_jump.len(),
        angle_without_jump,
        predictable_rows,
        horizons,
        coverage,
    })
}

struct Evaluation<'a> {
    ensemble: &'a Ensemble,
    recording: &'a RigRecording,
    rig: &'a RigParameters,
    device: &'a Device,
}

impl Evaluation<'_> {
    /// The next row by a method that needs no network.
    fn next(&self, method: Method, row: usize) -> [f64; CHANNELS] {
        let r = self.recording;
        let [position, velocity, angle] = [
            r.la_position_in[row],
            r.pend_velocity_deg_per_s[row],
            r.pend_position_deg[row],
        ];
        match method {
            Method::Physics => forecast(self.rig, r, row, self.ensemble.layout.rows(), 1)[0],
            Method::ConstantVelocity => [
                2.0 * position - r.la_position_in[row - 1],
                2.0 * velocity - r.pend_velocity_deg_per_s[row - 1],
                angle + wrapped_deg(angle - r.pend_position_deg[row - 1]),
            ],
            Method::RecordedVelocity => [
                position,
                velocity,
                angle + velocity * r.elapsed_ms[row + 1] / 1000.0,
            ],
            Method::Twin | Method::Persistence => [position, velocity, angle],
        }
    }

    /// The prediction minus the actual value.
    fn off(&self, row: usize, next: [f64; CHANNELS]) -> [f64; CHANNELS] {
        let r = self.recording;
        [
            next[0] - r.la_position_in[row],
            next[1] - r.pend_velocity_deg_per_s[row],
            wrapped_deg(next[2] - r.pend_position_deg[row]),
        ]
    }

    fn one_step(&self, rows: &[usize]) -> Result<(Vec<ErrorStats>, Vec<Coverage>)> {
        let ensemble = self.ensemble;
        let samples = samples(
            self.recording,
            ensemble.layout,
            rows,
            &ensemble.mean,
            &ensemble.deviation,
        );
        let told = ensemble
            .compile_for(self.device, rows.len())?
            .predict(&samples.features)?;
        let wanted = changes(self.recording, rows);
        let mut errors = Vec::new();
        for method in Method::ALL {
            let off: Vec<[f64; CHANNELS]> = match method {
                Method::Twin => {
                    let pairs = told.iter().zip(wanted.chunks_exact(CHANNELS));
                    pairs
                        .map(|(told, wanted)| std::array::from_fn(|c| told.mean[c] - wanted[c]))
                        .collect()
                }
                _ => rows
                    .iter()
                    .map(|&row| self.off(row + 1, self.next(method, row)))
                    .collect(),
            };
            errors.extend((0..CHANNELS).map(|channel| {
                sizes(
                    method,
                    channel,
                    off.iter()
                        .map(|off| wrapped_if(channel, off[channel]))
                        .collect(),
                )
            }));
        }
        let coverage = |channel: usize| {
            let noise = f64::from(ensemble.noise[channel]);
            let sigma = |told: &super::ensemble::Prediction| told.spread[channel].hypot(noise);
            let pairs = told.iter().zip(wanted.chunks_exact(CHANNELS));
            let parts: Vec<f64> = pairs
                .map(|(told, wanted)| (told.mean[channel] - wanted[channel]).abs() / sigma(told))
                .collect();
            let within = [1.0, 2.0].map(|limit| {
                parts.iter().filter(|part| **part <= limit).count() as f64 / parts.len() as f64
            });
            Coverage {
                channel: CHANNEL_NAMES[channel].0,
                within,
                deviation: quantile(told.iter().map(sigma).collect(), 0.5),
            }
        };
        Ok((errors, (0..CHANNELS).map(coverage).collect()))
    }

    fn without_jump(&self, rows: &[usize], usable: &[usize]) -> Result<Vec<ErrorStats>> {
        let ensemble = self.ensemble;
        let samples = samples(
            self.recording,
            ensemble.layout,
            usable,
            &ensemble.mean,
            &ensemble.deviation,
        );
        let told = ensemble
            .compile_for(self.device, usable.len())?
            .predict(&samples.features)?;
        let angle = |method: Method, row: usize| {
            let at = usable.binary_search(&row);
            let stand_in = if self.recording.pend_position_deg[row] == DEAD_ZONE_DEG {
                Method::Persistence
            } else {
                Method::ConstantVelocity
            };
            let next = match (method, at) {
                (Method::Twin, Ok(at)) => ensemble.layout.next(
                    &RowHistory::of(self.recording, ensemble.layout, row),
                    told[at].mean,
                ),
                (Method::Twin | Method::Physics, Err(_)) => self.next(stand_in, row),
                _ => self.next(method, row),
            };
            self.off(row + 1, next)[2]
        };
        Ok(Method::ALL
            .into_iter()
            .map(|method| {
                sizes(
                    method,
                    2,
                    rows.iter().map(|row| angle(method, *row)).collect(),
                )
            })
            .collect())
    }

    fn horizon(&self, steps: usize, tested: usize) -> Result<Horizon> {
        let layout = self.ensemble.layout;
        let rows = layout.rows_of(self.recording, DataSplit::Test, tested, steps);
        if rows.is_empty() {
            return Ok(Horizon {
                steps,
                rows: 0,
                errors: Vec::new(),
            });
        }
        let mut pasts: Vec<RowHistory> = rows
            .iter()
            .map(|&row| RowHistory::of(self.recording, layout, row))
            .collect();
        let mut networks = self.ensemble.compile_for(self.device, rows.len())?;
        for step in 1..=steps {
            let mut features = Vec::with_capacity(rows.len() * layout.features());
            pasts
                .iter()
                .for_each(|past| layout.encode(past, &mut features));
            for ((past, told), row) in pasts
                .iter_mut()
                .zip(networks.predict(&features)?)
                .zip(&rows)
            {
                let known = (row + step + 1).min(self.recording.len() - 1);
                past.push(
                    layout.next(past, told.mean),
                    self.recording.cmd_volts[known],
                    self.recording.elapsed_ms[known] / 1000.0,
                );
            }
        }
        let ahead = |method: Method, at: usize| {
            let (row, r) = (rows[at], self.recording);
            let seconds: f64 = r.elapsed_ms[row + 1..row + 1 + steps].iter().sum::<f64>() / 1000.0;
            let angle = r.pend_position_deg[row];
            let told = match method {
                Method::Twin => pasts[at].angle[layout.lags],
                Method::Physics => forecast(self.rig, r, row, layout.rows(), steps)[steps - 1][2],
                Method::ConstantVelocity => {
                    angle + steps as f64 * wrapped_deg(angle - r.pend_position_deg[row - 1])
                }
                Method::RecordedVelocity => angle + seconds * r.pend_velocity_deg_per_s[row],
                Method::Persistence => angle,
            };
            wrapped_deg(told - r.pend_position_deg[row + steps])
        };
        let errors = Method::ALL.into_iter().map(|method| {
            sizes(
                method,
                2,
                (0..rows.len()).map(|at| ahead(method, at)).collect(),
            )
        });
        Ok(Horizon {
            steps,
            rows: rows.len(),
            errors: errors.collect(),
        })
    }
}

fn wrapped_if(channel: usize, off: f64) -> f64 {
    if channel == 2 { wrapped_deg(off) } else { off }
}

fn sizes(method: Method, channel: usize, off: Vec<f64>) -> ErrorStats {
    let sizes: Vec<f64> = off.into_iter().map(f64::abs).collect();
    let rms =
        (sizes.iter().map(|size| size * size).sum::<f64>() / sizes.len().max(1) as f64).sqrt();
    let (channel, unit) = CHANNEL_NAMES[channel];
    ErrorStats {
        method,
        channel,
        unit,
        median: quantile(sizes.clone(), 0.5),
        p90: quantile(sizes, 0.9),
        rms,
    }
}
