//! Warp-level instructions and barriers.

use crate::harness::Run;
use ptx_interpreter::Schedule;

fn lanes(body: &str) -> Vec<u32> {
    let body = format!("{body} st.global.u32 [%d1], %r9;");
    let mut results = [Schedule::Forward, Schedule::Reverse, Schedule::Random(3)].map(|schedule| {
        let run = Run {
            schedule,
            ..Run::default()
        };
        run.words(&body, &[0; 32]).expect("runs").0
    });
    assert_eq!(results[0], results[1]);
    assert_eq!(results[0], results[2]);
    std::mem::take(&mut results[0])
}

fn expect(body: &str, expected: impl Fn(u32) -> u32) {
    let expected: Vec<u32> = (0..32).map(expected).collect();
    assert_eq!(lanes(body), expected, "{body}");
}

#[test]
fn shuffles_read_the_named_lane() {
    expect("shfl.sync.idx.b32 %r9, %r0, 5, 31, -1;", |_| 5);
    expect("shfl.sync.up.b32 %r9, %r0, 1, 0, -1;", |lane| {
        lane.saturating_sub(1)
    });
    expect("shfl.sync.down.b32 %r9, %r0, 2, 31, -1;", |lane| {
        if lane < 30 { lane + 2 } else { lane }
    });
    expect("shfl.sync.bfly.b32 %r9, %r0, 3, 31, -1;", |lane| lane ^ 3);
}

#[test]
fn shuffles_stay_within_their_segment() {
    // Segments of eight lanes: the mask 24 in bits 8 to 12, the clamp in bits 0 to 4.
    expect("shfl.sync.idx.b32 %r9, %r0, 10, 0x181f, -1;", |lane| {
        lane / 8 * 8 + 2
    });
    expect("shfl.sync.up.b32 %r9, %r0, 3, 0x1800, -1;", |lane| {
        if lane % 8 < 3 { lane } else { lane - 3 }
    });
    expect("shfl.sync.down.b32 %r9, %r0, 3, 0x181f, -1;", |lane| {
        if lane % 8 > 4 { lane } else { lane + 3 }
    });
    expect("shfl.sync.bfly.b32 %r9, %r0, 9, 0x181f, -1;", |lane| {
        let other = lane ^ 9;
        if other > (lane | 7) { lane } else { other }
    });
}

#[test]
fn shuffles_say_whether_the_lane_was_in_range() {
    expect(
        "shfl.sync.up.b32 %r8|%p1, %r0, 4, 0, -1; selp.u32 %r9, 1, 0, %p1;",
        |lane| u32::from(lane >= 4),
    );
    expect(
        "shfl.sync.down.b32 %r8|%p1, %r0, 4, 31, -1; selp.u32 %r9, 1, 0, %p1;",
        |lane| u32::from(lane + 4 <= 31),
    );
}

#[test]
fn votes() {
    expect(
        "setp.lt.u32 %p1, %r0, 4; vote.sync.ballot.b32 %r9, %p1, -1;",
        |_| 0xf,
    );
    expect(
        "setp.lt.u32 %p1, %r0, 4; vote.sync.ballot.b32 %r9, !%p1, -1;",
        |_| 0xffff_fff0,
    );
    for (mode, bound, expected) in [
        ("all", 32, 1),
        ("all", 31, 0),
        ("any", 1, 1),
        ("any", 0, 0),
        ("uni", 0, 1),
        ("uni", 32, 1),
        ("uni", 5, 0),
    ] {
        let body = format!(
            "setp.lt.u32 %p1, %r0, {bound}; vote.sync.{mode}.pred %p2, %p1, -1; selp.u32 %r9, 1, 0, %p2;"
        );
        expect(&body, |_| expected);
    }
}

#[test]
fn reductions_and_matches() {
    expect("redux.sync.add.u32 %r9, %r0, -1;", |_| 496);
    expect(
        "sub.u32 %r1, %r0, 5; redux.sync.min.s32 %r9, %r1, -1;",
        |_| -5i32 as u32,
    );
    expect(
        "sub.u32 %r1, %r0, 5; redux.sync.max.u32 %r9, %r1, -1;",
        |_| 0xffff_ffff,
    );
    expect("redux.sync.xor.b32 %r9, %r0, -1;", |_| 0);
    expect(
        "and.b32 %r1, %r0, 1; match.any.sync.b32 %r9, %r1, -1;",
        |lane| {
            if lane % 2 == 0 {
                0x5555_5555
            } else {
                0xaaaa_aaaa
            }
        },
    );
    expect(
        "mov.u32 %r1, 7; match.all.sync.b32 %r9|%p1, %r1, -1;",
        |_| 0xffff_ffff,
    );
    expect("match.all.sync.b32 %r9|%p1, %r0, -1;", |_| 0);
    expect(
        "elect.sync %r9|%p1, -1; @%p1 add.u32 %r9, %r9, 100;",
        |lane| if lane == 0 { 100 } else { 0 },
    );
}

#[test]
fn half_a_warp_works_on_its_own() {
    expect(
        "setp.lt.u32 %p1, %r0, 16; mov.u32 %r9, 0; @%p1 bra LOW; bra DONE;\n\
         LOW: activemask.b32 %r1; redux.sync.add.u32 %r9, %r0, %r1;\nDONE:",
        |lane| if lane < 16 { 120 } else { 0 },
    );
}

#[test]
fn a_partial_warp_may_name_lanes_that_do_not_exist() {
    let body =
        "setp.lt.u32 %p1, %r0, 4; vote.sync.ballot.b32 %r9, %p1, -1; st.global.u32 [%d1], %r9;";
    let (words, _) = Run::threads(5).words(body, &[0; 5]).expect("runs");
    assert_eq!(words, [15; 5]);
}

#[test]
fn barriers_order_shared_memory() {
    let body = ".shared .align 4 .b32 s[64]; mov.u32 %r1, s; shl.b32 %r2, %r0, 2; add.u32 %r1, %r1, %r2;\n\
        st.shared.u32 [%r1], %r0; bar.sync 0; xor.b32 %r3, %r0, 63; mov.u32 %r4, s; shl.b32 %r3, %r3, 2; add.u32 %r4, %r4, %r3;\n\
        ld.shared.u32 %r5, [%r4]; st.global.u32 [%d1], %r5;";
    for schedule in [Schedule::Forward, Schedule::Reverse, Schedule::Random(9)] {
        let run = Run {
            schedule,
            ..Run::threads(64)
        };
        let (words, stats) = run.words(body, &[0; 64]).expect("runs");
        assert_eq!(words, (0..64).rev().collect::<Vec<u32>>());
        assert_eq!(stats.barriers, 1);
    }
}

#[test]
fn barriers_reduce() {
    let body = "setp.lt.u32 %p1, %r0, 5; bar.red.popc.u32 %r1, 0, %p1; bar.red.and.pred %p2, 0, %p1; bar.red.or.pred %p3, 0, %p1;\n\
        selp.u32 %r2, 10, 0, %p2; selp.u32 %r3, 100, 0, %p3; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.global.u32 [%d1], %r1;";
    let (words, _) = Run::threads(40).words(body, &[0; 40]).expect("runs");
    assert_eq!(words, [105; 40]);
}

#[test]
fn a_producing_warp_arrives_without_waiting() {
    let body = ".shared .align 4 .b32 s; setp.ge.u32 %p1, %r0, 32; @%p1 bra PRODUCER;\n\
        bar.sync 1, 64; ld.shared.u32 %r1, [s]; st.global.u32 [%d1], %r1; bra DONE;\n\
        PRODUCER: setp.eq.u32 %p2, %r0, 32; @%p2 st.shared.u32 [s], 9; bar.arrive 1, 64;\nDONE:";
    let (words, _) = Run::threads(64).words(body, &[0; 64]).expect("runs");
    assert_eq!(words[..32], [9; 32]);
    assert_eq!(words[32..], [0; 32]);
}

#[test]
fn a_missing_barrier_shows_as_different_answers() {
    let body = ".shared .align 4 .b32 s; st.shared.u32 [s], %r0; ld.shared.u32 %r9, [s]; setp.eq.u32 %p1, %r0, 0;\n\
        bar.sync 0; ld.shared.u32 %r9, [s]; st.global.u32 [%d1], %r9;";
    let run = |schedule| {
        let run = Run {
            schedule,
            race_check: false,
            ..Run::default()
        };
        run.words(body, &[0; 32]).expect("runs").0
    };
    assert_eq!(run(Schedule::Forward), [31; 32]);
    assert_eq!(run(Schedule::Reverse), [0; 32]);
}

#[test]
fn a_block_that_waits_for_another_lets_it_run() {
    // Block 0 spins until block 1 has set the flag, in either order of blocks.
    let body = "mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra WAIT; st.relaxed.gpu.global.u32 [%d0], 1; bra DONE;\n\
        WAIT: ld.relaxed.gpu.global.u32 %r2, [%d0]; setp.eq.u32 %p2, %r2, 0; @%p2 bra WAIT; st.global.u32 [%d0+4], 3;\nDONE:";
    for schedule in [Schedule::Forward, Schedule::Reverse, Schedule::Random(1)] {
        let run = Run {
            grid: [2, 1, 1],
            schedule,
            limit: 1 << 26,
            ..Run::threads(1)
        };
        assert_eq!(run.words(body, &[0, 0]).expect("runs").0, [1, 3]);
    }
}
