//! A machine on a serial port: a pair of pseudo-terminals, with a simulated body on the other end.
//!
//! The tests order events at periods of the loop and compare what both sides saw; none compares a
//! time with a fixed limit.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{OptionalActions, tcgetattr, tcsetattr};
use tectum::Device;
use tectum_control::body::link::LinkState;
use tectum_control::body::{Body, BodySpec, body};
use tectum_control::brain::Stateless;
use tectum_control::clock::ClockKind;
use tectum_control::closed_loop::{ClosedLoop, LoopSettings, Sink, TickRecord};
use tectum_control::run_folder::{self, repeat};
use tectum_control::scenario::Scenario;
use tectum_link::{LinkSettings, Reach, RemoteBody, SerialSettings};

use crate::peer::{Drift, Received};
use crate::real_time::{ACTION, DT_S, Periods, SAFE, Still, check_counts, run_loop};
use crate::robots_page::{blocks, page};

/// What a machine is to do, from the test.
enum Order {
    /// Neither reads nor writes for a time.
    Sleep(Duration),
    /// Reads, and sends these bytes in place of its next lines, one in each period.
    Send(Vec<Vec<u8>>),
    /// Unplugs itself, and is back after a time.
    Unplug(Duration),
    Arm,
    End,
}

/// Both ends of a serial line; the path of one is a link, as udev makes them.
struct Wire {
    machine: File,
    /// Keeps the modes of the loop's end, which would echo otherwise.
    _port: OwnedFd,
}

impl Wire {
    fn plug(link: &Path) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY;
        let machine = openpt(flags).expect("a pseudo-terminal");
        grantpt(&machine).expect("its owner");
        unlockpt(&machine).expect("its owner");
        let name = ptsname(&machine, Vec::new()).expect("a name");
        let name = name.to_str().expect("ASCII").to_owned();
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let port = rustix::fs::open(&*name, flags, Mode::empty()).expect("its other end");
        let mut modes = tcgetattr(&port).expect("a terminal");
        modes.make_raw();
        tcsetattr(&port, OptionalActions::Now, &modes).expect("a terminal");
        rustix::io::ioctl_fionbio(&machine, true).expect("a terminal");
        std::os::unix::fs::symlink(name, link).expect("a free name");
        Self {
            machine: machine.into(),
            _port: port,
        }
    }

    fn unplug(self, link: &Path) {
        std::fs::remove_file(link).expect("plugged");
        drop(self);
    }
}

/// A machine with a simulated body, until the test ends it.
struct Machine {
    path: PathBuf,
    folder: tempfile::TempDir,
    orders: Sender<Order>,
    thread: Option<JoinHandle<Vec<Received>>>,
    spec: BodySpec,
    checksum: bool,
}

impl Machine {
    fn start(body: Box<dyn Body>, checksum: bool) -> Self {
        let folder = tempfile::tempdir().expect("writable");
        let path = folder.path().join("port");
        let (orders, inbox) = channel();
        let spec = body.spec().clone();
        let wire = Wire::plug(&path);
        let mut firmware = Firmware {
            body,
            checksum,
            link: path.clone(),
            orders: inbox,
            received: Vec::new(),
            connection: 1,
            bytes: Vec::new(),
        };
        let thread = std::thread::spawn(move || {
            firmware.run(wire);
            firmware.received
        });
        Self {
            path,
            folder,
            orders,
            thread: Some(thread),
            spec,
            checksum,
        }
    }

    fn order(&self, order: Order) {
        self.orders.send(order).expect("it runs");
    }

    fn settings(&self) -> LinkSettings {
        let mut serial = SerialSettings::new(&self.path, self.spec.clone());
        serial.checksum = self.checksum;
        let mut settings = LinkSettings::new(Reach::Serial(Box::new(serial)));
        // A busy machine may schedule a thread late.
        settings.wait = Duration::from_secs(60);
        settings
    }

    fn open(&self) -> RemoteBody {
        RemoteBody::open("machine", self.settings()).expect("it sends lines")
    }

    /// Ends it, and returns what it received.
    fn received(mut self) -> Vec<Received> {
        self.order(Order::End);
        let thread = self.thread.take().expect("once");
        let received = thread.join().expect("no panic");
        drop(self.folder);
        received
    }
}

/// What runs on the machine.
struct Firmware {
    body: Box<dyn Body>,
    checksum: bool,
    link: PathBuf,
    orders: Receiver<Order>,
    received: Vec<Received>,
    /// Counts how often it was plugged in.
    connection: u64,
    /// The line that is being received.
    bytes: Vec<u8>,
}

impl Firmware {
    fn run(&mut self, wire: Wire) {
        let (mut wire, period) = (wire, Duration::from_secs_f64(self.body.spec().dt_s));
        let mut action = self.body.spec().safe_action.clone();
        let (mut next, mut replaced) = (Instant::now(), Vec::new().into_iter());
        loop {
            match self.orders.try_recv() {
                Ok(Order::Sleep(time)) => std::thread::sleep(time),
                Ok(Order::Send(lines)) => replaced = lines.into_iter(),
                Ok(Order::Unplug(time)) => {
                    wire.unplug(&self.link);
                    std::thread::sleep(time);
                    wire = Wire::plug(&self.link);
                    self.connection += 1;
                    self.bytes.clear();
                    action.clone_from(&self.body.spec().safe_action);
                }
                Ok(Order::Arm) => send(&wire, self.framed("arm").as_bytes()),
                Ok(Order::End) => {
                    self.read(&wire, &mut action);
                    return;
                }
                Err(_) => {}
            }
            self.read(&wire, &mut action);
            if Instant::now() < next {
                std::thread::sleep(Duration::from_micros(200));
                continue;
            }
            next = (next + period).max(Instant::now());
            self.body.step(&action);
            match replaced.next() {
                Some(bytes) => send(&wire, &bytes),
                None => send(&wire, self.observation().as_bytes()),
            }
        }
    }

    fn observation(&self) -> String {
        let mut observation = vec![0.0; self.body.spec().observation_len()];
        self.body.observe(&mut observation);
        let numbers: Vec<String> = observation.iter().map(f32::to_string).collect();
        self.framed(&numbers.join(","))
    }

    /// A line with its end, as `Serial.println` writes it.
    fn framed(&self, content: &str) -> String {
        let mut line = content.to_owned();
        if self.checksum {
            let sum = content.bytes().fold(0, |sum, byte| sum ^ byte);
            write!(line, "*{sum:02X}").expect("memory");
        }
        line + "\r\n"
    }

    /// Reads the lines that wait, and uses the last one.
    fn read(&mut self, wire: &Wire, action: &mut Vec<f32>) {
        let mut bytes = [0; 256];
        let wire = &mut wire.machine.try_clone().expect("a descriptor");
        loop {
            match wire.read(&mut bytes) {
                Ok(0) => return,
                Ok(count) => self.bytes.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => return,
            }
        }
        while let Some(end) = self.bytes.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.bytes.drain(..=end).collect();
            let line = String::from_utf8(line).expect("ASCII");
            let content = line.trim_end_matches('\n');
            if content.is_empty() {
                continue;
            }
            let content = match self.checksum {
                true => content.rsplit_once('*').expect("a checksum").0,
                false => content,
            };
            let expected = self.framed(content);
            assert_eq!(line.trim_end(), expected.trim_end(), "its checksum");
            let numbers = content
                .split(',')
                .map(|number| number.parse().expect("a number"));
            let numbers: Vec<f32> = numbers.collect();
            assert_eq!(numbers.len(), action.len(), "{line:?}");
            self.received.push(Received {
                kind: "action".to_owned(),
                sequence: self.received.len() as u64,
                is_safe: numbers == self.body.spec().safe_action,
                numbers: numbers.clone(),
                connection: self.connection,
                is_applied: true,
            });
            *action = numbers;
        }
    }
}

/// Writes bytes; what does not fit because no one reads is lost, as on a wire.
fn send(wire: &Wire, bytes: &[u8]) {
    let _ = (&wire.machine).write_all(bytes);
}

/// A body that does not move.
fn still() -> Box<dyn Body> {
    Box::new(Still(Drift::new(DT_S)))
}

#[test]
fn a_simulated_pendulum_is_controlled_through_a_port() {
    for checksum in [false, true] {
        let pendulum = body("pendulum", None).expect("built in");
        let machine = Machine::start(pendulum, checksum);
        let remote = machine.open();
        assert_eq!(remote.spec(), &machine.spec);
        let regulator = |observation: &[f32], action: &mut [f32]| {
            let fed_back: f32 = observation.iter().sum();
            action[0] = -0.3 * fed_back;
        };
        let settings = LoopSettings {
            seconds: 100.0 * machine.spec.dt_s,
            clock: ClockKind::Real,
            snapshot_every: 0,
            ..LoopSettings::default()
        };
        let cpu = Device::open("cpu").expect("always");
        let brain = Box::new(Stateless::new("regulator", regulator));
        let mut closed_loop =
            ClosedLoop::new(Box::new(remote), brain, &settings, &cpu).expect("they fit");
        let mut records = Answers::default();
        let mut clock = ClockKind::Real.start();
        let outcome = closed_loop.run(clock.as_mut(), &mut records, &mut |_| {
            ControlFlow::Continue(())
        });
        drop(closed_loop);
        assert_eq!((outcome.metrics.ticks, records.ticks), (100, 100));
        let link = outcome.workload.link.expect("a machine");
        assert!(link.fresh_periods > 0, "{link:?}");
        assert_eq!(link.counts.unreadable_messages, 0);
        // Each action is that of a record, bit by bit, in their order, or the safe one.
        let safe = machine.spec.safe_action.clone();
        let received = machine.received();
        let mut sent = records.actions.iter();
        for action in received.iter().filter(|action| action.numbers != safe) {
            let is_recorded = sent.any(|sent| sent[..] == action.numbers[..]);
            assert!(is_recorded, "{action:?} of {:?}", records.actions);
        }
        assert!(received.iter().any(|action| action.numbers != safe));
        assert_eq!(received.last().map(|last| &last.numbers), Some(&safe));
        // Those before the last period, at most one of it, and the last one.
        let after = received.len() as u64 - link.counts.actions;
        assert!((1..=2).contains(&after), "{after}");
    }
}

/// The actions of all periods.
#[derive(Default)]
struct Answers {
    ticks: u64,
    actions: Vec<Vec<f32>>,
}

impl Sink for Answers {
    fn tick(&mut self, record: &TickRecord<'_>) -> tectum::Result<()> {
        self.ticks += 1;
        self.actions.push(record.action.to_vec());
        Ok(())
    }
}

/// Whether states follow each other in this order, with any others between them.
fn in_order(periods: &Periods, states: &[LinkState]) -> bool {
    let mut streaks = periods.streaks().into_iter();
    states
        .iter()
        .all(|state| streaks.any(|found| found == *state))
}

#[test]
fn a_machine_that_stalls_is_held_then_stopped_until_it_is_armed() {
    use LinkState::{Disarmed, Fresh, Held, Stale};
    let machine = Machine::start(still(), false);
    let remote = machine.open();
    let at = &mut |tick| match tick {
        25 => machine.order(Order::Sleep(Duration::from_secs(1))),
        130 => machine.order(Order::Arm),
        _ => {}
    };
    let (outcome, periods) = run_loop(remote, 200, at, |_| ACTION);
    let received = machine.received();
    let link = check_counts(&outcome, &periods, &received, 200);
    let states = [Fresh, Held, Stale, Disarmed, Fresh];
    assert!(in_order(&periods, &states), "{:?}", periods.streaks());
    // The port was open all the time: silence is no loss of the connection.
    assert_eq!((link.counts.connections, link.counts.rearmed), (1, 1));
    assert_eq!(link.disconnected_periods, 0);
    let armed = periods.0.iter().rposition(|period| period.0 == Disarmed);
    assert!(armed.is_some_and(|tick| tick >= 129), "{armed:?}");
    assert!(received.iter().any(|action| action.numbers == [ACTION]));
    assert_eq!(received.last().expect("lines").numbers, [SAFE]);
}

#[test]
fn garbage_is_counted_and_not_used() {
    let garbage: Vec<Vec<u8>> = [
        b"\r\n".as_slice(),
        b"hello\n",
        b"1,2\n",
        b"nan\n",
        b"-inf\n",
        b"\xff\xfe\x00\n",
        b"0.5*00\n",
        &[b'7'; 3000],
        b"\n",
        b"1;2\n",
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    // The long line is counted once, with its end.
    let lines = garbage.len() as u64 - 1;
    for checksum in [false, true] {
        let machine = Machine::start(still(), checksum);
        let remote = machine.open();
        let at = &mut |tick| match tick {
            25 => machine.order(Order::Send(garbage.clone())),
            60 => machine.order(Order::Arm),
            _ => {}
        };
        let seen = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let own = seen.clone();
        let work = move |observation: &[f32]| {
            own.lock().expect("no panic").push(observation[0]);
            ACTION
        };
        let (outcome, periods) = run_loop(remote, 120, at, work);
        let received = machine.received();
        let link = check_counts(&outcome, &periods, &received, 120);
        assert_eq!(link.counts.unreadable_messages, lines, "{link:?}");
        // The body does not move: every other number would be from garbage.
        let seen = seen.lock().expect("no panic");
        assert!(
            !seen.is_empty() && seen.iter().all(|position| *position == 0.0),
            "{seen:?}"
        );
    }
}

#[test]
fn an_unplugged_machine_is_stopped_at_once_and_opened_again_when_it_is_back() {
    use LinkState::{Disarmed, Disconnected, Fresh, Held, Stale};
    let machine = Machine::start(still(), true);
    let remote = machine.open();
    let at = &mut |tick| match tick {
        25 => machine.order(Order::Unplug(Duration::from_millis(700))),
        140 => machine.order(Order::Arm),
        _ => {}
    };
    let (outcome, periods) = run_loop(remote, 200, at, |_| ACTION);
    let received = machine.received();
    let link = check_counts(&outcome, &periods, &received, 200);
    let states = [Fresh, Disconnected, Disarmed, Fresh];
    assert!(in_order(&periods, &states), "{:?}", periods.streaks());
    // No period between the loss and the arming has an action of the brain.
    let lost = periods.0.iter().position(|period| period.0 == Disconnected);
    let armed = periods.0.iter().rposition(|period| period.0 == Disarmed);
    let (lost, armed) = (lost.expect("unplugged"), armed.expect("back"));
    assert!(armed >= 139, "{armed}");
    for (state, action, ..) in &periods.0[lost..=armed] {
        assert!(
            ![Fresh, Held, Stale].contains(state) || *state == Stale,
            "{state:?}"
        );
        assert_eq!(*action, SAFE, "{state:?}");
    }
    assert_eq!((link.counts.connections, link.counts.rearmed), (2, 1));
    // What was meant for the machine before does not reach it after: its first line is the safe one.
    let first = received.iter().find(|action| action.connection == 2);
    assert_eq!(first.map(|action| &action.numbers[..]), Some(&[SAFE][..]));
    assert_eq!(received.last().expect("lines").numbers, [SAFE]);
}

/// The keys that state the drifting body.
fn keys(machine: &Machine) -> String {
    format!(
        "serial = \"{}\"\nperiod = {DT_S}\nwait = 60\nsafe_action = [0.25]\n\
         [[body.observation]]\nname = \"position\"\nunit = \"m\"\nlow = -1\nhigh = 1\n\
         [[body.action]]\nname = \"speed\"\nunit = \"m/s\"\nlow = -5\nhigh = 5\n",
        machine.path.display()
    )
}

fn scenario(keys: &str, clock: &str) -> Result<Scenario, tectum::Error> {
    tectum_link::register(|_| {}).expect("once or again");
    let text = format!(
        "[body]\n{keys}\n[brain]\nname = \"zero\"\n[loop]\nseconds = 2\nclock = \"{clock}\"\n"
    );
    Scenario::parse(&text, "a.toml", "a")
}

#[test]
fn a_scenario_runs_on_a_port_and_is_repeated_from_its_recording() {
    let machine = Machine::start(still(), false);
    let scenario = scenario(&keys(&machine), "real").expect("valid");
    let runs = tempfile::tempdir().expect("writable");
    let cpu = Device::open("cpu").expect("always");
    let summary = run_folder::run(&scenario, runs.path(), &cpu, &mut |_| {
        ControlFlow::Continue(())
    })
    .expect("it runs");
    drop(scenario);
    let name = format!("serial:{}", machine.path.display());
    assert_eq!((summary.ticks, summary.body), (100, name));
    assert!(summary.link.is_some_and(|link| link.fresh_periods > 0));
    assert_eq!(machine.received().last().expect("lines").numbers, [SAFE]);
    let folder = PathBuf::from(&summary.run_folder);
    let receipt = std::fs::read_to_string(folder.join("receipt.json")).expect("written");
    assert!(receipt.contains("\"peer\": \"serial port\"") && receipt.contains("fresh_periods"));
    if summary.deadline_misses > 0 {
        println!("skipped: a period was late, which no repetition has");
        return;
    }
    let repeated = repeat(&folder, None, &mut tectum::WorkProgress::ignore).expect("repeated");
    assert_eq!((repeated.ticks, repeated.found), (100, repeated.expected));
}

#[test]
fn the_scenario_of_the_page_runs_on_a_port() {
    tectum_link::register(|_| {}).expect("once or again");
    let page = page();
    let mut texts = blocks(&page, "toml").into_iter();
    let text = texts.find(|text| text.contains("serial = "));
    let machine = Machine::start(still(), true);
    let path = machine.path.display().to_string();
    let text = text.expect("on the page").replace("/dev/ttyUSB0", &path);
    // A busy machine may schedule a thread late.
    let text = text.replace("period = 0.02\n", "period = 0.02\nwait = 60\n");
    let mut scenario = Scenario::parse(&text, "machine.toml", "machine").expect("valid");
    scenario.set_seconds(1.0).expect("positive");
    let runs = tempfile::tempdir().expect("writable");
    let cpu = Device::open("cpu").expect("always");
    let summary = run_folder::run(&scenario, runs.path(), &cpu, &mut |_| {
        ControlFlow::Continue(())
    })
    .expect("it runs");
    drop(scenario);
    let link = summary.link.expect("a machine");
    assert_eq!((summary.ticks, link.counts.unreadable_messages), (50, 0));
    assert!(
        link.fresh_periods > 0 && link.counts.actions > 0,
        "{link:?}"
    );
    let received = machine.received();
    assert!(
        received.iter().all(|action| action.numbers == [0.0]),
        "{received:?}"
    );
}

#[test]
fn what_a_port_cannot_be_is_named() {
    let machine = Machine::start(still(), false);
    let keys = keys(&machine);
    let file = machine.folder.path().join("file");
    std::fs::write(&file, "").expect("writable");
    let other = |path: &Path| {
        let keys = keys.replace(
            &*machine.path.display().to_string(),
            &path.display().to_string(),
        );
        keys.replace("wait = 60", "wait = 0.2")
    };
    for (keys, reason) in [
        (
            keys.replace("period = 0.02\n", ""),
            "a machine on a serial port states nothing of itself: [body] needs period",
        ),
        (
            keys.replace("wait", "baud = 9600\nwait"),
            "a line of 1 numbers has up to 21 bytes, 21.88 ms at 9600 baud; the period is 20 ms",
        ),
        (
            keys.replace("wait", "token_file = \"a\"\nwait"),
            "token_file",
        ),
        (other(&file), "file: it is no serial port, within 0.2 s"),
        (other(Path::new("/dev/absent")), "/dev/absent: No such file"),
        (
            keys.replace("wait = 60", "wait = 1").replace(
                "[[body.action]]",
                "[[body.observation]]\nname = \"b\"\nunit = \"m\"\nlow = -1\nhigh = 1\n[[body.action]]",
            )
            // Two numbers are longer than one.
            .replace("period = 0.02", "period = 0.04"),
            "port: a line has 1 numbers, the observation has 2, within 1 s",
        ),
    ] {
        let error = scenario(&keys, "real").expect_err(reason).to_string();
        assert!(error.contains(reason), "{error}");
    }
    // One program at a time.
    let first = machine.open();
    let mut settings = machine.settings();
    settings.wait = Duration::from_millis(200);
    let error = RemoteBody::open("machine", settings)
        .expect_err("a second")
        .to_string();
    assert!(error.contains("another program uses it"), "{error}");
    drop(first);
    // No lockstep.
    let scenario = scenario(&keys, "sim").expect("valid keys");
    let runs = tempfile::tempdir().expect("writable");
    let cpu = Device::open("cpu").expect("always");
    let run = run_folder::run(&scenario, runs.path(), &cpu, &mut |_| {
        ControlFlow::Continue(())
    });
    let error = run.expect_err("no lockstep").to_string();
    assert!(
        error.contains("it needs clock \"real\", the loop has \"sim\""),
        "{error}"
    );
}
