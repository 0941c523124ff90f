//! Logic, shifts and bit fields.

use crate::harness::check;

#[test]
fn booleans() {
    check(&[
        ("mov.u32 %r1, 12; and.b32 %r0, %r1, 10;", "%r0", 8),
        ("mov.u32 %r1, 12; or.b32 %r0, %r1, 10;", "%r0", 14),
        ("mov.u32 %r1, 12; xor.b32 %r0, %r1, 10;", "%r0", 6),
        ("mov.b16 %h1, 1; not.b16 %h0, %h1;", "%h0", 0xfffe),
        ("mov.u32 %r1, 0; cnot.b32 %r0, %r1;", "%r0", 1),
        ("mov.u32 %r1, 9; cnot.b32 %r0, %r1;", "%r0", 0),
        ("mov.pred %p1, 1; not.pred %p0, %p1;", "%p0", 0),
        (
            "mov.pred %p1, 1; mov.pred %p2, 0; xor.pred %p0, %p1, %p2;",
            "%p0",
            1,
        ),
        // 0xe8 is the majority of three.
        (
            "mov.u32 %r1, 0xff00; mov.u32 %r2, 0xf0f0; mov.u32 %r3, 0xcccc; lop3.b32 %r0, %r1, %r2, %r3, 0xe8;",
            "%r0",
            0xfcc0,
        ),
    ]);
}

#[test]
fn shifts_clamp_their_amount() {
    check(&[
        ("mov.u32 %r1, 1; shl.b32 %r0, %r1, 31;", "%r0", 0x8000_0000),
        ("mov.u32 %r1, 1; shl.b32 %r0, %r1, 32;", "%r0", 0),
        ("mov.u32 %r1, 1; shl.b32 %r0, %r1, 0xffffffff;", "%r0", 0),
        ("mov.u32 %r1, 0x80000000; shr.u32 %r0, %r1, 31;", "%r0", 1),
        ("mov.u32 %r1, 0x80000000; shr.u32 %r0, %r1, 40;", "%r0", 0),
        (
            "mov.u32 %r1, 0x80000000; shr.s32 %r0, %r1, 40;",
            "%r0",
            0xffff_ffff,
        ),
        ("mov.u16 %h1, 0x8000; shr.s16 %h0, %h1, 3;", "%h0", 0xf000),
        ("mov.u64 %d1, 1; shl.b64 %d0, %d1, 63;", "%d0", 1 << 63),
        ("mov.s64 %d1, -8; shr.s64 %d0, %d1, 64;", "%d0", u64::MAX),
        ("mov.u64 %d1, -8; shr.u64 %d0, %d1, 64;", "%d0", 0),
    ]);
}

#[test]
fn funnels() {
    let source = "mov.u32 %r1, 0x11112222; mov.u32 %r2, 0x33334444;";
    for (instruction, expected) in [
        ("shf.l.wrap.b32 %r0, %r1, %r2, 8;", 0x3344_4411),
        ("shf.r.wrap.b32 %r0, %r1, %r2, 8;", 0x4411_1122),
        ("shf.l.wrap.b32 %r0, %r1, %r2, 32;", 0x3333_4444),
        ("shf.l.clamp.b32 %r0, %r1, %r2, 32;", 0x1111_2222),
        ("shf.r.wrap.b32 %r0, %r1, %r2, 32;", 0x1111_2222),
        ("shf.r.clamp.b32 %r0, %r1, %r2, 40;", 0x3333_4444),
    ] {
        check(&[(&format!("{source} {instruction}"), "%r0", expected)]);
    }
}

#[test]
fn bytes_are_permuted() {
    let source = "mov.u32 %r1, 0x03020180; mov.u32 %r2, 0x17161514;";
    for (instruction, expected) in [
        ("prmt.b32 %r0, %r1, %r2, 0x3210;", 0x0302_0180),
        ("prmt.b32 %r0, %r1, %r2, 0x7654;", 0x1716_1514),
        ("prmt.b32 %r0, %r1, %r2, 0x0123;", 0x8001_0203),
        // A set top bit of the nibble replicates the sign of the byte.
        ("prmt.b32 %r0, %r1, %r2, 0x8809;", 0xffff_8000),
        ("prmt.b32.f4e %r0, %r1, %r2, 2;", 0x1514_0302),
        ("prmt.b32.b4e %r0, %r1, %r2, 1;", 0x1617_8001),
        ("prmt.b32.rc8 %r0, %r1, %r2, 3;", 0x0303_0303),
        ("prmt.b32.ecl %r0, %r1, %r2, 2;", 0x0302_0202),
        ("prmt.b32.ecr %r0, %r1, %r2, 1;", 0x0101_0180),
        ("prmt.b32.rc16 %r0, %r1, %r2, 1;", 0x0302_0302),
    ] {
        check(&[(&format!("{source} {instruction}"), "%r0", expected)]);
    }
}

#[test]
fn fields_are_extracted() {
    check(&[
        (
            "mov.u32 %r1, 0xabcd1234; bfe.u32 %r0, %r1, 4, 8;",
            "%r0",
            0x23,
        ),
        (
            "mov.u32 %r1, 0x000000f0; bfe.s32 %r0, %r1, 4, 4;",
            "%r0",
            0xffff_ffff,
        ),
        ("mov.u32 %r1, 0x00000070; bfe.s32 %r0, %r1, 4, 4;", "%r0", 7),
        ("mov.u32 %r1, 0x80000000; bfe.s32 %r0, %r1, 4, 0;", "%r0", 0),
        // Beyond the top, the sign bit of the source fills.
        (
            "mov.u32 %r1, 0x80000000; bfe.s32 %r0, %r1, 28, 16;",
            "%r0",
            0xffff_fff8,
        ),
        (
            "mov.u32 %r1, 0x80000000; bfe.u32 %r0, %r1, 28, 16;",
            "%r0",
            8,
        ),
        (
            "mov.u32 %r1, 0x80000000; bfe.s32 %r0, %r1, 40, 4;",
            "%r0",
            0xffff_ffff,
        ),
        (
            "mov.u32 %r1, 0xffffffff; bfe.u32 %r0, %r1, 0, 32;",
            "%r0",
            0xffff_ffff,
        ),
        // Only the low eight bits of the position and the length count.
        (
            "mov.u32 %r1, 0xabcd1234; bfe.u32 %r0, %r1, 0x104, 0x208;",
            "%r0",
            0x23,
        ),
        (
            "mov.u64 %d1, 0xabcd000000000000; bfe.u64 %d0, %d1, 48, 16;",
            "%d0",
            0xabcd,
        ),
    ]);
}

#[test]
fn fields_are_inserted() {
    check(&[
        (
            "mov.u32 %r1, 0xff; mov.u32 %r2, 0; bfi.b32 %r0, %r1, %r2, 4, 4;",
            "%r0",
            0xf0,
        ),
        (
            "mov.u32 %r1, 0; mov.u32 %r2, -1; bfi.b32 %r0, %r1, %r2, 8, 8;",
            "%r0",
            0xffff_00ff,
        ),
        (
            "mov.u32 %r1, 5; mov.u32 %r2, 7; bfi.b32 %r0, %r1, %r2, 0, 0;",
            "%r0",
            7,
        ),
        (
            "mov.u32 %r1, -1; mov.u32 %r2, 0; bfi.b32 %r0, %r1, %r2, 28, 16;",
            "%r0",
            0xf000_0000,
        ),
        (
            "mov.u32 %r1, -1; mov.u32 %r2, 0; bfi.b32 %r0, %r1, %r2, 32, 4;",
            "%r0",
            0,
        ),
        (
            "mov.u32 %r1, 3; mov.u32 %r2, 9; bfi.b32 %r0, %r1, %r2, 0, 32;",
            "%r0",
            3,
        ),
        (
            "mov.u64 %d1, 1; mov.u64 %d2, 0; bfi.b64 %d0, %d1, %d2, 63, 9;",
            "%d0",
            1 << 63,
        ),
    ]);
}

#[test]
fn bits_are_counted() {
    check(&[
        ("mov.u32 %r1, 0x00800000; bfind.u32 %r0, %r1;", "%r0", 23),
        ("mov.u32 %r1, 0; bfind.u32 %r0, %r1;", "%r0", 0xffff_ffff),
        ("mov.s32 %r1, -1; bfind.s32 %r0, %r1;", "%r0", 0xffff_ffff),
        ("mov.s32 %r1, -256; bfind.s32 %r0, %r1;", "%r0", 7),
        ("mov.u32 %r1, 1; bfind.shiftamt.u32 %r0, %r1;", "%r0", 31),
        (
            "mov.u32 %r1, 0; bfind.shiftamt.u32 %r0, %r1;",
            "%r0",
            0xffff_ffff,
        ),
        ("mov.u64 %d1, 0x100000000; bfind.u64 %r0, %d1;", "%r0", 32),
        ("mov.u32 %r1, 1; brev.b32 %r0, %r1;", "%r0", 0x8000_0000),
        ("mov.u64 %d1, 3; brev.b64 %d0, %d1;", "%d0", 3 << 62),
        ("mov.u32 %r1, 1; clz.b32 %r0, %r1;", "%r0", 31),
        ("mov.u32 %r1, 0; clz.b32 %r0, %r1;", "%r0", 32),
        ("mov.u64 %d1, 0; clz.b64 %r0, %d1;", "%r0", 64),
        ("mov.u64 %d1, 0xf0f; popc.b64 %r0, %d1;", "%r0", 8),
    ]);
}

#[test]
fn registers_are_packed_and_taken_apart() {
    check(&[
        (
            "mov.b16 %h1, 0x1111; mov.b16 %h2, 0x2222; mov.b32 %r0, {%h1, %h2};",
            "%r0",
            0x2222_1111,
        ),
        (
            "mov.u32 %r1, 0x22221111; mov.b32 {_, %h0}, %r1;",
            "%h0",
            0x2222,
        ),
        (
            "mov.u32 %r1, 1; mov.u32 %r2, 2; mov.b64 %d0, {%r1, %r2};",
            "%d0",
            0x2_0000_0001,
        ),
        (
            "mov.u64 %d1, 0x4444333322221111; mov.b64 {%h1, %h2, %h0, %h3}, %d1;",
            "%h0",
            0x3333,
        ),
    ]);
}
