//! What controllers need to know about a body that its equations do not say: parameters found by
//! trial, weights and bounds.

use tectum::{Error, KernelBuilder, Result, TypedKernel, kernel_arguments};

use super::Descriptor;
use super::swing_up::SwingUp;

/// Quadratic cost of a regulator: Σ q_i s_i² + Σ r_j u_j². By Bryson's rule each weight is 1
/// divided by the square of the acceptable deviation.
#[derive(Debug, Clone, PartialEq)]
pub struct LqrWeights {
    /// One for each number of [`ExactState::state`](super::ExactState::state).
    pub state: Vec<f64>,
    /// One for each number of an action.
    pub action: Vec<f64>,
}

/// The linear model s' = A s + B u around an equilibrium, row-major.
#[derive(Debug, Clone, PartialEq)]
pub struct Linear {
    /// A, n × n.
    pub a: Vec<f64>,
    /// B, n × m for m numbers of an action.
    pub b: Vec<f64>,
}

/// A bound of one number of the state, the same to both sides of the equilibrium.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Place of the number in the state.
    pub state: usize,
    /// Its maximum magnitude.
    pub max_abs: f64,
}

/// Settings of a body's regulator, and of the planner of the same problem.
#[derive(Debug, Clone, PartialEq)]
pub struct Regulator {
    /// Weights of the cost.
    pub weights: LqrWeights,
    /// The swing-up law, if the body needs one.
    pub swing_up: Option<SwingUp>,
    /// Steps of the planner's horizon.
    pub horizon: usize,
    /// Bounds of the planner: positions short of stops, feasible speeds, the range within which the
    /// episode continues.
    pub bounds: Vec<Bound>,
}

impl Regulator {
    /// The settings of a known body.
    ///
    /// # Errors
    /// `Invalid` for a body without weights.
    pub fn of(name: &str) -> Result<Self> {
        let regulator = Descriptor::of(name).ok().and_then(|body| body.regulator);
        let missing = || {
            Error::invalid(Descriptor::missing(
                "lqr and mpc have no weights for",
                name,
                |body| body.regulator.is_some(),
            ))
        };
        regulator.map(|settings| settings()).ok_or_else(missing)
    }
}

/// The cost of one channel of the state in each step.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ChannelCost {
    /// Weight of (value / scale)², or of 1 − cos for an angle.
    pub weight: f32,
    /// The cost of an angle is the square of its radians instead of 1 − cos.
    pub squared_angle: bool,
    /// Weight of the square of the excess of the magnitude over the limit (divided by the channel's
    /// scale; an angle's own unit).
    pub barrier_weight: f32,
    /// The limit, in the channel's unit.
    pub barrier_limit: f32,
}

impl ChannelCost {
    /// A weight alone.
    pub fn weight(weight: f32) -> Self {
        Self {
            weight,
            ..Self::default()
        }
    }

    /// A weight, and a barrier at a limit.
    pub fn with_barrier(weight: f32, barrier_weight: f32, barrier_limit: f32) -> Self {
        Self {
            weight,
            barrier_weight,
            barrier_limit,
            squared_angle: false,
        }
    }
}

/// All tuning parameters of MPPI. The defaults are those that bodies share.
#[derive(Debug, Clone, PartialEq)]
pub struct MppiParameters {
    /// Sampled action sequences, a multiple of 64. Default: 256.
    pub samples: usize,
    /// Steps of a sample's rollout. Default: 16.
    pub horizon: usize,
    /// Steps for which a draw of noise is held. Default: 2.
    pub hold: usize,
    /// Sampling iterations per tick, each around the mean of the previous one. Default: 1.
    pub iterations: usize,
    /// Maximum deviation of the noise, in the action's unit. Default: 3.0.
    pub sigma: f32,
    /// Minimum deviation: samples are graded geometrically between the two; `None` gives all
    /// samples the maximum. Default: 0.15.
    pub sigma_min: Option<f32>,
    /// Softmax temperature as a share of the costs' spread (mean − minimum). Default: 0.1.
    pub temperature: f32,
    /// One for each channel. Default: none.
    pub channels: Vec<ChannelCost>,
    /// Weight of (action / half range)². Default: 0.01.
    pub action_weight: f32,
    /// Weight of (change of action / half range)². Default: 0.02.
    pub rate_weight: f32,
    /// Weight of the square of the pole's energy error, ½·ratio·ω² + cos θ − 1. Default: 1.0.
    pub energy_weight: f32,
    /// The energy error is charged only at the end, not in every step: for a swing-up that takes
    /// longer than the horizon. Default: no.
    pub energy_at_end: bool,
    /// Ratio of that energy, with ω in the velocity channel's unit. Default: 0.0.
    pub energy_ratio: f32,
    /// The channel of θ. Default: none.
    pub angle_channel: Option<usize>,
    /// The channel of ω. Default: none.
    pub velocity_channel: Option<usize>,
    /// Weight of the last step's state. Default: 1.0.
    pub terminal_multiplier: f32,
    /// Whether the twin reads the action before the last. Default: no.
    pub previous_action: bool,
    /// Gains of a regulator to upright rest, for position and speed, to which each sample except
    /// the first switches at a random step; only with the plant's own equations, not with a twin.
    /// Default: none.
    pub feedback: Option<[f32; 2]>,
}

impl Default for MppiParameters {
    fn default() -> Self {
        Self {
            samples: 256,
            horizon: 16,
            hold: 2,
            iterations: 1,
            sigma: 3.0,
            sigma_min: Some(0.15),
            temperature: 0.1,
            channels: Vec::new(),
            action_weight: 0.01,
            rate_weight: 0.02,
            energy_weight: 1.0,
            energy_at_end: false,
            energy_ratio: 0.0,
            angle_channel: None,
            velocity_channel: None,
            terminal_multiplier: 1.0,
            previous_action: false,
            feedback: None,
        }
    }
}

/// A rollout's cost that is not finite, or greater, counts as this.
pub const MAX_COST: f32 = 1e9;

kernel_arguments! {
    /// Costs of the rollouts of controls over a body's own equations; a sample is regulated from
    /// the share `handover` of the horizon on.
    pub(crate) struct PlantRollout {
        read observation: f32, read handover: f32, read_write u: f32, write costs: f32;
        samples: usize, horizon: usize, terminal_multiplier: f32, energy_weight: f32, gain_position: f32, gain_speed: f32, low: f32, high: f32
    }
}

/// A body's own equations on a device, for MPPI to roll out.
pub struct PlantModel {
    /// WGSL of `Plant`, `plant_cost`, `plant_energy`, `plant_feedback` and `plant_step`;
    /// `mppi_plant.wgsl` calls them.
    pub wgsl: &'static str,
    /// Finishes the kernel with the whole rollout on the CPU.
    pub(crate) define: fn(KernelBuilder<PlantRollout>) -> TypedKernel<PlantRollout>,
    /// Parameters over the equations, given those over a twin, found by trial against the optimum
    /// of a dynamic program.
    pub parameters: fn(MppiParameters) -> MppiParameters,
    /// The weights of the body's own reward, from which the feedback of
    /// [`MppiParameters::feedback`] is computed.
    pub reward_weights: fn() -> LqrWeights,
}
