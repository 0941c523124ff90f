//! The integration tests, in one program.

mod lockstep;
mod peer;
mod real_time;
mod scenarios;
