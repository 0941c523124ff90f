//! A page, metrics and Foxglove's protocol for those who watch a run.
//!
//! One port serves all: `/` is the page, and with a WebSocket Foxglove's protocol; `/live` is the
//! page's feed; `/metrics`, `/healthz`, `/readyz`, `/receipt` and `/summary` are for programs.
//! `docs/watch.md` has the feed's format.
//!
//! ```text
//!  run's thread          I/O thread
//!  rings of frames ──▶ every 33 ms: Live::drain ─▶ encode once ─▶ queue of 64 batches
//!                                                                 │ each viewer at its own place,
//!                                                                 ▼ the oldest are overwritten
//!                                              viewer ◀─ send     viewer ◀─ send (stalled)
//!  Controls ◀────────────────────────────────── orders
//! ```
//!
//! A viewer that does not read loses batches and is informed how many; memory does not grow with it,
//! since all viewers share the batches. One that takes nothing for 30 s is disconnected.

mod client;
mod foxglove;
mod gate;
mod metrics;
mod page;
mod viewer;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::{Value, json};
use tectum::Result;
use tectum_control::live::{Event, Live, Past, Update};
use tokio::sync::broadcast;
use tokio_tungstenite::tungstenite::Bytes;

pub use self::client::LiveClient;
use crate::io_thread::IoThread;
use crate::server::{BoundedListener, bind};
use crate::{Address, Token};

/// Connections at the same time, viewers and requests.
const MAX_CONNECTIONS: usize = 512;
/// How often viewers get what is new.
const BATCH_PERIOD: Duration = Duration::from_millis(33);
/// Batches between two states.
const STATE_BATCHES: u64 = 4;
/// Batches that a viewer may be behind.
const MAX_BATCHES: usize = 64;
/// Time between two checks whether viewers are left.
const POLL: Duration = Duration::from_millis(5);

/// Where a run is shown, and to whom.
#[derive(Debug, Clone)]
pub struct LiveSettings {
    /// The address; port 0 is any free one.
    pub address: Address,
    /// What viewers must show; required for an address that other machines reach.
    pub token: Option<Token>,
    /// The folder of the page's files, for those who change them; the built-in ones if none.
    pub page: Option<PathBuf>,
}

impl LiveSettings {
    /// The built-in page without a token.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            token: None,
            page: None,
        }
    }
}

/// A run that is shown, until it is dropped.
pub struct LiveServer {
    address: Address,
    desk: Desk,
    _thread: IoThread,
}

/// What handlers know.
#[derive(Clone)]
struct Desk(Arc<Shared>);

struct Shared {
    live: Live,
    token: Option<Token>,
    page: Option<PathBuf>,
    /// When it began, for the rates of viewers.
    began: Instant,
    feed: Mutex<Feed>,
    viewers: AtomicUsize,
    lost_batches: AtomicU64,
    is_ending: AtomicBool,
}

/// What all viewers get. Behind one lock with the drain, so that a new viewer misses nothing
/// between the past and its first batch, and gets nothing twice.
struct Feed {
    /// None after the end.
    sender: Option<broadcast::Sender<Batch>>,
    batches: u64,
    /// The descriptions of the run that viewers have.
    descriptions: u64,
}

/// A part of the feed.
#[derive(Clone)]
enum Batch {
    /// Frames, and how the page gets them.
    Frames(Arc<Update>, Bytes),
    /// What runs and its streams, as the page gets it, and the number of this description.
    Run(u64, Arc<str>),
    /// Events, and how the page gets each of them.
    Events(Arc<[(Event, String)]>),
    /// A state or a drawing.
    Text(Arc<str>),
}

/// What a viewer begins with.
struct Joined {
    /// The number of the description that it gets.
    descriptions: u64,
    past: Past,
    /// Its place in what follows; none after the end.
    batches: Option<broadcast::Receiver<Batch>>,
}

impl LiveServer {
    /// Begins to show a run.
    ///
    /// # Errors
    /// `Invalid` for an address that other machines reach, without a token; `Io` for an address
    /// that is in use.
    pub fn start(live: &Live, settings: &LiveSettings) -> Result<Self> {
        let (listener, address) = bind(&settings.address, settings.token.as_ref())?;
        let (sender, _) = broadcast::channel(MAX_BATCHES);
        let desk = Desk(Arc::new(Shared {
            live: live.clone(),
            token: settings.token.clone(),
            page: settings.page.clone(),
            began: Instant::now(),
            feed: Mutex::new(Feed {
                sender: Some(sender),
                batches: 0,
                descriptions: 0,
            }),
            viewers: AtomicUsize::new(0),
            lost_batches: AtomicU64::new(0),
            is_ending: AtomicBool::new(false),
        }));
        let app = app(desk.clone());
        let thread = IoThread::start()?;
        thread.spawn(async move {
            match BoundedListener::new(listener) {
                Ok(listener) => {
                    let listener = listener.at_most(MAX_CONNECTIONS);
                    let _ = axum::serve(listener, app).await;
                }
                Err(error) => tracing::error!(%error, "the listener failed"),
            }
        });
        let drained = desk.clone();
        thread.spawn(async move {
            let mut ticks = tokio::time::interval(BATCH_PERIOD);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            while drained.send_news() {
                ticks.tick().await;
            }
        });
        Ok(Self {
            address,
            desk,
            _thread: thread,
        })
    }

    /// Where it is.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Those who watch now.
    pub fn viewers(&self) -> usize {
        self.desk.0.viewers.load(Ordering::Relaxed)
    }

    /// Batches that viewers have lost because they were too slow.
    pub fn lost_batches(&self) -> u64 {
        self.desk.0.lost_batches.load(Ordering::Relaxed)
    }

    /// Sends viewers the end of the run; those who come later get the past and the end.
    pub fn show_end(&self) {
        self.desk.0.is_ending.store(true, Ordering::Relaxed);
    }

    /// Sends viewers the end of the run and waits until they have it, at most for a time.
    pub fn close(self, limit: Duration) {
        self.show_end();
        let begin = Instant::now();
        let is_sent = || self.desk.feed().sender.is_none() && self.viewers() == 0;
        while !is_sent() && begin.elapsed() < limit {
            std::thread::sleep(POLL);
        }
    }
}

fn app(desk: Desk) -> Router {
    let guarded = Router::new()
        .route("/metrics", get(metrics::metrics))
        .route("/receipt", get(receipt))
        .route("/summary", get(summary))
        .route_layer(from_fn_with_state(desk.clone(), gate::require_token));
    Router::new()
        .route("/", get(page::index))
        .route("/{file}", get(page::file))
        .route("/live", get(viewer::enter))
        .route("/healthz", get(|| async { "OK\n" }))
        .route("/readyz", get(is_ready))
        .merge(guarded)
        .layer(from_fn_with_state(desk.clone(), gate::check))
        .with_state(desk)
}

impl Desk {
    fn feed(&self) -> std::sync::MutexGuard<'_, Feed> {
        self.0.feed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends what is new to all viewers; whether there will be more.
    fn send_news(&self) -> bool {
        let is_last = self.0.is_ending.load(Ordering::Relaxed);
        let mut feed = self.feed();
        // Read before the frames: those of a new stream follow its description.
        let descriptions = self.0.live.descriptions();
        let is_new = std::mem::replace(&mut feed.descriptions, descriptions) != descriptions;
        let news = self.0.live.drain();
        feed.batches += 1;
        let is_state_due = feed.batches.is_multiple_of(STATE_BATCHES) || is_last;
        if let Some(sender) = feed.sender.as_ref().filter(|to| to.receiver_count() > 0) {
            // The only error is that no viewer receives the batch.
            let send = |batch| drop(sender.send(batch));
            if is_new {
                let run = viewer::run(&self.0.live).to_string();
                send(Batch::Run(descriptions, run.into()));
            }
            for update in news.updates {
                let bytes = viewer::frames(&update);
                send(Batch::Frames(Arc::new(update), bytes));
            }
            if !news.events.is_empty() {
                let events = news.events.into_iter().map(|event| {
                    let text = viewer::event(&event).to_string();
                    (event, text)
                });
                send(Batch::Events(events.collect()));
            }
            let drawing = news.drawing.iter().map(viewer::drawing);
            let state = is_state_due.then(|| self.state());
            let texts = drawing.chain(state);
            texts.for_each(|text| send(Batch::Text(text.to_string().into())));
        }
        if is_last {
            // Viewers have the batches that are left, and then the end.
            feed.sender = None;
        }
        !is_last
    }

    /// Counts batches that a viewer has lost.
    fn count_lost(&self, count: u64) {
        self.0.lost_batches.fetch_add(count, Ordering::Relaxed);
    }

    /// Lets a viewer join.
    fn join(&self) -> Joined {
        let feed = self.feed();
        Joined {
            descriptions: self.0.live.descriptions(),
            past: self.0.live.past(),
            batches: feed.sender.as_ref().map(broadcast::Sender::subscribe),
        }
    }

    /// The run as it is now, for the page.
    fn state(&self) -> Value {
        let Shared { live, .. } = &*self.0;
        let controls = live.controls();
        json!({
            "type": "state",
            "paused": controls.is_paused(),
            "speed": controls.speed(),
            "stopped": controls.is_stop_ordered(),
            "dropped_frames": live.dropped_frames(),
            "viewers": self.0.viewers.load(Ordering::Relaxed),
            "quantities": quantities(live),
            "histograms": histograms(live),
        })
    }
}

/// The numbers that the run keeps, by name.
fn quantities(live: &Live) -> Value {
    let quantities = live.quantities();
    let numbers = quantities.iter().map(|quantity| {
        let value = quantity.value();
        // As a summary has them: counts are whole numbers.
        let number = match value.fract() == 0.0 && value.abs() < 1e15 {
            true => json!(value as i64),
            false => json!(value),
        };
        (quantity.name.to_owned(), number)
    });
    Value::Object(numbers.collect())
}

/// The counts of each bucket, by name.
fn histograms(live: &Live) -> Value {
    let histograms = live.histograms();
    let lists = histograms.iter().map(|histogram| {
        let mut before = 0;
        let buckets = histogram.cumulative().into_iter().map(|(bound_s, count)| {
            let own = count - std::mem::replace(&mut before, count);
            // Infinity is null.
            json!([bound_s, own])
        });
        (histogram.name.to_owned(), Value::Array(buckets.collect()))
    });
    Value::Object(lists.collect())
}

/// Whether steps arrive.
async fn is_ready(State(desk): State<Desk>) -> (StatusCode, &'static str) {
    match desk.0.live.is_ticking() {
        true => (StatusCode::OK, "ticking\n"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "no step within 2 s\n"),
    }
}

async fn receipt(State(desk): State<Desk>) -> Response {
    json_response(&desk.0.live.about().receipt)
}

/// The summary: the one of the run's end, and before it the numbers so far.
async fn summary(State(desk): State<Desk>) -> Response {
    let about = desk.0.live.about();
    let summary = about.summary.unwrap_or_else(|| {
        let mut numbers = quantities(&desk.0.live);
        numbers["end"] = Value::Null;
        numbers
    });
    json_response(&summary)
}

fn json_response(value: &Value) -> Response {
    let mut headers = HeaderMap::new();
    let kind = axum::http::HeaderValue::from_static("application/json");
    headers.insert(CONTENT_TYPE, kind);
    (headers, format!("{value:#}\n")).into_response()
}
