//! Connections that are opened and dropped leave nothing behind, and viewers that read nothing cost
//! no memory. A process of its own: it measures its memory.

use std::net::TcpStream;
use std::sync::{Mutex, PoisonError};

use tectum::Device;
use tectum_control::body::body;
use tectum_control::brain::zero::Zero;
use tectum_control::clock::ClockKind;
use tectum_control::live::{Group, Live, Marks, Series, StreamSpec};
use tectum_link::{Address, LiveServer, LiveSettings, ServeSettings, Served, Server};
use tokio_tungstenite::tungstenite::{self, WebSocket};

/// What 1,000 connections may add to the memory in use.
const MAX_GROWTH_BYTES: u64 = 4 << 20;

/// What 100 viewers that read nothing may add to it in the second half of a run: each may hold a
/// batch of 107 kB twice. With queues of their own they would add a gigabyte.
const MAX_VIEWER_GROWTH_BYTES: u64 = 32 << 20;

/// The memory of this process and its number of threads.
fn measured() -> (u64, usize) {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    (4096 * pages.unwrap_or(0), threads)
}

fn open_and_drop(server: &Server, count: usize) {
    for number in 0..count {
        let stream = TcpStream::connect(server.address().host_and_port()).expect("it listens");
        // A third is no WebSocket, a third is dropped after the handshake, a third says goodbye.
        if number % 3 == 0 {
            continue;
        }
        let url = server.address().to_string();
        match tungstenite::client(url, stream) {
            Ok((mut client, _)) if number % 3 == 1 => {
                let _ = client.close(None);
            }
            // More than the server admits at once is refused, which is a connection too.
            _ => {}
        }
    }
}

/// One test at a time measures the memory of the process.
static MEASURES: Mutex<()> = Mutex::new(());

#[test]
fn a_thousand_connections_leave_memory_flat() {
    let _alone = MEASURES.lock().unwrap_or_else(PoisonError::into_inner);
    if !cfg!(target_os = "linux") {
        println!("skipped: /proc is absent: the memory of connections");
        return;
    }
    let spec = body("pendulum", None).expect("built in").spec().clone();
    let cpu = Device::open("cpu").expect("always");
    let own = spec.clone();
    let served = Served::new(spec, cpu, move || Ok(Box::new(Zero::new(&own)))).expect("a brain");
    let address = Address::parse("ws://127.0.0.1:0").expect("an address");
    let server = Server::start(served, &ServeSettings::new(address)).expect("a free port");
    open_and_drop(&server, 300);
    let (before, threads_before) = measured();
    open_and_drop(&server, 1000);
    // The last threads end when their clients' ends are read.
    let threads = (0..).find_map(|_| {
        let (_, threads) = measured();
        std::thread::sleep(std::time::Duration::from_millis(5));
        (threads <= threads_before).then_some(threads)
    });
    let (after, _) = measured();
    println!(
        "1,000 connections: {} kB more, {threads:?} threads",
        after.saturating_sub(before) / 1024
    );
    assert!(
        after < before + MAX_GROWTH_BYTES,
        "{before} to {after} bytes"
    );
    assert!(server.counts().sessions > 0);
}

/// A viewer that reads only the answer to its handshake.
fn viewer(server: &LiveServer) -> WebSocket<TcpStream> {
    let (host, port) = server.address().host_and_port();
    let stream = TcpStream::connect((host, port)).expect("it listens");
    let client = tungstenite::client(format!("ws://{host}:{port}/live"), stream);
    client.expect("a viewer").0
}

/// Reads frames of a viewer until there were as many; returns their number.
fn read_frames(server: &LiveServer, count: usize) -> usize {
    let (mut client, mut seen) = (viewer(server), 0);
    while seen < count {
        if let tungstenite::Message::Binary(bytes) = client.read().expect("frames") {
            let width = u32::from_le_bytes(bytes[8..12].try_into().expect("four bytes"));
            seen += (bytes.len() - 16) / (4 * width as usize);
        }
    }
    seen
}

#[test]
fn a_hundred_stalled_viewers_leave_steps_and_memory_unchanged() {
    let _alone = MEASURES.lock().unwrap_or_else(PoisonError::into_inner);
    const SERIES: usize = 100;
    const VIEWERS: usize = 100;
    const STEPS: u64 = 40_000;
    if !cfg!(target_os = "linux") {
        println!("skipped: /proc is absent: the memory of viewers");
        return;
    }
    let live = Live::new(ClockKind::Sim);
    let series = |place| Series::new(format!("s{place}"), "m", Group::Observation);
    let spec = StreamSpec::new("loop", "tick", 1e-3, (0..SERIES).map(series).collect());
    let mut writer = live.add_stream(spec);
    let address = Address::parse_http("127.0.0.1:0").expect("an address");
    let server = LiveServer::start(&live, &LiveSettings::new(address)).expect("a free port");
    let mut stalled: Vec<_> = (0..VIEWERS).map(|_| viewer(&server)).collect();
    // Some 3 MB in a second: more than their sockets take.
    let mut steps = |from: u64, to: u64| {
        for step in from..to {
            let values = (0..SERIES).map(|place| (step as usize + place) as f32);
            writer.write(step, step * 1_000_000, Marks::NONE, values);
            if step % 10 == 0 {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    };
    let mut half = |from: u64, to: u64| {
        std::thread::scope(|scope| {
            let reading = scope.spawn(|| read_frames(&server, 5_000));
            steps(from, to);
            assert!(
                reading.join().expect("no panic") >= 5_000,
                "another one is served"
            );
        });
        measured().0
    };
    let before = half(0, STEPS / 2);
    let after = half(STEPS / 2, STEPS);
    println!(
        "{VIEWERS} stalled viewers: {} kB more in the second half, {} frames dropped",
        after.saturating_sub(before) / 1024,
        live.dropped_frames()
    );
    assert!(
        after < before + MAX_VIEWER_GROWTH_BYTES,
        "{before} to {after} bytes"
    );
    assert!(server.viewers() >= VIEWERS);
    // One that reads again is informed of what it has lost.
    let lost = (0..).find_map(|_| match stalled[0].read().expect("connected") {
        tungstenite::Message::Text(text) if text.contains("\"lost\"") => Some(text),
        _ => None,
    });
    assert!(lost.is_some_and(|text| text.contains("\"batches\":")));
    assert!(server.lost_batches() > 0);
}
