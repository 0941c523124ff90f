//! The page's feed: a WebSocket with texts of JSON and binary batches of frames.

use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::extract::State;
use axum::extract::ws::WebSocketUpgrade;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};
use tectum_control::body::schematic::Schematic;
use tectum_control::clock::ClockKind;
use tectum_control::live::{Event, EventKind, Live, Update};
use tokio::sync::broadcast::error::RecvError;
use tokio_tungstenite::tungstenite::Bytes;

use super::{Batch, Desk, Joined, gate};
use crate::serve::rate::Rate;
use crate::socket::{Frame, Socket};
use crate::token::is_same;

/// The version of the feed.
const PROTOCOL: u32 = 1;
/// The first byte of a batch of frames.
const FRAMES: u32 = 1;
/// The longest message of a viewer.
const MAX_ORDER: usize = 4096;
/// Orders of a viewer per second.
const MAX_ORDERS_PER_S: u32 = 200;
/// How long a viewer may take to show its token.
const TOKEN_LIMIT: Duration = Duration::from_secs(10);
/// Why a connection without a token ends; the page then asks again.
const NO_TOKEN: &str = "no token within 10 s";
/// How long a viewer may take nothing.
const STALL_LIMIT: Duration = Duration::from_secs(30);

/// What a viewer sends.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Order {
    /// The token, where one is needed.
    Token {
        token: String,
    },
    Pause,
    Continue,
    Step,
    /// Seconds of the run for each second; null for as fast as possible.
    Speed {
        speed: Option<f64>,
    },
    Stop,
}

/// Accepts a viewer.
pub(super) async fn enter(
    State(desk): State<Desk>,
    headers: HeaderMap,
    upgrade: WebSocketUpgrade,
) -> Response {
    let is_known = gate::shows_token(&desk, &headers);
    upgrade
        .max_message_size(MAX_ORDER)
        .max_frame_size(MAX_ORDER)
        .on_upgrade(move |socket| async move {
            let mut socket = Socket::Accepted(Box::new(socket));
            let ended = serve(desk, &mut socket, is_known).await;
            close(&mut socket, ended).await;
        })
}

/// Serves a viewer, which counts as one from its token on.
async fn serve(desk: Desk, socket: &mut Socket, is_known: bool) -> Served<()> {
    if !is_known {
        require_token(&desk, socket).await?;
    }
    Viewer::new(desk).serve(socket).await
}

async fn require_token(desk: &Desk, socket: &mut Socket) -> Served<()> {
    send_json(socket, &json!({ "type": "token" })).await?;
    let shown = tokio::time::timeout(TOKEN_LIMIT, socket.receive()).await;
    let shown = shown.map_err(|_| NO_TOKEN.to_owned())?;
    let is_right = match shown.map_err(|_| String::new())? {
        Frame::Text(text) => match serde_json::from_str(&text) {
            Ok(Order::Token { token: shown }) => {
                let token = desk.0.token.as_ref();
                token.is_none_or(|token| is_same(shown.as_bytes(), token.secret().as_bytes()))
            }
            _ => false,
        },
        _ => false,
    };
    match is_right {
        true => Ok(()),
        false => Err("the token is not the one of this run".to_owned()),
    }
}

/// Ends a connection, with the reason if it is an error.
pub(super) async fn close(socket: &mut Socket, ended: Served<()>) {
    // A viewer that is gone reads no reason, and a stalled one gets none.
    let close = socket.send(Frame::Close(ended.err().unwrap_or_default()));
    let _ = tokio::time::timeout(TOKEN_LIMIT, close).await;
}

/// One viewer; counted as long as it exists.
pub(super) struct Viewer {
    desk: Desk,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        self.desk.0.viewers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// `Err` with the reason that the viewer is sent, empty where it is gone.
pub(super) type Served<T> = Result<T, String>;

impl Viewer {
    pub fn new(desk: Desk) -> Self {
        desk.0.viewers.fetch_add(1, Ordering::Relaxed);
        Self { desk }
    }

    async fn serve(&self, socket: &mut Socket) -> Served<()> {
        let Joined {
            mut descriptions,
            past,
            mut batches,
        } = self.desk.join();
        send_json(socket, &run(&self.desk.0.live)).await?;
        // Freed one by one.
        for update in past.updates {
            if !update.words.is_empty() {
                send(socket, Frame::Binary(frames(&update))).await?;
            }
        }
        for known in past.events {
            send_json(socket, &event(&known)).await?;
        }
        if let Some(last) = past.drawing {
            send_json(socket, &drawing(&last)).await?;
        }
        send_json(socket, &self.desk.state()).await?;
        let mut rate = Rate::new(MAX_ORDERS_PER_S);
        while let Some(feed) = &mut batches {
            tokio::select! {
                batch = feed.recv() => match batch {
                    Ok(Batch::Frames(_, bytes)) => send(socket, Frame::Binary(bytes)).await?,
                    // It has this one.
                    Ok(Batch::Run(number, _)) if number <= descriptions => {}
                    Ok(Batch::Run(number, text)) => {
                        descriptions = number;
                        send(socket, Frame::Text((*text).to_owned())).await?;
                    }
                    Ok(Batch::Text(text)) => {
                        send(socket, Frame::Text((*text).to_owned())).await?;
                    }
                    Ok(Batch::Events(events)) => {
                        for (_, text) in &*events {
                            send(socket, Frame::Text(text.clone())).await?;
                        }
                    }
                    Err(RecvError::Lagged(count)) => {
                        self.desk.count_lost(count);
                        let lost = json!({ "type": "lost", "batches": count });
                        send_json(socket, &lost).await?;
                        // A description may be among them.
                        let present = self.desk.0.live.descriptions();
                        if present > descriptions {
                            descriptions = present;
                            send_json(socket, &run(&self.desk.0.live)).await?;
                        }
                    }
                    Err(RecvError::Closed) => batches = None,
                },
                frame = socket.receive() => {
                    let now_ns = self.desk.0.began.elapsed().as_nanos() as u64;
                    if !rate.count(now_ns) {
                        return Err(format!("more than {MAX_ORDERS_PER_S} orders per second"));
                    }
                    match frame.map_err(|_| String::new())? {
                        Frame::Text(text) => {
                            if let Err(reason) = self.obey(&text) {
                                let refused = json!({ "type": "refused", "reason": reason });
                                send_json(socket, &refused).await?;
                            }
                        }
                        Frame::Binary(_) => return Err("orders are texts of JSON".to_owned()),
                        Frame::Close(_) => return Err(String::new()),
                        Frame::Ping(_) | Frame::Pong(_) => {}
                    }
                }
            }
        }
        send_json(socket, &self.desk.state()).await?;
        let about = self.desk.0.live.about();
        let end = json!({ "type": "end", "summary": about.summary, "receipt": about.receipt });
        send_json(socket, &end).await
    }

    /// Does what an order says; an error is the reason why not.
    fn obey(&self, text: &str) -> Served<()> {
        let order: Order = serde_json::from_str(text).map_err(|error| format!("order: {error}"))?;
        let live = &self.desk.0.live;
        let controls = live.controls();
        let done = match &order {
            Order::Token { .. } => return Ok(()),
            Order::Pause => controls.pause(true).map(|()| "paused".to_owned()),
            Order::Continue => controls.pause(false).map(|()| "continued".to_owned()),
            // Many may follow each other.
            Order::Step => return controls.step().map_err(|error| error.to_string()),
            Order::Speed { speed } => controls.set_speed(*speed).map(|()| match speed {
                Some(speed) => format!("speed {speed}"),
                None => "as fast as possible".to_owned(),
            }),
            Order::Stop => {
                controls.stop();
                Ok("stopped".to_owned())
            }
        };
        let text = done.map_err(|error| error.to_string())?;
        let (step, time_s) = live.latest();
        live.add_event(Event {
            step,
            time_s,
            kind: EventKind::Control,
            text: format!("a viewer: {text}"),
        });
        Ok(())
    }
}

/// Sends a frame, unless the viewer takes nothing for too long.
pub(super) async fn send(socket: &mut Socket, frame: Frame) -> Served<()> {
    match tokio::time::timeout(STALL_LIMIT, socket.send(frame)).await {
        Ok(sent) => sent.map_err(|_| String::new()),
        Err(_) => Err("nothing was read for 30 s".to_owned()),
    }
}

pub(super) async fn send_json(socket: &mut Socket, value: &Value) -> Served<()> {
    send(socket, Frame::Text(value.to_string())).await
}

/// The first message, which is sent again when streams are added: what runs, and what its streams
/// have.
pub(super) fn run(live: &Live) -> Value {
    json!({
        "type": "run",
        "protocol": PROTOCOL,
        "version": env!("CARGO_PKG_VERSION"),
        "is_simulated": live.controls().clock() == ClockKind::Sim,
        "about": live.about(),
        "streams": live.specs(),
    })
}

/// An event, as the page gets it.
pub(super) fn event(event: &Event) -> Value {
    json!({ "type": "event", "event": event })
}

/// A drawing, as the page gets it.
pub(super) fn drawing(drawing: &Schematic) -> Value {
    json!({ "type": "drawing", "drawing": drawing })
}

/// A batch of frames: 16 bytes of head, and the words of the frames. All numbers are little-endian.
pub(super) fn frames(update: &Update) -> Bytes {
    let left_out = u32::try_from(update.left_out).unwrap_or(u32::MAX);
    let head = [FRAMES, update.stream as u32, update.width as u32, left_out];
    let words = head.iter().chain(&update.words);
    let bytes: Vec<u8> = words.flat_map(|word| word.to_le_bytes()).collect();
    bytes.into()
}
