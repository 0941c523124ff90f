//! Brains that answer the observations of other programs.
//!
//! The server speaks first: a binary frame with a map, the constants of the body and the names of
//! brain and server. Then each observation of the client has one answer. A map without the key
//! `type` is an observation of openpi's policy protocol; a map with it is a message of
//! [`tectum_control::message`] with these types:
//!
//! | type | answer | keys |
//! |---|---|---|
//! | `hello` | `spec` | |
//! | `observation` | `action` | `observation`, `arrays`, `reward`; answer: `action`, `safe`, `queue_ms`, `infer_ms` |
//! | `reset` | `reset` | the next observation is the first of another episode |
//! | `stop` | `stop` | observations are answered with the safe action until a `reset` |
//! | `close` | | the connection ends |
//!
//! An answer has the `sequence` of its message. An observation with a number that is not above the
//! last one, and one behind which a later one waits, has no answer. What is refused is answered
//! with `error`, and the session continues; in openpi's protocol it is a text frame, and the
//! connection ends with the code 1011.

mod computing;
pub(crate) mod em_brain;
pub(crate) mod openpi;
pub(crate) mod rate;
mod session;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use axum::Router;
use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde::Serialize;
use serde_json::{Value, json};
use tectum::{Device, Error, Receipt, Result, WorkProgress};
use tectum_control::body::BodySpec;
use tectum_control::brain::Brain;
use tectum_control::message::Message;
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{brain_recipe, driven_spec, open_device};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};

use self::computing::{Computing, Waker};
pub use self::em_brain::{EmBrainAddresses, EmBrainSettings};
use self::rate::Rate;
use self::session::{Reply, Request};
use crate::io_thread::Workers;
use crate::server::{BoundedListener, bind, refusal};
use crate::socket::{Frame, MAX_MESSAGE, Socket};
use crate::{Address, Token};

/// Requests of a client that wait for its session.
const MAX_QUEUED: usize = 4;

/// Makes a brain for a client.
type MakeBrain = dyn Fn() -> Result<Box<dyn Brain>> + Send + Sync;

/// Where and for whom brains are served.
#[derive(Debug, Clone)]
pub struct ServeSettings {
    /// The address; port 0 is any free one.
    pub address: Address,
    /// What clients must show; required for an address that other machines reach.
    pub token: Option<Token>,
    /// Clients at the same time, each with a brain of its own.
    pub max_sessions: usize,
    /// Frames of a client per second.
    pub max_rate: u32,
    /// Where the robots of em-brain are served besides, if they are.
    pub em_brain: Option<EmBrainSettings>,
}

impl ServeSettings {
    /// At most 8 clients and 20,000 frames per second of each.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            token: None,
            max_sessions: 8,
            max_rate: 20_000,
            em_brain: None,
        }
    }
}

/// A brain that is served, and the body that it is made for.
pub struct Served {
    body: BodySpec,
    brain_name: &'static str,
    /// The settings of body and brain in a scenario, for the receipt.
    settings: [Value; 2],
    device: Device,
    make: Box<MakeBrain>,
    /// The first brain, for the first client.
    spare: Mutex<Option<Box<dyn Brain>>>,
}

impl Served {
    /// A brain for a body. The first one is made now, so that its errors are reported before a
    /// client connects.
    ///
    /// # Errors
    /// What `make` reports.
    pub fn new(
        body: BodySpec,
        device: Device,
        make: impl Fn() -> Result<Box<dyn Brain>> + Send + Sync + 'static,
    ) -> Result<Self> {
        let first = make()?;
        Ok(Self {
            body,
            brain_name: first.name(),
            settings: [json!({}), json!({})],
            device: first.device().cloned().unwrap_or(device),
            make: Box::new(make),
            spare: Mutex::new(Some(first)),
        })
    }

    /// The brain of a scenario for its body, of which no instance is stepped; without a device on
    /// the one that `auto` selects.
    ///
    /// # Errors
    /// As [`brain_recipe`] and [`Recipe::build`](tectum_control::brain::Recipe::build).
    pub fn of_scenario(scenario: Scenario, device: Option<Device>) -> Result<Self> {
        let body = driven_spec(&scenario)?;
        let recipe = brain_recipe(&scenario, &body)?;
        let device = match device {
            Some(device) => device,
            None => open_device(&scenario, &recipe)?.0,
        };
        drop(recipe);
        let settings = settings_of(&scenario)?;
        let (spec, own) = (body.clone(), device.clone());
        let served = Self::new(body, device, move || {
            brain_recipe(&scenario, &spec)?.build(&own, &mut WorkProgress::ignore)
        })?;
        Ok(Self { settings, ..served })
    }

    /// A brain for a client.
    fn brain(&self) -> Result<Box<dyn Brain>> {
        let spare = self
            .spare
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        spare.map_or_else(|| (self.make)(), Ok)
    }
}

/// The keys of body and brain besides the names.
fn settings_of(scenario: &Scenario) -> Result<[Value; 2]> {
    let value = serde_json::to_value(scenario)
        .map_err(|source| Error::data("scenario: cannot be written").with_source(source))?;
    Ok(["body", "brain"].map(|part| {
        let mut settings = value[part].clone();
        if let Some(keys) = settings.as_object_mut() {
            keys.remove("name");
        }
        settings
    }))
}

/// What a server counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct ServeCounts {
    /// Clients that were served.
    pub sessions: u64,
    /// Clients that were refused: a token, an origin, or too many at once.
    pub refused: u64,
    /// Observations that the brain answered.
    pub answers: u64,
    /// Observations that were answered with the safe action.
    pub safe_answers: u64,
    /// Observations without an answer: repeated ones, and those behind which a later one waited.
    pub dropped_observations: u64,
    /// Requests that were refused.
    pub errors: u64,
    /// Resets.
    pub resets: u64,
    /// Stops.
    pub stops: u64,
    /// Sum of the rewards that clients reported.
    pub total_reward: f64,
}

/// What all sessions write.
struct Records {
    counts: ServeCounts,
    session: tectum::Session,
}

/// A server, until it is dropped.
pub struct Server {
    address: Address,
    em_brain: Option<EmBrainAddresses>,
    served: Arc<Served>,
    records: Arc<Mutex<Records>>,
    _waker: Waker,
    _workers: Workers,
}

impl Server {
    /// Begins to serve.
    ///
    /// # Errors
    /// `Invalid` for an address that other machines reach, without a token, and for a body that
    /// em-brain's frames cannot express; `Io` for an address that is in use; errors of the device.
    pub fn start(served: Served, settings: &ServeSettings) -> Result<Self> {
        let (listener, address) = bind(&settings.address, settings.token.as_ref())?;
        let mut session = tectum::Session::new(&served.device);
        if let Some(brain) = &*served.spare.lock().unwrap_or_else(PoisonError::into_inner) {
            session.uses_code(&brain.code());
            brain
                .inputs()
                .into_iter()
                .for_each(|input| session.reads(input));
        }
        let records = Arc::new(Mutex::new(Records {
            counts: ServeCounts::default(),
            session,
        }));
        let served = Arc::new(served);
        let computing = Computing::default();
        let desk = Desk {
            served: served.clone(),
            records: records.clone(),
            free: Arc::new(Semaphore::new(settings.max_sessions)),
            token: settings.token.clone(),
            max_sessions: settings.max_sessions,
            max_rate: settings.max_rate,
            computing: computing.clone(),
        };
        // One more than computes: it answers pings, and accepts.
        let workers = Workers::start(settings.max_sessions + 1)?;
        let em_brain = settings.em_brain.as_ref();
        let em_brain = em_brain.map(|settings| em_brain::start(settings, desk.clone(), &workers));
        let em_brain = em_brain.transpose()?;
        let app = Router::new()
            .route("/", get(enter))
            .route("/healthz", get(|| async { "OK\n" }))
            .with_state(desk);
        let waker = Waker::start(workers.handle(), computing)?;
        workers.spawn(async move {
            match BoundedListener::new(listener) {
                Ok(listener) => {
                    let _ = axum::serve(listener, app).await;
                }
                Err(error) => tracing::error!(%error, "the listener failed"),
            }
        });
        Ok(Self {
            address,
            em_brain,
            served,
            records,
            _waker: waker,
            _workers: workers,
        })
    }

    /// Where it listens.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Where it serves the robots of em-brain, if it does.
    pub fn em_brain(&self) -> Option<EmBrainAddresses> {
        self.em_brain
    }

    /// What it has counted so far.
    pub fn counts(&self) -> ServeCounts {
        self.records
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .counts
    }

    /// The receipt so far: device, code, latencies of answers and counts.
    pub fn receipt(&self) -> Receipt {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        let counts = records.counts;
        records.session.record_workload(json!({
            "body": self.served.body.name,
            "body_settings": self.served.settings[0],
            "brain": self.served.brain_name,
            "brain_settings": self.served.settings[1],
            "served": counts,
        }));
        records.session.receipt()
    }
}

/// What a handler knows.
#[derive(Clone)]
struct Desk {
    served: Arc<Served>,
    records: Arc<Mutex<Records>>,
    free: Arc<Semaphore>,
    token: Option<Token>,
    max_sessions: usize,
    max_rate: u32,
    computing: Computing,
}

impl Desk {
    fn count(&self, change: impl FnOnce(&mut ServeCounts)) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut records.counts);
    }

    /// Starts the task of a client's own brain; the permit lasts as long as the brain.
    fn start_session(&self, permit: OwnedSemaphorePermit) -> SessionEnds {
        let (give, requests) = mpsc::channel::<Request>(MAX_QUEUED);
        let (answer, replies) = mpsc::channel::<Reply>(MAX_QUEUED);
        let Self {
            served,
            records,
            computing,
            ..
        } = self.clone();
        let session = session::run(served, records, computing, requests, answer);
        tokio::spawn(async move {
            session.await;
            // The next client may come when this brain is gone.
            drop(permit);
        });
        SessionEnds {
            requests: give,
            replies,
        }
    }
}

/// The two ends of a client's session that the task of its socket has.
struct SessionEnds {
    requests: mpsc::Sender<Request>,
    replies: mpsc::Receiver<Reply>,
}

/// Accepts a client.
async fn enter(
    State(desk): State<Desk>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    if let Some(refusal) = refusal(&headers, desk.token.as_ref()) {
        desk.count(|counts| counts.refused += 1);
        return refusal.into_response();
    }
    let Ok(permit) = desk.free.clone().try_acquire_owned() else {
        desk.count(|counts| counts.refused += 1);
        let text = format!("{} clients are connected, the maximum\n", desk.max_sessions);
        return (StatusCode::SERVICE_UNAVAILABLE, text).into_response();
    };
    upgrade
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .on_upgrade(|socket| talk(desk, Socket::Accepted(Box::new(socket)), permit))
}

/// One client: its frames here, its brain in a task of its own.
async fn talk(desk: Desk, mut socket: Socket, permit: OwnedSemaphorePermit) {
    desk.count(|counts| counts.sessions += 1);
    let reason = exchange(&desk, &mut socket, permit).await.err();
    if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
        // A client that is gone reads no reason.
        let _ = socket.send(Frame::Text(reason.clone())).await;
        let _ = socket.send(Frame::Close(reason)).await;
    }
}

/// Requests and answers until the end: `Err` with the reason that the client is sent, empty where
/// it is gone.
async fn exchange(
    desk: &Desk,
    socket: &mut Socket,
    permit: OwnedSemaphorePermit,
) -> std::result::Result<(), String> {
    let gone = |_| String::new();
    let metadata = desk.served.introduction(Message::default());
    let metadata = metadata.to_bytes().map_err(|error| error.to_string())?;
    socket
        .send(Frame::Binary(metadata.into()))
        .await
        .map_err(gone)?;
    let SessionEnds {
        requests,
        mut replies,
    } = desk.start_session(permit);
    let (mut rate, begin) = (Rate::new(desk.max_rate), Instant::now());
    loop {
        tokio::select! {
            frame = socket.receive() => {
                let frame = frame.map_err(gone)?;
                if !rate.count(begin.elapsed().as_nanos() as u64) {
                    return Err(format!("more than {} frames per second", desk.max_rate));
                }
                match frame {
                    Frame::Binary(content) => {
                        let request = Request { content: content.into(), arrived: Instant::now() };
                        match requests.try_send(request) {
                            Ok(()) => {}
                            Err(TrySendError::Full(_)) => {
                                return Err(format!("more than {MAX_QUEUED} requests wait for an answer"));
                            }
                            // Its last reply has the reason.
                            Err(TrySendError::Closed(_)) => {}
                        }
                    }
                    Frame::Text(_) => return Err("a text frame; requests are binary frames of MessagePack".to_owned()),
                    Frame::Close(_) => return Err(String::new()),
                    Frame::Ping(_) | Frame::Pong(_) => {}
                }
            }
            reply = replies.recv() => match reply {
                Some(Reply::Answer(content)) => socket.send(Frame::Binary(content.into())).await.map_err(gone)?,
                Some(Reply::Error(reason)) => return Err(reason),
                Some(Reply::End) => {
                    let _ = socket.send(Frame::Close(String::new())).await;
                    return Ok(());
                }
                None => return Err("the session ended".to_owned()),
            },
        }
    }
}
