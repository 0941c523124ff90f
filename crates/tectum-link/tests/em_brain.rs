//! A robot of em-brain, written from the table of bytes, against a served brain.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tectum::{Device, WorkProgress};
use tectum_control::body::{ActionChannel, BodySpec, ObservationChannel};
use tectum_control::brain::Stateless;
use tectum_control::message::ElementType;
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::brain_recipe;
use tectum_link::{Address, EmBrainSettings, ServeSettings, Served, Server};

/// Longer than any answer on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(600);

fn car() -> BodySpec {
    let sensor = |name: &str| ObservationChannel::new(name, "m", -1.0..=1.0);
    let action = |name: &str| ActionChannel::new(name, "V", -100.0..=100.0);
    BodySpec {
        name: "car".into(),
        dt_s: 0.02,
        observation: vec![sensor("a"), sensor("b"), sensor("c")],
        action: vec![action("thrust"), action("turn")],
        safe_action: vec![0.25, 0.5],
    }
}

fn settings(change: impl FnOnce(&mut EmBrainSettings)) -> ServeSettings {
    let address = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut own = EmBrainSettings::new(address);
    own.timeout = TIMEOUT;
    change(&mut own);
    let mut settings = ServeSettings::new(Address::parse("ws://127.0.0.1:0").expect("an address"));
    settings.em_brain = Some(own);
    settings
}

/// A car whose actions are sums of its sensors. Where the first sensor is 50, it computes until the
/// test says so.
fn serve(change: impl FnOnce(&mut ServeSettings), gate: Option<Receiver<()>>) -> Server {
    let cpu = Device::open("cpu").expect("always");
    let gate = Arc::new(Mutex::new(gate));
    let served = Served::new(car(), cpu, move || {
        let gate = gate.clone();
        let sums = move |sensors: &[f32], action: &mut [f32]| {
            if sensors[0] == 50.0
                && let Some(gate) = &*gate.lock().expect("no panic")
            {
                let _ = gate.recv();
            }
            action[0] = sensors[0] + sensors[1];
            action[1] = sensors[2];
        };
        Ok(Box::new(Stateless::new("sums", sums)))
    });
    let mut settings = settings(|_| {});
    change(&mut settings);
    Server::start(served.expect("a brain"), &settings).expect("a free port")
}

/// The bytes of a frame.
pub fn frame(kind: u8, numbers: &[f32]) -> Vec<u8> {
    let count = numbers.len() as u32;
    let mut bytes = b"ROBO".to_vec();
    bytes.extend((5 + 4 * count).to_be_bytes());
    bytes.push(kind);
    bytes.extend(count.to_be_bytes());
    numbers
        .iter()
        .for_each(|number| bytes.extend(number.to_le_bytes()));
    bytes
}

struct Robot(TcpStream);

impl Robot {
    fn connect(server: &Server) -> Self {
        let address = server.em_brain().expect("served").address;
        let stream = TcpStream::connect(address).expect("it listens");
        stream.set_nodelay(true).expect("an option");
        Self(stream)
    }

    /// Connects, and is accepted.
    fn enter(server: &Server, sensors: f32, actions: f32) -> Self {
        let mut robot = Self::connect(server);
        robot.send(&frame(2, &[1.0, sensors, actions, 1.0, 0.0, 640.0, 480.0]));
        let answer = robot.receive();
        assert_eq!(answer, Some((2, vec![1.0, sensors, actions, 0.0, 15.0])));
        robot
    }

    fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).expect("it reads");
    }

    /// The next frame; none at the end of the connection.
    fn receive(&mut self) -> Option<(u8, Vec<f32>)> {
        let mut head = [0; 13];
        match self.0.read_exact(&mut head) {
            Ok(()) => {}
            Err(error) => {
                let ends = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset];
                assert!(ends.contains(&error.kind()), "{error}");
                return None;
            }
        }
        let word = |place: usize| {
            let bytes = head[place..place + 4].try_into().expect("four");
            u32::from_be_bytes(bytes)
        };
        assert_eq!(&head[..4], b"ROBO");
        let count = word(9);
        assert_eq!(word(4), 5 + 4 * count);
        let mut data = vec![0; 4 * count as usize];
        self.0.read_exact(&mut data).expect("a whole frame");
        let numbers = data.as_chunks().0.iter();
        let numbers = numbers.map(|bytes| f32::from_le_bytes(*bytes)).collect();
        Some((head[8], numbers))
    }

    /// The first numbers of the error frames until the end.
    fn errors(&mut self) -> Vec<Vec<f32>> {
        let frames = std::iter::from_fn(|| self.receive());
        frames
            .map(|(kind, numbers)| {
                assert_eq!(kind, 255, "{numbers:?}");
                numbers
            })
            .collect()
    }
}

#[test]
fn ten_thousand_frames_have_the_answers_of_a_regulator() {
    let scenario = || {
        let mut scenario = Scenario::open("cart_pole").expect("built in");
        scenario.set_brain("lqr").expect("built in");
        scenario
    };
    let cpu = Device::open("cpu").expect("always");
    let own = scenario();
    let model = own.body.model().expect("built in");
    let spec = model.spec().clone();
    let mut brain = brain_recipe(&own, &spec)
        .and_then(|recipe| recipe.build(&cpu, &mut WorkProgress::ignore))
        .expect("a regulator");
    let served = Served::of_scenario(scenario(), Some(cpu)).expect("a regulator");
    let server = Server::start(served, &settings(|_| {})).expect("a free port");
    let (sensors, actions) = (spec.observation_len(), spec.action.len());
    let mut robot = Robot::enter(&server, sensors as f32, actions as f32);
    let mut expected = spec.safe_action.clone();
    let mut different = 0;
    for cycle in 0..10_000_u32 {
        let number = |channel: usize| ((cycle * 7 + channel as u32 * 13) as f32 * 0.37).sin() * 0.2;
        let observation: Vec<f32> = (0..sensors).map(number).collect();
        robot.send(&frame(0, &observation));
        let before = expected.clone();
        brain.tick(&observation, &mut expected).expect("an action");
        for (number, channel) in expected.iter_mut().zip(&spec.action) {
            *number = channel.applied(*number).expect("finite");
        }
        assert_eq!(
            robot.receive(),
            Some((1, expected.clone())),
            "cycle {cycle}"
        );
        different += u32::from(before != expected);
    }
    assert!(
        different > 1000,
        "{different} actions differ from the one before"
    );
    assert_eq!(server.counts().answers, 10_000);
}

#[test]
fn segments_may_be_split_and_merged() {
    let server = serve(|_| {}, None);
    let mut robot = Robot::connect(&server);
    // One byte at a time, each in a segment of its own.
    for byte in frame(2, &[1.0, 3.0, 2.0]) {
        robot.send(&[byte]);
    }
    assert!(robot.receive().is_some_and(|(kind, _)| kind == 2));
    for byte in frame(0, &[1.0, 2.0, 3.0]) {
        robot.send(&[byte]);
    }
    assert_eq!(robot.receive(), Some((1, vec![3.0, 3.0])));
    // The handshake is answered at once, so that sensors in the same segment are in step.
    let mut robot = Robot::connect(&server);
    let both = [frame(2, &[1.0, 3.0, 2.0]), frame(0, &[4.0, 2.0, 3.0])].concat();
    robot.send(&both);
    assert!(robot.receive().is_some_and(|(kind, _)| kind == 2));
    assert_eq!(robot.receive(), Some((1, vec![6.0, 3.0])));
    // Sensors that are not finite have the safe action.
    robot.send(&frame(0, &[f32::NAN, 0.0, 0.0]));
    assert_eq!(robot.receive(), Some((1, vec![0.25, 0.5])));
}

#[test]
fn a_request_before_the_answer_ends_the_connection_without_one() {
    let (open, gate) = channel();
    let server = serve(|_| {}, Some(gate));
    // Two in one segment.
    let mut robot = Robot::enter(&server, 3.0, 2.0);
    let sensors = frame(0, &[1.0, 2.0, 3.0]);
    robot.send(&[sensors.clone(), sensors.clone()].concat());
    assert_eq!(robot.receive(), None);
    // The second one while the brain computes.
    let mut robot = Robot::enter(&server, 3.0, 2.0);
    robot.send(&frame(0, &[50.0, 2.0, 3.0]));
    robot.send(&sensors[..1]);
    assert_eq!(robot.receive(), None);
    open.send(()).expect("the brain waits");
    // The next connection is in step.
    let mut robot = Robot::enter(&server, 3.0, 2.0);
    robot.send(&sensors);
    assert_eq!(robot.receive(), Some((1, vec![3.0, 3.0])));
}

#[test]
fn an_answer_after_the_timeout_is_not_sent() {
    let (open, gate) = channel();
    let short = |settings: &mut ServeSettings| {
        let own = settings.em_brain.as_mut().expect("stated");
        own.timeout = Duration::from_millis(100);
    };
    let server = serve(short, Some(gate));
    let mut robot = Robot::enter(&server, 3.0, 2.0);
    robot.send(&frame(0, &[50.0, 2.0, 3.0]));
    assert_eq!(robot.receive(), None);
    open.send(()).expect("the brain waits");
}

#[test]
fn what_differs_is_an_error_for_each() {
    let server = serve(|settings| settings.max_rate = 10, None);
    let handshake = frame(2, &[1.0, 3.0, 2.0]);
    let with = |bytes: Vec<u8>| [handshake.clone(), bytes].concat();
    let mut other_magic = handshake.clone();
    other_magic[..4].copy_from_slice(&0xdead_beef_u32.to_be_bytes());
    let mut wrong_count = frame(0, &[1.0, 2.0, 3.0]);
    wrong_count[12] = 2;
    for (bytes, is_accepted, errors) in [
        (other_magic, false, vec![[1.0, 0.0, 0.0]]),
        (
            b"GET / HTTP/1.1\r\n\r\n".to_vec(),
            false,
            vec![[1.0, 0.0, 0.0]],
        ),
        // 4 GiB.
        (
            b"ROBO\xff\xff\xff\xfd".to_vec(),
            false,
            vec![[1.0, 0.0, 0.0]],
        ),
        (frame(0, &[1.0, 2.0, 3.0]), false, vec![[1.0, 0.0, 0.0]]),
        (frame(2, &[1.0]), false, vec![[1.0, 0.0, 0.0]]),
        (
            frame(2, &[2.0, 12.0, 6.0, 1.0]),
            false,
            vec![[2.0, 1.0, 2.0], [3.0, 3.0, 12.0], [4.0, 2.0, 6.0]],
        ),
        (with(frame(0, &[1.0, 2.0])), true, vec![[3.0, 3.0, 2.0]]),
        (
            with(frame(1, &[1.0, 2.0, 3.0])),
            true,
            vec![[1.0, 0.0, 0.0]],
        ),
        (with(wrong_count), true, vec![[1.0, 0.0, 0.0]]),
    ] {
        let mut robot = Robot::connect(&server);
        robot.send(&bytes);
        if is_accepted {
            assert!(robot.receive().is_some_and(|(kind, _)| kind == 2));
        }
        assert_eq!(robot.errors(), errors, "{bytes:?}");
    }
    assert_eq!(server.counts().errors, 11);
    // More frames than a second allows.
    let mut robot = Robot::enter(&server, 3.0, 2.0);
    let last = (0..).find_map(|_| {
        robot.send(&frame(0, &[1.0, 2.0, 3.0]));
        robot.receive().filter(|(kind, _)| *kind != 1)
    });
    assert_eq!(last, Some((255, vec![5.0, 0.0, 0.0])));
}

#[test]
fn more_clients_than_the_maximum_are_refused() {
    let server = serve(|settings| settings.max_sessions = 1, None);
    let first = Robot::enter(&server, 3.0, 2.0);
    assert_eq!(Robot::connect(&server).errors(), [[5.0, 0.0, 0.0]]);
    assert_eq!(server.counts().refused, 1);
    drop(first);
    // The place is free when the brain of the first one is gone.
    let is_free = (0..).any(|_| {
        let mut robot = Robot::connect(&server);
        robot.send(&frame(2, &[1.0, 3.0, 2.0]));
        robot.receive().is_some_and(|(kind, _)| kind == 2)
    });
    assert!(is_free);
}

#[test]
fn telemetry_is_a_line_of_json_for_each_answer() {
    let listen = |settings: &mut ServeSettings| {
        let own = settings.em_brain.as_mut().expect("stated");
        own.telemetry = Some(SocketAddr::from(([127, 0, 0, 1], 0)));
    };
    let server = serve(listen, None);
    let address = server.em_brain().and_then(|own| own.telemetry);
    let mut stream = TcpStream::connect(address.expect("stated")).expect("it listens");
    stream.set_nonblocking(true).expect("an option");
    let mut robot = Robot::enter(&server, 3.0, 2.0);
    let mut text = Vec::new();
    // Lines are for those who listen already: the first cycles may precede the connection.
    let cycles = (1..).find(|_| {
        robot.send(&frame(0, &[1.0, 2.0, 3.0]));
        assert_eq!(robot.receive(), Some((1, vec![3.0, 3.0])));
        let mut bytes = [0; 4096];
        let read = stream.read(&mut bytes).unwrap_or(0);
        text.extend_from_slice(&bytes[..read]);
        text.contains(&b'\n')
    });
    let text = String::from_utf8(text).expect("JSON");
    let line: Value = serde_json::from_str(text.lines().next().expect("one")).expect("JSON");
    assert!(line["cycle"].as_u64() <= cycles && line["total_ms"].as_f64() > Some(0.0));
    assert_eq!(
        (
            &line["client"],
            &line["sensors"],
            &line["action"],
            &line["safe"]
        ),
        (
            &1.into(),
            &vec![1.0, 2.0, 3.0].into(),
            &vec![3.0, 3.0].into(),
            &false.into()
        )
    );
}

#[test]
fn addresses_of_other_machines_and_arrays_are_refused() {
    let cpu = Device::open("cpu").expect("always");
    let start = |body: BodySpec, settings: &ServeSettings| {
        let brain = || Stateless::new("zero", |_: &[f32], action: &mut [f32]| action.fill(0.0));
        let served = Served::new(body, cpu.clone(), move || Ok(Box::new(brain())));
        let server = Server::start(served.expect("a brain"), settings);
        server.map(|_| ()).map_err(|error| error.to_string())
    };
    let other = SocketAddr::from(([0, 0, 0, 0], 0));
    for change in [
        &(|own: &mut EmBrainSettings| own.address = other) as &dyn Fn(&mut EmBrainSettings),
        &|own| own.telemetry = Some(other),
    ] {
        let error = start(car(), &settings(change)).expect_err("refused");
        assert!(
            error.contains("has no token; --em-brain-without-token"),
            "{error}"
        );
        let stated = settings(|own| {
            change(own);
            own.is_open_without_token = true;
        });
        assert_eq!(start(car(), &stated), Ok(()));
    }
    let mut camera = car();
    camera.observation[1] = camera.observation[1]
        .clone()
        .array([2, 2], ElementType::F32);
    let error = start(camera, &settings(|_| {})).expect_err("refused");
    assert_eq!(
        error,
        "body car: channel b is an array; a frame of em-brain has single numbers"
    );
}

#[test]
fn a_robot_in_python_is_answered() {
    let server = serve(|_| {}, None);
    let address = server.em_brain().expect("served").address;
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/em_brain/robot.py");
    // The standard library is enough.
    let python = std::env::var_os("TECTUM_PYTHON").unwrap_or_else(|| "python3".into());
    let output = Command::new(python)
        .arg(script)
        .args([address.ip().to_string(), address.port().to_string()])
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("skipped: python3 is absent: a robot of em-brain in Python");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1000 answers\n");
    assert_eq!(server.counts().answers, 1000);
}
