//! The integration tests, in one program.

mod faulty_network;
mod lockstep;
mod openpi;
mod peer;
#[cfg(unix)]
mod processes;
mod proxy;
mod real_time;
mod scenarios;
mod serving;
