//! `cvt`.

use crate::harness::check;

#[test]
fn integers_are_truncated_extended_and_saturated() {
    check(&[
        ("mov.u32 %r1, 0x1ff; cvt.u8.u32 %r0, %r1;", "%r0", 0xff),
        (
            "mov.u32 %r1, 0x180; cvt.s8.u32 %r0, %r1;",
            "%r0",
            0xffff_ff80,
        ),
        (
            "mov.u32 %r1, 0x80; cvt.s32.s8 %r0, %r1;",
            "%r0",
            0xffff_ff80,
        ),
        ("mov.u32 %r1, 0x80; cvt.s32.u8 %r0, %r1;", "%r0", 0x80),
        ("mov.s32 %r1, -1; cvt.s64.s32 %d0, %r1;", "%d0", u64::MAX),
        ("mov.s32 %r1, -1; cvt.u64.u32 %d0, %r1;", "%d0", 0xffff_ffff),
        ("mov.s32 %r1, -1; cvt.s64.u32 %d0, %r1;", "%d0", 0xffff_ffff),
        (
            "mov.u64 %d1, 0x1ffff8000; cvt.s16.u64 %h0, %d1;",
            "%h0",
            0x8000,
        ),
        ("mov.u32 %r1, 300; cvt.sat.u8.u32 %r0, %r1;", "%r0", 255),
        (
            "mov.s32 %r1, -300; cvt.sat.s8.s32 %r0, %r1;",
            "%r0",
            0xffff_ff80,
        ),
        ("mov.s32 %r1, -5; cvt.sat.u32.s32 %r0, %r1;", "%r0", 0),
        (
            "mov.u32 %r1, 0x80000000; cvt.sat.s32.u32 %r0, %r1;",
            "%r0",
            0x7fff_ffff,
        ),
    ]);
}

#[test]
fn floats_become_integers_clamped() {
    check(&[
        ("mov.f32 %r1, 2.5; cvt.rni.s32.f32 %r0, %r1;", "%r0", 2),
        ("mov.f32 %r1, 3.5; cvt.rni.s32.f32 %r0, %r1;", "%r0", 4),
        (
            "mov.f32 %r1, -2.7; cvt.rzi.s32.f32 %r0, %r1;",
            "%r0",
            -2i32 as u32 as u64,
        ),
        (
            "mov.f32 %r1, -2.2; cvt.rmi.s32.f32 %r0, %r1;",
            "%r0",
            -3i32 as u32 as u64,
        ),
        (
            "mov.f32 %r1, -2.7; cvt.rpi.s32.f32 %r0, %r1;",
            "%r0",
            -2i32 as u32 as u64,
        ),
        ("mov.f32 %r1, -2.7; cvt.rzi.u32.f32 %r0, %r1;", "%r0", 0),
        (
            "mov.f32 %r1, 3.0e9; cvt.rzi.s32.f32 %r0, %r1;",
            "%r0",
            0x7fff_ffff,
        ),
        (
            "mov.f32 %r1, -3.0e9; cvt.rzi.s32.f32 %r0, %r1;",
            "%r0",
            0x8000_0000,
        ),
        (
            "mov.f32 %r1, 0f7f800000; cvt.rzi.u32.f32 %r0, %r1;",
            "%r0",
            0xffff_ffff,
        ),
        (
            "mov.f32 %r1, 0f7f800000; cvt.rzi.u64.f32 %d0, %r1;",
            "%d0",
            u64::MAX,
        ),
        ("mov.f32 %r1, 300.0; cvt.rzi.u8.f32 %r0, %r1;", "%r0", 255),
        (
            "mov.f64 %d1, -1.0e300; cvt.rzi.s64.f64 %d0, %d1;",
            "%d0",
            1 << 63,
        ),
        (
            "mov.b16 %h1, 0x7bff; cvt.rzi.s32.f16 %r0, %h1;",
            "%r0",
            65504,
        ),
    ]);
}

#[test]
fn nan_becomes_zero_except_where_a_side_has_64_bits() {
    check(&[
        (
            "mov.f32 %r1, 0f7fc00000; cvt.rzi.s32.f32 %r0, %r1;",
            "%r0",
            0,
        ),
        (
            "mov.f32 %r1, 0f7fc00000; cvt.rzi.u32.f32 %r0, %r1;",
            "%r0",
            0,
        ),
        (
            "mov.f32 %r1, 0f7fc00000; cvt.rzi.s64.f32 %d0, %r1;",
            "%d0",
            1 << 63,
        ),
        (
            "mov.f64 %d1, 0d7ff8000000000000; cvt.rzi.s32.f64 %r0, %d1;",
            "%r0",
            1 << 31,
        ),
    ]);
}

#[test]
fn integers_become_floats_rounded_as_asked() {
    check(&[
        (
            "mov.u32 %r1, 0x01000001; cvt.rn.f32.u32 %r0, %r1;",
            "%r0",
            0x4b80_0000,
        ),
        (
            "mov.u32 %r1, 0x01000001; cvt.rp.f32.u32 %r0, %r1;",
            "%r0",
            0x4b80_0001,
        ),
        (
            "mov.u32 %r1, 0x01000003; cvt.rz.f32.u32 %r0, %r1;",
            "%r0",
            0x4b80_0001,
        ),
        (
            "mov.s32 %r1, -16777217; cvt.rm.f32.s32 %r0, %r1;",
            "%r0",
            0xcb80_0001,
        ),
        (
            "mov.s32 %r1, -1; cvt.rn.f64.s32 %d0, %r1;",
            "%d0",
            0xbff0_0000_0000_0000,
        ),
        (
            "mov.u64 %d1, -1; cvt.rn.f32.u64 %r0, %d1;",
            "%r0",
            0x5f80_0000,
        ),
        (
            "mov.u64 %d1, -1; cvt.rz.f32.u64 %r0, %d1;",
            "%r0",
            0x5f7f_ffff,
        ),
        (
            "mov.u32 %r1, 70000; cvt.rn.f16.u32 %h0, %r1;",
            "%h0",
            0x7c00,
        ),
        (
            "mov.u32 %r1, 70000; cvt.rz.f16.u32 %h0, %r1;",
            "%h0",
            0x7bff,
        ),
    ]);
}

#[test]
fn floats_change_their_width() {
    check(&[
        (
            "mov.f32 %r1, 0f477fefff; cvt.rn.f16.f32 %h0, %r1;",
            "%h0",
            0x7bff,
        ),
        (
            "mov.f32 %r1, 0f477ff000; cvt.rn.f16.f32 %h0, %r1;",
            "%h0",
            0x7c00,
        ),
        (
            "mov.f32 %r1, 0f33000000; cvt.rn.f16.f32 %h0, %r1;",
            "%h0",
            0,
        ),
        (
            "mov.f32 %r1, 0f33000001; cvt.rn.f16.f32 %h0, %r1;",
            "%h0",
            1,
        ),
        (
            "mov.f32 %r1, 0f38800000; cvt.rn.f16.f32 %h0, %r1;",
            "%h0",
            0x0400,
        ),
        (
            "mov.b16 %h1, 0x0001; cvt.f32.f16 %r0, %h1;",
            "%r0",
            0x3380_0000,
        ),
        (
            "mov.b16 %h1, 0xfc00; cvt.f32.f16 %r0, %h1;",
            "%r0",
            0xff80_0000,
        ),
        (
            "mov.f64 %d1, 1.0000000596046448; cvt.rn.f32.f64 %r0, %d1;",
            "%r0",
            0x3f80_0000,
        ),
        (
            "mov.f64 %d1, 1.0000000596046448; cvt.rp.f32.f64 %r0, %d1;",
            "%r0",
            0x3f80_0001,
        ),
        (
            "mov.f64 %d1, 1.0e-45; cvt.rn.ftz.f32.f64 %r0, %d1;",
            "%r0",
            0,
        ),
        (
            "mov.f32 %r1, 0f00000001; cvt.f64.f32 %d0, %r1;",
            "%d0",
            0x36a0_0000_0000_0000,
        ),
        (
            "mov.f32 %r1, 0f00000001; cvt.ftz.f64.f32 %d0, %r1;",
            "%d0",
            0,
        ),
        (
            "mov.f32 %r1, 0f3f808000; cvt.rn.bf16.f32 %h0, %r1;",
            "%h0",
            0x3f80,
        ),
        (
            "mov.f32 %r1, 0f3f818000; cvt.rn.bf16.f32 %h0, %r1;",
            "%h0",
            0x3f82,
        ),
        (
            "mov.f32 %r1, 1.0; mov.f32 %r2, 2.0; cvt.rn.f16x2.f32 %r0, %r1, %r2;",
            "%r0",
            0x3c00_4000,
        ),
        (
            "mov.f32 %r1, 1.0; mov.f32 %r2, 2.0; cvt.rn.bf16x2.f32 %r0, %r1, %r2;",
            "%r0",
            0x3f80_4000,
        ),
    ]);
}

#[test]
fn floats_round_to_integral_values() {
    check(&[
        (
            "mov.f32 %r1, 2.5; cvt.rni.f32.f32 %r0, %r1;",
            "%r0",
            0x4000_0000,
        ),
        (
            "mov.f32 %r1, -0.5; cvt.rni.f32.f32 %r0, %r1;",
            "%r0",
            0x8000_0000,
        ),
        (
            "mov.f32 %r1, -0.5; cvt.rmi.f32.f32 %r0, %r1;",
            "%r0",
            0xbf80_0000,
        ),
        (
            "mov.f32 %r1, 1.0e30; cvt.rzi.f32.f32 %r0, %r1;",
            "%r0",
            0x7149_f2ca,
        ),
        ("mov.f32 %r1, -3.5; cvt.sat.f32.f32 %r0, %r1;", "%r0", 0),
        (
            "mov.f64 %d1, 2.5; cvt.rpi.f64.f64 %d0, %d1;",
            "%d0",
            0x4008_0000_0000_0000,
        ),
    ]);
}
