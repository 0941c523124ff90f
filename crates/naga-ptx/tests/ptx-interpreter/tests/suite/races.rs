//! Unordered conflicting accesses.

use crate::harness::Run;
use ptx_interpreter::{ErrorKind, Fault, Schedule};

/// Whether the body races, which must not depend on the schedule.
fn races(run: &Run, body: &str) -> bool {
    let outcomes = [Schedule::Forward, Schedule::Reverse, Schedule::Random(5)].map(|schedule| {
        let run = Run {
            schedule,
            block: run.block,
            grid: run.grid,
            ..Run::default()
        };
        match run.words(body, &[0; 256]) {
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::Fault(Fault::Race) => true,
            Err(error) => panic!("{body}: {error}"),
        }
    });
    assert!(
        outcomes.iter().all(|outcome| *outcome == outcomes[0]),
        "{body}: {outcomes:?}"
    );
    outcomes[0]
}

const NEIGHBOUR: &str =
    "add.u32 %r1, %r0, 1; and.b32 %r1, %r1, 63; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d0, %d2;";

#[test]
fn within_a_block() {
    let run = Run::threads(64);
    let table = [
        ("st.global.u32 [%d0], 1;", true),
        ("st.global.u32 [%d1], 1;", false),
        ("ld.global.u32 %r2, [%d0];", false),
        ("st.global.u32 [%d1], 1; ld.global.u32 %r2, [%d2];", true),
        (
            "st.global.u32 [%d1], 1; bar.sync 0; ld.global.u32 %r2, [%d2];",
            false,
        ),
        ("ld.global.u32 %r2, [%d2]; st.global.u32 [%d1], 1;", true),
        (
            "ld.global.u32 %r2, [%d2]; bar.sync 0; st.global.u32 [%d1], 1;",
            false,
        ),
        // A barrier of the warp orders neighbours, except across the boundary between the two
        // warps.
        (
            "st.global.u32 [%d1], 1; bar.warp.sync -1; ld.global.u32 %r2, [%d2];",
            true,
        ),
        ("atom.global.add.u32 %r2, [%d0], 1;", false),
        (
            "atom.global.add.u32 %r2, [%d0], 1; ld.global.u32 %r2, [%d0];",
            true,
        ),
        (
            "atom.global.add.u32 %r2, [%d0], 1; ld.relaxed.gpu.global.u32 %r2, [%d0];",
            false,
        ),
        ("st.volatile.global.u32 [%d0], 1;", false),
        // Different bytes of one word do not conflict.
        (
            "cvt.u64.u32 %d3, %r0; add.u64 %d3, %d0, %d3; st.global.u8 [%d3], 1;",
            false,
        ),
        (".shared .b32 s; st.shared.u32 [s], 1;", true),
        (
            ".shared .b32 s; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [s], 1; bar.sync 0; ld.shared.u32 %r2, [s];",
            false,
        ),
        // Two phases reuse the shared word: the second barrier is needed.
        (
            ".shared .b32 s; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [s], 1; bar.sync 0; ld.shared.u32 %r2, [s]; @%p1 st.shared.u32 [s], 2;",
            true,
        ),
        (
            ".shared .b32 s; setp.eq.u32 %p1, %r0, 0; @%p1 st.shared.u32 [s], 1; bar.sync 0; ld.shared.u32 %r2, [s]; bar.sync 0; @%p1 st.shared.u32 [s], 2;",
            false,
        ),
    ];
    for (body, expected) in table {
        assert_eq!(
            races(&run, &format!("{NEIGHBOUR} {body}")),
            expected,
            "{body}"
        );
    }
}

#[test]
fn within_a_warp() {
    let run = Run::threads(32);
    let neighbour = NEIGHBOUR.replace("63", "31");
    for (body, expected) in [
        ("st.global.u32 [%d1], 1; ld.global.u32 %r2, [%d2];", true),
        (
            "st.global.u32 [%d1], 1; bar.warp.sync -1; ld.global.u32 %r2, [%d2];",
            false,
        ),
        // A shuffle orders no memory.
        (
            "st.global.u32 [%d1], 1; shfl.sync.idx.b32 %r3, %r0, 0, 31, -1; ld.global.u32 %r2, [%d2];",
            true,
        ),
        // Pairs synchronise, but the neighbour may be in another pair.
        (
            "st.global.u32 [%d1], 1; and.b32 %r4, %r0, 30; shl.b32 %r5, 3, %r4; bar.warp.sync %r5; ld.global.u32 %r2, [%d2];",
            true,
        ),
        (
            "st.global.u32 [%d1], 1; and.b32 %r4, %r0, 30; shl.b32 %r5, 3, %r4; bar.warp.sync %r5;\n\
             xor.b32 %r1, %r0, 1; mul.wide.u32 %d2, %r1, 4; add.u64 %d2, %d0, %d2; ld.global.u32 %r2, [%d2];",
            false,
        ),
    ] {
        assert_eq!(
            races(&run, &format!("{neighbour} {body}")),
            expected,
            "{body}"
        );
    }
}

#[test]
fn between_blocks() {
    let run = Run {
        grid: [3, 1, 1],
        ..Run::threads(1)
    };
    for (body, expected) in [
        ("st.global.u32 [%d0], 1;", true),
        ("ld.global.u32 %r2, [%d0];", false),
        ("red.global.add.u32 [%d0], 1;", false),
        // The block scope is not atomic with respect to another block.
        ("red.cta.global.add.u32 [%d0], 1;", true),
        (
            "red.global.add.u32 [%d0], 1; bar.sync 0; ld.global.u32 %r2, [%d0];",
            true,
        ),
        (
            "mov.u32 %r3, %ctaid.x; mul.wide.u32 %d3, %r3, 4; add.u64 %d3, %d0, %d3; st.global.u32 [%d3], 1;",
            false,
        ),
        (
            "mov.u32 %r3, %ctaid.x; setp.eq.u32 %p1, %r3, 1; ld.global.u32 %r2, [%d0]; bar.sync 0; @%p1 st.global.u32 [%d0], 1;",
            true,
        ),
    ] {
        assert_eq!(races(&run, body), expected, "{body}");
    }
}
