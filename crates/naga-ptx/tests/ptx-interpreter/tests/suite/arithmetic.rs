//! Integer arithmetic.

use crate::harness::check;

#[test]
fn addition_and_subtraction_wrap_unless_saturating() {
    check(&[
        ("mov.u32 %r1, 0xffffffff; add.u32 %r0, %r1, 2;", "%r0", 1),
        ("mov.u32 %r1, 0; sub.u32 %r0, %r1, 1;", "%r0", 0xffff_ffff),
        ("mov.u16 %h1, 65535; add.u16 %h0, %h1, 2;", "%h0", 1),
        ("mov.u64 %d1, -1; add.s64 %d0, %d1, 3;", "%d0", 2),
        (
            "mov.u32 %r1, 0x7fffffff; add.sat.s32 %r0, %r1, 1;",
            "%r0",
            0x7fff_ffff,
        ),
        (
            "mov.u32 %r1, 0x80000000; sub.sat.s32 %r0, %r1, 1;",
            "%r0",
            0x8000_0000,
        ),
    ]);
}

#[test]
fn products_keep_the_named_part() {
    check(&[
        (
            "mov.u32 %r1, 0x10001; mul.lo.u32 %r0, %r1, %r1;",
            "%r0",
            0x20001,
        ),
        ("mov.u32 %r1, 0x10001; mul.hi.u32 %r0, %r1, %r1;", "%r0", 1),
        ("mov.s32 %r1, -1; mul.hi.s32 %r0, %r1, %r1;", "%r0", 0),
        (
            "mov.s32 %r1, -1; mul.hi.u32 %r0, %r1, %r1;",
            "%r0",
            0xffff_fffe,
        ),
        (
            "mov.s32 %r1, -2; mul.wide.s32 %d0, %r1, 3;",
            "%d0",
            0xffff_ffff_ffff_fffa,
        ),
        (
            "mov.s32 %r1, -2; mul.wide.u32 %d0, %r1, 3;",
            "%d0",
            0x2_ffff_fffa,
        ),
        (
            "mov.u16 %h1, 0xffff; mul.wide.u16 %r0, %h1, %h1;",
            "%r0",
            0xfffe_0001,
        ),
        ("mov.u16 %h1, 0xffff; mul.wide.s16 %r0, %h1, %h1;", "%r0", 1),
        (
            "mov.u64 %d1, -1; mul.hi.u64 %d0, %d1, %d1;",
            "%d0",
            0xffff_ffff_ffff_fffe,
        ),
        ("mov.u64 %d1, -1; mul.hi.s64 %d0, %d1, %d1;", "%d0", 0),
        ("mov.u64 %d1, -1; mul.lo.u64 %d0, %d1, %d1;", "%d0", 1),
        ("mov.u32 %r1, 7; mad.lo.u32 %r0, %r1, 6, 5;", "%r0", 47),
        (
            "mov.s32 %r1, -7; mad.wide.s32 %d0, %r1, 6, 2;",
            "%d0",
            -40i64 as u64,
        ),
        (
            "mov.u32 %r1, 0x80000000; mad.hi.u32 %r0, %r1, 4, 5;",
            "%r0",
            7,
        ),
        (
            "mov.u32 %r1, 0x7fffffff; mad.hi.sat.s32 %r0, %r1, %r1, 0x7fffffff;",
            "%r0",
            0x7fff_ffff,
        ),
        (
            "mov.u32 %r1, 0x01ffffff; mul24.lo.u32 %r0, %r1, 2;",
            "%r0",
            0x01ff_fffe,
        ),
        (
            "mov.u32 %r1, 0x00ffffff; mul24.hi.u32 %r0, %r1, %r1;",
            "%r0",
            0xffff_fe00,
        ),
    ]);
}

#[test]
fn division_truncates() {
    check(&[
        (
            "mov.s32 %r1, -7; div.s32 %r0, %r1, 2;",
            "%r0",
            -3i32 as u32 as u64,
        ),
        (
            "mov.s32 %r1, -7; rem.s32 %r0, %r1, 2;",
            "%r0",
            -1i32 as u32 as u64,
        ),
        ("mov.s32 %r1, -7; div.u32 %r0, %r1, 2;", "%r0", 0x7fff_fffc),
        ("mov.u64 %d1, 100; rem.u64 %d0, %d1, 7;", "%d0", 2),
        ("mov.s16 %h1, -7; div.s16 %h0, %h1, -2;", "%h0", 3),
    ]);
}

#[test]
fn signs_and_extrema() {
    check(&[
        ("mov.s32 %r1, -5; abs.s32 %r0, %r1;", "%r0", 5),
        (
            "mov.u32 %r1, 0x80000000; abs.s32 %r0, %r1;",
            "%r0",
            0x8000_0000,
        ),
        ("mov.s16 %h1, 5; neg.s16 %h0, %h1;", "%h0", 0xfffb),
        ("mov.s32 %r1, -1; min.s32 %r0, %r1, 1;", "%r0", 0xffff_ffff),
        ("mov.s32 %r1, -1; min.u32 %r0, %r1, 1;", "%r0", 1),
        ("mov.s64 %d1, -1; max.s64 %d0, %d1, 1;", "%d0", 1),
        ("mov.s32 %r1, -3; sad.s32 %r0, %r1, 4, 10;", "%r0", 17),
        ("mov.u32 %r1, 3; sad.u32 %r0, %r1, 5, 10;", "%r0", 12),
    ]);
}

#[test]
fn carries_chain() {
    check(&[
        (
            "mov.u32 %r1, 0xffffffff; add.cc.u32 %r2, %r1, 1; addc.u32 %r0, 0, 0;",
            "%r0",
            1,
        ),
        (
            "mov.u32 %r1, 0; sub.cc.u32 %r2, %r1, 1; subc.u32 %r0, %r1, 0;",
            "%r0",
            0xffff_ffff,
        ),
        (
            "mov.u32 %r1, 0xffffffff; mad.lo.cc.u32 %r2, %r1, 2, 3; madc.hi.u32 %r0, %r1, 2, 0;",
            "%r0",
            2,
        ),
        (
            "mov.u32 %r1, 0xffffffff; add.cc.u32 %r2, %r1, 1; addc.cc.u32 %r3, %r1, 0; addc.u32 %r0, 0, 0;",
            "%r0",
            1,
        ),
    ]);
}

#[test]
fn dot_products() {
    check(&[
        (
            "mov.u32 %r1, 0x01020304; dp4a.u32.u32 %r0, %r1, %r1, 100;",
            "%r0",
            130,
        ),
        (
            "mov.u32 %r1, 0xff020304; mov.u32 %r2, 0x02010101; dp4a.s32.u32 %r0, %r1, %r2, 0;",
            "%r0",
            7,
        ),
        (
            "mov.u32 %r1, 0xff020304; mov.u32 %r2, 0x02010101; dp4a.u32.u32 %r0, %r1, %r2, 0;",
            "%r0",
            519,
        ),
        (
            "mov.u32 %r1, 0x00030002; mov.u32 %r2, 0x07060504; dp2a.lo.u32.u32 %r0, %r1, %r2, 1;",
            "%r0",
            24,
        ),
        (
            "mov.u32 %r1, 0x00030002; mov.u32 %r2, 0x07060504; dp2a.hi.u32.u32 %r0, %r1, %r2, 1;",
            "%r0",
            34,
        ),
    ]);
}
