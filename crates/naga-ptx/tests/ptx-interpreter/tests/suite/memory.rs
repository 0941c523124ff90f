//! State spaces, vectors, atomics and special registers.

use crate::harness::{Run, check, module};
use ptx_interpreter::{Launch, Memory, Program};

#[test]
fn narrow_loads_extend_by_their_type() {
    let buffer = ".shared .align 8 .b8 s[16]; mov.u32 %r1, 0x80ff; st.shared.u16 [s], %r1;";
    for (instruction, result, expected) in [
        ("ld.shared.u8 %r0, [s];", "%r0", 0xff),
        ("ld.shared.s8 %r0, [s];", "%r0", 0xffff_ffff),
        ("ld.shared.b8 %r0, [s+1];", "%r0", 0x80),
        ("ld.shared.s16 %d0, [s];", "%d0", 0xffff_ffff_ffff_80ff),
        ("ld.shared.u16 %h0, [s];", "%h0", 0x80ff),
        ("ld.shared.s8 %h0, [s+1];", "%h0", 0xff80),
    ] {
        let body = format!("{buffer} {instruction}");
        check(&[(&body, result, expected)]);
    }
}

#[test]
fn vectors_move_their_elements_in_order() {
    check(&[
        (
            ".local .align 16 .b8 l[16]; mov.u32 %r1, 1; mov.u32 %r2, 2; \
             st.local.v4.u32 [l], {%r1, %r2, 3, 4}; ld.local.v4.b32 {%r3, _, %r4, %r5}, [l]; \
             mad.lo.u32 %r0, %r4, 10, %r5;",
            "%r0",
            34,
        ),
        (
            ".local .align 16 .b8 l[16]; mov.u64 %d1, 7; st.local.v2.b64 [l], {%d1, %d1}; ld.local.u32 %r0, [l+8];",
            "%r0",
            7,
        ),
    ]);
}

#[test]
fn generic_addresses_reach_every_space() {
    check(&[
        (
            ".shared .b32 s; st.shared.u32 [s], 41; cvta.shared.u64 %d1, s; ld.u32 %r1, [%d1]; add.u32 %r0, %r1, 1;",
            "%r0",
            42,
        ),
        (
            ".local .b32 l; mov.u64 %d1, l; cvta.local.u64 %d2, %d1; st.u32 [%d2], 5; ld.local.u32 %r0, [l];",
            "%r0",
            5,
        ),
        (
            ".shared .b32 s; cvta.shared.u64 %d1, s; cvta.to.shared.u64 %d2, %d1; st.shared.u32 [%d2], 3; ld.shared.u32 %r0, [s];",
            "%r0",
            3,
        ),
        (
            ".shared .b32 s; cvta.shared.u64 %d1, s; isspacep.shared %p0, %d1;",
            "%p0",
            1,
        ),
        (
            ".shared .b32 s; cvta.shared.u64 %d1, s; isspacep.global %p0, %d1;",
            "%p0",
            0,
        ),
        ("isspacep.global %p0, %d19;", "%p0", 1),
    ]);
}

#[test]
fn module_variables_start_from_their_initial_values() {
    let text = module(
        ".param .u64 out",
        "ld.param.u64 %d0, [out]; ld.const.u32 %r1, [c+8]; ld.global.u32 %r2, [g]; ld.global.u32 %r3, [g+4];\n\
         add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3; st.global.u32 [g], 99; st.global.u32 [%d0], %r1;",
    )
    .replace(".visible", ".const .align 4 .b32 c[4] = {1, 2, 0x30, 4};\n.global .align 4 .u32 g[2] = {5};\n.visible");
    let program = Program::parse(&text).expect("parses");
    let mut memory = Memory::new();
    let out = memory.allocate(&[0; 4]);
    for _ in 0..2 {
        program
            .run(&mut memory, &Launch::new("k", &[out]))
            .expect("runs");
        assert_eq!(memory.read(out, 4).expect("is written"), [0x35, 0, 0, 0]);
    }
}

#[test]
fn entries_may_declare_constants_of_their_own() {
    check(&[(
        ".const .align 4 .b32 c[2] = {4, 5}; .global .b32 g; ld.const.u32 %r1, [c+4]; ld.global.u32 %r2, [g]; add.u32 %r0, %r1, %r2;",
        "%r0",
        5,
    )]);
}

#[test]
fn params_lie_in_order_and_are_typed() {
    let text = module(
        ".param .u64 out, .param .u32 n, .param .f32 x, .param .u8 b",
        "ld.param.u64 %d0, [out]; ld.param.u32 %r1, [n]; ld.param.b32 %r2, [x]; ld.param.u8 %r3, [b];\n\
         st.global.v4.b32 [%d0], {%r1, %r2, %r3, 0};",
    );
    let program = Program::parse(&text).expect("parses");
    assert_eq!(program.entries().collect::<Vec<_>>(), ["k"]);
    let mut memory = Memory::new();
    let out = memory.allocate_uninit(16);
    let params = [out, 7, u64::from(1.5f32.to_bits()), 0x1ff];
    let stats = program
        .run(&mut memory, &Launch::new("k", &params))
        .expect("runs");
    let expected = [[7, 0, 0, 0], [0, 0, 0xc0, 0x3f], [0xff, 0, 0, 0], [0; 4]].concat();
    assert_eq!(memory.read(out, 16).expect("is written"), expected);
    assert_eq!(
        (stats.loads, stats.stores, stats.global_bytes_stored),
        (4, 1, 16)
    );
}

#[test]
fn dynamic_shared_memory_follows_the_static_variables() {
    let text = module(
        ".param .u64 out",
        ".shared .b32 fixed; ld.param.u64 %d0, [out]; mov.u32 %r1, dyn; st.shared.u32 [fixed], 1;\n\
         st.shared.u32 [%r1+12], 5; ld.shared.u32 %r2, [dyn+12]; st.global.u32 [%d0], %r2;",
    )
    .replace(".visible", ".extern .shared .align 16 .b8 dyn[];\n.visible");
    let run = |bytes| {
        Run {
            dynamic_shared_bytes: bytes,
            ..Run::threads(1)
        }
        .module(&text, &[0])
    };
    assert_eq!(run(16).expect("runs").0, [5]);
    assert!(run(12).is_err());
}

#[test]
fn atomics_return_the_old_value() {
    let table: [(&str, u32, u32, u32); 12] = [
        ("atom.global.add.u32 %r1, [%d0], 5;", 7, 7, 12),
        ("atom.global.min.s32 %r1, [%d0], -1;", 7, 7, 0xffff_ffff),
        ("atom.global.max.u32 %r1, [%d0], 9;", 7, 7, 9),
        ("atom.global.and.b32 %r1, [%d0], 3;", 6, 6, 2),
        ("atom.global.exch.b32 %r1, [%d0], 3;", 6, 6, 3),
        ("atom.global.cas.b32 %r1, [%d0], 6, 8;", 6, 6, 8),
        ("atom.global.cas.b32 %r1, [%d0], 5, 8;", 6, 6, 6),
        ("atom.global.inc.u32 %r1, [%d0], 6;", 6, 6, 0),
        ("atom.global.inc.u32 %r1, [%d0], 7;", 6, 6, 7),
        ("atom.global.dec.u32 %r1, [%d0], 7;", 0, 0, 7),
        ("atom.global.dec.u32 %r1, [%d0], 7;", 9, 9, 7),
        (
            "atom.relaxed.gpu.global.add.f32 %r1, [%d0], 0f3f800000;",
            0x3f80_0000,
            0x3f80_0000,
            0x4000_0000,
        ),
    ];
    for (instruction, before, returned, after) in table {
        let body = format!("{instruction} st.global.u32 [%d0+4], %r1;");
        let (words, _) = Run::threads(1)
            .words(&body, &[before, 0])
            .expect(instruction);
        assert_eq!(words, [after, returned], "{instruction}");
    }
}

#[test]
fn reductions_collect_all_threads() {
    let run = Run {
        block: [64, 1, 1],
        grid: [3, 1, 1],
        ..Run::default()
    };
    let (words, stats) = run
        .words("red.global.add.u32 [%d0], 1;", &[0])
        .expect("runs");
    assert_eq!(words, [192]);
    assert_eq!(stats.atomics, 192);
}

#[test]
fn special_registers_say_where_a_thread_is() {
    let body = "mov.u32 %r1, %tid.y; mov.u32 %r2, %tid.z; mov.u32 %r3, %ntid.x; mov.u32 %r4, %ntid.y;\n\
        mad.lo.u32 %r5, %r2, %r4, %r1; mad.lo.u32 %r5, %r5, %r3, %r0; mul.wide.u32 %d1, %r5, 4; add.u64 %d1, %d0, %d1;\n\
        mov.u32 %r6, %warpid; mov.u32 %r7, %laneid; mov.u32 %r8, WARP_SZ; mad.lo.u32 %r6, %r6, %r8, %r7;\n\
        mov.u32 %r9, %lanemask_lt; popc.b32 %r9, %r9; sub.u32 %r9, %r9, %r7; add.u32 %r6, %r6, %r9;\n\
        st.global.u32 [%d1], %r6;";
    let run = Run {
        block: [5, 3, 4],
        ..Run::default()
    };
    let (words, _) = run.words(body, &[0; 60]).expect("runs");
    assert_eq!(words, (0..60).collect::<Vec<u32>>());
}

#[test]
fn branches_follow_labels_and_tables() {
    let body = "mov.u32 %r1, 0; mov.u32 %r2, 0;\nLOOP: add.u32 %r1, %r1, %r2; add.u32 %r2, %r2, 1;\n\
        setp.lt.u32 %p1, %r2, 10; @%p1 bra LOOP;\nT: .branchtargets A, B, C;\nbrx.idx %r0, T;\n\
        A: add.u32 %r1, %r1, 100; bra.uni DONE;\nB: { .reg .b32 %r1; mov.u32 %r1, 3; bra DONE; }\nC: @!%p1 mov.u32 %r1, 7;\n\
        DONE: st.global.u32 [%d1], %r1;";
    let (words, _) = Run::threads(3).words(body, &[0; 3]).expect("runs");
    assert_eq!(words, [145, 45, 7]);
}
