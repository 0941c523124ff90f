//! Many instances of a body, stepped at once on a device.
//!
//! Each kernel `body_*` has one source for devices (`kernels/body_*.wgsl`) and one Rust function, which the CPU runs for sixteen instances
//! in SIMD lanes; both in f32. They are tested against the body itself, in f64.

#[cfg(any(test, feature = "bench"))]
pub(crate) mod conformance;
mod native;

use std::sync::{Arc, LazyLock};

use tectum::{CodeObject, DType, Device, Error, Executable, Kernel, NativeCall, PlanBuilder, Prelude, Result, RunStats, View};

use super::rig::{M_PER_IN, RigParameters};
use super::{Body, body};
use crate::kernel::{self, LaunchBuiltIn};
pub(crate) use native::{pendulum_cost, pendulum_step, wrap_angle};

/// Numbers after the observation in the output of a step: the reward, and 1 if the episode ended.
const OUTCOME: usize = 2;

/// A kernel that steps many instances of a body.
struct Stepper {
    kernel: Arc<Kernel>,
    /// Parameters after the count.
    constants: Vec<u32>,
    /// Numbers of an instance's state on the device: those of [`Body::state`], then whether its episode ended if they do not show it.
    numbers: usize,
    has_starts: bool,
}

fn kernel(name: &str, wgsl: &str, has_starts: bool, constants: &[&'static str], words: &[&'static str], native: fn(&NativeCall<'_>)) -> Arc<Kernel> {
    let builder = Kernel::define(format!("body_{name}")).prelude(Prelude::Math).read("actions", DType::F32);
    let builder = if has_starts { builder.read("starts", DType::F32) } else { builder };
    let builder = builder.read_write("state", DType::F32).write("shown", DType::F32).param("count", DType::U32);
    let builder = kernel::words(kernel::floats(builder, constants), words);
    let body = [include_str!("../../kernels/body.wgsl"), wgsl].concat();
    kernel::built_in(builder.body(body), native)
}

static PENDULUM: LazyLock<Arc<Kernel>> = LazyLock::new(|| {
    let wgsl = [include_str!("../../kernels/plant_pendulum.wgsl"), include_str!("../../kernels/body_pendulum.wgsl")].concat();
    kernel("pendulum", &wgsl, false, &[], &[], native::pendulum)
});
static CART_POLE: LazyLock<Arc<Kernel>> =
    LazyLock::new(|| kernel("cart_pole", include_str!("../../kernels/body_cart_pole.wgsl"), true, &[], &[], native::cart_pole));
static ACROBOT: LazyLock<Arc<Kernel>> = LazyLock::new(|| kernel("acrobot", include_str!("../../kernels/body_acrobot.wgsl"), true, &[], &[], native::acrobot));
static RIG: LazyLock<Arc<Kernel>> =
    LazyLock::new(|| kernel("rig", include_str!("../../kernels/body_rig.wgsl"), false, &RIG_CONSTANTS, &RIG_WORDS, native::rig));
static SEEKER: LazyLock<Arc<Kernel>> = LazyLock::new(|| kernel("seeker", include_str!("../../kernels/body_seeker.wgsl"), false, &[], &[], native::seeker));

const RIG_CONSTANTS: [&str; 12] =
    ["length", "gravity", "damping", "lag", "travel", "gain", "dead_band", "limit", "most_volts", "inches_per_step", "h_before", "h_after"];
const RIG_WORDS: [&str; 2] = ["steps_before", "steps_after"];

/// The rig's parameters in the order of both lists.
fn rig_words(rig: &RigParameters) -> Vec<u32> {
    let (before_s, after_s) = (rig.delay_s, rig.dt_s - rig.delay_s);
    let [before, after] = [before_s, after_s].map(RigParameters::substeps);
    let h = |time_s: f64, steps: u64| if steps == 0 { 0.0 } else { time_s / steps as f64 };
    let constants = [
        rig.dynamics.length_m,
        rig.dynamics.gravity,
        rig.dynamics.pole_damping_per_s,
        rig.servo_lag_s,
        rig.travel_m(),
        rig.servo_gain_in_per_s_per_v * M_PER_IN,
        rig.servo_dead_band_v,
        rig.servo_limit_in_per_s * M_PER_IN,
        f64::from(rig.command_limit_v),
        1.0 / (M_PER_IN * rig.dt_s),
        h(before_s, before),
        h(after_s, after),
    ];
    constants.into_iter().map(|number| (number as f32).to_bits()).chain([before, after].map(|steps| steps as u32)).collect()
}

/// The kernels of all bodies.
pub fn kernels() -> Vec<Arc<Kernel>> {
    [&PENDULUM, &CART_POLE, &ACROBOT, &RIG, &SEEKER].map(|kernel| (*kernel).clone()).to_vec()
}

fn stepper(name: &str) -> Result<Stepper> {
    let of = |kernel: &Arc<Kernel>, numbers, has_starts| Stepper { kernel: kernel.clone(), constants: Vec::new(), numbers, has_starts };
    match name {
        "pendulum" => Ok(of(&PENDULUM, 2, false)),
        "cart_pole" => Ok(of(&CART_POLE, 5, true)),
        "acrobot" => Ok(of(&ACROBOT, 5, true)),
        "rig" => Ok(Stepper { constants: rig_words(&RigParameters::default()), ..of(&RIG, 6, false) }),
        "seeker" => Ok(of(&SEEKER, 30, false)),
        _ => Err(Error::unsupported(format!("body {name:?} has no kernel that steps many"))),
    }
}

/// Many instances of a body on a device.
///
/// A step advances each by one period. An instance whose episode ended is reset to its start by the next step, which returns that start and no reward
/// (as Gymnasium's vector environments do). Angles are wrapped in the state too.
///
/// # Numerics
/// f32, of the body's own equations; the first step is within 10⁻⁵ of the body's result (relative to the channel's range), later ones drift chaotically.
///
/// # Example
/// ```
/// use tectum::Device;
/// use tectum_control::body::batch::Batch;
/// let mut poles = Batch::new("cart_pole", 100, &Device::open("cpu").unwrap()).unwrap();
/// poles.reset(1).unwrap();
/// poles.step(&[10.0; 100]).unwrap();
/// assert_eq!((poles.reward(99), poles.is_terminated(99)), (1.0, false));
/// ```
pub struct Batch {
    body: Box<dyn Body>,
    run: Executable,
    actions: View,
    starts: Option<View>,
    state: View,
    shown: View,
    count: usize,
    numbers: usize,
}

impl Batch {
    /// Makes `count` instances, all at their starts for seed 0.
    ///
    /// # Errors
    /// An unknown body; a count of 0; what the device reports.
    pub fn new(name: &str, count: usize, device: &Device) -> Result<Self> {
        let body = body(name, None)?;
        let stepper = stepper(name)?;
        if count == 0 || count > u32::MAX as usize / 64 {
            return Err(Error::invalid(format!("{count} instances of {name}; 1 to {} are possible", u32::MAX / 64)));
        }
        let spec = body.spec();
        let mut plan = PlanBuilder::new("bodies");
        let actions = plan.input("actions", DType::F32, count * spec.action.len());
        let starts = stepper.has_starts.then(|| plan.state("starts", DType::F32, count * stepper.numbers));
        let state = plan.state("state", DType::F32, count * stepper.numbers);
        let shown = plan.output("shown", DType::F32, count * (spec.observation.len() + OUTCOME));
        let views: Vec<View> = [Some(actions), starts, Some(state), Some(shown)].into_iter().flatten().collect();
        let words = [&[count as u32][..], &stepper.constants].concat();
        plan.launch_built_in(&stepper.kernel, &views, &words, tectum::kernel::groups_for(count))?;
        let run = plan.finish()?.compile(device)?;
        let mut batch = Self { body, run, actions, starts, state, shown, count, numbers: stepper.numbers };
        batch.reset(0)?;
        Ok(batch)
    }

    /// Number of instances.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Resets instance k to the body's start for `seed + k`, to which it also returns when an episode ends.
    ///
    /// # Errors
    /// What the device reports.
    pub fn reset(&mut self, seed: u64) -> Result<()> {
        let mut states = Vec::with_capacity(self.count);
        for k in 0..self.count as u64 {
            self.body.reset(seed.wrapping_add(k));
            states.push(self.body.state());
        }
        if let Some(starts) = self.starts {
            let rows = self.rows(&states)?;
            self.run.write_state(starts, &rows)?;
        }
        self.set_states(&states)
    }

    /// Sets each instance's state, as from [`Body::state`].
    ///
    /// # Errors
    /// A wrong number of states or a wrong length; numbers that are not finite; what the device reports.
    pub fn set_states(&mut self, states: &[Vec<f64>]) -> Result<()> {
        let rows = self.rows(states)?;
        self.run.write_state(self.state, &rows)
    }

    /// The state of each instance, in the order of [`Body::state`].
    ///
    /// # Errors
    /// What the device reports.
    pub fn states(&self) -> Result<Vec<Vec<f32>>> {
        let width = self.body.state().len();
        let numbers = self.run.read_state::<f32>(self.state)?;
        Ok(numbers.chunks_exact(self.numbers).map(|row| row[..width].to_vec()).collect())
    }

    /// Steps every instance by one period under its action, `[count, numbers of an action]`; values are treated as in [`Body::step`].
    ///
    /// # Errors
    /// A wrong number of actions; what the device reports.
    pub fn step(&mut self, actions: &[f32]) -> Result<RunStats> {
        let given = self.run.input::<f32>(self.actions);
        if actions.len() != given.len() {
            let (name, needed) = (self.body.spec().name, given.len());
            return Err(Error::invalid(format!("{} instances of {name} need {needed} numbers of actions, given {}", self.count, actions.len())));
        }
        given.copy_from_slice(actions);
        self.run.run()
    }

    /// The observation of an instance after a step.
    ///
    /// # Panics
    /// Before the first step; for an instance out of range.
    pub fn observation(&self, instance: usize) -> &[f32] {
        let shown = self.shown(instance);
        &shown[..shown.len() - OUTCOME]
    }

    /// The reward of its last step.
    ///
    /// # Panics
    /// As [`Batch::observation`].
    pub fn reward(&self, instance: usize) -> f32 {
        self.shown(instance)[self.body.spec().observation.len()]
    }

    /// Whether its last step ended its episode.
    ///
    /// # Panics
    /// As [`Batch::observation`].
    pub fn is_terminated(&self, instance: usize) -> bool {
        self.shown(instance)[self.body.spec().observation.len() + 1] != 0.0
    }

    /// Name and content hash of the kernel that steps launch.
    pub fn code(&self) -> &[CodeObject] {
        self.run.code()
    }

    fn shown(&self, instance: usize) -> &[f32] {
        let width = self.body.spec().observation.len() + OUTCOME;
        &self.run.output::<f32>(self.shown)[instance * width..][..width]
    }

    /// States in the device's layout. Each is set on the body, which rejects invalid states.
    fn rows(&mut self, states: &[Vec<f64>]) -> Result<Vec<f32>> {
        if states.len() != self.count {
            return Err(Error::invalid(format!("{} states for {} instances of {}", states.len(), self.count, self.body.spec().name)));
        }
        let mut rows = Vec::with_capacity(self.count * self.numbers);
        for state in states {
            self.body.set_state(state)?;
            rows.extend(state.iter().map(|number| *number as f32));
            rows.resize(rows.len().next_multiple_of(self.numbers), 0.0);
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests;
