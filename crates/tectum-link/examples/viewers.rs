//! What viewers cost a loop: compute times of a loop of 200 Hz with 100 viewers that read nothing
//! and 10 that read everything, and of the same loop without any, in alternating rounds.
//!
//! `cargo run --release -p tectum-link --example viewers [ROUNDS] [SECONDS]`

use std::net::TcpStream;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use tectum::{Device, Error, Result};
use tectum_control::body::{ActionChannel, Body, BodySpec, ObservationChannel, Step};
use tectum_control::brain::Stateless;
use tectum_control::clock::{ClockKind, RealClock};
use tectum_control::closed_loop::{ClosedLoop, Discard, LoopSettings};
use tectum_control::live::Live;
use tectum_link::{Address, LiveServer, LiveSettings};
use tokio_tungstenite::tungstenite::{self, WebSocket};

const PERIOD_S: f64 = 0.005;
const STALLED: usize = 100;
const ACTIVE: usize = 10;

/// A body of 24 numbers that follow its action.
struct Followers {
    spec: BodySpec,
    numbers: [f32; 24],
}

impl Followers {
    fn new() -> Self {
        let channel = |place| ObservationChannel::new(format!("x{place}"), "m", -1.0..=1.0);
        Self {
            spec: BodySpec {
                name: "followers".into(),
                dt_s: PERIOD_S,
                observation: (0..24).map(channel).collect(),
                action: vec![ActionChannel::new("u", "m", -1.0..=1.0)],
                safe_action: vec![0.0],
            },
            numbers: [0.0; 24],
        }
    }
}

impl Body for Followers {
    fn spec(&self) -> &BodySpec {
        &self.spec
    }

    fn reset(&mut self, _: u64) {
        self.numbers = [0.0; 24];
    }

    fn observe(&self, observation: &mut [f32]) {
        observation.copy_from_slice(&self.numbers);
    }

    fn step(&mut self, action: &[f32]) -> Step {
        for (place, number) in self.numbers.iter_mut().enumerate() {
            *number += 0.01 * (place + 1) as f32 * (action[0] - *number);
        }
        Step::default()
    }
}

fn connect(server: &LiveServer) -> Result<WebSocket<TcpStream>> {
    let (host, port) = server.address().host_and_port();
    let failed = |source| Error::io("a viewer", source);
    let stream = TcpStream::connect((host, port)).map_err(failed)?;
    let client = tungstenite::client(format!("ws://{host}:{port}/live"), stream);
    let (client, _) = client.map_err(|error| failed(std::io::Error::other(error.to_string())))?;
    Ok(client)
}

/// The 99th percentile of the compute time of a run, in microseconds.
fn round(seconds: f64, has_viewers: bool) -> Result<f64> {
    let brain = Stateless::new("sum", |observation: &[f32], action: &mut [f32]| {
        let mut sum = 0.0f32;
        for turn in 0..4_000 {
            sum += (observation[turn % observation.len()] + turn as f32).sin();
        }
        action[0] = sum.sin();
    });
    let settings = LoopSettings {
        seconds,
        ..LoopSettings::default()
    };
    let cpu = Device::open("cpu")?;
    let body = Box::new(Followers::new());
    let mut closed_loop = ClosedLoop::new(body, Box::new(brain), &settings, &cpu)?;
    let live = Live::new(ClockKind::Real);
    closed_loop.show(&live, None);
    let settings = LiveSettings::new(Address::parse_http("127.0.0.1:0")?);
    let server = LiveServer::start(&live, &settings)?;
    let is_over = Arc::new(AtomicBool::new(false));
    let (mut stalled, mut active) = (Vec::new(), Vec::<JoinHandle<()>>::new());
    if has_viewers {
        for _ in 0..STALLED {
            stalled.push(connect(&server)?);
        }
        for _ in 0..ACTIVE {
            let (mut client, is_over) = (connect(&server)?, is_over.clone());
            active.push(std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) && client.read().is_ok() {}
            }));
        }
    }
    let outcome = closed_loop.run(&mut RealClock::new(), &mut Discard, &mut |_| {
        ControlFlow::Continue(())
    });
    is_over.store(true, Ordering::Relaxed);
    drop(server);
    active.into_iter().for_each(|thread| drop(thread.join()));
    Ok(1e3 * outcome.into_result()?.latency.percentiles().p99)
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<f64>());
    let mut next = |default| {
        arguments
            .next()
            .and_then(|number| number.ok())
            .unwrap_or(default)
    };
    let (rounds, seconds) = (next(10.0).max(2.0), next(5.0));
    let mut ratios = Vec::new();
    for number in 0..rounds as usize {
        // Which comes first changes with each round.
        let (alone, watched) = match number % 2 {
            0 => (round(seconds, false)?, round(seconds, true)?),
            _ => {
                let watched = round(seconds, true)?;
                (round(seconds, false)?, watched)
            }
        };
        ratios.push(watched / alone);
        println!("round {number}: p99 {alone:.1} us alone, {watched:.1} us watched");
    }
    let count = ratios.len() as f64;
    let mean = ratios.iter().sum::<f64>() / count;
    let variance = ratios
        .iter()
        .map(|ratio| (ratio - mean).powi(2))
        .sum::<f64>()
        / (count - 1.0);
    // Student's t for ten rounds is 2.26; for more it is smaller.
    let half = 2.26 * (variance / count).sqrt();
    println!(
        "ratio {mean:.3}, 95 % interval {:.3} to {:.3}",
        mean - half,
        mean + half
    );
    Ok(())
}
