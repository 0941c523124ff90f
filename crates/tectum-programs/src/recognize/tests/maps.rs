//! Maps in every form that a program may have, and similar programs that are not maps.

use super::{
    ONE, SIZES, checked, code, f32s, planned, reasons, recognized, reference, try_recognize, u64s,
    values, zeros,
};
use crate::{LaunchConfig, Shape};

const HEAD: &str =
    "buffer a: f32 read\nbuffer b: f32 read\nbuffer s: f32 read\nbuffer y: f32 write\n";
const MAP: [&str; 6] = [
    "ldg.f32 r0, [a]",
    "ldg.f32 r1, [b]",
    "mul.f32 r1, r0, r1",
    "ldg.f32 r0, [s + 4]",
    "add.f32 r0, r1, r0",
    "stg.f32 [y], r0",
];

/// y = a·b + s[1], in every known form, with the launch of each.
fn forms(n: u64) -> Vec<(&'static str, String, LaunchConfig)> {
    let element = |at: &str| {
        format!(
            "ldg.f32 r10, [a + {at}]\nldg.f32 r11, [b + {at}]\nmul.f32 r12, r10, r11\nldg.f32 r13, [s + 4]\nadd.f32 r12, r12, r13\nstg.f32 [y + {at}], r12\n"
        )
    };
    let last = n - 1;
    let unrolled: String = (0..n).map(|i| element(&(4 * i).to_string())).collect();
    let backwards: String = (0..n)
        .rev()
        .map(|i| element(&(4 * i).to_string()))
        .collect();
    let indexed = element("r5");
    let start = "mov_imm.u64 r4, 4\nmov_imm.u64 r5, 0\n";
    let end = format!("mov_imm.u64 r6, {}\n", 4 * n);
    let lanes = |block: u32| LaunchConfig::linear(n as u32, block);
    vec![
        ("own", "ldg.f32 r0, [a]\nldg.f32 r1, [b]\nmul.f32 r2, r0, r1\nldg.f32 r3, [s + 4]\nadd.f32 r2, r2, r3\nstg.f32 [y], r2\n".to_owned(), lanes(256)),
        ("unrolled", unrolled, ONE),
        ("backwards", backwards, ONE),
        ("loop", format!("{start}mov_imm.u32 r0, {last}\n@l:\n{indexed}add.u64 r5, r5, r4\nloop r0, @l\n"), ONE),
        (
            "handles",
            format!(
                "mov_imm.u64 r1, 1\nmov_imm.u64 r2, 2\nmov_imm.u64 r3, 4\n{start}mov_imm.u32 r0, {last}\n@l:\nldg.f32 r10, [r1 + r5]\nldg.f32 r11, [r2 + r5]\nmul.f32 r12, r10, r11\nldg.f32 r13, [s + 4]\nadd.f32 r12, r12, r13\nstg.f32 [r3 + r5], r12\nadd.u64 r5, r5, r4\nloop r0, @l\n"
            ),
            ONE,
        ),
        ("while", format!("{start}{end}@l:\nset.ge.u64 p0, r5, r6\nbra @done, p0\n{indexed}add.u64 r5, r4, r5\nbra @l\n@done:\n"), ONE),
        ("do while", format!("{start}{end}@l:\n{indexed}add.u64 r5, r5, r4\nset.ne.u64 p3, r6, r5\nbra @l, p3\n"), ONE),
        (
            "downwards",
            format!(
                "{end}mov_imm.u64 r4, 4\nmov_imm.u64 r7, 0\n@l:\nset.gt.u64 p0, r6, r7\nbra @done, !p0\nsub.u64 r6, r6, r4\n{}bra @l\n@done:\n",
                element("r6")
            ),
            ONE,
        ),
        ("lanes", format!("mov_imm.u64 r4, 4\nmov_imm.u64 r6, {n}\nset.ge.u64 p0, r255, r6\nbra @end, p0\nmul.u64 r5, r255, r4\n{indexed}@end:\n"), lanes(64)),
        (
            "blocks",
            format!(
                "mov_imm.u32 r4, 4\nmad.u32 r7, r253, r254, r252\nmul.u32 r7, r7, r4\ncvt.u64.u32 r5, r7\nmov_imm.u64 r6, {}\nset.lt.u64 p0, r5, r6\nbra @go, p0\nexit\n@go:\n{indexed}",
                4 * n
            ),
            lanes(if n.is_multiple_of(64) { 64 } else { 1 }),
        ),
    ]
}

fn buffers(n: u64) -> Vec<Vec<u8>> {
    vec![
        values(n, 0.07),
        values(n, -0.03),
        f32s([9.0, 0.5]),
        zeros(n),
    ]
}

#[test]
fn every_form_of_a_map_becomes_the_same_program() {
    for n in SIZES {
        let buffers = buffers(n);
        let mut expected: Option<Vec<Vec<u8>>> = None;
        for (name, text, launch) in forms(n) {
            let program = checked(&format!("{HEAD}{text}"));
            let found = recognized(&program, &launch, &buffers);
            assert_eq!(code(&found), MAP, "{name}, n = {n}");
            let (shape, after) = planned(&program, &launch, &buffers, false);
            assert!(matches!(shape, Shape::Map(map) if map.elements() == n));
            let reference = reference(&program, &launch, &buffers);
            assert_eq!(after, reference, "{name}, n = {n}");
            assert_eq!(
                expected.get_or_insert(after.clone()),
                &after,
                "{name}, n = {n}"
            );
        }
    }
}

#[test]
fn a_count_that_is_loaded_is_known_where_the_buffer_is() {
    let text = "buffer x: f32 read\nbuffer n: u64 read\nbuffer y: f32 write\nldg.u64 r0, [n + 0]\nmov_imm.u64 r1, 1\nmov_imm.u64 r2, 0\nmov_imm.u32 r3, 2\n@l:\nset.ge.u64 p0, r2, r0\n\
                bra @done, p0\nshl.u64 r4, r2, r3\nldg.f32 r5, [x + r4]\nneg.f32 r5, r5\nstg.f32 [y + r4], r5\nadd.u64 r2, r2, r1\nbra @l\n@done:\n";
    let program = checked(text);
    let buffers = [values(77, 1.0), u64s(&[77]), zeros(77)];
    assert_eq!(
        code(&recognized(&program, &ONE, &buffers)),
        ["ldg.f32 r0, [x]", "neg.f32 r0, r0", "stg.f32 [y], r0"]
    );
    let sizes = [308, 8, 308];
    let unknown = program
        .recognize(&super::Setting::new(&ONE, &sizes))
        .expect("it fits");
    assert!(
        reasons(&unknown).contains("the condition that ends the loop depends on data"),
        "{}",
        reasons(&unknown)
    );
    // One element too many: a contradiction.
    let error = try_recognize(
        &program,
        &ONE,
        &[values(77, 1.0), u64s(&[78]), zeros(77)],
        true,
    )
    .expect_err("out of bounds");
    assert!(
        error
            .to_string()
            .contains("reaches byte 312 of the 308 of buffer x"),
        "{error}"
    );
    // One less: some of y is not stored.
    let fewer = recognized(&program, &ONE, &[values(77, 1.0), u64s(&[76]), zeros(77)]);
    assert!(
        reasons(&fewer).contains("buffer y: the stores cover bytes 0 to 304 of 308"),
        "{}",
        reasons(&fewer)
    );
}

#[test]
fn loops_of_unrolled_bodies_selections_and_passes_through_memory_are_maps() {
    // Two elements per iteration, and one iteration per lane.
    let text = "buffer x: i32 read_write\nmov_imm.u64 r4, 16\nmov_imm.u64 r1, 8\nmul.u64 r5, r255, r4\nmov_imm.u64 r7, 4\nmov_imm.u32 r0, 1\n@l:\nadd.u64 r6, r5, r7\nldg.i32 r10, [x + r5]\n\
                ldg.i32 r11, [x + r6]\nmov_imm.i32 r12, 0\nset.lt.i32 p0, r10, r12\nsel.i32 r13, p0, r12, r10\nstg.i32 [x + r5], r13\nset.lt.i32 p1, r11, r12\nsel.i32 r13, p1, r12, r11\n\
                stg.i32 [x + r6], r13\nadd.u64 r5, r5, r1\nloop r0, @l\n";
    let (program, launch) = (checked(text), LaunchConfig::linear(8, 4));
    let buffers = [(0..32)
        .flat_map(|i| (i * 7 % 11 - 5i32).to_le_bytes())
        .collect()];
    let found = recognized(&program, &launch, &buffers);
    assert_eq!(
        code(&found),
        [
            "ldg.i32 r0, [x]",
            "mov_imm.i32 r1, 0",
            "set.lt.i32 p0, r0, r1",
            "sel.i32 r0, p0, r1, r0",
            "stg.i32 [x], r0"
        ]
    );
    assert_eq!(
        planned(&program, &launch, &buffers, false).1,
        reference(&program, &launch, &buffers)
    );
    // A temporary buffer between two passes.
    let text = "buffer x: f32 read\nbuffer t: f32 read_write\nbuffer y: f32 write\nldg.f32 r0, [x]\nexp.f32 r0, r0\nstg.f32 [t], r0\nldg.f32 r1, [t]\nadd.f32 r1, r1, r1\nstg.f32 [y], r1\n";
    let (program, launch) = (checked(text), LaunchConfig::linear(5, 2));
    let buffers = [values(5, 0.01), zeros(5), zeros(5)];
    assert_eq!(
        code(&recognized(&program, &launch, &buffers)),
        [
            "ldg.f32 r0, [x]",
            "exp.f32 r0, r0",
            "add.f32 r1, r0, r0",
            "stg.f32 [t], r0",
            "stg.f32 [y], r1"
        ]
    );
    // The element's own number.
    let program = checked(
        "buffer y: f32 write\nmov_imm.u64 r1, 3\nmad.u64 r0, r255, r1, r1\ncvt.u32.u64 r2, r0\ncvt.f32.u32 r3, r2\nstg.f32 [y], r3",
    );
    let launch = LaunchConfig::linear(9, 4);
    assert!(matches!(
        recognized(&program, &launch, &[zeros(9)]).shape(),
        Shape::Map(_)
    ));
    assert_eq!(
        planned(&program, &launch, &[zeros(9)], false).1,
        reference(&program, &launch, &[zeros(9)])
    );
}

/// Text after x: f32 read, y: f32 read_write, both of 8 elements; the launch; why it is not a map.
const REFUSED: &[(&str, u32, &str)] = &[
    (
        "ldg.f32 r0, [y + 0]\nstg.f32 [y], r0",
        8,
        "buffer y is stored to and loaded at 0, an element of another",
    ),
    (
        "mov_imm.u64 r1, 4\nmul.u64 r2, r255, r1\nmov_imm.u64 r3, 28\nsub.u64 r4, r3, r2\nldg.f32 r0, [y + r4]\nstg.f32 [y], r0",
        8,
        "the load at -4·lane + 28 is not of the own element",
    ),
    (
        "mov_imm.u64 r1, 4\nmul.u64 r2, r255, r1\nmov_imm.u64 r3, 28\nsub.u64 r4, r3, r2\nldg.f32 r0, [x + r4]\nstg.f32 [y], r0",
        8,
        "the load at -4·lane + 28 is not of the own element",
    ),
    (
        "mov_imm.u64 r1, 4\nmov_imm.u64 r2, 0\nmov_imm.u32 r0, 6\n@l:\nldg.f32 r3, [y + r2]\nadd.u64 r2, r2, r1\nstg.f32 [y + r2], r3\nloop r0, @l",
        1,
        "the stores cover bytes 4 to 32 of 32",
    ),
    (
        "ldg.f32 r0, [x + 0]\nstg.f32 [y + 0], r0\nldg.f32 r0, [x + 4]\nstg.f32 [y + 4], r0\nldg.f32 r0, [x + 12]\nstg.f32 [y + 12], r0",
        1,
        "has a gap or stores twice at byte 12",
    ),
    (
        "mov_imm.u64 r1, 8\nmov_imm.u64 r2, 0\nmov_imm.u32 r0, 3\n@l:\nldg.f32 r3, [x + r2]\nstg.f32 [y + r2], r3\nadd.u64 r2, r2, r1\nloop r0, @l",
        1,
        "leave gaps or overlap",
    ),
    (
        "mov_imm.u64 r1, 4\nmov_imm.u64 r2, 0\nmov_imm.u32 r0, 6\n@l:\nldg.f32 r3, [x + r2]\nstg.f32 [y + r2], r3\nadd.u64 r2, r2, r1\nloop r0, @l",
        1,
        "the stores cover bytes 0 to 28 of 32",
    ),
    (
        "mov_imm.f32 r0, 1.0\nstg.f32 [y + 0], r0",
        8,
        "every value of lane stores to the same place",
    ),
    (
        "mov_imm.f32 r4, 0.0\nmov_imm.u64 r1, 4\nmov_imm.u64 r2, 0\nmov_imm.u32 r0, 7\n@l:\nldg.f32 r3, [x + r2]\nadd.f32 r4, r4, r3\nstg.f32 [y + r2], r4\nadd.u64 r2, r2, r1\nloop r0, @l",
        1,
        "r4 is carried across iterations",
    ),
    (
        "ldg.f32 r0, [x]\nmov_imm.f32 r1, 0.0\nset.lt.f32 p0, r0, r1\nbra @end, p0\nstg.f32 [y], r0\n@end:",
        8,
        "the branch depends on data",
    ),
    (
        "ldg.f32 r0, [x]\ncvt.u64.f32 r1, r0\nldg.f32 r0, [x + r1]\nstg.f32 [y], r0",
        8,
        "the offset in r1 is not a sum of multiples",
    ),
    (
        "mov_imm.u64 r1, 3\nset.lt.u64 p0, r255, r1\nbra @end, p0\nldg.f32 r0, [x]\nstg.f32 [y], r0\n@end:",
        8,
        "the lanes that the branch leaves are not the first ones",
    ),
    (
        "mov_imm.u64 r1, 4\nset.ge.u64 p0, r255, r1\nbra @end, p0\nldg.f32 r0, [x]\nstg.f32 [y], r0\n@end:",
        8,
        "the stores cover bytes 0 to 16 of 32",
    ),
    (
        "shared 64\nldg.f32 r0, [x]\nsts.f32 [shared], r0\nbar.sync 0\nlds.f32 r0, [shared]\nstg.f32 [y], r0",
        8,
        "it depends on what lanes stored in shared memory",
    ),
    (
        "phase_get r0\ncvt.f32.u32 r1, r0\nstg.f32 [y], r1",
        8,
        "depends on instruction 0, which recognition does not support",
    ),
    (
        "ldg.f32 r0, [x + 0]\nstg.f32 [y], r0\ncall @f\nexit\n@f:\nret",
        8,
        "recognition does not support calls",
    ),
];

#[test]
fn what_is_no_map_is_refused_with_the_reason() {
    for (text, lanes, reason) in REFUSED {
        let program = checked(&format!(
            "buffer x: f32 read\nbuffer y: f32 read_write\n{text}"
        ));
        // All values are ¼, which as an offset is 0.
        let buffers = [values(8, 0.0), zeros(8)];
        let found = program.recognize(&super::Setting {
            reassociate: true,
            ..super::Setting::new(&LaunchConfig::linear(*lanes, *lanes), &[32, 32])
        });
        let found = found.unwrap_or_else(|error| panic!("{error}\n{text}"));
        let reasons = reasons(&found);
        assert!(reasons.contains(reason), "{reasons}\n{text}");
        let launch = LaunchConfig::linear(*lanes, *lanes);
        assert_eq!(
            planned(&program, &launch, &buffers, true).1,
            reference(&program, &launch, &buffers),
            "{text}"
        );
    }
}
