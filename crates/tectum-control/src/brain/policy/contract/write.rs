//! A contract as text.

use std::fmt::Write;

use super::Contract;
use super::action::ActionRule;
use super::clock::ClockRule;
use super::command::CommandRule;
use super::history::{Fill, History};
use super::input::InputRule;
use super::normalizer::Normalizer;
use super::term::{ActionStage, QuaternionOrder, Term, TermFunction, TermSource, TermStep};
use super::text::name_of;
use crate::body::BodySpec;
use crate::body::motors::Control;
use crate::body::motors::rule::{Gains, MotorRule, MotorState, SafeRule};
use crate::body::names::{observed, place_of};

/// A text of TOML. JSON's form of a text is one.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let names: Vec<String> = names.into_iter().map(quoted).collect();
    format!("[{}]", names.join(", "))
}

/// A key of TOML: bare where its letters allow it.
fn key_of(name: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !name.is_empty() && name.bytes().all(is_bare) {
        name.to_owned()
    } else {
        quoted(name)
    }
}

/// Lines `KEY = VALUE`, each only where it has an effect.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, key: &str, value: impl std::fmt::Display) {
        // Writing to a text does not fail.
        let _ = writeln!(self.0, "{key} = {value}");
    }

    fn text(&mut self, key: &str, text: Option<&str>) {
        if let Some(text) = text {
            self.line(key, quoted(text));
        }
    }

    fn names(&mut self, key: &str, names: &Option<Vec<String>>) {
        if let Some(names) = names {
            self.line(key, list(names.iter().map(String::as_str)));
        }
    }

    /// One number for all, or a list; nothing if all of them are neutral.
    fn numbers(&mut self, key: &str, numbers: &[f64], neutral: f64) {
        match numbers {
            all if all.iter().all(|number| *number == neutral) => {}
            [one] => self.line(key, number(*one)),
            several => self.line(key, numbers_of(several)),
        }
    }

    fn bounds(&mut self, key: &str, bounds: &[[f64; 2]]) {
        match bounds {
            [] => {}
            [one] if one.iter().all(|bound| bound.is_infinite()) => {}
            [one] => self.line(key, numbers_of(one)),
            several => {
                let pairs: Vec<String> = several.iter().map(|pair| numbers_of(pair)).collect();
                self.line(key, format!("[{}]", pairs.join(", ")));
            }
        }
    }
}

/// A number as TOML has it.
fn number(value: f64) -> String {
    format!("{value:?}")
}

fn numbers_of(numbers: &[f64]) -> String {
    let numbers: Vec<String> = numbers.iter().map(|value| number(*value)).collect();
    format!("[{}]", numbers.join(", "))
}

impl Contract {
    /// The contract as TOML, which [`Contract::parse`] reads as the same; comments name what was
    /// assumed, what was not read, and what a body does not have.
    pub fn to_toml(&self, body: Option<&BodySpec>) -> String {
        let mut text = String::new();
        for assumption in &self.assumed {
            text += &format!("# Assumed: {assumption}\n");
        }
        for unread in &self.unread {
            text += &format!("# Not read: {unread}\n");
        }
        if !(self.assumed.is_empty() && self.unread.is_empty()) {
            text += "\n";
        }
        let mut lines = Lines::default();
        if let Some(period_s) = self.period_s {
            lines.line("period", number(period_s));
        }
        lines.text("input", self.input.as_deref());
        lines.text("output", self.output.as_deref());
        if self.is_primed {
            lines.line("prime", true);
        }
        text += &lines.0;
        if !self.axes.is_empty() {
            text += "\n[axes]\n";
            for (name, size) in &self.axes {
                text += &format!("{} = {size}\n", key_of(name));
            }
        }
        for command in &self.commands {
            text += &format!(
                "\n[commands.{}]\n{}",
                key_of(&command.name),
                command.lines()
            );
        }
        for clock in &self.clocks {
            text += &clock.tables();
        }
        for network in &self.networks {
            let mut lines = Lines::default();
            lines.text("name", Some(&network.name));
            lines.text("model", Some(&network.model));
            lines.text("input", network.input.as_deref());
            lines.text("output", network.output.as_deref());
            text += &format!("\n[[network]]\n{}", lines.0);
            for input in &network.inputs {
                text += &input.tables("network.");
            }
            for term in &network.observation {
                text += &format!("\n[[network.observation]]\n{}", term.lines());
            }
        }
        for input in &self.inputs {
            text += &input.tables("");
        }
        for term in &self.observation {
            text += &format!("\n# {}\n{}", term.place, term.missing(self, body));
            text += &format!("[[observation]]\n{}", term.lines());
        }
        text += &format!("\n[action]\n{}", self.action.lines(body));
        if let Some(normalizer) = &self.action.unnormalize {
            text += &format!("\n[action.unnormalize]\n{}", normalizer.lines());
        }
        if let Some(motors) = &self.motors {
            text += &motors.tables();
        }
        if !self.state.is_empty() {
            text += "\n[state]\n";
            for (input, output) in &self.state {
                text += &format!("{} = {}\n", key_of(input), quoted(output));
            }
        }
        text
    }
}

impl Term {
    /// A comment with the names that a body does not have.
    fn missing(&self, contract: &Contract, body: Option<&BodySpec>) -> String {
        let (TermSource::Channels(names), Some(body)) = (&self.source, body) else {
            return String::new();
        };
        let is_own = |name: &str| {
            ["command.", "clock.", "output."].iter().any(|kind| {
                name.strip_prefix(kind).is_some_and(|name| {
                    *kind == "output."
                        || contract.commands.iter().any(|rule| rule.name == name)
                        || contract.clocks.iter().any(|rule| rule.name == name)
                })
            })
        };
        let missing: Vec<&str> = names
            .iter()
            .map(String::as_str)
            .filter(|name| !is_own(name) && observed(body, name).is_err())
            .collect();
        if missing.is_empty() {
            return String::new();
        }
        format!(
            "# The body {} has no channel {}; a command is `channels = [\"command.NAME\"]` instead.\n",
            body.name,
            missing.join(", ")
        )
    }

    fn lines(&self) -> String {
        let mut lines = Lines::default();
        lines.text("input", self.input.as_deref());
        match &self.source {
            TermSource::Channels(names) => {
                lines.line("channels", list(names.iter().map(String::as_str)));
            }
            TermSource::PreviousAction(stage) => {
                lines.text("source", Some("previous action"));
                if *stage != ActionStage::Raw {
                    lines.text("as", Some(name_of(&ActionStage::NAMES, *stage)));
                }
            }
            TermSource::Constant(numbers) => lines.line("value", numbers_of(numbers)),
            TermSource::Step => lines.text("source", Some("step")),
            TermSource::Network(name) => lines.text("network", Some(name)),
        }
        if self.function != TermFunction::Identity {
            lines.text("function", Some(self.function.name()));
        }
        if let Some(order) = self.quaternion {
            lines.text("quaternion", Some(name_of(&QuaternionOrder::NAMES, order)));
        }
        if !self.axes.is_empty() {
            lines.line("axes", format!("{:?}", self.axes));
        }
        lines.text("unit", self.unit.as_deref());
        lines.numbers("offset", &self.offset, 0.0);
        lines.bounds("clip", &self.clip);
        lines.numbers("scale", &self.scale, 1.0);
        if let Some(steps) = &self.apply {
            let names = steps.iter().map(|step| name_of(&TermStep::NAMES, *step));
            lines.line("apply", list(names));
        }
        self.history.lines("history", &mut lines);
        if let Some(fill) = &self.fill {
            fill.lines(&mut lines);
        }
        if self.is_rounded {
            lines.line("round", true);
        }
        lines.0
    }
}

impl History {
    fn lines(&self, key: &str, lines: &mut Lines) {
        if self.is_newest() {
            return;
        }
        let len = self.ages.len();
        if self.ages.iter().copied().eq((0..len).rev()) {
            lines.line(key, len);
            if self.is_order_stated {
                lines.text("order", Some("oldest first"));
            }
        } else if self.ages.iter().copied().eq(0..len) {
            lines.line(key, len);
            lines.text("order", Some("newest first"));
        } else {
            lines.line(key, format!("{:?}", self.ages));
        }
    }
}

impl Fill {
    fn lines(&self, lines: &mut Lines) {
        match self {
            Self::First => lines.text("fill", Some("first")),
            Self::Zeros => lines.text("fill", Some("zeros")),
            Self::Values(values) => lines.line("fill_value", numbers_of(values)),
        }
    }
}

impl InputRule {
    fn tables(&self, prefix: &str) -> String {
        let mut lines = Lines::default();
        self.frames.lines("frames", &mut lines);
        if let Some(fill) = &self.fill {
            fill.lines(&mut lines);
        }
        lines.bounds("clip", &self.clip);
        let name = key_of(&self.name);
        let mut text = format!("\n[{prefix}inputs.{name}]\n{}", lines.0);
        if let Some(normalizer) = &self.normalize {
            text += &format!(
                "\n[{prefix}inputs.{name}.normalize]\n{}",
                normalizer.lines()
            );
        }
        text
    }
}

impl Normalizer {
    fn lines(&self) -> String {
        let mut lines = Lines::default();
        lines.text("formula", Some(self.formula.name()));
        let [low, high] = self.formula.keys();
        lines.line(low, numbers_of(&self.low));
        lines.line(high, numbers_of(&self.high));
        if self.epsilon > 0.0 {
            lines.line("epsilon", number(self.epsilon));
        }
        if let Some(clip) = self.clip {
            lines.line("clip", number(clip));
        }
        lines.0
    }
}

impl CommandRule {
    fn lines(&self) -> String {
        let mut lines = Lines::default();
        lines.line("value", number(self.value));
        lines.bounds("range", &[self.range]);
        lines.text("unit", self.unit.as_deref());
        if !self.schedule.is_empty() {
            let rows: Vec<String> = self.schedule.iter().map(|row| numbers_of(row)).collect();
            lines.line("schedule", format!("[{}]", rows.join(", ")));
        }
        if self.is_linear {
            lines.text("interpolation", Some("linear"));
        }
        lines.0
    }
}

impl ClockRule {
    fn tables(&self) -> String {
        let mut lines = Lines::default();
        lines.line("period", number(self.period_s));
        lines.line("offsets", numbers_of(&self.offsets));
        lines.line("start", number(self.start));
        if !self.first.is_empty() {
            lines.line("first", numbers_of(&self.first));
        }
        if self.is_reset {
            lines.text("at_end", Some("reset"));
        }
        if self.is_signed {
            lines.text("range", Some("signed"));
        }
        let name = key_of(&self.name);
        let mut text = format!("\n[clocks.{name}]\n{}", lines.0);
        if let Some(standing) = &self.standing {
            let mut lines = Lines::default();
            lines.line(
                "commands",
                list(standing.commands.iter().map(String::as_str)),
            );
            lines.line("below", number(standing.below));
            lines.line("phase", number(standing.phase));
            text += &format!("\n[clocks.{name}.standing]\n{}", lines.0);
        }
        text
    }
}

impl ActionRule {
    fn lines(&self, body: Option<&BodySpec>) -> String {
        let mut lines = Lines::default();
        lines.names("channels", &self.channels);
        let mut comment = String::new();
        let mut passive = self.passive.clone();
        if let (Some(body), Some(names)) = (body, &self.channels) {
            let known = || body.action.iter().map(|channel| channel.name.as_str());
            let driven: Vec<usize> = names
                .iter()
                .filter_map(|name| place_of(name, known()))
                .collect();
            if driven.len() < names.len() {
                comment = format!(
                    "# The body {} has no action of some of these names.\n",
                    body.name
                );
            } else {
                let others = known().enumerate().filter(|(place, name)| {
                    !driven.contains(place) && !passive.iter().any(|own| own == name)
                });
                let others: Vec<String> = others.map(|(_, name)| name.to_owned()).collect();
                passive.extend(others);
            }
        }
        lines.0 += &comment;
        if !passive.is_empty() {
            lines.line("passive", list(passive.iter().map(String::as_str)));
        }
        lines.text("unit", self.unit.as_deref());
        if self.fade_in > 0 {
            lines.line("fade_in", self.fade_in);
        }
        lines.bounds("clip", &self.clip);
        if self.is_torque_clipped {
            lines.line("clip_torque", true);
        }
        lines.numbers("scale", &self.scale, 1.0);
        lines.numbers("offset", &self.offset, 0.0);
        if !self.add.is_empty() {
            lines.line("add", list(self.add.iter().map(String::as_str)));
        }
        lines.bounds("clip_target", &self.clip_target);
        if !self.choices.is_empty() {
            let rows: Vec<String> = self.choices.iter().map(|row| numbers_of(row)).collect();
            lines.line("choices", format!("[{}]", rows.join(", ")));
        }
        if !self.mask.is_empty() {
            lines.line("mask", list(self.mask.iter().map(String::as_str)));
        }
        if self.chunk > 1 {
            lines.line("chunk", self.chunk);
        }
        if let Some(steps) = self.replan_steps {
            lines.line("replan_steps", steps);
        }
        if let Some(m) = self.temporal_ensemble_coeff {
            lines.line("temporal_ensemble_coeff", number(m));
        }
        if self.is_asynchronous {
            lines.line("asynchronous", true);
        }
        if let Some(delay) = self.inference_delay {
            lines.line("inference_delay", delay);
        }
        lines.0
    }
}

impl Gains {
    fn lines(&self, lines: &mut Lines) {
        lines.numbers("stiffness", &self.stiffness, f64::NAN);
        lines.numbers("damping", &self.damping, f64::NAN);
    }
}

impl MotorRule {
    fn tables(&self) -> String {
        let mut lines = Lines::default();
        lines.names("joints", &self.joints);
        lines.names("position", &self.position);
        lines.names("velocity", &self.velocity);
        lines.names("actuators", &self.actuators);
        let control: Vec<&str> = self
            .control
            .iter()
            .map(|control| name_of(&Control::NAMES, *control))
            .collect();
        match &control[..] {
            [] => {}
            [one] => lines.text("control", Some(one)),
            several => lines.line("control", list(several.iter().copied())),
        }
        lines.numbers("stiffness", &self.stiffness, f64::NAN);
        lines.numbers("damping", &self.damping, f64::NAN);
        lines.numbers("torque_limit", &self.torque_limit, f64::NAN);
        lines.numbers("velocity_limit", &self.velocity_limit, f64::NAN);
        lines.bounds("position_limit", &self.position_limit);
        lines.numbers("default", &self.default, f64::NAN);
        if let Some(decimation) = self.decimation {
            lines.line("decimation", decimation);
        }
        if let Some(filter_hz) = self.filter_hz {
            lines.line("filter", number(filter_hz));
        }
        if let Some(lag_s) = self.lag_s {
            lines.line("lag", number(lag_s));
        }
        let mut text = format!("\n[motors]\n{}", lines.0);
        for held in &self.held {
            let mut lines = Lines::default();
            lines.line("joints", list(held.joints.iter().map(String::as_str)));
            lines.line("target", numbers_of(&held.target));
            lines.numbers("stiffness", &held.stiffness, f64::NAN);
            lines.numbers("damping", &held.damping, f64::NAN);
            text += &format!("\n[[motors.held]]\n{}", lines.0);
        }
        for start in &self.start {
            let mut lines = Lines::default();
            lines.text("state", Some(name_of(&MotorState::NAMES, start.state)));
            lines.line("seconds", number(start.seconds));
            start.gains.lines(&mut lines);
            text += &format!("\n[[motors.start]]\n{}", lines.0);
        }
        if self.safe != SafeRule::default() {
            let mut lines = Lines::default();
            lines.text("state", Some(name_of(&MotorState::NAMES, self.safe.state)));
            self.safe.gains.lines(&mut lines);
            text += &format!("\n[motors.safe]\n{}", lines.0);
        }
        text
    }
}
