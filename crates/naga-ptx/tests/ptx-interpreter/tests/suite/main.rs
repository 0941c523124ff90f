//! Hand-computed results for each family of instructions, and one program for each rule that can be
//! broken.

mod arithmetic;
mod conversion;
mod faults;
mod floating;
mod harness;
mod logic;
mod memory;
mod races;
mod rejections;
mod warp;
