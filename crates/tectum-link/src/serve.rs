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
//! | `commands` | `commands` | `commands`: numbers by name, or nil for the command's own schedule |
//! | `reset` | `reset` | the next observation is the first of another episode |
//! | `stop` | `stop` | observations are answered with the safe action until a `reset` |
//! | `close` | | the connection ends |
//!
//! An answer has the `sequence` of its message. An observation with a number that is not above the
//! last one, and one behind which a later one waits, has no answer. What is refused is answered
//! with `error`, and the session continues; in openpi's protocol it is a text frame, and the
//! connection ends with the code 1011.

mod client;
pub(crate) mod em_brain;
pub(crate) mod openpi;
pub(crate) mod rate;
mod session;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request as HttpRequest, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper_util::rt::TokioIo;
use hyper_util::server::conn::auto::upgrade::downcast;
use serde::Serialize;
use serde_json::{Value, json};
use tectum::{Device, Error, Receipt, Result, WorkProgress};
use tectum_control::body::BodySpec;
use tectum_control::brain::Brain;
use tectum_control::scenario::Scenario;
use tectum_control::scenario::build::{brain_recipe, driven_spec, open_device};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

use self::client::{Attendant, Client, Clients};
pub use self::em_brain::{EmBrainAddresses, EmBrainSettings};
use self::session::{Reply, Request};
use crate::io_thread::IoThread;
use crate::server::{BoundedListener, Counted, bind, refusal};
use crate::{Address, Token};

/// How long the end of a server waits for brains that compute.
const END: Duration = Duration::from_secs(1);

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
    clients: Clients,
    /// Ends with the last thread that serves.
    ended: Receiver<()>,
    /// None only when dropped.
    io: Option<IoThread>,
    _attendant: Attendant,
}

impl Drop for Server {
    /// Ends the connections, and waits for their threads, but not long for a brain that computes.
    fn drop(&mut self) {
        drop(self.io.take());
        self.clients.close();
        let _ = self.ended.recv_timeout(END);
    }
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
        let (clients, (running, ended)) = (Clients::default(), channel());
        let desk = Desk {
            served: served.clone(),
            records: records.clone(),
            free: Arc::new(Semaphore::new(settings.max_sessions)),
            token: settings.token.clone(),
            max_sessions: settings.max_sessions,
            max_rate: settings.max_rate,
            clients: clients.clone(),
            _running: running,
        };
        let io = IoThread::start()?;
        let em_brain = settings.em_brain.as_ref();
        let em_brain = em_brain.map(|settings| em_brain::start(settings, desk.clone(), &io));
        let em_brain = em_brain.transpose()?;
        let app = Router::new()
            .route("/", get(enter))
            .route("/healthz", get(|| async { "OK\n" }))
            .with_state(desk);
        let attendant = Attendant::start(clients.clone())?;
        io.spawn(async move {
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
            clients,
            ended,
            io: Some(io),
            _attendant: attendant,
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
    clients: Clients,
    /// Dropped with the last thread that serves.
    _running: Sender<()>,
}

impl Desk {
    fn count(&self, change: impl FnOnce(&mut ServeCounts)) {
        let mut records = self.records.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut records.counts);
    }

    /// Starts the thread of a client.
    fn start_client(
        &self,
        socket: Counted,
        behind: Vec<u8>,
        permit: OwnedSemaphorePermit,
    ) -> std::io::Result<()> {
        let (stream, connection) = socket.into_std()?;
        let client = Arc::new(Client::new(stream, behind, self.max_rate)?);
        self.clients.add(&client);
        self.start_thread(move |desk| {
            client.serve(desk);
            drop(client);
            // The next client may come when this one and its brain are gone.
            drop((connection, permit));
        })
    }

    /// Starts the thread of a client's own brain, for a client that has its socket on another
    /// thread; the permit lasts as long as the brain.
    fn start_session(&self, permit: OwnedSemaphorePermit) -> std::io::Result<SessionEnds> {
        let (give, requests) = mpsc::channel::<Request>(1);
        let (answer, replies) = mpsc::channel::<Reply>(1);
        self.start_thread(move |desk| {
            session::run(&desk.served, &desk.records, requests, &answer);
            drop(permit);
        })?;
        Ok(SessionEnds {
            requests: give,
            replies,
        })
    }

    fn start_thread(&self, work: impl FnOnce(&Self) + Send + 'static) -> std::io::Result<()> {
        let own = self.clone();
        let thread = std::thread::Builder::new().name("tectum-serve".to_owned());
        thread.spawn(move || work(&own)).map(|_| ())
    }
}

/// The two ends of a client's session that the task of its socket has.
struct SessionEnds {
    requests: mpsc::Sender<Request>,
    replies: mpsc::Receiver<Reply>,
}

/// Accepts a client, which has a thread of its own.
async fn enter(State(desk): State<Desk>, mut request: HttpRequest) -> Response {
    let refuse = |status: StatusCode, text: String| {
        desk.count(|counts| counts.refused += 1);
        (status, text).into_response()
    };
    if let Some((status, text)) = refusal(request.headers(), desk.token.as_ref()) {
        return refuse(status, text.to_owned());
    }
    let response = match create_response_with_body(&request, Body::empty) {
        Ok(response) => response,
        Err(error) => return refuse(StatusCode::BAD_REQUEST, format!("{error}\n")),
    };
    let Ok(permit) = desk.free.clone().try_acquire_owned() else {
        let text = format!("{} clients are connected, the maximum\n", desk.max_sessions);
        return refuse(StatusCode::SERVICE_UNAVAILABLE, text);
    };
    let upgraded = hyper::upgrade::on(&mut request);
    let own = desk.clone();
    tokio::spawn(async move {
        // A client that is gone before its connection is one needs nothing.
        let Some(parts) = upgraded.await.ok().and_then(|all| downcast(all).ok()) else {
            return;
        };
        let (io, behind): (TokioIo<Counted>, _) = (parts.io, parts.read_buf);
        if let Err(error) = own.start_client(io.into_inner(), behind.into(), permit) {
            tracing::warn!(%error, "a client is not served");
        }
    });
    response
}
