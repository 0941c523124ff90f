//! A faulty network between a loop and a body: it drops, delays, repeats, exchanges and corrupts
//! frames of WebSocket, and passes the handshake and control frames as they are.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How many of a thousand frames have a fault of each kind.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    pub dropped: u32,
    pub delayed: u32,
    pub repeated: u32,
    pub exchanged: u32,
    pub corrupted: u32,
}

/// What a proxy did.
#[derive(Debug, Default)]
pub struct Done {
    pub frames: AtomicU64,
    pub faults: AtomicU64,
}

/// Starts a proxy to an address; returns its own.
pub fn start(target: SocketAddr, faults: Faults, seed: u64) -> (SocketAddr, Arc<Done>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    let done = Arc::new(Done::default());
    let counts = done.clone();
    std::thread::spawn(move || {
        for (number, from) in listener.incoming().enumerate() {
            let (Ok(from), Ok(to)) = (from, TcpStream::connect(target)) else {
                continue;
            };
            let _ = (from.set_nodelay(true), to.set_nodelay(true));
            for (direction, (from, to)) in [(&from, &to), (&to, &from)].into_iter().enumerate() {
                let (Ok(from), Ok(to)) = (from.try_clone(), to.try_clone()) else {
                    continue;
                };
                let mut pipe = Pipe {
                    from,
                    to,
                    faults,
                    random: seed ^ ((number as u64) << 8) ^ direction as u64,
                    waiting: None,
                    done: counts.clone(),
                };
                std::thread::spawn(move || {
                    // Either end closes both.
                    let _ = pipe.run();
                    let _ = pipe.from.shutdown(Shutdown::Both);
                    let _ = pipe.to.shutdown(Shutdown::Both);
                });
            }
        }
    });
    (address, done)
}

/// One direction.
struct Pipe {
    from: TcpStream,
    to: TcpStream,
    faults: Faults,
    random: u64,
    /// A frame that is sent after the next one.
    waiting: Option<Vec<u8>>,
    done: Arc<Done>,
}

impl Pipe {
    fn run(&mut self) -> std::io::Result<()> {
        self.pass_handshake()?;
        loop {
            let frame = self.read_frame()?;
            if frame[0] & 0x0f != 2 {
                self.to.write_all(&frame)?;
                continue;
            }
            self.done.frames.fetch_add(1, Ordering::Relaxed);
            self.pass(frame)?;
        }
    }

    /// Up to the empty line.
    fn pass_handshake(&mut self) -> std::io::Result<()> {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            self.from.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        self.to.write_all(&head)
    }

    fn read_frame(&mut self) -> std::io::Result<Vec<u8>> {
        let mut frame = vec![0; 2];
        self.from.read_exact(&mut frame)?;
        let more = match frame[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        };
        let mut length = vec![0; more];
        self.from.read_exact(&mut length)?;
        let size = match more {
            0 => u64::from(frame[1] & 0x7f),
            _ => length
                .iter()
                .fold(0, |size, byte| size << 8 | u64::from(*byte)),
        };
        let mask = if frame[1] & 0x80 == 0 { 0 } else { 4 };
        frame.extend(length);
        let start = frame.len();
        frame.resize(start + mask + size as usize, 0);
        self.from.read_exact(&mut frame[start..])?;
        Ok(frame)
    }

    fn pass(&mut self, mut frame: Vec<u8>) -> std::io::Result<()> {
        let fault = self.below(1000);
        let Faults {
            dropped,
            delayed,
            repeated,
            exchanged,
            corrupted,
        } = self.faults;
        let bounds = [dropped, delayed, repeated, exchanged, corrupted];
        let mut end = 0;
        let kind = bounds.iter().position(|count| {
            end += count;
            fault < end
        });
        self.done
            .faults
            .fetch_add(u64::from(kind.is_some()), Ordering::Relaxed);
        let before = self.waiting.take();
        match kind {
            Some(0) => {}
            Some(1) => {
                let time = Duration::from_micros(u64::from(self.below(5000)));
                std::thread::sleep(time);
                self.to.write_all(&frame)?;
            }
            Some(2) => {
                self.to.write_all(&frame)?;
                self.to.write_all(&frame)?;
            }
            Some(3) if before.is_none() => {
                self.waiting = Some(frame);
                return Ok(());
            }
            Some(4) => {
                // The end of a frame is its content, masked or not.
                let size = frame.len() as u32;
                for _ in 0..=self.below(3) {
                    let place = (size - 1 - self.below(size.min(100) - 8)) as usize;
                    frame[place] ^= 1 << self.below(8);
                }
                self.to.write_all(&frame)?;
            }
            _ => self.to.write_all(&frame)?,
        }
        before.map_or(Ok(()), |before| self.to.write_all(&before))
    }

    /// A number below a bound (xorshift).
    fn below(&mut self, bound: u32) -> u32 {
        self.random |= 1;
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        ((self.random >> 32) as u32) % bound.max(1)
    }
}
