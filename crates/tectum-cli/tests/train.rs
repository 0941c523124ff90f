//! `tectum train` and what `tectum inspect` shows of a twin.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tectum_control::body::rig::{Rig, RigParameters};
use tectum_control::body::{Body, Start, body};
use tectum_control::brain::lqr::Lqr;

/// A folder of a test, removed after it.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(name: &str) -> Self {
        let folder =
            std::env::temp_dir().join(format!("tectum-train-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).expect("a folder");
        Self(folder)
    }

    pub fn tectum(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
        command
            .current_dir(&self.0)
            .args(line.split_whitespace())
            .stdin(Stdio::null())
            .output()
            .expect("it starts")
    }

    pub fn text(&self, line: &str) -> String {
        let output = self.tectum(line);
        assert!(
            output.status.success(),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        String::from_utf8(output.stdout).expect("text")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes a recording of the simulated rig with a sensor jump in every hundred rows.
pub fn record(path: &Path, rows: usize) {
    let mut rig = Rig::new(RigParameters::default(), Start::Hanging).expect("a rig");
    let mut text = "la_position,pend_velocity,pend_position,cmd_volts,elapsed\n".to_owned();
    let (mut seen, mut command) = ([0.0f32; 4], 0.0f32);
    for row in 0..rows {
        rig.observe(&mut seen);
        let angle = if row % 100 == 50 {
            seen[3] - 150.0
        } else {
            seen[3]
        };
        text += &format!("{},{},{angle},{command},40\n", seen[0], seen[2]);
        if row % 5 == 0 {
            command = 2.0 * (row as f32 * 0.37).sin() + 0.8 * seen[0];
        }
        rig.step(&[command]);
    }
    std::fs::write(path, text).expect("writable");
}

#[test]
fn a_recording_is_identified_and_trained_from_and_the_twin_inspected() {
    let place = Place::new("whole");
    record(&place.0.join("made.csv"), 5000);
    let shown = place.text("train rig made.csv");
    for part in [
        "5000 rows, 100 sensor jumps",
        "servo_gain",
        "pole_damping",
        "standard error",
        "servo: R2",
        "windows of 0.8 s",
    ] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let found: serde_json::Value =
        serde_json::from_str(&place.text("train rig made.csv --json")).expect("json");
    let length = found["estimates"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|estimate| estimate["name"] == "length")
        .expect("listed");
    assert!(
        found["servo_r2"].as_f64().expect("a number") > 0.99,
        "{found}"
    );
    assert!(
        (length["value"].as_f64().expect("a number") - 0.17).abs() < 0.005,
        "{length}"
    );

    let shown = place.text("train twin made.csv -o twin.safetensors --members 2 --hidden 16,16 --steps 400 --energy 0.1 --plot curve.png");
    for part in ["100 sensor jumps", "held out", "twin.safetensors written"] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    assert!(
        std::fs::read(place.0.join("curve.png"))
            .expect("drawn")
            .starts_with(b"\x89PNG")
    );
    let shown = place.text("inspect twin.safetensors");
    assert!(
        shown.contains("2 networks of 16-16 tanh over 4 rows") && !shown.contains("persistence"),
        "{shown}"
    );
    let shown = place.text("inspect twin.safetensors --data made.csv");
    for part in [
        "identified physics",
        "constant velocity",
        "persistence",
        "10 steps",
        "2 deviations",
        "without a jump",
    ] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let found: serde_json::Value =
        serde_json::from_str(&place.text("inspect twin.safetensors --data made.csv --json"))
            .expect("json");
    assert_eq!(found["inspection"]["jumps"], 100);
    let median = |method: &str| {
        let rows = found["inspection"]["one_step"].as_array().expect("a list");
        let row = rows
            .iter()
            .find(|row| row["method"] == method && row["channel"] == "pend_position")
            .expect("listed");
        row["median"].as_f64().expect("a number")
    };
    assert!(
        median("twin") < median("constant_velocity")
            && median("constant_velocity") < median("persistence"),
        "{found}"
    );
}

#[test]
fn mistakes_leave_no_twin() {
    let place = Place::new("mistakes");
    record(&place.0.join("short.csv"), 400);
    std::fs::write(
        place.0.join("broken.csv"),
        "la_position,pend_velocity\n0,0\n",
    )
    .expect("writable");
    std::fs::write(place.0.join("none.safetensors"), "not at all").expect("writable");
    for (line, code, message) in [
        ("train twin missing.csv -o t.safetensors", 7, "missing.csv"),
        (
            "train twin broken.csv -o t.safetensors",
            3,
            "broken.csv: line 1: column pend_position is missing",
        ),
        (
            "train twin short.csv -o t.safetensors",
            3,
            "short.csv: the recording has",
        ),
        (
            "train twin short.csv -o t.safetensors --huber=-1",
            2,
            "--huber is -1",
        ),
        (
            "train twin short.csv -o t.safetensors --members 0",
            2,
            "a whole number from 1 to 32 is needed",
        ),
        ("train rig broken.csv", 3, "broken.csv: line 1"),
        (
            "inspect none.safetensors",
            3,
            "none.safetensors: not a safetensors file",
        ),
        ("inspect missing.safetensors", 7, "missing.safetensors"),
        (
            "inspect short.csv --data short.csv",
            2,
            "--data: only a twin",
        ),
    ] {
        let output = place.tectum(line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains(message) && output.status.code() == Some(code),
            "{line}: {:?} {stderr}",
            output.status.code()
        );
        assert!(
            !place.0.join("t.safetensors").exists(),
            "{line} left a file"
        );
    }
}

/// Writes a recording of the simulated rig that was swung up, balanced and disturbed.
fn record_driven(path: &Path, rows: usize) {
    let mut rig = Rig::new(RigParameters::default(), Start::Hanging).expect("a rig");
    let mut regulator = Lqr::new(body("rig", None).expect("known")).expect("a regulator");
    let mut text = "la_position,pend_velocity,pend_position,cmd_volts,elapsed\n".to_owned();
    let (mut seen, mut command, mut word) = ([0.0f32; 4], [0.0f32], 1u64);
    let (mut kick, mut share) = (0.0, 0.0);
    for row in 0..rows {
        rig.observe(&mut seen);
        text += &format!("{},{},{},{},40\n", seen[0], seen[2], seen[3], command[0]);
        if row % 3 == 0 {
            word = word
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            kick = 2.0 * ((word >> 40) as f32 / (1u64 << 24) as f32) - 1.0;
            share = if row % 500 < 300 { 1.0 } else { 0.0 };
        }
        regulator.tick(&seen, &mut command);
        let other = 3.0 * kick + 0.8 * seen[0];
        command[0] = (share * (command[0] + 0.7 * kick) + (1.0 - share) * other).clamp(-5.0, 5.0);
        regulator.follow(&seen, &command);
        rig.step(&command);
    }
    std::fs::write(path, text).expect("writable");
}

fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
}

#[test]
fn a_loop_plans_with_the_twin_that_train_wrote() {
    let place = Place::new("plans");
    record_driven(&place.0.join("made.csv"), 8000);
    place.text(
        "train twin made.csv -o mine.safetensors --members 2 --hidden 32,32 --lags 3 --steps 1500",
    );
    let run = "run pendulum --body rig --brain mppi --clock sim --device cpu --no-plots --quiet --json --seed 3";
    let whole = json(&place.text(&format!(
        "{run} --twin mine.safetensors --seconds 12 --receipt receipt.json"
    )));
    let zero = json(
        &place.text(
            &run.replace("mppi", "zero")
                .replace("--quiet", "--seconds 12 --quiet"),
        ),
    );
    let share =
        |summary: &serde_json::Value| summary["upright_fraction"].as_f64().expect("a number");
    assert!(
        share(&whole) > 0.3 && share(&zero) == 0.0,
        "{} with the twin, {} without",
        share(&whole),
        share(&zero)
    );

    // The receipt has the file's hash.
    let receipt: serde_json::Value =
        serde_json::from_slice(&std::fs::read(place.0.join("receipt.json")).expect("written"))
            .expect("JSON");
    let bytes = std::fs::read(place.0.join("mine.safetensors")).expect("there");
    assert_eq!(
        receipt["inputs"],
        serde_json::json!([{ "path": "mine.safetensors", "hash": tectum::ContentHash::of(&bytes).to_string() }])
    );

    // A run in two pieces ends in the state of the whole one.
    let first = json(&place.text(&format!("{run} --twin mine.safetensors --seconds 5")));
    let resumed = json(&place.text(&format!(
        "run --resume {} --seconds 12 --device cpu --no-plots --quiet --json",
        first["run_folder"].as_str().expect("a path")
    )));
    let state = |summary: &serde_json::Value| {
        std::fs::read(
            place
                .0
                .join(summary["run_folder"].as_str().expect("a path"))
                .join("snapshot.safetensors"),
        )
        .expect("there")
    };
    assert!(
        state(&resumed) == state(&whole) && share(&resumed) == share(&whole),
        "{resumed}"
    );

    // A scenario names the file, too.
    let scenario = "[body]\nname = \"rig\"\n[brain]\nname = \"mppi\"\n[brain.twin]\nfile = \"mine.safetensors\"\n[loop]\nclock = \"sim\"\nseed = 3\n";
    std::fs::write(place.0.join("mine.toml"), scenario).expect("writable");
    let named =
        json(&place.text("run mine.toml --seconds 5 --device cpu --no-plots --quiet --json"));
    assert_eq!(state(&named), state(&first));

    // Other twins, other plants, other files.
    place.text(
        "train twin made.csv -o other.safetensors --members 1 --hidden 8 --lags 3 --steps 20",
    );
    let slow = std::fs::read_to_string(place.0.join("made.csv"))
        .expect("there")
        .replace(",40\n", ",50\n");
    std::fs::write(place.0.join("slow.csv"), slow).expect("writable");
    place.text("train twin slow.csv -o slow.safetensors --members 1 --hidden 8 --steps 20");
    let mut cut = bytes.clone();
    cut.truncate(bytes.len() - 9);
    std::fs::write(place.0.join("cut.safetensors"), cut).expect("writable");
    let mut changed = bytes.clone();
    let end = changed.len();
    changed[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    std::fs::write(place.0.join("nan.safetensors"), changed).expect("writable");
    let folder = first["run_folder"].as_str().expect("a path");
    let count = || {
        std::fs::read_dir(place.0.join("runs"))
            .expect("there")
            .count()
    };
    let before = count();
    for (line, code, message) in [
        (
            format!("run --resume {folder} --seconds 12 --twin other.safetensors"),
            3,
            "other.safetensors: the snapshot was taken with another twin",
        ),
        (
            run.replace("--body rig", "--body pendulum") + " --twin mine.safetensors",
            2,
            "mine.safetensors: metadata tectum.twin: the twin is of a plant with the channel la_position",
        ),
        (
            format!("{run} --twin slow.safetensors"),
            2,
            "slow.safetensors: metadata tectum.twin: the twin has a period of 0.05 s, body rig one of 0.04 s",
        ),
        (
            format!("{run} --twin cut.safetensors"),
            3,
            "cut.safetensors: not a safetensors file",
        ),
        (
            format!("{run} --twin nan.safetensors"),
            3,
            "nan.safetensors: tensor",
        ),
        (
            format!("{run} --twin missing.safetensors"),
            7,
            "missing.safetensors",
        ),
        (
            run.replace("mppi", "lqr") + " --twin mine.safetensors",
            2,
            "twin mine.safetensors: brain \"lqr\" plans with no twin",
        ),
        (
            "run gym_pendulum --twin mine.safetensors".to_owned(),
            2,
            "the channel la_position; body pendulum has no such channel",
        ),
    ] {
        let output = place.tectum(&line);
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            stderr.contains(message) && output.status.code() == Some(code),
            "{line}: {:?} {stderr}",
            output.status.code()
        );
        assert_eq!(count(), before, "{line} left a folder");
    }
}

/// Sends SIGINT to a command that catches the signal, and returns its output.
#[cfg(target_os = "linux")]
pub fn interrupted(mut command: Command) -> Output {
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let catches = || {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let mask = status
            .lines()
            .find_map(|line| u64::from_str_radix(line.strip_prefix("SigCgt:")?.trim(), 16).ok());
        mask.is_some_and(|mask| mask & 0b10 != 0)
    };
    let start = std::time::Instant::now();
    while !catches() && start.elapsed().as_secs() < 120 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    // Something is done by then.
    std::thread::sleep(std::time::Duration::from_millis(300));
    let sent = Command::new("sh")
        .args(["-c", &format!("kill -INT {}", child.id())])
        .status()
        .expect("a shell");
    assert!(sent.success(), "the command has ended");
    child.wait_with_output().expect("it ends")
}

/// The first network is written with the weights that it has.
#[cfg(target_os = "linux")]
#[test]
fn a_training_that_is_interrupted_writes_the_networks_so_far() {
    let place = Place::new("interrupted");
    record(&place.0.join("made.csv"), 5000);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
    let line =
        "train twin made.csv -o twin.safetensors --members 3 --hidden 16,16 --steps 1000000 --json";
    command.current_dir(&place.0).args(line.split_whitespace());
    let output = interrupted(command);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("json");
    assert_eq!(
        (&found["end"], found["networks"].as_array().map(Vec::len)),
        (&"interrupted".into(), Some(1)),
        "{found}"
    );
    assert!(
        place
            .text("inspect twin.safetensors")
            .contains("1 network of 16-16 tanh over 4 rows")
    );
}
