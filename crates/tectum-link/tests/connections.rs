//! Connections that are opened and dropped leave nothing behind. A process of its own: it measures
//! its memory.

use std::net::TcpStream;

use tectum::Device;
use tectum_control::body::body;
use tectum_control::brain::zero::Zero;
use tectum_link::{Address, ServeSettings, Served, Server};
use tokio_tungstenite::tungstenite;

/// What 1,000 connections may add to the memory in use.
const MAX_GROWTH_BYTES: u64 = 4 << 20;

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

#[test]
fn a_thousand_connections_leave_memory_flat() {
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
