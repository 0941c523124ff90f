//! A viewer that is a program: the texts of a run's feed.

use std::net::TcpStream;
use std::time::Duration;

use serde_json::Value;
use tectum::{Error, Result};
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::http::header::AUTHORIZATION;
use tokio_tungstenite::tungstenite::{self, HandshakeError, Message, WebSocket};

use crate::{Address, Token};

/// How long the run may send nothing: it sends its state several times in a second.
const LIMIT: Duration = Duration::from_secs(10);

/// A connection to a run that is shown, as a viewer.
pub struct LiveClient {
    socket: WebSocket<TcpStream>,
    address: Address,
}

impl LiveClient {
    /// Connects.
    ///
    /// # Errors
    /// `Io` where nothing listens; `Invalid` for a run that refuses, such as without its token, and
    /// for what is no run.
    pub fn connect(address: &Address, token: Option<&Token>) -> Result<Self> {
        let failed = |source| Error::io(format!("address {address}"), source);
        let refused = |reason: String| Error::invalid(format!("address {address}: {reason}"));
        let (host, port) = address.host_and_port();
        let stream = TcpStream::connect((host, port)).map_err(failed)?;
        stream.set_read_timeout(Some(LIMIT)).map_err(failed)?;
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let mut request = format!("ws://{host}:{port}/live")
            .into_client_request()
            .map_err(|error| refused(error.to_string()))?;
        if let Some(token) = token {
            let value = HeaderValue::from_str(&token.header());
            let value = value.map_err(|error| refused(error.to_string()))?;
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        match tungstenite::client(request, stream) {
            Ok((socket, _)) => Ok(Self {
                socket,
                address: address.clone(),
            }),
            Err(HandshakeError::Failure(tungstenite::Error::Http(response))) => {
                let status = response.status();
                Err(refused(format!("it is no run that is shown: {status}")))
            }
            Err(error) => Err(refused(error.to_string())),
        }
    }

    /// The next text; none after the end of the connection.
    ///
    /// # Errors
    /// `Io` for a connection that is lost; `Invalid` where a token is needed; `Data` for a text that
    /// is no JSON.
    pub fn next_text(&mut self) -> Result<Option<Value>> {
        let at = format!("address {}", self.address);
        loop {
            let text = match self.socket.read() {
                Ok(Message::Text(text)) => text,
                Ok(Message::Close(frame)) => {
                    let reason = frame.map(|frame| frame.reason.as_str().to_owned());
                    return match reason.filter(|reason| !reason.is_empty()) {
                        Some(reason) => Err(Error::invalid(format!("{at}: {reason}"))),
                        None => Ok(None),
                    };
                }
                Ok(_) => continue,
                Err(tungstenite::Error::ConnectionClosed | tungstenite::Error::AlreadyClosed) => {
                    return Ok(None);
                }
                Err(error) => return Err(Error::io(at, std::io::Error::other(error))),
            };
            let value: Value = serde_json::from_str(text.as_str())
                .map_err(|source| Error::data(at.clone()).with_source(source))?;
            if value["type"] == "token" {
                return Err(Error::invalid(format!("{at}: a token is needed")));
            }
            return Ok(Some(value));
        }
    }
}
