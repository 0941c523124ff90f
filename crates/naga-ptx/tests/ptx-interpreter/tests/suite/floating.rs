//! Floating-point arithmetic, comparison and selection.

use crate::harness::{check, value, value_under};
use ptx_interpreter::Approximation;

const ONE: u64 = 0x3f80_0000;
const NAN: u64 = 0x7fff_ffff;

#[test]
fn exact_operations_round_once() {
    check(&[
        (
            "mov.f32 %r1, 0f3f800000; add.f32 %r0, %r1, 0f33800000;",
            "%r0",
            ONE,
        ),
        (
            "mov.f32 %r1, 0f3f800000; add.rp.f32 %r0, %r1, 0f33800000;",
            "%r0",
            ONE + 1,
        ),
        (
            "mov.f32 %r1, 0f3f800000; sub.rz.f32 %r0, %r1, 0f2f800000;",
            "%r0",
            ONE - 1,
        ),
        (
            "mov.f32 %r1, 0f3f800000; sub.rn.f32 %r0, %r1, 0f2f800000;",
            "%r0",
            ONE,
        ),
        (
            "mov.f32 %r1, 1.0; div.rn.f32 %r0, %r1, 3.0;",
            "%r0",
            0x3eaa_aaab,
        ),
        (
            "mov.f32 %r1, 1.0; div.rz.f32 %r0, %r1, 3.0;",
            "%r0",
            0x3eaa_aaaa,
        ),
        (
            "mov.f32 %r1, 2.0; sqrt.rn.f32 %r0, %r1;",
            "%r0",
            0x3fb5_04f3,
        ),
        (
            "mov.f32 %r1, 2.0; sqrt.rp.f32 %r0, %r1;",
            "%r0",
            0x3fb5_04f4,
        ),
        ("mov.f32 %r1, 3.0; rcp.rn.f32 %r0, %r1;", "%r0", 0x3eaa_aaab),
        // (1 + 2^-23)^2 - (1 + 2^-22) leaves the square of the last bit.
        (
            "mov.f32 %r1, 0f3f800001; fma.rn.f32 %r0, %r1, %r1, 0fbf800002;",
            "%r0",
            0x2880_0000,
        ),
        (
            "mov.f64 %d1, 1.0; div.rn.f64 %d0, %d1, 3.0;",
            "%d0",
            0x3fd5_5555_5555_5555,
        ),
        (
            "mov.f64 %d1, 1.0; add.rm.f64 %d0, %d1, 0dbc00000000000000;",
            "%d0",
            0x3fef_ffff_ffff_ffff,
        ),
        (
            "mov.f32 %r1, 0f7f7fffff; add.rz.f32 %r0, %r1, %r1;",
            "%r0",
            0x7f7f_ffff,
        ),
        (
            "mov.f32 %r1, 0f7f7fffff; add.rn.f32 %r0, %r1, %r1;",
            "%r0",
            0x7f80_0000,
        ),
        (
            "mov.f32 %r1, 1.0; sub.rm.f32 %r0, %r1, %r1;",
            "%r0",
            0x8000_0000,
        ),
        ("mov.f32 %r1, 1.0; sub.rn.f32 %r0, %r1, %r1;", "%r0", 0),
        (
            "mov.f32 %r1, 0f7fc12345; add.f32 %r0, %r1, 1.0;",
            "%r0",
            NAN,
        ),
    ]);
}

#[test]
fn subnormal_numbers_survive_unless_flushed() {
    check(&[
        ("mov.f32 %r1, 0f00000001; add.f32 %r0, %r1, %r1;", "%r0", 2),
        (
            "mov.f32 %r1, 0f00000001; add.ftz.f32 %r0, %r1, %r1;",
            "%r0",
            0,
        ),
        (
            "mov.f32 %r1, 0f80000001; mul.ftz.f32 %r0, %r1, 1.0;",
            "%r0",
            0x8000_0000,
        ),
        (
            "mov.f32 %r1, 0f00800000; mul.ftz.f32 %r0, %r1, 0.5;",
            "%r0",
            0,
        ),
        (
            "mov.f32 %r1, 0f00800000; mul.f32 %r0, %r1, 0.5;",
            "%r0",
            0x0040_0000,
        ),
        ("mov.f32 %r1, 0f80000001; abs.ftz.f32 %r0, %r1;", "%r0", 0),
    ]);
}

#[test]
fn saturation_clamps_to_the_unit_interval() {
    check(&[
        ("mov.f32 %r1, 1.5; add.sat.f32 %r0, %r1, 1.0;", "%r0", ONE),
        ("mov.f32 %r1, -1.5; add.sat.f32 %r0, %r1, 1.0;", "%r0", 0),
        (
            "mov.f32 %r1, 0f7fffffff; add.sat.f32 %r0, %r1, 1.0;",
            "%r0",
            0,
        ),
        (
            "mov.f32 %r1, 0.25; add.sat.f32 %r0, %r1, 0.5;",
            "%r0",
            0x3f40_0000,
        ),
    ]);
}

#[test]
fn extrema_and_signs() {
    check(&[
        (
            "mov.f32 %r1, 0f7fffffff; min.f32 %r0, %r1, 1.0;",
            "%r0",
            ONE,
        ),
        (
            "mov.f32 %r1, 0f7fffffff; min.NaN.f32 %r0, %r1, 1.0;",
            "%r0",
            NAN,
        ),
        (
            "mov.f32 %r1, 0fffc00000; max.f32 %r0, %r1, %r1;",
            "%r0",
            NAN,
        ),
        (
            "mov.f32 %r1, 0f80000000; min.f32 %r0, %r1, 0f00000000;",
            "%r0",
            0x8000_0000,
        ),
        (
            "mov.f32 %r1, 0f80000000; max.f32 %r0, %r1, 0f00000000;",
            "%r0",
            0,
        ),
        (
            "mov.f64 %d1, -2.0; max.f64 %d0, %d1, -1.0;",
            "%d0",
            0xbff0_0000_0000_0000,
        ),
        (
            "mov.f32 %r1, -2.0; mov.f32 %r2, 1.0; copysign.f32 %r0, %r1, %r2;",
            "%r0",
            0xbf80_0000,
        ),
        ("mov.f32 %r1, -2.0; neg.f32 %r0, %r1;", "%r0", 0x4000_0000),
    ]);
}

#[test]
fn half_precision() {
    check(&[
        // 2048 + 1 is a tie that goes to the even 2048; 2048 + 3 goes to 2052.
        (
            "mov.b16 %h1, 0x6800; mov.b16 %h2, 0x3c00; add.f16 %h0, %h1, %h2;",
            "%h0",
            0x6800,
        ),
        (
            "mov.b16 %h1, 0x6800; mov.b16 %h2, 0x4200; add.f16 %h0, %h1, %h2;",
            "%h0",
            0x6802,
        ),
        ("mov.b16 %h1, 0x7bff; add.f16 %h0, %h1, %h1;", "%h0", 0x7c00),
        (
            "mov.b16 %h1, 0x3c01; mov.b16 %h2, 0xbc02; fma.rn.f16 %h0, %h1, %h1, %h2;",
            "%h0",
            0x0010,
        ),
        ("mov.b16 %h1, 0x0001; mul.f16 %h0, %h1, %h1;", "%h0", 0),
        ("mov.b16 %h1, 0x0001; add.ftz.f16 %h0, %h1, %h1;", "%h0", 0),
        (
            "mov.u32 %r1, 0x3c004000; add.f16x2 %r0, %r1, %r1;",
            "%r0",
            0x4000_4400,
        ),
        (
            "mov.u32 %r1, 0x3c004000; neg.f16x2 %r0, %r1;",
            "%r0",
            0xbc00_c000,
        ),
        (
            "mov.b16 %h1, 0x7e00; mov.b16 %h2, 0x3c00; max.f16 %h0, %h1, %h2;",
            "%h0",
            0x3c00,
        ),
        // bf16 has eight bits of precision: 1 + 2^-8 is a tie.
        (
            "mov.b16 %h1, 0x3f80; mov.b16 %h2, 0x3b80; add.bf16 %h0, %h1, %h2;",
            "%h0",
            0x3f80,
        ),
    ]);
}

#[test]
fn comparisons_with_nan() {
    let table = [
        ("eq", 0),
        ("ne", 0),
        ("lt", 0),
        ("le", 0),
        ("gt", 0),
        ("ge", 0),
        ("equ", 1),
        ("neu", 1),
        ("ltu", 1),
        ("leu", 1),
        ("gtu", 1),
        ("geu", 1),
        ("num", 0),
        ("nan", 1),
    ];
    for (relation, expected) in table {
        let body = format!("mov.f32 %r1, 0f7fc00000; setp.{relation}.f32 %p0, %r1, 1.0;");
        check(&[(&body, "%p0", expected)]);
    }
}

#[test]
fn comparisons_order_by_type() {
    check(&[
        ("mov.s32 %r1, -1; setp.lt.s32 %p0, %r1, 1;", "%p0", 1),
        ("mov.s32 %r1, -1; setp.lt.u32 %p0, %r1, 1;", "%p0", 0),
        ("mov.s32 %r1, -1; setp.hi.u32 %p0, %r1, 1;", "%p0", 1),
        ("mov.u32 %r1, 5; setp.eq.u32 %p1|%p0, %r1, 5;", "%p0", 0),
        (
            "mov.pred %p2, 1; mov.u32 %r1, 5; setp.ne.or.u32 %p0, %r1, 5, %p2;",
            "%p0",
            1,
        ),
        (
            "mov.pred %p2, 1; mov.u32 %r1, 5; setp.eq.and.u32 %p0, %r1, 5, !%p2;",
            "%p0",
            0,
        ),
        (
            "mov.pred %p2, 1; mov.u32 %r1, 5; setp.eq.xor.u32 %p1|%p0, %r1, 5, %p2;",
            "%p0",
            1,
        ),
        (
            "mov.f32 %r1, 0f80000000; setp.eq.f32 %p0, %r1, 0f00000000;",
            "%p0",
            1,
        ),
        (
            "mov.f32 %r1, 0f00000001; setp.gt.ftz.f32 %p0, %r1, 0f00000000;",
            "%p0",
            0,
        ),
        (
            "mov.u32 %r1, 0x40003c00; mov.u32 %r2, 0x3c003c00; setp.gt.f16x2 %p0|%p1, %r1, %r2;",
            "%p1",
            1,
        ),
        (
            "mov.u32 %r1, 0x40003c00; mov.u32 %r2, 0x3c003c00; setp.gt.f16x2 %p0|%p1, %r1, %r2;",
            "%p0",
            0,
        ),
        (
            "mov.u32 %r1, 3; set.lt.u32.u32 %r0, %r1, 4;",
            "%r0",
            0xffff_ffff,
        ),
        ("mov.u32 %r1, 3; set.lt.f32.u32 %r0, %r1, 4;", "%r0", ONE),
        ("mov.pred %p1, 0; selp.b32 %r0, 7, 9, %p1;", "%r0", 9),
        ("mov.s32 %r1, -1; slct.u32.s32 %r0, 7, 9, %r1;", "%r0", 9),
        (
            "mov.f32 %r1, 0f80000000; slct.u32.f32 %r0, 7, 9, %r1;",
            "%r0",
            7,
        ),
        (
            "mov.f32 %r1, 0f7fc00000; slct.u32.f32 %r0, 7, 9, %r1;",
            "%r0",
            9,
        ),
        (
            "mov.f32 %r1, 0f00000001; testp.subnormal.f32 %p0, %r1;",
            "%p0",
            1,
        ),
        (
            "mov.f32 %r1, 0f00000000; testp.normal.f32 %p0, %r1;",
            "%p0",
            0,
        ),
        (
            "mov.f64 %d1, 0d7ff0000000000000; testp.infinite.f64 %p0, %d1;",
            "%p0",
            1,
        ),
    ]);
}

#[test]
fn approximations_at_their_tabled_points() {
    check(&[
        (
            "mov.f32 %r1, 0f00000000; ex2.approx.f32 %r0, %r1;",
            "%r0",
            ONE,
        ),
        (
            "mov.f32 %r1, 0fff800000; ex2.approx.f32 %r0, %r1;",
            "%r0",
            0,
        ),
        (
            "mov.f32 %r1, 0f80000000; lg2.approx.f32 %r0, %r1;",
            "%r0",
            0xff80_0000,
        ),
        ("mov.f32 %r1, -1.0; lg2.approx.f32 %r0, %r1;", "%r0", NAN),
        (
            "mov.f32 %r1, 0f80000000; sin.approx.f32 %r0, %r1;",
            "%r0",
            0x8000_0000,
        ),
        (
            "mov.f32 %r1, 0f7f800000; cos.approx.f32 %r0, %r1;",
            "%r0",
            NAN,
        ),
        (
            "mov.f32 %r1, 0f7f800000; tanh.approx.f32 %r0, %r1;",
            "%r0",
            ONE,
        ),
        (
            "mov.f32 %r1, 0f80000000; rcp.approx.ftz.f32 %r0, %r1;",
            "%r0",
            0xff80_0000,
        ),
        (
            "mov.f32 %r1, 0f80000000; rsqrt.approx.f32 %r0, %r1;",
            "%r0",
            0xff80_0000,
        ),
        (
            "mov.f32 %r1, 0f80000000; sqrt.approx.f32 %r0, %r1;",
            "%r0",
            0x8000_0000,
        ),
        (
            "mov.f32 %r1, 1.0; div.approx.f32 %r0, %r1, 0f7f000000;",
            "%r0",
            0,
        ),
        (
            "mov.f32 %r1, 1.0; div.full.f32 %r0, %r1, 0f7f000000;",
            "%r0",
            0x0040_0000,
        ),
        (
            "mov.f32 %r1, 0f7f800000; div.approx.f32 %r0, %r1, 0f7f000000;",
            "%r0",
            NAN,
        ),
    ]);
}

#[test]
fn perturbed_approximations_stay_within_their_bound() {
    let body = |x: f32| {
        let bits = x.to_bits();
        format!(
            "mov.f32 %r1, 0f{bits:08x}; sin.approx.f32 %r2, %r1; ex2.approx.f32 %r3, %r1; mov.b64 %d0, {{%r2, %r3}};"
        )
    };
    let mut moved = 0;
    for step in 1..40 {
        let x = step as f32 * 0.15;
        let exact = value(&body(x), "%d0").expect("runs");
        for seed in 0..4 {
            let perturbed_run =
                || value_under(&body(x), "%d0", Approximation::Perturbed(seed)).expect("runs");
            let perturbed = perturbed_run();
            assert_eq!(perturbed, perturbed_run());
            let half = |word: u64, shift: u32| f64::from(f32::from_bits((word >> shift) as u32));
            let sine_error = (half(perturbed, 0) - f64::from(x).sin()).abs();
            assert!(sine_error <= 2f64.powf(-20.4), "sin {x}: {sine_error}");
            let power = f64::from(x).exp2();
            let power_error = (half(perturbed, 32) - power).abs() / power;
            assert!(
                power_error <= 2.0 * 2f64.powi(-23),
                "ex2 {x}: {power_error}"
            );
            moved += u32::from(perturbed != exact);
        }
    }
    assert!(moved > 100, "{moved} of 156 results moved");
}
