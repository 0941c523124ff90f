//! From a recording to a controller: `train plant`, `inspect`, `run`.

use std::path::Path;

use tectum_control::body::rig::{Rig, RigParameters};
use tectum_control::body::{Body, Start};
use tectum_equations::{LIBRARY, System};

use super::train::Place;

/// Small numbers without pattern, of deviation 1.
fn noise(at: usize) -> f64 {
    let unit = |at: usize| {
        ((at as u64)
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407)
            >> 33) as f64
            / (1u64 << 31) as f64
    };
    (unit(at) + unit(at + 7_777_777) + unit(at + 55_555_555) - 1.5) * 2.0
}

/// A command that excites cart and pole, and brings the cart back.
fn command(row: usize, position_m: f64, gain: f64) -> f64 {
    2.0 * (row as f64 * 0.37).sin() + 1.5 * (row as f64 * 0.11).sin() - 2.0 * position_m / gain
}

/// A recording of the cart with a servo, with other constants, in inches and degrees.
fn record_cart(path: &Path, constants: &[(&str, f64)], rows: usize) {
    let (_, text) = LIBRARY
        .iter()
        .find(|(name, _)| *name == "cart_servo.plant")
        .expect("it ships");
    let system = System::parse(text, "cart_servo").expect("valid");
    let parameters = system
        .with_parameters(constants.iter().copied())
        .expect("known");
    let gain = constants
        .iter()
        .find(|(name, _)| *name == "gain")
        .expect("given")
        .1;
    let mut state = vec![0.0, 0.0, std::f64::consts::PI, 0.0];
    let mut text = "la_position [inch],pend_position,volts,elapsed\n".to_owned();
    for row in 0..rows {
        let angle =
            (state[2].to_degrees() + 0.2 * noise(2 * row) + 180.0).rem_euclid(360.0) - 180.0;
        let volts = command(row, state[0], gain).clamp(-5.0, 5.0);
        text += &format!(
            "{},{angle},{volts},40\n",
            (state[0] + 0.0002 * noise(2 * row + 1)) / 0.0254
        );
        system.step(&parameters, &mut state, &[volts], &[]);
    }
    std::fs::write(path, text).expect("writable");
}

/// A recording of the laboratory rig whose commands act from their row on.
fn record_rig(path: &Path, rows: usize) {
    let mut rig = Rig::new(
        RigParameters {
            delay_s: 0.0,
            ..RigParameters::default()
        },
        Start::Hanging,
    )
    .expect("a rig");
    let mut text = "la_position [inch],pend_position,volts,elapsed\n".to_owned();
    let mut seen = [0.0f32; 4];
    for row in 0..rows {
        rig.observe(&mut seen);
        let volts = command(row, f64::from(seen[0]) * 0.0254, -0.116) as f32;
        text += &format!("{},{},{volts},40\n", seen[0], seen[3]);
        rig.step(&[volts]);
    }
    std::fs::write(path, text).expect("writable");
}

/// The three commands; the value of each parameter, and the fraction of a minute upright.
fn identified(place: &Place, brain: &str) -> (serde_json::Value, f64) {
    let columns =
        "--column position=la_position --column angle=pend_position:deg --column command=volts:V";
    let found = place.text(&format!(
        "train plant cart_servo.plant made.csv -o mine.plant --json {columns}"
    ));
    let found: serde_json::Value = serde_json::from_str(&found).expect("json");
    let shown = place.text(&format!("inspect mine.plant --data made.csv {columns}"));
    for part in [
        "plant cart_servo, a step every 40 ms",
        "if it stayed as it was",
        "angle",
    ] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let summary = place.text(&format!(
        "run mine.plant --brain {brain} --clock sim --seconds 60 --no-plots --json"
    ));
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("json");
    (
        found,
        summary["upright_fraction"]
            .as_f64()
            .unwrap_or_else(|| panic!("no fraction in {summary}")),
    )
}

fn value(found: &serde_json::Value, name: &str) -> f64 {
    let all = found["found"]["parameters"].as_array().expect("a list");
    all.iter()
        .find(|estimate| estimate["name"] == name)
        .and_then(|estimate| estimate["value"].as_f64())
        .unwrap_or_else(|| panic!("{name} in {found}"))
}

#[test]
fn a_cart_geared_the_other_way_is_identified_and_balanced_by_three_commands() {
    let place = Place::new("geared");
    record_cart(
        &place.0.join("made.csv"),
        &[
            ("gain", -0.08),
            ("length", 0.3),
            ("lag", 30.0),
            ("dead_band", 0.15),
            ("damping", 0.2),
        ],
        2000,
    );
    let (found, upright) = identified(&place, "lqr");
    assert!(
        (value(&found, "length") / 0.3 - 1.0).abs() < 0.01,
        "{found}"
    );
    assert!(
        (value(&found, "gain") / -0.08 - 1.0).abs() < 0.02,
        "{found}"
    );
    assert!(upright >= 0.9, "{upright}");
    // The note and the values are in the file; the rest is as it was.
    let written = std::fs::read_to_string(place.0.join("mine.plant")).expect("written");
    assert!(
        written.starts_with("# Parameters fitted to made.csv (blake3 ")
            && written.contains("wanted = clamp(gain * heard"),
        "{written}"
    );
    let (_, planned) = identified(&place, "mppi");
    assert!(planned >= 0.9, "{planned}");
}

#[test]
fn a_rig_without_command_lead_is_identified_and_balanced_by_three_commands() {
    let place = Place::new("plain-rig");
    record_rig(&place.0.join("made.csv"), 2000);
    let (found, upright) = identified(&place, "lqr");
    assert!(
        (value(&found, "length") / 0.17 - 1.0).abs() < 0.01,
        "{found}"
    );
    assert!(upright >= 0.9, "{upright}");
}

#[test]
fn recordings_that_do_not_fit_a_plant_are_refused_with_their_place() {
    let place = Place::new("misfit");
    record_cart(&place.0.join("made.csv"), &[("gain", 0.1)], 200);
    let text = std::fs::read_to_string(place.0.join("made.csv")).expect("written");
    let refused = |line: &str| {
        let output = place.tectum(line);
        assert!(
            !output.status.success() && !place.0.join("out.plant").exists(),
            "{line}"
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let columns =
        "--column position=la_position --column angle=pend_position:deg --column command=volts:V";
    let train =
        |data: &str, rest: &str| format!("train plant cart_servo.plant {data} -o out.plant {rest}");
    let cases = [
        (
            train("made.csv", ""),
            "line 1: column command is missing; found: la_position [inch], pend_position, volts, elapsed",
        ),
        (
            train(
                "made.csv",
                "--column command=volts --column angel=pend_position",
            ),
            "column angel: the plant has none of this name; known: position, angle, command",
        ),
        (
            train(
                "made.csv",
                "--column command=volts --column angle=pend_position:furlong",
            ),
            "column angle: the unit \"furlong\" is unknown",
        ),
        (
            train(
                "made.csv",
                "--column command=volts --column angle=pend_position:m",
            ),
            "column pend_position: angle is a number or an angle; the column is m",
        ),
        (
            train("made.csv", &format!("{columns} --fit mass")),
            "it has no parameter \"mass\"; known: gravity, gain",
        ),
        (
            train("made.csv", &format!("{columns} --fit gravity")),
            "parameter gravity has no range",
        ),
        (
            train("made.csv", &format!("{columns} --window 5")),
            "the recording is too short: 6.80 s of it are fitted to, and 4 windows of 5.00 s are needed",
        ),
        (train("absent.csv", columns), "absent.csv"),
        (
            format!("train plant absent.plant made.csv -o out.plant {columns}"),
            "absent.plant",
        ),
    ];
    for (line, expected) in cases {
        let error = refused(&line);
        assert!(error.contains(expected), "{line}: {error}");
    }
    std::fs::write(
        place.0.join("seconds.csv"),
        text.replace(",40\n", ",0.04\n"),
    )
    .expect("writable");
    let error = refused(&train("seconds.csv", columns));
    assert!(error.contains("the median step is 0.0400 ms, the period of the plant 40.0000 ms: if it is in s, --column elapsed=elapsed:s says so"), "{error}");
    std::fs::write(
        place.0.join("broken.csv"),
        text.replacen(",40\n", ",40\n1,2,volts,40\n", 1),
    )
    .expect("writable");
    let error = refused(&train("broken.csv", columns));
    assert!(
        error.contains("line 3, column volts: \"volts\" is not a number"),
        "{error}"
    );
}

/// A crane: a load on a rope under a trolley, as a user writes it; `air` is not used.
const CRANE: &str = "body crane\nperiod 50 ms\nintegrate rk4 steps 2\nparameter rope = 5 m in 2 .. 10\nparameter air = 1 kg\n\
    state x: m start 1\nstate v: m/s\nstate swing: rad\nstate rate: rad/s\ninput push: [m/s^2] in -1 .. 1\n\
    d/dt v = push\nd/dt x = v\nd/dt rate = -(9.81 [m/s^2] * sin(swing) + push * cos(swing)) / rope\nd/dt swing = rate\n\
    observe place: m = x\nobserve swing_deg: deg = swing\nkeep swing within 2 deg as \"load at rest\"\nweigh x 1, v 1, swing 10, rate 1, push 1\n";

#[test]
fn a_plant_runs_by_its_name_and_a_run_keeps_the_file_as_it_was() {
    let place = Place::new("crane");
    std::fs::write(place.0.join("crane.plant"), CRANE).expect("writable");
    let output = place.tectum("run crane.plant --clock sim --seconds 20 --json");
    let [stdout, stderr] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    assert!(
        output.status.success()
            && stderr.contains("warning: crane.plant: line 5: parameter air is never used"),
        "{stderr}"
    );
    assert!(
        stderr.contains("fraction load at rest")
            && stderr.contains("none of 400: time is simulated"),
        "{stderr}"
    );
    let summary: serde_json::Value = serde_json::from_str(&stdout).expect("json");
    assert_eq!(
        (
            summary["brain"].as_str(),
            summary["body"].as_str(),
            summary["scenario"].as_str()
        ),
        (Some("lqr"), Some("crane.plant"), Some("crane"))
    );
    assert_eq!(
        std::fs::read_to_string(place.0.join("runs/1/body.plant")).expect("copied"),
        CRANE
    );
    // The picture of the measure has the file's bound and unit.
    let picture = std::fs::read_to_string(place.0.join("runs/1/measure.svg")).expect("drawn");
    assert!(
        picture.contains("within ±2° of 0") && picture.contains("error (deg)"),
        "{picture:.600}"
    );
    // A file that changed since is not continued with by its name; the folder alone continues with
    // its copy.
    std::fs::write(
        place.0.join("crane.plant"),
        CRANE.replace("rope = 5 m", "rope = 4 m"),
    )
    .expect("writable");
    let refused = place.tectum("run crane.plant --resume runs/1 --clock sim --seconds 30");
    let error = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(
        !refused.status.success() && error.contains("crane.plant has changed since; tectum run --resume runs/1 alone continues with the file as it was"),
        "{error}"
    );
    place.text("run --resume runs/1 --seconds 30");
    assert_eq!(
        std::fs::read_to_string(place.0.join("runs/2/body.plant")).expect("copied"),
        CRANE
    );
    let repeated = place.text("receipt check runs/1 --rerun");
    assert!(!repeated.contains("DIFFERS"), "{repeated}");
    // Its trace is a recording that the plant can be fitted to.
    place.text("export runs/1 --out trace.csv");
    let shown = place.text("inspect crane.plant --data trace.csv --column push=push");
    assert!(
        shown.contains("success: load at rest within 2 deg") && shown.contains("steps ahead"),
        "{shown}"
    );
}

#[test]
fn plants_that_ship_are_shown_and_written() {
    let place = Place::new("shipped");
    let shown = place.text("inspect quadrotor.plant");
    assert!(
        shown.contains("plant quadrotor, a step every 20 ms") && shown.contains("equilibrium"),
        "{shown}"
    );
    place.text("sample write quadrotor.plant");
    let written = std::fs::read_to_string(place.0.join("quadrotor.plant")).expect("written");
    assert!(LIBRARY.contains(&("quadrotor.plant", &written)));
    let refused = place.tectum("check quadrotor.plant");
    assert!(
        String::from_utf8_lossy(&refused.stderr)
            .contains("a plant; tectum inspect quadrotor.plant checks and shows it")
    );
}

#[test]
fn doubtful_fits_and_useless_columns_are_reported() {
    let place = Place::new("doubts");
    record_cart(&place.0.join("made.csv"), &[("gain", 0.1)], 400);
    let columns = "--column position=la_position --column angle=pend_position:deg --column command=volts:V --fit gain --fit damping";
    let warnings = |data: &str| {
        String::from_utf8_lossy(
            &place
                .tectum(&format!(
                    "train plant cart_servo.plant {data} -o out.plant {columns}"
                ))
                .stderr,
        )
        .into_owned()
    };
    assert!(
        !warnings("made.csv").contains("warning"),
        "{}",
        warnings("made.csv")
    );
    // The command of every row is 0: nothing about the gain can be known.
    let text = std::fs::read_to_string(place.0.join("made.csv")).expect("written");
    let still =
        text.lines().enumerate().map(
            |(row, line)| match line.split(',').collect::<Vec<_>>()[..] {
                [position, angle, _, elapsed] if row > 0 => {
                    format!("{position},{angle},0,{elapsed}\n")
                }
                _ => format!("{line}\n"),
            },
        );
    std::fs::write(place.0.join("still.csv"), still.collect::<String>()).expect("writable");
    assert!(
        warnings("still.csv")
            .contains("input command is the same in every row: its effect cannot be found"),
        "{}",
        warnings("still.csv")
    );
    // An angle in a recording that wraps, of a plant that does not say so.
    let (_, servo) = LIBRARY
        .iter()
        .find(|(name, _)| *name == "cart_servo.plant")
        .expect("it ships");
    std::fs::write(
        place.0.join("unwrapped.plant"),
        servo.replace("theta wraps in", "theta in"),
    )
    .expect("writable");
    std::fs::write(
        place.0.join("turns.csv"),
        "angle [deg],command,elapsed\n170,0,40\n176,0,40\n-178,0,40\n-172,0,40\n",
    )
    .expect("writable");
    let error = place.tectum("train plant unwrapped.plant turns.csv -o out.plant");
    let error = String::from_utf8_lossy(&error.stderr).into_owned();
    assert!(error.contains("line 4, column angle: it jumps by a full turn; if it wraps, the plant says so: observe angle: … wraps"), "{error}");
}
