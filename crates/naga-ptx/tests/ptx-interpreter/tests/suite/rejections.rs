//! Texts that must not parse, with the error kind.

use crate::harness::module;
use ptx_interpreter::{ErrorKind, Program};

fn refuse(text: &str) -> ErrorKind {
    match Program::parse(text) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.kind(),
    }
}

#[test]
fn types_that_do_not_fit() {
    for body in [
        "add.rn.u32 %r1, %r2, %r3;",
        "add.u32 %r1, %r2;",
        "add.u32 %r1, %r2, %r3, %r4;",
        "add.u32 %d1, %r2, %r3;",
        "add.u32 %p1, %r2, %r3;",
        "add.f32 %r1, %r2, 1;",
        "add.u32 %r1, %r2, 1.0;",
        "add.f16 %h1, %h2, 0f3f800000;",
        ".reg .f32 %f; add.u32 %r1, %f, 1;",
        ".reg .f32 %f; .reg .f64 %g; cvt.f64.f32 %f, %g;",
        "mul.u32 %r1, %r2, %r3;",
        "mul.wide.u64 %d1, %d2, %d3;",
        "div.f32 %r1, %r2, %r3;",
        "sqrt.f32 %r1, %r2;",
        "rcp.f32 %r1, %r2;",
        "fma.f32 %r1, %r2, %r3, %r4;",
        "and.u32 %r1, %r2, %r3;",
        "shl.u32 %r1, %r2, 1;",
        "shl.b32 %r1, %r2, %h1;",
        "setp.lt.b32 %p1, %r1, %r2;",
        "setp.lo.s32 %p1, %r1, %r2;",
        "setp.equ.u32 %p1, %r1, %r2;",
        "setp.eq.u32 %r1, %r1, %r2;",
        "selp.u32 %r1, %r2, %r3, %r4;",
        "cvt.f32.u32 %r1, %r2;",
        "cvt.u32.f32 %r1, %r2;",
        "cvt.f32.f64 %r1, %d1;",
        "cvt.rn.f64.f32 %d1, %r1;",
        "cvt.u64.u32 %r1, %r2;",
        "cvt.sat.u32.u16 %r1, %h1;",
        "ld.global.u32 %h1, [%d1];",
        "ld.global.f16 %h1, [%d1];",
        "ld.global.u32 %r1, [%r2];",
        "ld.global.v4.u64 {%d1, %d2, %d3, %d4}, [%d5];",
        "ld.global.v2.u32 {%r1, %r2, %r3}, [%d1];",
        "ld.shared.nc.u32 %r1, [%r2];",
        "st.param.u32 [%d1], %r1;",
        "st.const.u32 [%d1], %r1;",
        "red.global.exch.b32 [%d1], %r1;",
        "atom.global.add.s64 %d1, [%d2], %d3;",
        "atom.global.and.u32 %r1, [%d2], %r3;",
        "mov.u32 %r1, 0x1ffffffff;",
        "mov.s32 %r1, -2147483649;",
        "mov.u32 %r1, 0f3f800000;",
        "mov.u64 %d1, %tid.x;",
        "add.u32 %r1, %tid.x, 1;",
        "mov.u32 %r1, %undeclared;",
        "mov.u32 %r1, %r20;",
        "@%r1 bra L; L:",
        "bra NOWHERE;",
        "L: L: mov.u32 %r1, 1;",
        ".reg .b32 %r3;",
        ".reg .b32 x, x;",
        "{ .reg .b32 x; } mov.u32 x, 1;",
        "bar.arrive 0;",
        "bar.sync 0, 33;",
        "bar.sync 16;",
        "elect.sync %r1, -1;",
        "shfl.sync.idx.b32 _|%p1, %r1, %r2, %r3, %r4;",
        "prefetch.shared.L1 [%r1];",
        "ld.global.u32 %r1, [1024];",
        ".shared .b32 s; ld.global.u32 %r1, [s];",
        ".shared .b8 s[60000];",
    ] {
        assert_eq!(refuse(&module("", body)), ErrorKind::Type, "{body}");
    }
}

#[test]
fn texts_that_are_no_ptx() {
    for body in [
        "foo.u32 %r1;",
        "add.u32 %r1, %r2, %r3",
        "ld.shared.u32 %r1, [%r1-4];",
        "mov.u32 %r1, 0xg;",
        "mov.f32 %r1, 0f3f8;",
        "mov.u32 %r1, 09;",
        "/* open",
        "}",
        "{",
        ".shared .f32 s = 1.0;",
        ".extern .shared .b8 s[];",
    ] {
        assert_eq!(refuse(&module("", body)), ErrorKind::Parse, "{body}");
    }
    let plain = module("", "");
    assert_eq!(
        refuse(&plain.replace(".address_size 64\n", "")),
        ErrorKind::Parse
    );
    assert_eq!(
        refuse(&plain.replace(".target sm_90\n", "")),
        ErrorKind::Parse
    );
    assert_eq!(
        refuse(&plain.replace(".version 8.5\n", "")),
        ErrorKind::Parse
    );
}

#[test]
fn instructions_that_the_target_lacks() {
    let on = |target: u32, version: &str, body: &str| {
        let text = module("", body)
            .replace("sm_90", &format!("sm_{target}"))
            .replace("8.5", version);
        Program::parse(&text).map(|_| ())
    };
    for (body, target, version) in [
        ("redux.sync.add.u32 %r1, %r2, -1;", 80, "7.0"),
        ("min.f16 %h1, %h2, %h3;", 80, "7.0"),
        ("max.NaN.f32 %r1, %r2, %r3;", 80, "7.0"),
        ("fma.rn.bf16 %h1, %h2, %h3, %h4;", 80, "7.0"),
        ("cvt.rn.bf16.f32 %h1, %r2;", 80, "7.0"),
        ("cvt.rn.f16x2.f32 %r1, %r2, %r3;", 80, "7.0"),
        ("tanh.approx.f32 %r1, %r2;", 75, "7.0"),
        ("ex2.approx.f16 %h1, %h2;", 75, "7.0"),
        ("ld.relaxed.gpu.global.u32 %r1, [%d1];", 70, "6.0"),
        ("fence.acq_rel.gpu;", 70, "6.0"),
        ("match.any.sync.b32 %r1, %r2, -1;", 70, "6.0"),
        ("atom.global.cas.b16 %h1, [%d1], %h2, %h3;", 70, "6.3"),
        ("ld.relaxed.cluster.global.u32 %r1, [%d1];", 90, "7.8"),
        ("add.bf16 %h1, %h2, %h3;", 90, "7.8"),
        ("elect.sync %r1|%p1, -1;", 90, "8.0"),
    ] {
        on(target, version, body).unwrap_or_else(|error| panic!("{body}: {error}"));
        let below = if target > 70 { target - 5 } else { 60 };
        let error = on(below, "8.5", body).expect_err(body);
        assert_eq!(error.kind(), ErrorKind::Type, "{error}");
    }
    let error = on(80, "6.5", "").expect_err("sm_80 came with 7.0");
    assert_eq!(error.kind(), ErrorKind::Type, "{error}");
    let error = on(70, "6.1", "activemask.b32 %r1;").expect_err("activemask came with 6.2");
    assert!(error.to_string().contains("6.2"), "{error}");
}
