//! The text form (`.atlas`): assembler and disassembler.
//!
//! One statement a line; `//` begins a comment.
//!
//! ```text
//! program saxpy
//! buffer x: f32 read
//! buffer y: f32 read_write
//! shared 1024                      // bytes of a block
//! pool 64                          // bytes of a lane
//!
//!     mov_imm.f32 r0, 2.0
//!     ldg.f32 r1, [x]
//! @again:
//!     ldg.f32 r2, [y]
//!     fma.f32 r2, r0, r1, r2
//!     set.lt.f32 p0, r2, r0
//!     bra @again, p0
//!     stg.f32 [y], r2
//! ```

mod immediate;
mod lexer;
mod parser;
mod printer;
