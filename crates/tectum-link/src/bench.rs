//! The suite of `tectum bench link`: what an answer over a socket costs, next to the same bytes
//! over TCP between two blocking threads.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tectum::{CodeObject, Device, Error, LatencyHistogram, Result, RunStats};
use tectum_bench::bench::{Alternative, Case, Roofline, Suite, Workload};
use tectum_control::body::body;
use tectum_control::brain::zero::Zero;
use tectum_control::message::{Array, Message};
use tokio_tungstenite::tungstenite::{self, Bytes, WebSocket};

use crate::{Address, ServeSettings, Served, Server};

/// Numbers of the observation and of the action.
const BODY: &str = "pendulum";

/// The suite.
pub fn suite() -> Suite {
    Suite {
        name: "link",
        about: "an observation and its action over a socket of this machine",
        cases,
    }
}

fn cases(_: &Device) -> Vec<Case> {
    vec![Case {
        key: "link.serve.zero".to_owned(),
        roofline: Roofline::Copy,
        threads: None,
        amount: (request().len() + answer().len()) as f64,
        prepare: Box::new(|device| Ok(Box::new(Answers::start(device)?))),
        alternatives: vec![Alternative {
            name: "TCP between two blocking threads".to_owned(),
            prepare: Box::new(|_| Ok(Box::new(Echo::start()?))),
        }],
    }]
}

/// An observation of openpi's protocol.
fn request() -> Vec<u8> {
    let state = Array::of_f32(&[0.1, 0.2]);
    let message = Message::default().with_array("observation/state", &state);
    message.to_bytes().unwrap_or_default()
}

/// An answer as the server sends it.
fn answer() -> Vec<u8> {
    let timing = Message::default()
        .with("infer_ms", 0.001)
        .with("prev_total_ms", 0.001);
    let actions = Array {
        shape: vec![1, 1],
        ..Array::of_f32(&[0.0])
    };
    let message = Message::default()
        .with_array("actions", &actions)
        .with_map("server_timing", timing);
    message.to_bytes().unwrap_or_default()
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::data(format!("bench link: {error}"))
}

/// A served brain, and a blocking client.
struct Answers {
    client: WebSocket<TcpStream>,
    request: Bytes,
    /// Ends after the client.
    _server: ServerOfAnswers,
}

enum ServerOfAnswers {
    Own { _server: Box<Server> },
    Process(Child),
}

impl Drop for ServerOfAnswers {
    fn drop(&mut self) {
        if let Self::Process(process) = self {
            // One that has ended needs no end.
            let _ = process.kill();
            let _ = process.wait();
        }
    }
}

impl Answers {
    /// A zero brain.
    fn start(device: &Device) -> Result<Self> {
        let spec = body(BODY, None)?.spec().clone();
        let own = spec.clone();
        let served = Served::new(spec, device.clone(), move || Ok(Box::new(Zero::new(&own))))?;
        let mut settings = ServeSettings::new(Address::parse("ws://127.0.0.1:0")?);
        settings.max_rate = u32::MAX;
        let server = Server::start(served, &settings)?;
        let address = server.address().clone();
        Self::connect(
            &address,
            ServerOfAnswers::Own {
                _server: Box::new(server),
            },
        )
    }

    /// A policy of zeros on openpi's own server.
    fn start_openpi(openpi: &OpenpiServer<'_>) -> Result<Self> {
        let free = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let port = free.local_addr().map_err(failed)?.port();
        drop(free);
        let process = Command::new(openpi.python)
            .args(["-c", OPENPI, &port.to_string()])
            .env("PYTHONPATH", openpi.checkout.join("src"))
            .spawn()
            .map_err(|source| Error::io(openpi.python.display(), source))?;
        let server = ServerOfAnswers::Process(process);
        let address = Address::parse(&format!("ws://127.0.0.1:{port}"))?;
        for _ in 0..200 {
            if TcpStream::connect(address.host_and_port()).is_ok() {
                return Self::connect(&address, server);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Err(failed("openpi's server does not listen"))
    }

    fn connect(address: &Address, server: ServerOfAnswers) -> Result<Self> {
        let stream = TcpStream::connect(address.host_and_port()).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let (mut client, _) = tungstenite::client(address.to_string(), stream).map_err(failed)?;
        // The metadata.
        client.read().map_err(failed)?;
        Ok(Self {
            client,
            request: request().into(),
            _server: server,
        })
    }
}

impl Workload for Answers {
    fn run(&mut self) -> Result<RunStats> {
        let request = tungstenite::Message::Binary(self.request.clone());
        self.client.send(request).map_err(failed)?;
        loop {
            match self.client.read().map_err(failed)? {
                tungstenite::Message::Binary(_) => return Ok(RunStats::default()),
                tungstenite::Message::Text(text) => return Err(failed(text)),
                _ => {}
            }
        }
    }

    fn code(&self) -> &[CodeObject] {
        &[]
    }
}

/// A thread that answers as many bytes with as many bytes.
struct Echo {
    stream: TcpStream,
    request: Vec<u8>,
    answer: Vec<u8>,
}

impl Echo {
    fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (request, answer) = (request(), answer());
        let (mut read, write) = (vec![0; request.len()], answer.clone());
        std::thread::spawn(move || -> std::io::Result<()> {
            let (mut stream, _) = listener.accept()?;
            stream.set_nodelay(true)?;
            loop {
                stream.read_exact(&mut read)?;
                stream.write_all(&write)?;
            }
        });
        let stream = TcpStream::connect(address).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        Ok(Self {
            stream,
            request,
            answer,
        })
    }
}

impl Workload for Echo {
    fn run(&mut self) -> Result<RunStats> {
        self.stream.write_all(&self.request).map_err(failed)?;
        self.stream.read_exact(&mut self.answer).map_err(failed)?;
        Ok(RunStats::default())
    }

    fn code(&self) -> &[CodeObject] {
        &[]
    }
}

/// The program that serves zeros by openpi's own server, at the port of its argument.
const OPENPI: &str = "
import sys
import numpy as np
from openpi.serving.websocket_policy_server import WebsocketPolicyServer

class Zeros:
    def infer(self, observation):
        return {'actions': np.zeros((1, 1), np.float32)}

WebsocketPolicyServer(Zeros(), host='127.0.0.1', port=int(sys.argv[1])).serve_forever()
";

/// Where openpi's own server is.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct OpenpiServer<'p> {
    /// A checkout of openpi.
    pub checkout: &'p Path,
    /// An interpreter that has `openpi-client`.
    pub python: &'p Path,
}

/// The host time of each of some answers of a served zero brain, of as many exchanges over TCP, and
/// of openpi's own server, in turns of a hundred.
///
/// # Errors
/// What the operating system reports.
#[doc(hidden)]
pub fn exchanges(
    count: usize,
    openpi: Option<OpenpiServer<'_>>,
) -> Result<Vec<(&'static str, LatencyHistogram)>> {
    let device = Device::open("cpu")?;
    let mut work: Vec<(&str, Box<dyn Workload>)> = vec![
        ("tectum", Box::new(Answers::start(&device)?)),
        ("tcp", Box::new(Echo::start()?)),
    ];
    if let Some(openpi) = &openpi {
        work.push(("openpi", Box::new(Answers::start_openpi(openpi)?)));
    }
    let names = work
        .iter()
        .map(|(name, _)| (*name, LatencyHistogram::default()));
    let mut measured: Vec<_> = names.collect();
    for round in 0..count.div_ceil(100) {
        for ((_, work), (_, histogram)) in work.iter_mut().zip(&mut measured) {
            for _ in 0..100 {
                let begin = Instant::now();
                work.run()?;
                // The first turn warms up.
                if round > 0 {
                    histogram.record(begin.elapsed().as_nanos() as u64);
                }
            }
        }
    }
    Ok(measured)
}
