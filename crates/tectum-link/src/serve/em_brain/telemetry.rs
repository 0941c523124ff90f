//! What a server of em-brain's protocol answers, as one line of JSON for each answer, to anybody who
//! connects. A client that reads slowly loses lines; it delays nothing.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::broadcast::{Receiver, Sender};

use crate::server::{BoundedListener, Counted};

/// Lines that wait for a slow client.
pub(super) const MAX_WAITING: usize = 64;
/// How long a line may take to be sent.
const LIMIT: Duration = Duration::from_secs(5);

/// An answer of a client's brain.
pub(super) struct Cycle<'a> {
    /// The number of the connection.
    pub client: u64,
    /// The number of the answer in it, from 1.
    pub cycle: u64,
    pub sensors: &'a [f32],
    pub action: &'a [f32],
    pub is_safe: bool,
    pub elapsed: Duration,
}

/// The lines of all clients' answers.
#[derive(Clone)]
pub(super) struct Telemetry(pub Option<Sender<String>>);

impl Telemetry {
    /// Sends a line to those who listen.
    pub fn send(&self, cycle: &Cycle<'_>) {
        let Some(lines) = self.0.as_ref().filter(|lines| lines.receiver_count() > 0) else {
            return;
        };
        let line = json!({
            "client": cycle.client,
            "cycle": cycle.cycle,
            "sensors": cycle.sensors,
            "action": cycle.action,
            "safe": cycle.is_safe,
            "total_ms": cycle.elapsed.as_secs_f64() * 1e3,
        });
        // The last listener may have gone in between.
        let _ = lines.send(format!("{line}\n"));
    }
}

/// Accepts those who listen.
pub(super) async fn serve(mut listener: BoundedListener, lines: Sender<String>) {
    loop {
        let (stream, _) = axum::serve::Listener::accept(&mut listener).await;
        tokio::spawn(send_lines(stream, lines.subscribe()));
    }
}

/// Sends lines until one side ends.
async fn send_lines(mut stream: Counted, mut lines: Receiver<String>) {
    let mut ignored = [0; 256];
    loop {
        tokio::select! {
            line = lines.recv() => match line {
                Ok(line) => {
                    let sent = tokio::time::timeout(LIMIT, stream.write_all(line.as_bytes())).await;
                    if !matches!(sent, Ok(Ok(()))) {
                        return;
                    }
                }
                // The numbers of the cycles show what is missing.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
            read = stream.read(&mut ignored) => if !matches!(read, Ok(1..)) {
                return;
            },
        }
    }
}
