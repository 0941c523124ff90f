//! Results of test programs: how many tests passed, failed or skipped a part, and how long each
//! took.

use serde_json::Value;

/// Tests that are listed as the slowest.
const SLOWEST: usize = 30;

#[derive(Debug, Default)]
pub struct Tally {
    pub passed: u64,
    pub failed: u64,
    pub ignored: u64,
    /// Parts of tests that were skipped, each with the test that reported it if known.
    pub skipped: Vec<String>,
    /// Lines such as `conformance on cpu: 417 cases`.
    cases: Vec<String>,
    /// Tests and programs that failed, with what they printed.
    failures: Vec<String>,
    /// Seconds and name of every test.
    times: Vec<(f64, String)>,
    program: String,
    /// Tests among those that passed of which some part was skipped.
    partly: u64,
    /// Requirements that must not be absent: a skipped part that names one is a failure.
    required: Vec<String>,
    /// What was printed since [`Tally::part`] made this one; none if lines are printed at once.
    output: Option<Vec<String>>,
}

/// Variable with the names, separated by commas, of the requirements: `vulkan`, `ptxas`.
pub const REQUIRE: &str = "TECTUM_REQUIRE";

/// The requirements of [`REQUIRE`].
fn required() -> Vec<String> {
    let names = std::env::var(REQUIRE).unwrap_or_default();
    let names = names.split(',').map(|name| name.trim().to_lowercase());
    names.filter(|name| !name.is_empty()).collect()
}

/// Whether [`REQUIRE`] has a name.
pub fn is_required(name: &str) -> bool {
    required().iter().any(|required| required == name)
}

impl Tally {
    /// With the requirements of [`REQUIRE`].
    pub fn from_environment() -> Self {
        Self {
            required: required(),
            ..Self::default()
        }
    }

    /// An empty tally with the same requirements, for a program that runs while others do: it keeps
    /// its output until it is added.
    pub fn part(&self) -> Self {
        Self {
            required: self.required.clone(),
            output: Some(Vec::new()),
            ..Self::default()
        }
    }

    /// Adds a part, and prints its output.
    pub fn add(&mut self, part: Self) {
        part.output
            .into_iter()
            .flatten()
            .for_each(|line| self.print(line));
        self.passed += part.passed;
        self.failed += part.failed;
        self.ignored += part.ignored;
        self.partly += part.partly;
        self.skipped.extend(part.skipped);
        self.cases.extend(part.cases);
        self.failures.extend(part.failures);
        self.times.extend(part.times);
    }

    /// Prints a line, or keeps it if this is a part.
    pub fn print(&mut self, line: String) {
        match &mut self.output {
            Some(output) => output.push(line),
            None => println!("{line}"),
        }
    }

    /// Subsequent counts belong to this program.
    pub fn begin(&mut self, program: &str) {
        program.clone_into(&mut self.program);
    }

    /// The program that ran last ended with an error.
    pub fn program_failed(&mut self) {
        self.failures.push(self.program.clone());
    }

    /// Seconds and name of every test.
    pub fn times(&self) -> &[(f64, String)] {
        &self.times
    }

    /// Counts a line of output: an event of the test harness as JSON, or text, which is passed on.
    pub fn count(&mut self, line: &str) {
        match serde_json::from_str::<Value>(line) {
            Ok(event) if event["type"].is_string() => self.count_event(&event),
            _ => self.count_text(line),
        }
    }

    fn count_event(&mut self, event: &Value) {
        let name = event["name"].as_str().unwrap_or_default();
        match (event["type"].as_str(), event["event"].as_str()) {
            // A test is reported when it exceeds a minute, and again when it ends.
            (Some("test"), Some("started" | "timeout")) | (Some("suite"), _) => {}
            (Some("test"), Some(outcome)) => {
                let seconds = event["exec_time"].as_f64().unwrap_or(0.0);
                let printed = event["stdout"].as_str().unwrap_or_default();
                self.print(format!("test {name} ... {outcome} {seconds:.2} s"));
                match outcome {
                    "ok" => self.passed += 1,
                    "ignored" => self.ignored += 1,
                    _ => {
                        self.failed += 1;
                        self.print(printed.to_owned());
                        self.failures
                            .push(format!("{}: {name}\n{printed}", self.program));
                    }
                }
                self.times
                    .push((seconds, format!("{}: {name}", self.program)));
                let skipped = self.skipped.len();
                printed.lines().for_each(|line| self.note(line, name));
                self.partly += u64::from(outcome == "ok" && self.skipped.len() > skipped);
            }
            _ => self.print(event.to_string()),
        }
    }

    fn count_text(&mut self, line: &str) {
        self.print(line.to_owned());
        self.note(line, "");
        if line.starts_with("test ") && line.ends_with("FAILED") {
            self.failures.push(format!("{}: {line}", self.program));
        }
        let Some(result) = line.strip_prefix("test result: ") else {
            return;
        };
        let number = |what: &str| {
            let before = result.split(what).next().unwrap_or_default().trim();
            before
                .rsplit([' ', ';'])
                .next()
                .and_then(|word| word.parse::<u64>().ok())
                .unwrap_or(0)
        };
        self.passed += number(" passed");
        self.failed += number(" failed");
    }

    /// Stores a note that a test prints.
    fn note(&mut self, line: &str, test: &str) {
        if let Some(at) = line.find("skipped: ") {
            let of = if test.is_empty() {
                String::new()
            } else {
                format!(" ({test})")
            };
            let skipped = format!("{}{of}", &line[at..]);
            // After it follows what is present.
            let absent = line[at..]
                .split("; present:")
                .next()
                .unwrap_or_default()
                .to_lowercase();
            if let Some(name) = self.required.iter().find(|name| absent.contains(*name)) {
                self.failures
                    .push(format!("{REQUIRE} names {name}: {skipped}"));
            }
            self.skipped.push(skipped);
        }
        if line.starts_with("conformance on ") {
            self.cases.push(line.to_owned());
        }
    }

    /// Prints cases, skipped parts, the slowest tests, failures and, last, the count; returns
    /// whether all passed.
    pub fn report(&mut self) -> bool {
        println!();
        self.cases
            .iter()
            .chain(&self.skipped)
            .for_each(|line| println!("{line}"));
        self.times.sort_by(|a, b| b.0.total_cmp(&a.0));
        println!("the slowest tests:");
        self.times
            .iter()
            .take(SLOWEST)
            .for_each(|(seconds, name)| println!("{seconds:8.2} s  {name}"));
        self.failures
            .iter()
            .for_each(|failure| println!("failed: {failure}"));
        println!("{} of the tests that passed left out a part", self.partly);
        println!(
            "{} passed, {} failed, {} skipped",
            self.passed,
            self.failed,
            self.skipped.len()
        );
        self.failed == 0 && self.failures.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_text_are_counted_and_failures_keep_their_program_and_output() {
        let mut tally = Tally::default();
        tally.begin("a lib a");
        let lines = [
            r#"{ "type": "suite", "event": "started", "test_count": 3 }"#,
            r#"{ "type": "test", "event": "started", "name": "fine" }"#,
            r#"{ "type": "test", "event": "timeout", "name": "fine" }"#,
            r#"{ "type": "test", "name": "fine", "event": "ok", "exec_time": 1.5, "stdout": "skipped: no cuda:0\n" }"#,
            r#"{ "type": "test", "name": "broken", "event": "failed", "exec_time": 0.5, "stdout": "1 is not 2\n" }"#,
            r#"{ "type": "test", "name": "later", "event": "ignored" }"#,
            "conformance on cpu: 3 cases",
            "test result: FAILED. 30 passed; 1 failed; 0 ignored",
        ];
        lines.iter().for_each(|line| tally.count(line));
        assert_eq!((tally.passed, tally.failed, tally.ignored), (31, 2, 1));
        assert_eq!(tally.skipped, ["skipped: no cuda:0 (fine)"]);
        assert_eq!(tally.failures, ["a lib a: broken\n1 is not 2\n"]);
        assert_eq!(tally.cases, ["conformance on cpu: 3 cases"]);
        assert!(!tally.report());
        assert_eq!(tally.times()[0], (1.5, "a lib a: fine".to_owned()));
    }

    #[test]
    fn a_part_keeps_its_output_and_requirements_until_it_is_added() {
        let mut tally = Tally {
            required: vec!["vulkan".to_owned()],
            ..Tally::default()
        };
        let mut part = tally.part();
        part.begin("a lib a");
        part.count(r#"{ "type": "test", "name": "fine", "event": "ok", "exec_time": 1.5, "stdout": "skipped: no Vulkan device\n" }"#);
        part.program_failed();
        assert_eq!(
            part.output.as_deref(),
            Some(["test fine ... ok 1.50 s".to_owned()].as_slice())
        );
        tally.add(part);
        assert_eq!(
            (tally.passed, tally.partly, tally.failures.len()),
            (1, 1, 2)
        );
        assert_eq!(tally.times()[0], (1.5, "a lib a: fine".to_owned()));
    }

    #[test]
    fn what_is_required_must_not_be_skipped() {
        let mut tally = Tally {
            required: vec!["vulkan".to_owned()],
            ..Tally::default()
        };
        tally.count(r#"{ "type": "test", "name": "a", "event": "ok", "stdout": "skipped: device cuda:0: no driver; present: cpu, vulkan:0: streams\n" }"#);
        // Not by `report`: the outer run would count its lines.
        assert!(tally.failures.is_empty() && tally.partly == 1);
        tally.count(r#"{ "type": "test", "name": "b", "event": "ok", "stdout": "skipped: no Vulkan device: the main job on it\n" }"#);
        assert_eq!(
            tally.failures,
            ["TECTUM_REQUIRE names vulkan: skipped: no Vulkan device: the main job on it (b)"]
        );
    }
}
