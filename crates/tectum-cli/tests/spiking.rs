//! Genomes from the command line: the same spikes on every device, and after a run that was killed.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

/// Read in place; a checkout without them skips the test and reports it.
const GENOMES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/genomes");

/// An input area of 64 neurons onto 64 with leak, refractory period and probabilistic firing, each
/// of which inhibits its neighbour.
const TINY: &str = include_str!("../../tectum-spiking/samples/sample-genome.json");

fn tectum(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
    command
        .env("NODEVICE_SELECT", "1")
        .args(line.split_whitespace())
        .stdin(Stdio::null());
    command
}

/// The last line of a run that succeeds.
fn json(line: &str) -> Value {
    let output = tectum(line).output().expect("the binary starts");
    let (stdout, stderr) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    assert!(output.status.success(), "{line}: {stderr}");
    serde_json::from_str(stdout.lines().last().expect("a last line")).expect("JSON")
}

/// A separate folder for the test, deleted at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("tectum-spiking-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("writable");
        Self(path)
    }

    fn genome(&self) -> PathBuf {
        let path = self.0.join("tiny.json");
        std::fs::write(&path, TINY).expect("writable");
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Whether software Vulkan or a GPU is available.
fn has_vulkan() -> bool {
    let output = tectum("devices --json")
        .output()
        .expect("the binary starts");
    let found = String::from_utf8_lossy(&output.stdout).contains("\"vulkan:0\"");
    if !found {
        println!("skipped: no vulkan:0");
    }
    found
}

/// Runs a genome on every device; returns its result on the CPU.
fn same_everywhere(path: &Path, bursts: u32, stimulus: &str) -> Value {
    let line = format!(
        "run {} --bursts {bursts} {stimulus} --seed 5 --quiet --json",
        path.display()
    );
    let expected = json(&format!("{line} --threads 1"));
    let mut variants = vec!["--threads 2", "--shards 2", "--shards 3"];
    if has_vulkan() {
        variants.push("--device vulkan:0");
    }
    for variant in variants {
        let found = json(&format!("{line} {variant}"));
        for key in ["neurons", "bursts", "spikes", "events", "spike_hash"] {
            assert_eq!(
                found[key],
                expected[key],
                "{} {variant}: {key}",
                path.display()
            );
        }
    }
    expected
}

#[test]
fn public_genomes_spike_the_same_everywhere() {
    for name in [
        "barebones_genome",
        "salamander",
        "gesture_recognition",
        "essential_genome",
        "brain_pong",
    ] {
        let path = Path::new(GENOMES).join(name).with_extension("json");
        if !path.exists() {
            println!("skipped: {name}.json of the reference data is absent");
            continue;
        }
        let result = same_everywhere(&path, 1000, "--stimulus 0.01");
        assert!(result["spikes"].as_u64() >= Some(750), "{name}: {result}");
    }
}

#[test]
fn a_genome_with_every_kind_of_hesitation_spikes_the_same_everywhere() {
    let place = Place::new("tiny");
    let result = same_everywhere(&place.genome(), 1000, "--stimulus 0.3");
    assert!(
        result["spikes"].as_u64() > Some(10_000) && result["events"].as_u64() > Some(10_000),
        "{result}"
    );
}

#[test]
fn a_killed_run_goes_on_as_if_it_had_not_been() {
    let place = Place::new("killed");
    let (genome, snapshot) = (place.genome(), place.0.join("state.safetensors"));
    let line = format!(
        "run {} --bursts 60000 --stimulus 0.3 --seed 9 --quiet --json",
        genome.display()
    );
    let expected = json(&line);
    // Each run is killed after it has written its own snapshot, and the next one resumes from
    // there.
    let mut before = None;
    for kill in 0..5 {
        let resume = before.as_ref().map_or(String::new(), |_: &Vec<u8>| {
            format!("--resume {}", snapshot.display())
        });
        let mut run = tectum(&format!(
            "{line} --snapshot {} --every 250 {resume}",
            snapshot.display()
        ))
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary starts");
        loop {
            let has_ended = run.try_wait().expect("it can be asked").is_some();
            assert!(!has_ended, "run {kill} ended before it could be killed");
            let written = std::fs::read(&snapshot).ok();
            if written.is_some() && written != before {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        run.kill().expect("it can be killed");
        assert!(
            !run.wait().expect("it ends").success(),
            "run {kill} was killed, not completed"
        );
        before = std::fs::read(&snapshot).ok();
    }
    let found = json(&format!("{line} --resume {}", snapshot.display()));
    let runs = |result: &Value| result["receipt"]["runs"].as_u64().expect("a number");
    assert!(
        runs(&found) < runs(&expected),
        "the last run resumed, and did less than a whole one"
    );
    for key in ["bursts", "spikes", "events", "spike_hash"] {
        assert_eq!(found[key], expected[key], "{key}");
    }
    // Each kill may leave the partial file that was being written.
    let left: Vec<_> = std::fs::read_dir(&place.0)
        .expect("there")
        .map(|entry| entry.expect("there").file_name())
        .collect();
    let is_known = |name: &str| {
        ["tiny.json", "state.safetensors"].contains(&name)
            || name.starts_with("state.safetensors.") && name.ends_with(".partial")
    };
    assert!(
        left.iter().all(|name| name.to_str().is_some_and(is_known)),
        "{left:?}"
    );
}

#[test]
fn damaged_snapshots_and_strange_options_are_refused() {
    let place = Place::new("refused");
    let (genome, snapshot) = (place.genome(), place.0.join("state.safetensors"));
    let line = format!("run {} --bursts 100 --quiet", genome.display());
    json(&format!("{line} --json --snapshot {}", snapshot.display()));
    let whole = std::fs::read(&snapshot).expect("it is there");
    let refused = |line: &str, reason: &str| {
        let output = tectum(line).output().expect("the binary starts");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && stderr.contains(reason),
            "{line}: {stderr}"
        );
    };
    for (bytes, reason) in [
        (&whole[..whole.len() - 1], "not a snapshot"),
        (&whole[..4], "not a snapshot"),
    ] {
        std::fs::write(&snapshot, bytes).expect("writable");
        refused(&format!("{line} --resume {}", snapshot.display()), reason);
    }
    let mut flipped = whole.clone();
    *flipped.last_mut().expect("it has bytes") ^= 1;
    std::fs::write(&snapshot, flipped).expect("writable");
    refused(
        &format!("{line} --resume {}", snapshot.display()),
        "the file is damaged",
    );
    std::fs::write(&snapshot, &whole).expect("writable");
    refused(
        &format!("{line} --seed 1 --resume {}", snapshot.display()),
        "another network",
    );
    refused(
        &format!("{line} --stimulus 2"),
        "a stimulus of 2; 0 to 1 is needed",
    );
    refused(
        &format!("{line} --clock sim"),
        "--clock is for scenarios, and this is a genome",
    );
    refused("run pendulum --bursts 3", "--bursts is for genomes");
}

/// The report and the saved state are of the burst that it reached: a run to there has the same
/// spikes, and the state continues.
#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_run_has_the_bursts_that_it_reports() {
    let place = Place::new("interrupted");
    let (genome, snapshot) = (place.genome(), place.0.join("state.safetensors"));
    for stimulus in ["", "--stimulus 0.3"] {
        let line = format!(
            "run {} --seed 5 --quiet --json {stimulus}",
            genome.display()
        );
        let output = super::train::interrupted(tectum(&format!(
            "{line} --bursts 2000000000 --snapshot {}",
            snapshot.display()
        )));
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let bursts = found["bursts"].as_u64().expect("a number");
        assert!(found["end"] == "interrupted" && bursts > 0, "{found}");
        assert_eq!(
            json(&format!("{line} --bursts {bursts}"))["spike_hash"],
            found["spike_hash"],
            "{bursts} bursts"
        );
        let resumed = json(&format!(
            "{line} --bursts {} --resume {}",
            bursts + 50,
            snapshot.display()
        ));
        assert_eq!(
            json(&format!("{line} --bursts {}", bursts + 50))["spike_hash"],
            resumed["spike_hash"],
            "{bursts} bursts and 50 more"
        );
    }
}
