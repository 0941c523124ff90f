//! ZeroMQ's wire protocol, ZMTP 3.0 without security, of a side that accepts connections.
//!
//! ```text
//! greeting: ff 00×8 7f | u8 3 u8 0 | "NULL" padded to 20 | 00 | 00×31
//! command:  u8 04 | u8 length | u8 5 "READY" | (u8 length, name, u32 length, value) …
//! frame:    u8 flags: 1 more follow, 2 long, 4 command | u8 or u64 length | content
//! ```
//!
//! Lengths are big-endian. A crate with sockets of ZeroMQ would be less code, but `zeromq` 0.7
//! reserves the memory of a frame of any stated size before a byte of it arrives, queues 100,000
//! messages for a subscriber that does not read, and does not say which connection a message is
//! from. Its client is the peer of the tests.
//!
//! Source: <https://rfc.zeromq.org/spec/23/>.

use tectum::{Error, Result};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// Bytes of a greeting, and of its signature.
const GREETING: usize = 64;
const SIGNATURE: usize = 10;
const MECHANISM: &[u8; 20] = b"NULL\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
/// Flags of a frame.
const MORE: u8 = 1;
const LONG: u8 = 2;
const COMMAND: u8 = 4;
/// Frames of one message.
const MAX_FRAMES: usize = 8;
/// Bytes of a command.
const MAX_COMMAND: usize = 4096;
/// Memory that is reserved before content arrives.
const MAX_RESERVED: usize = 64 << 10;

/// The kind of a socket that accepts connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SocketKind {
    /// Answers requests.
    Router,
    /// Receives messages.
    Pull,
    /// Sends messages to subscribers.
    Publisher,
}

impl SocketKind {
    fn name(self) -> &'static str {
        match self {
            Self::Router => "ROUTER",
            Self::Pull => "PULL",
            Self::Publisher => "PUB",
        }
    }

    /// The kinds of sockets that connect to it.
    fn peers(self) -> &'static [&'static str] {
        match self {
            Self::Router => &["DEALER", "REQ"],
            Self::Pull => &["PUSH"],
            Self::Publisher => &["SUB", "XSUB"],
        }
    }
}

/// What a peer sent.
#[derive(Debug, PartialEq)]
pub(crate) enum Received {
    /// The frames of a message, at least one.
    Message(Vec<Vec<u8>>),
    /// A command's name and data.
    Command(Vec<u8>, Vec<u8>),
}

/// The receiving half of a connection.
#[derive(Debug)]
pub(crate) struct Reader<R> {
    stream: R,
    max_message: usize,
}

impl<R: AsyncRead + Unpin> Reader<R> {
    /// Reads messages of a maximum number of bytes.
    pub fn new(stream: R, max_message: usize) -> Self {
        Self {
            stream,
            max_message,
        }
    }

    /// Reads the greeting and the kind of the peer's socket.
    ///
    /// # Errors
    /// `Data` for bytes of another protocol, an older version, a security mechanism, or a kind of
    /// socket that does not connect to this one.
    pub async fn greet(&mut self, kind: SocketKind) -> Result<()> {
        let mut greeting = [0; GREETING];
        self.fill(&mut greeting).await?;
        if greeting[0] != 0xff || greeting[SIGNATURE - 1] != 0x7f {
            return Err(Error::data("it does not speak ZeroMQ's protocol"));
        }
        if greeting[SIGNATURE] < 3 {
            let version = greeting[SIGNATURE];
            return Err(Error::data(format!("ZMTP {version}; 3.0 is needed")));
        }
        if greeting[12..32] != MECHANISM[..] {
            return Err(Error::data("its security mechanism is not NULL"));
        }
        let Some(Received::Command(name, data)) = self.receive().await? else {
            return Err(Error::data("its first frame is not READY"));
        };
        let peer = match &name[..] {
            b"READY" => property(&data, b"Socket-Type"),
            _ => None,
        };
        let is_peer = |name: &&str| Some(name.as_bytes()) == peer;
        match kind.peers().iter().any(is_peer) {
            true => Ok(()),
            false => Err(Error::data(format!(
                "its socket is {:?}; a {} socket accepts {}",
                peer.map(String::from_utf8_lossy).unwrap_or_default(),
                kind.name(),
                kind.peers().join(" and ")
            ))),
        }
    }

    /// The next message or command; none if the connection ended before it.
    ///
    /// # Errors
    /// `Data` for a frame or a message that is too large, unknown flags, or a malformed command;
    /// `Io` if the connection ends within it.
    pub async fn receive(&mut self) -> Result<Option<Received>> {
        let mut frames: Vec<Vec<u8>> = Vec::new();
        let mut left = self.max_message;
        loop {
            let mut flags = [0];
            let read = self.stream.read(&mut flags).await.map_err(lost)?;
            let [flags] = flags;
            if read == 0 && frames.is_empty() {
                return Ok(None);
            } else if read == 0 {
                return Err(lost(std::io::ErrorKind::UnexpectedEof.into()));
            }
            let is_command = flags & COMMAND != 0;
            if flags & !(MORE | LONG | COMMAND) != 0 || (is_command && flags & MORE != 0) {
                return Err(Error::data(format!("a frame has the flags {flags:#04x}")));
            }
            let length = self.length(flags & LONG != 0).await?;
            let max = if is_command { MAX_COMMAND } else { left };
            let size = usize::try_from(length).ok().filter(|size| *size <= max);
            let Some(size) = size else {
                return Err(Error::data(format!(
                    "a frame has {length} bytes; {max} are the maximum"
                )));
            };
            let content = self.content(size).await?;
            if is_command {
                return command(content).map(Some);
            }
            left -= size;
            frames.push(content);
            if flags & MORE == 0 {
                return Ok(Some(Received::Message(frames)));
            }
            if frames.len() == MAX_FRAMES {
                return Err(Error::data(format!(
                    "a message has more than {MAX_FRAMES} frames"
                )));
            }
        }
    }

    async fn length(&mut self, is_long: bool) -> Result<u64> {
        let mut bytes = [0; 8];
        let begin = if is_long { 0 } else { 7 };
        self.fill(&mut bytes[begin..]).await?;
        Ok(u64::from_be_bytes(bytes))
    }

    async fn content(&mut self, size: usize) -> Result<Vec<u8>> {
        let mut content = Vec::with_capacity(size.min(MAX_RESERVED));
        let mut stream = (&mut self.stream).take(size as u64);
        stream.read_to_end(&mut content).await.map_err(lost)?;
        match content.len() == size {
            true => Ok(content),
            false => Err(lost(std::io::ErrorKind::UnexpectedEof.into())),
        }
    }

    async fn fill(&mut self, bytes: &mut [u8]) -> Result<()> {
        self.stream.read_exact(bytes).await.map_err(lost)?;
        Ok(())
    }
}

fn lost(source: std::io::Error) -> Error {
    Error::io("connection", source)
}

/// A command's name and data.
fn command(mut content: Vec<u8>) -> Result<Received> {
    let length = content.first().copied().map_or(0, usize::from);
    if length == 0 || content.len() <= length {
        return Err(Error::data("a command has no name"));
    }
    let data = content.split_off(length + 1);
    content.remove(0);
    Ok(Received::Command(content, data))
}

/// The value of a property of READY; its name is compared without regard to case.
fn property<'d>(mut data: &'d [u8], name: &[u8]) -> Option<&'d [u8]> {
    loop {
        let (length, rest) = data.split_first()?;
        let (own, rest) = rest.split_at_checked(usize::from(*length))?;
        let (length, rest) = rest.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (value, rest) = rest.split_at_checked(length)?;
        if own.eq_ignore_ascii_case(name) {
            return Some(value);
        }
        data = rest;
    }
}

/// The bytes that a socket sends first, before it reads.
pub(crate) fn introduction(kind: SocketKind) -> Vec<u8> {
    let mut bytes = vec![0; GREETING];
    bytes[0] = 0xff;
    bytes[SIGNATURE - 1] = 0x7f;
    bytes[SIGNATURE] = 3;
    bytes[12..32].copy_from_slice(MECHANISM);
    let name = kind.name().as_bytes();
    let mut ready = b"\x05READY\x0bSocket-Type".to_vec();
    ready.extend((name.len() as u32).to_be_bytes());
    ready.extend(name);
    bytes.extend([COMMAND, ready.len() as u8]);
    bytes.extend(ready);
    bytes
}

/// The bytes of a message.
pub(crate) fn encode(frames: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(frames.iter().map(|frame| frame.len() + 9).sum());
    for (place, frame) in frames.iter().enumerate() {
        let more = if place + 1 < frames.len() { MORE } else { 0 };
        match u8::try_from(frame.len()) {
            Ok(length) => bytes.extend([more, length]),
            Err(_) => {
                bytes.push(more | LONG);
                bytes.extend((frame.len() as u64).to_be_bytes());
            }
        }
        bytes.extend(*frame);
    }
    bytes
}

/// Sends bytes.
///
/// # Errors
/// `Io` if the connection has ended.
pub(crate) async fn send(stream: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> Result<()> {
    stream.write_all(bytes).await.map_err(lost)?;
    stream.flush().await.map_err(lost)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What the whole of some bytes contains.
    pub(crate) fn received(bytes: &[u8], max_message: usize) -> Result<Vec<Received>> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime.expect("a runtime").block_on(async {
            let mut reader = Reader::new(bytes, max_message);
            let mut all = Vec::new();
            while let Some(received) = reader.receive().await? {
                all.push(received);
            }
            Ok(all)
        })
    }

    fn greeted(bytes: &[u8], kind: SocketKind) -> Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        runtime
            .expect("a runtime")
            .block_on(Reader::new(bytes, 100).greet(kind))
    }

    #[test]
    fn messages_are_read_as_they_are_written() {
        let long = vec![7; 300];
        let frames: [&[u8]; 3] = [b"", b"ab", &long];
        let bytes = encode(&frames);
        assert_eq!(bytes[..6], [1, 0, 1, 2, b'a', b'b']);
        assert_eq!(bytes[6..15], [2, 0, 0, 0, 0, 0, 0, 1, 44]);
        let twice = [bytes.clone(), bytes].concat();
        let message = || Received::Message(frames.map(<[u8]>::to_vec).to_vec());
        assert_eq!(
            received(&twice, 302).expect("whole"),
            [message(), message()]
        );
        let subscription = [
            4, 10, 9, b'S', b'U', b'B', b'S', b'C', b'R', b'I', b'B', b'E', b'x',
        ];
        assert!(received(&subscription, 100).is_err(), "it is cut off");
    }

    #[test]
    fn sizes_flags_and_ends_are_checked_before_memory_is_used() {
        for (bytes, reason) in [
            (
                &[2, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff][..],
                "9223372036854775807 bytes; 100",
            ),
            (&[0, 101], "a frame has 101 bytes; 100 are the maximum"),
            (&[1, 60, 0], "connection"),
            (&[8, 0], "a frame has the flags 0x08"),
            (&[5, 1, 0], "a frame has the flags 0x05"),
            (&[4, 1, 0], "a command has no name"),
            (&[4, 3, 3, b'a', b'b'], "a command has no name"),
            (&[1, 0].repeat(9), "more than 8 frames"),
            (&[1, 0], "connection"),
        ] {
            let error = received(bytes, 100).expect_err(reason).to_string();
            assert!(error.contains(reason), "{error}");
        }
        let parts = [&[1, 60][..], &[0; 60], &[0, 60], &[0; 60]].concat();
        let error = received(&parts, 100).expect_err("120 bytes").to_string();
        assert_eq!(error, "a frame has 60 bytes; 40 are the maximum");
    }

    #[test]
    fn a_peer_is_of_the_other_kind() {
        // The other side's greeting has the same form.
        let own = |name: &[u8]| {
            let mut ready = b"\x05READY\x08Identity\0\0\0\0\x0bsocket-type\0\0\0".to_vec();
            ready.push(name.len() as u8);
            ready.extend(name);
            let mut bytes = introduction(SocketKind::Router)[..GREETING].to_vec();
            bytes.extend([COMMAND, ready.len() as u8]);
            [bytes, ready].concat()
        };
        assert!(greeted(&own(b"DEALER"), SocketKind::Router).is_ok());
        assert!(greeted(&own(b"REQ"), SocketKind::Router).is_ok());
        assert!(greeted(&own(b"PUSH"), SocketKind::Pull).is_ok());
        assert!(greeted(&own(b"SUB"), SocketKind::Publisher).is_ok());
        let with = |place: usize, value: u8| {
            let mut bytes = own(b"PUSH");
            bytes[place] = value;
            bytes
        };
        for (bytes, reason) in [
            (
                own(b"SUB"),
                "its socket is \"SUB\"; a PULL socket accepts PUSH",
            ),
            (with(0, b'G'), "it does not speak ZeroMQ's protocol"),
            (with(10, 1), "ZMTP 1; 3.0 is needed"),
            (with(12, b'C'), "its security mechanism is not NULL"),
            (with(GREETING, 0), "its first frame is not READY"),
            (
                with(GREETING + 3, b'X'),
                "its socket is \"\"; a PULL socket accepts PUSH",
            ),
        ] {
            let error = greeted(&bytes, SocketKind::Pull)
                .expect_err(reason)
                .to_string();
            assert_eq!(error, reason);
        }
    }
}
