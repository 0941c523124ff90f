//! Recordings of other robots: `inspect`, `replay` and `run` of the sample, and `record`.

use serde_json::Value;
use tectum_control::recording::Trace;

use super::train::Place;

fn json(place: &Place, line: &str) -> Value {
    serde_json::from_str(&place.text(&format!("{line} --json"))).expect("JSON")
}

/// The sample, and the scenario of `docs/robots.md` that maps it.
fn mapped(name: &str) -> Place {
    let place = Place::new(name);
    place.text("sample write ros-recording cart.mcap");
    place.text("sample write cart-pole-policy cart");
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/robots.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let block = page.split("This is `cart.toml`:\n\n```toml\n").nth(1);
    let block = block
        .and_then(|rest| rest.split("```").next())
        .expect("a scenario");
    std::fs::write(place.0.join("cart.toml"), block).expect("writable");
    place
}

#[test]
fn a_policy_gives_the_actions_that_a_robot_of_ros_recorded() {
    let place = mapped("recordings");
    let contents = json(&place, "inspect cart.mcap");
    let topics = contents["topics"].as_array().expect("topics");
    let names: Vec<&str> = topics
        .iter()
        .filter_map(|own| own["topic"].as_str())
        .collect();
    assert_eq!(names, ["/camera", "/commands", "/joint_states"]);
    assert_eq!(topics[2]["messages"], 200);
    assert!(
        place
            .text("inspect cart.mcap")
            .contains("  position[]: float64\n")
    );
    let same = json(&place, "replay cart.toml --within 0");
    assert_eq!(
        (&same["compared"], &same["not_compared"], &same["brain"]),
        (&200.into(), &0.into(), &"policy".into())
    );
    assert_eq!(same["channels"][0]["max"], 0.0);
    let recording = &same["recording"];
    assert_eq!(
        (
            &recording["periods"],
            &recording["clock"],
            &recording["stale_periods"]
        ),
        (&200.into(), &"log_time".into(), &0.into())
    );
    let shown = place.text("replay cart.toml");
    for part in [
        "/joint_states  sensor_msgs/msg/JointState      200       50\n",
        "recording cart.mcap: 440 messages in ",
        "200 periods of 0.02 s",
        "clock log_time\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let zero = json(&place, "replay cart.toml --brain zero");
    assert_eq!(zero["channels"][0]["max"], 10.0);
    // A run on the recording is repeated bit by bit.
    let run = json(&place, "run cart.toml --seconds 3 --clock sim --no-plots");
    let folder = run["run_folder"].as_str().expect("a folder");
    place.text(&format!("receipt check {folder} --rerun"));
    let long = place.tectum("run cart.toml --seconds 5 --clock sim --no-plots");
    let error = String::from_utf8_lossy(&long.stderr);
    assert!(
        !long.status.success() && error.contains("the recording ends after 200 periods"),
        "{error}"
    );
}

#[test]
fn recordings_without_a_map_are_refused_with_what_is_needed() {
    let place = mapped("recordings-refused");
    for (line, expected) in [
        (
            "replay cart.mcap",
            "for a recording of another robot name a scenario with [body] recording",
        ),
        (
            "run cart.mcap",
            "a recording; it is the body of a scenario, [body] recording = \"cart.mcap\"",
        ),
        (
            "replay own.toml",
            "the body pendulum is no recording: a scenario with [body] recording",
        ),
    ] {
        let scenario = "[body]\nname = \"pendulum\"\n[brain]\nname = \"zero\"\n";
        std::fs::write(place.0.join("own.toml"), scenario).expect("writable");
        let output = place.tectum(line);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            !output.status.success() && error.contains(expected),
            "{error}"
        );
    }
}

#[test]
fn record_keeps_a_body_at_its_safe_action_and_writes_a_run_folder() {
    let place = Place::new("record");
    let recorded = json(&place, "record cart_pole --seconds 0.5 -o data");
    let folder = recorded["run_folder"].as_str().expect("a folder");
    assert_eq!(
        (&recorded["brain"], &recorded["ticks"], folder),
        (&"safe".into(), &25.into(), "data/1")
    );
    let trace = Trace::read(&place.0.join(folder).join("trace.mcap")).expect("a recording");
    assert!(trace.ticks.iter().all(|tick| tick.action == [10.0]));
    let same = json(&place, &format!("replay {folder}"));
    assert_eq!(same["channels"][0]["max"], 0.0);
    let scenario = "[body]\nname = \"pendulum\"\n[brain]\nname = \"lqr\"\n[loop]\nseconds = 9\nclock = \"sim\"\n";
    std::fs::write(place.0.join("swing.toml"), scenario).expect("writable");
    let recorded = json(&place, "record swing.toml --seconds 2");
    assert_eq!(
        (&recorded["brain"], &recorded["ticks"]),
        (&"safe".into(), &40.into())
    );
}
