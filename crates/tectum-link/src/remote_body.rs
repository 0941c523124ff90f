//! A body in another process, as the loop sees it.

use std::sync::Arc;
use std::time::Duration;

use tectum::Result;
use tectum_control::body::link::{LinkCounts, LinkState, LinkStatus};
use tectum_control::body::{Body, BodySpec, Command, Step};
use tectum_control::clock::ClockKind;
use tectum_control::message::{Array, Message};

use crate::Address;
use crate::link::{Link, LinkSettings, Reach, unusable};
use crate::mailbox::{Answers, Mailbox, Taken};
use crate::supervisor::{Supervisor, hold_limit_ns};

/// A body in another process.
///
/// Under a simulated clock it is in lockstep: each step waits for the body's answer, at most for
/// the limit of its settings. In real time it never waits, see [`Body::link`]. It is dropped with
/// the safe action as the last one.
#[derive(Debug)]
pub struct RemoteBody {
    link: Link,
    observation: Vec<f32>,
    /// None before the loop runs in real time.
    supervisor: Option<Supervisor>,
    /// The connection that the actions are for.
    connection: u64,
    /// The observation that the brain answers.
    answers: Option<Answers>,
    action_sent_ns: Option<u64>,
    /// What the observations of this period report.
    reported: Step,
    is_failed: bool,
}

/// How long before a period its observation should arrive: a tenth of the period, at least 2 ms where
/// half a period is more.
fn lead_ns(period_ns: u64) -> u64 {
    (period_ns / 10).max(2_000_000).min(period_ns / 2)
}

/// Arms a body again after a stop, from any thread.
#[derive(Debug, Clone)]
pub struct ArmSwitch(Arc<Mailbox>);

impl ArmSwitch {
    /// Allows actions again: from the next observation on the brain is queried. Without a
    /// connection, and before a stop, it has no effect.
    pub fn arm(&self) {
        self.0.arm();
    }
}

impl RemoteBody {
    /// Connects to a body, or waits until it connects.
    ///
    /// # Errors
    /// `Invalid` for an address of another machine without a token, and for a body that differs
    /// from what is stated; `Data` without a connection in time; `Io` with what the operating
    /// system reports.
    pub fn open(name: &str, settings: LinkSettings) -> Result<Self> {
        Self::open_with(name, settings, &mut |_| {})
    }

    /// The same; `bound` receives the address at which it waits, with its port, before it waits.
    ///
    /// # Errors
    /// As [`RemoteBody::open`].
    pub fn open_with(
        name: &str,
        settings: LinkSettings,
        bound: &mut dyn FnMut(&Address),
    ) -> Result<Self> {
        let link = Link::open(name, settings, bound)?;
        Ok(Self {
            observation: vec![0.0; link.spec.observation_len()],
            supervisor: None,
            connection: 0,
            answers: None,
            action_sent_ns: None,
            reported: Step::default(),
            is_failed: false,
            link,
        })
    }

    /// The body's own name.
    pub fn peer(&self) -> &str {
        &self.link.peer
    }

    /// Where it is reached; none for a body on a serial port.
    pub fn address(&self) -> Option<&Address> {
        self.link.address.as_ref()
    }

    /// Arms it again after a stop.
    pub fn arm_switch(&self) -> ArmSwitch {
        ArmSwitch(self.link.mailbox.clone())
    }

    /// Whether the body has sent `arm` since the last period.
    pub(crate) fn is_being_armed(&self) -> bool {
        self.link.mailbox.is_being_armed()
    }

    /// A request in lockstep; its observation is taken.
    fn request(&mut self, kind: &str, fill: impl FnOnce(Message) -> Message) -> Option<Message> {
        if self.is_failed {
            return None;
        }
        let wait: Duration = self.link.settings.wait;
        let answer = self.link.mailbox.request(kind, wait, fill);
        let taken = answer.and_then(|answer| {
            let spec = &self.link.spec;
            spec.read_observation(&answer, &mut self.observation)?;
            Ok(answer)
        });
        match taken {
            Ok(answer) => Some(answer),
            Err(error) => {
                self.is_failed = true;
                self.link.mailbox.fail(&error.to_string());
                None
            }
        }
    }

    /// The action as the body may apply it, and whether it was refused.
    fn applied(&self, action: &[f32]) -> (Vec<f32>, bool) {
        let spec = &self.link.spec;
        assert_eq!(
            action.len(),
            spec.action.len(),
            "{}: numbers of an action",
            spec.name
        );
        let channels = spec.action.iter().zip(action);
        let applied: Option<Vec<f32>> = channels
            .map(|(channel, value)| channel.applied(*value))
            .collect();
        match applied {
            Some(applied) => (applied, false),
            None => (spec.safe_action.clone(), true),
        }
    }

    fn step_in_lockstep(&mut self, action: &[f32]) -> Step {
        let (applied, refused) = self.applied(action);
        let applied = Array::of_f32(&applied);
        let answer = self.request("step", |message| message.with_array("action", &applied));
        let failed = Step {
            reward: f64::NAN,
            refused,
            ..Step::default()
        };
        answer.map_or(failed, |answer| Step {
            reward: answer.number("reward").unwrap_or(0.0),
            terminated: answer.flag("terminated").unwrap_or(false),
            truncated: answer.flag("truncated").unwrap_or(false),
            refused,
        })
    }

    /// Sends an action in real time, and returns what the observations of this period report.
    fn post(&mut self, action: &[f32], is_safe: bool) -> Step {
        let (applied, refused) = self.applied(action);
        let (now_ns, connection) = (self.link.now_ns(), self.connection);
        let mailbox = &self.link.mailbox;
        mailbox.post_action(
            now_ns,
            connection,
            &applied,
            is_safe || refused,
            self.answers,
        );
        Step {
            refused,
            ..std::mem::take(&mut self.reported)
        }
    }

    /// Changes to real time, when the loop first asks.
    fn start(&mut self) -> &mut Supervisor {
        let (link, wait) = (&self.link, self.link.settings.wait);
        let connection = &mut self.connection;
        self.supervisor.get_or_insert_with(|| {
            let period_ns = (link.spec.dt_s * 1e9) as u64;
            let hold_s = link.settings.hold_s;
            let hold_ns = hold_s.map_or(hold_limit_ns(period_ns), |hold_s| (hold_s * 1e9) as u64);
            // The first observation arrives just before the next period, and so do those after it.
            let now_ns = link.now_ns();
            let start_ns = now_ns + period_ns - lead_ns(period_ns);
            link.mailbox.start(hold_ns, start_ns);
            *connection = link.mailbox.connection();
            Supervisor::new(hold_ns, wait.as_nanos() as u64, *connection, now_ns)
        })
    }

    fn status_in_real_time(&mut self) -> LinkStatus {
        self.start();
        let now_ns = self.link.now_ns();
        let Taken {
            seen,
            observed,
            network_ns,
            action_sent_ns,
            counts,
        } = self.link.mailbox.take(&mut self.observation);
        let mut queue_ns = None;
        if let Some(observed) = observed {
            queue_ns = Some(now_ns.saturating_sub(observed.arrived_ns));
            self.answers = queue_ns.map(|queue_ns| Answers {
                sequence: observed.sequence,
                queue_ns,
            });
            self.action_sent_ns = action_sent_ns;
            self.reported = Step {
                reward: observed.reward,
                terminated: observed.terminated,
                truncated: observed.truncated,
                refused: false,
            };
        }
        let supervisor = self.start();
        let state = supervisor.period(now_ns, &seen);
        let (last_ns, rearmed) = (supervisor.last_ns(), supervisor.rearmed);
        self.connection = seen.connection;
        LinkStatus {
            state,
            observation_age_ns: last_ns.map(|last_ns| now_ns.saturating_sub(last_ns)),
            action_age_ns: self
                .action_sent_ns
                .filter(|_| last_ns.is_some())
                .map(|sent_ns| now_ns.saturating_sub(sent_ns)),
            queue_ns,
            network_ns,
            counts: LinkCounts { rearmed, ..counts },
        }
    }
}

impl Body for RemoteBody {
    fn spec(&self) -> &BodySpec {
        &self.link.spec
    }

    /// In lockstep it waits for the first observation; in real time the periods until it arrives
    /// get the safe action.
    fn reset(&mut self, seed: u64) {
        match &mut self.supervisor {
            None => {
                self.request("reset", |message| message.with("seed", seed));
            }
            Some(supervisor) => {
                supervisor.reset(self.link.now_ns());
                self.reported = Step::default();
                self.link.mailbox.post_reset(seed);
            }
        }
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&self.observation);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        match self.supervisor {
            None => self.step_in_lockstep(action),
            Some(_) => self.post(action, false),
        }
    }

    /// Sends the action; in real time not for a period that has passed.
    fn advance(&mut self, command: &mut Command<'_>) -> Step {
        if self.supervisor.is_none() {
            return self.step_in_lockstep(command.action);
        }
        let period_ns = (self.link.spec.dt_s * 1e9) as u64;
        if command.has_passed(period_ns) {
            self.link.mailbox.skip_action();
            return std::mem::take(&mut self.reported);
        }
        let is_safe = command.is_safe || command.action == self.link.spec.safe_action;
        self.post(command.action, is_safe)
    }

    fn link(&mut self, clock: ClockKind) -> Option<LinkStatus> {
        Some(match clock {
            ClockKind::Sim => LinkStatus {
                counts: self.link.mailbox.counts(),
                ..LinkStatus::new(LinkState::Fresh)
            },
            ClockKind::Real => self.status_in_real_time(),
        })
    }

    fn commands(&mut self, set: &mut dyn FnMut(&str, Option<f64>) -> Result<()>) {
        for (name, value) in self.link.mailbox.take_commands() {
            if let Err(error) = set(&name, value)
                && self.link.mailbox.refuse_command()
            {
                tracing::warn!(body = self.link.spec.name, %error, "a command is refused");
            }
        }
    }

    /// A machine on a serial port has no lockstep.
    fn clock(&self) -> Option<ClockKind> {
        matches!(self.link.settings.reach, Reach::Serial(_)).then_some(ClockKind::Real)
    }

    fn health(&self) -> Result<()> {
        match self.link.mailbox.failure() {
            None => Ok(()),
            Some(reason) => Err(unusable(&self.link.spec.name, &reason)),
        }
    }
}
