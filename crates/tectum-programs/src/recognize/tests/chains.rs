//! Chains as reductions and products, and similar programs that are neither.

use super::{
    ONE, SIZES, checked, f32s, planned, reasons, recognized, reference, try_recognize, u64s,
    values, zeros,
};
use crate::{LaunchConfig, Shape};

const HEAD: &str = "buffer x: f32 read\nbuffer y: f32 write\n";

/// The chain of an operation over n elements, in every known form.
fn chains(op: &str, neutral: &str, n: u64) -> Vec<(&'static str, String)> {
    let turns = |n: u64| n - 1;
    let unrolled: String = (1..n)
        .map(|i| format!("ldg.f32 r1, [x + {}]\n{op}.f32 r0, r0, r1\n", 4 * i))
        .collect();
    let start = format!("mov_imm.f32 r0, {neutral}\nmov_imm.u64 r4, 4\nmov_imm.u64 r5, 0\n");
    let end = format!("mov_imm.u64 r6, {}\n", 4 * n);
    let mut forms = vec![
        (
            "loop",
            format!(
                "{start}mov_imm.u32 r9, {}\n@l:\nldg.f32 r1, [x + r5]\n{op}.f32 r0, r0, r1\nadd.u64 r5, r5, r4\nloop r9, @l\nstg.f32 [y + 0], r0",
                turns(n)
            ),
        ),
        (
            "while",
            format!(
                "{start}{end}@l:\nset.ge.u64 p0, r5, r6\nbra @done, p0\nldg.f32 r1, [x + r5]\nadd.u64 r5, r5, r4\n{op}.f32 r0, r1, r0\nbra @l\n@done:\nstg.f32 [y + 0], r0"
            ),
        ),
    ];
    if n > 1 {
        forms.push((
            "unrolled",
            format!("ldg.f32 r10, [x + 0]\nmov.f32 r0, r10\n{unrolled}stg.f32 [y + 0], r0"),
        ));
        forms.push(("from neutral", format!("mov_imm.f32 r0, {neutral}\nldg.f32 r1, [x + 0]\n{op}.f32 r0, r0, r1\n{unrolled}stg.f32 [y], r0")));
    }
    if n > 2 {
        let from_second = format!(
            "ldg.f32 r0, [x + 0]\nmov_imm.u64 r4, 4\nmov_imm.u64 r5, 4\nmov_imm.u32 r9, {}\n@l:\nldg.f32 r1, [x + r5]\n{op}.f32 r0, r0, r1\nadd.u64 r5, r5, r4\nloop r9, @l\nstg.f32 [y + 0], r0",
            n - 2
        );
        forms.push(("from the first", from_second));
    }
    if n.is_multiple_of(2) {
        let two = format!(
            "{start}mov_imm.u64 r7, 8\nmov_imm.u32 r9, {}\n@l:\nadd.u64 r8, r5, r4\nldg.f32 r1, [x + r5]\nldg.f32 r2, [x + r8]\n{op}.f32 r0, r0, r1\n{op}.f32 r0, r0, r2\nadd.u64 r5, r5, r7\nloop r9, @l\nstg.f32 [y + 0], r0",
            n / 2 - 1
        );
        forms.push(("two a turn", two));
    }
    forms
}

/// Values are multiples of 1/4, so every order of additions gives the same sum.
#[test]
fn every_form_of_a_chain_is_a_reduction() {
    for n in SIZES {
        let buffers = vec![values(n, 0.25), zeros(1)];
        for (op, neutral) in [("add", "0.0"), ("min", "inf"), ("max", "-inf")] {
            for (name, text) in chains(op, neutral, n) {
                let program = checked(&format!("{HEAD}{text}"));
                let shape = recognized(&program, &ONE, &buffers).shape().clone();
                let is_reduction = matches!(shape, Shape::Reduction { rows: 1, cols, columns: false, .. } if cols == n);
                assert!(is_reduction || n == 1, "{op} {name}, n = {n}: {shape}");
                assert_eq!(
                    planned(&program, &ONE, &buffers, true).1,
                    reference(&program, &ONE, &buffers),
                    "{op} {name}, n = {n}"
                );
                // Sums keep their order unless reordering is requested.
                let exact = try_recognize(&program, &ONE, &buffers, false).expect("it fits");
                assert_eq!(
                    matches!(exact.shape(), Shape::Reduction { .. }),
                    is_reduction && op != "add"
                );
            }
        }
    }
}

/// One lane per row, or per column.
#[test]
fn sums_of_rows_and_columns_are_reductions() {
    let text = |scale: u64, step: u64| {
        format!(
            "{HEAD}mov_imm.f32 r0, 0.0\nmov_imm.u64 r1, {scale}\nmul.u64 r2, r255, r1\nmov_imm.u64 r3, {step}\nmov_imm.u32 r4, 6\n@l:\nldg.f32 r5, [x + r2]\nadd.f32 r0, r0, r5\nadd.u64 r2, r2, r3\nloop r4, @l\nstg.f32 [y], r0"
        )
    };
    let (launch, buffers) = (LaunchConfig::linear(5, 5), vec![values(35, 0.25), zeros(5)]);
    for (scale, step, is_columns) in [(28, 4, false), (4, 20, true)] {
        let program = checked(&text(scale, step));
        let shape = recognized(&program, &launch, &buffers).shape().clone();
        assert!(
            matches!(shape, Shape::Reduction { rows: 5, cols: 7, columns, .. } if columns == is_columns),
            "{shape}"
        );
        assert_eq!(
            planned(&program, &launch, &buffers, true).1,
            reference(&program, &launch, &buffers)
        );
    }
}

/// Text after the loop's start, with the code of an iteration and after the last.
fn sum(turn: &str, after: &str) -> String {
    format!(
        "{HEAD}mov_imm.f32 r0, 0.0\nmov_imm.u64 r4, 4\nmov_imm.u64 r5, 0\nmov_imm.u32 r9, 7\n@l:\n{turn}\nloop r9, @l\n{after}"
    )
}

#[test]
fn what_is_no_reduction_is_refused_with_the_reason() {
    let load = "ldg.f32 r1, [x + r5]\n";
    let cases = [
        (
            sum(
                &format!("{load}add.f32 r0, r0, r1\nadd.u64 r5, r5, r4\nstg.f32 [y + 0], r0"),
                "",
            ),
            "every value of turn0 stores to the same place",
        ),
        (
            sum(
                &format!("{load}add.f32 r0, r0, r1\nmul.f32 r0, r0, r1\nadd.u64 r5, r5, r4"),
                "stg.f32 [y + 0], r0",
            ),
            "not one chain of an operation",
        ),
        (
            sum(
                &format!("{load}add.f32 r1, r1, r0\nadd.f32 r0, r0, r1\nadd.u64 r5, r5, r4"),
                "stg.f32 [y + 0], r0",
            ),
            "r0 is carried across iterations",
        ),
        (
            sum(
                &format!("add.u64 r5, r5, r4\n{}{load}add.f32 r0, r0, r1", ""),
                "stg.f32 [y + 0], r0",
            ),
            "reaches byte 36",
        ),
        (
            sum(
                &format!("{load}add.f32 r0, r0, r1\nadd.u64 r5, r5, r4\nadd.u64 r5, r5, r4"),
                "stg.f32 [y + 0], r0",
            )
            .replace("r9, 7", "r9, 3"),
            "leave gaps or overlap",
        ),
        (
            sum(
                &format!("{load}add.f32 r0, r0, r1\nadd.u64 r5, r5, r4"),
                "add.f32 r0, r0, r0\nstg.f32 [y + 0], r0",
            ),
            "r0 is the result of a loop",
        ),
        (
            sum(
                &format!("{load}add.f32 r0, r0, r1\nadd.u64 r5, r5, r4"),
                "stg.f32 [y + 0], r0",
            )
            .replace("r0, 0.0", "r0, 1.0"),
            "neither its neutral element",
        ),
        (
            sum(
                &format!("{load}add.f32 r0, r0, r1\nadd.u64 r5, r5, r4"),
                "stg.f32 [y + 0], r0",
            )
            .replace("r9, 7", "r9, 6"),
            "cover 28 of 32 bytes",
        ),
        (
            sum(
                &format!("{load}sub.f32 r0, r0, r1\nadd.u64 r5, r5, r4"),
                "stg.f32 [y + 0], r0",
            ),
            "not one chain of an operation",
        ),
    ];
    for (text, reason) in cases {
        let program = checked(&text);
        let buffers = vec![values(8, 0.5), zeros(1)];
        match program.recognize(&super::Setting {
            reassociate: true,
            ..super::Setting::new(&ONE, &[32, 4])
        }) {
            Ok(found) => {
                assert!(
                    reasons(&found).contains(reason),
                    "{}\n{text}",
                    reasons(&found)
                );
                assert_eq!(
                    planned(&program, &ONE, &buffers, true).1,
                    reference(&program, &ONE, &buffers),
                    "{text}"
                );
            }
            Err(error) => assert!(error.to_string().contains(reason), "{error}\n{text}"),
        }
    }
}

/// y[i, j] += a·b in one lane per element; the offsets of a and b from i and j, and their steps.
fn gemm([m, n, k]: [u64; 3], a_transposed: bool, b_transposed: bool, chain: &str) -> String {
    let (a_scale, a_step) = if a_transposed { (4, 4 * m) } else { (4 * k, 4) };
    let (b_scale, b_step) = if b_transposed { (4 * k, 4) } else { (4, 4 * n) };
    format!(
        "buffer a: f32 read\nbuffer b: f32 read\nbuffer y: f32 write\nmov_imm.u64 r1, {n}\ndiv.u64 r2, r255, r1\nmul.u64 r3, r2, r1\nsub.u64 r3, r255, r3\nmov_imm.u64 r4, {a_scale}\nmul.u64 r5, r2, r4\n\
         mov_imm.u64 r4, {b_scale}\nmul.u64 r6, r3, r4\nmov_imm.u64 r7, {a_step}\nmov_imm.u64 r8, {b_step}\nmov_imm.f32 r0, 0.0\nmov_imm.u32 r9, {}\n@l:\nldg.f32 r10, [a + r5]\nldg.f32 r11, [b + r6]\n\
         {chain}\nadd.u64 r5, r5, r7\nadd.u64 r6, r6, r8\nloop r9, @l\nstg.f32 [y], r0",
        k - 1
    )
}

#[test]
fn canonical_loops_are_products_of_matrices() {
    let [m, n, k] = [6u64, 5, 7];
    let (launch, buffers) = (
        LaunchConfig::linear(30, 30),
        vec![values(m * k, 0.25), values(k * n, 0.5), zeros(m * n)],
    );
    for chain in [
        "fma.f32 r0, r10, r11, r0",
        "mad.f32 r0, r11, r10, r0",
        "mul.f32 r12, r10, r11\nadd.f32 r0, r0, r12",
    ] {
        for (a, b) in [(false, false), (true, false), (false, true), (true, true)] {
            let program = checked(&gemm([m, n, k], a, b, chain));
            let found = recognized(&program, &launch, &buffers);
            let Shape::Gemm {
                sizes,
                a: (_, a_found),
                b: (_, b_found),
                ..
            } = found.shape()
            else {
                panic!("{}{:?}", found.shape(), found.refusals())
            };
            assert_eq!((*sizes, *a_found, *b_found), ([m, n, k], a, b));
            assert_eq!(
                planned(&program, &launch, &buffers, true).1,
                reference(&program, &launch, &buffers),
                "{chain}"
            );
        }
    }
    // Rows by blocks and columns by lanes; three loops of one lane.
    let by_blocks = gemm([m, n, k], false, false, "fma.f32 r0, r10, r11, r0").replace(
        "div.u64 r2, r255, r1\nmul.u64 r3, r2, r1\nsub.u64 r3, r255, r3",
        "cvt.u64.u32 r2, r253\ncvt.u64.u32 r3, r252",
    );
    let program = checked(&by_blocks);
    let launch = LaunchConfig {
        grid: [6, 1, 1],
        block: [5, 1, 1],
        ..LaunchConfig::default()
    };
    assert!(
        matches!(
            recognized(&program, &launch, &buffers).shape(),
            Shape::Gemm {
                sizes: [6, 5, 7],
                ..
            }
        ),
        "{:?}",
        recognized(&program, &launch, &buffers).refusals()
    );
    let nest = "buffer a: f32 read\nbuffer b: f32 read\nbuffer y: f32 write\nmov_imm.u64 r1, 4\nmov_imm.u64 r2, 20\nmov_imm.u64 r3, 28\nmov_imm.u64 r20, 0\nmov_imm.u64 r21, 0\nmov_imm.u32 r7, 5\n@i:\n\
                mov_imm.u64 r22, 0\nmov_imm.u32 r8, 4\n@j:\nmov_imm.f32 r0, 0.0\nmov.u64 r23, r20\nmov.u64 r24, r22\nmov_imm.u32 r9, 6\n@k:\nldg.f32 r10, [a + r23]\nldg.f32 r11, [b + r24]\n\
                fma.f32 r0, r10, r11, r0\nadd.u64 r23, r23, r1\nadd.u64 r24, r24, r2\nloop r9, @k\nstg.f32 [y + r21], r0\nadd.u64 r21, r21, r1\nadd.u64 r22, r22, r1\nloop r8, @j\n\
                add.u64 r20, r20, r3\nloop r7, @i";
    let program = checked(nest);
    assert!(
        matches!(
            recognized(&program, &ONE, &buffers).shape(),
            Shape::Gemm {
                sizes: [6, 5, 7],
                ..
            }
        ),
        "{:?}",
        recognized(&program, &ONE, &buffers).refusals()
    );
    assert_eq!(
        planned(&program, &ONE, &buffers, true).1,
        reference(&program, &ONE, &buffers)
    );
}

#[test]
fn the_library_s_matvec_is_one_where_its_sizes_are_known() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/programs/matvec.atlas"
    ))
    .expect("the library is there");
    let program = checked(&text);
    for (m, k) in [(1u64, 2u64), (3, 3), (33, 64), (1_024, 3), (3_073, 2)] {
        let launch = LaunchConfig::linear(m as u32, 32);
        let buffers = vec![values(m * k, 0.25), values(k, 0.5), u64s(&[m, k]), zeros(m)];
        let found = recognized(&program, &launch, &buffers);
        let is_matvec = matches!(found.shape(), Shape::Matvec { m: rows, k: columns, .. } if (*rows, *columns) == (m, k));
        assert!(
            is_matvec,
            "{m} {k}: {} {:?}",
            found.shape(),
            found.refusals()
        );
        assert_eq!(
            planned(&program, &launch, &buffers, true).1,
            reference(&program, &launch, &buffers),
            "{m} {k}"
        );
        let exact = try_recognize(&program, &launch, &buffers, false).expect("it fits");
        assert!(reasons(&exact).contains("the order of the additions would change"));
    }
}

#[test]
fn what_is_no_product_is_refused_with_the_reason() {
    let sizes = [6u64, 5, 7];
    let right = gemm(sizes, false, false, "fma.f32 r0, r10, r11, r0");
    let cases = [
        (
            right.replace("mov_imm.u64 r7, 4", "mov_imm.u64 r7, 0"),
            "not those of the rows and columns",
        ),
        (
            right.replace("r9, 6", "r9, 5"),
            "not those of the rows and columns",
        ),
        (
            right.replace("mov_imm.f32 r0, 0.0", "mov_imm.f32 r0, 0.5"),
            "neither its neutral element",
        ),
        (
            right.replace("fma.f32 r0, r10, r11, r0", "fma.f32 r0, r10, r0, r11"),
            "not one chain of an operation",
        ),
        (
            right.replace(
                "fma.f32 r0, r10, r11, r0",
                "fma.f32 r0, r10, r11, r0\nfma.f32 r0, r10, r11, r0",
            ),
            "not those of the rows and columns",
        ),
        (
            right.replace("stg.f32 [y], r0", "neg.f32 r0, r0\nstg.f32 [y], r0"),
            "the result is not one operation repeated",
        ),
    ];
    let (launch, buffers) = (
        LaunchConfig::linear(30, 30),
        vec![values(42, 0.25), values(35, 0.5), zeros(30)],
    );
    for (text, reason) in cases {
        let program = checked(&text);
        let found = recognized(&program, &launch, &buffers);
        assert!(
            reasons(&found).contains(reason),
            "{}\n{text}",
            reasons(&found)
        );
        assert_eq!(
            planned(&program, &launch, &buffers, true).1,
            reference(&program, &launch, &buffers),
            "{text}"
        );
    }
}

/// Integers wrap, so every order is correct; terms of floats may be expressions, and reordering
/// them is requested.
#[test]
fn chains_that_the_core_has_no_kernel_for_are_trees() {
    for n in [2u64, 3, 255, 256, 257, 3_073] {
        for (ty, op, neutral) in [
            ("i32", "add", "0"),
            ("u8", "mul", "1"),
            ("i64", "min", "9223372036854775807"),
            ("u16", "max", "0"),
            ("f32", "add", "0.0"),
        ] {
            let width = crate::Type::from_name(ty).map_or(0, |ty| ty.bytes());
            let program = checked(&format!(
                "buffer x: {ty} read\nbuffer s: {ty} read\nbuffer y: {ty} write\nmov_imm.{ty} r0, {neutral}\nmov_imm.u64 r4, {width}\nmov_imm.u64 r5, 0\nmov_imm.u32 r9, {}\nldg.{ty} r2, [s + 0]\n@l:\n\
                 ldg.{ty} r1, [x + r5]\nadd.{ty} r1, r1, r2\nneg.{ty} r1, r1\n{op}.{ty} r0, r0, r1\nadd.u64 r5, r5, r4\nloop r9, @l\nstg.{ty} [y + 0], r0",
                n - 1
            ));
            let value = |i: u64| {
                if ty == "f32" {
                    f32s([(i % 31) as f32 - 9.0])
                } else {
                    (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1).to_le_bytes()[..width as usize]
                        .to_vec()
                }
            };
            let buffers = vec![
                (0..n).flat_map(value).collect(),
                value(5),
                vec![0; width as usize],
            ];
            let (shape, after) = planned(&program, &ONE, &buffers, true);
            assert!(
                matches!(shape, Shape::Tree { count, .. } if count == n),
                "{ty} {op} {n}: {shape}"
            );
            assert_eq!(after, reference(&program, &ONE, &buffers), "{ty} {op} {n}");
            let exact = try_recognize(&program, &ONE, &buffers, false).expect("it fits");
            assert_eq!(
                matches!(exact.shape(), Shape::Tree { .. }),
                ty != "f32",
                "{ty} {op}"
            );
        }
    }
}
