//! The rollout kernel: twin and cost over the whole horizon, generated for a network's shape.

use tectum::kernel::arguments::{NoBindings, Slices};
use tectum::kernel::native::{for_each_chunk, simd};
use tectum::kernel::{loops_over, math};
use tectum::{Error, NativeCall, Prelude, Result, TypedKernel, View, kernel_arguments};

use crate::body::control::MAX_COST;
use crate::kernel::built_in;
use crate::twin::{CHANNEL_SCALES, MAX_LAGS, Network};

/// Numbers of the table for each channel; see `kernels/mppi_rollout.wgsl`.
pub const CHANNEL_NUMBERS: usize = 10;
/// Mean and deviation of the learned change among them.
pub const MEAN: usize = 2;
pub const DEVIATION: usize = 3;
/// The maximum width of a layer that the kernel keeps in registers.
const MAX_WIDTH: usize = 128;
/// The maximum number of layers.
const MAX_LAYERS: usize = 4;
/// The maximum number of channels.
const MAX_CHANNELS: usize = 8;
/// Samples per SIMD block of the native twin: one vector of the widest SIMD.
const LANES: usize = 16;
/// Multiply-adds, with their activations, in the time of one streamed element.
const PRODUCTS_PER_ELEMENT: usize = 128;
/// Numbers of a layer among the parameters: weights, bias, rows, columns.
const LAYER_NUMBERS: usize = 4;
/// Numbers of all layers.
const LAYERS_NUMBERS: usize = MAX_LAYERS * LAYER_NUMBERS;

kernel_arguments! {
    /// Costs of controls rolled out by networks. The native twin reads the shape of the networks
    /// here, device code has it as constants.
    pub struct Rollout {
        read observation: f32, read u: f32, read table: f32, read weights: f32, write costs: f32, write scratch: f32;
        samples: usize, horizon: usize, channels: usize, previous: u32, discrete: u32, angle_channel: u32, velocity_channel: u32, energy_from: usize,
        low: f32, high: f32, terminal_multiplier: f32, energy_weight: f32, energy_ratio: f32, action_weight: f32, rate_weight: f32,
        lags: usize, members: usize, member_weights: usize, layer_count: usize, layers: [usize; LAYERS_NUMBERS]
    }
}

/// The views of a rollout.
#[derive(Debug, Clone, Copy)]
pub struct RolloutViews {
    pub observation: View,
    pub u: View,
    pub table: View,
    pub weights: View,
    pub costs: View,
    pub scratch: View,
}

/// The shape of the networks of a rollout.
#[derive(Debug, Clone, Copy)]
pub struct RolloutShape {
    /// Past rows that are read, 0 if only the state is read.
    pub lags: usize,
    /// Networks, and the numbers of each.
    pub members: usize,
    pub member_weights: usize,
    pub layer_count: usize,
    /// Offset of weights and bias, rows and columns of each layer.
    pub layers: [usize; LAYERS_NUMBERS],
}
/// Numbers of a past row that is read: position, velocity and angle.
pub const ROW_NUMBERS: usize = 3;

/// The input of the networks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelInput {
    /// The state; see `kernels/mppi_read_state.wgsl`.
    State,
    /// Rows of the recorded rig, by several networks; see `kernels/mppi_read_rows.wgsl`.
    RecordedRows {
        /// Rows.
        lags: usize,
        /// Networks.
        members: usize,
    },
}

impl ModelInput {
    /// Numbers of the observation that follow the channels and the last action.
    pub fn older(self) -> usize {
        match self {
            Self::State => 0,
            Self::RecordedRows { lags, .. } => lags * ROW_NUMBERS + lags,
        }
    }
}

/// The kernel for a network, the shape for its arguments, and the numbers of scratch that each
/// sample needs over a horizon.
///
/// # Errors
/// `Unsupported` for a network that is wider or deeper than the kernel holds.
pub fn rollout_kernel(
    network: &Network,
    reading: ModelInput,
    horizon: usize,
) -> Result<(TypedKernel<Rollout>, RolloutShape, usize)> {
    let layers = layers(network);
    let width = layers
        .iter()
        .map(|layer| layer[2].max(layer[3]))
        .max()
        .unwrap_or(0)
        .max(8)
        .next_multiple_of(8);
    if width as usize > MAX_WIDTH || layers.len() > MAX_LAYERS || network.channels() > MAX_CHANNELS
    {
        return Err(Error::unsupported(format!(
            "mppi: a twin of {} layers, {width} wide, for {} channels; at most {MAX_LAYERS}, {MAX_WIDTH} and {MAX_CHANNELS} are supported",
            layers.len(),
            network.channels()
        )));
    }
    let sizes: Vec<String> = std::iter::once(network.features() as u32)
        .chain(layers.iter().map(|layer| layer[3]))
        .map(|size| size.to_string())
        .collect();
    let (name, lags, members) = match reading {
        ModelInput::State => (format!("mppi_rollout_{}", sizes.join("x")), 0, 1),
        ModelInput::RecordedRows { lags, members } => (
            format!("mppi_rollout_{lags}_rows_{members}_of_{}", sizes.join("x")),
            lags,
            members,
        ),
    };
    let builder = Rollout::define(name)
        .prelude(Prelude::Math)
        .body(body(network, reading, width, &layers));
    let kernel = built_in(builder.flops(rollout_flops).loops(rollout_loops), rollout);
    let mut shape = RolloutShape {
        lags,
        members,
        member_weights: network.parameters().len(),
        layer_count: layers.len(),
        layers: [0; LAYERS_NUMBERS],
    };
    shape
        .layers
        .iter_mut()
        .zip(layers.as_flattened())
        .for_each(|(to, &number)| *to = number as usize);
    let read = if lags > 0 {
        network.features() + 8 + ROW_NUMBERS * (lags + horizon)
    } else {
        0
    };
    Ok((kernel, shape, 2 * width as usize + read))
}

/// A multiply-add for every weight, sample and step.
fn rollout_flops(
    Rollout {
        samples,
        horizon,
        members,
        layers,
        ..
    }: Rollout<NoBindings>,
) -> f64 {
    let weights: f64 = each_layer(&layers)
        .iter()
        .map(|[_, _, rows, columns]| *rows as f64 * *columns as f64)
        .sum();
    2.0 * samples as f64 * horizon as f64 * members as f64 * weights
}

fn each_layer(layers: &[usize; LAYERS_NUMBERS]) -> &[[usize; LAYER_NUMBERS]] {
    layers.as_chunks().0
}

/// The steps of all blocks of four samples of an invocation, each with its channels, rows and the
/// layers of each network.
fn rollout_loops(
    Rollout {
        samples,
        horizon,
        channels,
        lags,
        members,
        layer_count,
        layers,
        ..
    }: Rollout<NoBindings>,
    groups: u32,
) -> u64 {
    let of_layer = |&[_, _, rows, columns]: &[usize; LAYER_NUMBERS]| {
        (1 + columns.div_ceil(8) * (1 + rows) + columns.next_multiple_of(8)) as u64
    };
    let layers: u64 = each_layer(&layers)[..layer_count]
        .iter()
        .map(of_layer)
        .sum();
    let [samples, horizon, channels, lags, members] =
        [samples, horizon, channels, lags, members].map(|size| size as u64);
    let step = 1 + 2 * channels + 2 * lags + 1 + members * (4 + layers) + channels;
    loops_over(
        samples / 4,
        groups.saturating_mul(16),
        channels + 4 * lags + horizon * step,
    )
}

/// Offset of weights and bias, rows and columns of each layer.
fn layers(network: &Network) -> Vec<[u32; LAYER_NUMBERS]> {
    let entries = network.parameters().entries();
    let layer = |pair: &[tectum_graph::LayoutEntry]| {
        let [weight, bias] = [&pair[0], &pair[1]];
        [weight.offset, bias.offset, weight.shape[0], weight.shape[1]].map(|number| number as u32)
    };
    entries.chunks_exact(2).map(layer).collect()
}

fn body(
    network: &Network,
    reading: ModelInput,
    width: u32,
    layers: &[[u32; LAYER_NUMBERS]],
) -> String {
    let count = layers.len();
    let numbers = |index: usize| {
        layers
            .iter()
            .map(|layer| format!("{}u", layer[index]))
            .collect::<Vec<_>>()
            .join(", ")
    };
    let constants: String = ["LAYER_WEIGHT", "LAYER_BIAS", "LAYER_ROWS", "LAYER_COLUMNS"]
        .iter()
        .enumerate()
        .map(|(index, name)| format!("const {name} = array<u32, {count}>({});\n", numbers(index)))
        .collect();
    let text = include_str!("../../../kernels/mppi_rollout.wgsl");
    let (channels, read) = match reading {
        ModelInput::State => (
            network.channels(),
            include_str!("../../../kernels/mppi_read_state.wgsl").to_owned(),
        ),
        ModelInput::RecordedRows { lags, members } => {
            let scales = CHANNEL_SCALES.map(|scale| format!("{scale:?}")).join(", ");
            let features = network.features();
            let numbers = format!(
                "const LAGS = {lags}u;\nconst MEMBERS = {members}u;\nconst FEATURE_COUNT = {features}u;\n"
            );
            let text = include_str!("../../../kernels/mppi_read_rows.wgsl");
            (
                RIG_CHANNELS,
                format!("{numbers}const SCALES = array<f32, 4>({scales});\n{text}"),
            )
        }
    };
    let parameters = network.parameters().len();
    let sizes = format!(
        "const CHANNELS = {channels}u;\nconst WIDTH = {width}u;\nconst LAYERS = {count}u;\nconst PARAMETERS = {parameters}u;\n"
    );
    format!("{sizes}{constants}{read}{text}")
}

/// Channels of the rig: position of the cart, its velocity, velocity of the pole, angle; and which
/// of them a network predicts.
pub const RIG_CHANNELS: usize = 4;
const OUTPUT_OF: [usize; RIG_CHANNELS] = [0, 0, 1, 2];

/// Rows so far in a rollout, the latest first.
type RowHistory = [[F32Lanes; ROW_NUMBERS]; MAX_LAGS + 1];

/// The shortest difference from one angle to another, degrees.
#[inline(always)]
fn angle_difference_deg(later: f32, earlier: f32) -> f32 {
    let change = later - earlier;
    change - 360.0 * ((change + 180.0) / 360.0).floor()
}

/// A value for each of the samples in a SIMD block.
type F32Lanes = [f32; LANES];

/// Sets every lane.
#[inline(always)]
fn each(lanes: &mut F32Lanes, value: impl Fn(usize) -> f32) {
    for (lane, number) in lanes.iter_mut().enumerate() {
        *number = value(lane);
    }
}

/// sum + weight·x, rounded once.
#[inline(always)]
fn add_product(sum: &mut F32Lanes, weight: f32, x: &F32Lanes) {
    for lane in 0..LANES {
        sum[lane] = weight.mul_add(x[lane], sum[lane]);
    }
}

/// Neighbouring numbers; those beyond a layer's columns belong to its padding or to the next layer,
/// and their results are not read.
#[inline(always)]
fn neighbours<const COUNT: usize>(numbers: &[f32], at: usize) -> [f32; COUNT] {
    *numbers[at..]
        .first_chunk()
        .expect("invariant: every parameter is padded to 64 numbers, and the last is a bias")
}

macro_rules! columns {
    ($name:ident, $count:literal: $($sum:ident $weight:ident)*) => {
        /// A layer's sums, several columns at a time. Each has its own variable: an array of them
        /// would be in memory.
        #[inline(always)]
        fn $name(x: &[F32Lanes], weights: &[f32], bias: &[f32], columns: usize, y: &mut [F32Lanes; MAX_WIDTH]) {
            for j in (0..columns).step_by($count) {
                let [$($weight),*] = neighbours::<$count>(bias, j);
                $(let mut $sum = [$weight; LANES];)*
                for (i, x) in x.iter().enumerate() {
                    let [$($weight),*] = neighbours::<$count>(weights, i * columns + j);
                    $(add_product(&mut $sum, $weight, x);)*
                }
                for (y, sum) in y[j..].iter_mut().zip([$($sum),*]) {
                    *y = sum;
                }
            }
        }
    };
}

columns!(four_columns, 4: s0 w0 s1 w1 s2 w2 s3 w3);
columns!(eight_columns, 8: s0 w0 s1 w1 s2 w2 s3 w3 s4 w4 s5 w5 s6 w6 s7 w7);

/// Whether a block of samples fills one register, and there are 32 registers: then eight sums hide
/// a multiply-add's latency; with narrower registers four do.
fn is_wide() -> bool {
    #[cfg(target_arch = "x86_64")]
    return std::arch::is_x86_feature_detected!("avx512f");
    #[cfg(not(target_arch = "x86_64"))]
    false
}

/// The arguments of the native twin.
type Arguments<'a> = Rollout<Slices<'a>>;

fn rollout(call: &NativeCall<'_>, mut rollout: Arguments<'_>) {
    let costs = std::mem::take(&mut rollout.costs);
    let layers = each_layer(&rollout.layers);
    let products: usize = layers.iter().map(|layer| layer[2] * layer[3]).sum();
    // A control tick wakes no other thread for work that one thread does in about a millisecond.
    let threads = call.threads_for(
        rollout.samples * rollout.horizon * rollout.members * products / PRODUCTS_PER_ELEMENT,
    );
    let is_wide = is_wide();
    for_each_chunk(
        &mut costs[..rollout.samples],
        LANES,
        threads,
        |block, costs| {
            let first = block * LANES;
            let found = if is_wide {
                simd(
                    #[inline(always)]
                    || rollout.block_costs::<true>(first),
                )
            } else {
                simd(
                    #[inline(always)]
                    || rollout.block_costs::<false>(first),
                )
            };
            costs.copy_from_slice(&found[..costs.len()]);
        },
    );
}

impl Arguments<'_> {
    /// Costs of the samples from `first` on; lanes beyond the last sample repeat it.
    #[inline(always)]
    fn block_costs<const IS_WIDE: bool>(&self, first: usize) -> F32Lanes {
        let mut state = [[0.0; LANES]; MAX_CHANNELS];
        for (state, observed) in state.iter_mut().zip(&self.observation[..self.channels]) {
            *state = [*observed; LANES];
        }
        let mut cost = [0.0; LANES];
        let mut before = self.actions(0, first);
        let (mut x, mut y) = ([[0.0; LANES]; MAX_WIDTH], [[0.0; LANES]; MAX_WIDTH]);
        let mut past = self.past();
        for t in 0..self.horizon {
            let now = self.actions(t + 1, first);
            if self.lags > 0 {
                self.rows(&mut state, &mut past, t, first, &mut x);
                self.mean_of_networks::<IS_WIDE>(&mut x, &mut y);
            } else {
                self.features(&state, &before, &now, &mut x);
                self.network::<IS_WIDE>(0, &mut x, &mut y);
            }
            self.advance(&mut state, &x, &mut cost, t);
            let (action_weight, rate_weight) = (self.action_weight, self.rate_weight);
            for lane in 0..LANES {
                let rate = now[lane] - before[lane];
                cost[lane] += action_weight * now[lane] * now[lane] + rate_weight * rate * rate;
            }
            before = now;
        }
        for cost in &mut cost {
            *cost = if cost.is_finite() {
                cost.min(MAX_COST)
            } else {
                MAX_COST
            };
        }
        cost
    }

    #[inline(always)]
    fn actions(&self, row: usize, first: usize) -> F32Lanes {
        let row = &self.u[row * self.samples..][..self.samples];
        let mut lanes = [0.0; LANES];
        each(&mut lanes, |lane| row[(first + lane).min(self.samples - 1)]);
        lanes
    }

    #[inline(always)]
    fn channel(&self, index: usize) -> &[f32; CHANNEL_NUMBERS] {
        self.table[index * CHANNEL_NUMBERS..]
            .first_chunk()
            .expect("invariant: the plan binds the whole table")
    }

    #[inline(always)]
    fn applied(&self, value: f32) -> f32 {
        match (self.discrete != 0, value >= 0.0) {
            (false, _) => value,
            (true, true) => self.high,
            (true, false) => self.low,
        }
    }

    #[inline(always)]
    fn features(
        &self,
        state: &[F32Lanes; MAX_CHANNELS],
        before: &F32Lanes,
        now: &F32Lanes,
        x: &mut [F32Lanes; MAX_WIDTH],
    ) {
        let half_range = 0.5 * (self.high - self.low);
        let mut place = 0;
        for (c, state) in state.iter().take(self.channels).enumerate() {
            let [rad, scale, ..] = *self.channel(c);
            if rad == 0.0 {
                each(&mut x[place], |lane| state[lane] / scale);
                place += 1;
            } else {
                each(&mut x[place], |lane| math::sin_near(state[lane] * rad));
                each(&mut x[place + 1], |lane| math::cos_near(state[lane] * rad));
                place += 2;
            }
        }
        if self.previous != 0 {
            each(&mut x[place], |lane| {
                self.applied(before[lane]) / half_range
            });
            place += 1;
        }
        each(&mut x[place], |lane| self.applied(now[lane]) / half_range);
    }

    /// The previous rows from the observation; the present row is added later.
    #[inline(always)]
    fn past(&self) -> RowHistory {
        let mut past = [[[0.0; LANES]; ROW_NUMBERS]; MAX_LAGS + 1];
        let older = &self.observation[self.channels + 1..];
        for (row, numbers) in past[..self.lags]
            .iter_mut()
            .zip(older.as_chunks::<ROW_NUMBERS>().0)
        {
            *row = numbers.map(|number| [number; LANES]);
        }
        past
    }

    /// Reads past rows and commands, with the state as the latest row, and advances the state as if
    /// the angle continued with the same change.
    #[inline(always)]
    fn rows(
        &self,
        state: &mut [F32Lanes; MAX_CHANNELS],
        past: &mut RowHistory,
        t: usize,
        first: usize,
        x: &mut [F32Lanes; MAX_WIDTH],
    ) {
        past[..=self.lags].rotate_right(1);
        past[0] = [state[0], state[2], state[3]];
        let [inches, speed, turn, volts] = CHANNEL_SCALES;
        let [rad, ..] = *self.channel(3);
        for back in 0..self.lags {
            let ([position, velocity, angle], [_, _, earlier]) = (&past[back], &past[back + 1]);
            let x = &mut x[5 * back..];
            let from = if back == 0 { [0.0; LANES] } else { state[0] };
            each(&mut x[0], |lane| (position[lane] - from[lane]) / inches);
            each(&mut x[1], |lane| velocity[lane] / speed);
            each(&mut x[2], |lane| math::sin_near(angle[lane] * rad));
            each(&mut x[3], |lane| math::cos_near(angle[lane] * rad));
            each(&mut x[4], |lane| {
                angle_difference_deg(angle[lane], earlier[lane]) / turn
            });
        }
        let older = &self.observation[self.channels + 1 + ROW_NUMBERS * self.lags..][..self.lags];
        for back in 0..=self.lags {
            let command = if back <= t + 1 {
                self.actions(t + 1 - back, first)
            } else {
                [older[back - t - 2]; LANES]
            };
            each(&mut x[5 * self.lags + back], |lane| command[lane] / volts);
        }
        x[6 * self.lags + 1] = [older[self.lags - 1]; LANES];
        state[1] = [0.0; LANES];
        for lane in 0..LANES {
            state[3][lane] += angle_difference_deg(past[0][2][lane], past[1][2][lane]);
        }
    }

    /// The mean of what the networks predict, by the rig's channels.
    #[inline(always)]
    fn mean_of_networks<const IS_WIDE: bool>(
        &self,
        x: &mut [F32Lanes; MAX_WIDTH],
        y: &mut [F32Lanes; MAX_WIDTH],
    ) {
        let read = *x;
        let mut sums = [[0.0; LANES]; ROW_NUMBERS];
        for member in 0..self.members {
            *x = read;
            self.network::<IS_WIDE>(member, x, y);
            for (sum, predicted) in sums.iter_mut().zip(x.iter()) {
                for lane in 0..LANES {
                    sum[lane] += predicted[lane];
                }
            }
        }
        for (predicted, output) in x.iter_mut().zip(OUTPUT_OF) {
            each(predicted, |lane| sums[output][lane] / self.members as f32);
        }
    }

    /// Runs a network's layers in place, with `y` as scratch: some columns at a time, whose sums
    /// stay in registers, and the activations in a separate loop, because they need the registers
    /// themselves.
    #[inline(always)]
    fn network<const IS_WIDE: bool>(
        &self,
        member: usize,
        x: &mut [F32Lanes; MAX_WIDTH],
        y: &mut [F32Lanes; MAX_WIDTH],
    ) {
        for (index, &[weight, bias, rows, columns]) in each_layer(&self.layers)[..self.layer_count]
            .iter()
            .enumerate()
        {
            let own = &self.weights[member * self.member_weights..];
            let (weights, bias) = (&own[weight..], &own[bias..]);
            if IS_WIDE {
                eight_columns(&x[..rows], weights, bias, columns, y);
            } else {
                four_columns(&x[..rows], weights, bias, columns, y);
            }
            if index + 1 < self.layer_count {
                for (x, y) in x.iter_mut().zip(y.iter()).take(columns) {
                    each(x, |lane| math::tanh(y[lane]));
                }
            } else {
                x[..columns].copy_from_slice(&y[..columns]);
            }
        }
    }

    #[inline(always)]
    fn advance(
        &self,
        state: &mut [F32Lanes; MAX_CHANNELS],
        change: &[F32Lanes; MAX_WIDTH],
        cost: &mut F32Lanes,
        t: usize,
    ) {
        let (energy_weight, energy_ratio) = (self.energy_weight, self.energy_ratio);
        let multiplier = if t + 1 == self.horizon {
            self.terminal_multiplier
        } else {
            1.0
        };
        let (mut cosine, mut velocity) = ([1.0; LANES], [0.0; LANES]);
        for c in 0..self.channels {
            let [
                rad,
                scale,
                mean,
                deviation,
                weight,
                barrier,
                limit,
                barrier_scale,
                half_turn,
                squared_angle,
            ] = *self.channel(c);
            let mut charge = [0.0; LANES];
            for lane in 0..LANES {
                let value = state[c][lane] + mean + deviation * change[c][lane];
                state[c][lane] = value;
                charge[lane] = (value / scale) * (value / scale);
            }
            if rad != 0.0 {
                let turn = 2.0 * half_turn;
                let mut cos_angle = [0.0; LANES];
                for lane in 0..LANES {
                    let value = state[c][lane];
                    state[c][lane] = value - turn * ((value + half_turn) / turn).floor();
                    let angle = state[c][lane] * rad;
                    cos_angle[lane] = math::cos_near(angle);
                    charge[lane] = if squared_angle == 0.0 {
                        1.0 - cos_angle[lane]
                    } else {
                        angle * angle
                    };
                }
                if c == self.angle_channel as usize {
                    cosine = cos_angle;
                }
            }
            if c == self.velocity_channel as usize {
                velocity = state[c];
            }
            for lane in 0..LANES {
                let beyond = (state[c][lane].abs() - limit).max(0.0) / barrier_scale;
                cost[lane] += multiplier * weight * charge[lane] + barrier * beyond * beyond;
            }
        }
        if t < self.energy_from {
            return;
        }
        for lane in 0..LANES {
            let energy = 0.5 * energy_ratio * velocity[lane] * velocity[lane] + cosine[lane] - 1.0;
            cost[lane] += energy_weight * energy * energy;
        }
    }
}
