mod assembler;
mod bounds;
mod checks;
mod defects;
mod equivalence;
mod instructions;
pub(super) mod library;

use super::{LaunchConfig, Outcome, Program};

/// Runs text over buffers and gives them back.
fn run(text: &str, launch: LaunchConfig, mut buffers: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let program = Program::parse(text).and_then(|program| program.check()).unwrap_or_else(|error| panic!("{error}"));
    let outcome = program.evaluate(&launch, &mut buffers, 1_000_000).expect("the launch fits");
    assert_eq!(outcome, Outcome::Finished, "{text}");
    buffers
}

fn bytes_of<T: bytemuck::Pod>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

fn values_of<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(bytes)
}
