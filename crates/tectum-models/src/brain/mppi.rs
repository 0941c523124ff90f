//! Model predictive path integral control over a learned twin, one plan a tick.
//!
//! Every tick samples K action sequences around the mean of the last, rolls the twin over T steps, weighs the samples by
//! the softmax of their negative costs, and applies the first action of the weighted mean. All of it runs on the device:
//! one upload (observation and noise key), one submission, one download (action and three numbers about the costs).
//!
//! # Cost
//! Eleven launches a tick; 2·K·T·(weights) operations in the rollout.
//!
//! # Source
//! Williams, Aldrich, Theodorou, *Model Predictive Path Integral Control*, JGCD 2017. We depart in the temperature, which
//! is relative to the spread of the costs, and in the noise, whose deviation may be graded over the samples.

mod kernels;
mod parameters;
mod rollout;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use tectum::{DType, Device, Executable, Kernel, LaunchTime, Plan, PlanBuilder, Result, RunStats, View};

use super::{Brain, Rebuild};
use crate::body::ChannelKind;
use crate::snapshot::{Array, Snapshot};
use crate::twin::{Network, Twin, TwinLayout};
use rollout::{CHANNEL_NUMBERS, rollout_kernel};
pub use parameters::{ChannelCost, MppiParameters};

/// Stream number of the noise, beside the seed and the tick.
const NOISE_STREAM: u32 = 1;
/// Samples that a workgroup of the rollout takes: 16 invocations of four.
const ROLLOUT_SAMPLES: usize = 64;
/// Numbers that a tick downloads: action, least cost, mean cost, greatest weight.
const RESULT_LEN: usize = 4;

/// The controller with its compiled tick.
pub struct Mppi {
    layout: TwinLayout,
    slots: Slots,
    run: Executable,
    device: Device,
    /// What it was made from, kept on the host to make it anew elsewhere.
    origin: Arc<(Twin, MppiParameters)>,
    seed: u64,
    tick: u64,
    last_action: f32,
    horizon: usize,
    costs: [f32; 3],
}

/// The plan's views that the host fills or reads.
#[derive(Debug, Clone, Copy)]
struct Slots {
    observation: View,
    key: View,
    mean: View,
    weights: View,
    table: View,
    result: View,
}

impl Mppi {
    /// Compiles the tick for a device and puts the twin's weights there.
    ///
    /// # Errors
    /// `Invalid` for parameters that do not fit the body (named), or what the device reports.
    pub fn new(twin: &Twin, parameters: &MppiParameters, device: &Device, seed: u64) -> Result<Self> {
        Self::from_origin(Arc::new((twin.clone(), parameters.clone())), device, seed)
    }

    fn from_origin(origin: Arc<(Twin, MppiParameters)>, device: &Device, seed: u64) -> Result<Self> {
        let (twin, parameters) = (&origin.0, &origin.1);
        parameters.check(&twin.layout)?;
        let (plan, slots) = record(twin, parameters)?;
        let mut run = plan.compile(device)?;
        run.write_state(slots.weights, &twin.weights)?;
        run.write_state(slots.table, &channel_table(twin, parameters))?;
        // Drivers compile at the first launch: it is done here, not in the first tick.
        run.run()?;
        run.write_state(slots.mean, &vec![0.0f32; parameters.horizon])?;
        Ok(Self {
            layout: twin.layout.clone(),
            slots,
            run,
            device: device.clone(),
            seed,
            tick: 0,
            last_action: 0.0,
            horizon: parameters.horizon,
            costs: [0.0; 3],
            origin,
        })
    }

    /// Least cost, mean cost and greatest sample weight of the last tick.
    pub fn costs(&self) -> [f32; 3] {
        self.costs
    }
}

/// The kernels of a tick that are not the runtime's, for a network's shape.
///
/// # Errors
/// As [`Mppi::new`] for a network that is too large.
pub fn kernels(network: &Network) -> Result<Vec<Arc<Kernel>>> {
    let (rollout, ..) = rollout_kernel(network)?;
    Ok(vec![rollout, kernels::CONTROLS.clone(), kernels::TEMPER.clone(), kernels::SHIFT.clone()])
}

/// The plan of one tick, for a network's shape; what the twin has learned does not matter to it.
///
/// # Errors
/// As [`Mppi::new`].
pub fn tick_plan(layout: &TwinLayout, network: &Network, parameters: &MppiParameters) -> Result<Plan> {
    parameters.check(layout)?;
    let twin = Twin {
        layout: layout.clone(),
        weights: vec![0.0; network.parameters().len()],
        network: network.clone(),
        change_mean: vec![0.0; layout.channels.len()],
        change_deviation: vec![1.0; layout.channels.len()],
    };
    record(&twin, parameters).map(|(plan, _)| plan)
}

/// What the device knows of each channel; see `kernels/mppi_rollout.wgsl`.
fn channel_table(twin: &Twin, parameters: &MppiParameters) -> Vec<f32> {
    let mut table = Vec::with_capacity(twin.layout.channels.len() * CHANNEL_NUMBERS);
    for (index, (channel, cost)) in twin.layout.channels.iter().zip(&parameters.channels).enumerate() {
        let rad_per_unit = match channel.kind {
            ChannelKind::Linear => 0.0,
            ChannelKind::Angle { rad_per_unit } => rad_per_unit,
        };
        let (half_turn, barrier_scale) =
            if rad_per_unit == 0.0 { (0.0, channel.scale) } else { ((std::f64::consts::PI / rad_per_unit) as f32, 1.0) };
        table.extend([
            rad_per_unit as f32,
            channel.scale,
            twin.change_mean[index],
            twin.change_deviation[index],
            cost.weight,
            cost.barrier_weight,
            cost.barrier_limit,
            barrier_scale,
            half_turn,
        ]);
    }
    table
}

/// Records a whole tick.
fn record(twin: &Twin, parameters: &MppiParameters) -> Result<(Plan, Slots)> {
    let layout = &twin.layout;
    let (samples, horizon, channels) = (parameters.samples, parameters.horizon, layout.channels.len());
    let mut plan = PlanBuilder::new("mppi");
    let slots = Slots {
        observation: plan.input("observation", DType::F32, channels + 1),
        key: plan.input("key", DType::U32, 4),
        mean: plan.state("mean", DType::F32, horizon),
        weights: plan.state("weights", DType::F32, twin.weights.len()),
        table: plan.state("table", DType::F32, channels * CHANNEL_NUMBERS),
        result: plan.output("result", DType::F32, RESULT_LEN),
    };
    let sigma = plan.constant("sigma", &parameters.deviations());
    let eps = plan.temp(DType::F32, samples * horizon.div_ceil(parameters.hold));
    let u = plan.temp(DType::F32, (horizon + 1) * samples);
    let costs = plan.temp(DType::F32, samples);
    let (low, high) = (layout.low.to_bits(), layout.high.to_bits());

    plan.normal(slots.key, eps)?;
    let words = [samples, horizon, parameters.hold, channels].map(|word| word as u32);
    let controls = [slots.observation, slots.mean, eps, sigma, u];
    plan.launch(&kernels::CONTROLS, &controls, &[&words[..], &[low, high]].concat(), tectum::kernel::groups_for(u.len()))?;
    let (kernel, layers, numbers) = rollout_kernel(&twin.network)?;
    let scratch = plan.temp(DType::F32, numbers * samples);
    let words = [&parameters.rollout_words(layout)[..], &layers].concat();
    let groups = samples.div_ceil(ROLLOUT_SAMPLES) as u32;
    plan.launch(&kernel, &[slots.observation, u, slots.table, slots.weights, costs, scratch], &words, groups)?;
    weigh(&mut plan, parameters, twin, costs, u, slots)?;
    Ok((plan.finish()?, slots))
}

/// Costs to weights, weights to the mean, the mean to the action.
fn weigh(plan: &mut PlanBuilder, parameters: &MppiParameters, twin: &Twin, costs: View, u: View, slots: Slots) -> Result<()> {
    let (samples, horizon) = (parameters.samples, parameters.horizon);
    let [negative, tempered, weights] = [(); 3].map(|()| plan.temp(DType::F32, samples));
    let [total, greatest, best_weight] = [(); 3].map(|()| plan.temp(DType::F32, 1));
    plan.sum(costs, total, 1, samples)?;
    plan.unary("neg", costs, negative)?;
    plan.max(negative, greatest, 1, samples)?;
    let temper = [samples as u32, parameters.temperature.to_bits()];
    plan.launch(&kernels::TEMPER, &[costs, total, greatest, tempered], &temper, tectum::kernel::groups_for(samples))?;
    plan.softmax(tempered, weights, 1, samples, 1.0)?;
    plan.max(weights, best_weight, 1, samples)?;
    let weighted = plan.temp(DType::F32, horizon);
    plan.matvec(u.part(samples..(horizon + 1) * samples), weights, weighted, tectum::GemmTail::default())?;
    let shift = [samples as u32, horizon as u32, twin.layout.low.to_bits(), twin.layout.high.to_bits()];
    plan.launch(&kernels::SHIFT, &[weighted, total, greatest, best_weight, slots.mean, slots.result], &shift, 1)
}

impl Brain for Mppi {
    fn name(&self) -> &'static str {
        "mppi"
    }

    fn tick(&mut self, observation: &[f32], action: &mut [f32]) -> Result<RunStats> {
        let channels = self.layout.channels.len();
        let input = self.run.input::<f32>(self.slots.observation);
        input[..channels].copy_from_slice(observation);
        input[channels] = self.last_action;
        let key = [self.seed as u32, (self.seed >> 32) as u32, NOISE_STREAM, self.tick as u32];
        self.run.input::<u32>(self.slots.key).copy_from_slice(&key);
        let stats = self.run.run()?;
        let result = self.run.output::<f32>(self.slots.result);
        action[0] = result[0];
        self.costs.copy_from_slice(&result[1..]);
        self.last_action = match (self.layout.discrete, result[0] >= 0.0) {
            (false, _) => result[0],
            (true, true) => self.layout.high,
            (true, false) => self.layout.low,
        };
        self.tick += 1;
        Ok(stats)
    }

    fn snapshot(&self) -> Result<Snapshot> {
        let mut snapshot = Snapshot::default();
        snapshot.insert("mean", Array::F32(self.run.read_state(self.slots.mean)?));
        snapshot.insert("weights", Array::F32(self.run.read_state(self.slots.weights)?));
        snapshot.insert("table", Array::F32(self.run.read_state(self.slots.table)?));
        snapshot.insert("last_action", Array::F32(vec![self.last_action]));
        snapshot.insert("counters", Array::U64(vec![self.seed, self.tick]));
        Ok(snapshot)
    }

    fn restore(&mut self, snapshot: &Snapshot) -> Result<()> {
        let mean = snapshot.f32("mean", self.horizon)?;
        let weights = snapshot.f32("weights", self.slots.weights.len())?;
        let table = snapshot.f32("table", self.slots.table.len())?;
        let last_action = snapshot.f32("last_action", 1)?[0];
        let counters = snapshot.u64("counters", 2)?;
        self.run.write_state(self.slots.mean, mean)?;
        self.run.write_state(self.slots.weights, weights)?;
        self.run.write_state(self.slots.table, table)?;
        (self.last_action, self.seed, self.tick) = (last_action, counters[0], counters[1]);
        Ok(())
    }

    fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        self.run.trace()
    }

    fn rebuild(&self) -> Option<Rebuild> {
        let (origin, seed) = (self.origin.clone(), self.seed);
        Some(Box::new(move |device| Ok(Box::new(Mppi::from_origin(origin, device, seed)?))))
    }

    fn device(&self) -> Option<&Device> {
        Some(&self.device)
    }

    fn code(&self) -> Vec<(String, u64)> {
        self.run.code().to_vec()
    }
}
