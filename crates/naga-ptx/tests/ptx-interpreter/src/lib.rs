//! Executes PTX on the host, strictly, so that a compiler to PTX can be tested without a GPU.
//!
//! The crate is written from NVIDIA's *Parallel Thread Execution ISA* and shares nothing with any
//! emitter: it is an independent implementation. Anything that the manual leaves undefined is a
//! fault here, never a value: reads of registers and bytes without a write, accesses outside their
//! variable or across state spaces, barriers that some threads never reach, warp-level instructions
//! executed by threads other than those in their mask, and (on request) unordered conflicting
//! accesses.
//!
//! [`Program::parse`] checks the text against the typing rules, the `.target` and the `.version`;
//! [`Program::run`] executes one launch over a [`Memory`] in the order that a [`Schedule`] gives.
//! Modifiers must have the order of the manual's grammar, although assemblers accept others.
//!
//! Threads advance one at a time until they wait, so three things differ from a device and still
//! conform to the manual: `activemask` returns every thread of the warp that can reach it, `.uni`
//! is not checked, and fences have no effect because memory is sequentially consistent. Lanes that
//! a partial last warp lacks may be named in a mask; exited lanes may not.
//!
//! # Example
//!
//! ```
//! use ptx_interpreter::{ErrorKind, Fault, Launch, Memory, Program};
//!
//! # fn main() -> Result<(), ptx_interpreter::Error> {
//! let program = Program::parse(
//!     ".version 8.0 .target sm_80 .address_size 64
//!      .visible .entry double(.param .u64 words) {
//!          .reg .b32 %r<3>; .reg .b64 %d<3>;
//!          ld.param.u64 %d0, [words];
//!          mov.u32 %r0, %tid.x;
//!          mul.wide.u32 %d1, %r0, 4;
//!          add.u64 %d2, %d0, %d1;
//!          ld.global.u32 %r1, [%d2];
//!          shl.b32 %r2, %r1, 1;
//!          st.global.u32 [%d2], %r2;
//!          ret;
//!      }",
//! )?;
//! let mut memory = Memory::new();
//! let words = memory.allocate(&[1, 0, 0, 0, 2, 0, 0, 0]);
//! let params = [words];
//! let launch = Launch { block: [2, 1, 1], ..Launch::new("double", &params) };
//! program.run(&mut memory, &launch)?;
//! assert_eq!(memory.read(words, 8)?, [2, 0, 0, 0, 4, 0, 0, 0]);
//!
//! let too_many = Launch { block: [3, 1, 1], ..launch };
//! let error = program.run(&mut memory, &too_many).expect_err("the third word does not exist");
//! assert_eq!(error.kind(), ErrorKind::Fault(Fault::OutOfRange));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod compute;
mod decode;
mod error;
mod execute;
mod float;
mod launch;
mod memory;
mod operation;
mod parser;
mod program;
mod race;
mod scalar;
mod schedule;
mod syntax;
mod token;

pub use compute::Approximation;
pub use error::{Error, ErrorKind, Fault, Place};
pub use launch::{Launch, Stats};
pub use memory::Memory;
pub use program::Program;
pub use schedule::Schedule;
