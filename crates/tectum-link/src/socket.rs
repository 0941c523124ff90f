//! A WebSocket of either side: one that we connected, or one that we accepted.

use axum::extract::ws;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Bytes, Utf8Bytes};

/// The maximum length of a message in bytes, pictures included.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;
/// The code of a close after an error, as openpi's server sends it.
const INTERNAL_ERROR: u16 = 1011;
/// The code of an orderly close.
const NORMAL: u16 = 1000;

/// What a socket delivers and accepts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Frame {
    Binary(Bytes),
    Text(String),
    Ping(Bytes),
    Pong(Bytes),
    /// The end, with its reason.
    Close(String),
}

/// Limits of the messages of a socket.
pub(crate) fn client_limits() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE))
        .max_frame_size(Some(MAX_MESSAGE))
}

/// A WebSocket. Pings are answered while it is read.
pub(crate) enum Socket {
    Connected(Box<WebSocketStream<TcpStream>>),
    Accepted(Box<ws::WebSocket>),
}

impl Socket {
    /// The next frame; an error for a connection that is lost. It may be dropped while it waits.
    pub async fn receive(&mut self) -> Result<Frame, String> {
        let ended = || "the other side ended the connection".to_owned();
        match self {
            Self::Connected(socket) => loop {
                let message = socket.next().await.ok_or_else(ended)?;
                let message = message.map_err(|error| error.to_string())?;
                if let Some(frame) = of_tungstenite(message) {
                    return Ok(frame);
                }
            },
            Self::Accepted(socket) => {
                let message = socket.next().await.ok_or_else(ended)?;
                message.map(of_axum).map_err(|error| error.to_string())
            }
        }
    }

    /// Sends a frame.
    pub async fn send(&mut self, frame: Frame) -> Result<(), String> {
        match self {
            Self::Connected(socket) => {
                let sent = socket.send(to_tungstenite(frame)).await;
                sent.map_err(|error| error.to_string())
            }
            Self::Accepted(socket) => {
                let sent = socket.send(to_axum(frame)).await;
                sent.map_err(|error| error.to_string())
            }
        }
    }
}

pub(crate) fn of_tungstenite(message: tungstenite::Message) -> Option<Frame> {
    use tungstenite::Message;
    Some(match message {
        Message::Binary(bytes) => Frame::Binary(bytes),
        Message::Text(text) => Frame::Text(text.as_str().to_owned()),
        Message::Ping(bytes) => Frame::Ping(bytes),
        Message::Pong(bytes) => Frame::Pong(bytes),
        Message::Close(frame) => {
            Frame::Close(frame.map_or_else(String::new, |frame| frame.reason.as_str().to_owned()))
        }
        Message::Frame(_) => return None,
    })
}

pub(crate) fn to_tungstenite(frame: Frame) -> tungstenite::Message {
    use tungstenite::protocol::CloseFrame;
    use tungstenite::{Message, protocol::frame::coding::CloseCode};
    match frame {
        Frame::Binary(bytes) => Message::Binary(bytes),
        Frame::Text(text) => Message::Text(text.into()),
        Frame::Ping(bytes) => Message::Ping(bytes),
        Frame::Pong(bytes) => Message::Pong(bytes),
        Frame::Close(reason) => Message::Close(Some(CloseFrame {
            code: CloseCode::from(close_code(&reason)),
            reason: close_reason(&reason),
        })),
    }
}

fn of_axum(message: ws::Message) -> Frame {
    match message {
        ws::Message::Binary(bytes) => Frame::Binary(bytes),
        ws::Message::Text(text) => Frame::Text(text.as_str().to_owned()),
        ws::Message::Ping(bytes) => Frame::Ping(bytes),
        ws::Message::Pong(bytes) => Frame::Pong(bytes),
        ws::Message::Close(frame) => {
            Frame::Close(frame.map_or_else(String::new, |frame| frame.reason.as_str().to_owned()))
        }
    }
}

fn to_axum(frame: Frame) -> ws::Message {
    match frame {
        Frame::Binary(bytes) => ws::Message::Binary(bytes),
        Frame::Text(text) => ws::Message::Text(text.into()),
        Frame::Ping(bytes) => ws::Message::Ping(bytes),
        Frame::Pong(bytes) => ws::Message::Pong(bytes),
        Frame::Close(reason) => ws::Message::Close(Some(ws::CloseFrame {
            code: close_code(&reason),
            reason: close_reason(&reason).as_str().into(),
        })),
    }
}

fn close_code(reason: &str) -> u16 {
    if reason.is_empty() {
        NORMAL
    } else {
        INTERNAL_ERROR
    }
}

/// A reason as a close frame can have it: at most 123 bytes.
fn close_reason(reason: &str) -> Utf8Bytes {
    let mut end = reason.len().min(123);
    while !reason.is_char_boundary(end) {
        end -= 1;
    }
    reason[..end].to_owned().into()
}
