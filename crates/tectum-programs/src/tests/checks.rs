//! Programs that the check refuses, and those that it must accept.

use crate::Program;

/// Text, and the line and a part of the message of its first error; `None` if it is accepted.
const CASES: &[(&str, Option<(u32, &str)>)] = &[
    ("exit", None),
    ("", None),
    (
        "add.f32 r0, r1, r1",
        Some((1, "r1 is read and has no value on some path")),
    ),
    (
        "mov_imm.i32 r0, 1\nneg.f32 r1, r0",
        Some((2, "r0 is read as f32 and holds i32")),
    ),
    (
        "sel.u32 r0, p0, r252, r252",
        Some((1, "p0 is read and has no value")),
    ),
    (
        "neg.u64 r0, r252",
        Some((1, "r252 is read as u64 and holds u32")),
    ),
    (
        "mov.u32 r0, r252\nmov.u32 r1, r253\nmov.u32 r2, r254\nmov.u64 r3, r255",
        None,
    ),
    // Definition on one path only, on both, and of different types.
    (
        "set.eq.u32 p0, r252, r252\nbra @l, p0\nmov_imm.i8 r0, 1\n@l: neg.i8 r1, r0",
        Some((4, "r0 is read and has no value on some path")),
    ),
    (
        "set.eq.u32 p0, r252, r252\nmov_imm.i8 r0, 2\nbra @l, p0\nmov_imm.i8 r0, 1\n@l: neg.i8 r1, r0",
        None,
    ),
    (
        "set.eq.u32 p0, r252, r252\nmov_imm.i16 r0, 2\nbra @l, p0\nmov_imm.i8 r0, 1\n@l: neg.i8 r1, r0",
        Some((5, "different types on different paths")),
    ),
    (
        "set.eq.u32 p0, r252, r252\nmov_imm.i16 r0, 2\nbra @l, p0\nmov_imm.i8 r0, 1\n@l: exit",
        None,
    ),
    // The shift amount is a u32, offsets are u64.
    (
        "shl.u64 r0, r255, r255",
        Some((1, "r255 is read as u32 and holds u64")),
    ),
    (
        "buffer x: f32 read\nldg.f32 r0, [x + r252]",
        Some((2, "r252 is read as u64 and holds u32")),
    ),
    // Declarations.
    (
        "buffer x: f32 read\nldg.f32 r0, [x]\nstg.f32 [x], r0",
        Some((3, "a store to buffer x, which is declared read")),
    ),
    (
        "buffer x: f32 write\nldg.f32 r0, [x]",
        Some((2, "a load from buffer x, which is declared write")),
    ),
    (
        "buffer x: f32 read\nldg.i32 r0, [x]",
        Some((2, "buffer x holds f32, the access is of i32")),
    ),
    ("buffer x: u8 read\nldg.i32 r0, [x]", None),
    (
        "buffer x: f32 read boundary\nldg.i32 r0, [Phi(0,0,0)]",
        None,
    ),
    // Calls: the requirements and results of a function are known at each call.
    (
        "call @f\nneg.i32 r1, r0\nexit\n@f: mov_imm.i32 r0, 1\nret",
        None,
    ),
    (
        "call @f\nneg.f32 r1, r0\nexit\n@f: mov_imm.i32 r0, 1\nret",
        Some((2, "r0 is read as f32 and holds i32")),
    ),
    (
        "call @f\nexit\n@f: neg.i32 r1, r0\nret",
        Some((1, "r0 is read by what is called and has no value")),
    ),
    (
        "mov_imm.i32 r0, 1\ncall @f\nexit\n@f: neg.i32 r1, r0\nret",
        None,
    ),
    (
        "mov_imm.f32 r0, 1.0\ncall @f\nexit\n@f: neg.i32 r1, r0\nret",
        Some((2, "r0 is read by what is called as i32 and holds f32")),
    ),
    (
        "mov_imm.i32 r9, 1\ncall @f\nneg.i32 r1, r9\ncall @f\nexit\n@f: ret",
        None,
    ),
    ("ret", Some((1, "a `ret` outside a call"))),
    ("call @f\n@f: ret", Some((2, "a `ret` outside a call"))),
    ("@a: call @a", Some((1, "recursion"))),
    (
        "call @f\nexit\n@f: call @g\nret\n@g: call @f\nret",
        Some((3, "recursion")),
    ),
    // Barriers.
    ("bar.sync 0", None),
    (
        "set.lt.u32 p0, r252, r254\nbra @l, p0\nbar.sync 0\n@l: exit",
        Some((3, "a barrier that only some lanes")),
    ),
    (
        "set.lt.u32 p0, r253, r254\nbra @l, p0\nbar.sync 0\n@l: exit",
        None,
    ),
    (
        "set.lt.u32 p0, r252, r254\nbra @l, p0\nphase_adv 1\n@l: bar.sync 0",
        None,
    ),
    (
        "set.lt.u32 p0, r252, r254\nbra @l, p0\nexit\n@l: bar.sync 0",
        Some((4, "a barrier that only some lanes")),
    ),
    ("mov_imm.u32 r0, 3\n@l: bar.sync 0\nloop r0, @l", None),
    (
        "mov.u32 r0, r252\n@l: bar.sync 0\nloop r0, @l",
        Some((2, "a barrier that only some lanes")),
    ),
    (
        "mov.u32 r0, r252\nmov_imm.u32 r0, 3\n@l: bar.sync 0\nloop r0, @l",
        None,
    ),
    // A uniform value written in divergent flow varies afterwards.
    (
        "mov_imm.u32 r0, 1\nset.lt.u32 p0, r252, r254\nbra @j, p0\nmov_imm.u32 r0, 3\n@j: loop r0, @l\n@l: exit\nbar.sync 0",
        None,
    ),
    (
        "mov_imm.u32 r0, 1\nset.lt.u32 p0, r252, r254\nbra @l, p0\nmov_imm.u32 r0, 3\n@l: bar.sync 0\nloop r0, @l",
        Some((5, "a barrier that only some lanes")),
    ),
    (
        "buffer x: u32 read\nldg.u32 r0, [x + 0]\n@l: bar.sync 0\nloop r0, @l",
        None,
    ),
    (
        "buffer x: u32 read_write\nldg.u32 r0, [x + 0]\n@l: bar.sync 0\nloop r0, @l",
        Some((3, "a barrier that only some lanes")),
    ),
    // Through calls.
    ("call @f\nexit\n@f: bar.sync 0\nret", None),
    (
        "set.lt.u32 p0, r252, r254\nbra @l, p0\ncall @f\n@l: exit\n@f: bar.sync 0\nret",
        Some((5, "a barrier that only some lanes")),
    ),
    (
        "call @f\nbar.sync 0\nexit\n@f: set.lt.u32 p0, r252, r254\nbra @l, p0\nphase_adv 1\n@l: ret",
        None,
    ),
    (
        "call @f\nbar.sync 0\nexit\n@f: set.lt.u32 p0, r252, r254\nbra @l, p0\nexit\n@l: ret",
        Some((2, "a barrier that only some lanes")),
    ),
    (
        "call @f\nset.lt.u32 p0, r0, r254\nbra @l, p0\nbar.sync 0\n@l: exit\n@f: mov.u32 r0, r252\nret",
        Some((4, "a barrier that only some lanes")),
    ),
];

#[test]
fn the_check_refuses_what_it_should_and_nothing_else() {
    for (text, expected) in CASES {
        let found = Program::parse(text)
            .unwrap_or_else(|error| panic!("{error}"))
            .mistakes();
        match (expected, found.first()) {
            (None, None) => {}
            (Some((line, part)), Some(first)) => {
                assert!(
                    first.span.line == *line && first.message.contains(part),
                    "{text}\n-- {first}"
                );
            }
            (_, first) => panic!("{text}\n-- expected {expected:?}, found {first:?}"),
        }
    }
}

#[test]
fn calls_nest_256_deep_and_no_deeper() {
    let chain = |depth: usize| {
        let functions: String = (0..depth)
            .map(|i| format!("@f{i}: call @f{}\nret\n", i + 1))
            .collect();
        format!("call @f0\nexit\n{functions}@f{depth}: ret\n")
    };
    assert!(Program::parse(&chain(255)).expect("valid").check().is_ok());
    let error = Program::parse(&chain(256))
        .expect("valid")
        .check()
        .expect_err("too deep");
    assert!(
        error.to_string().contains("calls nest deeper than 256"),
        "{error}"
    );
}

#[test]
fn several_mistakes_are_reported_together_with_their_lines() {
    let message = Program::parse("program two\nneg.f32 r1, r2\nneg.f32 r3, r4")
        .expect("valid")
        .check()
        .expect_err("two")
        .to_string();
    assert_eq!(
        message,
        "two: line 2, column 1: r2 is read and has no value on some path\n2 | neg.f32 r1, r2\n  | ^\n\
         line 3, column 1: r4 is read and has no value on some path\n3 | neg.f32 r3, r4\n  | ^"
    );
}
