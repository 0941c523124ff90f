//! The server that other processes connect to: one port for WebSocket and HTTP, with limits.

use std::net::{SocketAddr, ToSocketAddrs};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::http::header::{AUTHORIZATION, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::serve::Listener;
use tectum::{Error, Result};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::address::is_loopback_host;
use crate::{Address, Token, token};

/// Connections at the same time, those before the handshake included.
const MAX_CONNECTIONS: usize = 64;

/// Binds an address.
///
/// # Errors
/// `Invalid` for an address that other machines reach, without a token; `Io` with what the
/// operating system reports.
pub(crate) fn bind(
    address: &Address,
    token: Option<&Token>,
) -> Result<(std::net::TcpListener, Address)> {
    token::require_for(address, token)?;
    let failed = |source| Error::io(format!("address {address}"), source);
    let found: Vec<SocketAddr> = address
        .host_and_port()
        .to_socket_addrs()
        .map_err(failed)?
        .collect();
    let listener = std::net::TcpListener::bind(&found[..]).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    let port = listener.local_addr().map_err(failed)?.port();
    Ok((listener, address.clone().with_port(port)))
}

/// Why a request is refused before its handshake; none if it is not.
pub(crate) fn refusal(
    headers: &HeaderMap,
    token: Option<&Token>,
) -> Option<(StatusCode, &'static str)> {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or("?"));
    if text(ORIGIN).is_some_and(|origin| !is_local_origin(origin)) {
        return Some((
            StatusCode::FORBIDDEN,
            "pages of other origins are refused\n",
        ));
    }
    let is_known = token.is_none_or(|token| token.is_shown_by(text(AUTHORIZATION)));
    (!is_known).then_some((
        StatusCode::UNAUTHORIZED,
        "a token is needed: Authorization: Api-Key TOKEN\n",
    ))
}

/// Whether a page of this machine sends a request; programs send no origin.
pub(crate) fn is_local_origin(origin: &str) -> bool {
    authority_of(origin).is_some_and(is_local_authority)
}

/// Host and port of an origin.
pub(crate) fn authority_of(origin: &str) -> Option<&str> {
    origin
        .strip_prefix("http://")
        .or_else(|| origin.strip_prefix("https://"))
}

/// Whether a host, with a port if there is one, is this machine.
pub(crate) fn is_local_authority(authority: &str) -> bool {
    let host = match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    };
    is_loopback_host(host)
}

/// A listener with a bounded number of connections.
pub(crate) struct BoundedListener {
    listener: TcpListener,
    free: Arc<Semaphore>,
}

impl BoundedListener {
    /// Begins to accept; must be called on the I/O thread.
    pub fn new(listener: std::net::TcpListener) -> std::io::Result<Self> {
        Ok(Self {
            listener: TcpListener::from_std(listener)?,
            free: Arc::new(Semaphore::new(MAX_CONNECTIONS)),
        })
    }

    /// With another number of connections at the same time.
    pub fn at_most(self, max: usize) -> Self {
        Self {
            free: Arc::new(Semaphore::new(max)),
            ..self
        }
    }
}

impl Listener for BoundedListener {
    type Io = Counted;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Counted, SocketAddr) {
        loop {
            let Ok(permit) = self.free.clone().acquire_owned().await else {
                // The semaphore is never closed.
                std::future::pending::<()>().await;
                continue;
            };
            let (stream, address) = Listener::accept(&mut self.listener).await;
            // Small messages are sent at once; without this option they are only later.
            let _ = stream.set_nodelay(true);
            return (Counted { stream, permit }, address);
        }
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that counts until it ends.
pub(crate) struct Counted {
    stream: TcpStream,
    permit: OwnedSemaphorePermit,
}

impl Counted {
    /// The connection for a thread that blocks in it, and what counts it until it is dropped.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn into_std(self) -> std::io::Result<(std::net::TcpStream, OwnedSemaphorePermit)> {
        Ok((self.stream.into_std()?, self.permit))
    }

    /// The address of this machine that the other side has connected to.
    pub fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.stream.local_addr()
    }
}

impl AsyncRead for Counted {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Counted {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use super::is_local_origin;

    #[test]
    fn only_pages_of_this_machine_are_local() {
        for (origin, is_local) in [
            ("http://localhost:8000", true),
            ("http://127.0.0.1", true),
            ("https://[::1]:8000", true),
            ("http://example.org", false),
            ("http://localhost.example.org", false),
            ("http://127.0.0.1.example.org:80", false),
            ("http://localhost@example.org", false),
            ("null", false),
            ("file://localhost", false),
        ] {
            assert_eq!(is_local_origin(origin), is_local, "{origin}");
        }
    }
}
