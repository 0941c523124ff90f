//! The integration tests, in one program.

mod commands;
mod em_brain;
mod faulty_network;
mod feagi;
mod gymnasium;
mod live;
mod lockstep;
mod openpi;
mod peer;
#[cfg(unix)]
mod processes;
mod proxy;
mod real_time;
mod remote_policy;
mod robots_page;
#[cfg(feature = "ros2")]
mod ros2;
mod scenarios;
#[cfg(unix)]
mod serial;
mod serving;
mod sources;
