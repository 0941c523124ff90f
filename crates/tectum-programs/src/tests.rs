mod assembler;
mod bounds;
mod checks;
mod defects;
mod equivalence;
mod instructions;
pub(super) mod library;
mod stream;

use super::{LaunchConfig, Outcome, Program, Type};

/// Runs text over buffers and returns them.
fn run(text: &str, launch: LaunchConfig, mut buffers: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let program = Program::parse(text)
        .and_then(|program| program.check())
        .unwrap_or_else(|error| panic!("{error}"));
    let outcome = program
        .evaluate(&launch, &mut buffers, 1_000_000)
        .expect("the launch fits");
    assert_eq!(outcome, Outcome::Finished, "{text}");
    buffers
}

fn bytes_of<T: bytemuck::Pod>(values: &[T]) -> Vec<u8> {
    bytemuck::cast_slice(values).to_vec()
}

fn values_of<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(bytes)
}

/// Seeds of random programs: `TECTUM_PROGRAMS` of them, default 500, from `TECTUM_SEED` on.
pub fn seeds() -> std::ops::Range<u64> {
    let number = |name, otherwise| {
        std::env::var(name)
            .ok()
            .and_then(|text| text.parse().ok())
            .unwrap_or(otherwise)
    };
    let first = number("TECTUM_SEED", 1);
    first..first + number("TECTUM_PROGRAMS", 500)
}

/// Bytes as words, the last padded with zeros.
pub fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|chunk| {
            chunk
                .iter()
                .rev()
                .fold(0, |word, byte| word << 8 | u32::from(*byte))
        })
        .collect()
}

/// Where two buffers differ: integers bitwise, floats beyond a tolerance.
pub fn differ(ty: Type, ours: &[u8], theirs: &[u8], tolerance: f64) -> Option<String> {
    let width = ty.bytes() as usize;
    let value = |bytes: &[u8]| {
        let bits = bytes
            .iter()
            .rev()
            .fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        (
            bits,
            f64::from_bits(super::scalar::convert(Type::F64, ty, bits)),
        )
    };
    ours.chunks(width)
        .zip(theirs.chunks(width))
        .enumerate()
        .find_map(|(index, (ours, theirs))| {
            let ((a, x), (b, y)) = (value(ours), value(theirs));
            let near = ty.is_float() && ((x - y).abs() <= tolerance || (x.is_nan() && y.is_nan()));
            (a != b && !near)
                .then(|| format!("{ty} {index}: {a:#x} ({x}) where the reference has {b:#x} ({y})"))
        })
}
