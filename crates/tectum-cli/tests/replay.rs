//! `replay`: a brain on the observations of a recorded run.

use serde_json::Value;

use super::train::Place;

/// The folder of a run of the pendulum's regulator.
fn run(place: &Place, options: &str) -> String {
    let line =
        format!("run pendulum --brain lqr --seconds 3 --clock sim --no-plots --json {options}");
    let summary: Value = serde_json::from_str(&place.text(&line)).expect("JSON");
    summary["run_folder"].as_str().expect("a folder").to_owned()
}

fn compared(place: &Place, line: &str) -> Value {
    serde_json::from_str(&place.text(&format!("{line} --json"))).expect("JSON")
}

#[test]
fn the_brain_of_a_run_gives_the_recorded_actions_and_another_does_not() {
    let place = Place::new("replay");
    let folder = run(&place, "");
    for recording in [folder.clone(), format!("{folder}/trace.mcap")] {
        let same = compared(&place, &format!("replay {recording} --within 0"));
        assert_eq!(
            (&same["compared"], &same["not_compared"], &same["gaps"]),
            (&75.into(), &0.into(), &0.into())
        );
        let volts = &same["channels"][0];
        assert_eq!(
            (&volts["channel"], &volts["max"]),
            (&"cmd_volts".into(), &0.0.into())
        );
        assert!(volts["first_tick"].is_null());
    }
    let zero = compared(&place, &format!("replay {folder} --brain zero"));
    let volts = &zero["channels"][0];
    // The action of the regulator itself, whose range is -5 to 5 V.
    let max = volts["max"].as_f64().expect("a number");
    assert!(
        max > 0.1 && volts["max_of_range"].as_f64() == Some(max / 10.0),
        "{volts}"
    );
    assert!(
        volts["rms"]
            .as_f64()
            .is_some_and(|rms| rms > 0.0 && rms < max)
    );
    assert!(volts["first_tick"].is_u64());
    let output = place.tectum(&format!("replay {folder} --brain zero --within 0.001"));
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.contains("of its range, --within is 0.001"), "{error}");
}

#[test]
fn periods_without_an_answer_are_counted_and_not_compared() {
    let place = Place::new("replay-faults");
    let folder = run(&place, "--inject sensor-lost@1");
    let same = compared(&place, &format!("replay {folder} --within 0"));
    assert_eq!(
        (&same["compared"], &same["not_compared"]),
        (&65.into(), &10.into())
    );
}

#[test]
fn recordings_that_cannot_be_replayed_are_refused() {
    let place = Place::new("replay-refused");
    let folder = run(&place, "");
    let alone = place.0.join("trace.mcap");
    std::fs::copy(place.0.join(&folder).join("trace.mcap"), alone).expect("a copy");
    let other = place.0.join("other");
    std::fs::create_dir(&other).expect("a folder");
    let scenario = "[body]\nname = \"cart_pole\"\n[brain]\nname = \"zero\"\n";
    std::fs::write(other.join("scenario.toml"), scenario).expect("written");
    std::fs::copy(
        place.0.join(&folder).join("trace.mcap"),
        other.join("trace.mcap"),
    )
    .expect("a copy");
    for (line, reason) in [
        (
            "replay trace.mcap".to_owned(),
            "there is no scenario.toml next to the recording",
        ),
        (
            "replay other".into(),
            "the body cart_pole has position, velocity, angle, speed",
        ),
        ("replay missing".into(), "there is no scenario.toml"),
        (
            format!("replay {folder} --within 2"),
            "--within is 2, needs a share from 0 to 1",
        ),
        (format!("replay {folder} --brain nothing"), "nothing"),
    ] {
        let output = place.tectum(&line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && error.contains(reason),
            "{line}: {error}"
        );
    }
}
