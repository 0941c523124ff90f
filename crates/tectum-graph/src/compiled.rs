//! A graph compiled on its own, with inputs, parameters and outputs by name.

use tectum::internal::TwoPhaseRun;
use tectum::route::{self, Target};
use tectum::{
    CodeObject, Device, Element, Error, Executable, LaunchTime, Plan, PlanBuilder, Result,
    RunStats, View, Work,
};

use super::inputs::{Inputs, unknown};
use super::{Graph, Node, ParameterLayout};

/// A graph on a device: inputs are plan inputs, outputs plan outputs, the parameters one state, and
/// graph states plan states, zero at first. Parameters have no default: a run is refused until those
/// that an output depends on are set.
///
/// It runs on the thread that calls [`CompiledGraph::run`], or as the [`Work`] of a
/// [`Stream`](tectum::Stream).
#[derive(Debug)]
pub struct CompiledGraph {
    executable: Executable,
    ports: Ports,
    ran: bool,
}

/// Where a plan keeps what has a name.
#[derive(Debug)]
struct Ports {
    inputs: Inputs,
    states: Vec<(String, View)>,
    outputs: Vec<(String, View)>,
    layout: ParameterLayout,
    weights: View,
    /// Parameters that an output depends on and that have not been set yet, in their order.
    unset: Vec<String>,
}

/// Maximum number of parameters that an error names.
const MAX_NAMED: usize = 8;

impl Graph {
    /// Compiles the [optimized](Graph::optimize) graph on its own for a device or [`Target::Auto`].
    ///
    /// # Errors
    /// As [`Plan::compile`](tectum::Plan::compile).
    pub fn compile<'d>(&self, target: impl Into<Target<'d>>) -> Result<CompiledGraph> {
        self.compile_by(target.into(), Graph::record)
    }

    /// Compiles one launch for each operation, without passes: the reference for the passes.
    ///
    /// # Errors
    /// As [`Graph::compile`].
    pub fn compile_unfused(&self, device: &Device) -> Result<CompiledGraph> {
        self.compile_by(device.into(), Graph::record_unfused)
    }

    /// Opens the device that the graph on its own is compiled for.
    ///
    /// # Errors
    /// As [`Graph::compile`].
    pub fn open_device<'d>(&self, target: impl Into<Target<'d>>) -> Result<Device> {
        match target.into() {
            Target::Device(device) => Ok(device.clone()),
            Target::Auto => Ok(route::open(&self.plan(Graph::record)?.0.work())?.0),
        }
    }

    fn compile_by(&self, target: Target<'_>, record: Record) -> Result<CompiledGraph> {
        let (plan, ports) = self.plan(record)?;
        Ok(CompiledGraph {
            executable: plan.compile(target)?,
            ports,
            ran: false,
        })
    }

    fn plan(&self, record: Record) -> Result<(Plan, Ports)> {
        self.check_bound()?;
        let mut plan = PlanBuilder::new("graph");
        let layout = self.parameter_layout();
        let weights = plan.state("parameters", layout.dtype(), layout.len());
        let mut feeds = layout.feeds(self, weights)?;
        let inputs = Inputs::new(
            self,
            self.outputs().map(|(_, node, _)| node),
            &mut plan,
            &mut feeds,
        )?;
        let mut states = Vec::new();
        for (name, node, _) in self.states() {
            let view = plan.state(name, self.dtype(node)?, self.view_len(node));
            states.push((name.to_owned(), view));
            feeds.push((node, view));
        }
        let mut outputs = Vec::new();
        let mut targets = Vec::new();
        for (name, node, shape) in self.outputs() {
            let view = plan.output(name, self.dtype(node)?, shape.len());
            outputs.push((name.to_owned(), view));
            targets.push((node, view));
        }
        record(self, &mut plan, &feeds, &targets)?;
        let needed = self.ancestors(self.outputs().map(|(_, node, _)| node));
        let unset = self
            .parameters()
            .filter(|(_, node, _)| needed.contains(node))
            .map(|(name, ..)| name.to_owned())
            .collect();
        Ok((
            plan.finish()?,
            Ports {
                inputs,
                states,
                outputs,
                layout,
                weights,
                unset,
            },
        ))
    }
}

type Record = fn(&Graph, &mut PlanBuilder, &[(Node, View)], &[(Node, View)]) -> Result<()>;

impl CompiledGraph {
    /// Fills an input for later runs.
    ///
    /// # Errors
    /// `Invalid` if there is no such input or `data` has the wrong length.
    pub fn set_input(&mut self, name: &str, data: &[f32]) -> Result<()> {
        self.ports.inputs.set(&mut self.executable, name, data)
    }

    /// Fills an input of row numbers for later runs.
    ///
    /// # Errors
    /// As [`CompiledGraph::set_input`].
    pub fn set_indices(&mut self, name: &str, data: &[u32]) -> Result<()> {
        self.ports
            .inputs
            .set_words(&mut self.executable, name, data)
    }

    /// Fills an input of integers for later runs.
    ///
    /// # Errors
    /// As [`CompiledGraph::set_input`].
    pub fn set_integers(&mut self, name: &str, data: &[i32]) -> Result<()> {
        self.ports
            .inputs
            .set_words(&mut self.executable, name, data)
    }

    /// Replaces a parameter on the device.
    ///
    /// # Errors
    /// `Invalid` if there is no such parameter, it holds words, or `data` has the wrong length;
    /// errors of the device.
    pub fn set_parameter(&mut self, name: &str, data: &[f32]) -> Result<()> {
        let view = self.ports.layout.entry(name)?.view(self.ports.weights);
        self.executable.write_state(view, data)?;
        self.ports.unset.retain(|unset| unset != name);
        Ok(())
    }

    /// Copies a parameter to the host.
    ///
    /// # Errors
    /// `Invalid` if there is no such parameter or it holds words; errors of the device.
    pub fn parameter(&self, name: &str) -> Result<Vec<f32>> {
        let view = self.ports.layout.entry(name)?.view(self.ports.weights);
        self.executable.read_state(view)
    }

    /// Replaces a state on the device.
    ///
    /// # Errors
    /// `Invalid` if there is no such state, it holds words, or `data` has the wrong length; errors
    /// of the device.
    pub fn set_state(&mut self, name: &str, data: &[f32]) -> Result<()> {
        self.executable
            .write_state(named(&self.ports.states, "state", name)?, data)
    }

    /// Replaces a state or parameter of another format than f32 on the device by words of that
    /// format.
    ///
    /// # Errors
    /// `Invalid` if there is no such state or parameter, it holds floats, or `words` has the wrong
    /// length ([`Graph::state_words`], the shape of a [`PackedParameter`](crate::PackedParameter));
    /// errors of the device.
    pub fn set_words(&mut self, name: &str, words: &[u32]) -> Result<()> {
        let state = self.ports.states.iter().find(|(state, _)| state == name);
        let view = state.map_or_else(
            || Ok(self.ports.layout.entry(name)?.view(self.ports.weights)),
            |(_, view)| Ok(*view),
        );
        self.executable.write_state(view?, words)?;
        self.ports.unset.retain(|unset| unset != name);
        Ok(())
    }

    /// Computes the outputs once.
    ///
    /// # Errors
    /// `Invalid` before every input and every parameter that an output depends on has been set
    /// once; as [`Executable::run`].
    pub fn run(&mut self) -> Result<RunStats> {
        self.ports.check()?;
        let stats = self.executable.run()?;
        self.ran = true;
        Ok(stats)
    }

    /// An output of floats of the last run, row by row.
    ///
    /// # Errors
    /// `Invalid` if there is no such output, it holds integers, or there was no run yet.
    pub fn output(&self, name: &str) -> Result<&[f32]> {
        self.output_of(name)
    }

    /// An output of integers of the last run, row by row.
    ///
    /// # Errors
    /// As [`CompiledGraph::output`].
    pub fn output_integers(&self, name: &str) -> Result<&[i32]> {
        self.output_of(name)
    }

    fn output_of<T: Element>(&self, name: &str) -> Result<&[T]> {
        let view = named(&self.ports.outputs, "output", name)?;
        if !self.ran {
            return Err(Error::invalid(format!(
                "output {name}: the graph has not run yet"
            )));
        }
        if view.dtype() != T::DTYPE {
            return Err(Error::invalid(format!(
                "output {name} is {}; {} was asked for",
                view.dtype().wgsl(),
                T::DTYPE.wgsl()
            )));
        }
        Ok(self.executable.output(view))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        self.executable.device()
    }

    /// Every kernel or library routine that a run launches, without duplicates.
    pub fn code(&self) -> &[CodeObject] {
        self.executable.code()
    }

    /// The time of each launch of one more run.
    ///
    /// # Errors
    /// As [`CompiledGraph::run`].
    pub fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        self.ports.check()?;
        self.executable.trace()
    }

    /// Layout of the parameters in their state.
    pub fn layout(&self) -> &ParameterLayout {
        &self.ports.layout
    }
}

impl Work for CompiledGraph {}

impl TwoPhaseRun for CompiledGraph {
    fn begin(&mut self) -> Result<()> {
        self.ports.check()?;
        self.executable.begin()
    }

    fn finish(&mut self) -> Result<RunStats> {
        let stats = self.executable.finish()?;
        self.ran = true;
        Ok(stats)
    }
}

impl Ports {
    /// Refuses a run before every input and parameter that an output depends on has been set.
    fn check(&self) -> Result<()> {
        self.inputs.check()?;
        let Some(last) = self.unset.len().checked_sub(1) else {
            return Ok(());
        };
        let (what, verb) = if last == 0 {
            ("parameter", "has")
        } else {
            ("parameters", "have")
        };
        let named = &self.unset[..self.unset.len().min(MAX_NAMED)];
        let rest = match self.unset.len() - named.len() {
            0 => String::new(),
            rest => format!(" and {rest} more"),
        };
        Err(Error::invalid(format!(
            "{what} {}{rest} {verb} not been set",
            named.join(", ")
        )))
    }
}

fn named(entries: &[(String, View)], kind: &str, name: &str) -> Result<View> {
    let entry = entries.iter().find(|(entry, _)| entry == name);
    entry
        .map(|(_, view)| *view)
        .ok_or_else(|| unknown(kind, name, entries.iter().map(|(entry, _)| entry.as_str())))
}
