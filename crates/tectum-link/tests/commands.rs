//! Commands of a brain that come from another process: used, recorded and repeated.

use std::io::Cursor;
use std::ops::ControlFlow;

use tectum::snapshot::Snapshot;
use tectum::{Device, Result, RunStats};
use tectum_control::body::Body;
use tectum_control::brain::Brain;
use tectum_control::brain::commands::{CommandChannel, CommandInputs};
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings, Outcome, Sink, TickRecord};
use tectum_control::message::Message;
use tectum_control::recording::{RecordedCommands, Recorder, Trace};
use tectum_control::replay::Replay;
use tectum_link::{Address, LinkSettings, Reach, RemoteBody, ServeSettings, Served, Server};
use tokio_tungstenite::tungstenite;

use crate::peer::{Drift, Order, Peer};

/// A brain whose action is its command, or a number of its own.
struct Steered(CommandInputs);

/// The action without a command.
const OWN: f32 = 0.5;

impl Steered {
    fn new() -> Self {
        Self(CommandInputs::new(vec![CommandChannel {
            name: "speed".to_owned(),
            unit: "m/s".to_owned(),
            range: [-5.0, 5.0],
        }]))
    }
}

impl Brain for Steered {
    fn name(&self) -> &'static str {
        "steered"
    }

    fn tick(&mut self, _: &[f32], action: &mut [f32]) -> Result<RunStats> {
        action.fill(self.0.take(0).map_or(OWN, |speed| speed as f32));
        Ok(RunStats::default())
    }

    fn commands(&self) -> Option<CommandInputs> {
        Some(self.0.clone())
    }

    fn snapshot(&self) -> Result<Snapshot> {
        Ok(Snapshot::default())
    }

    fn restore(&mut self, _: &Snapshot) -> Result<()> {
        Ok(())
    }
}

/// Records the periods, and keeps what each had: action, whether it is an answer, commands.
struct Kept {
    recorder: Recorder<Cursor<Vec<u8>>>,
    periods: Vec<(f32, bool, Option<f64>)>,
}

impl Kept {
    fn new(closed_loop: &ClosedLoop) -> Self {
        let file = Cursor::new(Vec::new());
        let mut recorder = Recorder::new(file, closed_loop.body_spec(), None).expect("in memory");
        recorder
            .add_commands(closed_loop.commands())
            .expect("in memory");
        Self {
            recorder,
            periods: Vec::new(),
        }
    }
}

impl Sink for Kept {
    fn tick(&mut self, record: &TickRecord<'_>) -> Result<()> {
        let is_answer = !(record.held || record.fallback);
        let command = record.commands.map(|commands| commands[0]);
        self.periods.push((record.action[0], is_answer, command));
        self.recorder.push(record)
    }
}

/// Runs a body for 120 periods; `at` is called with the number of each.
fn run(
    mut body: Box<dyn Body>,
    clock: ClockKind,
    repeated: RecordedCommands,
    at: &mut dyn FnMut(u64),
) -> (Kept, Outcome) {
    body.reset(0);
    let settings = LoopSettings {
        seconds: 120.0 * body.spec().dt_s,
        clock,
        snapshot_every: 0,
        ..LoopSettings::default()
    };
    let cpu = Device::open("cpu").expect("always");
    let brain = Box::new(Steered::new());
    let mut closed_loop = ClosedLoop::new(body, brain, &settings, &cpu).expect("they fit");
    closed_loop
        .repeat_commands(repeated)
        .expect("its own commands");
    let mut kept = Kept::new(&closed_loop);
    let outcome = closed_loop.run(clock.start().as_mut(), &mut kept, &mut |progress| {
        at(progress.tick);
        ControlFlow::Continue(())
    });
    (kept, outcome)
}

#[test]
fn commands_of_a_body_are_used_recorded_and_repeated() {
    let peer = Peer::listen(Box::new(Drift::new(0.02)));
    let address = Address::parse(&peer.url()).expect("an address");
    let body = RemoteBody::open("drift", LinkSettings::new(Reach::Connect(address)));
    let body = Box::new(body.expect("it listens"));
    let spec = body.spec().clone();
    let none = RecordedCommands::default();
    let (kept, outcome) = run(body, ClockKind::Real, none, &mut |tick| {
        let (name, value) = match tick {
            30 => ("speed", Some(2.0)),
            50 => ("height", Some(1.0)),
            60 => ("speed", Some(4.0)),
            90 => ("speed", None),
            _ => return,
        };
        peer.order(Order::Command(name, value));
    });
    let counts = outcome
        .workload
        .link
        .expect("a body outside of the process")
        .counts;
    assert_eq!((counts.commands, counts.refused_commands), (4, 1));
    // Each answer follows from the commands that were recorded up to its period.
    let (mut present, mut recorded) = (f64::NAN, Vec::new());
    for (action, is_answer, command) in &kept.periods {
        if let Some(command) = command {
            present = *command;
            recorded.push(*command);
        }
        let expected = if present.is_nan() {
            OWN
        } else {
            present as f32
        };
        assert!(!is_answer || *action == expected, "{recorded:?}");
    }
    assert_eq!(recorded[..2], [2.0, 4.0]);
    assert!(recorded.len() == 3 && recorded[2].is_nan(), "{recorded:?}");
    let bytes = kept.recorder.finish().expect("in memory").into_inner();
    let trace = Trace::parse(&bytes).expect("its own");
    let commands = trace.commands();
    assert_eq!(
        (&commands.names[..], commands.values.len()),
        (&["speed".to_owned()][..], 3)
    );
    let replay = Box::new(Replay::new(trace, spec).expect("the same channels"));
    let (repeated, _) = run(replay, ClockKind::Sim, commands, &mut |_| {});
    for (found, recorded) in repeated.periods.iter().zip(&kept.periods) {
        assert!(!(found.1 && recorded.1) || found.0 == recorded.0);
    }
}

#[test]
fn clients_of_a_served_brain_set_its_commands() {
    let spec = Drift::new(0.02).spec().clone();
    let cpu = Device::open("cpu").expect("always");
    let served = Served::new(spec.clone(), cpu, || Ok(Box::new(Steered::new())));
    let address = Address::parse("ws://127.0.0.1:0").expect("an address");
    let server = Server::start(served.expect("a brain"), &ServeSettings::new(address));
    let server = server.expect("a free port");
    let (mut client, _) = tungstenite::connect(server.address().to_string()).expect("it listens");
    client.read().expect("its metadata");
    let mut ask = |message: Message| {
        let content = message.to_bytes().expect("short");
        let sent = client.send(tungstenite::Message::Binary(content.into()));
        sent.expect("connected");
        let answer = client.read().expect("an answer").into_data();
        Message::parse(&answer).expect("a message")
    };
    let action = |answer: &Message| answer.array("action").ok()?.to_f32();
    let observation = |number| spec.write_observation(Message::new("observation", number), &[0.0]);
    let command = |number, name: &str, value: f64| {
        let all = Message::default().with(name, value);
        Message::new("commands", number).with_map("commands", all)
    };
    assert_eq!(action(&ask(observation(1))), Some(vec![OWN]));
    assert_eq!(ask(command(2, "speed", 2.0)).kind(), "commands");
    assert_eq!(action(&ask(observation(3))), Some(vec![2.0]));
    for (message, reason) in [
        (
            command(4, "height", 1.0),
            "the brain has no command \"height\"; it has speed",
        ),
        (Message::new("commands", 5), "it has no map \"commands\""),
        (
            command(6, "speed", f64::NAN),
            "command speed: a finite number is needed",
        ),
    ] {
        let answer = ask(message);
        assert_eq!(
            (answer.kind(), answer.text("message")),
            ("error", Some(reason))
        );
    }
    assert_eq!(action(&ask(observation(7))), Some(vec![2.0]));
}
