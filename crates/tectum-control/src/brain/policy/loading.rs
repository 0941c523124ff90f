//! The part of a policy's file that a contract needs: the outputs that it uses, and the sizes that
//! the file leaves open and the contract's terms give.

use std::path::{Path, PathBuf};

use tectum::{Error, Result};
use tectum_onnx::{Model, Network, Port, PortDim};

use super::binding::Networks;
use super::binding::names::Names;
use super::contract::network::NetworkRule;
use super::contract::term::{Term, TermSource};
use super::contract::{Contract, state_names};
use crate::body::BodySpec;

impl Contract {
    /// Loads a model for a body, and the networks before it: the output that is the action and
    /// those that are states or fed back, without the nodes of others. An axis without a size gets
    /// it from the number of its input's terms. What was assumed is added to
    /// [`Contract::assumed`].
    ///
    /// # Errors
    /// As [`Model::load`], with the path of the file.
    pub(super) fn load(&mut self, model: &Model, path: &Path, body: &BodySpec) -> Result<Networks> {
        let before = self.load_before(path)?;
        let at = |error: Error| error.at(path.display());
        let sizes = self.open_sizes(model, body, &before);
        let outputs = self.needed_outputs(model);
        let named = self.named_sizes(&sizes);
        let needed: Vec<&str> = outputs.iter().map(String::as_str).collect();
        let policy = if needed.is_empty() {
            model.load(&named).map_err(at)?
        } else {
            model.load_outputs(&named, &needed).map_err(at)?
        };
        self.assumed.extend(sizes.iter().map(|size| {
            format!(
                "axis {} of input {}, which has no size, is {} by its terms (assumed)",
                size.axis, size.input, size.size
            )
        }));
        Ok(Networks { policy, before })
    }

    /// The files of the networks before the policy: next to the contract, or to the policy where it
    /// has no file.
    pub(super) fn network_files(&self, path: &Path) -> Vec<PathBuf> {
        let own = Path::new(&self.origin);
        let folder = if own.is_file() { own } else { path }.parent();
        let file = |rule: &NetworkRule| {
            folder.map_or_else(
                || PathBuf::from(&rule.model),
                |folder| folder.join(&rule.model),
            )
        };
        self.networks.iter().map(file).collect()
    }

    fn load_before(&self, path: &Path) -> Result<Vec<(Network, String)>> {
        let files = self.network_files(path);
        let mut before = Vec::new();
        for (rule, file) in self.networks.iter().zip(files) {
            let at = |error: Error| error.at(file.display());
            let model = Model::open(&file)?;
            let output = match &rule.output {
                Some(output) => output.clone(),
                None => model
                    .outputs()
                    .first()
                    .map(|port| port.name.clone())
                    .ok_or_else(|| at(Error::data("it has no output")))?,
            };
            if model.outputs().iter().all(|port| port.name != output) {
                return Err(at(Error::invalid(format!(
                    "network {}: it has no output {output:?}",
                    rule.name
                ))));
            }
            let network = model
                .load_outputs(&self.named_sizes(&[]), &[&output])
                .map_err(at)?;
            before.push((network, output));
        }
        Ok(before)
    }

    /// Sizes by name: those that the contract states, then others.
    fn named_sizes<'a>(&'a self, sizes: &'a [OpenSize]) -> Vec<(&'a str, usize)> {
        let stated = self.axes.iter().map(|(name, size)| (name.as_str(), *size));
        let own = sizes
            .iter()
            .filter(|size| self.axes.iter().all(|(name, _)| *name != size.name))
            .map(|size| (size.name.as_str(), size.size));
        stated.chain(own).collect()
    }

    /// The outputs that are the action or states; none if the file has no such output, which
    /// binding reports.
    fn needed_outputs(&mut self, model: &Model) -> Vec<String> {
        let mut all: Vec<&str> = Vec::new();
        for port in model.outputs() {
            if !all.contains(&port.name.as_str()) {
                all.push(&port.name);
            }
        }
        let mut states: Vec<String> = self
            .state
            .iter()
            .map(|(_, output)| output.clone())
            .collect();
        if states.is_empty() {
            let named = self.named_ports();
            let inputs = model.inputs().iter().map(|port| port.name.as_str());
            let mut pairs = state_names(inputs, &all);
            pairs.retain(|(input, output)| {
                !named.contains(input) && !named.contains(&output.as_str())
            });
            if pairs.len() < all.len() {
                states.extend(pairs.into_iter().map(|(_, output)| output));
            }
        }
        let mut open = all
            .iter()
            .filter(|name| states.iter().all(|state| state != *name));
        let action = match &self.output {
            Some(name) => name.clone(),
            None => match open.next() {
                Some(first) => (*first).to_owned(),
                None => return Vec::new(),
            },
        };
        if self.output.is_none() && open.next().is_some() {
            self.assumed.push(format!(
                "output {action} is the action: the first that is no state (assumed)"
            ));
            self.output = Some(action.clone());
        }
        states.push(action);
        let fed_back = self.fed_back(&self.output_sizes(model));
        for (name, _) in fed_back {
            if !states.contains(&name) {
                states.push(name);
            }
        }
        if states.iter().any(|name| !all.contains(&name.as_str())) {
            return Vec::new();
        }
        states
    }

    /// The sizes of axes that the file leaves open, where the terms of their input give them.
    fn open_sizes(
        &self,
        model: &Model,
        body: &BodySpec,
        before: &[(Network, String)],
    ) -> Vec<OpenSize> {
        let fed_back = self.fed_back(&self.output_sizes(model));
        let names = Names {
            contract: self,
            body,
            outputs: &fed_back,
        };
        let outputs: Vec<&str> = model
            .outputs()
            .iter()
            .map(|port| port.name.as_str())
            .collect();
        let inputs = || model.inputs().iter().map(|port| port.name.as_str());
        let states = state_names(inputs(), &outputs);
        let is_state = |name: &str| {
            self.state.iter().any(|(input, _)| input == name)
                || self.state.is_empty() && states.iter().any(|(input, _)| *input == name)
        };
        let mut open = inputs().filter(|name| !is_state(name));
        let main = self
            .input
            .as_deref()
            .or_else(|| match (open.next(), open.next()) {
                (Some(only), None) => Some(only),
                _ => None,
            });
        let mut sizes: Vec<OpenSize> = Vec::new();
        for port in model.inputs() {
            let own = |term: &&Term| term.input.as_deref().or(main) == Some(port.name.as_str());
            let terms: Vec<&Term> = self.observation.iter().filter(own).collect();
            let numbers: Option<usize> = terms
                .iter()
                .map(|term| self.count(term, &names, before))
                .sum();
            // The order of several histories in axes of their own is not stated.
            let is_flat = terms.len() == 1 || terms.iter().all(|term| term.history.is_newest());
            let rule = self.inputs.iter().find(|rule| rule.name == port.name);
            let frames = rule.map_or(1, |rule| rule.frames.ages.len());
            if let Some(size) = numbers
                .map(|numbers| numbers * frames)
                .filter(|numbers| *numbers > 0 && is_flat)
                .and_then(|numbers| OpenSize::of(port, numbers))
                .filter(|size| sizes.iter().all(|known| known.name != size.name))
            {
                sizes.push(size);
            }
        }
        sizes
    }

    /// How many numbers a term has; none if that cannot be known, which binding reports.
    fn count(&self, term: &Term, names: &Names<'_>, before: &[(Network, String)]) -> Option<usize> {
        let row = match &term.source {
            TermSource::Channels(list) => list
                .iter()
                .map(|name| names.resolve(name).ok().map(|numbers| numbers.len()))
                .sum::<Option<usize>>()?,
            TermSource::PreviousAction(_) if self.action.choices.is_empty() => {
                self.action.channels(names.body).ok()?.len()
            }
            TermSource::PreviousAction(_) => self.action.choices.len(),
            TermSource::Constant(numbers) => numbers.len(),
            TermSource::Step => 1,
            TermSource::Network(name) => {
                let place = self.networks.iter().position(|rule| rule.name == *name)?;
                let (network, output) = before.get(place)?;
                let port = network.outputs().find(|port| port.name == *output)?;
                port.dims.iter().product()
            }
        };
        Some(term.function.len(row)? * term.history.ages.len())
    }

    /// The outputs of a model with their numbers; an open axis counts as 1.
    fn output_sizes(&self, model: &Model) -> Vec<(String, usize)> {
        let size = |dim: &PortDim| match dim {
            PortDim::Size(size) => *size,
            PortDim::Named(name) => self
                .axes
                .iter()
                .find(|(axis, _)| axis == name)
                .map_or(1, |(_, size)| *size),
            PortDim::Unknown => 1,
        };
        model
            .outputs()
            .iter()
            .map(|port| {
                let dims = port.dims.as_deref().unwrap_or_default();
                (port.name.clone(), dims.iter().map(size).product())
            })
            .collect()
    }
}

/// The size of an axis that the file leaves open.
struct OpenSize {
    input: String,
    axis: usize,
    /// The name under which it is set.
    name: String,
    size: usize,
}

impl OpenSize {
    /// The only axis without a size, apart from the first one, which is the batch; none where there
    /// are more, or where the numbers do not fill it.
    fn of(port: &Port, numbers: usize) -> Option<Self> {
        let dims = port.dims.as_ref()?;
        let mut open = port
            .open_axes()
            .filter(|(axis, _)| *axis > 0 || dims.len() == 1);
        let (axis, own) = open.next().filter(|_| open.next().is_none())?;
        let known: usize = dims
            .iter()
            .map(|dim| match dim {
                PortDim::Size(size) => *size,
                PortDim::Named(_) | PortDim::Unknown => 1,
            })
            .product();
        let size = numbers.checked_div(known)?;
        (size > 1 && size * known == numbers).then(|| Self {
            input: port.name.clone(),
            axis,
            name: match &dims[axis] {
                PortDim::Named(name) => name.clone(),
                _ => own,
            },
            size,
        })
    }
}
