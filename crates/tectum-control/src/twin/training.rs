//! Training a twin on transitions.

use std::ops::ControlFlow;

use tectum::{Device, Error, Result, Session};

use super::fit::{Samples, TrainingReport, fit};
use super::{Network, Transitions, Twin, TwinLayout, TwinRecipe};

/// The share of the transitions that is held out, and their maximum number.
const HELD_OUT: usize = 10;
const MAX_HELD_OUT: usize = 4096;

/// Changes \[n, channels\] minus each channel's mean, divided by its deviation.
pub(super) fn targets(changes: &[f32], mean: &[f32], deviation: &[f32]) -> Vec<f32> {
    let channels = mean.len();
    changes
        .iter()
        .enumerate()
        .map(|(i, change)| (change - mean[i % channels]) / deviation[i % channels])
        .collect()
}

/// Trains a twin on a device. The same seed and device give the same weights.
///
/// `progress` receives the steps done and the latest loss, and says whether training continues; if
/// not, the twin has the weights reached so far.
///
/// # Errors
/// `Invalid` if there are fewer than 100 transitions or the loss is not a number; what the device
/// reports.
pub fn train(
    layout: &TwinLayout,
    transitions: &Transitions,
    recipe: &TwinRecipe,
    device: &Device,
    seed: u64,
    progress: impl FnMut(usize, f32) -> ControlFlow<()>,
) -> Result<(Twin, TrainingReport)> {
    if transitions.len < 100 || recipe.steps == 0 || recipe.batch == 0 {
        return Err(Error::invalid(format!(
            "twin: {} transitions, {} steps of {}; at least 100, 1 and 1 are needed",
            transitions.len, recipe.steps, recipe.batch
        )));
    }
    let channels = layout.channels.len();
    let network = Network::new(layout.features(), &recipe.hidden, channels)?;
    let (change_mean, change_deviation) = transitions.change_statistics(channels);
    let targets = targets(&transitions.changes, &change_mean, &change_deviation);
    let kept = transitions.len - (transitions.len / HELD_OUT).min(MAX_HELD_OUT);
    let (seen, unseen) = transitions.features.split_at(kept * network.features());
    let (wanted, unwanted) = targets.split_at(kept * channels);
    let [samples, held_out] =
        [(seen, wanted), (unseen, unwanted)].map(|(features, targets)| Samples {
            features: features.to_vec(),
            targets: targets.to_vec(),
            physics: None,
        });
    let (weights, report) = fit(
        &network,
        recipe,
        &network.initial_weights(seed),
        [&samples, &held_out],
        &mut Session::new(device),
        seed,
        progress,
    )?;
    Ok((
        Twin {
            layout: layout.clone(),
            network,
            weights,
            change_mean,
            change_deviation,
        },
        report,
    ))
}
