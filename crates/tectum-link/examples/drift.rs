//! A body in a process of its own, for the tests: it prints its address, and reads the word `arm`
//! from its input.

use std::io::{BufRead as _, Write as _};

#[allow(dead_code, reason = "the tests use all of it")]
#[path = "../tests/peer.rs"]
mod peer;

fn main() {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let body = Box::new(peer::Drift::new(0.02));
    let peer = peer::Peer::listen_at(port.unwrap_or(0), body);
    println!("{}", peer.address);
    std::io::stdout().flush().expect("a reader");
    for line in std::io::stdin().lock().lines() {
        if line.is_ok_and(|line| line == "arm") {
            peer.order(peer::Order::Arm);
        }
    }
}
