//! What a contract or a scenario states of the motors.

#[cfg(feature = "onnx")]
mod read;

/// The maximum number of the body's periods in one of the policy's.
pub(super) const MAX_DECIMATION: u64 = 10_000;

/// The stage between an action and the motors of a body.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MotorRule {
    /// The joints that an action drives, in its order; the channels of the action without it.
    pub joints: Option<Vec<String>>,
    /// Observation channels of their positions; `joint_pos.JOINT` without it.
    pub position: Option<Vec<String>>,
    /// Observation channels of their velocities; `joint_vel.JOINT` without it.
    pub velocity: Option<Vec<String>>,
    /// Action channels of the body; those with the joints' names without it.
    pub actuators: Option<Vec<String>>,
    /// What the numbers of an action are, one for all joints or one for each.
    pub control: Vec<Control>,
    /// Gain of positions, N m/rad or N/m.
    pub stiffness: Vec<f64>,
    /// Gain of velocities, N m s/rad or N s/m.
    pub damping: Vec<f64>,
    /// Bounds of torques, ±N m or ±N.
    pub torque_limit: Vec<f64>,
    /// Bounds of target velocities, and how fast targets of positions move, rad/s or m/s.
    pub velocity_limit: Vec<f64>,
    /// Bounds of target positions, rad or m.
    pub position_limit: Vec<[f64; 2]>,
    /// The default pose, rad or m; the offset of the action without it.
    pub default: Vec<f64>,
    /// Periods of the body in one of the policy.
    pub decimation: Option<u64>,
    /// Cut-off frequency of the low-pass filter of targets, Hz.
    pub filter_hz: Option<f64>,
    /// Time constant of the actuators' torque, s.
    pub lag_s: Option<f64>,
    /// Joints that are held at stated targets.
    pub held: Vec<HeldRule>,
    /// What motors do before the policy runs.
    pub start: Vec<StartRule>,
    /// What motors do without an answer.
    pub safe: SafeRule,
}

/// What a number of an action is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Control {
    /// A target position: torque = stiffness (target - position) - damping velocity.
    #[default]
    Position,
    /// A target velocity: torque = damping (target - velocity).
    Velocity,
    /// A torque or force.
    Torque,
}

impl Control {
    /// The names in contracts.
    pub const NAMES: [(&'static str, Self); 3] = [
        ("position", Self::Position),
        ("velocity", Self::Velocity),
        ("torque", Self::Torque),
    ];
}

/// Joints that an action does not drive.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct HeldRule {
    /// Their names.
    pub joints: Vec<String>,
    /// Target positions, rad or m.
    pub target: Vec<f64>,
    /// As above.
    pub stiffness: Vec<f64>,
    /// As above.
    pub damping: Vec<f64>,
}

/// What motors do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MotorState {
    /// No torque.
    ZeroTorque,
    /// They move linearly to the default pose.
    Move,
    /// They hold the default pose.
    #[default]
    Hold,
    /// They damp: a stiffness of 0.
    Damping,
    /// They follow the policy.
    Run,
}

impl MotorState {
    /// The names in contracts of states without a policy.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("zero torque", Self::ZeroTorque),
        ("move", Self::Move),
        ("hold", Self::Hold),
        ("damping", Self::Damping),
    ];
}

/// A state before the policy runs.
#[derive(Debug, Clone, PartialEq)]
pub struct StartRule {
    /// What the motors do.
    pub state: MotorState,
    /// How long.
    pub seconds: f64,
    /// Gains in this state; those of the motors without it.
    pub gains: Gains,
}

/// Gains of a state, one for all joints or one for each; those of the motors where it has none.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Gains {
    /// Gain of positions.
    pub stiffness: Vec<f64>,
    /// Gain of velocities.
    pub damping: Vec<f64>,
}

/// What motors do without an answer, and after an emergency stop.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SafeRule {
    /// To hold the default pose, unless another state is stated.
    pub state: MotorState,
    /// Gains in this state.
    pub gains: Gains,
}
