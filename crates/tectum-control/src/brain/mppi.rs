//! Model predictive path integral control over a learned twin or the plant's own equations, one
//! plan per tick.
//!
//! Every tick samples K action sequences around the last mean, rolls the model over T steps,
//! weights the samples by the softmax of their negative costs, and applies the first action of the
//! weighted mean. All of it runs on the device: one upload (observation and noise key), one
//! submission, one download (action and three numbers about the costs).
//!
//! A twin may learn online from the body's transitions ([`OnlineLearning`]); with an untrained twin
//! the actions are random until its first round.
//!
//! # Cost
//! Eleven launches per tick, ten more for each further iteration; 2·K·T·(weights) operations in the
//! rollout.
//!
//! # Source
//! Williams, Aldrich, Theodorou, *Model Predictive Path Integral Control*, JGCD 2017. We differ in
//! the temperature, which is relative to the spread of the costs, and in the noise, whose deviation
//! may be graded over the samples.

#[cfg(any(test, feature = "bench"))]
mod bench;
#[cfg(any(test, feature = "bench"))]
pub(crate) mod conformance;
mod equations;
mod kernels;
mod learning;
mod parameters;
mod plant;
mod recipe;
mod rollout;
pub mod spec;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tectum::kernel::random;
use tectum::{
    CodeObject, DType, Device, Error, Executable, InputFile, Kernel, LaunchTime, Plan, PlanBuilder,
    Result, RunStats, View,
};

use super::{Brain, Rebuild};
use crate::body::ControlModel;
use crate::body::control::MAX_COST;
pub use crate::body::control::{ChannelCost, MppiParameters};
use crate::twin::{Ensemble, LearningCounts, Network, RecordedTwin, RowBuffer, Twin, TwinLayout};
#[cfg(any(test, feature = "bench"))]
pub use bench::suite as bench_suite;
pub use equations::EquationModel;
use kernels::{Controls, KeepCosts, ScaleCosts, Shift};
pub use learning::OnlineLearning;
use learning::{Learning, channel_table};
pub(crate) use plant::{plant_kernel, plant_kernels};
use rollout::{ModelInput, RolloutViews, rollout_kernel};
use tectum::snapshot::{Array, Snapshot};

/// Stream numbers of the noise and of random actions, in addition to the seed and the tick.
const NOISE_STREAM: u32 = 1;
const WARM_UP_STREAM: u32 = 2;
const HANDOVER_STREAM: u32 = 3;
/// Ticks for which a random action is held: an action that changes in every tick averages out.
const WARM_UP_HOLD: u64 = 3;
/// Samples per workgroup of the rollout: 16 invocations of four.
const ROLLOUT_SAMPLES: usize = 64;
/// The maximum samples of a controller that is rebuilt because its device failed: the CPU must meet
/// its period.
const MAX_FALLBACK_SAMPLES: usize = 1024;
/// Numbers that a tick downloads after the action: minimum cost, mean cost, maximum weight, samples
/// that count.
const COSTS: usize = 4;

/// The controller with its compiled tick.
pub struct Mppi {
    actions: Vec<ActionLimits>,
    /// Numbers of what is rolled out from: channels of the body, or states of an equation file.
    channels: usize,
    slots: PlanViews,
    run: Executable,
    device: Device,
    /// What it was built from, kept on the host to rebuild it on another device.
    origin: Arc<MppiConfig>,
    learning: Option<Learning>,
    /// Additional inputs of a twin of the recorded rig.
    rows: Option<RowBuffer>,
    seed: u64,
    tick: u64,
    last_action: Vec<f32>,
    costs: [f32; COSTS],
    /// Plans since the start with samples that did not count, and the number of these samples.
    incomplete_plans: u64,
    dropped_samples: u64,
    /// The body of an equation file, which follows the observations.
    observer: Option<Box<dyn ControlModel>>,
    notes: Vec<String>,
    inputs: Vec<InputFile>,
}

/// The range of one number of an action.
#[derive(Debug, Clone, Copy)]
struct ActionLimits {
    low: f32,
    high: f32,
    discrete: bool,
    /// Half its range over that of the first.
    scale: f32,
}

impl ActionLimits {
    /// What the body applies.
    fn applied(&self, value: f32) -> f32 {
        match (self.discrete, value >= 0.0) {
            (false, _) => value,
            (true, true) => self.high,
            (true, false) => self.low,
        }
    }
}

/// What a controller is built from.
#[derive(Clone)]
struct MppiConfig {
    model: Model,
    parameters: MppiParameters,
    online: Option<OnlineLearning>,
    /// Recorded once for all devices; it does not depend on the weights of a twin.
    tick: Arc<TickPlan>,
}

impl MppiConfig {
    /// Checks the parts against each other, and records the tick.
    fn new(
        model: Model,
        parameters: MppiParameters,
        online: Option<OnlineLearning>,
    ) -> Result<Self> {
        parameters.check(model.layout())?;
        let tick = Arc::new(TickPlan::record(&model, &parameters)?);
        Ok(Self {
            model,
            parameters,
            online,
            tick,
        })
    }
}

/// The plan of a tick.
struct TickPlan {
    plan: Plan,
    views: PlanViews,
}

/// The plan's views that the host fills or reads.
#[derive(Debug, Clone, Copy)]
struct PlanViews {
    observation: View,
    key: View,
    /// The key of the steps at which samples switch to a regulator, if they do.
    handover_key: Option<View>,
    mean: View,
    /// A twin's weights and the table of its channels.
    learned: Option<[View; 2]>,
    result: View,
}

/// The model that is rolled out.
#[derive(Debug, Clone)]
pub enum Model {
    /// A learned twin, with the costs that the parameters give its channels.
    Twin(Twin),
    /// An ensemble of the recorded rig, with the costs that the parameters give the body's
    /// channels.
    Recorded(Box<RecordedTwin>),
    /// The equations of the body itself, with its own reward.
    Plant {
        /// The body.
        body: String,
        /// Its channels.
        layout: TwinLayout,
    },
    /// A body from an equation file, with the cost of its weights or its reward.
    Equations(Arc<EquationModel>),
}

impl Model {
    /// Rejects a twin whose parts are inconsistent: kernels index by its network's shape.
    fn check(&self) -> Result<()> {
        let fault = match self {
            Model::Twin(Twin {
                layout,
                network,
                weights,
                change_mean,
                change_deviation,
            }) => {
                let (channels, count) = (layout.channels.len(), network.parameters().len());
                let fits = [
                    (
                        "features of the network",
                        network.features(),
                        layout.features(),
                    ),
                    ("channels of the network", network.channels(), channels),
                    ("weights", weights.len(), count),
                    ("mean changes", change_mean.len(), channels),
                    ("deviations of changes", change_deviation.len(), channels),
                ];
                fits.into_iter().find(|(_, is, wanted)| is != wanted)
            }
            Model::Recorded(twin) => {
                let Ensemble {
                    layout,
                    network,
                    members,
                    mean,
                    deviation,
                    ..
                } = &twin.ensemble;
                layout.check()?;
                let count = network.parameters().len();
                let fits = [
                    ("channels of the body", twin.layout.channels.len(), 4),
                    (
                        "features of the network",
                        network.features(),
                        layout.features(),
                    ),
                    ("channels of the network", network.channels(), 3),
                    ("mean changes", mean.len(), 3),
                    ("deviations of changes", deviation.len(), 3),
                    ("networks", members.len().clamp(1, 1 << 10), members.len()),
                ];
                fits.into_iter()
                    .chain(
                        members
                            .iter()
                            .map(|member| ("weights", member.len(), count)),
                    )
                    .find(|(_, is, wanted)| is != wanted)
            }
            Model::Plant { .. } | Model::Equations(_) => None,
        };
        fault.map_or(Ok(()), |(what, is, wanted)| {
            Err(Error::invalid(format!(
                "mppi: the twin has {is} {what}; {wanted} are needed"
            )))
        })
    }

    /// The channels and the action of a body that is known to this crate.
    fn layout(&self) -> Option<&TwinLayout> {
        match self {
            Model::Twin(twin) => Some(&twin.layout),
            Model::Recorded(twin) => Some(&twin.layout),
            Model::Plant { layout, .. } => Some(layout),
            Model::Equations(_) => None,
        }
    }

    /// How many numbers it is rolled out from.
    fn channels(&self) -> usize {
        match self {
            Model::Equations(model) => model.states(),
            Model::Twin(_) | Model::Recorded(_) | Model::Plant { .. } => {
                self.layout().map_or(0, |layout| layout.channels.len())
            }
        }
    }

    fn actions(&self) -> Vec<ActionLimits> {
        match self {
            Model::Equations(model) => model.actions(),
            Model::Twin(_) | Model::Recorded(_) | Model::Plant { .. } => self
                .layout()
                .map(|layout| ActionLimits {
                    low: layout.low,
                    high: layout.high,
                    discrete: layout.discrete,
                    scale: 1.0,
                })
                .into_iter()
                .collect(),
        }
    }

    /// The action before the first tick: that of the equilibrium of an equation file, else 0.
    fn rest(&self) -> Vec<f32> {
        match self {
            Model::Equations(model) => model.rest(),
            Model::Twin(_) | Model::Recorded(_) | Model::Plant { .. } => {
                vec![0.0; self.actions().len()]
            }
        }
    }

    /// Whether samples may switch to a regulator.
    fn regulates(&self, parameters: &MppiParameters) -> bool {
        match self {
            Model::Plant { .. } => parameters.feedback.is_some(),
            Model::Equations(model) => model.has_regulator(),
            Model::Twin(_) | Model::Recorded(_) => false,
        }
    }

    fn model_input(&self) -> ModelInput {
        match self {
            Model::Recorded(twin) => ModelInput::RecordedRows {
                lags: twin.ensemble.layout.lags,
                members: twin.ensemble.members.len(),
            },
            Model::Twin(_) | Model::Plant { .. } | Model::Equations(_) => ModelInput::State,
        }
    }

    /// Weights and the table of the channels; a plant has neither.
    fn learned(&self, parameters: &MppiParameters) -> Option<[Vec<f32>; 2]> {
        match self {
            Model::Twin(twin) => Some([
                twin.weights.clone(),
                channel_table(
                    &twin.layout,
                    [&twin.change_mean, &twin.change_deviation],
                    parameters,
                ),
            ]),
            Model::Recorded(twin) => {
                let [mean, deviation] = twin.changes();
                Some([
                    twin.weights(),
                    channel_table(&twin.layout, [&mean, &deviation], parameters),
                ])
            }
            Model::Plant { .. } | Model::Equations(_) => None,
        }
    }
}

impl Mppi {
    /// Compiles the tick for a device and uploads a twin's weights.
    ///
    /// # Errors
    /// `Invalid` for parameters that do not fit the body (named), `Unsupported` for a body without
    /// equations here, or what the device reports.
    pub fn new(
        model: Model,
        parameters: &MppiParameters,
        device: &Device,
        seed: u64,
    ) -> Result<Self> {
        Self::from_config(
            Arc::new(MppiConfig::new(model, parameters.clone(), None)?),
            device,
            seed,
        )
    }

    /// The same with a twin that learns online. With a warm-up it starts untrained, and `twin` only
    /// gives the network's shape.
    ///
    /// # Errors
    /// As [`Mppi::new`] and [`Learner::new`](crate::twin::Learner::new).
    pub fn online(
        twin: Twin,
        online: OnlineLearning,
        parameters: &MppiParameters,
        device: &Device,
        seed: u64,
    ) -> Result<Self> {
        Self::from_config(
            Arc::new(MppiConfig::new(
                Model::Twin(twin),
                parameters.clone(),
                Some(online),
            )?),
            device,
            seed,
        )
    }

    fn from_config(origin: Arc<MppiConfig>, device: &Device, seed: u64) -> Result<Self> {
        let (model, parameters, slots) = (&origin.model, &origin.parameters, origin.tick.views);
        let mut run = origin.tick.plan.compile(device)?;
        if let (Some(learned), Some(views)) = (model.learned(parameters), slots.learned) {
            views
                .into_iter()
                .zip(&learned)
                .try_for_each(|(view, numbers)| run.write_state(view, numbers))?;
        }
        let rows = match model {
            Model::Recorded(twin) => Some(twin.rows()),
            Model::Twin(_) | Model::Plant { .. } | Model::Equations(_) => None,
        };
        let observer = match model {
            Model::Equations(model) => Some(model.observer()?),
            Model::Twin(_) | Model::Recorded(_) | Model::Plant { .. } => None,
        };
        // Drivers compile at the first launch: launch here, not in the first tick.
        run.run()?;
        run.write_state(slots.mean, &model.rest().repeat(parameters.horizon))?;
        let learning = match (model, &origin.online) {
            (Model::Twin(twin), Some(online)) => {
                Some(Learning::new(twin, online, parameters, seed)?)
            }
            _ => None,
        };
        Ok(Self {
            last_action: vec![0.0; model.actions().len()],
            actions: model.actions(),
            channels: model.channels(),
            slots,
            run,
            learning,
            rows,
            device: device.clone(),
            seed,
            tick: 0,
            costs: [0.0; COSTS],
            incomplete_plans: 0,
            dropped_samples: 0,
            observer,
            notes: Vec::new(),
            inputs: Vec::new(),
            origin,
        })
    }

    /// Names the files that the twin was trained on, for the receipt.
    #[must_use]
    pub(crate) fn with_input_files(mut self, inputs: impl IntoIterator<Item = InputFile>) -> Self {
        self.inputs = inputs.into_iter().collect();
        self
    }

    /// A twin's data on the device, by name.
    fn learned(&self) -> impl Iterator<Item = (&'static str, View)> + use<> {
        ["weights", "table"]
            .into_iter()
            .zip(self.slots.learned.into_iter().flatten())
    }

    /// Learns from the last tick, takes better weights if there are any; a random action while the
    /// twin is untrained.
    fn learn(&mut self, observation: &[f32]) -> Result<Option<f32>> {
        let Some(learning) = &mut self.learning else {
            return Ok(None);
        };
        if let (Some(learned), Some(views)) = (learning.advance(observation), self.slots.learned) {
            views
                .into_iter()
                .zip(learned)
                .try_for_each(|(view, numbers)| self.run.write_state(view, numbers))?;
        }
        if learning.has_learned() {
            return Ok(None);
        }
        let key = [self.seed as u32, (self.seed >> 32) as u32];
        let share = random::uniform(
            random::philox(
                [(self.tick / WARM_UP_HOLD) as u32, 0, 0, WARM_UP_STREAM],
                key,
            )[0],
        );
        let ActionLimits { low, high, .. } = self.actions[0];
        Ok(Some(low + (high - low) * share))
    }

    /// One plan: observation in, action out.
    fn plan(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        let (channels, actions) = (self.channels, self.actions.len());
        let input = self.run.input::<f32>(self.slots.observation);
        match &mut self.observer {
            None => input[..channels].copy_from_slice(observation),
            Some(observer) => {
                if observation.iter().all(|number| number.is_finite()) {
                    if self.tick == 0 {
                        observer.begin(observation);
                    } else {
                        observer.assimilate(observation);
                    }
                }
                let state = observer.state();
                input[..channels]
                    .iter_mut()
                    .zip(state)
                    .for_each(|(input, number)| *input = number as f32);
            }
        }
        input[channels..][..actions].copy_from_slice(&self.last_action);
        if let Some(rows) = &self.rows {
            rows.write(observation, self.last_action[0], &mut input[channels + 1..]);
        }
        let key = |stream| {
            [
                self.seed as u32,
                (self.seed >> 32) as u32,
                stream,
                self.tick as u32,
            ]
        };
        self.run
            .input::<u32>(self.slots.key)
            .copy_from_slice(&key(NOISE_STREAM));
        if let Some(handover) = self.slots.handover_key {
            self.run
                .input::<u32>(handover)
                .copy_from_slice(&key(HANDOVER_STREAM));
        }
        let stats = self.run.run()?;
        let (first, costs) = self.run.output::<f32>(self.slots.result).split_at(actions);
        action.copy_from_slice(first);
        self.costs.copy_from_slice(costs);
        let samples = self.origin.parameters.samples as u64;
        let dropped = samples.saturating_sub(self.costs[3] as u64);
        self.incomplete_plans += u64::from(dropped > 0);
        self.dropped_samples += dropped;
        if let Some(observer) = &mut self.observer {
            observer.step(action);
        }
        Ok(stats)
    }

    /// Of the last tick: minimum and mean cost and maximum weight of the samples that count, and
    /// their number. A sample without a finite cost does not count.
    pub fn costs(&self) -> [f32; 4] {
        self.costs
    }
}

/// The shape of the networks of a recorded rig.
fn recorded_network(lags: usize) -> Result<Network> {
    Network::new(
        crate::twin::SequenceLayout { lags }.features(),
        &[33, 20],
        3,
    )
}

/// The kernels of a tick that are not the runtime's, for a network's shape, including the one of a
/// recorded rig's ensemble of three.
///
/// # Errors
/// As [`Mppi::new`] for a network that is too large.
pub fn kernels(network: &Network) -> Result<Vec<Arc<Kernel>>> {
    let (rollout, ..) = rollout_kernel(network, ModelInput::State, 1)?;
    let (of_rows, ..) = rollout_kernel(
        &recorded_network(2)?,
        ModelInput::RecordedRows {
            lags: 2,
            members: 3,
        },
        1,
    )?;
    let plants = plant_kernels().iter().map(|(_, kernel)| Arc::clone(kernel));
    let others: [&Arc<Kernel>; 6] = [
        &rollout,
        &of_rows,
        &kernels::CONTROLS,
        &kernels::KEEP_COSTS,
        &kernels::SCALE_COSTS,
        &kernels::SHIFT,
    ];
    Ok(others.into_iter().cloned().chain(plants).collect())
}

impl TickPlan {
    /// Records a whole tick.
    fn record(model: &Model, parameters: &MppiParameters) -> Result<Self> {
        model.check()?;
        let limits = model.actions();
        let (samples, horizon, channels, actions) = (
            parameters.samples,
            parameters.horizon,
            model.channels(),
            limits.len(),
        );
        let mut plan = PlanBuilder::new("mppi");
        let slots = PlanViews {
            observation: plan.input(
                "observation",
                DType::F32,
                channels + actions + model.model_input().older(),
            ),
            key: plan.input("key", DType::U32, 4),
            handover_key: model
                .regulates(parameters)
                .then(|| plan.input("handover_key", DType::U32, 4)),
            mean: plan.state("mean", DType::F32, horizon * actions),
            learned: model.learned(parameters).map(|[weights, table]| {
                let arrays = [("weights", weights.len()), ("table", table.len())];
                arrays.map(|(name, len)| plan.state(name, DType::F32, len))
            }),
            result: plan.output("result", DType::F32, actions + COSTS),
        };
        let knots = samples * horizon.div_ceil(parameters.hold) * actions;
        let eps = plan.temp(DType::F32, knots * parameters.iterations);
        let u = plan.temp(DType::F32, (horizon + 1) * actions * samples);
        let limits = limits
            .iter()
            .flat_map(|limits| [limits.low, limits.high, limits.scale])
            .collect::<Vec<_>>();
        let limits = plan.constant("limits", &limits);
        let costs = plan.temp(DType::F32, samples);
        plan.normal(slots.key, eps)?;
        let handover = match (model, slots.handover_key) {
            (Model::Twin(_) | Model::Recorded(_), _) => None,
            (Model::Plant { .. } | Model::Equations(_), Some(key)) => {
                let shares = plan.temp(DType::F32, samples);
                plan.uniform(key, shares)?;
                Some(shares)
            }
            (Model::Plant { .. } | Model::Equations(_), None) => {
                Some(plan.constant("handover", &vec![1.0f32; samples]))
            }
        };
        let mut mean = slots.mean;
        for iteration in 0..parameters.iterations {
            let sigma = plan.constant("sigma", &parameters.deviations(iteration));
            let (observation, eps) = (
                slots.observation,
                eps.part(iteration * knots..(iteration + 1) * knots),
            );
            let controls = Controls {
                observation,
                mean,
                eps,
                sigma,
                limits,
                u,
                samples,
                horizon,
                hold: parameters.hold,
                channels,
                actions,
            };
            plan.launch(
                &kernels::CONTROLS,
                controls,
                tectum::kernel::groups_for(u.len()),
            )?;
            roll_out(&mut plan, model, parameters, slots, handover, [u, costs])?;
            let is_last = iteration + 1 == parameters.iterations;
            mean = update_mean(
                &mut plan,
                parameters,
                limits,
                [costs, u.part(actions * samples..u.len())],
                slots,
                is_last,
            )?;
        }
        Ok(Self {
            plan: plan.finish()?,
            views: slots,
        })
    }
}

/// Controls to costs.
fn roll_out(
    plan: &mut PlanBuilder,
    model: &Model,
    parameters: &MppiParameters,
    slots: PlanViews,
    handover: Option<View>,
    [u, costs]: [View; 2],
) -> Result<()> {
    let groups = parameters.samples.div_ceil(ROLLOUT_SAMPLES) as u32;
    let mut of_twin = |network: &Network, layout: &TwinLayout| {
        let [weights, table] = slots
            .learned
            .expect("invariant: a twin's slots were made with the plan");
        let (kernel, shape, numbers) =
            rollout_kernel(network, model.model_input(), parameters.horizon)?;
        let scratch = plan.temp(DType::F32, numbers * parameters.samples);
        let views = RolloutViews {
            observation: slots.observation,
            u,
            table,
            weights,
            costs,
            scratch,
        };
        plan.launch(&kernel, parameters.rollout(layout, shape, views), groups)
    };
    let handover = || handover.expect("invariant: a plant's hand-over was made with the plan");
    match model {
        Model::Twin(twin) => of_twin(&twin.network, &twin.layout),
        Model::Recorded(twin) => of_twin(&twin.ensemble.network, &twin.layout),
        Model::Plant { body, layout } => plan.launch(
            plant_kernel(body)?,
            parameters.plant_rollout(layout, slots.observation, handover(), [u, costs]),
            groups,
        ),
        Model::Equations(model) => model.roll_out(
            plan,
            parameters,
            [slots.observation, handover()],
            [u, costs],
        ),
    }
}

/// Costs to weights, weights to the mean, which it returns; the mean to the action after the last
/// iteration. `u` begins with the first step.
fn update_mean(
    plan: &mut PlanBuilder,
    parameters: &MppiParameters,
    limits: View,
    [costs, u]: [View; 2],
    slots: PlanViews,
    is_last: bool,
) -> Result<View> {
    let (samples, actions) = (parameters.samples, limits.len() / 3);
    let rows = parameters.horizon * actions;
    let [negative, tempered, weights] = [(); 3].map(|()| plan.temp(DType::F32, samples));
    let [greatest, best_weight] = [(); 2].map(|()| plan.temp(DType::F32, 1));
    let [kept, totals] = [2 * samples, 2].map(|len| plan.temp(DType::F32, len));
    let keep = KeepCosts {
        costs,
        negative,
        kept,
        samples,
        max_cost: MAX_COST,
    };
    plan.launch(
        &kernels::KEEP_COSTS,
        keep,
        tectum::kernel::groups_for(samples),
    )?;
    plan.sum(kept, totals, 2, samples)?;
    plan.max(negative, greatest, 1, samples)?;
    let scaled = ScaleCosts {
        costs,
        totals,
        greatest,
        y: tempered,
        samples,
        temperature: parameters.temperature,
        max_cost: MAX_COST,
    };
    plan.launch(
        &kernels::SCALE_COSTS,
        scaled,
        tectum::kernel::groups_for(samples),
    )?;
    plan.softmax(tempered, weights, 1, samples, 1.0)?;
    plan.max(weights, best_weight, 1, samples)?;
    let weighted = plan.temp(DType::F32, rows);
    plan.matvec(u, weights, weighted, tectum::GemmEpilogue::default())?;
    if is_last {
        let PlanViews { mean, result, .. } = slots;
        let shift = Shift {
            weighted,
            totals,
            greatest,
            best_weight,
            limits,
            mean,
            result,
            rows,
            actions,
        };
        plan.launch(&kernels::SHIFT, shift, 1)?;
    }
    Ok(weighted)
}

impl Brain for Mppi {
    fn name(&self) -> &'static str {
        "mppi"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        let last = self.last_action[0];
        let stats = match self.learn(observation)? {
            Some(random) => {
                action[0] = random;
                RunStats::default()
            }
            None => self.plan(observation, action)?,
        };
        for ((last, limits), number) in self.last_action.iter_mut().zip(&self.actions).zip(&*action)
        {
            *last = limits.applied(*number);
        }
        if let Some(learning) = &mut self.learning {
            learning.record_tick(observation, last, self.last_action[0]);
        }
        self.rows
            .iter_mut()
            .for_each(|rows| rows.push(observation, last));
        self.tick += 1;
        Ok(stats)
    }

    fn interrupted(&mut self) {
        self.learning.iter_mut().for_each(Learning::interrupted);
        self.rows.iter_mut().for_each(RowBuffer::clear);
    }

    fn run_notes(&self) -> Vec<String> {
        let Self {
            incomplete_plans: plans,
            dropped_samples: samples,
            ..
        } = self;
        let note = || {
            format!(
                "mppi: {samples} samples in {plans} plans had no cost below {MAX_COST:e}, and did not count"
            )
        };
        (*plans > 0).then(note).into_iter().collect()
    }

    fn learning(&self) -> Option<LearningCounts> {
        self.learning.as_ref().map(Learning::counts)
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        snapshot.insert("mean", Array::F32(self.run.read_state(self.slots.mean)?));
        match (&self.origin.model, &self.rows) {
            // Its weights are those of the file that the state names.
            (Model::Recorded(twin), Some(rows)) => {
                snapshot.insert("twin", Array::U64(twin.identity().to_vec()));
                rows.save(&mut snapshot);
            }
            _ => {
                for (name, view) in self.learned() {
                    snapshot.insert(name, Array::F32(self.run.read_state(view)?));
                }
            }
        }
        snapshot.insert("last_action", Array::F32(self.last_action.clone()));
        snapshot.insert("counters", Array::U64(vec![self.seed, self.tick]));
        if let Some(observer) = &self.observer {
            snapshot.insert("observer", Array::F64(observer.state()));
        }
        if let Some(learning) = &self.learning {
            learning.save(&mut snapshot);
        }
        Ok(snapshot)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        let mean = snapshot.f32("mean", self.slots.mean.len())?;
        let learned = match (&self.origin.model, &mut self.rows) {
            (Model::Recorded(twin), Some(rows)) => {
                if snapshot.u64("twin", 4)? != twin.identity() {
                    return Err(Error::data(format!(
                        "{}: the snapshot was taken with another twin",
                        twin.path
                    )));
                }
                rows.load(snapshot)?;
                Vec::new()
            }
            _ => self
                .learned()
                .map(|(name, view)| Ok((view, snapshot.f32(name, view.len())?)))
                .collect::<Result<Vec<_>>>()?,
        };
        let last_action = snapshot.f32("last_action", self.actions.len())?.to_vec();
        let counters = snapshot.u64("counters", 2)?;
        if let Some(observer) = &mut self.observer {
            observer.set_state(snapshot.f64("observer", observer.state().len())?)?;
        }
        self.run.write_state(self.slots.mean, mean)?;
        learned
            .into_iter()
            .try_for_each(|(view, numbers)| self.run.write_state(view, numbers))?;
        (self.last_action, self.seed, self.tick) = (last_action, counters[0], counters[1]);
        if let (Some(learning), Some([weights, table])) = (&mut self.learning, self.slots.learned) {
            learning.load(
                snapshot,
                self.run.read_state(weights)?,
                self.run.read_state(table)?,
            )?;
        }
        Ok(())
    }

    fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        self.run.trace()
    }

    fn rebuild(&self) -> Option<Rebuild> {
        let (origin, seed) = (self.origin.clone(), self.seed);
        Some(Box::new(move |device| {
            let samples = origin.parameters.samples;
            if samples <= MAX_FALLBACK_SAMPLES {
                return Ok(Box::new(Mppi::from_config(origin, device, seed)?));
            }
            let parameters = MppiParameters {
                samples: MAX_FALLBACK_SAMPLES,
                ..origin.parameters.clone()
            };
            let origin = MppiConfig::new(origin.model.clone(), parameters, origin.online.clone())?;
            let mut brain = Mppi::from_config(Arc::new(origin), device, seed)?;
            brain
                .notes
                .push(format!("{MAX_FALLBACK_SAMPLES} of {samples} samples"));
            Ok(Box::new(brain))
        }))
    }

    fn notes(&self) -> &[String] {
        &self.notes
    }

    fn device(&self) -> Option<&Device> {
        Some(&self.device)
    }

    fn code(&self) -> Vec<CodeObject> {
        self.run.code().to_vec()
    }

    fn inputs(&self) -> Vec<InputFile> {
        match &self.origin.model {
            Model::Recorded(twin) => twin
                .ensemble
                .file_hash
                .map(|hash| InputFile {
                    path: twin.path.clone(),
                    hash,
                })
                .into_iter()
                .collect(),
            Model::Twin(_) | Model::Plant { .. } | Model::Equations(_) => self.inputs.clone(),
        }
    }
}
