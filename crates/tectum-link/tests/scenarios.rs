//! Bodies outside of the process in scenarios, run folders and repetitions.

use std::ops::ControlFlow;

use tectum::Device;
use tectum_control::run_folder::{self, repeat};
use tectum_control::scenario::Scenario;

use crate::peer::{Drift, Peer};

fn scenario(keys: &str, clock: &str) -> Result<Scenario, tectum::Error> {
    tectum_link::register(|_| {}).expect("once or again");
    let text = format!(
        "[body]\n{keys}\n[brain]\nname = \"zero\"\n[loop]\nseconds = 2\nclock = \"{clock}\"\n"
    );
    Scenario::parse(&text, "a.toml", "a")
}

#[test]
fn a_scenario_runs_and_is_repeated_from_its_recording() {
    for clock in ["sim", "real"] {
        let peer = Peer::listen(Box::new(Drift::new(0.05)));
        let url = peer.url();
        let scenario = scenario(&format!("remote = \"{url}\""), clock).expect("valid");
        assert_eq!(scenario.body.name, url);
        let runs = tempfile::tempdir().expect("writable");
        let cpu = Device::open("cpu").expect("always");
        let summary = run_folder::run(&scenario, runs.path(), &cpu, &mut |_| {
            ControlFlow::Continue(())
        })
        .expect("it runs");
        assert_eq!((summary.ticks, summary.body.as_str()), (40, url.as_str()));
        assert!(summary.link.is_some_and(|link| link.fresh_periods > 0));
        drop((scenario, peer));
        // The body is gone; its recording is not.
        let folder = std::path::PathBuf::from(&summary.run_folder);
        let receipt = std::fs::read_to_string(folder.join("receipt.json")).expect("written");
        assert!(receipt.contains("\"peer\": \"drift\"") && receipt.contains("fresh_periods"));
        if summary.deadline_misses > 0 {
            println!("skipped: a period was late, which no repetition has");
            continue;
        }
        let repeated = repeat(&folder, None, &mut tectum::WorkProgress::ignore).expect("repeated");
        assert_eq!((repeated.ticks, repeated.found), (40, repeated.expected));
    }
}

#[test]
fn a_name_is_an_address_and_what_differs_is_named() {
    let peer = Peer::listen(Box::new(Drift::new(0.05)));
    let url = peer.url();
    assert!(
        scenario(
            &format!("name = \"{url}\"\nperiod = 0.05\nsafe_action = [0.25]"),
            "sim"
        )
        .is_ok()
    );
    let stated = "period = 0.1\nsafe_action = [0.5]\n[[body.observation]]\nname = \"position\"\nunit = \"rad\"\n[[body.action]]\nname = \"velocity\"";
    let error = scenario(&format!("remote = \"{url}\"\n{stated}"), "sim").expect_err("another");
    assert_eq!(
        error.to_string(),
        format!(
            "body {url}: it is another body than the scenario states: its period is 0.05 s, the scenario states 0.1 s; observation position is in \"m\", the scenario states \"rad\"; its action has the channels speed, the scenario states velocity; its safe action is [0.25], the scenario states [0.5]"
        )
    );
}

#[test]
fn a_body_that_is_connected_is_known_to_a_second_scenario() {
    let peer = Peer::listen(Box::new(Drift::new(0.05)));
    let url = peer.url();
    let first = scenario(&format!("remote = \"{url}\""), "sim").expect("valid");
    // The peer serves one connection at a time: a second one would have no answer.
    let second = scenario(&format!("remote = \"{url}\""), "sim").expect("valid");
    assert_eq!(first.body, second.body);
    let model = second.body.model().expect("its constants");
    assert_eq!(model.spec().safe_action, [0.25]);
    let error = scenario(&format!("remote = \"{url}\"\nperiod = 0.1"), "sim").expect_err("another");
    assert!(
        error.to_string().contains("its period is 0.05 s"),
        "{error}"
    );
}

#[test]
fn keys_that_do_not_fit_are_refused() {
    for (keys, reason) in [
        (
            "remote = \"ws://127.0.0.1:1\"\nname = \"pendulum\"",
            "one key states the body",
        ),
        (
            "remote = \"ws://127.0.0.1:1\"\nlisten = \"ws://127.0.0.1:2\"",
            "one key states the body",
        ),
        (
            "remote = \"http://127.0.0.1:1\"",
            "ws://HOST:PORT is needed",
        ),
        ("remote = \"ws://192.0.2.1:1\"", "needs a token"),
        (
            "listen = \"ws://127.0.0.1:0\"\nwait = 0.05",
            "no connection, within 0.05 s",
        ),
    ] {
        let error = scenario(keys, "sim").expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn a_robot_with_ros_2_is_stated_by_the_scenario_alone() {
    let address = "ros2 = \"tcp/127.0.0.1:1\"\nwait = 0.1\n";
    let error = scenario(address, "real")
        .expect_err("no channel")
        .to_string();
    assert_eq!(
        error,
        "body ros2:tcp/127.0.0.1:1: a topic of ROS 2 states nothing of itself: [body] needs [[body.observation]], [[body.action]], period"
    );
    let channel = |kind: &str, name: &str, field: &str| {
        format!(
            "[[body.{kind}]]\nname = \"{name}\"\nunit = \"rad\"\nlow = -1\nhigh = 1\ntopic = \"{name}\"\ntype = \"std_msgs/msg/Float64MultiArray\"\nfield = \"{field}\"\n"
        )
    };
    let keys = |field: &str| {
        let (observation, action) = (
            channel("observation", "angle", field),
            channel("action", "torque", "data[0]"),
        );
        format!("{address}period = 0.02\nsafe_action = [0]\n{observation}{action}")
    };
    let error = scenario(&keys("data[0]"), "real")
        .expect_err("no router")
        .to_string();
    let reason = match cfg!(feature = "ros2") {
        true => "no router of zenoh that asks for no user answers at tcp/127.0.0.1:1: ",
        false => "ROS 2: this build leaves it out: the feature \"ros2\" is off",
    };
    let expected = format!("body ros2:tcp/127.0.0.1:1: {reason}");
    assert!(error.starts_with(&expected), "{error}");
    if cfg!(feature = "ros2") {
        let error = scenario(&keys("data"), "real")
            .expect_err("an array")
            .to_string();
        assert!(
            error.contains("observation angle: field \"data\" is an array"),
            "{error}"
        );
    }
    let error = scenario(&keys("data[0]").replace("topic", "topics"), "real");
    let error = error.expect_err("another key").to_string();
    assert!(
        error.contains("[body.observation[0]] needs the key \"topic\""),
        "{error}"
    );
}
