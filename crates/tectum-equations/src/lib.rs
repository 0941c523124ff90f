//! Plants as equation files: states, parameters with units, inputs with limits, `d/dt`, events,
//! noise, and what a controller needs to know.
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
//! Units are checked while the file is read, and then erased: inside, every number is in base units
//! (m, kg, s, A, K, rad). Mistakes are reported with line, column and unit. `docs/equations.md`
//! defines the language.
//!
//! | type | what for |
//! |---|---|
//! | [`System`] | a parsed file: its declarations, steps in f64, exact linearisation |
//! | [`Parameter`], [`State`], [`Input`], [`Noise`], [`Observation`], [`Goal`] | what it declares |
//! | [`LIBRARY`] | the files that ship |
//! | [`Unit`], [`Dimension`] | units by name |
//! | [`code`] | the same steps in f32, as WGSL and over SIMD lanes, for kernels that step many instances |
//! | [`Arithmetic`] | what numbers are while a system is computed |

mod arithmetic;
pub mod code;
mod diagnostic;
mod expression;
mod lexer;
mod operation;
mod parse;
mod system;
mod unit;

pub use arithmetic::Arithmetic;
pub use operation::{BinaryOp, Comparison, UnaryOp};
pub use system::{
    Goal, Input, Integrator, Linearization, Noise, Observation, Parameter, State, Step, System,
    Weights,
};
pub use unit::{Dimension, Unit};

use tectum::Sample;

macro_rules! plants {
    ($($name:literal, $about:literal;)+) => {
        /// The equation files that ship: their names and texts.
        pub const LIBRARY: [(&str, &str); 6] = [$(($name, include_str!(concat!("../plants/", $name)))),+];

        /// The same as samples, to be written and changed.
        pub static SAMPLES: [Sample; 6] = [$(Sample { name: $name, about: $about, files: &[($name, include_bytes!(concat!("../plants/", $name)))] }),+];
    };
}
plants! {
    "acrobot.plant", "two links of which a motor turns the lower one, as Acrobot-v1: a plant to run or to change";
    "cart_pole.plant", "a pole on a cart that is pushed left or right, as CartPole-v1";
    "cart_servo.plant", "a pole on a cart that a motor with a velocity servo moves";
    "double_pendulum.plant", "two links on a cart";
    "pendulum.plant", "a rod that a motor swings up, as Pendulum-v1";
    "quadrotor.plant", "a quadrotor in a vertical plane";
}

impl System {
    /// Reads an equation file; `origin` is its name in messages.
    ///
    /// # Errors
    /// `Data` with line, column and the line's text for the first mistake.
    pub fn parse(text: &str, origin: &str) -> tectum::Result<System> {
        parse::parse(text, origin)
    }

    /// The text of this system's file with other values of its parameters, in base units;
    /// everything else stays as it is written.
    ///
    /// # Errors
    /// `Data` for a text that is not this system's file.
    /// # Panics
    /// If there is not one value for each parameter.
    pub fn text_with(&self, text: &str, origin: &str, values: &[f64]) -> tectum::Result<String> {
        parse::text_with(self, text, origin, values)
    }
}

impl Unit {
    /// The unit that a text is, such as `m/s^2`; `None` if it is none.
    pub fn parse(text: &str) -> Option<Unit> {
        parse::unit(text)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
