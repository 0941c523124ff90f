//! One controller on many different rigs, each hanging at first.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};

use rayon::prelude::*;
use serde::Serialize;
use tectum::{Result, WorkProgress};

use crate::body::rig;
use crate::body::rig::disturbed::{Disturbances, DisturbedRig};
use crate::body::uniform::Uniform;
use crate::body::{Body, Start};
use crate::brain::Brain;

/// Length of a trial, seconds.
pub const TRIAL_S: f64 = 60.0;
/// The share of a trial for which a rig must be upright.
pub const TARGET_UPRIGHT_FRACTION: f64 = 0.9;
/// The uninterrupted upright time that was the target before, seconds.
pub const TARGET_STREAK_S: f64 = 30.0;

/// What the rigs of some trials have in common.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Conditions {
    /// Poles are longer or shorter by up to this share, drawn uniformly.
    pub length_spread: f64,
    /// The other disturbances, the same for all of them.
    #[serde(flatten)]
    pub common: Disturbances,
}

/// One rig for a minute.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Trial {
    /// Of start, length and noise.
    pub seed: u64,
    /// Length of the pole over that of the identified one.
    pub pole_length: f64,
    /// The share of the minute, from its beginning, within 10 degrees of upright.
    pub upright_fraction: f64,
    /// The longest uninterrupted upright time, seconds.
    pub longest_s: f64,
    /// When the longest upright time began, seconds.
    pub upright_from_s: f64,
}

/// Summary of many trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrialSummary {
    /// Trials.
    pub trials: usize,
    /// Those upright for [`TARGET_UPRIGHT_FRACTION`] or more.
    pub met_target: usize,
    /// Those upright for more than [`TARGET_STREAK_S`] without interruption.
    pub for_30_s: usize,
    /// The minimum share upright.
    pub min_upright: f64,
    /// The median share upright.
    pub median: f64,
}

/// Makes the controller of a trial.
pub type MakeController<'a> = &'a (dyn Fn() -> Result<Box<dyn Brain>> + Sync);

/// Runs a controller, rebuilt for each trial, on the rigs of the seeds from 0; the trials are
/// distributed over the threads, and the watch sees each that ends.
///
/// # Errors
/// Conditions that are invalid for a rig; what the controller reports; `Cancelled` if the watch
/// breaks it off.
pub fn rig_trials(
    conditions: &Conditions,
    seeds: u64,
    controller: MakeController<'_>,
    watch: &mut (dyn FnMut(WorkProgress<'_>) -> ControlFlow<()> + Send),
) -> Result<Vec<Trial>> {
    let watched = Mutex::new((0, watch));
    let one = |seed| {
        let trial = trial(conditions, seed, controller()?.as_mut())?;
        let mut watched = watched.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, watch) = &mut *watched;
        *done += 1;
        WorkProgress {
            stage: "trials",
            done: *done,
            total: seeds,
        }
        .report(&mut **watch)?;
        Ok(trial)
    };
    (0..seeds).into_par_iter().map(one).collect()
}

fn trial(conditions: &Conditions, seed: u64, brain: &mut dyn Brain) -> Result<Trial> {
    let share = Uniform::new(!seed).within(conditions.length_spread);
    let pole_length = conditions.common.pole_length * (1.0 + share);
    let mut plant = DisturbedRig::new(
        rig::RigParameters::default(),
        Disturbances {
            pole_length,
            ..conditions.common
        },
        Start::Hanging,
    )?;
    plant.reset(seed);
    let mut task = (rig::DESCRIPTOR.task)();
    let dt_s = plant.spec().dt_s;
    let periods = (TRIAL_S / dt_s).round() as u32;
    let mut observation = vec![0.0; plant.spec().observation.len()];
    let mut action = plant.spec().safe_action.clone();
    let (mut upright, mut run, mut longest, mut until) = (0u32, 0u32, 0u32, 0u32);
    for period in 0..periods {
        plant.observe(&mut observation);
        brain.tick(&observation, &mut action)?;
        plant.step(&action);
        let angle_rad = task.value(&plant);
        run = if task.measure().is_success(angle_rad) {
            run + 1
        } else {
            0
        };
        upright += u32::from(run > 0);
        if run > longest {
            (longest, until) = (run, period + 1);
        }
    }
    let upright_fraction = f64::from(upright) / f64::from(periods);
    let seconds = |periods: u32| f64::from(periods) * dt_s;
    Ok(Trial {
        seed,
        pole_length,
        upright_fraction,
        longest_s: seconds(longest),
        upright_from_s: seconds(until - longest),
    })
}

/// Counts trials.
pub fn summarize(trials: &[Trial]) -> TrialSummary {
    let mut shares: Vec<f64> = trials.iter().map(|trial| trial.upright_fraction).collect();
    shares.sort_by(f64::total_cmp);
    let count =
        |is_met: &dyn Fn(&Trial) -> bool| trials.iter().filter(|trial| is_met(trial)).count();
    TrialSummary {
        trials: trials.len(),
        met_target: count(&|trial| trial.upright_fraction >= TARGET_UPRIGHT_FRACTION),
        for_30_s: count(&|trial| trial.longest_s > TARGET_STREAK_S),
        min_upright: shares.first().copied().unwrap_or(f64::NAN),
        median: shares.get(shares.len() / 2).copied().unwrap_or(f64::NAN),
    }
}
