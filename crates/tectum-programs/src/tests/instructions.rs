//! Each instruction and type compared with values computed by hand, and each fault.

use super::{bytes_of, run, values_of};
use crate::{Fault, FaultKind, LaunchConfig, Outcome, Program, Type};

/// A type and a value as they are written.
type Written = (&'static str, &'static str);

/// An operation, its operands from r1 on, and the result.
const VALUES: &[(&str, &[Written], Written)] = &[
    // Integers wrap.
    (
        "add.i8 r0, r1, r2",
        &[("i8", "127"), ("i8", "1")],
        ("i8", "-128"),
    ),
    (
        "add.u64 r0, r1, r2",
        &[("u64", "18446744073709551615"), ("u64", "2")],
        ("u64", "1"),
    ),
    (
        "sub.u16 r0, r1, r2",
        &[("u16", "0"), ("u16", "1")],
        ("u16", "65535"),
    ),
    (
        "mul.i32 r0, r1, r2",
        &[("i32", "65536"), ("i32", "65536")],
        ("i32", "0"),
    ),
    (
        "mul.i64 r0, r1, r2",
        &[("i64", "-3"), ("i64", "7")],
        ("i64", "-21"),
    ),
    (
        "mad.u8 r0, r1, r2, r3",
        &[("u8", "16"), ("u8", "16"), ("u8", "5")],
        ("u8", "5"),
    ),
    (
        "div.i32 r0, r1, r2",
        &[("i32", "-7"), ("i32", "2")],
        ("i32", "-3"),
    ),
    (
        "div.i8 r0, r1, r2",
        &[("i8", "-128"), ("i8", "-1")],
        ("i8", "-128"),
    ),
    (
        "div.i64 r0, r1, r2",
        &[("i64", "-9223372036854775808"), ("i64", "-1")],
        ("i64", "-9223372036854775808"),
    ),
    (
        "div.u8 r0, r1, r2",
        &[("u8", "255"), ("u8", "2")],
        ("u8", "127"),
    ),
    (
        "min.i16 r0, r1, r2",
        &[("i16", "-1"), ("i16", "1")],
        ("i16", "-1"),
    ),
    (
        "min.u16 r0, r1, r2",
        &[("u16", "65535"), ("u16", "1")],
        ("u16", "1"),
    ),
    (
        "max.i8 r0, r1, r2",
        &[("i8", "-128"), ("i8", "127")],
        ("i8", "127"),
    ),
    ("abs.i8 r0, r1", &[("i8", "-128")], ("i8", "-128")),
    ("abs.i32 r0, r1", &[("i32", "-5")], ("i32", "5")),
    (
        "abs.u32 r0, r1",
        &[("u32", "4294967295")],
        ("u32", "4294967295"),
    ),
    ("neg.u8 r0, r1", &[("u8", "1")], ("u8", "255")),
    ("neg.i16 r0, r1", &[("i16", "-32768")], ("i16", "-32768")),
    ("relu.i32 r0, r1", &[("i32", "-5")], ("i32", "0")),
    (
        "relu.u32 r0, r1",
        &[("u32", "4294967295")],
        ("u32", "4294967295"),
    ),
    // Logic and shifts.
    (
        "and.u8 r0, r1, r2",
        &[("u8", "0xf0"), ("u8", "0x3c")],
        ("u8", "48"),
    ),
    (
        "or.i8 r0, r1, r2",
        &[("i8", "0xf0"), ("i8", "0x0c")],
        ("i8", "-4"),
    ),
    (
        "xor.u64 r0, r1, r2",
        &[("u64", "5"), ("u64", "3")],
        ("u64", "6"),
    ),
    ("not.i32 r0, r1", &[("i32", "0")], ("i32", "-1")),
    ("not.u16 r0, r1", &[("u16", "1")], ("u16", "65534")),
    (
        "shl.u8 r0, r1, r2",
        &[("u8", "129"), ("u32", "1")],
        ("u8", "2"),
    ),
    (
        "shl.u8 r0, r1, r2",
        &[("u8", "129"), ("u32", "8")],
        ("u8", "129"),
    ),
    (
        "shl.i32 r0, r1, r2",
        &[("i32", "1"), ("u32", "31")],
        ("i32", "-2147483648"),
    ),
    (
        "shr.i8 r0, r1, r2",
        &[("i8", "-128"), ("u32", "7")],
        ("i8", "-1"),
    ),
    (
        "shr.u8 r0, r1, r2",
        &[("u8", "128"), ("u32", "7")],
        ("u8", "1"),
    ),
    (
        "shr.i64 r0, r1, r2",
        &[("i64", "-8"), ("u32", "65")],
        ("i64", "-4"),
    ),
    // Floats.
    (
        "add.f32 r0, r1, r2",
        &[("f32", "16777216.0"), ("f32", "1.0")],
        ("f32", "16777216.0"),
    ),
    (
        "add.f16 r0, r1, r2",
        &[("f16", "2048.0"), ("f16", "1.0")],
        ("f16", "2048.0"),
    ),
    (
        "add.f16 r0, r1, r2",
        &[("f16", "2048.0"), ("f16", "3.0")],
        ("f16", "2052.0"),
    ),
    (
        "mul.f16 r0, r1, r2",
        &[("f16", "256.0"), ("f16", "256.0")],
        ("f16", "inf"),
    ),
    (
        "mul.f16 r0, r1, r2",
        &[("f16", "5.9604645e-8"), ("f16", "1.0")],
        ("f16", "5.9604645e-8"),
    ),
    (
        "add.bf16 r0, r1, r2",
        &[("bf16", "256.0"), ("bf16", "1.0")],
        ("bf16", "256.0"),
    ),
    (
        "sub.f64 r0, r1, r2",
        &[("f64", "0.3"), ("f64", "0.1")],
        ("f64", "0.19999999999999998"),
    ),
    (
        "div.f32 r0, r1, r2",
        &[("f32", "1.0"), ("f32", "-0.0")],
        ("f32", "-inf"),
    ),
    (
        "div.f32 r0, r1, r2",
        &[("f32", "1.0"), ("f32", "3.0")],
        ("f32", "0.33333334"),
    ),
    (
        "mul.f32 r0, r1, r2",
        &[("f32", "1e-45"), ("f32", "1.0")],
        ("f32", "1e-45"),
    ),
    // One rounding compared with two: 1 + 2^-12 squared is 1 + 2^-11 + 2^-24.
    (
        "fma.f32 r0, r1, r2, r3",
        &[
            ("f32", "1.0002441"),
            ("f32", "1.0002441"),
            ("f32", "-1.0004883"),
        ],
        ("f32", "5.9604645e-8"),
    ),
    (
        "mad.f32 r0, r1, r2, r3",
        &[
            ("f32", "1.0002441"),
            ("f32", "1.0002441"),
            ("f32", "-1.0004883"),
        ],
        ("f32", "0.0"),
    ),
    (
        "fma.f16 r0, r1, r2, r3",
        &[("f16", "3.0"), ("f16", "0.5"), ("f16", "1.0")],
        ("f16", "2.5"),
    ),
    (
        "min.f32 r0, r1, r2",
        &[("f32", "0.0"), ("f32", "-0.0")],
        ("f32", "-0.0"),
    ),
    (
        "max.f32 r0, r1, r2",
        &[("f32", "-0.0"), ("f32", "0.0")],
        ("f32", "0.0"),
    ),
    (
        "min.f32 r0, r1, r2",
        &[("f32", "nan"), ("f32", "1.0")],
        ("f32", "nan"),
    ),
    (
        "max.f64 r0, r1, r2",
        &[("f64", "1.0"), ("f64", "nan")],
        ("f64", "nan"),
    ),
    (
        "min.bf16 r0, r1, r2",
        &[("bf16", "1.0"), ("bf16", "-2.0")],
        ("bf16", "-2.0"),
    ),
    ("abs.f16 r0, r1", &[("f16", "-0.0")], ("f16", "0.0")),
    ("neg.f64 r0, r1", &[("f64", "0.0")], ("f64", "-0.0")),
    ("neg.bf16 r0, r1", &[("bf16", "1.0")], ("bf16", "-1.0")),
    ("relu.f32 r0, r1", &[("f32", "-0.0")], ("f32", "0.0")),
    ("relu.f32 r0, r1", &[("f32", "nan")], ("f32", "nan")),
    ("relu.f16 r0, r1", &[("f16", "-3.0")], ("f16", "0.0")),
    ("relu.bf16 r0, r1", &[("bf16", "3.0")], ("bf16", "3.0")),
    // Functions.
    ("exp.f32 r0, r1", &[("f32", "1.0")], ("f32", "2.7182817")),
    ("exp.f32 r0, r1", &[("f32", "-inf")], ("f32", "0.0")),
    ("log.f64 r0, r1", &[("f64", "0.0")], ("f64", "-inf")),
    ("log.f32 r0, r1", &[("f32", "-1.0")], ("f32", "nan")),
    ("log2.f32 r0, r1", &[("f32", "8.0")], ("f32", "3.0")),
    ("log10.f32 r0, r1", &[("f32", "1000.0")], ("f32", "3.0")),
    ("sqrt.f32 r0, r1", &[("f32", "2.0")], ("f32", "1.4142135")),
    ("rsqrt.f32 r0, r1", &[("f32", "0.25")], ("f32", "2.0")),
    ("rsqrt.f32 r0, r1", &[("f32", "-0.0")], ("f32", "-inf")),
    ("sin.f32 r0, r1", &[("f32", "0.5")], ("f32", "0.47942555")),
    ("cos.f32 r0, r1", &[("f32", "0.0")], ("f32", "1.0")),
    ("tan.f32 r0, r1", &[("f32", "1.0")], ("f32", "1.5574077")),
    ("tanh.f32 r0, r1", &[("f32", "100.0")], ("f32", "1.0")),
    ("tanh.f64 r0, r1", &[("f64", "0.0")], ("f64", "0.0")),
    ("sigmoid.f32 r0, r1", &[("f32", "0.0")], ("f32", "0.5")),
    ("sigmoid.f64 r0, r1", &[("f64", "-inf")], ("f64", "0.0")),
    ("gelu.f32 r0, r1", &[("f32", "1.0")], ("f32", "0.841192")),
    ("gelu.f32 r0, r1", &[("f32", "-inf")], ("f32", "-0.0")),
    ("gelu.f64 r0, r1", &[("f64", "0.0")], ("f64", "0.0")),
    (
        "gelu_erf.f32 r0, r1",
        &[("f32", "1.0")],
        ("f32", "0.84134477"),
    ),
    ("silu.f32 r0, r1", &[("f32", "1.0")], ("f32", "0.7310586")),
    ("erf.f32 r0, r1", &[("f32", "1.0")], ("f32", "0.8427008")),
    ("exp2.f64 r0, r1", &[("f64", "-3.0")], ("f64", "0.125")),
    ("floor.f32 r0, r1", &[("f32", "-1.5")], ("f32", "-2.0")),
    ("ceil.f64 r0, r1", &[("f64", "-1.5")], ("f64", "-1.0")),
    ("round.f32 r0, r1", &[("f32", "2.5")], ("f32", "2.0")),
    // Conversions.
    ("cvt.i8.i32 r0, r1", &[("i32", "384")], ("i8", "-128")),
    (
        "cvt.u64.i8 r0, r1",
        &[("i8", "-1")],
        ("u64", "18446744073709551615"),
    ),
    ("cvt.i64.u8 r0, r1", &[("u8", "255")], ("i64", "255")),
    (
        "cvt.f32.i32 r0, r1",
        &[("i32", "16777217")],
        ("f32", "16777216.0"),
    ),
    (
        "cvt.f32.u64 r0, r1",
        &[("u64", "18446744073709551615")],
        ("f32", "1.8446744e19"),
    ),
    (
        "cvt.f64.i64 r0, r1",
        &[("i64", "-9007199254740993")],
        ("f64", "-9007199254740992.0"),
    ),
    ("cvt.i32.f32 r0, r1", &[("f32", "-2.9")], ("i32", "-2")),
    (
        "cvt.i32.f32 r0, r1",
        &[("f32", "3e9")],
        ("i32", "2147483647"),
    ),
    ("cvt.u8.f32 r0, r1", &[("f32", "-1.0")], ("u8", "0")),
    ("cvt.i8.f64 r0, r1", &[("f64", "-inf")], ("i8", "-128")),
    ("cvt.u32.f32 r0, r1", &[("f32", "nan")], ("u32", "0")),
    (
        "cvt.u64.f64 r0, r1",
        &[("f64", "1e30")],
        ("u64", "18446744073709551615"),
    ),
    ("cvt.f16.f32 r0, r1", &[("f32", "65520.0")], ("f16", "inf")),
    (
        "cvt.f16.f32 r0, r1",
        &[("f32", "65519.0")],
        ("f16", "65504.0"),
    ),
    ("cvt.f16.i32 r0, r1", &[("i32", "2049")], ("f16", "2048.0")),
    (
        "cvt.bf16.f32 r0, r1",
        &[("f32", "1.00390625")],
        ("bf16", "1.0"),
    ),
    (
        "cvt.bf16.f32 r0, r1",
        &[("f32", "1.0117188")],
        ("bf16", "1.015625"),
    ),
    ("cvt.f32.bf16 r0, r1", &[("bf16", "-2.5")], ("f32", "-2.5")),
    (
        "cvt.f64.f16 r0, r1",
        &[("f16", "5.9604645e-8")],
        ("f64", "5.960464477539063e-8"),
    ),
    ("cvt.f32.f64 r0, r1", &[("f64", "0.1")], ("f32", "0.1")),
    (
        "cvt.f32.f32 r0, r1",
        &[("f32", "0x7fa00001")],
        ("f32", "0x7fa00001"),
    ),
    // Reductions and selections.
    (
        "reduce_add.i32 r0, r1, 3",
        &[("i32", "1"), ("i32", "2"), ("i32", "-9")],
        ("i32", "-6"),
    ),
    (
        "reduce_mul.i64 r0, r1, 2",
        &[("i64", "-4"), ("i64", "5")],
        ("i64", "-20"),
    ),
    (
        "reduce_min.f64 r0, r1, 2",
        &[("f64", "-0.5"), ("f64", "0.5")],
        ("f64", "-0.5"),
    ),
    // From the left: (1e8 + 1) - 1e8 is 0 in f32.
    (
        "reduce_add.f32 r0, r1, 3",
        &[("f32", "1e8"), ("f32", "1.0"), ("f32", "-1e8")],
        ("f32", "0.0"),
    ),
    (
        "reduce_max.f32 r0, r1, 1",
        &[("f32", "7.0")],
        ("f32", "7.0"),
    ),
    (
        "mov.f32 r0, r1",
        &[("f32", "0x7fa00001")],
        ("f32", "0x7fa00001"),
    ),
    // Classes.
    ("mirror r0, r1", &[("u32", "96")], ("u32", "3")),
    ("nbr_count r0, r1", &[("u32", "1")], ("u32", "6")),
    ("nbr_get r0, r1, 0", &[("u32", "1")], ("u32", "0")),
    ("nbr_get r0, r1, 5", &[("u32", "1")], ("u32", "49")),
    ("nbr_get r0, r1, 5", &[("u32", "0")], ("u32", "0")),
    ("nbr_get r0, r1, 255", &[("u32", "0")], ("u32", "0")),
    (
        "bound_map r0, r1, r2, r3",
        &[("u32", "95"), ("u32", "47"), ("u32", "255")],
        ("u64", "1179647"),
    ),
    (
        "bound_map r0, r1, r2, r3",
        &[("u32", "97"), ("u32", "49"), ("u32", "257")],
        ("u64", "12545"),
    ),
];

/// Runs one instruction on immediates and compares with the value of the result's text; NaN equals
/// NaN.
#[test]
fn each_operation_gives_the_value_worked_out_by_hand() {
    for (operation, operands, (ty, expected)) in VALUES {
        let loads: String = operands
            .iter()
            .zip(1..)
            .map(|((ty, value), register)| format!("mov_imm.{ty} r{register}, {value}\n"))
            .collect();
        let text = format!(
            "buffer out: {ty} write\nbuffer expected: {ty} write\n{loads}{operation}\nstg.{ty} [out], r0\nmov_imm.{ty} r0, {expected}\nstg.{ty} [expected], r0"
        );
        let ty = Type::from_name(ty).expect("a type");
        let buffers = run(
            &text,
            LaunchConfig::default(),
            vec![vec![0; ty.bytes() as usize]; 2],
        );
        assert!(
            buffers[0] == buffers[1] || is_nan(ty, &buffers[0]) && *expected == "nan",
            "{operation} {operands:?}: {buffers:?}, not {expected}"
        );
    }
    println!("instruction values: {} cases", VALUES.len());
}

fn is_nan(ty: Type, bytes: &[u8]) -> bool {
    let bits = bytes
        .iter()
        .rev()
        .fold(0, |bits, byte| bits << 8 | u64::from(*byte));
    f64::from_bits(crate::scalar::convert(Type::F64, ty, bits)).is_nan()
}

/// a, b, then the conditions that hold.
const COMPARISONS: &[(&str, &str, &str, &str)] = &[
    ("i32", "-1", "1", "ne lt le gtu geu"),
    ("u8", "255", "1", "ne gt ge gtu geu"),
    ("i64", "5", "5", "eq le ge leu geu"),
    ("i8", "-128", "-1", "ne lt le ltu leu"),
    ("f32", "nan", "1.0", "ne"),
    ("f64", "-0.0", "0.0", "eq le ge"),
    ("f16", "inf", "65504.0", "ne gt ge"),
    ("bf16", "1.0", "2.0", "ne lt le"),
];

#[test]
fn comparisons_hold_as_their_type_orders() {
    for (ty, a, b, holding) in COMPARISONS {
        let conditions: &[&str] = if ty.contains('f') {
            &["eq", "ne", "lt", "le", "gt", "ge"]
        } else {
            &[
                "eq", "ne", "lt", "le", "gt", "ge", "ltu", "leu", "gtu", "geu",
            ]
        };
        for condition in conditions {
            let text = format!(
                "buffer y: u8 write\nmov_imm.{ty} r1, {a}\nmov_imm.{ty} r2, {b}\nset.{condition}.{ty} p3, r1, r2\n\
                 mov_imm.u8 r3, 1\nmov_imm.u8 r4, 0\nsel.u8 r5, p3, r3, r4\nstg.u8 [y], r5"
            );
            let expected = u8::from(holding.split(' ').any(|other| other == *condition));
            assert_eq!(
                run(&text, LaunchConfig::default(), vec![vec![7]]),
                [vec![expected]],
                "{a} {condition} {b} as {ty}"
            );
        }
    }
}

/// A count of n runs the body n + 1 times; the register ends at 0.
#[test]
fn a_loop_tests_at_the_bottom() {
    for count in [0, 1, 5] {
        let text = format!(
            "buffer y: u32 write\nmov_imm.u32 r0, {count}\nmov_imm.u32 r1, 0\nmov_imm.u32 r2, 1\n@body: add.u32 r1, r1, r2\nloop r0, @body\n\
             add.u32 r1, r1, r0\nstg.u32 [y], r1"
        );
        assert_eq!(
            values_of::<u32>(&run(&text, LaunchConfig::default(), vec![vec![0; 4]])[0]),
            [count + 1]
        );
    }
}

#[test]
fn branches_calls_and_returns_go_where_they_say() {
    let text = "buffer y: u32 write\nmov_imm.u32 r0, 0\nmov_imm.u32 r1, 1\ncall @f\ncall @f\nset.eq.u32 p0, r0, r1\nbra @end, p0\nbra @more, !p0\nexit\n\
                @more: add.u32 r0, r0, r1\nbra @end\n@f: add.u32 r0, r0, r1\ncall @g\nret\n@g: add.u32 r0, r0, r1\nret\n@end: stg.u32 [y], r0";
    assert_eq!(
        values_of::<u32>(&run(text, LaunchConfig::default(), vec![vec![0; 4]])[0]),
        [5]
    );
}

#[test]
fn lanes_find_their_numbers_in_the_preloaded_registers() {
    let text = "buffer lane: u32 write\nbuffer block: u32 write\nbuffer size: u32 write\nbuffer global: u64 write\nbuffer class: u32 write\n\
                stg.u32 [lane], r252\nstg.u32 [block], r253\nstg.u32 [size], r254\nstg.u64 [global], r255\ncls_get r0\nstg.u32 [class], r0";
    let launch = LaunchConfig {
        grid: [2, 2, 1],
        block: [2, 1, 2],
        ..LaunchConfig::default()
    };
    let buffers = run(
        text,
        launch,
        vec![
            vec![0; 64],
            vec![0; 64],
            vec![0; 64],
            vec![0; 128],
            vec![0; 64],
        ],
    );
    assert_eq!(values_of::<u32>(&buffers[0]), [0, 1].repeat(8));
    assert_eq!(
        values_of::<u32>(&buffers[1]),
        [0, 0, 0, 0, 1, 1, 1, 1].repeat(2)
    );
    assert_eq!(values_of::<u32>(&buffers[2]), [2; 16]);
    assert_eq!(values_of::<u64>(&buffers[3]), (0..16).collect::<Vec<u64>>());
    let launch = LaunchConfig {
        grid: [97, 1, 1],
        ..LaunchConfig::default()
    };
    let sizes = [97 * 4, 97 * 4, 97 * 4, 97 * 8, 97 * 4];
    assert_eq!(
        values_of::<u32>(&run(text, launch, sizes.map(|size| vec![0; size]).into())[4])[94..],
        [94, 95, 0]
    );
}

#[test]
fn phases_and_accumulators_belong_to_the_lane() {
    let text = "buffer y: u32 write\nphase_adv 700\nphase_adv 100\nphase_get r0\nmov_imm.u32 r1, 1\nmov_imm.u32 r2, 100\nmov_imm.f32 r3, 0.5\n\
                mov_imm.f32 r4, -0.25\nres_accum r1, r3\nunity_test p0, 0.25\nres_accum r2, r4\nunity_test p1, 0.25\n\
                mov_imm.u32 r5, 1000\nmov_imm.u32 r6, 0\nsel.u32 r7, p0, r5, r6\nadd.u32 r0, r0, r7\nadd.u32 r5, r5, r5\nsel.u32 r7, p1, r5, r6\nadd.u32 r0, r0, r7\nstg.u32 [y], r0";
    // 800 mod 768 is 32; the first test fails, 0.5 > 0.25; class 100 is class 4, and then 0.25 <=
    // 0.25.
    assert_eq!(
        values_of::<u32>(&run(text, LaunchConfig::linear(3, 2), vec![vec![0; 12]])[0]),
        [2032; 3]
    );
}

/// Each lane stores to its slot of shared memory and reads its neighbour's after the barrier.
#[test]
fn shared_memory_is_seen_after_a_barrier_and_starts_as_zero() {
    let text = "buffer y: u32 write\nshared 16\nlds.u32 r9, [shared]\nadd.u32 r9, r9, r252\nsts.u32 [shared], r9\nbar.sync 0\nmov_imm.u64 r1, 4\nmov_imm.u64 r2, 12\n\
                cvt.u64.u32 r0, r252\nmul.u64 r0, r0, r1\nadd.u64 r0, r0, r1\nand.u64 r0, r0, r2\nlds.u32 r3, [shared + r0]\nlds.u32 r4, [shared + 12]\nadd.u32 r3, r3, r4\nstg.u32 [y], r3";
    assert_eq!(
        values_of::<u32>(&run(text, LaunchConfig::linear(8, 4), vec![vec![0; 32]])[0]),
        [4, 5, 6, 3, 4, 5, 6, 3]
    );
}

#[test]
fn addresses_reach_what_they_name() {
    let text = "buffer a: u16 read\nbuffer b: u8 read_write boundary\nmov_imm.u64 r1, 2\nmov_imm.u64 r2, 4\n\
                ldg.u16 r3, [a]\nldg.u16 r4, [a + 2]\nldg.u16 r5, [a + r2]\nldg.u16 r6, [Phi(0,0,6)]\nldg.u16 r7, [r1 + 6]\nldg.u16 r8, [r1 + r2]\n\
                stg.u16 [b + 8], r3\nstg.u16 [b + 10], r4\nstg.u16 [Phi(0,0,12)], r5\nstg.u16 [r1 + 14], r6\nstg.u16 [b], r7";
    let launch = LaunchConfig {
        block: [1, 1, 1],
        ..LaunchConfig::default()
    };
    let text = text
        .replace("[a]", "[a + 0]")
        .replace("stg.u16 [b],", "stg.u16 [b + 0],");
    let buffers = run(
        &text,
        launch,
        vec![
            bytes_of(&[10u16, 20, 30]),
            bytes_of(&[0u16, 1, 2, 3, 4, 5, 6, 7]),
        ],
    );
    assert_eq!(values_of::<u16>(&buffers[1]), [3, 1, 2, 3, 10, 20, 30, 3]);
}

#[test]
fn pools_give_and_take_back_in_order() {
    let text = "buffer y: u64 write\npool 24\npool_alloc r0, 5\npool_alloc r1, 8\npool_free r1\npool_alloc r2, 16\nmov_imm.u64 r3, 8\nmov_imm.u64 r4, 77\n\
                pool_store.u64 [r2 + r3], r4\npool_load.u64 r5, [r2 + r3]\nadd.u64 r5, r5, r2\nstg.u64 [y], r5";
    let handle = (16 << 32) + 8;
    assert_eq!(
        values_of::<u64>(&run(text, LaunchConfig::default(), vec![vec![0; 8]])[0]),
        [handle + 77]
    );
}

/// Lanes without an own element load 0 and store nothing.
#[test]
fn the_last_block_may_reach_beyond_the_elements() {
    let text = "buffer x: i32 read\nbuffer y: i32 write\nbuffer seen: i32 write\nldg.i32 r0, [x]\nstg.i32 [y], r0\nmov_imm.u64 r1, 4\nmul.u64 r1, r1, r255\nstg.i32 [seen + r1], r0";
    let buffers = run(
        text,
        LaunchConfig::linear(3, 4),
        vec![bytes_of(&[1, 2, 3]), vec![0; 12], vec![9; 16]],
    );
    assert_eq!(
        (values_of::<i32>(&buffers[1]), values_of::<i32>(&buffers[2])),
        (vec![1, 2, 3], vec![1, 2, 3, 0])
    );
}

#[test]
fn each_fault_names_its_lane_line_and_address() {
    const FAULTS: &[(&str, Fault)] = &[
        (
            "mov_imm.i8 r0, 0\ndiv.i8 r0, r0, r0",
            Fault {
                lane: 0,
                instruction: 1,
                kind: FaultKind::DivisionByZero,
            },
        ),
        (
            "ldg.f32 r0, [x + 16]",
            Fault {
                lane: 0,
                instruction: 0,
                kind: FaultKind::OutOfBounds {
                    address: 16,
                    ty: Type::F32,
                    size: 16,
                },
            },
        ),
        (
            "ldg.f32 r0, [x + 18446744073709551612]",
            Fault {
                lane: 0,
                instruction: 0,
                kind: FaultKind::OutOfBounds {
                    address: u64::MAX - 3,
                    ty: Type::F32,
                    size: 16,
                },
            },
        ),
        (
            "ldg.f32 r0, [x + 2]",
            Fault {
                lane: 0,
                instruction: 0,
                kind: FaultKind::Misaligned {
                    address: 2,
                    ty: Type::F32,
                },
            },
        ),
        (
            "mov_imm.u64 r1, 8\nmul.u64 r0, r255, r1\nldg.f32 r0, [x + r0]",
            Fault {
                lane: 2,
                instruction: 2,
                kind: FaultKind::OutOfBounds {
                    address: 16,
                    ty: Type::F32,
                    size: 16,
                },
            },
        ),
        (
            "mov_imm.u64 r1, 0\nldg.f32 r0, [r1 + 0]",
            Fault {
                lane: 0,
                instruction: 1,
                kind: FaultKind::UnknownHandle { handle: 0 },
            },
        ),
        (
            "mov_imm.u64 r1, 1\nmov_imm.f32 r0, 0.0\nstg.f32 [r1 + 0], r0",
            Fault {
                lane: 0,
                instruction: 2,
                kind: FaultKind::Denied { handle: 1 },
            },
        ),
        (
            "pool_alloc r0, 9",
            Fault {
                lane: 0,
                instruction: 0,
                kind: FaultKind::PoolExhausted { bytes: 9 },
            },
        ),
        (
            "pool_alloc r0, 4\nmov_imm.u64 r1, 4\npool_load.i8 r2, [r0 + r1]",
            Fault {
                lane: 0,
                instruction: 2,
                kind: FaultKind::OutOfBounds {
                    address: 4,
                    ty: Type::I8,
                    size: 4,
                },
            },
        ),
        (
            "lds.u8 r0, [shared + 3]",
            Fault {
                lane: 0,
                instruction: 0,
                kind: FaultKind::OutOfBounds {
                    address: 3,
                    ty: Type::U8,
                    size: 3,
                },
            },
        ),
    ];
    for (text, expected) in FAULTS {
        let text = format!("program faulty\nbuffer x: f32 read\nshared 3\npool 8\n{text}");
        let program = Program::parse(&text)
            .and_then(|program| program.check())
            .unwrap_or_else(|error| panic!("{error}"));
        let outcome = program
            .evaluate(&LaunchConfig::linear(4, 4), &mut [vec![0; 16]], 1000)
            .expect("the launch fits");
        assert_eq!(outcome, Outcome::Fault(*expected), "{text}");
        let message = expected.error(program.program()).to_string();
        assert!(
            message.contains(&format!(
                "lane {}, line {} `",
                expected.lane,
                expected.instruction + 5
            )),
            "{message}"
        );
    }
}

#[test]
fn an_exchange_through_shared_memory_without_a_barrier_is_warned_of() {
    let warnings = |text: &str| {
        Program::parse(text)
            .and_then(|program| program.check())
            .expect("valid")
            .warnings()
            .iter()
            .map(ToString::to_string)
            .collect()
    };
    let exchange = |between: &str| {
        format!(
            "buffer y: f32 write\nshared 1024\nmov_imm.f32 r0, 1.0\nsts.f32 [shared], r0\n{between}lds.f32 r1, [shared + 0]\nstg.f32 [y], r1"
        )
    };
    let found: Vec<String> = warnings(&exchange(""));
    assert!(
        matches!(&found[..], [one] if one.contains("line 5") && one.contains("no barrier orders them")),
        "{found:?}"
    );
    let ordered: Vec<String> = warnings(&exchange("bar.sync 0\n"));
    let own: Vec<String> = warnings(&exchange("").replace("[shared + 0]", "[shared]"));
    assert!(ordered.is_empty() && own.is_empty(), "{ordered:?} {own:?}");
}

#[test]
fn endless_programs_stop_at_the_limit_of_steps() {
    let program = Program::parse("@a: bra @a")
        .and_then(|program| program.check())
        .expect("valid");
    assert_eq!(
        program
            .evaluate(&LaunchConfig::default(), &mut [], 1000)
            .expect("fits"),
        Outcome::OutOfSteps
    );
}

#[test]
fn launches_that_contradict_the_buffers_are_refused() {
    let program = Program::parse(
        "program c\nbuffer x: f32 read\nbuffer y: f32 write\nldg.f32 r0, [x]\nstg.f32 [y], r0",
    )
    .and_then(|program| program.check())
    .expect("valid");
    let refuse = |launch: LaunchConfig, sizes: &[usize], part: &str| {
        let mut buffers: Vec<Vec<u8>> = sizes.iter().map(|size| vec![0; *size]).collect();
        let message = program
            .evaluate(&launch, &mut buffers, 1000)
            .expect_err(part)
            .to_string();
        assert!(message.contains(part), "{message}");
    };
    refuse(
        LaunchConfig::linear(4, 4),
        &[16],
        "1 buffers given, 2 declared",
    );
    refuse(
        LaunchConfig::linear(4, 4),
        &[16, 12],
        "buffer x has 4 elements and buffer y 3",
    );
    refuse(
        LaunchConfig::linear(4, 4),
        &[18, 16],
        "18 bytes are no whole number of f32",
    );
    refuse(
        LaunchConfig::linear(1024, 1024),
        &[16_384, 16_384],
        "1 blocks of 1024 lanes for the 4096 elements",
    );
    refuse(
        LaunchConfig::linear(8, 4),
        &[16, 16],
        "2 blocks of 4 lanes for the 4 elements",
    );
    refuse(
        LaunchConfig {
            block: [2048, 1, 1],
            ..LaunchConfig::default()
        },
        &[16, 16],
        "2048 lanes, the maximum is 1024",
    );
    assert_eq!(
        program
            .evaluate(&LaunchConfig::linear(0, 4), &mut [vec![], vec![]], 1)
            .expect("an empty launch"),
        Outcome::Finished
    );
}
