//! A contract met with a body and a network: every name is found, every length agrees.

pub(super) mod action;
pub(super) mod inputs;
pub(super) mod names;
pub(super) mod terms;

use tectum::{DType, Error, Result};
use tectum_equations::Unit;
use tectum_onnx::{Assumption, Network, NetworkPort};

use self::action::BoundAction;
use self::inputs::{BoundInput, Inputs};
use self::names::Names;
use self::terms::Around;
use super::contract::clock::ClockRule;
use super::contract::command::CommandRule;
use super::contract::term::ActionStage;
use super::contract::{Contract, state_by_name};
use crate::body::BodySpec;
use crate::nearest::suggestion;

/// How the numbers of a body become inputs, and an output an action.
#[derive(Debug, Clone)]
pub struct Binding {
    pub(super) inputs: Vec<BoundInput>,
    pub(super) states: Vec<BoundState>,
    pub(super) action: BoundAction,
    /// Outputs that are fed back, with the numbers of each.
    pub(super) outputs: Vec<(String, usize)>,
    /// The outputs of the networks that run before the policy.
    pub(super) links: Vec<Link>,
    pub(super) commands: Vec<CommandRule>,
    pub(super) clocks: Vec<BoundClock>,
    pub(super) is_primed: bool,
    pub(super) period_s: f64,
    /// What was assumed, and what is only recorded.
    pub notes: Vec<String>,
}

/// The source of a number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum NumberSource {
    /// A channel, and the place of the element in the observation.
    Channel {
        channel: usize,
        element: usize,
    },
    Previous(ActionStage, usize),
    Constant(f64),
    Step,
    Command(usize),
    Clock {
        clock: usize,
        leg: usize,
    },
    Output {
        output: usize,
        index: usize,
    },
}

/// An input that is an output of the tick before.
#[derive(Debug, Clone)]
pub(super) struct BoundState {
    pub input: String,
    pub output: String,
    pub len: usize,
}

/// An output of a network that is a part of the input of another.
#[derive(Debug, Clone)]
pub(super) struct Link {
    /// The network that gives it, from 1 on, and its output.
    pub network: usize,
    pub output: String,
    /// The input that has it, and its place there.
    pub input: usize,
    pub start: usize,
    pub len: usize,
}

/// A clock, with the commands of its standing rule.
#[derive(Debug, Clone)]
pub(super) struct BoundClock {
    pub rule: ClockRule,
    pub commands: Vec<usize>,
}

/// The network of a policy, and those that run before it.
pub struct Networks {
    /// The network whose output is the action.
    pub policy: Network,
    /// Each with the name of the output that is used.
    pub before: Vec<(Network, String)>,
}

impl Contract {
    /// Checks the contract against a body and its networks.
    ///
    /// # Errors
    /// `Invalid`, with the contract's origin, for the first of: a period that is not the body's; an
    /// input, output or channel that does not exist; a length, unit or shape that does not fit; an
    /// input that nothing fills; a channel of the action that is driven twice or not at all.
    pub fn bind(&self, networks: &Networks, body: &BodySpec) -> Result<Binding> {
        self.bound(networks, body)
            .map_err(|error| error.at(&self.origin))
    }

    fn bound(&self, networks: &Networks, body: &BodySpec) -> Result<Binding> {
        let network = &networks.policy;
        let mut notes = self.assumed.clone();
        notes.extend(
            network
                .assumptions()
                .iter()
                // Random numbers have the seed of the run.
                .filter(|assumption| !matches!(assumption, Assumption::Seed))
                .map(|assumption| format!("{assumption} (assumed)")),
        );
        if let Some(period) = self.period_s
            && (period - body.dt_s).abs() > 1e-6 * body.dt_s
        {
            return Err(Error::invalid(format!(
                "period {period} s; the body {} has one of {} s",
                body.name, body.dt_s
            )));
        }
        let states = self.states(network, &mut notes)?;
        let outputs = self.fed_back(&output_sizes(network));
        let names = Names {
            contract: self,
            body,
            outputs: &outputs,
        };
        let action = self.bound_action(network, &names, &states, &mut notes)?;
        let (mut inputs, mut links) = (Vec::new(), Vec::new());
        let mut known = Vec::new();
        let states_of = |network: &Network| {
            state_by_name(network, &[])
                .into_iter()
                .map(|(input, _)| input)
                .collect::<Vec<_>>()
        };
        for (index, (rule, (before, output))) in
            self.networks.iter().zip(&networks.before).enumerate()
        {
            let around = action.around(names, &known);
            let at = |error: Error| error.at(format!("network {}", rule.name));
            if let Some(state) = states_of(before).first() {
                return Err(at(Error::invalid(format!(
                    "input {state} is a state: only the policy has states"
                ))));
            }
            let part = Inputs {
                network: index + 1,
                open: before.inputs().iter().collect(),
                input: rule.input.as_deref(),
                terms: &rule.observation,
                rules: &rule.inputs,
            };
            if rule.observation.is_empty() {
                return Err(at(Error::invalid("it has no observation")));
            }
            add_inputs(
                part.bound(&around, &mut notes).map_err(at)?,
                &mut inputs,
                &mut links,
            );
            let len = port(before.outputs(), "output", output)
                .map_err(at)?
                .dims
                .iter()
                .product();
            known.push((rule.name.clone(), len));
        }
        let around: Around<'_> = action.around(names, &known);
        let open = network
            .inputs()
            .iter()
            .filter(|input| states.iter().all(|state| state.input != input.name));
        let part = Inputs {
            network: 0,
            open: open.collect(),
            input: self.input.as_deref(),
            terms: &self.observation,
            rules: &self.inputs,
        };
        add_inputs(part.bound(&around, &mut notes)?, &mut inputs, &mut links);
        for link in &mut links {
            link.output = networks.before[link.network - 1].1.clone();
        }
        if action.schedule.is_asynchronous && !(outputs.is_empty() && links.is_empty()) {
            return Err(Error::invalid(
                "asynchronous inferences have no outputs that are fed back, and no networks before them",
            ));
        }
        let place = |name: &String| self.commands.iter().position(|rule| rule.name == *name);
        let clocks = self.clocks.iter().map(|rule| BoundClock {
            rule: rule.clone(),
            commands: rule
                .standing
                .iter()
                .flat_map(|standing| &standing.commands)
                .filter_map(place)
                .collect(),
        });
        Ok(Binding {
            inputs,
            states,
            action,
            outputs,
            links,
            commands: self.commands.clone(),
            clocks: clocks.collect(),
            is_primed: self.is_primed,
            period_s: body.dt_s,
            notes,
        })
    }

    fn states(&self, network: &Network, notes: &mut Vec<String>) -> Result<Vec<BoundState>> {
        let pairs = if self.state.is_empty() {
            let pairs = state_by_name(network, &self.named_ports());
            notes.extend(pairs.iter().map(|(input, output)| {
                format!(
                    "input {input} is output {output} of the tick before, by their names (assumed)"
                )
            }));
            pairs
        } else {
            self.state.clone()
        };
        let mut states: Vec<BoundState> = Vec::new();
        for (input, output) in pairs {
            let from = port(network.outputs(), "state: output", &output)?;
            let into = port(network.inputs().iter(), "state: input", &input)?;
            if from.dims != into.dims
                || from.element != into.element
                || from.element.dtype() != DType::F32
            {
                let shown =
                    |port: &NetworkPort| format!("{} {:?} {}", port.name, port.dims, port.element);
                return Err(Error::invalid(format!(
                    "state: output {} cannot become input {}: floats of one shape are needed",
                    shown(from),
                    shown(into)
                )));
            }
            states.push(BoundState {
                input,
                output,
                len: into.dims.iter().product(),
            });
        }
        Ok(states)
    }
}

/// Adds inputs, and the places where the outputs of other networks enter them.
fn add_inputs(bound: Vec<BoundInput>, inputs: &mut Vec<BoundInput>, links: &mut Vec<Link>) {
    for input in bound {
        let mut start = 0;
        for (index, _) in &input.rows {
            let term = &input.terms[*index];
            if let Some(network) = term.network {
                links.push(Link {
                    network: network + 1,
                    output: String::new(),
                    input: inputs.len(),
                    start,
                    len: term.len,
                });
            }
            start += term.len;
        }
        inputs.push(input);
    }
}

/// The outputs of a network that are floats, with their numbers.
fn output_sizes(network: &Network) -> Vec<(String, usize)> {
    network
        .outputs()
        .filter(|output| output.element.dtype() == DType::F32)
        .map(|output| (output.name.clone(), output.dims.iter().product()))
        .collect()
}

/// The last axis of an array whose elements are the numbers of a term.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LastAxis {
    /// Its size, such as the number of colours.
    pub size: usize,
    /// The place of each number on it.
    pub places: Vec<u32>,
}

/// The values of `count` numbers: one for all, one for each, or one for each place on the last axis.
fn spread<T: Copy>(
    what: &str,
    values: &[T],
    count: usize,
    last_axis: Option<&LastAxis>,
) -> Result<Vec<T>> {
    match (values, last_axis) {
        ([one], _) => Ok(vec![*one; count]),
        (several, _) if several.len() == count => Ok(several.to_vec()),
        (several, Some(axis)) if several.len() == axis.size => {
            let place = |place: &u32| several[*place as usize];
            Ok(axis.places.iter().map(place).collect())
        }
        (several, _) => Err(Error::invalid(format!(
            "{what} has {} values for {count} numbers",
            several.len()
        ))),
    }
}

/// How many of one unit another is.
fn factor(place: &str, from: &str, to: &str, channel: &str) -> Result<f64> {
    if from == to {
        return Ok(1.0);
    }
    let unit = |text: &str| {
        Unit::parse(text).ok_or_else(|| Error::invalid(format!("{place}: {text:?} is no unit")))
    };
    let (one, other) = (unit(from)?, unit(to)?);
    if one.dimension != other.dimension {
        return Err(Error::invalid(format!(
            "{place}: {channel}: {from} cannot be converted to {to}"
        )));
    }
    Ok(one.scale / other.scale)
}

fn port<'p>(
    ports: impl Iterator<Item = &'p NetworkPort>,
    what: &str,
    name: &str,
) -> Result<&'p NetworkPort> {
    let mut known = Vec::new();
    for port in ports {
        if port.name == name {
            return Ok(port);
        }
        known.push(port.name.as_str());
    }
    Err(Error::invalid(format!(
        "{what} {name:?} does not exist{}; there are {}",
        suggestion(name, known.iter().copied()),
        known.join(", ")
    )))
}
