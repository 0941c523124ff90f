//! The page `docs/robots.md`: its robot runs, and its bytes are those of the messages.

use std::io::Write as _;
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::process::{Command, Stdio};

use tectum::Device;
use tectum_control::message::{Array, Message};
use tectum_control::run_folder;
use tectum_control::scenario::Scenario;

use crate::em_brain::frame;
use crate::feagi::agent::{container, genome, serve, voxels};
use crate::gymnasium::{python, root};

pub fn page() -> String {
    std::fs::read_to_string(root().join("docs/robots.md")).expect("the page")
}

/// The blocks of a language.
pub fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let begin = format!("```{language}\n");
    page.split(&begin)
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect()
}

#[test]
fn the_robot_of_the_page_runs_in_the_scenario_of_the_page() {
    let Some(python) = python() else {
        println!(
            "skipped: python with msgpack and websockets is absent: the robot of docs/robots.md"
        );
        return;
    };
    let page = page();
    let free = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = free.local_addr().expect("bound").port().to_string();
    drop(free);
    let mut robot = Command::new(python)
        .arg("-")
        .stdin(Stdio::piped())
        .spawn()
        .expect("an interpreter");
    let program = blocks(&page, "python")[0].replace("9000", &port);
    let mut input = robot.stdin.take().expect("piped");
    input.write_all(program.as_bytes()).expect("it reads");
    drop(input);
    tectum_link::register(|_| {}).expect("once or again");
    let scenario = blocks(&page, "toml")[0].replace("9000", &port);
    // It listens when Python has imported its packages.
    let scenario = scenario.replace("period = 0.02\n", "period = 0.02\nwait = 60\n");
    let mut scenario = Scenario::parse(&scenario, "joint.toml", "joint").expect("the robot's");
    scenario.set_seconds(3.0).expect("positive");
    let runs = tempfile::tempdir().expect("writable");
    let cpu = Device::open("cpu").expect("always");
    let summary = run_folder::run(&scenario, runs.path(), &cpu, &mut |_| {
        ControlFlow::Continue(())
    });
    let ended = (robot.kill(), robot.wait());
    assert!(ended.0.is_ok() && ended.1.is_ok());
    let summary = summary.expect("it runs");
    assert_eq!(summary.ticks, 150);
    let link = summary.link.expect("a body outside of the process");
    assert!(
        link.fresh_periods > 0 && link.counts.unreadable_messages == 0,
        "{link:?}"
    );
    assert!(
        link.counts.actions > 0 && link.counts.repeated_messages == 0,
        "{link:?}"
    );
}

#[test]
fn the_agent_of_the_page_is_served() {
    let Some(python) = crate::feagi::python() else {
        println!("skipped: feagi-rust-py-libs is absent: the agent of docs/robots.md");
        return;
    };
    let page = page();
    let blocks = blocks(&page, "python");
    let agent = blocks.iter().find(|block| block.contains("PyAgentClient"));
    let server = serve(&genome(), |_| {});
    let mut program = (*agent.expect("one")).to_owned();
    for (default, own) in [
        ("tcp://127.0.0.1:30001", server.control()),
        ("tcp://127.0.0.1:5558", server.sensors()),
        ("tcp://127.0.0.1:5564", server.motors()),
    ] {
        assert!(program.contains(default), "{default}");
        program = program.replace(default, &own.to_string());
    }
    program += "client.disconnect()\n";
    let output = Command::new(python).args(["-c", &program]).output();
    let output = output.expect("an interpreter");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let counts = server.counts();
    assert_eq!(
        (counts.registrations, counts.deregistrations),
        (1, 1),
        "{counts:?}"
    );
    assert_eq!(counts.refused_frames, 0, "{counts:?}");
}

#[test]
fn the_bytes_of_the_page_are_those_of_the_messages() {
    let page = page();
    let bytes = |text: &str| -> Option<Vec<u8>> {
        text.split_whitespace()
            .map(|byte| u8::from_str_radix(byte, 16).ok())
            .collect()
    };
    let shown: Vec<Vec<u8>> = blocks(&page, "text")
        .into_iter()
        .filter_map(bytes)
        .collect();
    let messages = [
        Message::new("hello", 0).with("protocol", 1),
        Message::new("action", 7)
            .with_array("action", &Array::of_f32(&[0.5]))
            .with("safe", false)
            .with("answers", 5),
    ];
    let messages = messages.map(|message| message.to_bytes().expect("short"));
    let agent = container(0, &[0; 8], &voxels(b"iseen___", &[([2, 0, 0], 1.5)]));
    let expected = [b"0.75*1C\n".to_vec(), frame(1, &[0.5, -2.0]), agent];
    assert_eq!(shown, [&expected[..], &messages[..]].concat());
}
