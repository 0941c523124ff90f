//! Defects that a review found despite passing tests, numbered as in the review: recordings that a
//! signal lost, numbers that ended the command.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

/// An input area of 64 neurons onto 64, as in `spiking.rs`.
const TINY: &str = include_str!("../../tectum-spiking/samples/sample-genome.json");

fn tectum(folder: &Path, line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
    command
        .env("NODEVICE_SELECT", "1")
        .args(line.split_whitespace())
        .current_dir(folder)
        .stdin(Stdio::null());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A separate folder for the test, deleted at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("tectum-defects-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("writable");
        std::fs::write(path.join("tiny.json"), TINY).expect("writable");
        Self(path)
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("there");
        let mut names: Vec<String> = entries
            .map(|entry| {
                entry
                    .expect("there")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect();
        names.sort();
        names
    }

    fn json(&self, line: &str) -> Value {
        last_line(&tectum(&self.0, line).output().expect("the binary starts"))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn last_line(output: &Output) -> Value {
    assert!(
        output.status.success(),
        "{:?}: {}",
        output.status,
        text(&output.stderr)
    );
    serde_json::from_str(text(&output.stdout).lines().last().expect("a line")).expect("JSON")
}

/// A run of the command, which ends with the test.
struct Running(Child);

impl Running {
    fn new(folder: &Path, line: &str) -> Self {
        Self(
            tectum(folder, line)
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the binary starts"),
        )
    }

    /// Waits until a condition is true.
    fn wait_for(&mut self, is_so: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_so() {
            assert!(
                self.0.try_wait().expect("it can be asked").is_none(),
                "the run ended too early"
            );
            assert!(begin.elapsed() < Duration::from_secs(60), "it never is so");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The last line after a signal.
    #[cfg(unix)]
    fn report_after(mut self, signal: &str) -> Value {
        let sent = Command::new("kill")
            .arg(format!("-{signal}"))
            .arg(self.0.id().to_string())
            .status()
            .expect("kill is there");
        assert!(sent.success());
        let mut shown = String::new();
        std::io::Read::read_to_string(&mut self.0.stdout.take().expect("piped"), &mut shown)
            .expect("text");
        let status = self.0.wait().expect("it ends");
        assert!(status.success(), "SIG{signal}: {status:?}");
        serde_json::from_str(shown.lines().last().expect("a line")).expect("JSON")
    }

    fn kill(mut self) {
        self.0.kill().expect("it can be killed");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The partial file of a name in a folder, if there is one.
fn partial(folder: &Path, prefix: &str) -> Option<PathBuf> {
    let is_it = |path: &PathBuf| {
        path.file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(prefix) && name.ends_with(".partial"))
    };
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .find(is_it)
}

fn has_bytes(path: Option<PathBuf>, bytes: u64) -> bool {
    path.and_then(|path| std::fs::metadata(path).ok())
        .is_some_and(|facts| facts.len() >= bytes)
}

/// Messages of bursts in a recording with the format's start and end marks.
fn bursts(recording: &Path) -> usize {
    let bytes = std::fs::read(recording).expect("there");
    assert!(
        bytes.starts_with(b"\x89MCAP0\r\n") && bytes.ends_with(b"\x89MCAP0\r\n"),
        "{}: no whole recording",
        recording.display()
    );
    // In the schema, the name is not followed by a number.
    bytes
        .windows(10)
        .filter(|window| window.starts_with(b"{\"burst\":") && window[9].is_ascii_digit())
        .count()
}

const ENDLESS: &str = "run tiny.json --bursts 2000000000 --stimulus 0.3 --seed 9 --quiet --json";

#[cfg(unix)]
#[test]
fn defect_24_a_signal_ends_a_genomes_run_with_its_recording_and_its_state() {
    for name in ["INT", "TERM"] {
        let place = Place::new(&format!("signal-{name}"));
        let line =
            format!("{ENDLESS} --record spikes.mcap --plot pictures --snapshot state.safetensors");
        let mut run = Running::new(&place.0, &line);
        run.wait_for(|| has_bytes(partial(&place.0, "spikes.mcap."), 100_000));
        let report = run.report_after(name);
        assert_eq!(report["end"], "interrupted", "SIG{name}");
        assert_eq!(
            place.names(),
            ["pictures", "spikes.mcap", "state.safetensors", "tiny.json"],
            "SIG{name}"
        );
        let done = report["bursts"].as_u64().expect("a number");
        assert_eq!(
            bursts(&place.0.join("spikes.mcap")) as u64,
            done,
            "SIG{name}"
        );
        // The next run continues from there.
        let resumed = place.json(&format!("run tiny.json --bursts {} --stimulus 0.3 --seed 9 --quiet --json --resume state.safetensors", done + 100));
        let whole = place.json(&format!(
            "run tiny.json --bursts {} --stimulus 0.3 --seed 9 --quiet --json",
            done + 100
        ));
        assert_eq!(
            (&resumed["spike_hash"], &whole["end"]),
            (&whole["spike_hash"], &Value::from("completed")),
            "SIG{name}"
        );
    }
}

/// Also without an observer of every burst.
#[cfg(unix)]
#[test]
fn defect_24_a_signal_ends_a_genomes_run_that_nothing_watches() {
    let place = Place::new("unwatched");
    let mut run = Running::new(
        &place.0,
        "run tiny.json --bursts 2000000000 --quiet --json --snapshot state.safetensors --every 1000",
    );
    run.wait_for(|| place.0.join("state.safetensors").exists());
    assert_eq!(run.report_after("INT")["end"], "interrupted");
}

#[test]
fn defect_24_what_a_killed_genomes_run_recorded_is_recovered() {
    let place = Place::new("killed-genome");
    let mut run = Running::new(&place.0, &format!("{ENDLESS} --record spikes.mcap"));
    run.wait_for(|| has_bytes(partial(&place.0, "spikes.mcap."), 100_000));
    run.kill();
    assert!(!place.0.join("spikes.mcap").exists());
    let left = partial(&place.0, "spikes.mcap.").expect("what it wrote");
    let report = place.json(&format!("recover {} spikes.mcap --json", left.display()));
    let messages = report["messages"].as_u64().expect("a number");
    assert!(messages >= 64 && messages.is_multiple_of(64), "{report}");
    assert_eq!(bursts(&place.0.join("spikes.mcap")) as u64, messages);
    let refused = tectum(&place.0, "recover tiny.json other.mcap")
        .output()
        .expect("the binary starts");
    assert!(
        !refused.status.success()
            && text(&refused.stderr).contains("tiny.json: not an MCAP recording"),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn defect_24_what_a_killed_scenario_recorded_is_recovered_and_its_run_goes_on_from_early_on() {
    let place = Place::new("killed-scenario");
    std::fs::write(
        place.0.join("slow.toml"),
        "[body]\nname = \"rig\"\n[brain]\nname = \"lqr\"\n[loop]\nseconds = 60\n",
    )
    .expect("writable");
    let mut run = Running::new(&place.0, "run slow.toml --quiet --no-plots --clock real");
    let partial = place.0.join("runs/1.partial");
    run.wait_for(|| has_bytes(Some(partial.join("trace.mcap")), 20_000));
    run.kill();
    let report = place.json("recover runs/1.partial/trace.mcap trace.mcap --json");
    let ticks = report["messages"].as_u64().expect("a number") / 3;
    assert!(ticks >= 16, "{report}");
    let resumed = place.json("run --resume runs/1.partial --clock sim --no-plots --json");
    let from = resumed["resumed_at_tick"].as_u64().expect("a number");
    assert!(
        from >= ticks / 2 && from < 250,
        "from tick {from} of more than {ticks}"
    );
    assert_eq!(
        (resumed["end"].as_str(), resumed["ticks"].as_u64()),
        (Some("completed"), Some(1500))
    );
}

/// Killed at any time, an export is either the old one or the new one.
#[test]
fn a_killed_program_leaves_whole_exports() {
    let place = Place::new("exports");
    let array = |number: u8| {
        let head = "{'descr': '<f4', 'fortran_order': False, 'shape': (65536,), }";
        let padded = format!("{head:<117}\n");
        let mut bytes = [
            b"\x93NUMPY\x01\x00".to_vec(),
            (padded.len() as u16).to_le_bytes().to_vec(),
            padded.into_bytes(),
        ]
        .concat();
        (0..65536).for_each(|_| bytes.extend(f32::from(number).to_le_bytes()));
        bytes
    };
    for number in [1, 2] {
        std::fs::write(place.0.join(format!("in{number}.npy")), array(number)).expect("writable");
    }
    let program =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../tectum-programs/programs/relu.atlas");
    let line = |number: u8| {
        format!(
            "run {} --in in{number}.npy --out out.npy --device cpu --quiet",
            program.display()
        )
    };
    let output = tectum(&place.0, &line(1))
        .output()
        .expect("the binary starts");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = || std::fs::read(place.0.join("out.npy")).expect("there");
    let (first, [old, new]) = (out(), [array(1), array(2)]);
    assert!(first.ends_with(&old[128..]) && first.len() == old.len());
    let begin = Instant::now();
    assert!(
        tectum(&place.0, &line(2))
            .stdout(Stdio::null())
            .status()
            .expect("the binary starts")
            .success()
    );
    let whole_run = begin.elapsed();
    for kill in 0..24u32 {
        let mut child = tectum(&place.0, &line((kill % 2 + 1) as u8))
            .stdout(Stdio::null())
            .spawn()
            .expect("the binary starts");
        std::thread::sleep(whole_run * kill / 20);
        let _ = child.kill();
        child.wait().expect("it ends");
        let found = out();
        assert!(
            found.len() == old.len()
                && [&old, &new]
                    .iter()
                    .any(|array| found.ends_with(&array[128..])),
            "kill {kill}: {} bytes",
            found.len()
        );
    }
}

#[test]
fn defect_14_more_tokens_than_there_can_be_end_at_the_models_context() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let generate = |tokens: &str| {
        let mut command = tectum(
            &root,
            "generate crates/tectum-transformer/models/sample-decoder --device cpu --json",
        );
        command
            .args(["the small cat", "--tokens", tokens])
            .output()
            .expect("the binary starts")
    };
    let expected = generate("100000");
    for tokens in ["1000000000000", "18446744073709551615"] {
        let found = generate(tokens);
        assert_eq!(
            found.status.code(),
            expected.status.code(),
            "{tokens}: {}",
            text(&found.stderr)
        );
        assert!(
            !text(&found.stderr).contains("panicked"),
            "{tokens}: {}",
            text(&found.stderr)
        );
        if expected.status.success() {
            let [found, expected] = [&found, &expected].map(last_line);
            assert_eq!(found["text"], expected["text"], "{tokens}");
        } else {
            assert_eq!(
                text(&found.stderr).replace(tokens, "100000"),
                text(&expected.stderr),
                "{tokens}"
            );
        }
    }
}
