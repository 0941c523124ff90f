//! `tectum bench`: its output, its records, and its checks of records.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

/// An empty working directory, deleted at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tectum-bench-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("writable");
        Self(path)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("inside")).expect("writable");
        std::fs::write(path, text).expect("writable");
    }

    fn bench(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
        command
            .arg("bench")
            .args(line.split_whitespace())
            .current_dir(&self.0)
            .output()
            .expect("the binary starts")
    }

    /// Runs a line that works and prints one line of JSON.
    fn json(&self, line: &str) -> Value {
        let output = self.bench(line);
        assert!(output.status.success(), "{line}: {}", text(&output.stderr));
        assert_eq!(text(&output.stdout).lines().count(), 1, "{line}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }

    fn check(&self, old: &str, new: &str) -> (Option<i32>, String, String) {
        let output = self.bench(&format!("check {old} {new}"));
        (
            output.status.code(),
            text(&output.stdout),
            text(&output.stderr),
        )
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn numbers(value: &Value) -> Vec<f64> {
    value
        .as_array()
        .expect("a list")
        .iter()
        .map(|number| number.as_f64().expect("a number"))
        .collect()
}

/// Multiplies the times of a row's rounds.
fn plant(record: &mut Value, row: usize, factor: f64) {
    let rounds = numbers(&record["rows"][row]["rounds_s"]);
    record["rows"][row]["rounds_s"] = json!(
        rounds
            .iter()
            .map(|seconds| seconds * factor)
            .collect::<Vec<_>>()
    );
}

#[test]
fn a_recorded_run_agrees_with_itself_and_a_planted_slowdown_is_named() {
    let place = Place::new("planted");
    let mut record = place.json("core --device cpu --peers none --rounds 6 --rows core.fill. --rows core.copy. --record records --json");
    let name = format!("{}-cpu.json", record["date"].as_str().expect("a date"));
    assert_eq!(
        (record["schema"].as_str(), record["suites"].clone()),
        (Some("tectum.bench/1"), json!(["core"]))
    );
    let old = format!("records/{name}");
    assert_eq!(
        place.check(&old, &old),
        (Some(0), String::new(), String::new())
    );
    // Rounds as steady as the test needs: the noise of this machine must not matter.
    for row in 0..2 {
        for (key, value) in [("rounds_s", 1e-3), ("roofline_rounds", 1e10)] {
            record["rows"][row][key] =
                json!([1.00, 1.01, 0.99, 1.02, 0.98, 1.00].map(|factor| factor * value));
        }
    }
    place.write("steady.json", &record.to_string());
    plant(&mut record, 1, 1.3);
    place.write("slow.json", &record.to_string());
    let (code, stdout, stderr) = place.check("steady.json", "slow.json");
    assert_eq!(
        (code, stdout.lines().count(), stderr.as_str()),
        (Some(1), 1, "error: check: 1 of 2 rows became slower\n"),
        "{stdout}"
    );
    assert!(
        stdout.starts_with("core.copy.n16777216: 1.30 [")
            && stdout.contains("slower relative to the roofline"),
        "{stdout}"
    );
    assert_eq!(
        place.check("slow.json", "steady.json"),
        (Some(0), String::new(), String::new())
    );
}

#[test]
fn every_figure_of_the_repositorys_records_follows_from_its_rounds() {
    let place = Place::new("kept");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/records");
    let files = std::fs::read_dir(&folder)
        .expect("there")
        .map(|entry| entry.expect("readable").path());
    let records: Vec<PathBuf> = files
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    assert!(!records.is_empty());
    for record in records {
        let path = record.display().to_string();
        assert_eq!(
            place.check(&path, &path),
            (Some(0), String::new(), String::new())
        );
        assert_eq!(
            tectum_bench::bench::BenchRecord::read(&record)
                .expect("readable")
                .discrepancy(),
            None,
            "{path}"
        );
    }
}

/// The CPU next to a GPU over sizes. A GPU in software is measured where it is named, but does not
/// count.
#[test]
fn sizes_are_compared_on_the_cpu_and_a_gpu() {
    let place = Place::new("sizes");
    let found = place.json("sizes --max 4K --rounds 2 --json");
    let rows = found["rows"].as_array().expect("a list");
    assert_eq!(
        rows.iter()
            .map(|row| row["elements"].as_u64())
            .collect::<Vec<_>>(),
        [Some(1024), Some(4096)]
    );
    assert!(
        rows.iter()
            .all(|row| row["baseline_s"]["median"].as_f64() > Some(0.0)),
        "{found}"
    );
    assert!(
        found["device"].is_null() || found["device"]["kind"] != "software",
        "{found}"
    );
    if tectum::Device::open_if_present("vulkan:0")
        .expect("absent or usable")
        .is_none_or(|device| !device.info().software)
    {
        println!("skipped: no software Vulkan device");
        return;
    }
    let line = "sizes --device vulkan:0 --operation tanh --max 4K --rounds 2";
    let named = place.json(&format!("{line} --json"));
    assert!(
        named["rows"].as_array().is_some_and(|rows| rows
            .iter()
            .all(|row| row["with_copies"]["speedup"]["median"].as_f64() > Some(0.0))),
        "{named}"
    );
    assert_eq!(
        (&named["break_even"], &named["device"]["kind"]),
        (&Value::Null, &Value::from("software"))
    );
    let shown = text(&place.bench(line).stdout);
    assert!(
        shown.starts_with("tanh of f32, medians\n")
            && shown.contains("break-even: none is stated, since vulkan:0 is software and no GPU"),
        "{shown}"
    );
}

#[test]
fn mistakes_get_one_line_and_an_exit_code() {
    let place = Place::new("mistakes");
    place.write("bench/peers/numpy_rows.py", "");
    place.write("old.json", "{\"suite\": \"core\"}");
    // A suite's name is the suite, even if there is such a folder.
    place.write("core/note", "");
    let cases = [
        (
            "core --peers numpi --rows core.fill.",
            2,
            "peer \"numpi\" is unknown; known: numpy",
        ),
        (
            "core --peers none --rows core.fil.",
            2,
            "no row's key contains core.fil.",
        ),
        (
            "coer --peers none",
            2,
            "\"coer\" is no suite and no file; suites: core, convolution, programs, spiking, field, infer, control",
        ),
        ("old.json", 3, "old.json: not a model"),
        (
            "./core",
            3,
            "./core: not the folder of a model: it has no config.json",
        ),
        (
            "check old.json old.json",
            3,
            "old.json: not a record of tectum.bench/1",
        ),
        ("check missing.json old.json", 7, "missing.json"),
    ];
    for (line, code, message) in cases {
        let output = place.bench(line);
        let stderr = text(&output.stderr);
        assert_eq!(
            (output.status.code(), output.stdout.len()),
            (Some(code), 0),
            "{line}: {stderr}"
        );
        assert!(
            stderr.starts_with("error: ") && stderr.contains(message),
            "{line}: {stderr}"
        );
    }
}

#[test]
fn a_model_is_measured_in_every_format_of_its_weights() {
    let place = Place::new("model");
    let models = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tectum-transformer/models");
    for (model, accuracy) in [
        ("sample-encoder", "min_cosine"),
        ("sample-decoder", "mean_divergence"),
    ] {
        let made = place.json(&format!(
            "{} --device cpu --json",
            models.join(model).display()
        ));
        let formats = made["formats"].as_array().expect("a list");
        let names: Vec<&str> = formats
            .iter()
            .filter_map(|made| made["weights"].as_str())
            .collect();
        assert_eq!(
            (made["device"].as_str(), names),
            (Some("cpu"), vec!["f32", "f16", "bf16", "int8"])
        );
        for format in formats {
            assert!(
                format["tokens_per_s"]
                    .as_f64()
                    .is_some_and(|rate| rate > 0.0)
                    && format["accuracy"][accuracy].is_f64(),
                "{format}"
            );
            assert!(
                format["receipt"]["runs"]
                    .as_u64()
                    .is_some_and(|runs| runs > 0),
                "{format}"
            );
        }
    }
}

#[cfg(unix)]
#[test]
fn peers_run_in_the_same_rounds_and_one_that_fails_is_skipped_with_its_reason() {
    use std::os::unix::fs::PermissionsExt;

    if !Command::new("python3")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success())
    {
        println!("skipped: peers in the same rounds: python3 is not installed");
        return;
    }
    let place = Place::new("peers");
    let protocol = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/peers/protocol.py");
    place.write(
        "bench/peers/protocol.py",
        &std::fs::read_to_string(protocol).expect("there"),
    );
    let good = "import os, time\nfrom protocol import row, serve\n\
                @row('fill', 1, 'sleep(0.001)')\ndef fill(shape):\n    assert shape.sizes == [16777216]\n    print('noise')\n    shape.note = 'not 0.002'\n    return lambda: time.sleep(0.001)\n\
                @row('copy', 1, 'raise')\ndef copy(shape):\n    raise ValueError('too large')\n\
                serve(lambda device: {'python': '3'}, lambda threads: int(os.environ['OMP_NUM_THREADS']))\n";
    for (name, script) in [
        ("asleep", good),
        ("broken", "raise SystemExit(3)\n"),
        ("missing", good),
    ] {
        place.write(&format!("bench/peers/{name}_rows.py"), script);
        if name != "missing" {
            let python = format!("bench/peers/.venv-{name}/bin/python");
            place.write(&python, "#!/bin/sh\nexec python3 \"$@\"\n");
            std::fs::set_permissions(place.0.join(python), std::fs::Permissions::from_mode(0o755))
                .expect("ours");
        }
    }
    let record =
        place.json("core --device cpu --rounds 3 --rows core.fill. --rows core.copy. --json");
    let peers = &record["peers"];
    let names: Vec<_> = (0..3)
        .map(|peer| peers[peer]["name"].as_str().expect("a name"))
        .collect();
    assert_eq!(names, ["asleep", "broken", "missing"]);
    assert_eq!(peers[0]["threads"], record["machine"]["threads"]);
    assert!(
        peers[1]["skipped"]
            .as_str()
            .is_some_and(|reason| reason.contains("exit status: 3")),
        "{peers}"
    );
    assert!(
        peers[2]["skipped"]
            .as_str()
            .is_some_and(|reason| reason.contains("cargo xtask peers missing")),
        "{peers}"
    );
    let (fill, copy) = (
        &record["rows"][0]["peers"][0],
        &record["rows"][1]["peers"][0],
    );
    assert_eq!(
        (numbers(&fill["rounds_s"]).len(), fill["call"].as_str()),
        (3, Some("sleep(0.001), not 0.002"))
    );
    let (ours, theirs) = (
        numbers(&record["rows"][0]["rounds_s"]),
        numbers(&fill["rounds_s"]),
    );
    let mut ratios: Vec<f64> = theirs
        .iter()
        .zip(&ours)
        .map(|(theirs, ours)| theirs / ours)
        .collect();
    ratios.sort_by(f64::total_cmp);
    for (end, ratio) in [
        ("low", ratios[0]),
        ("median", ratios[1]),
        ("high", ratios[2]),
    ] {
        let stated = fill["ratio"][end].as_f64().expect("a number");
        assert!(
            (stated / ratio - 1.0).abs() < 1e-9,
            "{end}: {stated} and {ratio}"
        );
    }
    assert_eq!(copy["skipped"], "ValueError: too large");
}

#[test]
fn a_speedup_compares_two_records_row_by_row() {
    let place = Place::new("speedup");
    let record = place.json("core --device cpu --rows relu --rounds 2 --peers none --json");
    place.write("device.json", &record.to_string());
    let mut slower = record.clone();
    plant(&mut slower, 0, 4.0);
    place.write("baseline.json", &slower.to_string());
    let found = place.json("speedup device.json baseline.json --json");
    let ratio = found["rows"][0]["ratio"]["median"]
        .as_f64()
        .expect("a number");
    assert!((ratio - 4.0).abs() < 1.0, "{ratio}");
    let shown = text(&place.bench("speedup device.json baseline.json").stdout);
    assert!(
        shown.contains("times as fast")
            && shown.contains(record["rows"][0]["key"].as_str().expect("a key")),
        "{shown}"
    );
}

/// Ctrl-C: the rows so far are printed, and the record is written and marked. The run of
/// the whole suite takes minutes; where it was interrupted before its first row, it has no result.
#[cfg(unix)]
#[test]
fn an_interrupted_bench_keeps_the_rows_so_far() {
    let place = Place::new("interrupted");
    let line = "bench core --device cpu --peers none --rounds 90 --record records";
    let output = (0..6)
        .map(|doubling| {
            let run = Command::new(env!("CARGO_BIN_EXE_tectum"))
                .args(line.split_whitespace())
                .env("NODEVICE_SELECT", "1")
                .current_dir(&place.0)
                .stdout(std::process::Stdio::piped())
                .stderr(std::process::Stdio::piped())
                .spawn()
                .expect("the binary starts");
            std::thread::sleep(std::time::Duration::from_secs(2 << doubling));
            let id = run.id().to_string();
            let sent = Command::new("kill").args(["-INT", &id]).status();
            assert!(sent.expect("kill is there").success());
            run.wait_with_output().expect("it ends")
        })
        .find(|output| output.status.code() != Some(130))
        .expect("a row within a minute");
    let (shown, errors) = (text(&output.stdout), text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{errors}");
    let interrupted = shown
        .lines()
        .find(|line| line.starts_with("interrupted: "))
        .unwrap_or_else(|| panic!("not marked: {shown}"));
    assert!(interrupted.ends_with(" of 90 rounds"), "{interrupted}");
    let path = shown
        .lines()
        .find_map(|line| line.strip_prefix("record: "))
        .expect("a record");
    assert!(path.ends_with("-incomplete.json"), "{path}");
    let record: Value =
        serde_json::from_slice(&std::fs::read(place.0.join(path)).expect("written")).expect("JSON");
    assert_eq!(record["interrupted"]["rounds"], 90, "{record}");
    let rows = record["rows"].as_array().expect("a list");
    assert!(!rows.is_empty());
    for row in rows {
        let key = row["key"].as_str().expect("a key");
        assert!(
            !numbers(&row["rounds_s"]).is_empty() && shown.contains(key),
            "{key}"
        );
    }
    // Comparisons do not hide what an incomplete record lacks.
    let (code, _, warning) = place.check(path, path);
    assert_eq!(code, Some(0));
    assert!(warning.contains("incomplete: "), "{warning}");
}

/// Without ONNX Runtime, on the policy that ships: a row for each format, of positive times.
#[test]
fn a_policy_is_timed_in_each_format() {
    let place = Place::new("policy");
    let written = Command::new(env!("CARGO_BIN_EXE_tectum"))
        .args(["sample", "write", "cart-pole-policy", "p"])
        .current_dir(&place.0)
        .output()
        .expect("the binary starts");
    assert!(written.status.success(), "{}", text(&written.stderr));
    let file = "p/cart_pole.onnx";
    let measured = place.json(&format!(
        "{file} --device cpu --rounds 2 --peers none --json"
    ));
    let rows = measured["rows"].as_array().expect("rows");
    let formats: Vec<&str> = rows
        .iter()
        .filter_map(|row| row["weights"].as_str())
        .collect();
    assert_eq!(formats, ["f32", "f16", "int8"]);
    for row in rows {
        let [median, p99] = ["median_us", "p99_us"].map(|key| row[key].as_f64().expect("a time"));
        assert!(
            median > 0.0 && p99 >= median && row["device"] == "cpu",
            "{row}"
        );
    }
    let output = place.bench(&format!("{file} --device cpu --rounds 1 --peers none"));
    let shown = text(&output.stdout);
    assert!(
        shown.contains("median") && shown.contains("int8"),
        "{shown}"
    );
}
