//! A body behind a WebSocket, as another process would be: blocking, one thread for each
//! connection, and what it received.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use tectum_control::body::{ActionChannel, Body, BodySpec, ObservationChannel, Step};
use tectum_control::message::Message;
use tokio_tungstenite::tungstenite::{self, WebSocket};

/// A body that moves by its action, and ends its episodes outside of ±1.
pub struct Drift {
    spec: BodySpec,
    position: f64,
    steps: u64,
}

impl Drift {
    pub fn new(dt_s: f64) -> Self {
        Self {
            spec: BodySpec {
                name: "drift".into(),
                dt_s,
                observation: vec![ObservationChannel::new("position", "m", -1.0..=1.0)],
                action: vec![ActionChannel::new("speed", "m/s", -5.0..=5.0)],
                safe_action: vec![0.25],
            },
            position: 0.0,
            steps: 0,
        }
    }
}

impl Body for Drift {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, seed: u64) {
        self.position = (seed % 7) as f64 / 10.0;
        self.steps = 0;
    }

    fn observe(&self, observation: &mut [f32]) {
        observation[0] = self.position as f32;
    }

    fn step(&mut self, action: &[f32]) -> Step {
        let speed = self.spec.action[0].applied(action[0]);
        self.position += self.spec.dt_s * f64::from(speed.unwrap_or(0.25));
        self.steps += 1;
        Step {
            reward: -self.position / 3.0,
            terminated: self.position.abs() > 1.0,
            truncated: self.steps == 40,
            refused: speed.is_none(),
        }
    }
}

/// What a peer is to do, from the test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Order {
    /// Stops for a time: neither reads nor writes.
    Sleep(Duration),
    /// Reads and writes, but sends no observation for a time.
    Mute(Duration),
    /// Ends the connection without a close.
    Hang,
    Arm,
    /// Sends a command of the brain, or nothing for its schedule.
    Command(&'static str, Option<f64>),
    /// Sends the last observation a second time, with its number.
    Repeat,
}

/// A message that a peer received.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    pub kind: String,
    pub sequence: u64,
    pub numbers: Vec<f32>,
    pub is_safe: bool,
    pub connection: u64,
    /// In real time: it was neither late nor repeated.
    pub is_applied: bool,
}

/// A body at an address, until the test ends.
pub struct Peer {
    pub address: SocketAddr,
    log: Arc<Log>,
    orders: Sender<Order>,
}

/// What a peer received, and how many of its connections have ended.
#[derive(Default)]
struct Log {
    state: Mutex<(Vec<Received>, u64, u64)>,
    ended: Condvar,
}

type Socket = WebSocket<TcpStream>;

/// What a number may be above the last one.
const MAX_JUMP: u64 = 10_000;

impl Peer {
    /// Listens on a free port of this machine.
    pub fn listen(body: Box<dyn Body>) -> Self {
        Self::listen_at(0, body)
    }

    pub fn listen_at(port: u16, body: Box<dyn Body>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a free port");
        let address = listener.local_addr().expect("bound");
        Self::run(address, body, move || {
            let (stream, _) = listener.accept().ok()?;
            stream.set_nodelay(true).ok()?;
            tungstenite::accept(stream).ok()
        })
    }

    /// Connects to an address, again and again.
    pub fn connect(address: SocketAddr, body: Box<dyn Body>) -> Self {
        Self::run(address, body, move || {
            std::thread::sleep(Duration::from_millis(5));
            let stream = TcpStream::connect(address).ok()?;
            stream.set_nodelay(true).ok()?;
            let url = format!("ws://{address}/");
            tungstenite::client(url, stream)
                .ok()
                .map(|(socket, _)| socket)
        })
    }

    fn run(
        address: SocketAddr,
        body: Box<dyn Body>,
        mut enter: impl FnMut() -> Option<Socket> + Send + 'static,
    ) -> Self {
        let (orders, inbox) = channel();
        let log = Arc::new(Log::default());
        let own = log.clone();
        std::thread::spawn(move || {
            let mut host = Host {
                body,
                log: own,
                orders: inbox,
                connection: 0,
                mute_until: None,
            };
            loop {
                if let Some(socket) = enter() {
                    host.connection += 1;
                    host.log.state.lock().expect("no panic").1 = host.connection;
                    // The test sees what was received; how a connection ended does not matter.
                    let _ = host.talk(socket);
                    host.log.state.lock().expect("no panic").2 = host.connection;
                    host.log.ended.notify_all();
                }
            }
        });
        Self {
            address,
            log,
            orders,
        }
    }

    pub fn url(&self) -> String {
        format!("ws://{}", self.address)
    }

    pub fn order(&self, order: Order) {
        self.orders.send(order).expect("the peer runs");
    }

    /// What it has received when all of its connections have ended.
    pub fn received(&self) -> Vec<Received> {
        let state = self.log.state.lock().expect("no panic");
        let is_open = |state: &mut (Vec<Received>, u64, u64)| state.1 > state.2;
        let state = self.log.ended.wait_while(state, is_open);
        state.expect("no panic").0.clone()
    }
}

struct Host {
    body: Box<dyn Body>,
    log: Arc<Log>,
    orders: Receiver<Order>,
    connection: u64,
    mute_until: Option<Instant>,
}

enum End {
    Closed,
    Broken,
}

impl From<tungstenite::Error> for End {
    fn from(_: tungstenite::Error) -> Self {
        Self::Broken
    }
}

impl Host {
    /// One connection: lockstep, and real time after `start`.
    fn talk(&mut self, mut socket: Socket) -> Result<(), End> {
        loop {
            let Some(message) = self.read(&mut socket)? else {
                continue;
            };
            let sequence = message.sequence().unwrap_or(0);
            match message.kind() {
                "hello" => {
                    let spec = self.body.spec().to_message(Message::new("spec", sequence));
                    send(&mut socket, &spec)?;
                }
                "reset" => {
                    self.body
                        .reset(message.number("seed").unwrap_or(0.0) as u64);
                    let answer = self.observation(sequence, Step::default());
                    send(&mut socket, &answer)?;
                }
                "step" => {
                    let action = message
                        .array("action")
                        .ok()
                        .and_then(|array| array.to_f32());
                    let step = self.body.step(&action.unwrap_or_default());
                    let answer = self.observation(sequence, step);
                    send(&mut socket, &answer)?;
                }
                "start" => return self.run(socket, sequence),
                "close" => return Err(End::Closed),
                _ => {}
            }
        }
    }

    fn read(&mut self, socket: &mut Socket) -> Result<Option<Message>, End> {
        let content = match socket.read() {
            Ok(tungstenite::Message::Binary(content)) => content,
            Ok(tungstenite::Message::Close(_)) => return Err(End::Closed),
            Ok(_) => return Ok(None),
            Err(tungstenite::Error::Io(error))
                if error.kind() == std::io::ErrorKind::WouldBlock =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error.into()),
        };
        // A network may have changed it.
        let Ok(message) = Message::parse(&content) else {
            return Ok(None);
        };
        let numbers = message
            .array("action")
            .ok()
            .and_then(|array| array.to_f32());
        self.log.state.lock().expect("no panic").0.push(Received {
            kind: message.kind().to_owned(),
            sequence: message.sequence().unwrap_or(0),
            numbers: numbers.unwrap_or_default(),
            is_safe: message.flag("safe").unwrap_or(false),
            connection: self.connection,
            is_applied: false,
        });
        Ok(Some(message))
    }

    fn observation(&self, sequence: u64, step: Step) -> Message {
        let spec = self.body.spec();
        let mut observation = vec![0.0; spec.observation_len()];
        self.body.observe(&mut observation);
        let message = Message::new("observation", sequence)
            .with("reward", step.reward)
            .with("terminated", step.terminated)
            .with("truncated", step.truncated);
        spec.write_observation(message, &observation)
    }

    /// Real time: an observation each period, the last action until the next.
    fn run(&mut self, mut socket: Socket, started: u64) -> Result<(), End> {
        let period = Duration::from_secs_f64(self.body.spec().dt_s);
        let mut action = self.body.spec().safe_action.clone();
        let (mut answers, mut sequence, mut applied) = (started, 0, started);
        let mut next = Instant::now();
        let mut last = None;
        socket
            .get_ref()
            .set_nonblocking(true)
            .map_err(|_| End::Broken)?;
        loop {
            while let Ok(order) = self.orders.try_recv() {
                match order {
                    Order::Sleep(time) => std::thread::sleep(time),
                    Order::Mute(time) => self.mute_until = Some(Instant::now() + time),
                    Order::Hang => return Err(End::Broken),
                    Order::Arm => {
                        sequence += 1;
                        send(&mut socket, &Message::new("arm", sequence))?;
                    }
                    Order::Command(name, value) => {
                        sequence += 1;
                        let all = match value {
                            Some(value) => Message::default().with(name, value),
                            None => nothing(name),
                        };
                        let message = Message::new("commands", sequence).with_map("commands", all);
                        send(&mut socket, &message)?;
                    }
                    Order::Repeat => {
                        last.iter().try_for_each(|last| send(&mut socket, last))?;
                    }
                }
            }
            while let Some(message) = self.read(&mut socket)? {
                let number = message.sequence().unwrap_or(0);
                // The peer applies nothing late or twice either, and no number that was changed.
                if number <= applied || number > applied + MAX_JUMP {
                    continue;
                }
                applied = number;
                if let Some(last) = self.log.state.lock().expect("no panic").0.last_mut() {
                    last.is_applied = true;
                }
                match message.kind() {
                    "action" => {
                        let numbers = message
                            .array("action")
                            .ok()
                            .and_then(|array| array.to_f32());
                        let count = self.body.spec().action.len();
                        if let Some(numbers) = numbers.filter(|numbers| numbers.len() == count) {
                            action = numbers;
                        }
                        answers = number;
                    }
                    "reset" => {
                        self.body
                            .reset(message.number("seed").unwrap_or(0.0) as u64);
                        action.clone_from(&self.body.spec().safe_action);
                        answers = number;
                    }
                    "close" => return Err(End::Closed),
                    _ => {}
                }
            }
            if Instant::now() < next {
                std::thread::sleep(Duration::from_micros(200));
                continue;
            }
            next = (next + period).max(Instant::now());
            let step = self.body.step(&action);
            if self.mute_until.is_some_and(|until| Instant::now() < until) {
                continue;
            }
            sequence += 1;
            let message = self.observation(sequence, step).with("answers", answers);
            send(&mut socket, &message)?;
            last = Some(message);
        }
    }
}

/// A map with a name that has no value.
fn nothing(name: &str) -> Message {
    let mut bytes = vec![0x81, 0xa0 | name.len() as u8];
    bytes.extend(name.bytes().chain([0xc0]));
    Message::parse_map(&bytes).expect("one map")
}

fn send(socket: &mut Socket, message: &Message) -> Result<(), End> {
    let content = message.to_bytes().expect("short");
    socket.send(tungstenite::Message::Binary(content.into()))?;
    Ok(())
}
