//! Plants as equation files: states, parameters with units, inputs with limits, `d/dt`, events, noise, and what a controller needs to know.
//!
//! ```
//! use tectum_equations::System;
//! let spring = System::parse(
//!     "body spring
//!      period 10 ms
//!      integrate semi_implicit
//!      parameter mass = 2 kg in 0.1 .. 10 kg
//!      parameter stiffness = 8 N/m
//!      state x: m start 0.1
//!      state v: m/s
//!      input force: N in -5 .. 5
//!      d/dt v = (force - stiffness * x) / mass
//!      d/dt x = v
//!      observe position: mm = x",
//!     "spring.plant",
//! )?;
//! let parameters = spring.with_parameters([("mass", 1.0)])?;
//! let mut state = spring.start(&parameters, || 0.5);
//! spring.step(&parameters, &mut state, &[0.0], &[]);
//! // v = 0.1 m · −8 N/m / 1 kg · 10 ms, then x = 0.1 m + v · 10 ms.
//! assert_eq!(spring.observe(&parameters, &state), [99.92]);
//! # Ok::<(), tectum::Error>(())
//! ```
//!
//! Units are checked while the file is read, and then erased: inside, every number is in base units (m, kg, s, A, K, rad). Mistakes are reported
//! with line, column and unit. `docs/equations.md` defines the language.
//!
//! | type | what for |
//! |---|---|
//! | [`System`] | a parsed file: its declarations, steps in f64, exact linearisation |
//! | [`Parameter`], [`State`], [`Input`], [`Noise`], [`Observation`], [`Goal`] | what it declares |
//! | [`Unit`], [`Dimension`] | units by name |

mod arithmetic;
mod diagnostic;
mod expression;
mod lexer;
mod operation;
mod parse;
mod system;
mod unit;

pub use system::{Goal, Input, Integrator, Linearization, Noise, Observation, Parameter, State, Step, System, Weights};
pub use unit::{Dimension, Unit};

impl System {
    /// Reads an equation file; `origin` is its name in messages.
    ///
    /// # Errors
    /// `Data` with line, column and the line's text for the first mistake.
    pub fn parse(text: &str, origin: &str) -> tectum::Result<System> {
        parse::parse(text, origin)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
