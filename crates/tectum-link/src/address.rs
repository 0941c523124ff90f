//! Where the other process is.

use std::fmt;
use std::net::IpAddr;

use tectum::{Error, Result};

/// The scheme of WebSocket.
const SCHEME: &str = "ws://";
/// The scheme of sockets of ZeroMQ.
const TCP_SCHEME: &str = "tcp://";
/// The scheme of endpoints of zenoh.
const ZENOH_SCHEME: &str = "tcp/";
/// The scheme of pages.
const HTTP_SCHEME: &str = "http://";

/// An address `ws://HOST:PORT` or `http://HOST:PORT`, with a path if there is one,
/// `tcp://HOST:PORT`, or `tcp/HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    scheme: &'static str,
    host: String,
    port: u16,
    path: String,
}

impl Address {
    /// Reads an address. Without a port it has 80.
    ///
    /// # Errors
    /// `Invalid` for another scheme, an empty host or a port that is no number.
    ///
    /// # Example
    /// ```
    /// use tectum_link::Address;
    /// let address = Address::parse("ws://127.0.0.1:9000")?;
    /// assert!(address.is_loopback());
    /// assert!(Address::parse("wss://a").unwrap_err().to_string().contains("ws://HOST:PORT"));
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        Self::of_scheme(SCHEME, text)
    }

    /// Reads an address of a socket of ZeroMQ, `tcp://HOST:PORT`.
    ///
    /// # Errors
    /// `Invalid` for another scheme, an empty host, a port that is missing or no number, or a path.
    ///
    /// # Example
    /// ```
    /// use tectum_link::Address;
    /// assert!(Address::parse_tcp("tcp://127.0.0.1:30001")?.is_loopback());
    /// assert!(Address::parse_tcp("tcp://127.0.0.1").is_err());
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn parse_tcp(text: &str) -> Result<Self> {
        Self::host_and_port_of(TCP_SCHEME, text)
    }

    /// Reads an endpoint of zenoh, `tcp/HOST:PORT`.
    ///
    /// # Errors
    /// `Invalid` for another scheme, an empty host, a port that is missing or no number, or a path.
    ///
    /// # Example
    /// ```
    /// use tectum_link::Address;
    /// assert!(Address::parse_zenoh("tcp/127.0.0.1:7447")?.is_loopback());
    /// assert!(Address::parse_zenoh("udp/127.0.0.1:7447").is_err());
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn parse_zenoh(text: &str) -> Result<Self> {
        Self::host_and_port_of(ZENOH_SCHEME, text)
    }

    fn host_and_port_of(scheme: &'static str, text: &str) -> Result<Self> {
        let address = Self::of_scheme(scheme, text)?;
        // An address is printed as it is read, unless a part of it was missing.
        match address.path == "/" && !text.ends_with('/') && address.to_string() == text {
            true => Ok(address),
            false => Err(Error::invalid(format!(
                "address {text:?}: it is not a host and a port; {scheme}HOST:PORT is needed"
            ))),
        }
    }

    /// Reads an address of a page: `HOST:PORT`, with or without `http://`, or a port alone, which
    /// is one of this machine.
    ///
    /// # Errors
    /// As [`Address::parse`].
    ///
    /// # Example
    /// ```
    /// use tectum_link::Address;
    /// assert_eq!(Address::parse_http("8080")?.to_string(), "http://127.0.0.1:8080");
    /// # Ok::<(), tectum::Error>(())
    /// ```
    pub fn parse_http(text: &str) -> Result<Self> {
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            return Self::of_scheme(HTTP_SCHEME, &format!("{HTTP_SCHEME}127.0.0.1:{text}"));
        }
        let authority = text.strip_prefix(HTTP_SCHEME).unwrap_or(text);
        Self::of_scheme(HTTP_SCHEME, &format!("{HTTP_SCHEME}{authority}"))
    }

    fn of_scheme(scheme: &'static str, text: &str) -> Result<Self> {
        let refused = |reason: &str| {
            Error::invalid(format!(
                "address {text:?}: {reason}; {scheme}HOST:PORT is needed"
            ))
        };
        let rest = text.strip_prefix(scheme).ok_or_else(|| {
            let name = scheme.trim_end_matches(['/', ':']);
            refused(&format!("its scheme is not {name}"))
        })?;
        let (authority, path) = rest.find('/').map_or((rest, "/"), |at| rest.split_at(at));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let port = port
                    .parse()
                    .map_err(|_| refused("the port is no number from 0 to 65535"))?;
                (host, port)
            }
            _ => (authority, 80),
        };
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if host.is_empty() || !host.chars().all(is_host) {
            return Err(refused("it has no valid host"));
        }
        if !path.chars().all(|c| c.is_ascii_graphic()) {
            return Err(refused("its path has characters that a URL does not have"));
        }
        Ok(Self {
            scheme,
            host: host.to_owned(),
            port,
            path: path.to_owned(),
        })
    }

    /// Whether it is on this machine: `localhost` or an address of the loopback interface.
    pub fn is_loopback(&self) -> bool {
        is_loopback_host(&self.host)
    }

    /// Host and port, as a resolver accepts them.
    pub fn host_and_port(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    /// The address with another port.
    #[must_use]
    pub fn with_port(self, port: u16) -> Self {
        Self { port, ..self }
    }
}

/// Whether a host is this machine.
pub(crate) fn is_loopback_host(host: &str) -> bool {
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse().is_ok_and(|ip: IpAddr| ip.is_loopback())
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scheme,
            host,
            port,
            path,
        } = self;
        let path = if path == "/" { "" } else { path };
        match host.contains(':') {
            true => write!(f, "{scheme}[{host}]:{port}{path}"),
            false => write!(f, "{scheme}{host}:{port}{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Address;

    #[test]
    fn addresses_are_read_and_printed() {
        for (text, printed, is_loopback) in [
            ("ws://127.0.0.1:9000", "ws://127.0.0.1:9000", true),
            ("ws://localhost:1/", "ws://localhost:1", true),
            ("ws://[::1]:9000/a/b", "ws://[::1]:9000/a/b", true),
            ("ws://robot.local", "ws://robot.local:80", false),
            (
                "ws://127.0.0.1.example.org:9",
                "ws://127.0.0.1.example.org:9",
                false,
            ),
            ("ws://0.0.0.0:9000", "ws://0.0.0.0:9000", false),
        ] {
            let address = Address::parse(text).expect(text);
            assert_eq!(
                (address.to_string(), address.is_loopback()),
                (printed.to_owned(), is_loopback)
            );
        }
        for text in [
            "http://a:1",
            "ws://",
            "ws://:80",
            "ws://a:70000",
            "ws://a b:1",
            "ws://a:1/\r\nHost: b",
            "ws://a@b:1",
        ] {
            assert!(Address::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn pages_have_a_host_and_a_port_or_a_port_alone() {
        for (text, printed) in [
            ("127.0.0.1:8080", "http://127.0.0.1:8080"),
            ("http://localhost:1/", "http://localhost:1"),
            ("[::1]:8080", "http://[::1]:8080"),
            ("8080", "http://127.0.0.1:8080"),
        ] {
            let address = Address::parse_http(text).expect(text);
            assert_eq!(address.to_string(), printed);
        }
        for text in ["", "80800", "https://a:1", "a b:1"] {
            let error = Address::parse_http(text).expect_err(text).to_string();
            assert!(error.ends_with("http://HOST:PORT is needed"), "{error}");
        }
    }

    #[test]
    fn sockets_of_zeromq_have_a_host_and_a_port() {
        for text in [
            "tcp://127.0.0.1:30001",
            "tcp://[::1]:5558",
            "tcp://0.0.0.0:0",
        ] {
            let address = Address::parse_tcp(text).expect(text);
            assert_eq!(address.to_string(), text);
        }
        for text in [
            "ws://127.0.0.1:1",
            "tcp://127.0.0.1",
            "tcp://*:5558",
            "tcp://a:1/",
            "tcp://a:1/b",
            "ipc:///tmp/a",
        ] {
            let error = Address::parse_tcp(text).expect_err(text).to_string();
            assert!(error.ends_with("tcp://HOST:PORT is needed"), "{error}");
        }
    }
}
