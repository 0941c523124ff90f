//! Foxglove's WebSocket protocol: the streams of a run as topics with ROS 2 messages, for Foxglove,
//! Lichtblick and PlotJuggler.
//!
//! Each group of series of a stream is a topic whose messages have a header and a float64 for each
//! series, by name; events are `rcl_interfaces/msg/Log`. The time of a message is the run's.
//!
//! # Source
//! Foxglove WebSocket protocol, `ws-protocol`: `serverInfo`, `advertise`, `subscribe`,
//! `unsubscribe`, message data (opcode 1) and time (opcode 2).

use std::collections::BTreeMap;

use axum::extract::ws::WebSocketUpgrade;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value as Json, json};
use tectum_control::live::{Event, EventKind, StreamSpec, Update, values_of};
use tectum_control::ros::{Definition, Encoder, Number, Value};
use tokio::sync::broadcast::error::RecvError;

use super::viewer::{Served, Viewer, close, send, send_json};
use super::{Batch, Desk, Joined, gate};
use crate::socket::{Frame, Socket};

/// The names of the protocol, the present one first.
const PROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];
/// The longest message of a client.
const MAX_MESSAGE: usize = 1 << 16;
/// Subscriptions of a client.
const MAX_SUBSCRIPTIONS: usize = 1024;
/// The opcodes of binary messages.
const MESSAGE_DATA: u8 = 1;
const TIME: u8 = 2;
/// The levels of `rcl_interfaces/msg/Log`.
const INFO: u64 = 20;
const WARN: u64 = 30;

/// Accepts a client.
pub(super) fn enter(desk: Desk, headers: &HeaderMap, upgrade: WebSocketUpgrade) -> Response {
    if !gate::shows_token(&desk, headers) {
        return gate::unauthorized();
    }
    let upgrade = upgrade.protocols(PROTOCOLS);
    if upgrade.selected_protocol().is_none() {
        let reason = "the subprotocol foxglove.sdk.v1 is needed; the page's feed is /live\n";
        return (StatusCode::BAD_REQUEST, reason).into_response();
    }
    upgrade
        .max_message_size(MAX_MESSAGE)
        .max_frame_size(MAX_MESSAGE)
        .on_upgrade(move |socket| async move {
            let mut socket = Socket::Accepted(Box::new(socket));
            let viewer = Viewer::new(desk.clone());
            let ended = serve(&desk, &mut socket).await;
            close(&mut socket, ended).await;
            drop(viewer);
        })
}

/// What a client sends.
#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Request {
    Subscribe { subscriptions: Vec<Subscription> },
    Unsubscribe { subscription_ids: Vec<u32> },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Subscription {
    id: u32,
    channel_id: usize,
}

/// A topic.
struct Channel {
    topic: String,
    definition: Definition,
    encoder: Encoder,
    source: Source,
}

/// Where the messages of a topic come from.
enum Source {
    /// Columns of a stream.
    Series {
        stream: usize,
        columns: Vec<usize>,
    },
    Events,
}

/// A client's topics and subscriptions.
struct Session {
    channels: Vec<Channel>,
    /// The id of the first channel: channels that are described again have others.
    first_id: usize,
    /// The number of a channel by the id of its subscription.
    subscriptions: BTreeMap<u32, usize>,
    message: Vec<u8>,
}

async fn serve(desk: &Desk, socket: &mut Socket) -> Served<()> {
    let Joined {
        descriptions,
        batches,
        ..
    } = desk.join();
    let mut session = Session {
        channels: channels(&desk.0.live.specs()).map_err(|error| error.to_string())?,
        first_id: 0,
        subscriptions: BTreeMap::new(),
        message: Vec::new(),
    };
    let information = json!({
        "op": "serverInfo",
        "name": format!("tectum: {}", desk.0.live.about().title),
        "capabilities": ["time"],
        "supportedEncodings": [],
        "metadata": {},
    });
    send_json(socket, &information).await?;
    send_json(socket, &session.advertisement()).await?;
    let Some(mut feed) = batches else {
        return Ok(());
    };
    loop {
        tokio::select! {
            batch = feed.recv() => match batch {
                Ok(Batch::Frames(update, _)) => session.send_frames(socket, &update).await?,
                Ok(Batch::Events(events)) => {
                    for (event, _) in &*events {
                        session.send_event(socket, event).await?;
                    }
                }
                Ok(Batch::Run(number, _)) if number > descriptions => {
                    session.describe_again(desk, socket).await?;
                }
                Ok(Batch::Run(..) | Batch::Text(_)) => {}
                Err(RecvError::Lagged(count)) => {
                    desk.count_lost(count);
                    let text = format!("this client was too slow and lost {count} batches");
                    send_json(socket, &status(1, &text)).await?;
                    // A description may be among them.
                    session.describe_again(desk, socket).await?;
                }
                Err(RecvError::Closed) => return Ok(()),
            },
            frame = socket.receive() => match frame.map_err(|_| String::new())? {
                Frame::Text(text) => {
                    if let Err(reason) = session.obey(&text) {
                        send_json(socket, &status(2, &reason)).await?;
                    }
                }
                Frame::Close(_) => return Err(String::new()),
                // Messages of clients are not advertised as a capability.
                Frame::Binary(_) | Frame::Ping(_) | Frame::Pong(_) => {}
            }
        }
    }
}

/// A message for the client's user: level 1 is a warning, 2 an error.
fn status(level: u8, message: &str) -> Json {
    json!({ "op": "status", "level": level, "message": message })
}

impl Session {
    fn advertisement(&self) -> Json {
        let channels = self.channels.iter().enumerate().map(|(id, channel)| {
            json!({
                "id": self.first_id + id,
                "topic": channel.topic,
                "encoding": "cdr",
                "schemaName": channel.definition.name(),
                "schema": channel.definition.to_text(),
                "schemaEncoding": "ros2msg",
            })
        });
        json!({ "op": "advertise", "channels": channels.collect::<Vec<_>>() })
    }

    /// Replaces the channels after the run was described again.
    async fn describe_again(&mut self, desk: &Desk, socket: &mut Socket) -> Served<()> {
        let channels = channels(&desk.0.live.specs()).map_err(|error| error.to_string())?;
        let ids: Vec<usize> = (self.first_id..).take(self.channels.len()).collect();
        self.first_id += self.channels.len();
        self.channels = channels;
        self.subscriptions.clear();
        let gone = json!({ "op": "unadvertise", "channelIds": ids });
        send_json(socket, &gone).await?;
        send_json(socket, &self.advertisement()).await
    }

    fn obey(&mut self, text: &str) -> Served<()> {
        let request = serde_json::from_str(text).map_err(|error| format!("request: {error}"))?;
        match request {
            Request::Subscribe { subscriptions } => {
                for Subscription { id, channel_id } in subscriptions {
                    let place = channel_id.checked_sub(self.first_id);
                    let place = place.filter(|place| *place < self.channels.len());
                    let place = place
                        .ok_or_else(|| format!("subscribe: there is no channel {channel_id}"))?;
                    if self.subscriptions.len() >= MAX_SUBSCRIPTIONS {
                        return Err(format!("more than {MAX_SUBSCRIPTIONS} subscriptions"));
                    }
                    self.subscriptions.insert(id, place);
                }
            }
            Request::Unsubscribe { subscription_ids } => {
                for id in subscription_ids {
                    self.subscriptions.remove(&id);
                }
            }
        }
        Ok(())
    }

    async fn send_frames(&mut self, socket: &mut Socket, update: &Update) -> Served<()> {
        let Self {
            channels,
            subscriptions,
            message,
            ..
        } = self;
        for frame in update.frames() {
            let (_, time_ns) = Update::step_and_time(frame);
            for (id, place) in &*subscriptions {
                let channel = &channels[*place];
                let Source::Series { stream, columns } = &channel.source else {
                    continue;
                };
                if *stream != update.stream {
                    continue;
                }
                let values: Vec<f32> = values_of(frame, update.series).collect();
                let numbers = columns.iter().map(|column| f64::from(values[*column]));
                let numbers = numbers.map(|number| Value::Number(Number::Float(number)));
                let values: Vec<Value<'_>> = stamp(time_ns).into_iter().chain(numbers).collect();
                let encoded = channel.encoder.encode(&values, message);
                encoded.map_err(|error| error.to_string())?;
                send(socket, data(*id, time_ns, message)).await?;
            }
        }
        match update.frames().next_back().map(Update::step_and_time) {
            Some((_, time_ns)) => send(socket, time(time_ns)).await,
            None => Ok(()),
        }
    }

    async fn send_event(&mut self, socket: &mut Socket, event: &Event) -> Served<()> {
        let Self {
            channels,
            subscriptions,
            message,
            ..
        } = self;
        let time_ns = (event.time_s * 1e9).round() as u64;
        let level = match event.kind {
            EventKind::Control => INFO,
            EventKind::Injected | EventKind::Fallback | EventKind::Recovery => WARN,
        };
        let [seconds, nanoseconds] = stamp(time_ns);
        let values = [
            seconds,
            nanoseconds,
            Value::Number(Number::Unsigned(level)),
            Value::Text("tectum"),
            Value::Text(&event.text),
        ];
        for (id, place) in &*subscriptions {
            let channel = &channels[*place];
            if matches!(channel.source, Source::Events) {
                let encoded = channel.encoder.encode(&values, message);
                encoded.map_err(|error| error.to_string())?;
                send(socket, data(*id, time_ns, message)).await?;
            }
        }
        Ok(())
    }
}

/// Seconds and nanoseconds of a time.
fn stamp(time_ns: u64) -> [Value<'static>; 2] {
    let (seconds, nanoseconds) = (time_ns / 1_000_000_000, time_ns % 1_000_000_000);
    [seconds, nanoseconds].map(|number| Value::Number(Number::Unsigned(number)))
}

fn data(subscription: u32, time_ns: u64, message: &[u8]) -> Frame {
    let head = [
        &[MESSAGE_DATA][..],
        &subscription.to_le_bytes(),
        &time_ns.to_le_bytes(),
    ];
    Frame::Binary([&head.concat(), message].concat().into())
}

fn time(time_ns: u64) -> Frame {
    Frame::Binary([&[TIME][..], &time_ns.to_le_bytes()].concat().into())
}

/// The topics of streams, and the one of events.
fn channels(specs: &[StreamSpec]) -> tectum::Result<Vec<Channel>> {
    let mut found = Vec::new();
    for (stream, spec) in specs.iter().enumerate() {
        let mut groups: Vec<(String, Vec<usize>)> = Vec::new();
        for (column, series) in spec.series.iter().enumerate() {
            let name = format!("{:?}", series.group);
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, columns)) => columns.push(column),
                None => groups.push((name, vec![column])),
            }
        }
        for (group, columns) in groups {
            let names = columns.iter().map(|column| &*spec.series[*column].name);
            let names = field_names(names);
            let definition = definition(&group, &names)?;
            let stamp = ["header.stamp.sec", "header.stamp.nanosec"].map(str::to_owned);
            let paths: Vec<String> = stamp.into_iter().chain(names).collect();
            found.push(Channel {
                topic: format!("/{}", group.to_lowercase()),
                encoder: Encoder::new(&definition, &paths)?,
                definition,
                source: Source::Series { stream, columns },
            });
        }
    }
    let definition = Definition::known("rcl_interfaces/msg/Log")?;
    let paths = ["stamp.sec", "stamp.nanosec", "level", "name", "msg"];
    found.push(Channel {
        topic: "/events".to_owned(),
        encoder: Encoder::new(&definition, &paths)?,
        definition,
        source: Source::Events,
    });
    Ok(found)
}

/// A message type with a header and named numbers.
fn definition(group: &str, names: &[String]) -> tectum::Result<Definition> {
    let fields = names.iter().map(|name| format!("float64 {name}\n"));
    let fields: String = fields.collect();
    let header = Definition::known("std_msgs/msg/Header")?.to_text();
    let text = format!("std_msgs/Header header\n{fields}===\nMSG: std_msgs/Header\n{header}");
    Definition::parse(&format!("tectum_msgs/msg/{group}"), &text)
}

/// Names as fields of ROS may have them: small letters, digits and single underscores, each once.
fn field_names<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut fields: Vec<String> = Vec::new();
    for name in names {
        let mut field = String::new();
        for c in name.chars() {
            if c.is_ascii_alphanumeric() {
                field.push(c.to_ascii_lowercase());
            } else if !field.is_empty() && !field.ends_with('_') {
                field.push('_');
            }
        }
        let field = field.trim_end_matches('_');
        let field = match field.starts_with(|c: char| c.is_ascii_lowercase()) && field != "header" {
            true => field.to_owned(),
            false => format!("n_{field}").trim_end_matches('_').to_owned(),
        };
        let numbered = (2..).map(|number| format!("{field}_{number}"));
        let mut candidates = std::iter::once(field.clone()).chain(numbered);
        fields.extend(candidates.find(|candidate| !fields.contains(candidate)));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::field_names;

    #[test]
    fn names_of_channels_become_names_of_fields() {
        let names = [
            "cos(angle)",
            "Torque",
            "a__b",
            "a-b",
            "1st",
            "µ",
            "header",
            "_x_",
        ];
        let fields = field_names(names.into_iter());
        let expected = [
            "cos_angle",
            "torque",
            "a_b",
            "a_b_2",
            "n_1st",
            "n",
            "n_header",
            "x",
        ];
        assert_eq!(fields, expected);
    }
}
