//! A robot with ROS 2: a process of Python with the client of zenoh and the CDR of rosbags
//! (`tests/ros2/peer.py`), which share no code with ours.
//!
//! It needs the interpreter that the variable `TECTUM_ROS2_PYTHON` names, or `.venv-ros2` of the
//! repository. The tests order events at periods of the loop and compare what both sides saw; none
//! compares a time with a fixed limit.

use std::io::{BufRead as _, BufReader, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tectum::Device;
use tectum_control::body::link::LinkState::{self, Disarmed, Disconnected, Fresh, Stale};
use tectum_control::body::{ActionChannel, Body, BodySpec, ObservationChannel};
use tectum_control::brain::Stateless;
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings, Sink, TickRecord};
use tectum_control::message::ElementType;
use tectum_control::ros::Definition;
use tectum_link::{Address, LinkSettings, Reach, RemoteBody, Ros2Field, Ros2Settings, Token};

use crate::real_time::{ACTION, DT_S, SAFE, check_counts, run_loop};

const JOINTS: &str = "sensor_msgs/msg/JointState";
const COMMANDS: &str = "std_msgs/msg/Float64MultiArray";

fn python() -> Option<PathBuf> {
    let named = std::env::var_os("TECTUM_ROS2_PYTHON").map(PathBuf::from);
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv-ros2/bin/python");
    named.or(Some(own)).filter(|python| python.exists())
}

/// A robot, until it is dropped.
struct Robot {
    child: Child,
    orders: ChildStdin,
    lines: BufReader<ChildStdout>,
    address: Address,
}

impl Robot {
    /// None where the packages of Python are absent.
    fn start(arguments: &[&str]) -> Option<Self> {
        let Some(python) = python() else {
            println!("skipped: the packages of .venv-ros2 are absent: a robot with ROS 2");
            return None;
        };
        let mut child = Command::new(python)
            .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ros2/peer.py"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("an interpreter");
        let mut robot = Self {
            orders: child.stdin.take().expect("piped"),
            lines: BufReader::new(child.stdout.take().expect("piped")),
            child,
            address: Address::parse_zenoh("tcp/127.0.0.1:1").expect("an address"),
        };
        let port = robot.line()["port"].as_u64().expect("a port");
        robot.address = robot.address.clone().with_port(port as u16);
        Some(robot)
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).expect("JSON")
    }

    fn order(&mut self, order: &Value) {
        writeln!(self.orders, "{order}").expect("it runs");
    }

    /// The tokens that it sees, without the identifiers of sessions.
    fn tokens(&mut self) -> Vec<String> {
        self.order(&json!({"do": "tokens"}));
        let tokens = self.line()["tokens"].as_array().expect("a list").clone();
        let token = |token: &Value| {
            let token = token.as_str().expect("a text");
            let parts: Vec<&str> = token.split('/').collect();
            let is_zid = parts[2].len() <= 32 && parts[2].chars().all(|c| c.is_ascii_hexdigit());
            assert!(is_zid, "{token}");
            [&parts[..2], &parts[3..]].concat().join("/")
        };
        tokens.iter().map(token).collect()
    }

    /// Ends it, and returns what it received.
    fn received(mut self) -> Vec<Received> {
        self.order(&json!({"do": "end"}));
        let report = self.line();
        let received = report["received"].as_array().expect("a list");
        received.iter().map(Received::read).collect()
    }

    fn settings(&self, ros2: Ros2Settings) -> LinkSettings {
        let mut settings = LinkSettings::new(Reach::Ros2(Box::new(ros2)));
        // A busy machine may schedule a thread late.
        settings.wait = Duration::from_secs(60);
        settings
    }

    fn open(&self, ros2: Ros2Settings) -> RemoteBody {
        RemoteBody::open("robot", self.settings(ros2)).expect("it publishes")
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An action that arrived at the robot.
#[derive(Debug, Clone, PartialEq)]
struct Received {
    topic: String,
    numbers: Vec<f32>,
    names: Vec<String>,
    /// The time in its header, and how much the time of its sending differs from that of its arrival.
    stamp: Option<f64>,
    late: f64,
    number: u64,
    gid: String,
}

impl Received {
    fn read(value: &Value) -> Self {
        let list = |key: &str| value[key].as_array().expect("a list").clone();
        let numbers = list("numbers");
        let numbers = numbers
            .iter()
            .map(|number| number.as_f64().expect("a number") as f32);
        let names = list("names");
        let names = names
            .iter()
            .map(|name| name.as_str().expect("a text").to_owned());
        Self {
            topic: value["topic"].as_str().expect("a text").to_owned(),
            numbers: numbers.collect(),
            names: names.collect(),
            stamp: value["stamp"].as_f64(),
            late: value["late"].as_f64().expect("a number"),
            number: value["number"].as_u64().expect("a number"),
            gid: value["gid"].as_str().expect("16 bytes").to_owned(),
        }
    }
}

fn field(topic: &str, kind: &str, field: &str, joint: Option<&str>) -> Ros2Field {
    Ros2Field {
        topic: topic.to_owned(),
        kind: kind.to_owned(),
        field: field.to_owned(),
        joint: joint.map(str::to_owned),
    }
}

/// A robot with one joint and one command; the action of the tests of real time.
fn hip(address: &Address) -> Ros2Settings {
    let spec = BodySpec {
        name: "robot".into(),
        dt_s: DT_S,
        observation: vec![ObservationChannel::new("hip", "rad", -1e3..=1e3)],
        action: vec![ActionChannel::new("torque", "N m", -5.0..=5.0)],
        safe_action: vec![SAFE],
    };
    Ros2Settings {
        observation: vec![field("/joint_states", JOINTS, "position", Some("hip"))],
        action: vec![field("/effort/commands", COMMANDS, "data[0]", None)],
        ..Ros2Settings::new(address.clone(), spec)
    }
}

/// A robot with all that the peer has.
fn whole(address: &Address) -> Ros2Settings {
    let number = |name: &str| ObservationChannel::new(name, "", -1e6..=1e6);
    let image = ObservationChannel::new("image", "", 0.0..=255.0).array([2, 3, 3], ElementType::U8);
    let names = [
        "torque_0", "torque_1", "forward", "turn", "hip_to", "knee_to",
    ];
    let spec = BodySpec {
        name: "robot".into(),
        dt_s: DT_S,
        observation: vec![number("hip"), number("knee"), number("up"), image],
        action: names
            .map(|name| ActionChannel::new(name, "", -1e6..=1e6))
            .to_vec(),
        safe_action: vec![0.0, 0.5, 0.0, 0.0, 0.25, 0.0],
    };
    let twist = "geometry_msgs/msg/TwistStamped";
    Ros2Settings {
        observation: vec![
            field("joint_states", JOINTS, "position", Some("hip")),
            field("/joint_states", JOINTS, "position", Some("knee")),
            field("/imu", "sensor_msgs/msg/Imu", "linear_acceleration.z", None),
            field("/camera", "sensor_msgs/msg/Image", "data", None),
        ],
        action: vec![
            field("/effort/commands", COMMANDS, "data[0]", None),
            field("/effort/commands", COMMANDS, "data[1]", None),
            field("/cmd_vel", twist, "twist.linear.x", None),
            field("/cmd_vel", twist, "twist.angular.z", None),
            field("/joint_commands", JOINTS, "position", Some("hip")),
            field("/joint_commands", JOINTS, "position", Some("knee")),
        ],
        ..Ros2Settings::new(address.clone(), spec)
    }
}

/// What a brain makes of an observation of [`whole`].
fn law(observation: &[f32], action: &mut [f32]) {
    let [hip, knee, up] = [observation[0], observation[1], observation[2]];
    action.copy_from_slice(&[hip, knee, up, -up, 2.0 * hip, knee + 1.0]);
}

/// The observations and actions of all periods, with the state of the connection.
#[derive(Default)]
struct Records(Vec<(LinkState, Vec<f32>, Vec<f32>)>);

impl Sink for Records {
    fn tick(&mut self, record: &TickRecord<'_>) -> tectum::Result<()> {
        let state = record.link.expect("a body outside of the process").state;
        let (observation, action) = (record.observation.to_vec(), record.action.to_vec());
        self.0.push((state, observation, action));
        Ok(())
    }
}

fn run(body: RemoteBody, ticks: u64, clock: ClockKind) -> Records {
    let mut body = body;
    body.reset(0);
    let settings = LoopSettings {
        seconds: ticks as f64 * DT_S,
        clock,
        snapshot_every: 0,
        ..LoopSettings::default()
    };
    let cpu = Device::open("cpu").expect("always");
    let brain = Box::new(Stateless::new("law", law));
    let mut closed_loop =
        ClosedLoop::new(Box::new(body), brain, &settings, &cpu).expect("they fit");
    let mut records = Records::default();
    let outcome = closed_loop.run(clock.start().as_mut(), &mut records, &mut |_| {
        ControlFlow::Continue(())
    });
    let outcome = outcome.into_result().expect("no failure");
    assert_eq!(outcome.metrics.ticks, ticks);
    let link = outcome.workload.link.expect("a robot");
    assert_eq!(link.counts.unreadable_messages, 0, "{link:?}");
    records
}

/// The observation is one that the peer has published; returns its number.
fn check_observation(observation: &[f32]) -> f32 {
    let n = observation[0] * 64.0;
    assert!(n.fract() == 0.0 && n > 0.0, "{observation:?}");
    assert_eq!(observation[1], -n / 32.0, "the joints are matched by name");
    // The latest messages of other topics are of this period or of one next to it.
    let (up, pixel) = (observation[2] * 16.0, observation[3]);
    assert!((up - n).abs() <= 2.0, "{observation:?}");
    assert!(observation[3..].iter().all(|other| *other == pixel));
    let near = [up - 2.0, up, up + 2.0].map(|n| n.rem_euclid(256.0));
    assert!(near.contains(&pixel), "{observation:?}");
    n
}

#[test]
fn observations_and_actions_are_equal_on_both_sides() {
    let Some(robot) = Robot::start(&[]) else {
        return;
    };
    let whole = whole(&robot.address);
    let safe = whole.body.safe_action.clone();
    let records = run(robot.open(whole), 100, ClockKind::Real);
    let fresh = records.0.iter().filter(|(state, ..)| *state == Fresh);
    let numbers: Vec<f32> = fresh
        .map(|(_, observation, _)| check_observation(observation))
        .collect();
    assert!(numbers.len() > 10 && numbers.windows(2).all(|pair| pair[0] < pair[1]));
    let received = robot.received();
    for (topic, places, names) in [
        ("/effort/commands", 0..2, vec![]),
        ("/cmd_vel", 2..4, vec![]),
        (
            "/joint_commands",
            4..6,
            vec!["hip".to_owned(), "knee".to_owned()],
        ),
    ] {
        let own: Vec<&Received> = received.iter().filter(|own| own.topic == topic).collect();
        // Each action is that of a record, in their order, or the safe one.
        let mut sent = records.0.iter();
        let others = own.iter().filter(|own| own.numbers != safe[places.clone()]);
        for action in others.clone() {
            let is_recorded = sent.any(|sent| sent.2[places.clone()] == action.numbers[..]);
            assert!(is_recorded, "{action:?}");
        }
        assert!(others.count() > 10, "{topic}");
        assert_eq!(
            own.last().map(|last| &last.numbers[..]),
            Some(&safe[places])
        );
        let counts = (1..).zip(&own);
        for (number, action) in counts {
            assert_eq!(
                (action.number, &action.names),
                (number, &names),
                "{action:?}"
            );
            assert_eq!((action.gid.len(), &action.gid), (32, &own[0].gid));
            // Both are nanoseconds since 1970; how late it was is not tested here.
            assert!(action.late < 3600.0, "{action:?}");
            let has_stamp = topic != "/effort/commands";
            assert_eq!(action.stamp.is_some_and(|stamp| stamp > 1.7e9), has_stamp);
        }
    }
    let gids: std::collections::BTreeSet<&String> =
        received.iter().map(|action| &action.gid).collect();
    assert_eq!(gids.len(), 3);
}

#[test]
fn a_robot_that_stops_for_two_seconds_gets_its_safe_action_until_it_is_armed() {
    let Some(mut robot) = Robot::start(&[]) else {
        return;
    };
    let body = robot.open(hip(&robot.address));
    let (outcome, periods) = run_loop(
        body,
        250,
        &mut |tick| match tick {
            25 => robot.order(&json!({"do": "sleep", "seconds": 2.0})),
            // Neither a false one nor one on another topic arms.
            170 => robot.order(&json!({"do": "arm", "data": false, "topic": "/tectum/arm"})),
            171 => robot.order(&json!({"do": "arm", "data": true, "topic": "/arm"})),
            200 => robot.order(&json!({"do": "arm", "data": true, "topic": "/tectum/arm"})),
            _ => {}
        },
        |_| ACTION,
    );
    let received = robot.received();
    let link = check_counts(&outcome, &periods, &[], 250);
    let streaks = periods.streaks();
    let stops: Vec<LinkState> = streaks
        .iter()
        .copied()
        .filter(|state| [Fresh, Stale, Disarmed].contains(state))
        .collect();
    let stale = stops
        .iter()
        .position(|state| *state == Stale)
        .expect("a stop");
    assert!(
        stops[stale..].starts_with(&[Stale, Disarmed, Fresh]),
        "{streaks:?}"
    );
    assert!(streaks.contains(&LinkState::Held), "{streaks:?}");
    assert_eq!((link.counts.rearmed, link.counts.connections), (1, 1));
    let armed = periods.0.iter().rposition(|period| period.0 == Disarmed);
    assert!(armed.is_some_and(|tick| tick >= 199), "{armed:?}");
    assert_eq!(received.last().map(|last| last.numbers[0]), Some(SAFE));
    // The safe action while it was stopped, and the brain's after that.
    let numbers: Vec<f32> = received.iter().map(|action| action.numbers[0]).collect();
    let first_safe = numbers.iter().position(|number| *number == SAFE);
    assert!(
        first_safe.is_some_and(|first| numbers[first..].contains(&0.5)),
        "{numbers:?}"
    );
}

#[test]
fn broken_messages_are_counted_and_not_used() {
    let Some(mut robot) = Robot::start(&[]) else {
        return;
    };
    let body = robot.open(hip(&robot.address));
    let (outcome, periods) = run_loop(
        body,
        100,
        &mut |tick| {
            if tick == 25 {
                robot.order(&json!({"do": "garbage", "count": 20}));
            }
        },
        |_| ACTION,
    );
    let link = check_counts(&outcome, &periods, &[], 100);
    let count = link.counts.unreadable_messages;
    assert!((1..=20).contains(&count), "{link:?}");
    assert!(link.fresh_periods > 0 && link.counts.connections == 1);
}

#[test]
fn a_type_with_another_hash_is_named_with_both_hashes() {
    let Some(robot) = Robot::start(&["--hash", &format!("RIHS01_{}", "0".repeat(64))]) else {
        return;
    };
    let own = Definition::known(JOINTS).expect("known").type_hash();
    let mut settings = robot.settings(hip(&robot.address));
    settings.wait = Duration::from_secs(5);
    let error = RemoteBody::open("robot", settings).expect_err("no observation");
    let expected = format!(
        "body robot: no message has arrived on /joint_states; topic /joint_states: a publisher has the type {JOINTS} with the hash RIHS01_{}, the scenario has {JOINTS} with {own}: its messages are not used, within 5 s",
        "0".repeat(64)
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_robot_with_humble_has_no_hashes() {
    let Some(robot) = Robot::start(&["--hash", "TypeHashNotSupported"]) else {
        return;
    };
    let mut settings = robot.settings(hip(&robot.address));
    settings.wait = Duration::from_secs(5);
    let error = RemoteBody::open("robot", settings).expect_err("no observation");
    let advice = "nodes of ROS 2 Humble need type_hashes = false in [body]";
    assert!(error.to_string().contains(advice), "{error}");
    let settings = Ros2Settings {
        has_type_hashes: false,
        ..hip(&robot.address)
    };
    let (outcome, periods) = run_loop(robot.open(settings), 50, &mut |_| {}, |_| ACTION);
    let link = check_counts(&outcome, &periods, &[], 50);
    assert!(link.fresh_periods > 0);
    let received = robot.received();
    assert!(
        received.iter().any(|action| action.numbers == [0.5]),
        "{received:?}"
    );
}

#[test]
fn other_nodes_see_the_node_and_its_topics() {
    let Some(mut robot) = Robot::start(&["--domain", "7"]) else {
        return;
    };
    let settings = Ros2Settings {
        domain: 7,
        namespace: "/left".to_owned(),
        node: "brain".to_owned(),
        ..whole(&robot.address)
    };
    let mut in_root = settings.clone();
    in_root.observation[0].topic = "/joint_states".to_owned();
    let body = robot.open(in_root);
    let hash = |kind: &str| {
        let definition = Definition::known(kind).expect("known");
        let (package, name) = kind.split_once("/msg/").expect("a message");
        format!("{package}::msg::dds_::{name}_/{}", definition.type_hash())
    };
    let node = "@ros2_lv/7/0";
    let names = "%/%left/brain";
    let endpoint = |id: usize, code: &str, topic: &str, kind: &str, qos: &str| {
        format!("{node}/{id}/{code}/{names}/{topic}/{}/{qos}", hash(kind))
    };
    let (sensor, command) = ("2::,5:,:,:,,", "::,10:,:,:,,");
    let mut expected = vec![
        format!("{node}/0/NN/{names}"),
        endpoint(1, "MS", "%joint_states", JOINTS, sensor),
        endpoint(2, "MS", "%imu", "sensor_msgs/msg/Imu", sensor),
        endpoint(3, "MS", "%camera", "sensor_msgs/msg/Image", sensor),
        endpoint(4, "MS", "%left%brain%arm", "std_msgs/msg/Bool", sensor),
        endpoint(5, "MP", "%effort%commands", COMMANDS, command),
        endpoint(
            6,
            "MP",
            "%cmd_vel",
            "geometry_msgs/msg/TwistStamped",
            command,
        ),
        endpoint(7, "MP", "%joint_commands", JOINTS, command),
    ];
    expected.sort();
    assert_eq!(robot.tokens(), expected);
    drop(body);
    assert!(robot.tokens().is_empty());
}

#[test]
fn a_robot_has_one_writer() {
    let Some(mut robot) = Robot::start(&[]) else {
        return;
    };
    let kind = "std_msgs::msg::dds_::Float64MultiArray_/RIHS01_1";
    let token = format!("ab/0/1/MP/%/%robot/teleop/%effort%commands/{kind}/::,10:,:,:,,");
    let announce = json!({"do": "announce", "token": token});
    robot.order(&announce);
    while robot.tokens().is_empty() {}
    let mut settings = robot.settings(hip(&robot.address));
    settings.wait = Duration::from_secs(2);
    let error = RemoteBody::open("robot", settings).expect_err("another writer");
    assert_eq!(
        error.to_string(),
        "body robot: another node publishes on /effort/commands: /robot/teleop; a robot has one writer, within 2 s"
    );
    robot.order(&json!({"do": "withdraw"}));
    let body = robot.open(hip(&robot.address));
    let (outcome, periods) = run_loop(
        body,
        200,
        &mut |tick| match tick {
            25 => robot.order(&announce),
            75 => robot.order(&json!({"do": "withdraw"})),
            150 => robot.order(&json!({"do": "arm", "data": true, "topic": "/tectum/arm"})),
            _ => {}
        },
        |_| ACTION,
    );
    let received = robot.received();
    let link = check_counts(&outcome, &periods, &[], 200);
    let streaks = periods.streaks();
    assert!(
        streaks.contains(&Disconnected) && streaks.contains(&Disarmed),
        "{streaks:?}"
    );
    assert_eq!((link.counts.connections, link.counts.rearmed), (2, 1));
    // The last action of the first session is the safe one.
    let second = received
        .iter()
        .rposition(|action| action.gid == received[0].gid);
    let last = second.map(|second| received[second].numbers[0]);
    assert_eq!(last, Some(SAFE));
}

#[test]
fn a_router_that_asks_for_a_user_gets_it() {
    let folder = tempfile::tempdir().expect("writable");
    let users = folder.path().join("users");
    std::fs::write(&users, "brain:secret\n").expect("writable");
    let users = users.to_str().expect("UTF-8");
    let Some(robot) = Robot::start(&["--users", users]) else {
        return;
    };
    let open = |user: Option<&str>, token: &str| {
        let ros2 = Ros2Settings {
            user: user.map(str::to_owned),
            ..hip(&robot.address)
        };
        let mut settings = robot.settings(ros2);
        settings.token = Some(Token::new(token).expect("a word"));
        if (user, token) != (Some("brain"), "secret") {
            settings.wait = Duration::from_secs(1);
        }
        RemoteBody::open("robot", settings)
    };
    for (user, token) in [
        (None, "secret"),
        (Some("brain"), "guess"),
        (Some("arm"), "secret"),
    ] {
        let error = open(user, token).expect_err("no access").to_string();
        let place = format!("answers at {}", robot.address);
        assert!(
            error.starts_with("body robot: no router of zenoh") && error.contains(&place),
            "{error}"
        );
        assert!(!error.contains(".rs") && !error.contains(token), "{error}");
    }
    assert!(open(Some("brain"), "secret").is_ok());
}

#[test]
fn periods_follow_the_simulated_time_of_a_robot() {
    let Some(robot) = Robot::start(&["--clock", "--period", "0.01"]) else {
        return;
    };
    let settings = Ros2Settings {
        clock: Some("/clock".to_owned()),
        ..whole(&robot.address)
    };
    let records = run(robot.open(settings), 50, ClockKind::Sim);
    let numbers: Vec<f32> = records
        .0
        .iter()
        .map(|record| check_observation(&record.1))
        .collect();
    // A period is two ticks of the robot's clock. A late observation is of a later tick, and the next
    // period ends when it would have ended otherwise.
    let ticks: Vec<f32> = numbers.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let due = (0..).map(|period: u16| numbers[0] + 2.0 * f32::from(period));
    let is_due = numbers.iter().zip(due).all(|(number, due)| *number >= due);
    assert!(
        is_due && ticks.iter().all(|ticks| *ticks >= 1.0),
        "{ticks:?}"
    );
    assert!(ticks.contains(&2.0), "{ticks:?}");
    let received = robot.received();
    let stamped: Vec<f64> = received.iter().filter_map(|action| action.stamp).collect();
    // The times in messages are those of the robot: below an hour.
    assert!(
        stamped.len() > 50 && stamped.iter().all(|stamp| *stamp < 3600.0),
        "{stamped:?}"
    );
    let last = received
        .iter()
        .rfind(|action| action.topic == "/joint_commands");
    assert_eq!(
        last.map(|last| &last.numbers[..]),
        Some(&[0.25, 0.0][..]),
        "the safe action"
    );
}

#[test]
fn lockstep_needs_a_clock() {
    let Some(robot) = Robot::start(&[]) else {
        return;
    };
    let mut body = robot.open(hip(&robot.address));
    body.reset(0);
    assert!(body.health().is_ok());
    body.step(&[0.5]);
    let error = body.health().expect_err("no clock").to_string();
    assert!(
        error.ends_with("the key clock of [body], which is the topic of simulated time"),
        "{error}"
    );
}

#[test]
fn what_does_not_fit_is_refused_by_name() {
    let address = Address::parse_zenoh("tcp/127.0.0.1:1").expect("an address");
    let with = |change: &dyn Fn(&mut Ros2Settings)| {
        let mut settings = whole(&address);
        change(&mut settings);
        let reach = Reach::Ros2(Box::new(settings));
        let error = RemoteBody::open("robot", LinkSettings::new(reach)).expect_err("refused");
        error.to_string()
    };
    type Change<'c> = &'c dyn Fn(&mut Ros2Settings);
    let cases: [(Change<'_>, &str); 17] = [
        (
            &|own| own.namespace = "robot".into(),
            "namespace \"robot\" needs a slash at its beginning: \"/robot\"",
        ),
        (
            &|own| own.max_age_s = f64::NAN,
            "max_age is NaN, needs seconds from 0 on",
        ),
        (
            &|own| own.body.observation[0].low = f32::INFINITY,
            "channel hip: the range is inf to",
        ),
        (
            &|own| own.body.safe_action = vec![],
            "the safe action has 0 numbers, the action has",
        ),
        (
            &|own| own.observation[0].kind = "sensor_msgs/msg/JointStat".into(),
            "observation hip: message type",
        ),
        (
            &|own| own.observation[0].field = "positions".into(),
            "observation hip: field \"positions\": sensor_msgs/msg/JointState has no field",
        ),
        (
            &|own| own.observation[0].joint = None,
            "observation hip: field \"position\" is an array: an index (position[0]), a joint or a shape is needed",
        ),
        (
            &|own| own.observation[2].joint = Some("a".into()),
            "observation up: field \"linear_acceleration.z\" is one number; joint \"a\" needs a list",
        ),
        (
            &|own| own.observation[3].field = "height".into(),
            "observation image: field \"height\" is one number, the channel has a shape",
        ),
        (
            &|own| own.observation[3].field = "encoding".into(),
            "observation image: field \"encoding\" has no numbers",
        ),
        (
            &|own| own.observation[1].kind = COMMANDS.into(),
            "observation knee: topic /joint_states has the type",
        ),
        (
            &|own| own.action[1].field = "data[0]".into(),
            "two paths set the same field",
        ),
        (
            &|own| own.action[5].joint = Some("hip".into()),
            "action knee_to: another channel has \"position\" of joint \"hip\"",
        ),
        (
            &|own| own.action[5].field = "velocity".into(),
            "topic /joint_commands: the action has no channel for",
        ),
        (
            &|own| own.trigger = Some("/clock".into()),
            "trigger: the observation has no channel of the topic /clock",
        ),
        (
            &|own| own.observation[2].topic = "/im u".into(),
            "observation up: topic \"/im u\" needs letters",
        ),
        (
            &|own| own.clock = Some("/imu".into()),
            "topic /imu is stated twice",
        ),
    ];
    for (change, reason) in cases {
        let error = with(change);
        assert!(
            error.starts_with(&format!("body robot: {reason}")),
            "{error}"
        );
    }
    let far = |own: &mut Ros2Settings| {
        own.address = Address::parse_zenoh("tcp/192.0.2.1:7447").expect("an address");
    };
    let error = with(&far);
    assert!(
        error.contains("it is not on this machine, and needs a user"),
        "{error}"
    );
    let error = with(&|own| {
        far(own);
        own.is_trusted_network = true;
        own.is_peer = true;
    });
    assert!(
        error.contains("a peer connects to nodes of this machine only"),
        "{error}"
    );
    let error = with(&|own| own.user = Some("brain".into()));
    assert!(error.contains("user: its password is a token"), "{error}");
}
