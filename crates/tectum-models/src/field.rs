//! The field brain: a 4-D field that senses, moves and changes its own rules, one cycle in one plan.
//!
//! A [`Shape`] and [`Options`] make a [`Simulation`]; [`Simulation::tick`] takes sensors to motors. `docs/field.md` has the cycle in
//! words, [`reference`] in float64.

mod agreement;
mod bench;
mod check;
mod coefficients;
mod draw;
mod kernels;
mod layout;
pub mod reference;
mod shape;
mod simulation;
mod state;
mod waves;

pub use agreement::{Difference, TIE, differences};
pub use bench::suite;
pub use check::{CheckReport, Pass, check};
pub use coefficients::Coefficients;
pub use kernels::kernels;
pub use shape::Shape;
pub use simulation::{Options, PlaceKind, Recall, Report, Simulation};
pub use state::State;

#[cfg(test)]
mod tests;
