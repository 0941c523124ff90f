//! A file as a graph with its weights, and that graph on a device.

use tectum::operation::product::panel_format::PanelFormat;
use tectum::route::Target;
use tectum::{
    CodeObject, DType, Device, Error, ErrorKind, LaunchTime, Result, RunStats, host_memory,
};
use tectum_graph::{CompiledGraph, Graph};

use crate::array::Array;
use crate::assumption::Assumption;
use crate::element::ElementType;
use crate::emit::{Source, Value};
use crate::import::{Import, Imported};
use crate::model::Model;

/// A file as a graph with its weights; all sizes are known.
#[derive(Debug)]
pub struct Network {
    /// None if all outputs are known.
    graph: Option<Graph>,
    weights: Vec<(String, Array)>,
    inputs: Vec<NetworkPort>,
    outputs: Vec<(NetworkPort, Option<Array>)>,
    assumptions: Vec<Assumption>,
    /// The input with the key of random numbers, if some are drawn.
    draws: Option<String>,
}

/// An input or output of known shape.
#[derive(Debug, Clone, PartialEq)]
pub struct NetworkPort {
    /// Its name.
    pub name: String,
    /// The type of its elements in the file.
    pub element: ElementType,
    /// Its shape.
    pub dims: Vec<usize>,
}

impl Model {
    /// Makes a graph of the file. `bindings` gives sizes to named dimensions, or to an axis of an
    /// input as `INPUT.AXIS`, such as `image.2`; others are 1, as [`Network::assumptions`] reports.
    ///
    /// # Errors
    /// `Unsupported`, listing every operator, attribute and type that is not supported with its
    /// node; `Data` for a file whose shapes do not fit; `Invalid` for a name that no dimension has.
    pub fn load(&self, bindings: &[(&str, usize)]) -> Result<Network> {
        self.load_with(bindings, &[])
    }

    /// As [`Model::load`], with values of inputs that shapes depend on, such as the target of a
    /// reshape: they are inputs no longer.
    ///
    /// # Errors
    /// As [`Model::load`].
    pub fn load_with(
        &self,
        bindings: &[(&str, usize)],
        constants: &[(&str, Array)],
    ) -> Result<Network> {
        self.load_part(bindings, constants, None)
    }

    /// As [`Model::load`], with some of the outputs alone: nodes and inputs that they do not depend
    /// on are left out, and need not be supported.
    ///
    /// # Errors
    /// As [`Model::load`]; `Invalid` for a name that no output has.
    pub fn load_outputs(&self, bindings: &[(&str, usize)], outputs: &[&str]) -> Result<Network> {
        self.load_part(bindings, &[], Some(outputs))
    }

    /// As [`Model::load`], without the outputs that need what is not supported; each of them comes
    /// with its error.
    ///
    /// # Errors
    /// As [`Model::load`], if no output is supported.
    pub fn load_supported(
        &self,
        bindings: &[(&str, usize)],
    ) -> Result<(Network, Vec<(String, Error)>)> {
        let whole = match self.load(bindings) {
            Err(error) if error.kind() == ErrorKind::Unsupported => error,
            outcome => return outcome.map(|network| (network, Vec::new())),
        };
        let (mut supported, mut others) = (Vec::new(), Vec::new());
        for port in self.outputs() {
            match self.load_outputs(bindings, &[&port.name]) {
                Ok(_) => supported.push(port.name.as_str()),
                Err(error) => others.push((port.name.clone(), error)),
            }
        }
        if supported.is_empty() {
            return Err(whole);
        }
        Ok((self.load_outputs(bindings, &supported)?, others))
    }

    fn load_part(
        &self,
        bindings: &[(&str, usize)],
        constants: &[(&str, Array)],
        outputs: Option<&[&str]>,
    ) -> Result<Network> {
        let Imported {
            mut builder,
            weights,
            inputs,
            outputs,
            assumptions,
            draws,
        } = Import::run(self, bindings, constants, outputs)?;
        let port = |name: String, value: &Value| NetworkPort {
            name,
            element: value.element,
            dims: value.dims.clone(),
        };
        let mut ports = Vec::new();
        for (name, value) in outputs {
            let known = match &value.source {
                Source::Known(array) => Some(array.clone()),
                Source::Node(node) => {
                    builder.output(&name, *node)?;
                    None
                }
                Source::Sequence(_) => {
                    return Err(Error::unsupported(format!("output {name:?} is a sequence")));
                }
                Source::Refused(reason) => {
                    return Err(Error::unsupported(format!("output {name:?}: {reason}")));
                }
            };
            ports.push((port(name, &value), known));
        }
        let graph = if ports.iter().any(|(_, known)| known.is_none()) {
            Some(builder.finish()?)
        } else {
            None
        };
        let inputs = inputs
            .into_iter()
            .map(|(stated, value)| port(stated.name, &value))
            .collect();
        Ok(Network {
            graph,
            weights,
            inputs,
            outputs: ports,
            assumptions,
            draws,
        })
    }
}

impl Network {
    /// The inputs that are fed.
    pub fn inputs(&self) -> &[NetworkPort] {
        &self.inputs
    }

    /// The outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &NetworkPort> {
        self.outputs.iter().map(|(port, _)| port)
    }

    /// What the file does not state, and the values that loading assumed.
    pub fn assumptions(&self) -> &[Assumption] {
        &self.assumptions
    }

    /// Whether outputs depend on random numbers, which [`CompiledNetwork::set_draws`] determines.
    pub fn is_random(&self) -> bool {
        self.draws.is_some()
    }

    /// The graph; none if all outputs are known without running anything.
    pub fn graph(&self) -> Option<&Graph> {
        self.graph.as_ref()
    }

    /// The weights by the names of the graph's parameters.
    pub fn weights(&self) -> &[(String, Array)] {
        &self.weights
    }

    /// How many numbers the weights have.
    pub fn parameters(&self) -> usize {
        self.weights.iter().map(|(_, array)| array.len()).sum()
    }

    /// Opens the device that the network is compiled for.
    ///
    /// # Errors
    /// As [`Graph::compile`].
    pub fn open_device<'d>(&self, target: impl Into<Target<'d>>) -> Result<Device> {
        match (target.into(), &self.graph) {
            (Target::Device(device), _) => Ok(device.clone()),
            (Target::Auto, Some(graph)) => graph.optimize().open_device(Target::Auto),
            (Target::Auto, None) => Device::open("cpu"),
        }
    }

    /// Compiles it for a device or [`Target::Auto`].
    ///
    /// # Errors
    /// As [`Graph::compile`].
    pub fn compile<'d>(&self, target: impl Into<Target<'d>>) -> Result<CompiledNetwork> {
        self.compile_as(target, PanelFormat::F32)
    }

    /// Compiles it with the weights of products in a format of fewer bits, rounded once.
    ///
    /// # Errors
    /// As [`Graph::compile`].
    pub fn compile_as<'d>(
        &self,
        target: impl Into<Target<'d>>,
        format: PanelFormat,
    ) -> Result<CompiledNetwork> {
        let (inputs, outputs) = (self.inputs.clone(), self.outputs.clone());
        let Some(graph) = &self.graph else {
            return Ok(CompiledNetwork {
                graph: None,
                inputs,
                outputs,
                draws: None,
            });
        };
        let optimized = graph.optimize();
        let device = &optimized.open_device(target)?;
        let packs = device.info().preferences().packed_weights;
        let (ready, mut packed) = if packs || format != PanelFormat::F32 {
            optimized.pack_weights(|_| format)
        } else {
            (optimized, Vec::new())
        };
        let (ready, filters) = if packs {
            ready.pack_filters()
        } else {
            (ready, Vec::new())
        };
        packed.extend(filters);
        let mut compiled = ready.compile(device)?;
        let live: Vec<String> = ready
            .parameters()
            .map(|(name, ..)| name.to_owned())
            .collect();
        for (name, array) in self.weights.iter().filter(|(name, _)| live.contains(name)) {
            let values = array.to_f32();
            let node = ready
                .parameters()
                .find(|(other, ..)| other == name)
                .map(|(_, node, _)| node);
            match packed.iter().find(|parameter| Some(parameter.node) == node) {
                Some(parameter) => {
                    let mut words = host_memory::filled(name, 0, parameter.words())?;
                    parameter.pack(&values, &mut words);
                    match parameter.format {
                        PanelFormat::F32 => {
                            compiled.set_parameter(name, bytemuck::cast_slice(&words))?
                        }
                        _ => compiled.set_words(name, &words)?,
                    }
                }
                None => compiled.set_parameter(name, &values)?,
            }
        }
        Ok(CompiledNetwork {
            graph: Some(compiled),
            inputs,
            outputs,
            draws: self.draws.clone().map(|input| Draws {
                input,
                seed: 0,
                run: 0,
            }),
        })
    }
}

/// A network on a device.
#[derive(Debug)]
pub struct CompiledNetwork {
    graph: Option<CompiledGraph>,
    inputs: Vec<NetworkPort>,
    outputs: Vec<(NetworkPort, Option<Array>)>,
    draws: Option<Draws>,
}

/// What determines the random numbers of the next run.
#[derive(Debug)]
struct Draws {
    /// The graph's input with their key.
    input: String,
    seed: u64,
    run: u32,
}

impl Draws {
    /// The words of the input, of which nodes make their keys.
    fn words(&self) -> [i32; 4] {
        let words = [self.seed as u32, (self.seed >> 32) as u32, 0, self.run];
        words.map(u32::cast_signed)
    }
}

impl CompiledNetwork {
    /// The inputs that are fed.
    pub fn inputs(&self) -> &[NetworkPort] {
        &self.inputs
    }

    /// The outputs.
    pub fn outputs(&self) -> impl Iterator<Item = &NetworkPort> {
        self.outputs.iter().map(|(port, _)| port)
    }

    /// Fills an input of floats for later runs, without allocation.
    ///
    /// # Errors
    /// As [`CompiledGraph::set_input`].
    pub fn set_floats(&mut self, name: &str, data: &[f32]) -> Result<()> {
        match &mut self.graph {
            Some(graph) => graph.set_input(name, data),
            None => self.check_input(name, data.len()),
        }
    }

    /// Fills an input of integers or truth values for later runs, without allocation.
    ///
    /// # Errors
    /// As [`CompiledGraph::set_integers`].
    pub fn set_integers(&mut self, name: &str, data: &[i32]) -> Result<()> {
        match &mut self.graph {
            Some(graph) => graph.set_integers(name, data),
            None => self.check_input(name, data.len()),
        }
    }

    /// Fills an input for later runs.
    ///
    /// # Errors
    /// `Invalid` if there is no such input, its shape differs, or an integer is beyond 32 bits.
    pub fn set(&mut self, name: &str, array: &Array) -> Result<()> {
        let port = self.inputs.iter().find(|port| port.name == name);
        let port = port.ok_or_else(|| {
            Error::invalid(format!(
                "no input {name:?}; there are {}",
                list(&self.inputs)
            ))
        })?;
        if port.dims != array.dims() {
            return Err(Error::invalid(format!(
                "input {name:?} is {:?}; {:?} was given",
                port.dims,
                array.dims()
            )));
        }
        let element = port.element;
        match element.dtype() {
            DType::F32 => self.set_floats(name, &array.cast(element).to_f32()),
            _ => {
                let words = array.cast(element).to_i32();
                self.set_integers(
                    name,
                    &words.ok_or_else(|| {
                        Error::invalid(format!("input {name:?} has an integer beyond 32 bits"))
                    })?,
                )
            }
        }
    }

    /// Checks an input on which no output depends, since all are known without a run.
    fn check_input(&self, name: &str, len: usize) -> Result<()> {
        let port = self.inputs.iter().find(|port| port.name == name);
        match port.map(|port| port.dims.iter().product::<usize>()) {
            Some(size) if size == len => Ok(()),
            Some(size) => Err(Error::invalid(format!(
                "input {name:?} has {size} numbers; {len} were given"
            ))),
            None => Err(Error::invalid(format!(
                "no input {name:?}; there are {}",
                list(&self.inputs)
            ))),
        }
    }

    /// Whether outputs depend on random numbers.
    pub fn is_random(&self) -> bool {
        self.draws.is_some()
    }

    /// Sets what determines random numbers: a seed, and the number of the next run, which counts up
    /// with every run and is 0 at first. The same two give the same numbers on every device; those
    /// of a node that has a seed in the file depend on the number alone.
    pub fn set_draws(&mut self, seed: u64, run: u32) {
        if let Some(draws) = &mut self.draws {
            (draws.seed, draws.run) = (seed, run);
        }
    }

    /// Computes the outputs once.
    ///
    /// # Errors
    /// As [`CompiledGraph::run`].
    pub fn run(&mut self) -> Result<RunStats> {
        let Some(graph) = &mut self.graph else {
            return Ok(RunStats::default());
        };
        let Some(draws) = &mut self.draws else {
            return graph.run();
        };
        graph.set_integers(&draws.input, &draws.words())?;
        let stats = graph.run()?;
        draws.run = draws.run.wrapping_add(1);
        Ok(stats)
    }

    /// An output of floats of the last run, row by row.
    ///
    /// # Errors
    /// As [`CompiledGraph::output`].
    pub fn floats(&self, name: &str) -> Result<&[f32]> {
        match &self.graph {
            Some(graph) => graph.output(name),
            None => Err(Error::invalid(format!(
                "output {name:?} is known without a run; `output` returns it"
            ))),
        }
    }

    /// An output of integers or truth values of the last run, row by row.
    ///
    /// # Errors
    /// As [`CompiledGraph::output_integers`].
    pub fn integers(&self, name: &str) -> Result<&[i32]> {
        match &self.graph {
            Some(graph) => graph.output_integers(name),
            None => Err(Error::invalid(format!(
                "output {name:?} is known without a run; `output` returns it"
            ))),
        }
    }

    /// The device; none for a network whose outputs are known without a run.
    pub fn device(&self) -> Option<&Device> {
        self.graph.as_ref().map(CompiledGraph::device)
    }

    /// Every kernel or library routine that a run launches, without duplicates.
    pub fn code(&self) -> Vec<CodeObject> {
        self.graph
            .as_ref()
            .map_or_else(Vec::new, |graph| graph.code().to_vec())
    }

    /// The time of each launch of one more run, which does not count.
    ///
    /// # Errors
    /// As [`CompiledNetwork::run`].
    pub fn trace(&mut self) -> Result<Vec<LaunchTime>> {
        let Some(graph) = &mut self.graph else {
            return Ok(Vec::new());
        };
        if let Some(draws) = &self.draws {
            graph.set_integers(&draws.input, &draws.words())?;
        }
        graph.trace()
    }

    /// An output of the last run in the type of the file.
    ///
    /// # Errors
    /// `Invalid` if there is no such output or no run yet.
    pub fn output(&self, name: &str) -> Result<Array> {
        let Some((port, known)) = self.outputs.iter().find(|(port, _)| port.name == name) else {
            let ports: Vec<NetworkPort> = self.outputs().cloned().collect();
            return Err(Error::invalid(format!(
                "no output {name:?}; there are {}",
                list(&ports)
            )));
        };
        let data = match (known, &self.graph) {
            (Some(array), _) => return Ok(array.clone()),
            (None, Some(graph)) if port.element.dtype() == DType::F32 => graph
                .output(name)?
                .iter()
                .map(|value| f64::from(*value))
                .collect(),
            (None, Some(graph)) => graph
                .output_integers(name)?
                .iter()
                .map(|value| f64::from(*value))
                .collect(),
            (None, None) => unreachable!("invariant: an output is known or computed"),
        };
        Ok(Array::wide(port.element, &port.dims, data))
    }
}

fn list(ports: &[NetworkPort]) -> String {
    if ports.is_empty() {
        "none".to_owned()
    } else {
        ports
            .iter()
            .map(|port| port.name.as_str())
            .collect::<Vec<_>>()
            .join(", ")
    }
}
