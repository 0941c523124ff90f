//! What a body delivers, whatever carries it.

use tectum_control::message::Message;
use tokio_tungstenite::tungstenite::Bytes;

/// What a body delivers.
#[derive(Debug)]
#[cfg_attr(
    not(unix),
    allow(dead_code, reason = "serial ports make messages and unreadable lines")
)]
pub(crate) enum Incoming {
    /// The bytes of a message.
    Content(Bytes),
    /// A message.
    Message(Message),
    /// A line that cannot be read.
    Unreadable,
    /// The answer to a ping.
    Pong(Bytes),
    /// Nothing that is used; the connection works.
    Other,
}
