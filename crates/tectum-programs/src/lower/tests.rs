mod devices;
mod flow;
mod instructions;
mod library;
mod text;

use super::{Bounds, Lowered};
use crate::{Checked, LaunchConfig, Program};

fn checked(text: &str) -> Checked {
    Program::parse(text)
        .and_then(|program| program.check())
        .unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn lowered(text: &str, launch: LaunchConfig, bounds: Bounds) -> Lowered {
    checked(text)
        .lower(&launch, bounds)
        .unwrap_or_else(|unsupported| panic!("{unsupported}\n{text}"))
}
