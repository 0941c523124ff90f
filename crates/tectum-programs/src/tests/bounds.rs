//! Proofs for accesses, and that a proof is never wrong.

use crate::generate::{Generated, generate};
use crate::{LaunchConfig, Outcome, Program};

/// Text after `buffer x: u32 read_write` of 32 elements and 64 bytes of shared memory, for 8 blocks
/// of 4 lanes; whether all is proven.
const CASES: &[(&str, bool)] = &[
    ("ldg.u32 r0, [x]", true),
    ("ldg.u32 r0, [x + 124]", true),
    ("ldg.u32 r0, [x + 122]", false),
    (
        "mov_imm.u64 r1, 4\nmul.u64 r0, r255, r1\nldg.u32 r2, [x + r0]",
        true,
    ),
    (
        "mov_imm.u64 r1, 5\nmul.u64 r0, r255, r1\nldg.u32 r2, [x + r0]",
        false,
    ),
    (
        "mov_imm.u64 r1, 4\nmad.u64 r0, r255, r1, r1\nldg.u32 r2, [x + r0]",
        false,
    ),
    (
        "mov_imm.u32 r1, 2\nshl.u64 r0, r255, r1\nldg.u32 r2, [x + r0]",
        true,
    ),
    (
        "ldg.u32 r0, [x]\nmov_imm.u32 r1, 124\nand.u32 r0, r0, r1\ncvt.u64.u32 r0, r0\nldg.u32 r2, [x + r0]",
        true,
    ),
    (
        "ldg.u32 r0, [x]\ncvt.u64.u32 r0, r0\nldg.u32 r2, [x + r0]",
        false,
    ),
    // 32 iterations of 4 bytes: in bounds; 33: the last one is out.
    (
        "mov_imm.u32 r0, 31\nmov_imm.u64 r1, 0\nmov_imm.u64 r2, 4\n@l: ldg.u32 r3, [x + r1]\nadd.u64 r1, r1, r2\nloop r0, @l",
        true,
    ),
    (
        "mov_imm.u32 r0, 32\nmov_imm.u64 r1, 0\nmov_imm.u64 r2, 4\n@l: ldg.u32 r3, [x + r1]\nadd.u64 r1, r1, r2\nloop r0, @l",
        false,
    ),
    ("mov_imm.u64 r1, 1\nldg.u32 r3, [r1 + 8]", true),
    ("mov_imm.u64 r1, 2\nldg.u32 r3, [r1 + 8]", false),
    ("lds.u32 r0, [shared]", true),
    ("lds.u64 r0, [shared + 52]", false),
    ("div.u32 r0, r252, r254", true),
    ("div.u32 r0, r254, r252", false),
    ("mov_imm.i32 r1, -2\ndiv.i32 r0, r1, r1", false),
    ("call @f\nexit\n@f: ldg.u32 r0, [x + 0]\nret", false),
];

#[test]
fn accesses_are_proven_where_offsets_are_affine() {
    for (text, expected) in CASES {
        let text = format!("buffer x: u32 read_write\nshared 64\n{text}");
        let program = Program::parse(&text)
            .and_then(|program| program.check())
            .unwrap_or_else(|error| panic!("{error}"));
        let bounded = program
            .bound(&LaunchConfig::linear(32, 4), &[128])
            .unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(bounded.is_unchecked(), *expected, "{text}");
    }
}

#[test]
fn what_is_surely_out_of_bounds_is_refused_with_its_line() {
    let check = |text: &str| {
        Program::parse(text)
            .and_then(|program| program.check())
            .expect("valid")
            .bound(&LaunchConfig::default(), &[8])
    };
    let message = check("program p\nbuffer x: f32 read\nldg.f32 r0, [x + 8]")
        .expect_err("out")
        .to_string();
    assert_eq!(
        message,
        "p: line 3, column 1: f32 at byte 8 or beyond is out of the 8 bytes there are\n3 | ldg.f32 r0, [x + 8]\n  | ^"
    );
    // Behind a branch it may never be reached.
    assert!(check("buffer x: f32 read\nset.lt.u32 p0, r252, r254\nbra @end, p0\nldg.f32 r0, [x + 8]\n@end:").is_ok());
}

/// Random programs have no fault, so none is refused. Most of their code is proven; pools,
/// functions and code after a call are not.
#[test]
fn random_programs_are_never_refused() {
    let (mut proven, mut all) = (0, 0);
    for seed in 1..=200 {
        let Generated {
            program,
            launch,
            buffers,
        } = generate(seed);
        let sizes: Vec<u64> = buffers.iter().map(|bytes| bytes.len() as u64).collect();
        let bounded = program
            .bound(&launch, &sizes)
            .unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        proven += (0..program.program().instructions().len())
            .filter(|index| bounded.is_proven(*index))
            .count();
        all += program.program().instructions().len();
    }
    println!("random programs: {proven} of {all} instructions proven without a fault");
    assert!(proven * 5 > all * 4, "{proven} of {all}");
}

/// If everything is proven, a run over buffers of exactly these sizes has no fault: constants in
/// programs are varied across the limit.
#[test]
fn a_proof_is_never_wrong() {
    let mut proofs = 0;
    for (scale, first, count) in (0..9u64).flat_map(|scale| {
        (0..40)
            .step_by(4)
            .flat_map(move |first| (0..6).map(move |count| (scale, first, count)))
    }) {
        let text = format!(
            "buffer x: u32 read\nmov_imm.u64 r1, {scale}\nmov_imm.u64 r2, {first}\nmov_imm.u64 r3, 4\nmad.u64 r0, r255, r1, r2\n\
             mov_imm.u32 r4, {count}\n@l: ldg.u32 r5, [x + r0]\nadd.u64 r0, r0, r3\nloop r4, @l"
        );
        let program = Program::parse(&text)
            .and_then(|program| program.check())
            .expect("valid");
        let launch = LaunchConfig::linear(6, 3);
        let Ok(bounded) = program.bound(&launch, &[64]) else {
            continue;
        };
        let outcome = program
            .evaluate(&launch, &mut [vec![0; 64]], 10_000)
            .expect("fits");
        assert_eq!(
            bounded.is_unchecked(),
            outcome == Outcome::Finished,
            "{text}"
        );
        proofs += usize::from(bounded.is_unchecked());
    }
    assert!(proofs > 30, "{proofs}");
}
