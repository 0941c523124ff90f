//! Training: the loss of a graph and its gradients, AdamW, and everything around a step, as one
//! plan on a device.

mod adamw;
mod batches;
mod init;

use std::ops::ControlFlow;
use std::path::Path;

use tectum::route::Target;
use tectum::snapshot::{Array, Snapshot};
use tectum::{CodeObject, DType, Device, Error, Executable, PlanBuilder, Result, RunStats, View};

use super::inputs::Inputs;
use super::operation::{Convolution, Factor, MatMul};
use super::{Graph, Node, Operation, ParameterLayout, Shape};

pub use adamw::{AdamW, LearningRate};
pub use batches::{Batches, rows};
pub use init::Init;

/// Names of the arrays of a checkpoint: parameters, and the means of gradients and of their
/// squares.
const STATES: [&str; 3] = ["parameters", "first_moment", "second_moment"];

/// The training of a graph's parameters by AdamW: inputs are set, and each [`Trainer::step`]
/// computes the loss and its gradients and changes the parameters, which stay on the device.
///
/// # Numerics
/// In f32. The same parameters, inputs and device give the same bits.
/// # Source
/// Loshchilov and Hutter, *Decoupled Weight Decay Regularization*, ICLR 2019, Algorithm 2.
/// # Example
/// ```
/// use tectum::{Activation, Device};
/// use tectum_graph::{AdamW, GraphBuilder, Init, Trainer};
/// let mut g = GraphBuilder::new();
/// let (x, target) = (g.input("x", [4, 1])?, g.input("target", [4, 1])?);
/// let y = g.dense("layer", x, 1, Activation::None)?;
/// let loss = g.mse(y, target)?;
/// g.output("loss", loss)?;
/// let optimizer = AdamW { learning_rate: 0.1.into(), weight_decay: 0.0, ..AdamW::default() };
/// let mut trainer = Trainer::new(&g.finish()?, loss, optimizer, &Device::open("cpu")?)?;
/// trainer.initialize(1, &[("*.weight", Init::XavierUniform), ("*.bias", Init::Zeros)])?;
/// trainer.set_input("x", &[0.0, 1.0, 2.0, 3.0])?;
/// trainer.set_input("target", &[1.0, 3.0, 5.0, 7.0])?;
/// for _ in 0..500 {
///     trainer.step()?;
/// }
/// let (weight, bias) = (trainer.parameter("layer.weight")?[0], trainer.parameter("layer.bias")?[0]);
/// assert!((weight - 2.0).abs() < 1e-2 && (bias - 1.0).abs() < 1e-2);
/// # Ok::<(), tectum::Error>(())
/// ```
#[derive(Debug)]
pub struct Trainer {
    graph: Graph,
    optimizer: AdamW,
    executable: Executable,
    inputs: Inputs,
    layout: ParameterLayout,
    /// Flat, in the order of [`STATES`].
    states: [View; 3],
    schedule: View,
    loss: View,
    steps: u64,
    last_run: RunStats,
}

impl Trainer {
    /// Compiles the training of all parameters of a graph, for a device or [`Target::Auto`];
    /// parameters are zero until [`Trainer::initialize`], [`Trainer::set_parameter`] or
    /// [`Trainer::load`].
    ///
    /// # Shapes
    /// `loss` [1, 1], for example from [`GraphBuilder::mse`](super::GraphBuilder::mse) or
    /// [`GraphBuilder::cross_entropy`](super::GraphBuilder::cross_entropy).
    /// # Errors
    /// `Invalid` if the optimizer's numbers make no sense, the graph has letters or no parameters;
    /// as [`Graph::gradients`] and [`Graph::compile`].
    /// # Cost
    /// Memory for four times the parameters (with gradients and two moments) and for the values
    /// that gradients need.
    pub fn new<'d>(
        graph: &Graph,
        loss: Node,
        optimizer: AdamW,
        target: impl Into<Target<'d>>,
    ) -> Result<Self> {
        optimizer.check().map_err(|error| error.at("trainer"))?;
        graph.check_bound().map_err(|error| error.at("trainer"))?;
        let mut only = graph.clone();
        only.outputs = vec![("loss".to_owned(), loss)];
        let gradients = only.gradients(loss).map_err(|error| error.at("trainer"))?;
        let layout = graph.parameter_layout();
        if layout.is_empty() {
            return Err(Error::invalid("trainer: the graph has no parameters"));
        }
        let mut plan = PlanBuilder::new("train");
        let states = STATES.map(|name| plan.state(name, DType::F32, layout.len()));
        // A state, so that the padding between the parameters has a gradient of 0.
        let gradient = plan.state("gradient", DType::F32, layout.len());
        let schedule = plan.input("schedule", DType::F32, 4);
        let value = plan.output("loss", DType::F32, 1);
        let mut feeds = layout.feeds(&gradients, states[0])?;
        let inputs = Inputs::new(graph, std::iter::once(loss), &mut plan, &mut feeds)?;
        let mut outputs = layout.gradient_outputs(&gradients, gradient)?;
        outputs.push((loss, value));
        gradients.record(&mut plan, &feeds, &outputs)?;
        let gradient = match optimizer.clip_norm {
            Some(limit) => clip(&mut plan, gradient, limit)?,
            None => gradient,
        };
        plan.adamw(schedule, gradient, states, optimizer.beta1, optimizer.beta2)?;
        let executable = plan.finish()?.compile(target)?;
        Ok(Self {
            graph: graph.clone(),
            optimizer,
            executable,
            inputs,
            layout,
            states,
            schedule,
            loss: value,
            steps: 0,
            last_run: RunStats::default(),
        })
    }

    /// Draws parameters: each by the first rule whose pattern matches its name, in which `*`
    /// matches any characters; others are unchanged.
    ///
    /// # Numerics
    /// The values depend on the seed, the rule, and the parameter's position and shape, not on the
    /// device.
    /// # Errors
    /// `Invalid` if a rule matches no parameter; errors of the device.
    pub fn initialize(&mut self, seed: u64, rules: &[(&str, Init)]) -> Result<()> {
        let parameters: Vec<(String, Node, Shape)> = self
            .graph
            .parameters()
            .map(|(name, node, shape)| (name.to_owned(), node, shape))
            .collect();
        if let Some((pattern, _)) = rules.iter().find(|(pattern, _)| {
            !parameters
                .iter()
                .any(|(name, ..)| init::matches(pattern, name))
        }) {
            return Err(Error::invalid(format!(
                "initialize: {pattern} matches no parameter"
            )));
        }
        for (position, (name, node, shape)) in parameters.into_iter().enumerate() {
            if let Some((_, init)) = rules
                .iter()
                .find(|(pattern, _)| init::matches(pattern, &name))
            {
                let values = init.values(
                    self.graph.fans(node, shape),
                    shape.len(),
                    seed,
                    position as u32,
                )?;
                self.set_parameter(&name, &values)?;
            }
        }
        Ok(())
    }

    /// Fills an input for the next steps.
    ///
    /// # Errors
    /// `Invalid` if there is no such input, it holds row numbers, or `data` has the wrong length.
    pub fn set_input(&mut self, name: &str, data: &[f32]) -> Result<()> {
        self.inputs.set(&mut self.executable, name, data)
    }

    /// Fills an input of row numbers for the next steps.
    ///
    /// # Errors
    /// As [`Trainer::set_input`], if it holds floats.
    pub fn set_indices(&mut self, name: &str, data: &[u32]) -> Result<()> {
        self.inputs.set_words(&mut self.executable, name, data)
    }

    /// Computes the loss of the inputs and its gradients, changes the parameters, and returns that
    /// loss.
    ///
    /// # Errors
    /// `Invalid` before every input that the loss depends on has been set once; as
    /// [`Executable::run`]. A loss that is not finite is returned; the parameters are then useless.
    pub fn step(&mut self) -> Result<f32> {
        self.inputs.check()?;
        self.executable
            .input::<f32>(self.schedule)
            .copy_from_slice(&self.optimizer.schedule(self.steps));
        self.last_run = self.executable.run()?;
        self.steps += 1;
        Ok(self.executable.try_output::<f32>(self.loss)?[0])
    }

    /// Takes a step for each batch. `feed` sets the inputs of a batch; `show` receives the trainer
    /// and the batch's loss after each step and says whether training continues. Returns whether
    /// `show` broke it off: parameters, moments and [`Trainer::steps`] are those of the last step
    /// either way, to be read, saved, or continued from.
    ///
    /// # Errors
    /// As [`Trainer::step`]; errors of `feed` and `show`. The steps before an error are kept.
    /// # Example
    /// ```
    /// use std::ops::ControlFlow;
    /// use tectum::Device;
    /// use tectum_graph::{AdamW, GraphBuilder, Init, Trainer};
    /// let mut g = GraphBuilder::new();
    /// let (x, w) = (g.input("x", [1, 1])?, g.parameter("w", [1, 1])?);
    /// let y = g.mul(x, w)?;
    /// let loss = g.mul(y, y)?;
    /// g.output("loss", loss)?;
    /// let optimizer = AdamW { learning_rate: 0.1.into(), ..AdamW::default() };
    /// let mut trainer = Trainer::new(&g.finish()?, loss, optimizer, &Device::open("cpu")?)?;
    /// trainer.initialize(1, &[("w", Init::Ones)])?;
    /// let enough = |_: &Trainer, loss: f32| Ok(if loss < 1e-3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) });
    /// let end = trainer.fit(0..1000, |trainer, _| trainer.set_input("x", &[1.0]), enough)?;
    /// assert!(end.is_break() && trainer.steps() < 100 && trainer.parameter("w")?[0].abs() < 0.2);
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn fit<B>(
        &mut self,
        batches: impl IntoIterator<Item = B>,
        mut feed: impl FnMut(&mut Self, B) -> Result<()>,
        mut show: impl FnMut(&Self, f32) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        for batch in batches {
            feed(self, batch)?;
            let loss = self.step()?;
            if show(self, loss)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.executable.device()
    }

    /// Every kernel or library routine that a step launches, without duplicates.
    pub fn code(&self) -> &[CodeObject] {
        self.executable.code()
    }

    /// Launches and transfers of the last step.
    pub fn last_run(&self) -> &RunStats {
        &self.last_run
    }

    /// The steps taken, including those before a checkpoint that was loaded.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// Copies a parameter to the host.
    ///
    /// # Errors
    /// `Invalid`, listing the parameters, if none has this name; errors of the device.
    pub fn parameter(&self, name: &str) -> Result<Vec<f32>> {
        self.executable
            .read_state(self.layout.entry(name)?.view(self.states[0]))
    }

    /// Copies all parameters to the host, in the order in which they were added.
    ///
    /// # Errors
    /// Errors of the device.
    pub fn parameters(&self) -> Result<Vec<(String, Vec<f32>)>> {
        self.layout
            .entries()
            .iter()
            .map(|entry| Ok((entry.name.clone(), self.parameter(&entry.name)?)))
            .collect()
    }

    /// Replaces a parameter; its moments are unchanged.
    ///
    /// # Errors
    /// `Invalid` if none has this name or `data` has the wrong length; errors of the device.
    pub fn set_parameter(&mut self, name: &str, data: &[f32]) -> Result<()> {
        self.executable
            .write_state(self.layout.entry(name)?.view(self.states[0]), data)
    }

    /// Writes parameters, moments and the number of steps to a safetensors file, as arrays
    /// `parameters.{name}`, `first_moment.{name}`, `second_moment.{name}`, each flat, and `steps`.
    /// The file replaces another one only when it is complete.
    ///
    /// # Errors
    /// `Io` naming the path; errors of the device.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        let mut snapshot = Snapshot::default();
        for (kind, state) in STATES.iter().zip(self.states) {
            for entry in self.layout.entries() {
                snapshot.insert(
                    format!("{kind}.{}", entry.name),
                    Array::F32(self.executable.read_state(entry.view(state))?),
                );
            }
        }
        snapshot.insert("steps", Array::U64(vec![self.steps]));
        snapshot.save(path.as_ref())
    }

    /// Continues from a checkpoint: with the same inputs, all further steps have the same bits as
    /// without the interruption.
    ///
    /// # Errors
    /// `Io` or `Data` naming the path, and the array that is missing or of another length; nothing
    /// is changed then. Errors of the device.
    pub fn load(&mut self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let snapshot = Snapshot::load(path)?;
        let within = |error: Error| error.at(path.display());
        let mut flat = [(); 3].map(|()| vec![0.0f32; self.layout.len()]);
        for (kind, flat) in STATES.iter().zip(&mut flat) {
            for entry in self.layout.entries() {
                let data = snapshot
                    .f32(&format!("{kind}.{}", entry.name), entry.range().len())
                    .map_err(within)?;
                flat[entry.range()].copy_from_slice(data);
            }
        }
        let steps = snapshot.u64("steps", 1).map_err(within)?[0];
        for (state, flat) in self.states.into_iter().zip(&flat) {
            self.executable.write_state(state, flat)?;
        }
        self.steps = steps;
        Ok(())
    }
}

/// Records a gradient scaled down to a norm of at most `limit`: g · min(1, limit / (‖g‖ + 1e-6)).
///
/// # Source
/// Pascanu, Mikolov and Bengio, *On the difficulty of training recurrent neural networks*, ICML
/// 2013, Algorithm 1; with the 1e-6 of PyTorch's `clip_grad_norm_`.
fn clip(plan: &mut PlanBuilder, gradient: View, limit: f32) -> Result<View> {
    let [squares, clipped] = [(); 2].map(|()| plan.temp(DType::F32, gradient.len()));
    let [sum, norm, divisor, ratio, factor] = [(); 5].map(|()| plan.temp(DType::F32, 1));
    let [limit, small, one] = [("limit", limit), ("small", 1e-6), ("one", 1.0)]
        .map(|(name, value)| plan.constant(name, &[value]));
    plan.unary("square", gradient, squares)?;
    plan.sum(squares, sum, 1, gradient.len())?;
    plan.unary("sqrt", sum, norm)?;
    plan.binary("add", norm, small, divisor)?;
    plan.binary("div", limit, divisor, ratio)?;
    plan.binary("min", ratio, one, factor)?;
    plan.binary("mul", gradient, factor, clipped)?;
    Ok(clipped)
}

impl Graph {
    /// Inputs and outputs of the layer that a parameter belongs to: its rows and columns, exchanged
    /// if products read its transpose; of filters the elements that one element of the result sums,
    /// and those that one of the input reaches with stride 1.
    fn fans(&self, parameter: Node, shape: Shape) -> [usize; 2] {
        let reader = self
            .nodes
            .values()
            .find_map(|definition| match definition.operation {
                Operation::Convolution(convolution) if convolution.w == parameter => {
                    Some(convolution)
                }
                _ => None,
            });
        if let Some(Convolution {
            groups,
            window,
            transposed,
            ..
        }) = reader
        {
            let sizes = shape.fixed();
            let fans = [sizes[1] * window.taps(), sizes[0] / groups * window.taps()];
            return if transposed.is_some() {
                [fans[1], fans[0]]
            } else {
                fans
            };
        }
        let [rows, cols] = shape.matrix();
        let reads_transpose = |factor: Factor| factor.node == parameter && factor.transposed;
        let is_transposed = self.nodes.values().any(|definition| matches!(&definition.operation, Operation::MatMul(MatMul { b, .. }) if reads_transpose(*b)));
        if is_transposed {
            [cols, rows]
        } else {
            [rows, cols]
        }
    }
}
