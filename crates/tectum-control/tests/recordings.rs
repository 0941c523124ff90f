//! Recordings of other robots as bodies (`data/recordings.py`), and of our own runs through a map.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value as Json;
use tectum::Device;
use tectum_control::closed_loop::ClosedLoop;
use tectum_control::recorded::Recorded;
use tectum_control::recording::{RecordingContents, Trace};
use tectum_control::replay::{Comparison, Recording, compare};
use tectum_control::run_folder::{self, TRACE_FILE};
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{brain_recipe, build_body};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/recordings")
}

const CHANNELS: &str = r#"
[[body.observation]]
name = "hip"
topic = "/joint_states"
field = "position"
joint = "hip"
unit = "rad"
[[body.observation]]
name = "knee"
topic = "/joint_states"
field = "position"
joint = "knee"
low = -9.0
[[body.observation]]
name = "hip_speed"
topic = "/joint_states"
field = "velocity"
joint = "hip"
[[body.observation]]
name = "camera"
topic = "/camera"
[[body.observation]]
name = "scan"
topic = "/scan"
field = "ranges"
[[body.observation]]
name = "scan_2"
topic = "/scan"
field = "ranges[2]"
"#;

const JSON_CHANNELS: &str = r#"
[[body.observation]]
name = "ankle"
topic = "/state"
field = "joints.position"
joint = "ankle"
[[body.observation]]
name = "cell"
topic = "/state"
field = "battery.cells[1]"
[[body.observation]]
name = "depth"
topic = "/depth"
"#;

const ACTIONS: &str = r#"
[[body.action]]
name = "first"
topic = "/commands"
field = "data[0]"
low = -2
high = 2
[[body.action]]
name = "second"
topic = "/commands"
field = "data[1]"
"#;

fn text(recording: &Path, keys: &str, channels: &str) -> String {
    let path = recording.display();
    format!(
        "[body]\nrecording = \"{path}\"\nperiod = 0.02\n{keys}\n{channels}\n{ACTIONS}\n[brain]\nname = \"zero\"\n[loop]\nclock = \"sim\"\n"
    )
}

fn scenario(recording: &Path, keys: &str, channels: &str) -> tectum::Result<Scenario> {
    Scenario::parse(&text(recording, keys, channels), "walk.toml", "walk")
}

fn elements(value: &Json) -> Vec<f32> {
    let number = |value: &Json| value.as_f64().expect("a number") as f32;
    match value {
        Json::Array(items) => items.iter().map(number).collect(),
        value => vec![number(value)],
    }
}

#[test]
fn recordings_of_ros_and_json_are_resampled_as_expected() {
    check_rows(&folder());
}

/// An interpreter of Python with the writers of recordings.
fn python() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python3");
    let python = std::env::var_os("TECTUM_PYTHON").map_or(own, PathBuf::from);
    let output = Command::new(&python)
        .args(["-c", "import mcap, numpy, rosbags"])
        .output();
    let is_found = output.is_ok_and(|output| output.status.success());
    is_found.then_some(python)
}

#[test]
fn recordings_that_rosbags_and_mcap_write_now_are_read_too() {
    let Some(python) = python() else {
        println!("skipped: python with mcap and rosbags is absent: recordings that they write");
        return;
    };
    let place = tempfile::tempdir().expect("writable");
    let written = Command::new(python)
        .arg(folder().with_extension("py"))
        .arg(place.path())
        .output()
        .expect("an interpreter");
    let errors = String::from_utf8_lossy(&written.stderr);
    assert!(written.status.success(), "{errors}");
    check_rows(place.path());
}

/// Compares the recordings of a folder with what its messages are expected to give.
fn check_rows(folder: &Path) {
    let rows = std::fs::read_to_string(folder.join("expected.json")).expect("the file");
    let rows: Vec<serde_json::Map<String, Json>> = serde_json::from_str(&rows).expect("JSON");
    // Without the pictures in JSON, the last of which ends first, there are more periods.
    for (file, has_json, periods) in [
        ("plain.mcap", true, 55),
        ("zstd.mcap", true, 55),
        ("lz4.mcap", true, 55),
        ("bag/bag.mcap", false, 58),
    ] {
        let json = if has_json { JSON_CHANNELS } else { "" };
        let path = folder.join(file);
        let scenario = scenario(&path, "", &format!("{CHANNELS}{json}"))
            .unwrap_or_else(|error| panic!("{file}: {error}"));
        let mut body = build_body(&scenario).expect("a body");
        let spec = body.spec().clone();
        let shape = |name: &str| {
            let channel = spec.observation.iter().find(|own| own.name == name);
            channel.expect("a channel").shape.clone()
        };
        assert_eq!((shape("camera"), shape("scan")), (vec![2, 3, 3], vec![5]));
        let recorded = Recorded::of(&scenario.body).expect("a recording");
        let actions = recorded.actions();
        assert_eq!((actions.len(), rows.len()), (periods, 55), "{file}");
        let mut observation = vec![0.0; spec.observation_len()];
        for (tick, row) in rows.iter().enumerate() {
            body.observe(&mut observation);
            for (channel, range) in spec.observation.iter().zip(spec.ranges()) {
                assert_eq!(
                    observation[range],
                    elements(&row[&channel.name]),
                    "{file}: {} in period {tick}",
                    channel.name
                );
            }
            let action: Vec<f32> = actions[tick].action.iter().map(|own| *own as f32).collect();
            let expected = [elements(&row["first"]), elements(&row["second"])].concat();
            assert_eq!(action, expected, "{file}: period {tick}");
            body.step(&[0.0, 0.0]);
            assert!(body.health().is_ok());
        }
        (rows.len()..=periods).for_each(|_| {
            body.step(&[0.0, 0.0]);
        });
        let end = body.health().expect_err("the end").to_string();
        assert!(
            end.ends_with(&format!("the recording ends after {periods} periods")),
            "{end}"
        );
        assert_eq!((spec.observation[1].low, spec.action[0].high), (-9.0, 2.0));
        assert!(spec.action[1].low > -1.0 && spec.action[1].high < 1.0);
    }
}

#[test]
fn gaps_are_counted_by_channel_and_are_not_compared() {
    let path = folder().join("zstd.mcap");
    let scenario = scenario(&path, "", CHANNELS).expect("a scenario");
    let recorded = Recorded::of(&scenario.body).expect("a recording");
    let report = recorded.report();
    let row = |channel: &str| {
        let found = report.channels.iter().find(|own| own.channel == channel);
        found.expect("a channel").clone()
    };
    // Joint states have one gap of 0.3 s; hip is in all of their messages, knee in four of five.
    let (hip, knee, camera) = (row("hip"), row("knee"), row("camera"));
    assert_eq!((hip.gaps, knee.gaps, camera.gaps), (1, 1, 0));
    assert!((0.3..0.35).contains(&hip.longest_s), "{hip:?}");
    assert_eq!((hip.gap_limit_s, hip.kind), (0.06, "observation"));
    // 1.5 times the interval of the camera.
    assert!((0.08..0.1).contains(&camera.gap_limit_s), "{camera:?}");
    assert!(hip.messages > knee.messages && knee.messages > 60);
    assert!(
        (11..=14).contains(&report.stale_periods),
        "{}",
        report.stale_periods
    );
    let cpu = Device::open("cpu").expect("always");
    let recording = Recording::of_body(&scenario).expect("a recording");
    let compared = compare(
        &scenario,
        recording,
        &cpu,
        &mut tectum::WorkProgress::ignore,
    );
    let compared = compared.expect("a comparison");
    assert_eq!(compared.not_compared, report.stale_periods);
    assert_eq!(compared.compared + compared.not_compared, report.periods);
    assert_eq!(compared.receipt.inputs.len(), 1);
    // The zero brain differs by the recorded action.
    let largest = recorded
        .actions()
        .iter()
        .filter(|own| !own.held)
        .fold(0.0f64, |max, own| {
            max.max((own.action[0] as f32).abs().into())
        });
    assert_eq!(compared.channels[0].max, largest);
    let generous = self::scenario(&path, "gap = 1.0", CHANNELS).expect("a scenario");
    let generous = Recorded::of(&generous.body)
        .expect("a recording")
        .report()
        .clone();
    assert_eq!((generous.stale_periods, generous.channels[0].gaps), (0, 0));
}

#[test]
fn the_clock_of_a_recording_is_that_of_the_record_or_of_the_header() {
    let path = folder().join("plain.mcap");
    let begin = |keys: &str, channels: &str| {
        let text = text(&path, keys, channels);
        // Commands have no header.
        let commands = text.find(ACTIONS).expect("the actions");
        let action =
            "[[body.action]]\nname = \"hip\"\ntopic = \"/joint_states\"\nfield = \"effort\"\n";
        let action = action.replace("effort", "position[0]");
        let text = format!(
            "{}{action}{}",
            &text[..commands],
            &text[commands + ACTIONS.len()..]
        );
        let scenario = Scenario::parse(&text, "walk.toml", "walk").expect("a scenario");
        Recorded::of(&scenario.body).expect("a recording").actions()[0].time_ns
    };
    for channels in [CHANNELS, JSON_CHANNELS] {
        let record = begin("clock = \"log_time\"", channels);
        assert_eq!(
            begin("clock = \"publish_time\"", channels),
            record - 500_000
        );
        if channels == CHANNELS {
            assert_eq!(
                begin("clock = \"header.stamp\"", channels),
                record - 1_000_000
            );
        }
    }
    let error = scenario(&path, "clock = \"header.stamp\"", CHANNELS).expect_err("no header");
    assert!(
        error.to_string().ends_with(
            "topic /commands, message 0: it has no header.stamp, which the clock of the body needs"
        ),
        "{error}"
    );
}

#[test]
fn what_a_recording_does_not_have_is_refused_with_what_it_has() {
    let path = folder().join("zstd.mcap");
    for (from, to, expected) in [
        (
            "topic = \"/scan\"",
            "topic = \"/scam\"",
            "observation \"scan\": the recording has no messages of the topic \"/scam\", perhaps \"/scan\"; it has /camera (sensor_msgs/msg/Image), /commands (std_msgs/msg/Float64MultiArray), /depth (foxglove.RawImage), /joint_states (sensor_msgs/msg/JointState), /scan (sensor_msgs/msg/LaserScan), /state (robot.State)",
        ),
        (
            "joint = \"knee\"",
            "joint = \"kne\"",
            "observation \"knee\": no message of /joint_states has a value for the joint \"kne\", perhaps \"knee\"; it has the joints hip, knee, wheel",
        ),
        (
            "field = \"velocity\"",
            "field = \"speed\"",
            "topic /joint_states, message 0: it has no field \"speed\"; it has header.stamp.sec: int32, header.stamp.nanosec: uint32, header.frame_id: string, name[]: string, position[]: float64, velocity[]: float64, effort[]: float64",
        ),
        (
            "field = \"ranges\"\n",
            "",
            "topic /scan, message 0: it is no picture, so that a channel needs a field; it has header.stamp.sec: int32",
        ),
        (
            "field = \"ranges[2]\"",
            "field = \"ranges[7]\"",
            "topic /scan, message 0: sensor_msgs/msg/LaserScan: ranges: ranges[7]: the element 7 is needed, the array has 5",
        ),
        (
            "field = \"ranges[2]\"",
            "field = \"header.frame_id\"",
            "topic /scan, message 0: field \"header.frame_id\" is text, not a number",
        ),
        (
            "field = \"data[1]\"",
            "field = \"data\"",
            "action \"second\": the field is an array; an action is a number, such as data[0]",
        ),
        (
            "field = \"data[1]\"",
            "field = \"data\"\njoint = \"hip\"",
            "topic /commands, message 0: joint \"hip\": field \"data\" is no array with names of joints next to it, name[] or joint_names[]",
        ),
        (
            "field = \"battery.cells[1]\"",
            "field = \"battery.cell[1]\"",
            "topic /state, message 0: it has no field \"battery.cell[1]\", perhaps \"battery.cells[]\"; it has timestamp.sec: number, timestamp.nsec: number, joints[].name: string, joints[].position: number, battery.cells[]: number, battery.is.low: bool",
        ),
    ] {
        let text = text(&path, "", &format!("{CHANNELS}{JSON_CHANNELS}"));
        assert!(text.contains(from), "{from}");
        let error = Scenario::parse(&text.replacen(from, to, 1), "walk.toml", "walk");
        let error = error.expect_err(expected).to_string();
        let place = format!("body recording:{}: ", path.display());
        let found = error.split_once(&place).map(|(_, rest)| rest);
        assert!(
            found.is_some_and(|own| own.starts_with(expected)),
            "{error}\n{expected}"
        );
    }
    for (from, to, expected) in [
        (
            "period = 0.02\n",
            "",
            "walk.toml: [body] needs the key \"period\"",
        ),
        (
            "name = \"knee\"",
            "name = \"hip\"",
            "walk.toml: [body] two channels of the observation have the name \"hip\"",
        ),
        (
            "low = -9.0",
            "low = 9.0\nhigh = 1",
            "walk.toml: [body.observation[1]] low is 9, above high, 1",
        ),
        (
            "field = \"velocity\"\njoint",
            "joint",
            "walk.toml: [body.observation[2]] has the key \"joint\" without \"field\"",
        ),
        (
            "period = 0.02\n",
            "period = 0.02\nclock = \"stamp\"\n",
            "walk.toml:4: clock \"stamp\" is unknown; known: log_time, publish_time, header.stamp",
        ),
        (
            "period = 0.02\n",
            "period = 0.02\nsafe_action = [1]\n",
            "walk.toml: [body] safe_action has 1 numbers for 2 channels of the action",
        ),
    ] {
        let text = text(&path, "", CHANNELS);
        assert!(text.contains(from), "{from}");
        let error = Scenario::parse(&text.replacen(from, to, 1), "walk.toml", "walk");
        assert_eq!(error.expect_err(expected).to_string(), expected);
    }
}

#[test]
fn a_scenario_of_a_recording_is_read_back_from_what_it_writes() {
    let channels = format!("{CHANNELS}{JSON_CHANNELS}");
    let keys = "clock = \"publish_time\"\ngap = 0.5\nsafe_action = [0.5, -0.5]";
    let scenario = scenario(&folder().join("lz4.mcap"), keys, &channels).expect("a scenario");
    let written = scenario.to_toml().expect("TOML");
    let again = Scenario::parse(&written, "again.toml", "walk").expect("its own text");
    assert_eq!(again, scenario);
    let spec = build_body(&again).expect("a body").spec().clone();
    assert_eq!(spec.safe_action, [0.5, -0.5]);
}

#[test]
fn the_contents_of_a_recording_are_listed_by_topic() {
    let contents = RecordingContents::read(&folder().join("bag/bag.mcap")).expect("a recording");
    let topics: Vec<(&str, &str)> = contents
        .topics
        .iter()
        .map(|own| (own.topic.as_str(), own.kind.as_str()))
        .collect();
    assert_eq!(
        topics,
        [
            ("/camera", "sensor_msgs/msg/Image"),
            ("/commands", "std_msgs/msg/Float64MultiArray"),
            ("/joint_states", "sensor_msgs/msg/JointState"),
            ("/scan", "sensor_msgs/msg/LaserScan"),
        ]
    );
    let commands = &contents.topics[1];
    assert!((49.0..51.0).contains(&commands.rate_hz), "{commands:?}");
    assert!(
        commands.fields.contains(&"data[]: float64".to_owned()),
        "{commands:?}"
    );
    assert_eq!(
        contents.messages,
        contents.topics.iter().map(|own| own.messages).sum::<u64>()
    );
}

/// The scenario that maps the recording of a run of a scenario.
fn mapped(own: &Scenario, trace: &Path) -> Scenario {
    let spec = build_body(own).expect("a body").spec().clone();
    let mut text = format!(
        "[body]\nrecording = \"{}\"\nperiod = {:?}\n",
        trace.display(),
        spec.dt_s
    );
    for channel in &spec.observation {
        let (name, unit, low, high) = (&channel.name, &channel.unit, channel.low, channel.high);
        let source = match channel.is_array() {
            true => format!("topic = \"/observation/{name}\""),
            false => format!("topic = \"/observation\"\nfield = \"{name}\""),
        };
        text += &format!(
            "[[body.observation]]\nname = \"{name}\"\nunit = \"{unit}\"\nlow = {low:?}\nhigh = {high:?}\n{source}\n"
        );
    }
    for channel in &spec.action {
        let (name, unit, low, high) = (&channel.name, &channel.unit, channel.low, channel.high);
        text += &format!(
            "[[body.action]]\nname = \"{name}\"\nunit = \"{unit}\"\nlow = {low:?}\nhigh = {high:?}\ntopic = \"/action\"\nfield = \"{name}\"\n"
        );
    }
    let brain = own.to_toml().expect("TOML");
    let brain = brain
        .split("[brain]")
        .nth(1)
        .expect("a brain")
        .split("[loop]")
        .next();
    text += &format!("[brain]{}", brain.expect("its keys"));
    Scenario::parse(&text, "mapped.toml", "mapped").expect("the same channels")
}

fn compared(scenario: &Scenario, recording: Recording) -> Comparison {
    let cpu = Device::open("cpu").expect("always");
    compare(scenario, recording, &cpu, &mut tectum::WorkProgress::ignore).expect("a comparison")
}

#[test]
fn a_run_replays_equally_from_its_folder_and_through_a_map_of_its_topics() {
    let policy = "[body]\nname = \"cart_pole\"\n[brain]\nname = \"policy\"\nmodel = \"models/cart_pole.onnx\"\n[loop]\nseconds = 3\nclock = \"sim\"\n";
    let seeker = "[body]\nname = \"seeker\"\n[brain]\nname = \"zero\"\n[loop]\nseconds = 3\nclock = \"sim\"\n";
    for text in [policy, seeker] {
        let scenario = Scenario::parse(text, "own.toml", "own").expect("a scenario");
        let runs = tempfile::tempdir().expect("writable");
        let cpu = Device::open("cpu").expect("always");
        let summary = run_folder::run(&scenario, runs.path(), &cpu, &mut |_| {
            std::ops::ControlFlow::Continue(())
        })
        .expect("a run");
        let path = Path::new(&summary.run_folder).join(TRACE_FILE);
        let trace = Trace::read(&path).expect("a recording");
        let mapped = mapped(&scenario, &path);
        let of_folder = Recording::of_run(&scenario, trace.clone()).expect("its own");
        let of_map = Recording::of_body(&mapped).expect("a recording");
        // Bit for bit.
        let bits = |recording: Recording| {
            let (mut body, actions) = recording.into_parts();
            let mut observation = vec![0.0; body.spec().observation_len()];
            let rows = actions.iter().map(|tick| {
                body.observe(&mut observation);
                body.step(&vec![0.0; tick.action.len()]);
                let action = tick.action.iter().map(|own| (*own as f32).to_bits());
                let all = observation.iter().map(|own| own.to_bits()).chain(action);
                all.collect::<Vec<_>>()
            });
            rows.collect::<Vec<_>>()
        };
        let (one, other) = (bits(of_folder), bits(of_map));
        assert_eq!(
            (one.len(), one == other),
            (trace.ticks.len(), true),
            "{text}"
        );
        for (scenario, recording) in [
            (
                &scenario,
                Recording::of_run(&scenario, trace.clone()).expect("its own"),
            ),
            (&mapped, Recording::of_body(&mapped).expect("a recording")),
        ] {
            let same = compared(scenario, recording);
            assert_eq!(same.compared as usize, trace.ticks.len());
            assert!(
                same.channels
                    .iter()
                    .all(|own| own.max == 0.0 && own.first_tick.is_none())
            );
        }
        let recipe = brain_recipe(&mapped, build_body(&mapped).expect("a body").spec());
        let brain = recipe
            .expect("a brain")
            .build(&cpu, &mut tectum::WorkProgress::ignore);
        let body = build_body(&mapped).expect("a body");
        let mut closed_loop =
            ClosedLoop::new(body, brain.expect("built"), &mapped.run, &cpu).expect("a loop");
        assert!(closed_loop.simulate().metrics.ticks > 0);
    }
}

#[test]
fn a_recording_that_ends_anywhere_or_is_changed_is_refused_or_read_and_nothing_else() {
    let place = tempfile::tempdir().expect("writable");
    let broken = place.path().join("broken.mcap");
    let channels = format!("{CHANNELS}{JSON_CHANNELS}");
    let mut random = 1u64;
    let mut next = move |bound: usize| {
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (random >> 33) as usize % bound
    };
    let (mut read, mut refused) = (0, 0);
    for file in ["plain.mcap", "zstd.mcap", "lz4.mcap"] {
        let whole = std::fs::read(folder().join(file)).expect("the file");
        for end in (0..whole.len()).step_by(100) {
            std::fs::write(&broken, &whole[..end]).expect("writable");
            match scenario(&broken, "", &channels) {
                // The index after the data is not read.
                Ok(_) => assert!(end * 10 > whole.len() * 7, "{file} {end}"),
                Err(error) => assert!(error.to_string().contains("not a"), "{file} {end}: {error}"),
            }
        }
        for _ in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..1 + next(3) {
                let place = next(bytes.len());
                bytes[place] = next(256) as u8;
            }
            std::fs::write(&broken, &bytes).expect("writable");
            match scenario(&broken, "", &channels) {
                Ok(scenario) => {
                    read += 1;
                    let mut body = build_body(&scenario).expect("a body");
                    let mut observation = vec![0.0; body.spec().observation_len()];
                    body.observe(&mut observation);
                    body.step(&[0.0, 0.0]);
                }
                Err(_) => refused += 1,
            }
        }
    }
    assert!(read > 30 && refused > 30, "{read} {refused}");
}
