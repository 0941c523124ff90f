//! Requests to a policy server and their answers, on the I/O thread: one at a time.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tectum::{Error, Result};
use tokio::sync::Notify;

use crate::io_thread::IoThread;
use crate::socket::{Frame, Socket};
use crate::{Address, Token, client};

/// Time between two attempts to connect.
const RETRY: Duration = Duration::from_millis(50);

/// A connection to a policy server, which is made again when it is lost.
#[derive(Debug)]
pub(super) struct Exchange {
    shared: Arc<Shared>,
    _io: IoThread,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// Wakes the I/O thread: there is a request.
    requested: Notify,
}

#[derive(Debug, Default)]
struct State {
    is_connected: bool,
    /// The request that is not sent yet.
    request: Option<(u64, Vec<u8>)>,
    /// The request that is not answered yet; its answer is dropped after a reset.
    waiting: Option<u64>,
    answer: Option<(u64, Vec<u8>)>,
    /// Counts resets.
    episode: u64,
    failure: Option<String>,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic of another thread leaves a whole state.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exchange {
    /// Connects to a server.
    ///
    /// # Errors
    /// `Data` without a connection in time; `Io` with what the operating system reports.
    pub fn open(address: Address, token: Option<Token>, limit: Duration) -> Result<Self> {
        let (shared, io) = (Arc::new(Shared::default()), IoThread::start()?);
        io.spawn(keep(shared.clone(), address, token));
        let deadline = Instant::now() + limit;
        let mut state = shared.lock();
        while !state.is_connected {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let reason = state.failure.take();
                let reason = reason.unwrap_or_else(|| "no connection".to_owned());
                let limit_s = limit.as_secs_f64();
                return Err(Error::data(format!("{reason}, within {limit_s} s")));
            }
            state = shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        state.failure = None;
        drop(state);
        Ok(Self { shared, _io: io })
    }

    /// Sends a request for the actions from a number on.
    pub fn request(&self, start: u64, content: Vec<u8>) {
        let mut state = self.shared.lock();
        state.request = Some((start, content));
        state.waiting = Some(start);
        drop(state);
        self.shared.requested.notify_one();
    }

    /// Whether a request has no answer yet.
    pub fn is_waiting(&self) -> bool {
        self.shared.lock().waiting.is_some()
    }

    /// An answer, and the number that its request stated.
    pub fn take(&self) -> Option<(u64, Vec<u8>)> {
        self.shared.lock().answer.take()
    }

    /// Why there is no answer.
    pub fn failure(&self) -> Option<String> {
        self.shared.lock().failure.clone()
    }

    /// Waits for the answer to a request; the reason without one.
    pub fn wait(&self, limit: Duration) -> std::result::Result<(), String> {
        let deadline = Instant::now() + limit;
        let mut state = self.shared.lock();
        while state.answer.is_none() {
            if let Some(failure) = &state.failure {
                return Err(failure.clone());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(format!("no answer within {} s", limit.as_secs_f64()));
            }
            state = self
                .shared
                .changed
                .wait_timeout(state, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
        Ok(())
    }

    /// Drops requests and answers of an episode that has ended.
    pub fn clear(&self) {
        let mut state = self.shared.lock();
        state.episode += 1;
        (state.request, state.waiting, state.answer) = (None, None, None);
    }
}

/// Keeps the connection.
async fn keep(shared: Arc<Shared>, address: Address, token: Option<Token>) {
    loop {
        let reason = match client::connect(&address, token.as_ref()).await {
            Ok(mut socket) => match converse(&shared, &mut socket).await {
                Ok(never) => match never {},
                Err(reason) => reason,
            },
            Err(reason) => reason,
        };
        {
            let mut state = shared.lock();
            state.is_connected = false;
            (state.request, state.waiting, state.answer) = (None, None, None);
            state.failure = Some(reason);
        }
        shared.changed.notify_all();
        tokio::time::sleep(RETRY).await;
    }
}

/// One connection, until it is lost.
async fn converse(
    shared: &Shared,
    socket: &mut Socket,
) -> std::result::Result<std::convert::Infallible, String> {
    // The server's metadata.
    receive(socket).await?;
    {
        let mut state = shared.lock();
        state.is_connected = true;
        state.failure = None;
    }
    shared.changed.notify_all();
    loop {
        let next = {
            let mut state = shared.lock();
            let episode = state.episode;
            state
                .request
                .take()
                .map(|(start, content)| (start, content, episode))
        };
        let Some((start, content, episode)) = next else {
            // Reads, so that pings are answered and an end is noticed.
            tokio::select! {
                () = shared.requested.notified() => {}
                frame = socket.receive() => match frame? {
                    Frame::Ping(_) | Frame::Pong(_) => {}
                    other => return Err(unexpected(&other)),
                },
            }
            continue;
        };
        socket.send(Frame::Binary(content.into())).await?;
        let answer = receive(socket).await?;
        let mut state = shared.lock();
        if state.episode == episode {
            state.waiting = None;
            state.answer = Some((start, answer));
        }
        drop(state);
        shared.changed.notify_all();
    }
}

/// The next answer.
async fn receive(socket: &mut Socket) -> std::result::Result<Vec<u8>, String> {
    loop {
        match socket.receive().await? {
            Frame::Binary(content) => return Ok(content.into()),
            Frame::Ping(_) | Frame::Pong(_) => {}
            other => return Err(unexpected(&other)),
        }
    }
}

fn unexpected(frame: &Frame) -> String {
    match frame {
        Frame::Text(text) => format!("the server refused: {text}"),
        Frame::Close(reason) => format!("the server ended the connection: {reason}"),
        _ => "the server sent an answer to no request".to_owned(),
    }
}
