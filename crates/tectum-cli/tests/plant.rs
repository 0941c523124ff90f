//! From a recording to a controller: `train plant`, `inspect`, `run`.

use std::path::Path;

use tectum_control::body::rig::{Rig, RigParameters};
use tectum_control::body::{Body, Start};
use tectum_equations::{LIBRARY, System};

use super::train::Place;

/// Small numbers without pattern, of deviation 1.
fn noise(at: usize) -> f64 {
    let unit = |at: usize| ((at as u64).wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 33) as f64 / (1u64 << 31) as f64;
    (unit(at) + unit(at + 7_777_777) + unit(at + 55_555_555) - 1.5) * 2.0
}

/// A command that excites cart and pole, and brings the cart back.
fn command(row: usize, position_m: f64, gain: f64) -> f64 {
    2.0 * (row as f64 * 0.37).sin() + 1.5 * (row as f64 * 0.11).sin() - 2.0 * position_m / gain
}

/// A recording of the cart with a servo, with other constants, in inches and degrees.
fn record_cart(path: &Path, constants: &[(&str, f64)], rows: usize) {
    let (_, text) = LIBRARY.iter().find(|(name, _)| *name == "cart_servo.plant").expect("it ships");
    let system = System::parse(text, "cart_servo").expect("valid");
    let parameters = system.with_parameters(constants.iter().copied()).expect("known");
    let gain = constants.iter().find(|(name, _)| *name == "gain").expect("given").1;
    let mut state = vec![0.0, 0.0, std::f64::consts::PI, 0.0];
    let mut text = "la_position [inch],pend_position,volts,elapsed\n".to_owned();
    for row in 0..rows {
        let angle = (state[2].to_degrees() + 0.2 * noise(2 * row) + 180.0).rem_euclid(360.0) - 180.0;
        let volts = command(row, state[0], gain).clamp(-5.0, 5.0);
        text += &format!("{},{angle},{volts},40\n", (state[0] + 0.0002 * noise(2 * row + 1)) / 0.0254);
        system.step(&parameters, &mut state, &[volts], &[]);
    }
    std::fs::write(path, text).expect("writable");
}

/// A recording of the laboratory rig whose commands act from their row on.
fn record_rig(path: &Path, rows: usize) {
    let mut rig = Rig::new(RigParameters { delay_s: 0.0, ..RigParameters::default() }, Start::Hanging).expect("a rig");
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
    let columns = "--column position=la_position --column angle=pend_position:deg --column command=volts:V";
    let found = place.text(&format!("train plant cart_servo.plant made.csv -o mine.plant --json {columns}"));
    let found: serde_json::Value = serde_json::from_str(&found).expect("json");
    let shown = place.text(&format!("inspect mine.plant --data made.csv {columns}"));
    for part in ["plant cart_servo, a step every 40 ms", "if it stayed as it was", "angle"] {
        assert!(shown.contains(part), "{part:?} is not in\n{shown}");
    }
    let summary = place.text(&format!("run cart_pole --body mine.plant --brain {brain} --clock sim --seconds 60 --no-plots --json"));
    let summary: serde_json::Value = serde_json::from_str(&summary).expect("json");
    (found, summary["upright_fraction"].as_f64().unwrap_or_else(|| panic!("no fraction in {summary}")))
}

fn value(found: &serde_json::Value, name: &str) -> f64 {
    let all = found["found"]["parameters"].as_array().expect("a list");
    all.iter().find(|estimate| estimate["name"] == name).and_then(|estimate| estimate["value"].as_f64()).unwrap_or_else(|| panic!("{name} in {found}"))
}

#[test]
fn a_cart_geared_the_other_way_is_identified_and_balanced_by_three_commands() {
    let place = Place::new("geared");
    record_cart(&place.0.join("made.csv"), &[("gain", -0.08), ("length", 0.3), ("lag", 30.0), ("dead_band", 0.15), ("damping", 0.2)], 2000);
    let (found, upright) = identified(&place, "lqr");
    assert!((value(&found, "length") / 0.3 - 1.0).abs() < 0.01, "{found}");
    assert!((value(&found, "gain") / -0.08 - 1.0).abs() < 0.02, "{found}");
    assert!(upright >= 0.9, "{upright}");
    // The note and the values are in the file; the rest is as it was.
    let written = std::fs::read_to_string(place.0.join("mine.plant")).expect("written");
    assert!(written.starts_with("# Parameters fitted to made.csv (blake3 ") && written.contains("wanted = clamp(gain * heard"), "{written}");
    let (_, planned) = identified(&place, "mppi");
    assert!(planned >= 0.9, "{planned}");
}

#[test]
fn a_rig_without_command_lead_is_identified_and_balanced_by_three_commands() {
    let place = Place::new("plain-rig");
    record_rig(&place.0.join("made.csv"), 2000);
    let (found, upright) = identified(&place, "lqr");
    assert!((value(&found, "length") / 0.17 - 1.0).abs() < 0.01, "{found}");
    assert!(upright >= 0.9, "{upright}");
}

#[test]
fn recordings_that_do_not_fit_a_plant_are_refused_with_their_place() {
    let place = Place::new("misfit");
    record_cart(&place.0.join("made.csv"), &[("gain", 0.1)], 200);
    let text = std::fs::read_to_string(place.0.join("made.csv")).expect("written");
    let refused = |line: &str| {
        let output = place.tectum(line);
        assert!(!output.status.success() && !place.0.join("out.plant").exists(), "{line}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let columns = "--column position=la_position --column angle=pend_position:deg --column command=volts:V";
    let train = |data: &str, rest: &str| format!("train plant cart_servo.plant {data} -o out.plant {rest}");
    let cases = [
        (train("made.csv", ""), "line 1: column command is missing; found: la_position [inch], pend_position, volts, elapsed"),
        (
            train("made.csv", "--column command=volts --column angel=pend_position"),
            "column angel: the plant has none of this name; known: position, angle, command",
        ),
        (train("made.csv", "--column command=volts --column angle=pend_position:furlong"), "column angle: the unit \"furlong\" is unknown"),
        (train("made.csv", "--column command=volts --column angle=pend_position:m"), "column pend_position: angle is a plain number; the column is m"),
        (train("made.csv", &format!("{columns} --fit mass")), "it has no parameter \"mass\"; known: gravity, gain"),
        (train("made.csv", &format!("{columns} --fit gravity")), "parameter gravity has no range"),
        (train("made.csv", &format!("{columns} --window 5")), "stretches of 5.00 s without gaps; at least 4 are needed"),
        (train("absent.csv", columns), "absent.csv"),
        (format!("train plant absent.plant made.csv -o out.plant {columns}"), "absent.plant"),
    ];
    for (line, expected) in cases {
        let error = refused(&line);
        assert!(error.contains(expected), "{line}: {error}");
    }
    std::fs::write(place.0.join("seconds.csv"), text.replace(",40\n", ",0.04\n")).expect("writable");
    let error = refused(&train("seconds.csv", columns));
    assert!(error.contains("the median step is 0.0400 ms, the period of the plant 40.0000 ms: is it in a unit a thousand times as large?"), "{error}");
    std::fs::write(place.0.join("broken.csv"), text.replacen(",40\n", ",40\n1,2,volts,40\n", 1)).expect("writable");
    let error = refused(&train("broken.csv", columns));
    assert!(error.contains("line 3, column volts: \"volts\" is not a number"), "{error}");
}
