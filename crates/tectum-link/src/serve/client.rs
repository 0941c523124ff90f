//! A client over WebSocket, on a thread of its own.
//!
//! The thread blocks in the socket, computes and answers, so that an exchange wakes one thread on
//! each side, as over a bare socket: with the socket on a thread of tokio's it was another core as a
//! rule, and an answer of a zero brain took 5.4 times as long as over TCP. While the thread computes,
//! the attendant of all clients reads for it, so that pings are answered and the end of a client is
//! seen.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{Shutdown, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tectum::{Error, Result};
use tectum_control::message::Message;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{self, Bytes, WebSocket};

use super::Desk;
use super::rate::Rate;
use super::session::{Reply, Request, Session, is_observation};
use crate::socket::{Frame, client_limits, of_tungstenite, to_tungstenite};

/// Requests of a client that wait while its brain computes.
const MAX_QUEUED: usize = 4;
/// How long a ping may wait while a brain computes.
const INTERVAL: Duration = Duration::from_millis(20);
/// How long a client may take to read an answer.
const WRITE: Duration = Duration::from_secs(5);
/// How long a client that is sent an error may take to end the connection, so that it reads why.
const CLOSING: Duration = Duration::from_millis(500);

/// Why a connection ends: the reason that the client is sent, empty where it is gone.
type Ended = String;

/// A client.
pub(super) struct Client {
    wire: Mutex<Wire>,
    /// The same socket, to end it from another thread.
    stream: TcpStream,
    is_computing: AtomicBool,
}

/// What one thread at a time reads and writes.
struct Wire {
    socket: WebSocket<TcpStream>,
    rate: Rate,
    max_rate: u32,
    begin: Instant,
    /// Requests that the attendant has read.
    inbox: VecDeque<Request>,
    /// Why nothing more is read.
    ended: Option<Ended>,
}

impl Client {
    /// A client whose handshake is done, and what arrived behind the handshake.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn new(stream: TcpStream, behind: Vec<u8>, max_rate: u32) -> std::io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(WRITE))?;
        let own = stream.try_clone()?;
        let (role, limits) = (Role::Server, Some(client_limits()));
        let socket = WebSocket::from_partially_read(stream, behind, role, limits);
        Ok(Self {
            wire: Mutex::new(Wire {
                socket,
                rate: Rate::new(max_rate),
                max_rate,
                begin: Instant::now(),
                inbox: VecDeque::new(),
                ended: None,
            }),
            stream: own,
            is_computing: AtomicBool::new(false),
        })
    }

    /// Serves the client until it or the server ends the connection.
    pub fn serve(&self, desk: &Desk) {
        desk.count(|counts| counts.sessions += 1);
        if let Err(reason) = self.talk(desk) {
            self.end(&reason);
        }
    }

    /// Ends the connection from another thread.
    pub fn shut_down(&self) {
        // One that is gone already needs no end.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn talk(&self, desk: &Desk) -> std::result::Result<(), Ended> {
        let metadata = desk.served.introduction(Message::default()).to_bytes();
        self.send(metadata.map_err(|error| error.to_string())?)?;
        let mut session = self
            .compute(|| Session::new(&desk.served, &desk.records))
            .map_err(|error| error.to_string())?;
        loop {
            let request = self.wire().next()?;
            let reply = self.compute(|| session.reply(&request, &mut || self.has_observation()));
            match reply {
                None => {}
                Some(Reply::Answer(content)) => self.send(content)?,
                Some(Reply::Error(reason)) => return Err(reason),
                Some(Reply::End) => {
                    self.end("");
                    return Ok(());
                }
            }
        }
    }

    /// Computes, while the attendant reads.
    fn compute<T>(&self, work: impl FnOnce() -> T) -> T {
        struct Computes<'c>(&'c AtomicBool);
        impl Drop for Computes<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Release);
            }
        }
        self.is_computing.store(true, Ordering::Release);
        let _computes = Computes(&self.is_computing);
        work()
    }

    fn send(&self, content: Vec<u8>) -> std::result::Result<(), Ended> {
        let sent = self
            .wire()
            .socket
            .send(tungstenite::Message::Binary(content.into()));
        sent.map_err(|_| Ended::new())
    }

    /// Whether an observation waits behind the present one.
    fn has_observation(&self) -> bool {
        let mut wire = self.wire();
        if wire.inbox.is_empty() {
            wire.read_what_waits();
        }
        wire.inbox.front().is_some_and(is_observation)
    }

    /// Reads what waits, where the thread computes: for the attendant.
    fn attend(&self) {
        if !self.is_computing.load(Ordering::Acquire) {
            return;
        }
        match self.wire.try_lock() {
            Ok(mut wire) => wire.read_what_waits(),
            Err(TryLockError::Poisoned(wire)) => wire.into_inner().read_what_waits(),
            // Its thread reads or writes.
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// Sends the reason and the end, and waits until the client has read them.
    fn end(&self, reason: &str) {
        let mut wire = self.wire();
        let mut send = |frame| wire.socket.send(to_tungstenite(frame)).is_ok();
        // A client that is gone reads no reason.
        let is_sent = (reason.is_empty() || send(Frame::Text(reason.to_owned())))
            && send(Frame::Close(reason.to_owned()));
        let limit = Instant::now() + CLOSING;
        let _ = self.stream.set_read_timeout(Some(CLOSING));
        // What it sends until then would end the connection before it reads the reason.
        while is_sent && Instant::now() < limit && wire.socket.read().is_ok() {}
    }
}

impl Wire {
    /// The next request; waits for it.
    fn next(&mut self) -> std::result::Result<Request, Ended> {
        loop {
            if let Some(request) = self.inbox.pop_front() {
                return Ok(request);
            }
            if let Some(reason) = &self.ended {
                return Err(reason.clone());
            }
            let message = self.socket.read();
            self.take(message);
        }
    }

    /// Reads what has arrived, without waiting.
    fn read_what_waits(&mut self) {
        if self.socket.get_ref().set_nonblocking(true).is_err() {
            return;
        }
        while self.ended.is_none() {
            let message = self.socket.read();
            if let Err(tungstenite::Error::Io(error)) = &message
                && error.kind() == ErrorKind::WouldBlock
            {
                break;
            }
            self.take(message);
            if self.inbox.len() > MAX_QUEUED {
                self.inbox.clear();
                let reason = format!("more than {MAX_QUEUED} requests wait for an answer");
                self.ended = Some(reason);
            }
        }
        // Pongs. What cannot be sent now is sent with the answer.
        let _ = self.socket.flush();
        if self.socket.get_ref().set_nonblocking(false).is_err() {
            self.ended.get_or_insert_default();
        }
    }

    /// Takes what was read.
    fn take(&mut self, message: tungstenite::Result<tungstenite::Message>) {
        let frame = match message.map(of_tungstenite) {
            Ok(Some(frame)) => frame,
            Ok(None) => return,
            Err(_) => {
                self.ended = Some(Ended::new());
                return;
            }
        };
        if !self.rate.count(self.begin.elapsed().as_nanos() as u64) {
            self.ended = Some(format!("more than {} frames per second", self.max_rate));
            return;
        }
        match frame {
            Frame::Binary(content) => self.inbox.push_back(Request {
                content: Bytes::into(content),
                arrived: Instant::now(),
            }),
            Frame::Text(_) => {
                let reason = "a text frame; requests are binary frames of MessagePack";
                self.ended = Some(reason.to_owned());
            }
            Frame::Close(_) => self.ended = Some(Ended::new()),
            Frame::Ping(_) | Frame::Pong(_) => {}
        }
    }
}

/// The clients that are connected.
#[derive(Clone, Default)]
pub(super) struct Clients(Arc<Mutex<Connected>>);

#[derive(Default)]
struct Connected {
    clients: Vec<Weak<Client>>,
    /// The server has ended.
    is_closed: bool,
}

impl Clients {
    fn connected(&self) -> MutexGuard<'_, Connected> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a client; its connection ends at once if the server has ended.
    pub fn add(&self, client: &Arc<Client>) {
        let mut connected = self.connected();
        connected.clients.retain(|client| client.strong_count() > 0);
        connected.clients.push(Arc::downgrade(client));
        if connected.is_closed {
            client.shut_down();
        }
    }

    /// Ends the connections of those that are connected, and of those that are added later.
    pub fn close(&self) {
        self.connected().is_closed = true;
        self.all().iter().for_each(|client| client.shut_down());
    }

    /// Those that are connected now.
    pub fn all(&self) -> Vec<Arc<Client>> {
        let clients = &self.connected().clients;
        clients.iter().filter_map(Weak::upgrade).collect()
    }
}

/// The thread that reads for clients while their brains compute, until it is dropped.
#[derive(Debug)]
pub(super) struct Attendant {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Attendant {
    /// Starts its thread.
    ///
    /// # Errors
    /// `Io` with what the operating system reports.
    pub fn start(clients: Clients) -> Result<Self> {
        let (stop, stopped) = channel::<()>();
        let thread = std::thread::Builder::new()
            .name("tectum-attendant".to_owned())
            .spawn(move || {
                while stopped.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                    clients.all().iter().for_each(|client| client.attend());
                }
            })
            .map_err(|source| Error::io("a thread for sockets", source))?;
        Ok(Self {
            stop: Some(stop),
            thread: Some(thread),
        })
    }
}

impl Drop for Attendant {
    fn drop(&mut self) {
        drop(self.stop.take());
        // A thread that panicked has nothing left to end.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}
