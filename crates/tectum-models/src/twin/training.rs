//! Training a twin: AdamW on the mean squared error of the normalised change, one plan a step.

use std::time::Instant;

use tectum::kernel::random;
use tectum::{DType, Device, Error, Executable, Plan, PlanBuilder, Result, View};

use super::{Network, Transitions, Twin, TwinLayout, TwinRecipe};

/// Steps over which the learning rate rises.
const WARM_UP: usize = 50;
const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
/// The share of the transitions that is held out, and the most of them.
const HELD_OUT: usize = 10;
const MOST_HELD_OUT: usize = 4096;

/// How training went.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct TrainingReport {
    /// Transitions trained on.
    pub transitions: usize,
    /// Transitions held out.
    pub held_out: usize,
    /// Steps taken.
    pub steps: usize,
    /// Mean squared error of the first batch, in units of the changes' variance.
    pub first_loss: f32,
    /// The same, the mean of the last hundred batches.
    pub last_loss: f32,
    /// The same on the transitions held out; what predicting the mean change would give is 1.
    pub held_out_loss: f32,
    /// Wall time.
    pub seconds: f64,
}

/// A compiled training step.
struct Step {
    run: Executable,
    slots: StepSlots,
}

/// The views of a training step that the host fills or reads.
#[derive(Debug, Clone, Copy)]
struct StepSlots {
    x: View,
    target: View,
    schedule: View,
    weights: View,
    loss: View,
}

/// Trains a twin on a device. The same seed and device give the same weights.
///
/// `progress` is told steps done and the latest loss.
///
/// # Errors
/// `Invalid` if there are fewer than 100 transitions or the loss is not a number; what the device reports.
pub fn train(
    layout: &TwinLayout,
    transitions: &Transitions,
    recipe: &TwinRecipe,
    device: &Device,
    seed: u64,
    mut progress: impl FnMut(usize, f32),
) -> Result<(Twin, TrainingReport)> {
    if transitions.len < 100 || recipe.steps == 0 || recipe.batch == 0 {
        return Err(Error::invalid(format!(
            "twin: {} transitions, {} steps of {}; at least 100, 1 and 1 are needed",
            transitions.len, recipe.steps, recipe.batch
        )));
    }
    let start = Instant::now();
    let channels = layout.channels.len();
    let network = Network::new(layout.features(), &recipe.hidden, channels)?;
    let (change_mean, change_deviation) = transitions.change_statistics(channels);
    let targets: Vec<f32> = transitions
        .changes
        .iter()
        .enumerate()
        .map(|(i, change)| (change - change_mean[i % channels]) / change_deviation[i % channels])
        .collect();
    let held_out = (transitions.len / HELD_OUT).min(MOST_HELD_OUT);
    let kept = transitions.len - held_out;
    let mut step = Step::compile(&network, recipe, device)?;
    step.run.write_state(step.slots.weights, &network.initial_weights(seed))?;
    let mut losses = Vec::with_capacity(recipe.steps);
    for index in 0..recipe.steps {
        step.fill_batch(&network, transitions, &targets, kept, [seed as u32, index as u32]);
        step.run.input::<f32>(step.slots.schedule).copy_from_slice(&schedule(recipe, index));
        step.run.run()?;
        let loss = step.run.output::<f32>(step.slots.loss)[0];
        if !loss.is_finite() {
            return Err(Error::invalid(format!("twin: the loss is {loss} at step {index}; a lower learning rate is needed")));
        }
        losses.push(loss);
        progress(index + 1, loss);
    }
    let weights = step.run.read_state::<f32>(step.slots.weights)?;
    let rows = |data: &[f32], width: usize| data[kept * width..].to_vec();
    let held_out_loss = loss_of(&network, &weights, rows(&transitions.features, network.features()), rows(&targets, channels), device)?;
    let last = &losses[losses.len().saturating_sub(100)..];
    let report = TrainingReport {
        transitions: kept,
        held_out,
        steps: recipe.steps,
        first_loss: losses[0],
        last_loss: last.iter().sum::<f32>() / last.len() as f32,
        held_out_loss,
        seconds: start.elapsed().as_secs_f64(),
    };
    Ok((Twin { layout: layout.clone(), network, weights, change_mean, change_deviation }, report))
}

/// Learning rate, the two corrections of AdamW's moments, and weight decay at a step.
fn schedule(recipe: &TwinRecipe, step: usize) -> [f32; 4] {
    let progress = step as f32 / recipe.steps as f32;
    let rise = ((step + 1) as f32 / WARM_UP as f32).min(1.0);
    let fall = 0.5 * (1.0 + (std::f32::consts::PI * progress).cos()) + 0.01;
    let unbias = |beta: f32| (1.0 / (1.0 - f64::from(beta).powi(step as i32 + 1))) as f32;
    [recipe.learning_rate * rise * fall, unbias(BETA1), unbias(BETA2), recipe.weight_decay]
}

/// The plan of one training step.
///
/// # Errors
/// `Invalid` for a batch of nothing.
pub fn step_plan(network: &Network, recipe: &TwinRecipe) -> Result<Plan> {
    record_step(network, recipe).map(|(plan, _)| plan)
}

fn record_step(network: &Network, recipe: &TwinRecipe) -> Result<(Plan, StepSlots)> {
    let batch = recipe.batch;
    let (mut builder, input, output) = network.builder(batch)?;
    let wanted = builder.input("target", [batch, network.channels()])?;
    let loss_node = builder.mse(output, wanted)?;
    builder.output("loss", loss_node)?;
    let graph = builder.finish()?.gradients(loss_node)?;

    let mut plan = PlanBuilder::new("twin.train");
    let x = plan.input("features", DType::F32, batch * network.features());
    let target = plan.input("target", DType::F32, batch * network.channels());
    let schedule = plan.input("schedule", DType::F32, 4);
    let [weights, first, second] = ["weights", "first_moment", "second_moment"].map(|name| plan.state(name, DType::F32, network.parameters().len()));
    let loss = plan.output("loss", DType::F32, 1);
    // A state, so that the padding between the parameters has a gradient of 0.
    let gradient = plan.state("gradient", DType::F32, network.parameters().len());
    let mut feeds = vec![(input, x), (wanted, target)];
    feeds.extend(network.parameters().feeds(weights)?);
    let mut results = vec![(loss_node, loss)];
    results.extend(network.parameters().gradient_outputs(&graph, gradient)?);
    graph.record(&mut plan, &feeds, &results)?;
    plan.adamw(schedule, gradient, [weights, first, second], BETA1, BETA2)?;
    Ok((plan.finish()?, StepSlots { x, target, schedule, weights, loss }))
}

impl Step {
    fn compile(network: &Network, recipe: &TwinRecipe, device: &Device) -> Result<Self> {
        let (plan, slots) = record_step(network, recipe)?;
        Ok(Self { run: plan.compile(device)?, slots })
    }

    /// A batch drawn with replacement by the counter `[seed, step]`.
    fn fill_batch(&mut self, network: &Network, transitions: &Transitions, targets: &[f32], kept: usize, key: [u32; 2]) {
        let (features, channels) = (network.features(), network.channels());
        let rows = self.slots.x.len() / features;
        let chosen = |row: usize| {
            let word = random::philox([row as u32 / 4, 0, 0, 1], key)[row % 4];
            ((u64::from(word) * kept as u64) >> 32) as usize
        };
        let x = self.run.input::<f32>(self.slots.x);
        for (row, x) in x.chunks_mut(features).enumerate() {
            x.copy_from_slice(&transitions.features[chosen(row) * features..][..features]);
        }
        let target = self.run.input::<f32>(self.slots.target);
        for (row, target) in target.chunks_mut(channels).take(rows).enumerate() {
            target.copy_from_slice(&targets[chosen(row) * channels..][..channels]);
        }
    }
}

/// The loss on rows that were held out.
fn loss_of(network: &Network, weights: &[f32], features: Vec<f32>, targets: Vec<f32>, device: &Device) -> Result<f32> {
    let (mut builder, input, output) = network.builder(targets.len() / network.channels())?;
    let wanted = builder.input("target", [targets.len() / network.channels(), network.channels()])?;
    let loss_node = builder.mse(output, wanted)?;
    builder.output("loss", loss_node)?;
    let graph = builder.finish()?;
    let mut plan = PlanBuilder::new("twin.loss");
    let x = plan.input("features", DType::F32, features.len());
    let target = plan.input("target", DType::F32, targets.len());
    let packed = plan.state("weights", DType::F32, weights.len());
    let loss = plan.output("loss", DType::F32, 1);
    let mut feeds = vec![(input, x), (wanted, target)];
    feeds.extend(network.parameters().feeds(packed)?);
    graph.record(&mut plan, &feeds, &[(loss_node, loss)])?;
    let mut run = plan.finish()?.compile(device)?;
    run.write_state(packed, weights)?;
    run.input::<f32>(x).copy_from_slice(&features);
    run.input::<f32>(target).copy_from_slice(&targets);
    run.run()?;
    Ok(run.output::<f32>(loss)[0])
}
