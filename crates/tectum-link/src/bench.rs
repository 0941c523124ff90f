//! The suite of `tectum bench link`: what an answer over a socket costs, next to the same bytes
//! over TCP between two blocking threads.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Instant;

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

/// A served zero brain, and a blocking client.
struct Answers {
    client: WebSocket<TcpStream>,
    request: Bytes,
    /// Ends after the client.
    _server: Server,
}

impl Answers {
    fn start(device: &Device) -> Result<Self> {
        let spec = body(BODY, None)?.spec().clone();
        let own = spec.clone();
        let served = Served::new(spec, device.clone(), move || Ok(Box::new(Zero::new(&own))))?;
        let mut settings = ServeSettings::new(Address::parse("ws://127.0.0.1:0")?);
        settings.max_rate = u32::MAX;
        let server = Server::start(served, &settings)?;
        let stream = TcpStream::connect(server.address().host_and_port()).map_err(failed)?;
        stream.set_nodelay(true).map_err(failed)?;
        let url = server.address().to_string();
        let (mut client, _) = tungstenite::client(url, stream).map_err(failed)?;
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

/// The host time of each of some answers of a served zero brain, and of as many exchanges over TCP,
/// in turns of a hundred.
///
/// # Errors
/// What the operating system reports.
#[doc(hidden)]
pub fn exchanges(count: usize) -> Result<[LatencyHistogram; 2]> {
    let device = Device::open("cpu")?;
    let (mut answers, mut echo) = (Answers::start(&device)?, Echo::start()?);
    let mut measured = [LatencyHistogram::default(), LatencyHistogram::default()];
    for round in 0..count.div_ceil(100) {
        let work: [&mut dyn Workload; 2] = [&mut answers, &mut echo];
        for (work, histogram) in work.into_iter().zip(&mut measured) {
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
