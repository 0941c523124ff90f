//! The connection to a body: made, kept, and made again on the I/O thread.

use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tectum::{Error, ErrorKind, Result};
use tectum_control::body::BodySpec;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Bytes;

use crate::handshake::{Introduction, Stated};
use crate::incoming::Incoming;
use crate::io_thread::IoThread;
use crate::mailbox::{Mailbox, Outgoing};
use crate::ros2::Ros2Settings;
#[cfg(feature = "ros2")]
use crate::ros2::node::Ros2Node;
use crate::serial::SerialSettings;
#[cfg(unix)]
use crate::serial::port::SerialPort;
use crate::server::{BoundedListener, bind, refusal};
use crate::socket::{MAX_MESSAGE, Socket};
use crate::transport::Transport;
use crate::{Address, Token, client, token};

/// Time between two pings, in real time.
const HEARTBEAT: Duration = Duration::from_millis(100);
/// A connection in real time that delivers no frame for this long is lost.
const DEAD: Duration = Duration::from_millis(500);
/// Time between two attempts to connect.
const RETRY: Duration = Duration::from_millis(50);
/// How long the end of a connection may take.
const CLOSE: Duration = Duration::from_secs(1);

/// Who connects to whom.
#[derive(Debug, Clone, PartialEq)]
pub enum Reach {
    /// The body listens at this address.
    Connect(Address),
    /// The body connects to this address; port 0 is any free one.
    Listen(Address),
    /// The body is a machine on a serial port of this one.
    Serial(Box<SerialSettings>),
    /// The body is a robot whose topics of ROS 2 a router of zenoh delivers.
    Ros2(Box<Ros2Settings>),
}

impl Reach {
    /// Refuses what no connection can be made with.
    fn check(&self, token: Option<&Token>) -> Result<()> {
        match self {
            Self::Connect(address) | Self::Listen(address) => token::require_for(address, token),
            Self::Ros2(settings) => settings.check(token),
            Self::Serial(settings) if cfg!(unix) => settings.check(),
            Self::Serial(_) => Err(Error::unsupported(
                "serial ports: this system has no interface for them that this build uses",
            )),
        }
    }
}

/// How a body is reached.
#[derive(Debug, Clone)]
pub struct LinkSettings {
    /// Who connects to whom.
    pub reach: Reach,
    /// The secret that the side that connects shows.
    pub token: Option<Token>,
    /// How long the first connection may take, and each answer in lockstep.
    pub wait: Duration,
    /// How long the last action is held after the last observation, in seconds; by default min(3
    /// periods, 100 ms), and at least one and a half periods.
    pub hold_s: Option<f64>,
    /// What the scenario states of the body.
    pub(crate) stated: Stated,
}

impl LinkSettings {
    /// How a body is reached, with the limits of a scenario that states none.
    pub fn new(reach: Reach) -> Self {
        Self {
            reach,
            token: None,
            wait: Duration::from_secs(5),
            hold_s: None,
            stated: Stated::default(),
        }
    }

    /// Refuses a body that states other channels, another period or another safe action.
    pub fn compare_with(&mut self, spec: &BodySpec) {
        self.stated = Stated::of(spec);
    }
}

/// What a connected body stated: known for as long as the connection is used.
#[derive(Debug)]
pub(crate) struct Identity {
    name: String,
    pub spec: BodySpec,
    pub peer: String,
}

static CONNECTED: Mutex<Vec<Weak<Identity>>> = Mutex::new(Vec::new());

/// What a body stated that this process is connected to, by its name: a second scenario on it needs
/// no second connection to be read.
pub(crate) fn connected(name: &str) -> Option<Arc<Identity>> {
    let mut known = CONNECTED.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|identity| identity.strong_count() > 0);
    let mut found = known.iter().filter_map(Weak::upgrade);
    found.find(|identity| identity.name == name)
}

/// A connection to a body. It ends when this is dropped: the body gets its safe action.
#[derive(Debug)]
pub(crate) struct Link {
    pub mailbox: Arc<Mailbox>,
    pub spec: BodySpec,
    /// The body's own name.
    pub peer: String,
    /// Where it is reached, with the port that was bound; none for a serial port.
    pub address: Option<Address>,
    pub settings: LinkSettings,
    _identity: Arc<Identity>,
    epoch: Instant,
    /// Ends after the connection.
    _io: IoThread,
}

impl Link {
    /// Connects to a body, or waits until it connects, and compares it with what is stated. `bound`
    /// receives the address before that.
    ///
    /// # Errors
    /// `Invalid` for an address of another machine without a token, a serial port that is too slow,
    /// and for a body that differs; `Data` without a connection in time; `Io` with what the operating system reports.
    pub fn open(
        name: &str,
        settings: LinkSettings,
        bound: &mut dyn FnMut(&Address),
    ) -> Result<Self> {
        Self::try_open(name, settings, bound).map_err(|error| error.at(format_args!("body {name}")))
    }

    fn try_open(
        name: &str,
        settings: LinkSettings,
        bound: &mut dyn FnMut(&Address),
    ) -> Result<Self> {
        settings.reach.check(settings.token.as_ref())?;
        let (mailbox, epoch, io) = (Arc::new(Mailbox::new()), Instant::now(), IoThread::start()?);
        let (entrance, address) = Entrance::new(&settings, &io)?;
        address.iter().for_each(bound);
        let keeper = Keeper {
            name: name.to_owned(),
            entrance,
            mailbox: mailbox.clone(),
            stated: settings.stated.clone(),
            epoch,
        };
        io.spawn(keeper.run());
        let Introduction { spec, peer } = mailbox.wait_for_body(settings.wait)?;
        settings.stated.check(&spec)?;
        let identity = Arc::new(Identity {
            name: name.to_owned(),
            spec: spec.clone(),
            peer: peer.clone(),
        });
        let mut known = CONNECTED.lock().unwrap_or_else(PoisonError::into_inner);
        known.push(Arc::downgrade(&identity));
        drop(known);
        Ok(Self {
            mailbox,
            _identity: identity,
            spec,
            peer,
            address,
            settings,
            epoch,
            _io: io,
        })
    }

    /// Nanoseconds since the connection was begun, as the mailbox counts.
    pub fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.mailbox.close(CLOSE);
    }
}

/// Where connections come from.
enum Entrance {
    Connect(Address, Option<Token>),
    Listen(mpsc::Receiver<(Socket, Writer)>),
    #[cfg(unix)]
    Serial(Box<SerialSettings>),
    #[cfg(feature = "ros2")]
    Ros2(Box<Ros2Settings>, Option<Token>),
}

/// The right to be the body; another peer is refused until it is dropped.
struct Writer(Arc<AtomicBool>);

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Entrance {
    fn new(settings: &LinkSettings, io: &IoThread) -> Result<(Self, Option<Address>)> {
        let address = match &settings.reach {
            Reach::Connect(address) => {
                let entrance = Self::Connect(address.clone(), settings.token.clone());
                return Ok((entrance, Some(address.clone())));
            }
            Reach::Listen(address) => address,
            #[cfg(unix)]
            Reach::Serial(settings) => return Ok((Self::Serial(settings.clone()), None)),
            #[cfg(not(unix))]
            Reach::Serial(_) => return Err(Error::unsupported("serial ports")),
            #[cfg(feature = "ros2")]
            Reach::Ros2(ros2) => {
                let entrance = Self::Ros2(ros2.clone(), settings.token.clone());
                return Ok((entrance, Some(ros2.address.clone())));
            }
            #[cfg(not(feature = "ros2"))]
            Reach::Ros2(_) => return Err(Error::unsupported("ROS 2")),
        };
        let (listener, address) = bind(address, settings.token.as_ref())?;
        let (give, sockets) = mpsc::channel(1);
        let shared = Door {
            give,
            is_taken: Arc::new(AtomicBool::new(false)),
            token: settings.token.clone(),
        };
        let app = Router::new().route("/", get(enter)).with_state(shared);
        io.spawn(async move {
            match BoundedListener::new(listener) {
                Ok(listener) => {
                    let _ = axum::serve(listener, app).await;
                }
                Err(error) => tracing::error!(%error, "the listener failed"),
            }
        });
        Ok((Self::Listen(sockets), Some(address)))
    }

    /// The next connection, and the right to write to the body.
    async fn next(&mut self) -> std::result::Result<(Transport, Option<Writer>), String> {
        match self {
            Self::Connect(address, token) => {
                let socket = client::connect(address, token.as_ref()).await?;
                Ok((Transport::Socket(socket), None))
            }
            Self::Listen(sockets) => match sockets.recv().await {
                Some((socket, writer)) => Ok((Transport::Socket(socket), Some(writer))),
                None => Err("the listener ended".to_owned()),
            },
            // An open port is locked, which is the right to write.
            #[cfg(unix)]
            Self::Serial(settings) => {
                let port = SerialPort::open(settings).await?;
                Ok((Transport::Serial(Box::new(port)), None))
            }
            #[cfg(feature = "ros2")]
            Self::Ros2(settings, token) => {
                let node = Ros2Node::open(settings, token.as_ref()).await?;
                Ok((Transport::Ros2(Box::new(node)), None))
            }
        }
    }
}

/// What the handler of a listening body knows.
#[derive(Clone)]
struct Door {
    give: mpsc::Sender<(Socket, Writer)>,
    is_taken: Arc<AtomicBool>,
    token: Option<Token>,
}

/// Accepts a body, one at a time.
async fn enter(
    State(door): State<Door>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    if let Some(refusal) = refusal(&headers, door.token.as_ref()) {
        return refusal.into_response();
    }
    if door.is_taken.swap(true, Ordering::AcqRel) {
        let text = "another body is connected\n";
        return (StatusCode::CONFLICT, text).into_response();
    }
    let writer = Writer(door.is_taken.clone());
    upgrade
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .on_upgrade(|socket| async move {
            // The receiver ends with the loop; then no one needs the socket.
            let socket = Socket::Accepted(Box::new(socket));
            let _ = door.give.send((socket, writer)).await;
        })
}

/// Keeps the connection, on the I/O thread.
struct Keeper {
    name: String,
    entrance: Entrance,
    mailbox: Arc<Mailbox>,
    stated: Stated,
    epoch: Instant,
}

impl Keeper {
    async fn run(mut self) {
        while !self.mailbox.is_closing() {
            let entered = tokio::select! {
                entered = self.entrance.next() => entered,
                () = self.mailbox.outgoing.notified() => continue,
            };
            match entered {
                Ok((transport, writer)) => {
                    self.keep(transport).await;
                    drop(writer);
                }
                Err(reason) => {
                    self.mailbox.note(&reason);
                }
            }
            if !self.mailbox.is_closing() {
                tokio::time::sleep(RETRY).await;
            }
        }
        self.mailbox.done();
    }

    /// One connection, from the handshake to its end.
    async fn keep(&self, mut transport: Transport) {
        let introduced = transport.introduce(&self.name, &self.mailbox).await;
        let opened = introduced.and_then(|body| {
            self.stated.check(&body.spec)?;
            self.mailbox.open(body)
        });
        if let Err(error) = opened {
            let reason = error.to_string();
            // Another body than the scenario states: trying again changes nothing.
            if error.kind() == ErrorKind::Invalid && self.mailbox.connection() == 0 {
                self.mailbox.fail(&reason);
            }
            if self.mailbox.note(&reason) {
                tracing::warn!(body = self.name, reason, "a body is refused");
            }
            // The other side may be gone already.
            let _ = transport.close(reason).await;
            return;
        }
        tracing::info!(body = self.name, "connected");
        let reason = self.converse(&mut transport).await.err();
        if let Some(reason) = reason {
            tracing::warn!(body = self.name, reason, "the connection is lost");
            self.mailbox.lose(&reason);
        }
    }

    fn now_ns(&self) -> u64 {
        self.epoch.elapsed().as_nanos() as u64
    }

    /// Sends and receives until the connection ends: `Ok` if the loop ended it.
    async fn converse(&self, transport: &mut Transport) -> std::result::Result<(), String> {
        let mut beat = tokio::time::interval(HEARTBEAT);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let mut pulse = Pulse::new(self.now_ns());
        loop {
            if self.send_all(transport).await? {
                return Ok(());
            }
            let wake_ns = self.mailbox.wake_ns();
            let wake = wake_ns.map(|ns| self.epoch + Duration::from_nanos(ns));
            tokio::select! {
                incoming = transport.receive() => self.receive(incoming?, &mut pulse),
                () = self.mailbox.outgoing.notified() => {}
                () = until(wake) => {}
                _ = beat.tick() => {
                    let is_required = transport.has_pings() && self.mailbox.is_real_time();
                    if let Some(ping) = pulse.beat(self.now_ns(), is_required)? {
                        write(transport.ping(ping)).await?;
                    }
                }
            }
        }
    }

    fn receive(&self, incoming: Incoming, pulse: &mut Pulse) {
        let now_ns = self.now_ns();
        pulse.heard_ns = now_ns;
        match incoming {
            Incoming::Content(content) => self.mailbox.receive(&content, now_ns),
            Incoming::Message(message) => self.mailbox.accept(message, now_ns),
            Incoming::Unreadable => self.mailbox.count_unreadable(),
            Incoming::Pong(content) => {
                let network_ns = pulse.round_trip_ns(&content, now_ns);
                network_ns
                    .into_iter()
                    .for_each(|ns| self.mailbox.measured(ns));
            }
            Incoming::Other => {}
        }
    }

    /// Sends what there is to send; returns whether it was the end.
    async fn send_all(&self, transport: &mut Transport) -> std::result::Result<bool, String> {
        while let Some(outgoing) = self.mailbox.next(self.now_ns()) {
            match outgoing {
                Outgoing::Message(message) => write(transport.send(&message)).await?,
                Outgoing::Close => {
                    for message in self.mailbox.last_messages(self.now_ns()) {
                        write(transport.send(&message)).await?;
                    }
                    write(transport.close(String::new())).await?;
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }
}

/// Waits until something is sent; a body that does not read is lost.
async fn write(
    sent: impl Future<Output = std::result::Result<(), String>>,
) -> std::result::Result<(), String> {
    tokio::time::timeout(DEAD, sent)
        .await
        .map_err(|_| format!("the body read nothing for {} ms", DEAD.as_millis()))?
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
        None => std::future::pending().await,
    }
}

/// The heartbeat of a connection.
#[derive(Debug)]
struct Pulse {
    /// When the last frame arrived.
    heard_ns: u64,
    /// Number and time of the last ping.
    ping: (u64, u64),
}

impl Pulse {
    fn new(now_ns: u64) -> Self {
        Self {
            heard_ns: now_ns,
            ping: (0, now_ns),
        }
    }

    /// The content of the next ping, where the heartbeat is required.
    ///
    /// # Errors
    /// The reason of a connection that has delivered nothing for too long.
    fn beat(
        &mut self,
        now_ns: u64,
        is_required: bool,
    ) -> std::result::Result<Option<Bytes>, String> {
        if !is_required {
            self.heard_ns = now_ns;
            return Ok(None);
        }
        if now_ns.saturating_sub(self.heard_ns) > DEAD.as_nanos() as u64 {
            return Err(format!("nothing arrived for {} ms", DEAD.as_millis()));
        }
        self.ping = (self.ping.0 + 1, now_ns);
        let number = self.ping.0.to_le_bytes().to_vec();
        Ok(Some(number.into()))
    }

    /// The round trip of a pong, if it answers the last ping.
    fn round_trip_ns(&self, content: &[u8], now_ns: u64) -> Option<u64> {
        let (number, sent_ns) = self.ping;
        (content == number.to_le_bytes()).then(|| now_ns - sent_ns)
    }
}

/// The error of a body that cannot be used any more.
pub(crate) fn unusable(name: &str, reason: &str) -> Error {
    Error::data(format!("body {name}: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_without_a_frame_is_lost_and_a_pong_measures_its_own_ping() {
        let ms = |ms: u64| ms * 1_000_000;
        let mut pulse = Pulse::new(0);
        assert_eq!(pulse.beat(ms(600), false), Ok(None), "lockstep");
        let number = |frame| match frame {
            Ok(Some(number)) => number,
            other => panic!("{other:?}"),
        };
        let first = number(pulse.beat(ms(700), true));
        assert_eq!(pulse.round_trip_ns(&first, ms(703)), Some(ms(3)));
        let second = number(pulse.beat(ms(1000), true));
        assert_eq!(pulse.round_trip_ns(&first, ms(1001)), None);
        assert_eq!(pulse.round_trip_ns(&second, ms(1001)), Some(ms(1)));
        assert!(pulse.beat(ms(1100), true).is_ok());
        assert!(pulse.beat(ms(1101), true).is_err());
    }
}
