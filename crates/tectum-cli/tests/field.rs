//! `tectum check field` and the field as a brain.

use std::process::{Command, Output, Stdio};

fn tectum(line: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
    command
        .env("NODEVICE_SELECT", "1")
        .args(line.split_whitespace())
        .stdin(Stdio::null());
    command.output().expect("it starts")
}

fn text(line: &str) -> String {
    text_with_code(line, 0)
}

/// What a line prints that ends with this exit code.
fn text_with_code(line: &str, code: i32) -> String {
    let output = tectum(line);
    assert_eq!(
        output.status.code(),
        Some(code),
        "{line}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

#[test]
fn a_check_of_the_field_lists_passes_transfers_and_agreement() {
    let has_vulkan = tectum::Device::open_if_present("vulkan:0")
        .expect("absent or usable")
        .is_some();
    for (device, transfers) in [
        ("cpu", "0 up (0 B), 0 down (0 B)"),
        ("vulkan:0", "1 up (1280 B), 1 down ("),
    ] {
        if device == "vulkan:0" && !has_vulkan {
            eprintln!("skipped: no Vulkan device");
            continue;
        }
        // A GPU in software does not meet the requirement on the device.
        let is_met = device == "cpu";
        let line = format!(
            "check field --cells 8 --channels 32 --patterns 16 --compared 2 --every 5 --device {device}"
        );
        let shown = text_with_code(&line, i32::from(!is_met));
        for part in [
            "field_similarity",
            "field_recall",
            "field_sense",
            "field_place",
            "field_evolve",
            "field_pool",
            "field_act",
            "2 cycles compared",
            "10 cycles took",
            "against float64",
            transfers,
            "device",
            "passes over the field",
            if is_met {
                "every requirement is met"
            } else {
                "not met: device"
            },
        ] {
            assert!(
                shown.contains(part),
                "{device}: {part:?} is not in\n{shown}"
            );
        }
    }
}

#[test]
fn a_field_split_over_devices_is_checked_and_runs_as_a_brain() {
    let other = if tectum::Device::open_if_present("vulkan:0")
        .expect("absent or usable")
        .is_some()
    {
        "vulkan:0"
    } else {
        "cpu"
    };
    let line = format!(
        "check field --cells 8 --channels 32 --patterns 16 --compared 2 --every 5 --device cpu,{other}"
    );
    let shown = text_with_code(&line, i32::from(other != "cpu"));
    for part in ["cpu (", " and ", "field_evolve", "2 cycles compared"] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let output = tectum("check field --learning --device cpu,cpu");
    assert!(String::from_utf8_lossy(&output.stderr).contains("--learning runs on one device"));

    let folder = std::env::temp_dir().join(format!("tectum-field-split-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    let run = |name: &str, keys: &str| {
        let file = folder.join(name);
        let scenario = format!(
            "[body]\nname = \"seeker\"\n[brain]\nname = \"field\"\ncells = [8, 8, 8]\n{keys}[loop]\nseconds = 5\nclock = \"sim\"\n"
        );
        std::fs::write(&file, scenario).expect("writable");
        let told = text(&format!(
            "run {} --device cpu --quiet --json --runs {}",
            file.display(),
            folder.join("runs").display()
        ));
        let told: serde_json::Value = serde_json::from_str(&told).expect("json");
        told["return"]
            .as_f64()
            .unwrap_or_else(|| panic!("no return in {told}"))
    };
    assert_eq!(
        run("whole.toml", ""),
        run("split.toml", "extra_devices = [\"cpu\"]\n")
    );
    std::fs::remove_dir_all(&folder).expect("ours");
}

#[test]
fn a_check_of_the_field_is_to_be_had_as_json() {
    let found: serde_json::Value = serde_json::from_str(&text(
        "check field --cells 8 --channels 32 --compared 2 --every 3 --json",
    ))
    .expect("json");
    let check = &found["check"];
    assert_eq!(
        (
            check["compared"].as_u64(),
            check["latency"]["cycles"].as_u64()
        ),
        (Some(2), Some(6)),
        "{found}"
    );
    assert!(
        check["latency"]["p50_s"].as_f64() <= check["latency"]["max_s"].as_f64(),
        "{found}"
    );
    assert_eq!(
        check["agreement"].as_array().map(|all| all
            .iter()
            .all(|kind| kind["worst"].as_f64() <= kind["tolerance"].as_f64())),
        Some(true),
        "{found}"
    );
}

/// The verdict on the brain of a scenario: its own sensors, motors and settings, and its body's
/// period.
#[test]
fn a_given_brain_gets_a_verdict() {
    let folder = std::env::temp_dir().join(format!("tectum-field-verdict-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = folder.join("small.toml");
    let scenario = "[body]\nname = \"seeker\"\n[brain]\nname = \"field\"\ncells = [8, 4, 8]\nchannels = 32\nreward = \"reward\"\n[brain.coefficients]\nnoise = 0.01\n";
    std::fs::write(&file, scenario).expect("writable");
    let line = format!(
        "check field --brain {} --compared 2 --every 3",
        file.display()
    );
    let shown = text(&line);
    for part in [
        "field of 8 x 4 x 8 cells of 32 channels, 6 sensors, 2 motors, the brain of small, on cpu (",
        "time of a cycle, p99",
        "at most the period, 100.000 ms",
    ] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let found: serde_json::Value =
        serde_json::from_str(&text(&format!("{line} --json"))).expect("json");
    let what: Vec<&str> = found["verdict"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|finding| finding["what"].as_str())
        .collect();
    assert_eq!(
        what,
        [
            "transfers a cycle",
            "passes over the field",
            "device",
            "difference from float64",
            "time of a cycle, p99"
        ]
    );
    assert!(
        found["verdict"]
            .as_array()
            .is_some_and(|all| all[..4].iter().all(|finding| finding["is_met"] == true)),
        "{found}"
    );
    assert_eq!(
        (&found["cells"], &found["sensors"]),
        (&serde_json::json!([8, 4, 8]), &serde_json::json!(6))
    );
    for (line, message) in [
        (
            "check field --brain cart_pole",
            "check field --brain cart_pole: its brain is mppi; a field is needed",
        ),
        (
            "check field --brain seekr",
            "scenario \"seekr\" is unknown, perhaps \"seeker\"",
        ),
        (
            "check field --brain seeker --cells 8",
            "cannot be used with",
        ),
        (
            "check field --sensors 0 --cells 8",
            "field: 0 sensors; needs 1 to 256",
        ),
        (
            "check field --motors 17 --cells 8",
            "field: 17 motors; needs 1 to 16",
        ),
    ] {
        let output = tectum(line);
        assert!(
            output.status.code() == Some(2)
                && String::from_utf8_lossy(&output.stderr).contains(message),
            "{line}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    std::fs::remove_dir_all(&folder).expect("ours");
}

/// No cycle ends within a microsecond: the verdict is negative, and so is the exit code, also of
/// `--json`.
#[test]
fn a_verdict_that_is_not_met_is_an_exit_code() {
    let folder = std::env::temp_dir().join(format!("tectum-field-late-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let plant = folder.join("fast.plant");
    std::fs::write(
        &plant,
        "body fast\nperiod 0.001 ms\nintegrate euler\nstate x: m start 0.1 in -1 .. 1\ninput u: m/s in -1 .. 1\nd/dt x = u\nobserve x: m = x in -1 .. 1\n",
    )
    .expect("writable");
    let file = folder.join("late.toml");
    let scenario = format!(
        "[body]\nname = {:?}\n[brain]\nname = \"field\"\ncells = [8, 4, 8]\nchannels = 32\n",
        plant.display().to_string()
    );
    std::fs::write(&file, scenario).expect("writable");
    let line = format!(
        "check field --brain {} --compared 2 --every 3",
        file.display()
    );
    let shown = text_with_code(&line, 1);
    assert!(
        shown.contains("NOT MET") && shown.ends_with("not met: time of a cycle, p99\n"),
        "{shown}"
    );
    let line = format!("{line} --json");
    let found: serde_json::Value = serde_json::from_str(&text_with_code(&line, 1)).expect("json");
    assert_eq!(found["verdict"][4]["is_met"], false, "{found}");
    assert_eq!(
        String::from_utf8_lossy(&tectum(&line).stderr),
        "error: check field: not met: time of a cycle, p99\n"
    );
    std::fs::remove_dir_all(&folder).expect("ours");
}

#[test]
fn a_field_that_there_is_not_is_refused() {
    let output = tectum("check field --cells 10");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("an axis of 10 cells"));
}

#[test]
fn a_check_of_learning_shows_four_controllers_and_their_curves() {
    let shown =
        text("check field --learning --cells 4 --channels 32 --patterns 8 --seeds 2 --steps 50");
    for part in [
        "field, learning",
        "field, not learning",
        "random",
        "hand-written",
        "2 seeds of 50 steps",
        "over not learning",
        "±",
    ] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
}

#[test]
fn a_run_of_a_field_leaves_pictures_of_its_slices() {
    let folder = std::env::temp_dir().join(format!("tectum-field-slices-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let runs = folder.join("runs");
    text(&format!(
        "run seeker --seconds 3 --clock sim --quiet --runs {}",
        runs.display()
    ));
    let run = std::fs::read_dir(&runs)
        .expect("runs")
        .next()
        .expect("one")
        .expect("readable")
        .path();
    for slice in ["xy", "xz", "yz"] {
        let picture = std::fs::read(run.join(format!("field_{slice}.png"))).expect("a picture");
        assert!(
            picture.starts_with(b"\x89PNG\r\n") && picture.len() > 1000,
            "{slice}: {} bytes",
            picture.len()
        );
    }
    let film = std::fs::read(run.join("field.gif")).expect("a film");
    // Snapshots at the beginning and at 1, 2 and 3 s; each is a frame that begins with its delay.
    let frames = film
        .windows(4)
        .filter(|at| *at == [0x21, 0xf9, 0x04, 0x00] || (at[..3] == [0x21, 0xf9, 0x04]))
        .count();
    assert!(
        film.starts_with(b"GIF89a") && frames == 4,
        "{frames} frames, {} bytes",
        film.len()
    );
    std::fs::remove_dir_all(&folder).expect("ours");
}
