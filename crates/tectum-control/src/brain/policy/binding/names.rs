//! Names in a contract: channels of the body, commands, clocks, and outputs that are fed back.

use tectum::{Error, Result};

use super::NumberSource;
use crate::body::BodySpec;
use crate::body::names::observed;
use crate::brain::policy::contract::Contract;
use crate::brain::policy::contract::term::TermSource;
use crate::nearest::suggestion;

/// What names in a contract can refer to.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    pub contract: &'a Contract,
    pub body: &'a BodySpec,
    /// Outputs of the network that are fed back, with the numbers that each has.
    pub outputs: &'a [(String, usize)],
}

impl Names<'_> {
    /// The numbers of a name.
    ///
    /// # Errors
    /// `Invalid` for a name that neither the contract, nor the network, nor the body has.
    pub fn resolve(&self, name: &str) -> Result<Vec<NumberSource>> {
        let contract = self.contract;
        if let Some(command) = name.strip_prefix("command.")
            && !contract.commands.is_empty()
        {
            let names = || contract.commands.iter().map(|rule| rule.name.as_str());
            if command == "*" {
                return Ok((0..contract.commands.len())
                    .map(NumberSource::Command)
                    .collect());
            }
            return match names().position(|known| known == command) {
                Some(place) => Ok(vec![NumberSource::Command(place)]),
                None => Err(unknown("command", command, names())),
            };
        }
        if let Some(clock) = name.strip_prefix("clock.")
            && !contract.clocks.is_empty()
        {
            let names = || contract.clocks.iter().map(|rule| rule.name.as_str());
            return match names().position(|known| known == clock) {
                Some(place) => Ok((0..contract.clocks[place].offsets.len())
                    .map(|leg| NumberSource::Clock { clock: place, leg })
                    .collect()),
                None => Err(unknown("clock", clock, names())),
            };
        }
        if let Some(found) = fed_back(name, self.outputs) {
            let (output, range) = found?;
            return Ok(range
                .map(|index| NumberSource::Output { output, index })
                .collect());
        }
        let channels = observed(self.body, name)?;
        let elements = |channel| {
            self.body
                .range(channel)
                .map(move |element| NumberSource::Channel { channel, element })
        };
        Ok(channels.into_iter().flat_map(elements).collect())
    }
}

fn unknown<'n>(kind: &str, name: &str, known: impl Iterator<Item = &'n str> + Clone) -> Error {
    Error::invalid(format!(
        "the contract has no {kind} {name:?}{}; it has {}",
        suggestion(name, known.clone()),
        known.collect::<Vec<_>>().join(", ")
    ))
}

/// The output and its numbers of a name `output.NAME`, `output.NAME.I` or `output.NAME.I-J`; none
/// for other names.
fn fed_back(
    name: &str,
    outputs: &[(String, usize)],
) -> Option<Result<(usize, std::ops::Range<usize>)>> {
    let rest = name.strip_prefix("output.")?;
    let is_own = |own: &str| {
        rest == own
            || rest
                .strip_prefix(own)
                .is_some_and(|part| part.starts_with('.'))
    };
    let (place, (own, len)) = outputs
        .iter()
        .enumerate()
        .filter(|(_, (own, _))| is_own(own))
        .max_by_key(|(_, (own, _))| own.len())?;
    let Some(part) = rest
        .strip_prefix(own.as_str())
        .and_then(|part| part.strip_prefix('.'))
    else {
        return Some(Ok((place, 0..*len)));
    };
    let (first, last) = part.split_once('-').unwrap_or((part, part));
    let range = match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), Ok(last)) if first <= last && last < *len => Ok((place, first..last + 1)),
        _ => Err(Error::invalid(format!(
            "{name}: output {own} has the numbers 0 to {}",
            len.saturating_sub(1)
        ))),
    };
    Some(range)
}

fn channels(source: &TermSource) -> &[String] {
    match source {
        TermSource::Channels(names) => names,
        _ => &[],
    }
}

impl Contract {
    /// All names of its terms and its action.
    pub(crate) fn all_names(&self) -> impl Iterator<Item = &str> {
        let stages = self
            .networks
            .iter()
            .flat_map(|network| &network.observation);
        self.observation
            .iter()
            .chain(stages)
            .flat_map(|term| channels(&term.source))
            .chain(&self.action.add)
            .chain(&self.action.mask)
            .map(String::as_str)
    }

    /// Those of some outputs that its names feed back, in their order.
    pub(crate) fn fed_back(&self, outputs: &[(String, usize)]) -> Vec<(String, usize)> {
        let mut used = vec![false; outputs.len()];
        for name in self.all_names() {
            if let Some(Ok((place, _))) = fed_back(name, outputs) {
                used[place] = true;
            }
        }
        outputs
            .iter()
            .zip(used)
            .filter(|(_, is_used)| *is_used)
            .map(|(output, _)| output.clone())
            .collect()
    }
}
