//! Fitting a network to samples: AdamW, one plan a step.

use std::ops::ControlFlow;
use std::time::Instant;

use tectum::kernel::random;
use tectum::{DType, Device, Error, Executable, Plan, PlanBuilder, Result, Session, View};
use tectum_graph::{Graph, GraphBuilder, Node};

use super::{Network, TwinRecipe};

/// Steps over which the learning rate rises.
const WARM_UP: usize = 50;
const BETA1: f32 = 0.9;
const BETA2: f32 = 0.999;
/// How often a fit that may stop early evaluates the held-out samples.
const EVALUATIONS: usize = 60;

/// Samples that a network is fitted to, or compared with.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    /// \[n, features\]
    pub features: Vec<f32>,
    /// \[n, channels\], in units of each channel's deviation.
    pub targets: Vec<f32>,
    /// The physics equation of the samples; only if the recipe gives it a weight.
    pub physics: Option<Physics>,
}

/// A linear equation that the outputs y of each sample should meet: Σ slope·y = value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Physics {
    /// \[n, channels\]
    pub slopes: Vec<f32>,
    /// \[n\]
    pub values: Vec<f32>,
}

/// How a fit went.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct TrainingReport {
    /// Samples fitted to.
    pub transitions: usize,
    /// Samples held out.
    pub held_out: usize,
    /// Steps taken.
    pub steps: usize,
    /// The step whose weights were kept: the last, or the best on the held-out samples.
    pub best_step: usize,
    /// Loss of the first batch; a mean squared error in units of the changes' variance unless the
    /// recipe says otherwise.
    pub first_loss: f32,
    /// The mean loss of the last hundred batches.
    pub last_loss: f32,
    /// The loss on the held-out samples, without the physics term; predicting the mean change would
    /// give 1 for the squared error.
    pub held_out_loss: f32,
    /// Step, loss of its batch and loss on the held-out samples, if a fit may stop early.
    pub curve: Vec<(usize, f32, f32)>,
    /// Wall time.
    pub seconds: f64,
}

/// Fits a network's weights, starting from `start`, on the session's device, which counts the runs.
/// The same start, seed and device give the same weights.
///
/// `progress` receives the steps done and the latest loss, and says whether the fit continues; if
/// not, the weights reached so far are returned, as after the last step.
///
/// # Errors
/// `Invalid` without samples or if the loss is not a number; what the device reports.
pub fn fit(
    network: &Network,
    recipe: &TwinRecipe,
    start: &[f32],
    [samples, held_out]: [&Samples; 2],
    session: &mut Session,
    seed: u64,
    mut progress: impl FnMut(usize, f32) -> ControlFlow<()>,
) -> Result<(Vec<f32>, TrainingReport)> {
    let begin = Instant::now();
    let count = samples.targets.len() / network.channels();
    if count == 0 || held_out.targets.is_empty() || recipe.steps == 0 || recipe.batch == 0 {
        return Err(Error::invalid(
            "twin: nothing to fit to, nothing held out, or no steps",
        ));
    }
    let mut step = Step::compile(network, recipe, session.device())?;
    let mut judge = Validator::compile(network, recipe, held_out, session.device())?;
    session.uses(&step.run);
    session.uses(&judge.run);
    step.run.write_state(step.slots.weights, start)?;
    let mut losses = Vec::with_capacity(recipe.steps);
    let mut curve = Vec::new();
    let mut best: Option<BestWeights> = None;
    let evaluation_interval = (recipe.steps / EVALUATIONS).max(1);
    for index in 0..recipe.steps {
        step.fill_batch(network, samples, count, seed, index as u32);
        step.run
            .input::<f32>(step.slots.schedule)
            .copy_from_slice(&schedule(recipe, index));
        session.run(&mut step.run)?;
        let loss = step.run.output::<f32>(step.slots.loss)[0];
        if !loss.is_finite() {
            return Err(Error::invalid(format!(
                "twin: the loss is {loss} at step {index}; a lower learning rate is needed"
            )));
        }
        losses.push(loss);
        if progress(index + 1, loss).is_break() {
            break;
        }
        let Some(patience) = recipe.patience else {
            continue;
        };
        if (index + 1) % evaluation_interval != 0 {
            continue;
        }
        let weights = step.run.read_state::<f32>(step.slots.weights)?;
        let judged = judge.loss(&weights, session)?;
        curve.push((index + 1, loss, judged));
        if BestWeights::improves(&best, judged) {
            best = Some(BestWeights {
                loss: judged,
                step: index + 1,
                weights,
            });
        } else if best
            .as_ref()
            .is_some_and(|best| index + 1 - best.step >= patience)
        {
            break;
        }
    }
    let (best_step, weights) = match best {
        Some(best) => (best.step, best.weights),
        None => (
            losses.len(),
            step.run.read_state::<f32>(step.slots.weights)?,
        ),
    };
    let held_out_loss = judge.loss(&weights, session)?;
    if !held_out_loss.is_finite() {
        return Err(Error::invalid(format!(
            "twin: the loss on what was held out is {held_out_loss} at step {best_step}; finite samples are needed"
        )));
    }
    let last = &losses[losses.len().saturating_sub(100)..];
    let report = TrainingReport {
        transitions: count,
        held_out: held_out.targets.len() / network.channels(),
        steps: losses.len(),
        best_step,
        first_loss: losses[0],
        last_loss: last.iter().sum::<f32>() / last.len() as f32,
        held_out_loss,
        curve,
        seconds: begin.elapsed().as_secs_f64(),
    };
    Ok((weights, report))
}

/// The weights that were best on the held-out samples.
pub(super) struct BestWeights {
    pub loss: f32,
    pub step: usize,
    pub weights: Vec<f32>,
}

impl BestWeights {
    /// Whether a loss is below the best so far; false for NaN.
    pub fn improves(best: &Option<BestWeights>, loss: f32) -> bool {
        loss.is_finite() && best.as_ref().is_none_or(|best| loss < best.loss)
    }
}

/// The loss of weights on the held-out samples, without the physics term.
///
/// # Errors
/// What the device reports.
pub(super) fn held_out_loss(
    network: &Network,
    recipe: &TwinRecipe,
    held_out: &Samples,
    device: &Device,
    weights: &[f32],
) -> Result<f32> {
    Validator::compile(network, recipe, held_out, device)?.loss(weights, &mut Session::new(device))
}

/// Learning rate, the two corrections of AdamW's moments, and weight decay at a step.
fn schedule(recipe: &TwinRecipe, step: usize) -> [f32; 4] {
    let progress = step as f32 / recipe.steps as f32;
    let rise = ((step + 1) as f32 / WARM_UP as f32).min(1.0);
    let fall = 0.5 * (1.0 + (std::f32::consts::PI * progress).cos()) + 0.01;
    let unbias = |beta: f32| (1.0 / (1.0 - f64::from(beta).powi(step as i32 + 1))) as f32;
    [
        recipe.learning_rate * rise * fall,
        unbias(BETA1),
        unbias(BETA2),
        recipe.weight_decay,
    ]
}

/// The mean squared error, or Huber's loss where the recipe has a bound: r²/2 up to it, bound·(|r|
/// − bound/2) beyond.
///
/// # Source
/// Huber, *Robust Estimation of a Location Parameter*, Ann. Math. Stat. 35 (1964).
pub(super) fn loss(
    builder: &mut GraphBuilder,
    recipe: &TwinRecipe,
    output: Node,
    wanted: Node,
) -> Result<Node> {
    let Some(bound) = recipe.huber else {
        return builder.mse(output, wanted);
    };
    let off = builder.sub(output, wanted)?;
    let turned = builder.scale(off, -1.0)?;
    let (above, below) = (builder.relu(off)?, builder.relu(turned)?);
    let size = builder.add(above, below)?;
    let limit = builder.constant(&[bound], [1, 1])?;
    let past = builder.sub(size, limit)?;
    let beyond = builder.relu(past)?;
    let within = builder.sub(size, beyond)?;
    let square = builder.mul(within, within)?;
    let (curved, straight) = (builder.scale(square, 0.5)?, builder.scale(beyond, bound)?);
    let each = builder.add(curved, straight)?;
    builder.mean(each)
}

/// A compiled step.
struct Step {
    run: Executable,
    slots: StepSlots,
}

/// The views of a step that the host fills or reads.
#[derive(Debug, Clone, Copy)]
struct StepSlots {
    x: View,
    target: View,
    /// Slopes and values.
    physics: Option<[View; 2]>,
    schedule: View,
    weights: View,
    loss: View,
}

/// The plan of one step.
///
/// # Errors
/// `Invalid` for an empty batch.
pub fn step_plan(network: &Network, recipe: &TwinRecipe) -> Result<Plan> {
    record_step(network, recipe).map(|(plan, _)| plan)
}

/// The loss of a batch with its gradients.
pub(super) struct Objective {
    pub graph: Graph,
    pub input: Node,
    pub wanted: Node,
    /// Slopes and values.
    pub equation: Option<[Node; 2]>,
    pub loss: Node,
}

pub(super) fn objective(network: &Network, recipe: &TwinRecipe) -> Result<Objective> {
    let (batch, channels) = (recipe.batch, network.channels());
    let (mut builder, input, output) = network.builder(batch)?;
    let wanted = builder.input("target", [batch, channels])?;
    let mut loss = loss(&mut builder, recipe, output, wanted)?;
    let mut equation = None;
    if recipe.physics_weight > 0.0 {
        let (slopes, values) = (
            builder.input("slopes", [batch, channels])?,
            builder.input("values", [batch, 1])?,
        );
        let products = builder.mul(output, slopes)?;
        let sums = builder.sum_over_columns(products)?;
        let broken = builder.mse(sums, values)?;
        let weighed = builder.scale(broken, recipe.physics_weight)?;
        loss = builder.add(loss, weighed)?;
        equation = Some([slopes, values]);
    }
    builder.output("loss", loss)?;
    Ok(Objective {
        graph: builder.finish()?.gradients(loss)?,
        input,
        wanted,
        equation,
        loss,
    })
}

fn record_step(network: &Network, recipe: &TwinRecipe) -> Result<(Plan, StepSlots)> {
    let (batch, channels) = (recipe.batch, network.channels());
    let Objective {
        graph,
        input,
        wanted,
        equation,
        loss: loss_node,
    } = objective(network, recipe)?;
    let mut plan = PlanBuilder::new("twin.train");
    let x = plan.input("features", DType::F32, batch * network.features());
    let target = plan.input("target", DType::F32, batch * channels);
    let physics = equation.map(|_| {
        [
            plan.input("slopes", DType::F32, batch * channels),
            plan.input("values", DType::F32, batch),
        ]
    });
    let schedule = plan.input("schedule", DType::F32, 4);
    let [weights, first, second] = ["weights", "first_moment", "second_moment"]
        .map(|name| plan.state(name, DType::F32, network.parameters().len()));
    let loss = plan.output("loss", DType::F32, 1);
    // A state, so that the padding between the parameters has a gradient of 0.
    let gradient = plan.state("gradient", DType::F32, network.parameters().len());
    let mut feeds = vec![(input, x), (wanted, target)];
    feeds.extend(
        equation
            .into_iter()
            .flatten()
            .zip(physics.into_iter().flatten()),
    );
    feeds.extend(network.parameters().feeds(&graph, weights)?);
    let mut results = vec![(loss_node, loss)];
    results.extend(network.parameters().gradient_outputs(&graph, gradient)?);
    graph.record(&mut plan, &feeds, &results)?;
    plan.adamw(schedule, gradient, [weights, first, second], BETA1, BETA2)?;
    Ok((
        plan.finish()?,
        StepSlots {
            x,
            target,
            physics,
            schedule,
            weights,
            loss,
        },
    ))
}

impl Step {
    fn compile(network: &Network, recipe: &TwinRecipe, device: &Device) -> Result<Self> {
        let (plan, slots) = record_step(network, recipe)?;
        Ok(Self {
            run: plan.compile(device)?,
            slots,
        })
    }

    /// A batch drawn with replacement, by all 64 bits of the seed and by the step.
    fn fill_batch(
        &mut self,
        network: &Network,
        samples: &Samples,
        count: usize,
        seed: u64,
        step: u32,
    ) {
        let (features, channels) = (network.features(), network.channels());
        let rows = self.slots.x.len() / features;
        let chosen = |row: usize| {
            let words = random::philox(
                [row as u32 / 4, (seed >> 32) as u32, 0, 1],
                [seed as u32, step],
            );
            ((u64::from(words[row % 4]) * count as u64) >> 32) as usize
        };
        let mut fill = |view: View, data: &[f32], width: usize| {
            for (row, numbers) in self
                .run
                .input::<f32>(view)
                .chunks_mut(width)
                .take(rows)
                .enumerate()
            {
                numbers.copy_from_slice(&data[chosen(row) * width..][..width]);
            }
        };
        fill(self.slots.x, &samples.features, features);
        fill(self.slots.target, &samples.targets, channels);
        if let (Some([slopes, values]), Some(physics)) = (self.slots.physics, &samples.physics) {
            fill(slopes, &physics.slopes, channels);
            fill(values, &physics.values, 1);
        }
    }
}

/// The loss on the held-out samples.
struct Validator {
    run: Executable,
    weights: View,
    loss: View,
}

impl Validator {
    fn compile(
        network: &Network,
        recipe: &TwinRecipe,
        held_out: &Samples,
        device: &Device,
    ) -> Result<Self> {
        let rows = held_out.targets.len() / network.channels();
        let (mut builder, input, output) = network.builder(rows)?;
        let wanted = builder.input("target", [rows, network.channels()])?;
        let loss_node = loss(&mut builder, recipe, output, wanted)?;
        builder.output("loss", loss_node)?;
        let graph = builder.finish()?;
        let mut plan = PlanBuilder::new("twin.loss");
        let x = plan.input("features", DType::F32, held_out.features.len());
        let target = plan.input("target", DType::F32, held_out.targets.len());
        let weights = plan.state("weights", DType::F32, network.parameters().len());
        let loss = plan.output("loss", DType::F32, 1);
        let mut feeds = vec![(input, x), (wanted, target)];
        feeds.extend(network.parameters().feeds(&graph, weights)?);
        graph.record(&mut plan, &feeds, &[(loss_node, loss)])?;
        let mut run = plan.finish()?.compile(device)?;
        run.input::<f32>(x).copy_from_slice(&held_out.features);
        run.input::<f32>(target).copy_from_slice(&held_out.targets);
        Ok(Self { run, weights, loss })
    }

    fn loss(&mut self, weights: &[f32], session: &mut Session) -> Result<f32> {
        self.run.write_state(self.weights, weights)?;
        session.run(&mut self.run)?;
        Ok(self.run.output::<f32>(self.loss)[0])
    }
}
