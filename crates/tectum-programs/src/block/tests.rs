//! The block interpreter compared with the reference.

use super::{Buffer, BufferWords, PreparedProgram};
use crate::Bounds;
use crate::generate::{Generated, generate};
use crate::tests::{differ, seeds, words};
use crate::{Checked, Fault, FaultKind, Instruction, LaunchConfig, Outcome, Program};

/// Runs a program over buffers of bytes, on up to this many threads.
fn run(
    checked: &Checked,
    launch: &LaunchConfig,
    buffers: &mut [Vec<u8>],
    bounds: Bounds,
    threads: usize,
) -> Option<Fault> {
    let program = checked.program();
    let shares = |instruction: &Instruction| {
        matches!(
            instruction,
            Instruction::LoadShared { .. }
                | Instruction::StoreShared { .. }
                | Instruction::Barrier { .. }
        )
    };
    let block_bytes = program
        .instructions()
        .iter()
        .any(shares)
        .then(|| program.shared_bytes().max(launch.shared_bytes));
    let prepared = PreparedProgram::new(checked, block_bytes, bounds);
    let mut words: Vec<Vec<u32>> = buffers.iter().map(|bytes| words(bytes)).collect();
    let given = words
        .iter_mut()
        .zip(program.buffers())
        .zip(buffers.iter())
        .map(|((words, declared), bytes)| Buffer {
            words: if declared.access.writes() {
                BufferWords::Write(words)
            } else {
                BufferWords::Read(words)
            },
            bytes: bytes.len() as u64,
        });
    let fault = prepared.run(launch, given, |_| threads);
    for (bytes, words) in buffers.iter_mut().zip(&words) {
        bytes
            .iter_mut()
            .enumerate()
            .for_each(|(i, byte)| *byte = words[i / 4].to_le_bytes()[i % 4]);
    }
    fault
}

fn checked(text: &str) -> Checked {
    Program::parse(text)
        .and_then(|program| program.check())
        .unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn random_programs_mean_what_the_reference_says() {
    for seed in seeds() {
        let generated = generate(seed);
        let Generated {
            program,
            launch,
            buffers,
        } = &generated;
        let mut expected = buffers.clone();
        assert_eq!(
            program
                .evaluate(launch, &mut expected, Generated::MAX_STEPS)
                .expect("the launch fits"),
            Outcome::Finished
        );
        for threads in [1, 3] {
            let mut found = buffers.clone();
            assert_eq!(
                run(program, launch, &mut found, Bounds::Checked, threads),
                None,
                "seed {seed}"
            );
            for ((declared, found), expected) in program
                .program()
                .buffers()
                .iter()
                .zip(&found)
                .zip(&expected)
            {
                // Everything except the functions is the reference's own arithmetic.
                let tolerance = if generated.has_functions() {
                    generated.tolerance(declared.ty)
                } else {
                    0.0
                };
                let difference = differ(declared.ty, found, expected, tolerance);
                assert!(
                    difference.is_none(),
                    "seed {seed}, {}: {}\n{}",
                    declared.name,
                    difference.unwrap_or_default(),
                    program.program()
                );
            }
        }
    }
}

/// Lanes diverge in nested branches and loops of different lengths, and in calls; each computes
/// what it would alone.
#[test]
fn lanes_part_and_meet_again() {
    let program = checked(
        "buffer x: u32 read\nbuffer y: u32 read_write\n    ldg.u32 r0, [x]\n    mov_imm.u32 r1, 0\n    mov_imm.u32 r2, 1\n    mov_imm.u32 r3, 3\n@again:\n    add.u32 r1, r1, r0\n    and.u32 r4, r1, r3\n    set.eq.u32 p0, r4, r3\n    bra @skip, !p0\n    call @twice\n@skip:\n    loop r0, @again\n    set.gt.u32 p1, r1, r3\n    bra @end, p1\n    exit\n@end:\n    stg.u32 [y], r1\n    exit\n@twice:\n    add.u32 r1, r1, r1\n    set.gt.u32 p2, r1, r3\n    bra @home, p2\n    add.u32 r1, r1, r2\n@home:\n    ret",
    );
    let n = 3_000u32;
    let x: Vec<u8> = (0..n).flat_map(|i| (i * 7919 % 13).to_le_bytes()).collect();
    let launch = LaunchConfig::linear(n, 100);
    let mut expected = [x.clone(), vec![0xff; 4 * n as usize]];
    assert_eq!(
        program
            .evaluate(&launch, &mut expected, u64::MAX)
            .expect("the launch fits"),
        Outcome::Finished
    );
    let mut found = [x.clone(), vec![0xff; 4 * n as usize]];
    assert_eq!(run(&program, &launch, &mut found, Bounds::Checked, 2), None);
    assert_eq!(found, expected);
}

/// A launch's last block may reach beyond the buffers by more than a chunk, at any start of chunks.
#[test]
fn lanes_beyond_the_buffers_change_nothing() {
    let program = checked(
        "buffer x: u32 read\nbuffer y: u32 read_write\nldg.u32 r0, [x]\nldg.u32 r1, [y]\nadd.u32 r0, r0, r1\nstg.u32 [y], r0",
    );
    for n in (1..6_000u32).step_by(61) {
        let words = |scale: u32| {
            (0..n)
                .flat_map(|i| (scale * i).to_le_bytes())
                .collect::<Vec<u8>>()
        };
        let launch = LaunchConfig::linear(n.next_multiple_of(4096), 1024);
        for threads in [1, 3] {
            let mut buffers = [words(3), words(4)];
            assert_eq!(
                run(&program, &launch, &mut buffers, Bounds::Checked, threads),
                None,
                "{n}"
            );
            assert_eq!(
                buffers,
                [words(3), words(7)],
                "{n} elements, {threads} threads"
            );
        }
    }
}

/// Every kind of fault is reported with its lane, and ignored if requested.
#[test]
fn faults_are_reported_or_ignored() {
    let gather = checked(
        "buffer x: u64 read\nbuffer y: u32 read\nbuffer z: u32 write\nldg.u64 r0, [x]\nldg.u32 r1, [y + r0]\nstg.u32 [z], r1",
    );
    let offsets = |bad: u64| {
        (0..10u64)
            .flat_map(|i| if i == 7 { bad } else { 4 * i }.to_le_bytes())
            .collect::<Vec<u8>>()
    };
    let data: Vec<u8> = (0..10u32).flat_map(|i| (i + 1).to_le_bytes()).collect();
    for (bad, ignored) in [(40, 0u32), (u64::MAX, 0), (18, 5)] {
        let launch = LaunchConfig::linear(10, 5);
        let mut buffers = [offsets(bad), data.clone(), vec![0; 40]];
        let mut expected = buffers.clone();
        let Outcome::Fault(first) = gather
            .evaluate(&launch, &mut expected, 1_000)
            .expect("the launch fits")
        else {
            panic!("no fault")
        };
        assert_eq!(
            run(&gather, &launch, &mut buffers, Bounds::Checked, 1),
            Some(first)
        );
        assert_eq!(first.lane, 7);
        assert_eq!(run(&gather, &launch, &mut buffers, Bounds::Forced, 1), None);
        assert_eq!(buffers[2][28..32], ignored.to_le_bytes());
    }
    let divide = checked(
        "buffer x: i32 read_write\nmov_imm.i32 r1, 60\nldg.i32 r0, [x]\ndiv.i32 r0, r1, r0\nstg.i32 [x], r0",
    );
    let mut buffers = [[5i32, 0, -7]
        .iter()
        .flat_map(|x| x.to_le_bytes())
        .collect::<Vec<u8>>()];
    let fault = run(
        &divide,
        &LaunchConfig::linear(3, 3),
        &mut buffers,
        Bounds::Checked,
        1,
    );
    assert_eq!(
        fault.map(|fault| (fault.lane, fault.instruction, fault.kind)),
        Some((1, 2, FaultKind::DivisionByZero))
    );
    run(
        &divide,
        &LaunchConfig::linear(3, 3),
        &mut buffers,
        Bounds::Forced,
        1,
    );
    assert_eq!(
        buffers[0],
        [12i32, 60, -8]
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect::<Vec<u8>>()
    );
}

#[test]
fn defect_15_all_256_registers_have_columns() {
    // 252 are written, the four that are preloaded read: their lanes count to 0 + 0 + 1 + 0.
    let made: String = (0..252)
        .map(|register| format!("mov_imm.u32 r{register}, {register}\n"))
        .collect();
    let sums: String = (1..255)
        .map(|register| format!("add.u32 r0, r0, r{register}\n"))
        .collect();
    let text = format!(
        "buffer y: u32 write\n{made}{sums}cvt.u32.u64 r1, r255\nadd.u32 r0, r0, r1\nstg.u32 [y], r0"
    );
    let checked = Program::parse(&text)
        .and_then(|program| program.check())
        .expect("valid");
    let mut buffers = vec![vec![0; 4]];
    assert_eq!(
        run(
            &checked,
            &LaunchConfig::linear(1, 1),
            &mut buffers,
            Bounds::Proven,
            1
        ),
        None
    );
    assert_eq!(
        buffers[0],
        (0..252u32).sum::<u32>().wrapping_add(1).to_le_bytes()
    );
    // All 256 of one width.
    let made: String = (0..256)
        .map(|register| format!("mov_imm.u32 r{register}, {register}\n"))
        .collect();
    let sums: String = (1..256)
        .map(|register| format!("add.u32 r0, r0, r{register}\n"))
        .collect();
    let checked = Program::parse(&format!("buffer y: u32 write\n{made}{sums}stg.u32 [y], r0"))
        .and_then(|program| program.check())
        .expect("valid");
    let mut buffers = vec![vec![0; 4]];
    assert_eq!(
        run(
            &checked,
            &LaunchConfig::linear(1, 1),
            &mut buffers,
            Bounds::Proven,
            1
        ),
        None
    );
    assert_eq!(buffers[0], (0..256u32).sum::<u32>().to_le_bytes());
}
