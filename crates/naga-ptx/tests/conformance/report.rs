//! Results of the runners, as lines for a reader and as JSON.

use serde_json::{Value, json};

/// The outcome of a case on a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    Failed(String),
    /// Failed as [`crate::known_faults`] says, for that reason.
    Known(&'static str),
    Skipped(String),
}

/// One runner on one device.
pub struct Run {
    /// The runner's name, as `--only` takes it.
    pub runner: &'static str,
    pub device: String,
    pub driver: String,
    /// The outcome of each case, by name.
    pub outcomes: Vec<(String, Outcome)>,
    /// An additional line.
    pub note: Option<String>,
}

/// Everything that was run.
#[derive(Default)]
pub struct Report {
    pub runs: Vec<Run>,
    /// Runners that could not run, and why.
    pub absent: Vec<(&'static str, String)>,
}

impl Run {
    fn count(&self, is: impl Fn(&Outcome) -> bool) -> usize {
        self.outcomes
            .iter()
            .filter(|(_, outcome)| is(outcome))
            .count()
    }

    pub fn passed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Passed))
    }

    pub fn failed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Failed(_)))
    }

    fn known(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Known(_)))
    }

    fn skipped(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Skipped(_)))
    }

    /// Prints failures, the reasons for skipped cases and the counts.
    pub fn print(&self) {
        for (name, outcome) in &self.outcomes {
            if let Outcome::Failed(why) = outcome {
                println!("{}: {name}: {why}", self.device);
            }
        }
        let mut reasons: Vec<(&str, usize)> = Vec::new();
        for (_, outcome) in &self.outcomes {
            let Outcome::Skipped(reason) = outcome else {
                continue;
            };
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, count)) => *count += 1,
                None => reasons.push((reason, 1)),
            }
        }
        reasons.iter().for_each(|(reason, count)| {
            println!("{}: {count} cases not run: {reason}", self.device)
        });
        self.note
            .iter()
            .for_each(|note| println!("{}: {note}", self.device));
        let [passed, failed, known, skipped] =
            [self.passed(), self.failed(), self.known(), self.skipped()];
        println!(
            "{}: {passed} passed, {failed} failed, {known} known faults, {skipped} skipped",
            self.device
        );
    }

    fn json(&self) -> Value {
        let cases = self.outcomes.iter().map(|(name, outcome)| match outcome {
            Outcome::Passed => json!({ "case": name, "outcome": "passed" }),
            Outcome::Failed(why) => json!({ "case": name, "outcome": "failed", "why": why }),
            Outcome::Known(why) => json!({ "case": name, "outcome": "known fault", "why": why }),
            Outcome::Skipped(why) => json!({ "case": name, "outcome": "skipped", "why": why }),
        });
        json!({
            "runner": self.runner, "device": self.device, "driver": self.driver,
            "passed": self.passed(), "failed": self.failed(), "known_faults": self.known(), "skipped": self.skipped(),
            "cases": cases.collect::<Vec<_>>(),
        })
    }
}

impl Report {
    pub fn json(&self) -> Value {
        let absent = self
            .absent
            .iter()
            .map(|(runner, why)| json!({ "runner": runner, "why": why }))
            .collect::<Vec<_>>();
        json!({ "runs": self.runs.iter().map(Run::json).collect::<Vec<_>>(), "absent": absent })
    }

    /// Prints the last line as libtest does and says whether all is well.
    pub fn conclude(&self) -> bool {
        let sum = |count: fn(&Run) -> usize| self.runs.iter().map(count).sum::<usize>();
        let [passed, failed, ignored] = [
            sum(Run::passed),
            sum(Run::failed),
            sum(Run::skipped) + sum(Run::known),
        ];
        let verdict = if failed == 0 { "ok" } else { "FAILED" };
        println!(
            "\ntest result: {verdict}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; 0 filtered out"
        );
        failed == 0
    }
}
