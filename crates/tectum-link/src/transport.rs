//! What carries the messages of a body: a WebSocket, the lines of a serial port, or topics of ROS 2.

use tectum::Result;
use tectum_control::message::Message;
use tokio_tungstenite::tungstenite::Bytes;

use crate::handshake::{self, Introduction, PROTOCOL};
use crate::incoming::Incoming;
use crate::mailbox::Mailbox;
#[cfg(feature = "ros2")]
use crate::ros2::node::Ros2Node;
#[cfg(unix)]
use crate::serial::port::SerialPort;
use crate::socket::{Frame, Socket};

/// A connection to a body.
pub(crate) enum Transport {
    Socket(Socket),
    #[cfg(unix)]
    Serial(Box<SerialPort>),
    #[cfg(feature = "ros2")]
    Ros2(Box<Ros2Node>),
}

impl Transport {
    /// Waits for what the body is. Why it is not known yet is noted in the mailbox.
    ///
    /// # Errors
    /// `Data` for a body that states nothing valid, and a connection that is lost.
    pub async fn introduce(&mut self, name: &str, mailbox: &Mailbox) -> Result<Introduction> {
        match self {
            Self::Socket(socket) => {
                let hello = Message::new("hello", 0).with("protocol", PROTOCOL);
                handshake::ask(socket, &hello, name).await
            }
            #[cfg(unix)]
            Self::Serial(port) => port.introduce(mailbox).await,
            #[cfg(feature = "ros2")]
            Self::Ros2(node) => node.introduce(mailbox).await,
        }
    }

    /// What arrives next; an error for a connection that is lost. It may be dropped while it waits.
    pub async fn receive(&mut self) -> std::result::Result<Incoming, String> {
        let socket = match self {
            Self::Socket(socket) => socket,
            #[cfg(unix)]
            Self::Serial(port) => return port.receive().await,
            #[cfg(feature = "ros2")]
            Self::Ros2(node) => return node.receive().await,
        };
        let ended = "the body ended the connection";
        match socket.receive().await? {
            Frame::Binary(content) => Ok(Incoming::Content(content)),
            Frame::Pong(content) => Ok(Incoming::Pong(content)),
            // Answered by the socket.
            Frame::Ping(_) => Ok(Incoming::Other),
            Frame::Text(text) => Err(format!("the body sent a text: {text}")),
            Frame::Close(reason) if reason.is_empty() => Err(ended.to_owned()),
            Frame::Close(reason) => Err(format!("{ended}: {reason}")),
        }
    }

    /// Sends a message.
    pub async fn send(&mut self, message: &Message) -> std::result::Result<(), String> {
        match self {
            Self::Socket(socket) => {
                let content = message.to_bytes().map_err(|error| error.to_string())?;
                socket.send(Frame::Binary(content.into())).await
            }
            #[cfg(unix)]
            Self::Serial(port) => port.send(message).await,
            #[cfg(feature = "ros2")]
            Self::Ros2(node) => node.send(message).await,
        }
    }

    /// Whether the body answers pings, so that one that delivers nothing is lost. Serial ports and
    /// topics have none: a machine that is silent is not unplugged.
    pub fn has_pings(&self) -> bool {
        matches!(self, Self::Socket(_))
    }

    /// Sends a ping, where there are pings.
    pub async fn ping(&mut self, content: Bytes) -> std::result::Result<(), String> {
        match self {
            Self::Socket(socket) => socket.send(Frame::Ping(content)).await,
            #[cfg(unix)]
            Self::Serial(_) => Ok(()),
            #[cfg(feature = "ros2")]
            Self::Ros2(_) => Ok(()),
        }
    }

    /// Ends the connection, with a reason unless it is empty.
    pub async fn close(&mut self, reason: String) -> std::result::Result<(), String> {
        match self {
            Self::Socket(socket) => socket.send(Frame::Close(reason)).await,
            #[cfg(unix)]
            Self::Serial(_) => Ok(()),
            #[cfg(feature = "ros2")]
            Self::Ros2(node) => node.close().await,
        }
    }
}
