//! Where the other process is.

use std::fmt;
use std::net::IpAddr;

use tectum::{Error, Result};

/// The scheme of addresses.
const SCHEME: &str = "ws://";

/// An address `ws://HOST:PORT`, with a path if there is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
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
        let refused = |reason: &str| {
            Error::invalid(format!(
                "address {text:?}: {reason}; ws://HOST:PORT is needed"
            ))
        };
        let rest = text
            .strip_prefix(SCHEME)
            .ok_or_else(|| refused("its scheme is not ws"))?;
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
        let Self { host, port, path } = self;
        let path = if path == "/" { "" } else { path };
        match host.contains(':') {
            true => write!(f, "{SCHEME}[{host}]:{port}{path}"),
            false => write!(f, "{SCHEME}{host}:{port}{path}"),
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
}
