//! Blocks that reduce through shared memory, and similar programs that do not.

use super::{
    ONE, SIZES, checked, planned, reasons, recognized, reference, try_recognize, u64s, values,
    zeros,
};
use crate::generate::Random;
use crate::{Checked, LaunchConfig, Outcome, Program, Shape};

const BLOCK: LaunchConfig = LaunchConfig {
    grid: [1; 3],
    block: [256, 1, 1],
    shared_bytes: 0,
    max_loop_iterations: LaunchConfig::MAX_LOOP_ITERATIONS,
};

fn library(name: &str) -> String {
    let path = format!("{}/programs/{name}.atlas", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn is_reduction(shape: &Shape, n: u64) -> bool {
    matches!(shape, Shape::Reduction { rows: 1, cols, columns: false, .. } if *cols == n)
}

/// Values are multiples of 1/4, so every order of additions gives the same sum.
#[test]
fn the_library_s_reductions_are_reductions_where_their_counts_are_known() {
    for (name, exact) in [
        ("reduce_sum", false),
        ("reduce_min", true),
        ("reduce_max", true),
    ] {
        let program = checked(&library(name));
        for n in SIZES {
            let buffers = vec![values(n, 0.25), u64s(&[n]), zeros(1)];
            let (shape, after) = planned(&program, &BLOCK, &buffers, true);
            assert!(
                is_reduction(&shape, n),
                "{name}, n = {n}: {shape} {:?}",
                recognized(&program, &BLOCK, &buffers).refusals()
            );
            assert_eq!(
                after,
                reference(&program, &BLOCK, &buffers),
                "{name}, n = {n}"
            );
            let kept = try_recognize(&program, &BLOCK, &buffers, false).expect("it fits");
            assert_eq!(is_reduction(kept.shape(), n), exact, "{name}, n = {n}");
        }
        let unknown = program
            .recognize(&super::Setting::new(&BLOCK, &[40, 8, 4]))
            .expect("it fits");
        assert!(
            reasons(&unknown).contains("depends on data"),
            "{}",
            reasons(&unknown)
        );
        // Too many elements: a contradiction. Too few: the rest is not reduced.
        let error = try_recognize(
            &program,
            &BLOCK,
            &[values(10, 0.25), u64s(&[11]), zeros(1)],
            true,
        )
        .expect_err("out of bounds");
        assert!(
            error
                .to_string()
                .contains("reaches byte 44 of the 40 of buffer x"),
            "{error}"
        );
        let fewer = vec![values(10, 0.25), u64s(&[9]), zeros(1)];
        assert!(
            reasons(&recognized(&program, &BLOCK, &fewer)).contains("cover 36 of 40 bytes"),
            "{}",
            reasons(&recognized(&program, &BLOCK, &fewer))
        );
        let none = vec![values(0, 0.25), u64s(&[0]), zeros(1)];
        assert!(matches!(
            recognized(&program, &BLOCK, &none).shape(),
            Shape::General
        ));
    }
}

/// The contribution of each lane: all elements shared by stride, eight of its own, or its own one.
const PARTS: [(&str, u64, &str); 3] = [
    (
        "in turns",
        1_000,
        "mov_imm.f32 r0, 0.0\nmov.u64 r4, r6\nmov_imm.u64 r1, 4000\nmov_imm.u64 r3, BYTES\n@next:\nset.ge.u64 p0, r4, r1\nbra @taken, p0\nldg.f32 r5, [x + r4]\nadd.f32 r0, r0, r5\nadd.u64 r4, r4, r3\nbra @next\n@taken:\n",
    ),
    (
        "eight",
        8 * 64,
        "mov_imm.f32 r0, 0.0\nmov_imm.u64 r3, 8\nmul.u64 r4, r6, r3\nmov_imm.u32 r1, 7\n@next:\nldg.f32 r5, [x + r4]\nadd.f32 r0, r0, r5\nadd.u64 r4, r4, r2\nloop r1, @next\n",
    ),
    ("one", 64, "ldg.f32 r0, [x]\n"),
];

/// A block of 64 lanes that reduces the contributions by halves, in every known form.
fn halvings() -> Vec<(&'static str, String)> {
    let step = "add.u64 r8, r6, r7\nlds.f32 r9, [shared + r8]\nadd.f32 r0, r0, r9\nsts.f32 [shared + r6], r0\n";
    let skip = format!("set.ge.u64 p1, r6, r7\nbra @upper, p1\n{step}@upper:\nbar.sync 0\n");
    let unrolled: String = [32, 16, 8, 4, 2, 1]
        .iter()
        .map(|half| format!("mov_imm.u64 r7, {}\nset.lt.u64 p1, r6, r7\nbra @upper{half}, !p1\n{step}@upper{half}:\nbar.sync 0\n", 4 * half))
        .collect();
    let first = "set.ge.u64 p1, r6, r2\nbra @end, p1\nstg.f32 [y + 0], r0\n@end:";
    vec![
        (
            "do while",
            format!(
                "mov_imm.u64 r7, 128\nmov_imm.u32 r10, 1\n@halve:\n{skip}shr.u64 r7, r7, r10\nset.ge.u64 p2, r7, r2\nbra @halve, p2\nbra @end, p1\nstg.f32 [y + 0], r0\n@end:"
            ),
        ),
        (
            "while",
            format!(
                "mov_imm.u64 r7, 128\nmov_imm.u64 r11, 2\n@halve:\nset.lt.u64 p2, r7, r2\nbra @halved, p2\n{skip}div.u64 r7, r7, r11\nbra @halve\n@halved:\n{first}"
            ),
        ),
        (
            "counted",
            format!(
                "mov_imm.u64 r7, 128\nmov_imm.u32 r10, 1\nmov_imm.u32 r11, 5\n@halve:\n{skip}shr.u64 r7, r7, r10\nloop r11, @halve\n{first}"
            ),
        ),
        ("unrolled", format!("{unrolled}{first}")),
        (
            "through memory",
            format!(
                "{unrolled}set.ge.u64 p1, r6, r2\nbra @end, p1\nlds.f32 r0, [shared]\nstg.f32 [y + 0], r0\n@end:"
            ),
        ),
    ]
}

fn block(part: &str, halving: &str) -> String {
    format!(
        "buffer x: f32 read\nbuffer y: f32 write\nshared 256\nmov_imm.u64 r2, 4\nmul.u64 r6, r255, r2\n{}sts.f32 [shared + r6], r0\nbar.sync 0\n{halving}",
        part.replace("BYTES", "256")
    )
}

#[test]
fn every_form_of_a_block_s_reduction_is_one() {
    let launch = LaunchConfig::linear(64, 64);
    for (brought, n, part) in PARTS {
        for (name, halving) in halvings() {
            let program = checked(&block(part, &halving));
            let buffers = vec![values(n, 0.25), zeros(1)];
            let (shape, after) = planned(&program, &launch, &buffers, true);
            assert!(
                is_reduction(&shape, n),
                "{brought}, {name}: {shape} {:?}",
                recognized(&program, &launch, &buffers).refusals()
            );
            assert_eq!(
                after,
                reference(&program, &launch, &buffers),
                "{brought}, {name}"
            );
        }
    }
    // The same with products is a product of two vectors, and with expressions a tree.
    let dot = PARTS[0].2.replace(
        "ldg.f32 r5, [x + r4]\nadd.f32 r0, r0, r5",
        "ldg.f32 r5, [x + r4]\nldg.f32 r12, [w + r4]\nfma.f32 r0, r5, r12, r0",
    );
    let shapes = [
        (dot.clone(), "matvec.f32 of [1, 1000]"),
        (
            dot.replace(
                "ldg.f32 r12, [w + r4]",
                "ldg.f32 r12, [w + r4]\nneg.f32 r12, r12",
            ),
            "tree of add.f32 over 1000 terms",
        ),
    ];
    for (part, expected) in shapes {
        let program = checked(&block(&part, &halvings()[0].1).replace(
            "buffer x: f32 read",
            "buffer x: f32 read\nbuffer w: f32 read",
        ));
        let buffers = vec![values(1_000, 0.25), values(1_000, 0.5), zeros(1)];
        let (shape, after) = planned(&program, &launch, &buffers, true);
        assert_eq!(
            shape.to_string(),
            expected,
            "{:?}",
            recognized(&program, &launch, &buffers).refusals()
        );
        assert_eq!(after, reference(&program, &launch, &buffers), "{expected}");
    }
}

/// Replacements in the sum by a block of 64 lanes, do while.
type Changes = &'static [(&'static str, &'static str)];

/// Replacements, lanes of the block, and why it is then not recognised.
const NEAR: &[(Changes, u32, &str)] = &[
    (
        &[(
            "sts.f32 [shared + r6], r0\nbar.sync 0",
            "sts.f32 [shared + r6], r0",
        )],
        64,
        "a lane loads what another stores, with no barrier",
    ),
    (
        &[("@upper:\nbar.sync 0", "@upper:")],
        64,
        "the branch depends on data or on the iteration of a loop",
    ),
    (
        &[(
            "shr.u64 r7, r7, r10",
            "shr.u64 r7, r7, r10\nshr.u64 r7, r7, r10",
        )],
        64,
        "every value of lane stores to the same place",
    ),
    (
        &[("mov_imm.u64 r7, 128", "mov_imm.u64 r7, 64")],
        64,
        "the part of lane 32 is not taken exactly once",
    ),
    (
        &[("add.u64 r8, r6, r7", "add.u64 r8, r6, r2")],
        64,
        "a lane stores what another loads, with no barrier",
    ),
    (
        &[
            ("mov_imm.u64 r7, 128", "mov_imm.u64 r7, 96"),
            ("BYTES", "192"),
        ],
        48,
        "the place 4·lane + 6 in shared memory is not that of the lane",
    ),
    (
        &[("BYTES", "192")],
        48,
        "no barrier has shown what the cells 32 to 64 hold",
    ),
    (
        &[("set.ge.u64 p2, r7, r2", "set.gt.u64 p2, r7, r2")],
        64,
        "every value of lane stores to the same place",
    ),
    (
        &[("add.f32 r0, r0, r9", "max.f32 r0, r0, r9")],
        64,
        "by another operation than the lanes",
    ),
    (
        &[(
            "add.f32 r0, r0, r9",
            "add.f32 r0, r0, r9\nadd.f32 r0, r0, r9",
        )],
        64,
        "a lane's part is taken more than once",
    ),
    (
        &[("add.f32 r0, r0, r9", "sub.f32 r0, r0, r9")],
        64,
        "by another operation than the lanes",
    ),
    (
        &[("mov_imm.f32 r0, 0.0", "mov_imm.f32 r0, 1.0")],
        64,
        "does not begin with its neutral element",
    ),
    (
        &[("mov_imm.u64 r3, BYTES", "mov_imm.u64 r3, 252")],
        64,
        "the number of iterations is not known in advance",
    ),
    (
        &[("mov_imm.u64 r3, BYTES", "mov_imm.u64 r3, 260")],
        64,
        "the number of iterations is not known in advance",
    ),
    (
        &[("mov.u64 r4, r6", "add.u64 r4, r6, r2")],
        64,
        "leave gaps or overlap",
    ),
    (
        &[("mov_imm.u64 r1, 4000", "mov_imm.u64 r1, 3996")],
        64,
        "cover 3996 of 4000 bytes",
    ),
    (
        &[("bra @end, p1\nstg", "stg")],
        64,
        "r0 differs between lanes from lane 1 on",
    ),
    (
        &[(
            "stg.f32 [y + 0], r0",
            "add.f32 r0, r0, r0\nstg.f32 [y + 0], r0",
        )],
        64,
        "a lane's part is taken more than once",
    ),
    (
        &[("stg.f32 [y + 0], r0", "neg.f32 r0, r0\nstg.f32 [y + 0], r0")],
        64,
        "not an operation over the lanes' parts",
    ),
    (
        &[(
            "add.f32 r0, r0, r5\n",
            "add.f32 r0, r0, r5\nsts.f32 [shared + r6], r0\n",
        )],
        64,
        "does not support shared memory in a loop without barriers",
    ),
    (
        &[("sts.f32 [shared + r6], r0\nbar.sync 0", "bar.sync 0")],
        64,
        "no barrier has shown what the cells 32 to 64 hold",
    ),
    (
        &[
            ("lds.f32 r9", "lds.u32 r13"),
            (
                "add.f32 r0, r0, r9",
                "mov.u32 r9, r13\ncvt.f32.u32 r9, r9\nadd.f32 r0, r0, r9",
            ),
        ],
        64,
        "no barrier has shown what the cells",
    ),
];

#[test]
fn what_is_no_reduction_of_a_block_is_refused_with_the_reason() {
    for (changes, lanes, reason) in NEAR {
        let right = block(PARTS[0].2, &halvings()[0].1);
        // The block's text already contains its bytes.
        let original = |text: &str| text.replace("BYTES", "256");
        let text = changes.iter().fold(right, |text, (from, to)| {
            let from = original(from);
            assert!(text.contains(&from) || from == "256", "{from}");
            text.replace(&from, to)
        });
        let program = match Program::parse(&text).and_then(|program| program.check()) {
            Ok(program) => program,
            Err(error) => panic!("{error}\n{text}"),
        };
        refused(&program, &LaunchConfig::linear(*lanes, *lanes), reason);
    }
}

fn refused(program: &Checked, launch: &LaunchConfig, reason: &str) {
    let buffers = vec![values(1_000, 0.25), zeros(1)];
    let found = recognized(program, launch, &buffers);
    assert!(
        reasons(&found).contains(reason),
        "{}\n{}",
        reasons(&found),
        program.program()
    );
}

#[test]
fn several_blocks_do_not_meet() {
    let text = block(PARTS[2].2, &halvings()[0].1);
    let buffers = vec![values(128, 0.25), zeros(1)];
    let found = recognized(&checked(&text), &LaunchConfig::linear(128, 64), &buffers);
    assert!(
        reasons(&found).contains("only in launches of one block"),
        "{}",
        reasons(&found)
    );
    // A lane that keeps its own part of a shared loop.
    let text = format!(
        "buffer x: f32 read\nbuffer y: f32 write\nmov_imm.u64 r2, 4\nmul.u64 r6, r255, r2\n{}stg.f32 [y], r0",
        PARTS[0].2.replace("BYTES", "256")
    );
    let buffers = vec![values(1_000, 0.25), zeros(64)];
    let launch = LaunchConfig::linear(64, 64);
    let found = recognized(&checked(&text), &launch, &buffers);
    assert!(
        reasons(&found).contains("each lane keeps its own part"),
        "{}",
        reasons(&found)
    );
    assert_eq!(
        planned(&checked(&text), &launch, &buffers, true).1,
        reference(&checked(&text), &launch, &buffers)
    );
    assert!(matches!(
        recognized(&checked(&text), &ONE, &[values(1_000, 0.25), zeros(1)]).shape(),
        Shape::General
    ));
}

/// One line of a program changed, removed, or duplicated.
fn mutant(text: &str, random: &mut Random) -> String {
    const HEAD: usize = 3;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = HEAD + random.below((lines.len() - HEAD) as u64) as usize;
    let elsewhere = HEAD + random.below((lines.len() - HEAD) as u64) as usize;
    match random.below(4) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(elsewhere, lines[at].clone()),
        2 => lines.swap(at, elsewhere),
        _ => {
            let [from, to] = [(); 2].map(|()| {
                random.pick(&[
                    "r0", "r2", "r4", "r6", "r7", "r8", "r9", "4", "128", "256", "32", "8", "5",
                    "ge", "gt", "lt", "add", "max", "p1", "!p1", "p2", "4000",
                ])
            });
            lines[at] = lines[at].replacen(from, to, 1);
        }
    }
    lines.join("\n")
}

/// Of thousands of programs that are almost reductions, every recognised one gives the reference's
/// results, and none that the reference ends without a fault is reported to contradict its buffers.
#[test]
fn mutants_are_what_they_are_recognised_as() {
    let mut random = Random::new(1);
    let (mut kept, mut refused) = (0, 0);
    for _ in 0..3_000 {
        let (_, n, part) = PARTS[random.below(3) as usize];
        let mut text = block(part, &halvings()[random.below(5) as usize].1);
        for _ in 0..1 + random.below(2) {
            text = mutant(&text, &mut random);
        }
        let Ok(program) = Program::parse(&text).and_then(|program| program.check()) else {
            continue;
        };
        let (launch, buffers) = (
            LaunchConfig::linear(64, 64),
            vec![values(n, 0.25), zeros(1)],
        );
        let mut after = buffers.clone();
        let ends = matches!(
            program.evaluate(&launch, &mut after, 200_000),
            Ok(Outcome::Finished)
        );
        match try_recognize(&program, &launch, &buffers, true) {
            Ok(found) if matches!(found.shape(), Shape::General) => refused += 1,
            Ok(found) => {
                assert!(ends, "{} of what faults\n{text}", found.shape());
                assert_eq!(
                    planned(&program, &launch, &buffers, true).1,
                    after,
                    "{}\n{text}",
                    found.shape()
                );
                kept += 1;
            }
            Err(error) => assert!(!ends, "{error}\n{text}"),
        }
    }
    println!("mutants: {kept} recognised, {refused} refused");
    assert!(
        kept > 100 && refused > 500,
        "{kept} recognised, {refused} refused"
    );
}
