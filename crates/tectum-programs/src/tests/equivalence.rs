//! Random programs: they are accepted, end without a fault, and all their forms are equivalent.

use super::seeds;
use crate::generate::{Generated, generate, mutate};
use crate::{Instruction, LaunchConfig, Outcome, Program, Type};

#[test]
fn random_programs_run_and_every_form_of_them_is_the_same() {
    let mut idle = 0;
    let (mut barriers, mut calls, mut loops, mut types) =
        (0, 0, 0, std::collections::BTreeSet::new());
    for seed in seeds() {
        let Generated {
            program,
            launch,
            mut buffers,
        } = generate(seed);
        let before = buffers.clone();
        let outcome = program
            .evaluate(&launch, &mut buffers, Generated::MAX_STEPS)
            .expect("the launch fits");
        assert_eq!(
            outcome,
            Outcome::Finished,
            "seed {seed}\n{}",
            program.program()
        );
        // Occasionally a program writes exactly the zeros that were there.
        idle += usize::from(before == buffers);
        all_bounded(seed, program.program(), &buffers);

        let text = program.program().to_string();
        let read = Program::parse(&text).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(&read, program.program(), "seed {seed}");
        assert_eq!(read.to_string(), text, "seed {seed}");
        assert_eq!(
            &Program::from_bytes(&read.to_bytes()).expect("its own bytes"),
            program.program(),
            "seed {seed}"
        );
        for instruction in program.program().instructions() {
            barriers += usize::from(matches!(instruction, Instruction::Barrier { .. }));
            calls += usize::from(matches!(instruction, Instruction::Call { .. }));
            loops += usize::from(matches!(instruction, Instruction::Loop { .. }));
        }
        types.extend(program.program().buffers().iter().map(|buffer| buffer.ty));
    }
    println!(
        "random programs: {} ({barriers} barriers, {calls} calls, {loops} loops, {} types)",
        seeds().count(),
        types.len()
    );
    assert!(
        idle <= seeds().count() / 100,
        "{idle} programs changed nothing"
    );
    assert!(seeds().count() < 100 || barriers * calls * loops > 0 && types.len() == 12);
}

/// Floats stay in [−1, 1], as the generator promises.
fn all_bounded(seed: u64, program: &Program, buffers: &[Vec<u8>]) {
    for (buffer, bytes) in program
        .buffers()
        .iter()
        .zip(buffers)
        .filter(|(buffer, _)| buffer.ty.is_float())
    {
        for value in bytes.chunks(buffer.ty.bytes() as usize) {
            let bits = value
                .iter()
                .rev()
                .fold(0, |bits, byte| bits << 8 | u64::from(*byte));
            let value = f64::from_bits(crate::scalar::convert(Type::F64, buffer.ty, bits));
            assert!(
                value.abs() <= 1.0,
                "seed {seed}: {} in {}\n{program}",
                value,
                buffer.name
            );
        }
    }
}

/// Every mutated text is refused with an error or is a program that runs; nothing panics.
#[test]
fn random_invalid_programs_are_refused() {
    let (mut refused, mut accepted) = (0, 0);
    for seed in 0..5_000 {
        let base = generate(seed % 50);
        let text = mutate(base.program.program(), seed);
        match Program::parse(&text).and_then(|program| program.check()) {
            Err(error) => {
                let message = error.to_string();
                assert!(
                    message.contains("line ")
                        && message.contains("column ")
                        && message.contains('^'),
                    "{message}"
                );
                refused += 1;
            }
            Ok(program) => {
                accepted += 1;
                let mut buffers = base.buffers.clone();
                let _ = program.evaluate(&base.launch, &mut buffers, 100_000);
            }
        }
    }
    println!("mutated programs: {refused} refused, {accepted} still valid");
    assert!(refused > 2_000, "{refused}");
}

/// Mutated bytes are an error or a program; nothing panics and no length is trusted before the
/// bytes are present.
#[test]
fn mutated_bytes_are_an_error_or_a_program() {
    let mut random = crate::generate::Random::new(7);
    for seed in 0..5_000 {
        let mut bytes = generate(seed % 50).program.program().to_bytes();
        for _ in 0..=random.below(4) {
            let place = random.below(bytes.len() as u64) as usize;
            match random.below(4) {
                0 => bytes.truncate(place.max(1)),
                1 => bytes[place] = 0xff,
                2 => drop(bytes.splice(place..place, [0xff, 0xff, 0xff, 0xff, 0x0f])),
                _ => bytes[place] ^= 1 << random.below(8),
            }
        }
        if let Ok(program) = Program::from_bytes(&bytes) {
            assert_eq!(
                Program::parse(&program.to_string()).expect("a program prints as one"),
                program
            );
            if let Ok(checked) = program.check() {
                let mut buffers: Vec<Vec<u8>> =
                    program.buffers().iter().map(|_| vec![0; 64]).collect();
                let _ = checked.evaluate(&LaunchConfig::linear(8, 8), &mut buffers, 10_000);
            }
        }
    }
}

/// Mutated text, byte by byte, is an error with a position or a program that prints as the same
/// program.
#[test]
fn mutated_text_is_an_error_or_a_program() {
    let mut random = crate::generate::Random::new(8);
    for seed in 0..5_000 {
        let mut bytes = generate(seed % 50)
            .program
            .program()
            .to_string()
            .into_bytes();
        for _ in 0..=random.below(4) {
            let (place, other) = (
                random.below(bytes.len() as u64) as usize,
                random.below(bytes.len() as u64) as usize,
            );
            match random.below(5) {
                0 => bytes[place] = random.bits() as u8,
                1 => drop(bytes.drain(place..(place + 20).min(bytes.len()))),
                2 => bytes.swap(place, other),
                3 => bytes.extend_from_within(
                    place.min(other)..place.max(other).min(place.min(other) + 200),
                ),
                _ => drop(bytes.splice(place..place, "99999999999999999999é@[0x".bytes())),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        match Program::parse(&text) {
            Ok(program) => {
                assert_eq!(
                    Program::parse(&program.to_string()).expect("a program prints as one"),
                    program
                );
                let _ = program.check();
            }
            Err(error) => assert!(error.to_string().contains("line "), "{error}"),
        }
    }
}
