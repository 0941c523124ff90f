//! Many instances of a body, stepped at once on a device.
//!
//! Each kernel `body_*` has one source for devices (`kernels/body_*.wgsl`) and one Rust function,
//! which the CPU runs for sixteen instances in SIMD lanes; both in f32. They are tested against the
//! body itself, in f64. For a body from an equation file, both are made from the file.

#[cfg(any(test, feature = "bench"))]
pub(crate) mod conformance;
pub(crate) mod lanes;

use std::sync::{Arc, LazyLock};

use tectum::kernel::arguments::KernelArguments;
use tectum::route::Target;
use tectum::{
    CodeObject, DType, Device, Error, Executable, Kernel, KernelBuilder, PlanBuilder, Prelude,
    Result, RunStats, TypedKernel, View, host_memory, kernel_arguments,
};

use super::{BODIES, Body, BodySpec, Descriptor};

/// Stream number of the noise, in addition to the seed and the period.
const NOISE_STREAM: u32 = 4;
/// Numbers after the observation in the output of a step: the reward, and 1 if the episode ended.
pub(crate) const OUTCOME: usize = 2;

kernel_arguments! {
    /// One step of many instances: actions, the starts of those whose episodes end, uniform numbers
    /// for noise, states, and observations with their outcomes.
    pub(crate) struct StepBodies { read actions: f32, optional starts: f32, optional noise: f32, read_write state: f32, write shown: f32; count: usize }
}

/// How many instances of a body are stepped: part of its [`Descriptor`].
pub struct BatchKernel {
    /// Numbers of an instance's state on the device: those of
    /// [`ExactState::state`](super::ExactState::state), then whether its episode ended if they do
    /// not show it.
    pub numbers: usize,
    /// Episodes end, after which an instance restarts from its start.
    pub has_starts: bool,
    /// The angles in the state, which a batch wraps to [−π, π) where the body may count turns.
    pub angles: &'static [usize],
    /// Defines the kernel, for the name of the body.
    pub(crate) define: fn(name: &str) -> StepKernel,
}

/// What an instance is on the device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BatchShape {
    /// Numbers of its state.
    pub numbers: usize,
    /// Those of them that are numbers of the body's own state.
    pub states: usize,
    /// Whether episodes end.
    pub has_starts: bool,
    /// Uniform random numbers that a step needs.
    pub uniforms: usize,
    /// Instances whose states are together on the device, one number of all of them after the
    /// other; 1 for states one after the other.
    pub block: usize,
}

impl BatchShape {
    /// Where a number of an instance is.
    fn place(&self, instance: usize, number: usize) -> usize {
        instance / self.block * self.block * self.numbers
            + number * self.block
            + instance % self.block
    }
}

/// Records a step.
type RecordStep = dyn Fn(&mut PlanBuilder, StepBodies) -> Result<()> + Send + Sync;

/// A kernel that steps many instances, with how it is recorded.
pub(crate) struct StepKernel {
    kernel: Arc<Kernel>,
    record: Box<RecordStep>,
}

impl StepKernel {
    /// A kernel whose arguments are made from those that all bodies have.
    pub fn new<A: KernelArguments + Send>(
        kernel: TypedKernel<A>,
        arguments: impl Fn(StepBodies) -> A + Send + Sync + 'static,
    ) -> Self {
        let all = Arc::clone(&kernel);
        let record = move |plan: &mut PlanBuilder, step: StepBodies| {
            let groups = tectum::kernel::groups_for(step.count);
            plan.launch(&kernel, arguments(step), groups)
        };
        Self {
            kernel: all,
            record: Box::new(record),
        }
    }
}

/// Adds the device code of a body's step: that of all bodies, then its own.
pub(crate) fn with_body<A>(builder: KernelBuilder<A>, wgsl: &[&str]) -> KernelBuilder<A> {
    builder
        .prelude(Prelude::Math)
        .body([include_str!("../../kernels/body.wgsl"), &wgsl.concat()].concat())
}

/// The bodies that have a kernel, and the kernels.
static KERNELS: LazyLock<Vec<(&str, &BatchKernel, StepKernel)>> = LazyLock::new(|| {
    let defined = |body: &'static Descriptor| {
        body.batch
            .as_ref()
            .map(|batch| (body.name, batch, (batch.define)(body.name)))
    };
    BODIES.into_iter().filter_map(defined).collect()
});

/// The kernels of all bodies.
pub fn kernels() -> Vec<Arc<Kernel>> {
    KERNELS
        .iter()
        .map(|(.., step)| step.kernel.clone())
        .collect()
}

pub(crate) fn kernel_of(name: &str) -> Result<(&'static BatchKernel, &'static StepKernel)> {
    let found = KERNELS.iter().find(|(known, ..)| *known == name);
    let (_, batch, kernel) = found.ok_or_else(|| {
        Error::unsupported(format!("body {name:?} has no kernel that steps many"))
    })?;
    Ok((batch, kernel))
}

/// Many instances of a body on a device.
///
/// A step advances each by one period. An instance whose episode ended is reset to its start by the
/// next step, which returns that start and no reward (as Gymnasium's vector environments do).
/// Angles are wrapped in the state too.
///
/// Noise of an equation file is drawn by the seed of the batch and the number of the period:
/// repeatable, but not that of the body one by one.
///
/// # Numerics
/// f32, of the body's own equations; the first step is within 10⁻⁵ of the body's result (relative
/// to the channel's range), later ones drift chaotically.
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
    /// The key of the noise, for a body that has some.
    key: Option<View>,
    state: View,
    shown: View,
    count: usize,
    shape: BatchShape,
    seed: u64,
    period: u32,
}

impl Batch {
    /// Records a step of `count` instances, all at their starts for seed 0.
    pub(crate) fn record(
        body: Box<dyn Body>,
        count: usize,
        target: Target<'_>,
        shape: BatchShape,
        step: &StepKernel,
    ) -> Result<Self> {
        let spec = body.spec();
        // Devices index with 32 bits.
        let widest = [
            64,
            shape.numbers,
            spec.action.len(),
            shape.uniforms,
            spec.observation.len() + OUTCOME,
        ]
        .into_iter()
        .fold(1, usize::max);
        let most = u32::MAX as usize / widest;
        if count == 0 || count > most {
            return Err(Error::invalid(format!(
                "{count} instances of {}; 1 to {most} are possible",
                spec.name
            )));
        }
        // The states of all instances in the layout of the device and as vectors, and what they show.
        let bytes = [shape.numbers as u64 * 16, 64, widest as u64 * 8]
            .into_iter()
            .sum();
        host_memory::check(
            format_args!("{count} instances of {}", spec.name),
            host_memory::shape_bytes([count as u64], bytes),
        )?;
        let mut plan = PlanBuilder::new("bodies");
        let actions = plan.input("actions", DType::F32, count * spec.action.len());
        let starts = shape
            .has_starts
            .then(|| plan.state("starts", DType::F32, count * shape.numbers));
        let state = plan.state(
            "state",
            DType::F32,
            count.next_multiple_of(shape.block) * shape.numbers,
        );
        let shown = plan.output(
            "shown",
            DType::F32,
            count * (spec.observation.len() + OUTCOME),
        );
        let key = (shape.uniforms > 0).then(|| plan.input("key", DType::U32, 4));
        let drawn = |key| {
            let noise = plan.temp(DType::F32, count * shape.uniforms);
            plan.uniform(key, noise).map(|()| noise)
        };
        let noise = key.map(drawn).transpose()?;
        (step.record)(
            &mut plan,
            StepBodies {
                actions,
                starts,
                noise,
                state,
                shown,
                count,
            },
        )?;
        let run = plan.finish()?.compile(target)?;
        let mut batch = Self {
            body,
            run,
            actions,
            starts,
            key,
            state,
            shown,
            count,
            shape,
            seed: 0,
            period: 0,
        };
        batch.reset(0)?;
        Ok(batch)
    }

    /// Number of instances.
    pub fn count(&self) -> usize {
        self.count
    }

    /// Resets instance k to the body's start for `seed + k`, to which it also returns when an
    /// episode ends.
    ///
    /// # Errors
    /// What the device reports.
    pub fn reset(&mut self, seed: u64) -> Result<()> {
        (self.seed, self.period) = (seed, 0);
        let mut states = host_memory::with_capacity("states of instances", self.count)?;
        for k in 0..self.count as u64 {
            self.body.reset(seed.wrapping_add(k));
            states.push(self.body.state()?);
        }
        if let Some(starts) = self.starts {
            let rows = self.numbers(
                &states,
                BatchShape {
                    block: 1,
                    ..self.shape
                },
            )?;
            self.run.write_state(starts, &rows)?;
        }
        self.set_states(&states)
    }

    /// Resets some instances, each to the body's start for its seed, to which it also returns when
    /// an episode ends; others are unchanged. Returns their observations, one after another.
    ///
    /// # Errors
    /// `Invalid` for an instance that does not exist; what the device reports.
    ///
    /// # Cost
    /// Reads and writes the states of all instances.
    ///
    /// # Example
    /// ```
    /// use tectum::Device;
    /// use tectum_control::body::batch::Batch;
    /// let mut poles = Batch::new("cart_pole", 3, &Device::open("cpu")?)?;
    /// let first = poles.states()?[0].clone();
    /// assert_eq!(poles.restart(&[(2, 0)])?.len(), 4);
    /// assert_eq!(poles.states()?[2], first);
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn restart(&mut self, instances: &[(usize, u64)]) -> Result<Vec<f32>> {
        if let Some((unknown, _)) = instances
            .iter()
            .find(|(instance, _)| *instance >= self.count)
        {
            return Err(Error::invalid(format!(
                "instance {unknown} of {}",
                self.count
            )));
        }
        let width = self.body.spec().observation.len();
        let (mut states, mut observations) = (
            host_memory::with_capacity("states of instances", instances.len())?,
            host_memory::filled(
                "observations of instances",
                0.0,
                instances.len().saturating_mul(width),
            )?,
        );
        for ((_, seed), observation) in instances.iter().zip(observations.chunks_mut(width.max(1)))
        {
            self.body.reset(*seed);
            self.body.observe(observation);
            states.push(self.body.state()?);
        }
        for (view, shape) in self
            .starts
            .map(|starts| {
                (
                    starts,
                    BatchShape {
                        block: 1,
                        ..self.shape
                    },
                )
            })
            .into_iter()
            .chain([(self.state, self.shape)])
        {
            let mut numbers = self.run.read_state::<f32>(view)?;
            for ((instance, _), state) in instances.iter().zip(&states) {
                for number in 0..shape.numbers {
                    // A number after those of the body is whether its episode ended.
                    numbers[shape.place(*instance, number)] = if number < shape.states {
                        state[number] as f32
                    } else {
                        0.0
                    };
                }
            }
            self.run.write_state(view, &numbers)?;
        }
        Ok(observations)
    }

    /// Sets each instance's state, as from [`ExactState::state`](super::ExactState::state).
    ///
    /// # Errors
    /// A wrong number of states or a wrong length; numbers that are not finite; what the device
    /// reports.
    pub fn set_states(&mut self, states: &[Vec<f64>]) -> Result<()> {
        let numbers = self.numbers(states, self.shape)?;
        self.run.write_state(self.state, &numbers)
    }

    /// The state of each instance, in the order of [`ExactState::state`](super::ExactState::state).
    ///
    /// # Errors
    /// What the device reports.
    pub fn states(&self) -> Result<Vec<Vec<f32>>> {
        let numbers = self.run.read_state::<f32>(self.state)?;
        let shape = self.shape;
        let state = |instance| {
            (0..shape.states)
                .map(|number| numbers[shape.place(instance, number)])
                .collect()
        };
        Ok((0..self.count).map(state).collect())
    }

    /// Steps every instance by one period under its action, `[count, numbers of an action]`; values
    /// are treated as in [`Body::step`].
    ///
    /// # Errors
    /// A wrong number of actions; what the device reports.
    pub fn step(&mut self, actions: &[f32]) -> Result<RunStats> {
        let given = self.run.input::<f32>(self.actions);
        if actions.len() != given.len() {
            let (name, needed) = (&self.body.spec().name, given.len());
            return Err(Error::invalid(format!(
                "{} instances of {name} need {needed} numbers of actions, given {}",
                self.count,
                actions.len()
            )));
        }
        given.copy_from_slice(actions);
        if let Some(key) = self.key {
            self.run.input::<u32>(key).copy_from_slice(&[
                self.seed as u32,
                (self.seed >> 32) as u32,
                NOISE_STREAM,
                self.period,
            ]);
            self.period = self.period.wrapping_add(1);
        }
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

    /// The constants of the body.
    pub fn spec(&self) -> &BodySpec {
        self.body.spec()
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.run.device()
    }

    /// Name and content hash of the kernel that steps launch.
    pub fn code(&self) -> &[CodeObject] {
        self.run.code()
    }

    fn shown(&self, instance: usize) -> &[f32] {
        let width = self.body.spec().observation.len() + OUTCOME;
        &self.run.output::<f32>(self.shown)[instance * width..][..width]
    }

    /// States in a layout of the device. Each is set on the body, which rejects invalid states.
    fn numbers(&mut self, states: &[Vec<f64>], shape: BatchShape) -> Result<Vec<f32>> {
        if states.len() != self.count {
            return Err(Error::invalid(format!(
                "{} states for {} instances of {}",
                states.len(),
                self.count,
                self.body.spec().name
            )));
        }
        let len = self.count.next_multiple_of(shape.block) * shape.numbers;
        let mut numbers = host_memory::filled("states of instances", 0.0, len)?;
        for (instance, state) in states.iter().enumerate() {
            self.body.set_state(state)?;
            for (number, value) in state[..shape.states].iter().enumerate() {
                numbers[shape.place(instance, number)] = *value as f32;
            }
        }
        Ok(numbers)
    }
}

#[cfg(test)]
mod tests;
