//! A body whose observation comes from several processes: `[[body.source]]`.
//!
//! A source is a body without an action, such as the process of a camera: it has the same protocol,
//! and a connection, a hold limit and a heartbeat of its own. The channels of the sources follow those
//! of the body, in the order of the scenario. The body is in the worst state of all of them, so that
//! a source that is silent stops it; arming the body arms all.

use tectum::{Error, Result};
use tectum_control::body::link::{LinkCounts, LinkState, LinkStatus};
use tectum_control::body::{Body, BodySpec, Command, Step};
use tectum_control::clock::ClockKind;

use crate::RemoteBody;

/// A body and its sources.
#[derive(Debug)]
pub(crate) struct WithSources {
    body: RemoteBody,
    sources: Vec<RemoteBody>,
    spec: BodySpec,
}

/// The constants of a body with the channels of its sources.
///
/// # Errors
/// `Invalid` for a source with an action, and for two channels of one name.
pub(crate) fn spec_with<'s>(
    body: &BodySpec,
    sources: impl Iterator<Item = &'s BodySpec>,
) -> Result<BodySpec> {
    let mut spec = body.clone();
    for source in sources {
        let refused = |reason: String| Error::invalid(format!("source {}: {reason}", source.name));
        if let Some(channel) = source.action.first() {
            return Err(refused(format!(
                "it has the action {}, a source has none",
                channel.name
            )));
        }
        for channel in &source.observation {
            if spec.observation.iter().any(|own| own.name == channel.name) {
                return Err(refused(format!(
                    "its channel {} has the name of another channel of the body",
                    channel.name
                )));
            }
            spec.observation.push(channel.clone());
        }
    }
    Ok(spec)
}

impl WithSources {
    /// # Errors
    /// As [`spec_with`].
    pub fn new(body: RemoteBody, sources: Vec<RemoteBody>) -> Result<Self> {
        let spec = spec_with(body.spec(), sources.iter().map(Body::spec))?;
        Ok(Self {
            body,
            sources,
            spec,
        })
    }

    /// The body's own name.
    pub fn peer(&self) -> &str {
        self.body.peer()
    }

    /// The sources have no action, and learn when the body gets one.
    fn step_sources(&mut self) {
        self.sources.iter_mut().for_each(|source| {
            source.step(&[]);
        });
    }
}

/// How bad a state is: that of a body is the worst of its parts.
fn severity(state: LinkState) -> u8 {
    match state {
        // A source that was read before holds nothing.
        LinkState::Fresh | LinkState::Held => 0,
        LinkState::Waiting => 1,
        LinkState::Disarmed => 2,
        LinkState::Stale => 3,
        LinkState::Disconnected => 4,
    }
}

fn sum(one: LinkCounts, other: &LinkCounts) -> LinkCounts {
    LinkCounts {
        connections: one.connections + other.connections,
        observations: one.observations + other.observations,
        replaced_observations: one.replaced_observations + other.replaced_observations,
        repeated_messages: one.repeated_messages + other.repeated_messages,
        unreadable_messages: one.unreadable_messages + other.unreadable_messages,
        rearmed: one.rearmed + other.rearmed,
        commands: one.commands + other.commands,
        refused_commands: one.refused_commands + other.refused_commands,
        // Those of the body alone: a source has no action.
        actions: one.actions,
        replaced_actions: one.replaced_actions,
        watchdog_stops: one.watchdog_stops,
    }
}

impl Body for WithSources {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64) {
        self.body.reset(seed);
        self.sources
            .iter_mut()
            .for_each(|source| source.reset(seed));
    }

    fn observe(&self, observation: &mut [f32]) {
        let mut rest = observation;
        for part in std::iter::once(&self.body).chain(&self.sources) {
            let (own, after) = rest.split_at_mut(part.spec().observation_len());
            part.observe(own);
            rest = after;
        }
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let step = self.body.step(action);
        self.step_sources();
        step
    }

    fn advance(&mut self, command: &mut Command<'_>) -> Step {
        let step = self.body.advance(command);
        self.step_sources();
        step
    }

    fn commands(&mut self, set: &mut dyn FnMut(&str, Option<f64>) -> Result<()>) {
        self.body.commands(set);
        self.sources
            .iter_mut()
            .for_each(|source| source.commands(set));
    }

    fn link(&mut self, clock: ClockKind) -> Option<LinkStatus> {
        if self.body.is_being_armed() {
            self.sources
                .iter()
                .for_each(|source| source.arm_switch().arm());
        }
        let mut status = self.body.link(clock)?;
        for source in &mut self.sources {
            let own = source.link(clock)?;
            if severity(own.state) > severity(status.state) {
                status.state = own.state;
            }
            status.counts = sum(status.counts, &own.counts);
        }
        Some(status)
    }

    fn clock(&self) -> Option<ClockKind> {
        self.body.clock()
    }

    fn health(&self) -> Result<()> {
        self.body.health()?;
        self.sources.iter().try_for_each(Body::health)
    }
}

#[cfg(test)]
mod tests {
    use tectum_control::body::{ActionChannel, ObservationChannel};

    use super::*;

    fn part(name: &str, channels: &[&str], action: &[&str]) -> BodySpec {
        BodySpec {
            name: name.into(),
            dt_s: 0.02,
            observation: channels
                .iter()
                .map(|channel| ObservationChannel::new(*channel, "m", -1.0..=1.0))
                .collect(),
            action: action
                .iter()
                .map(|channel| ActionChannel::new(*channel, "V", -1.0..=1.0))
                .collect(),
            safe_action: vec![0.0; action.len()],
        }
    }

    #[test]
    fn channels_of_sources_follow_those_of_the_body() {
        let (arm, camera) = (
            part("arm", &["x"], &["u"]),
            part("camera", &["y", "z"], &[]),
        );
        let spec = spec_with(&arm, [&camera].into_iter()).expect("they fit");
        let names: Vec<&str> = spec
            .observation
            .iter()
            .map(|own| own.name.as_str())
            .collect();
        assert_eq!(
            (names, spec.action),
            (vec!["x", "y", "z"], arm.action.clone())
        );
        for (source, reason) in [
            (
                part("camera", &["x"], &[]),
                "source camera: its channel x has the name of another channel of the body",
            ),
            (
                part("camera", &["y"], &["v"]),
                "source camera: it has the action v, a source has none",
            ),
        ] {
            let error = spec_with(&arm, [&source].into_iter()).expect_err(reason);
            assert_eq!(error.to_string(), reason);
        }
    }
}
