//! The integration tests, in one program.

mod lockstep;
mod openpi;
mod peer;
mod real_time;
mod scenarios;
mod serving;
