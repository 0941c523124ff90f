//! One program for each rule that a running thread can break.

use crate::harness::{Run, module, value};
use ptx_interpreter::{Error, ErrorKind, Fault, Launch, Memory, Program};

fn fault_of(result: Result<impl std::fmt::Debug, Error>) -> Fault {
    match result.expect_err("must fault").kind() {
        ErrorKind::Fault(fault) => fault,
        other => panic!("{other:?} is no fault"),
    }
}

fn check(table: &[(&str, Fault)]) {
    for (body, expected) in table {
        let found = value(&format!("{body} mov.u32 %r0, 0;"), "%r0");
        match found.as_ref().map_err(Error::kind) {
            Err(ErrorKind::Fault(fault)) if fault == *expected => {}
            _ => panic!("{body}: expected {expected:?}, found {found:?}"),
        }
    }
}

#[test]
fn undefined_values() {
    check(&[
        ("add.u32 %r1, %r2, 1;", Fault::UndefinedRegister),
        ("@%p1 add.u32 %r1, 1, 1;", Fault::UndefinedRegister),
        (
            "mov.pred %p1, 0; @%p1 mov.u32 %r1, 1; mov.u32 %r2, %r1;",
            Fault::UndefinedRegister,
        ),
        ("st.global.u32 [%d1], 1;", Fault::UndefinedRegister),
        ("addc.u32 %r1, 0, 0;", Fault::UndefinedRegister),
        (
            "mov.u32 %r1, 0; div.u32 %r2, 5, %r1;",
            Fault::UndefinedResult,
        ),
        (
            "mov.s64 %d1, 0; rem.s64 %d2, 5, %d1;",
            Fault::UndefinedResult,
        ),
        (
            "mov.u32 %r1, 1; { .reg .b32 %r1; add.u32 %r2, %r1, 1; }",
            Fault::UndefinedRegister,
        ),
    ]);
}

#[test]
fn uninitialised_bytes() {
    check(&[
        (
            ".shared .b32 s; ld.shared.u32 %r1, [s];",
            Fault::Uninitialised,
        ),
        (
            ".local .b32 l; ld.local.u32 %r1, [l];",
            Fault::Uninitialised,
        ),
        (
            ".shared .align 4 .b8 s[4]; st.shared.u16 [s], 1; ld.shared.u32 %r1, [s];",
            Fault::Uninitialised,
        ),
        (
            ".shared .b32 s; atom.shared.add.u32 %r1, [s], 1;",
            Fault::Uninitialised,
        ),
    ]);
    let text = module(
        ".param .u64 in",
        "ld.param.u64 %d0, [in]; ld.global.u32 %r1, [%d0];",
    );
    let program = Program::parse(&text).expect("parses");
    let mut memory = Memory::new();
    let address = memory.allocate_uninit(4);
    let launch = Launch::new("k", &[]);
    let params = [address];
    let launch = Launch {
        params: &params,
        ..launch
    };
    assert_eq!(
        fault_of(program.run(&mut memory, &launch)),
        Fault::Uninitialised
    );
    memory.write(address, &[1, 2, 3, 4]).expect("is allocated");
    program.run(&mut memory, &launch).expect("runs");
}

#[test]
fn addresses_outside_their_variable() {
    check(&[
        ("ld.global.u32 %r1, [%d19+8];", Fault::OutOfRange),
        ("ld.global.u32 %r1, [%d19+-4];", Fault::OutOfRange),
        (
            "mov.u64 %d1, 0; ld.global.u32 %r1, [%d1];",
            Fault::OutOfRange,
        ),
        (
            ".shared .align 4 .b8 s[8], t[8]; st.shared.u32 [s+8], 1;",
            Fault::OutOfRange,
        ),
        (
            ".shared .align 4 .b8 s[8]; st.shared.u32 [s+-4], 1;",
            Fault::OutOfRange,
        ),
        (
            ".local .align 4 .b8 l[8]; st.local.u32 [l+8], 1;",
            Fault::OutOfRange,
        ),
        ("ld.param.u32 %r1, [out+8];", Fault::OutOfRange),
    ]);
}

#[test]
fn freed_memory() {
    let text = module(
        ".param .u64 in",
        "ld.param.u64 %d0, [in]; ld.global.u32 %r1, [%d0];",
    );
    let program = Program::parse(&text).expect("parses");
    let mut memory = Memory::new();
    let address = memory.allocate(&[0; 4]);
    assert_eq!(address % 256, 0);
    memory.free(address).expect("is allocated");
    assert_eq!(
        fault_of(program.run(&mut memory, &Launch::new("k", &[address]))),
        Fault::OutOfRange
    );
    assert_eq!(fault_of(memory.free(address)), Fault::OutOfRange);
    assert_eq!(fault_of(memory.read(address, 1)), Fault::OutOfRange);
    assert!(memory.allocate(&[0; 4]) != address);
}

#[test]
fn misaligned_addresses() {
    check(&[
        ("ld.global.u32 %r1, [%d19+2];", Fault::Misaligned),
        ("ld.global.u16 %r1, [%d19+1];", Fault::Misaligned),
        (
            ".shared .align 16 .b8 s[32]; st.shared.v2.u32 [s+4], {1, 2};",
            Fault::Misaligned,
        ),
        (
            ".shared .align 16 .b8 s[32]; st.shared.v4.u32 [s+8], {1, 2, 3, 4};",
            Fault::Misaligned,
        ),
        ("atom.global.add.u64 %d1, [%d19+4], 1;", Fault::Misaligned),
    ]);
}

#[test]
fn state_spaces() {
    check(&[
        (
            ".shared .b32 s; mov.u64 %d1, s; ld.global.u32 %r1, [%d1];",
            Fault::WrongSpace,
        ),
        (
            ".shared .b32 s; mov.u64 %d1, s; ld.local.u32 %r1, [%d1];",
            Fault::WrongSpace,
        ),
        ("ld.shared.u32 %r1, [%d19];", Fault::WrongSpace),
        (
            ".shared .b32 s; cvta.shared.u64 %d1, s; st.shared.u32 [%d1], 1;",
            Fault::WrongSpace,
        ),
        // A state-space address is not a generic address.
        (
            ".shared .b32 s; mov.u64 %d1, s; st.u32 [%d1], 1;",
            Fault::OutOfRange,
        ),
        (
            ".local .b32 l; st.local.u32 [l], 1; cvta.local.u64 %d1, l; red.add.u32 [%d1], 1;",
            Fault::WrongSpace,
        ),
        (
            "mov.u64 %d1, out; cvta.param.u64 %d1, %d1; st.u64 [%d1], 1;",
            Fault::ReadOnly,
        ),
    ]);
    let text = module("", "cvta.const.u64 %d0, c; st.u32 [%d0], 1;")
        .replace(".visible", ".const .b32 c = 1;\n.visible");
    let program = Program::parse(&text).expect("parses");
    let result = program.run(&mut Memory::new(), &Launch::new("k", &[]));
    assert_eq!(fault_of(result), Fault::ReadOnly);
}

#[test]
fn non_coherent_loads_of_written_memory() {
    check(&[
        (
            "st.global.u32 [%d19], 1; ld.global.nc.u32 %r1, [%d19];",
            Fault::NonCoherent,
        ),
        (
            "ld.global.nc.u32 %r1, [%d19]; st.global.u32 [%d19], 1;",
            Fault::NonCoherent,
        ),
    ]);
    // Writes of an earlier launch are allowed.
    let text = module(
        ".param .u64 in",
        "ld.param.u64 %d0, [in]; ld.global.nc.u32 %r1, [%d0]; st.global.u32 [%d0+4], %r1;",
    );
    let program = Program::parse(&text).expect("parses");
    let mut memory = Memory::new();
    let address = memory.allocate(&[0; 12]);
    program
        .run(&mut memory, &Launch::new("k", &[address]))
        .expect("runs");
    program
        .run(&mut memory, &Launch::new("k", &[address + 4]))
        .expect("runs");
}

#[test]
fn barriers_that_some_threads_never_reach() {
    let exits = "setp.eq.u32 %p1, %r0, 3; @%p1 exit; bar.sync 0;";
    assert_eq!(
        fault_of(Run::threads(64).words(exits, &[0; 64])),
        Fault::Deadlock
    );
    let skips = "setp.lt.u32 %p1, %r0, 32; @%p1 bar.sync 0; @!%p1 bar.sync 1;";
    assert_eq!(
        fault_of(Run::threads(64).words(skips, &[0; 64])),
        Fault::Deadlock
    );
    let diverges =
        "setp.lt.u32 %p1, %r0, 3; @%p1 bra A; bar.sync 0; bra DONE; A: bar.sync 0; DONE:";
    assert_eq!(
        fault_of(Run::threads(64).words(diverges, &[0; 64])),
        Fault::Divergence
    );
    let unaligned = diverges.replace("bar.sync", "barrier.sync");
    Run::threads(64)
        .words(&unaligned, &[0; 64])
        .expect("the unaligned form allows it");
    let by_warp = diverges.replace("%r0, 3", "%r0, 32");
    Run::threads(64)
        .words(&by_warp, &[0; 64])
        .expect("whole warps may differ");
    let count = "bar.sync 1, 96;";
    assert_eq!(
        fault_of(Run::threads(64).words(count, &[0; 64])),
        Fault::Deadlock
    );
}

#[test]
fn warp_instructions_executed_by_other_threads_than_named() {
    for (body, expected) in [
        (
            "shfl.sync.idx.b32 %r1, %r0, 0, 31, 0xfffffffe;",
            Fault::Divergence,
        ),
        (
            "setp.eq.u32 %p1, %r0, 3; @%p1 exit; vote.sync.any.pred %p2, %p1, -1;",
            Fault::Divergence,
        ),
        (
            "setp.eq.u32 %p1, %r0, 3; @%p1 bra A; bar.warp.sync -1; bra D; A: redux.sync.add.u32 %r1, %r0, -1; D:",
            Fault::Divergence,
        ),
        (
            "setp.eq.u32 %p1, %r0, 3; @%p1 bra A; bar.warp.sync -1; bra D; A: bar.sync 0; D:",
            Fault::Divergence,
        ),
        (
            "setp.eq.u32 %p1, %r0, 3; selp.b32 %r1, -1, 0x7fffffff, %p1; match.any.sync.b32 %r2, %r0, %r1;",
            Fault::Divergence,
        ),
        (
            "setp.lt.u32 %p1, %r0, 16; @%p1 bra A; exit; A: shfl.sync.idx.b32 %r1, %r0, 20, 31, 0xffff; add.u32 %r1, %r1, 1;",
            Fault::UndefinedRegister,
        ),
    ] {
        assert_eq!(
            fault_of(Run::default().words(body, &[0; 32])),
            expected,
            "{body}"
        );
    }
    let unread = "setp.lt.u32 %p1, %r0, 16; @%p1 bra A; exit; A: shfl.sync.idx.b32 %r1, %r0, 20, 31, 0xffff;";
    Run::default()
        .words(unread, &[0; 32])
        .expect("an undefined value that nothing reads is no fault");
}

#[test]
fn endless_loops_and_traps() {
    let endless = Run {
        limit: 10_000,
        ..Run::threads(2)
    }
    .words("L: bra L;", &[0; 2]);
    assert_eq!(fault_of(endless), Fault::Limit);
    check(&[("trap;", Fault::Trap)]);
}

#[test]
fn indexed_branches_outside_their_table() {
    let body = "mov.u32 %r1, 1; T: .branchtargets A; brx.idx %r1, T; A:";
    check(&[(body, Fault::OutOfRange)]);
}

#[test]
fn a_fault_says_where_it_happened() {
    let body = "setp.eq.u32 %p1, %r0, 7;\n@%p1 ld.global.u32 %r1, [%d0+4096];";
    let run = Run {
        grid: [1, 2, 1],
        ..Run::threads(8)
    };
    let error = run.words(body, &[0; 8]).expect_err("must fault");
    let place = error.place().expect("a fault has a place");
    assert_eq!((place.block, place.thread), ([0, 0, 0], [7, 0, 0]));
    assert_eq!(error.line(), 9);
    assert_eq!(error.instruction(), "@%p1 ld.global.u32 %r1, [%d0+4096]");
    assert!(
        error
            .to_string()
            .contains("line 9, block [0, 0, 0] thread [7, 0, 0]"),
        "{error}"
    );
}

#[test]
fn launches_that_do_not_fit() {
    let text = module(".param .u64 in", "").replace("\n{", "\n.reqntid 32\n{");
    let program = Program::parse(&text).expect("parses");
    let refuse = |launch: Launch<'_>| {
        let error = program
            .run(&mut Memory::new(), &launch)
            .expect_err("must refuse");
        assert_eq!(error.kind(), ErrorKind::Launch, "{error}");
    };
    let fits = Launch {
        block: [32, 1, 1],
        ..Launch::new("k", &[0])
    };
    program.run(&mut Memory::new(), &fits).expect("runs");
    refuse(Launch {
        block: [64, 1, 1],
        ..fits
    });
    refuse(Launch {
        entry: "other",
        ..fits
    });
    refuse(Launch {
        params: &[],
        ..fits
    });
    refuse(Launch {
        grid: [0, 1, 1],
        ..fits
    });
    refuse(Launch {
        block: [2048, 1, 1],
        ..fits
    });
    refuse(Launch {
        dynamic_shared_bytes: 1 << 20,
        ..fits
    });
}
