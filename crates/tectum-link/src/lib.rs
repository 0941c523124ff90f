//! Bodies and brains in other processes, over WebSocket, machines on serial ports, and robots with
//! ROS 2.
//!
//! Any robot or simulator that sends observations and accepts actions is a body of a scenario
//! ([`RemoteBody`], `[body] remote = "ws://…"` or `listen = "ws://…"`), and any brain of a scenario
//! answers the observations of other programs ([`Server`]). Agents of FEAGI write and read
//! the areas of a genome ([`feagi`]). `docs/robots.md` has the protocols byte by byte; the messages
//! of ours are those of [`tectum_control::message`].
//!
//! # Data flow
//!
//! ```text
//!  loop's thread                 I/O thread (tokio)                    other process
//!  link(): state, ages  ◀─ latest observation ◀─ decode, sequence ◀─── observation
//!  observe()               (a later one replaces it)
//!  brain
//!  advance(action)      ──▶ latest action ─────▶ encode, write ──────▶ action
//!                          (a later one replaces it)
//!                          watchdog: safe action when the loop is late
//!                          ping every 100 ms, closed after 500 ms without a frame
//! ```
//!
//! In real time the loop's thread never waits for a socket: it exchanges the latest values with the
//! I/O thread under a lock that is held for a copy. In lockstep, under a simulated clock, each step
//! waits for the body's answer with a limit, and a trace has the same bits as that of a body in the
//! process.
//!
//! A machine on a serial port ([`Reach::Serial`], `[body] serial = "/dev/…"`) has the same mailbox and
//! supervisor; its lines are messages for the I/O thread. So has a robot with ROS 2 ([`Reach::Ros2`],
//! `[body] ros2 = "tcp/…"`, the feature `ros2`), whose topics are.
//!
//! A served brain ([`Server`]) has two tasks for each client, on one thread more than there may be
//! clients: a brain that computes keeps one of them, and there is always one left for sockets. A
//! short answer never changes the thread.
//!
//! ```text
//!  client ──▶ frames, limits, pings ──▶ queue of 4 ──▶ session: its own brain
//!         ◀──────────────── answers ◀────────────────┘
//! ```
//!
//! A run that is shown while it happens ([`LiveServer`]) has a page, metrics and Foxglove's protocol
//! on one port; what it shows is [`tectum_control::live`].
//!
//! # Floor
//!
//! The floor of an exchange is a round trip of the same bytes over TCP between two blocking
//! threads. To it come the frames of WebSocket and the decoding of one MessagePack map in each
//! process, and for a body in real time two changes of threads in the process of the loop. The
//! bench suite `link` measures an answer and the floor in the same run.
//!
//! # What the tests show
//!
//! | claim | test |
//! |---|---|
//! | a lockstep run over a socket has the trace of the body in the process | `tests/lockstep.rs` |
//! | hold, safe action, disconnect, re-arming, each at its time | `src/supervisor.rs`, in simulated time |
//! | the latest value wins; repeated and late messages are not used | `src/mailbox.rs` |
//! | every period is counted while the peer is stopped, killed, or behind a faulty network | `tests/real_time.rs`, `tests/faulty_network.rs` |
//! | a machine on a serial port that stalls, sends garbage or is unplugged | `tests/serial.rs` |
//! | a robot with ROS 2: values, arming, hashes, tokens, one writer, simulated time | `tests/ros2.rs` |
//! | an unchanged `openpi-client` is answered | `tests/openpi.rs` |
//! | a robot of em-brain: each answer in step, late ones never, its limits | `tests/em_brain.rs` |
//! | an unchanged agent of FEAGI registers, sends sensors and receives motors; firings are those of a direct run | `tests/feagi.rs` |
//! | the feed of a run agrees with its outcome; pause, step, stop; origins and tokens | `tests/live.rs` |
//! | stalled viewers leave steps and memory unchanged | `tests/connections.rs` |
//! | tokens, origins, sizes, rates and numbers of clients | `tests/serving.rs` |

mod address;
#[cfg(feature = "bench")]
mod bench;
mod client;
pub mod feagi;
#[cfg(test)]
mod fuzz;
mod handshake;
mod incoming;
mod io_thread;
mod link;
mod live;
mod mailbox;
mod policy;
mod remote_body;
mod ros2;
mod scenario;
mod serial;
mod serve;
mod server;
mod socket;
mod sources;
mod supervisor;
mod token;
mod transport;

pub use address::Address;
#[cfg(feature = "bench")]
pub use bench::{OpenpiServer, exchanges, suite as bench_suite};
pub use link::{LinkSettings, Reach};
pub use live::{LiveClient, LiveServer, LiveSettings};
pub use policy::{RemotePolicy, RemotePolicySpec};
pub use remote_body::{ArmSwitch, RemoteBody};
pub use ros2::{Ros2Field, Ros2Settings};
pub use scenario::{RemoteSettings, register};
pub use serial::SerialSettings;
pub use serve::{EmBrainAddresses, EmBrainSettings, ServeCounts, ServeSettings, Served, Server};
pub use token::Token;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct PageExamples;
