//! The text form: accepted text, and positions of errors.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    Address, BinaryOp, BufferAccess, BufferDeclaration, Guard, Instruction, Phi, Predicate,
    Program, ProgramBuilder, ReduceOp, Register, TernaryOp, Type, UnaryOp,
};

const ALL: &str = "\
program all.forms
buffer a: f32 read
buffer raw: u8 read_write boundary
shared 64
pool 32
    ldg.f32 r0, [a]
    ldg.f32 r0, [a + 16]
    ldg.f32 r0, [a + r255]
    ldg.f32 r0, [r1 + 8]
    ldg.f32 r0, [r1 + r2]
    ldg.u8 r0, [Phi(95,47,255)]
    stg.i64 [raw], r1
    lds.f64 r0, [shared]
    sts.bf16 [shared + 2], r0
    lds.f16 r0, [shared + r1]
    mov.f16 r0, r1
    mov_imm.f32 r0, -1e-45
    mov_imm.f32 r0, 0x7fc00001
    mov_imm.f64 r0, 1.7976931348623157e308
    mov_imm.f16 r0, 5.9604645e-8
    mov_imm.bf16 r0, -inf
    mov_imm.i8 r0, -128
    mov_imm.u64 r0, 18446744073709551615
    cvt.f32.i32 r0, r1
    sigmoid.f32 r0, r1
    shl.i16 r0, r1, r2
    fma.bf16 r0, r1, r2, r3
@again:
    set.ltu.i32 p15, r0, r1
    sel.u8 r0, p1, r2, r3
    bra @again
    bra @again, p0
    bra @end, !p3
    call @again
    ret
    loop r4, @again
    exit
    bar.sync 15
    fence.system
    cls_get r0
    mirror r0, r1
    unity_test p2, 0.001
    nbr_count r0, r1
    nbr_get r0, r1, 5
    res_accum r0, r1
    phase_get r0
    phase_adv 767
    bound_map r0, r1, r2, r3
    reduce_max.f32 r0, r248, 8
    pool_alloc r0, 16
    pool_free r0
    pool_load.f32 r0, [r1 + r2]
    pool_store.f32 [r1 + r2], r0
@end:
";

#[test]
fn every_form_prints_as_it_is_written() {
    let program = Program::parse(ALL).expect("valid");
    assert_eq!(program.to_string(), ALL);
    assert_eq!(
        Program::from_bytes(&program.to_bytes()).expect("its own"),
        program
    );
    assert_eq!(
        program.span(0).map(|span| (span.line, span.column)),
        Some((6, 5))
    );
    assert_eq!(
        program.instructions()[5],
        Instruction::LoadGlobal {
            ty: Type::U8,
            dst: Register(0),
            address: Address::Phi(Phi {
                class: 95,
                page: 47,
                byte: 255
            })
        }
    );
    let guard = Some(Guard {
        predicate: Predicate(3),
        when: false,
    });
    assert!(
        program.instructions().iter().any(
            |other| matches!(other, Instruction::Branch { guard: found, .. } if *found == guard)
        )
    );
}

#[test]
fn comments_hexadecimal_and_labels_on_a_line_are_read() {
    let text = "// head\n@a: @b: exit // tail\n\tmov_imm.i16 r0, 0xffff\n bra @b";
    let program = Program::parse(text).expect("valid");
    assert_eq!(
        program.to_string(),
        "@a:\n@b:\n    exit\n    mov_imm.i16 r0, -1\n    bra @a\n"
    );
}

/// Text, the line and column of the error, and a part of the message.
const MISTAKES: &[(&str, (u32, u32), &str)] = &[
    ("frob r1", (1, 1), "`frob` is not an instruction"),
    (
        "\n  add.f32 r1, r2",
        (2, 17),
        "`,` is needed, not the end of the line",
    ),
    ("add.f99 r1, r2, r3", (1, 1), "`f99` is not a type"),
    ("add.f32 r1, r2, r256", (1, 17), "r256 is not a register"),
    ("not.f32 r1, r2", (1, 1), "not is not defined for f32"),
    ("gelu.f16 r1, r2", (1, 1), "gelu is not defined for f16"),
    (
        "fma.i32 r1, r2, r3, r4",
        (1, 1),
        "fma is not defined for i32",
    ),
    (
        "set.ltu.f32 p0, r1, r2",
        (1, 1),
        "ltu is not defined for f32",
    ),
    ("set.lt.f32 p16, r1, r2", (1, 12), "p16 is not a predicate"),
    ("bra p0", (1, 5), "`@` is needed, not `p0`"),
    ("bra @nowhere", (1, 5), "label @nowhere is not defined"),
    ("@a:\n@a:", (2, 2), "label @a is defined twice"),
    ("ldg.f32 r1, [x]", (1, 14), "buffer x is not declared"),
    ("buffer r1: f32 read", (1, 8), "\"r1\" cannot name a buffer"),
    (
        "buffer x: f32 read\nbuffer x: f32 read",
        (2, 8),
        "buffer x is declared twice",
    ),
    (
        "buffer x: f32 reed",
        (1, 15),
        "read, write or read_write is needed",
    ),
    ("ldg.f32 r1, [Phi(96,0,0)]", (1, 18), "a class is 0 to 95"),
    ("ldg.f32 r1, [Phi(0,48,0)]", (1, 20), "a page is 0 to 47"),
    (
        "ldg.f32 r1, [Phi(0,0,0)]",
        (1, 1),
        "no buffer is declared the boundary",
    ),
    ("mov_imm.i8 r1, 128", (1, 16), "128 is no i8"),
    ("mov_imm.f16 r1, 1e9", (1, 17), "1e9 is no f16"),
    (
        "mov_imm.u8 r1, 0x100",
        (1, 16),
        "0x100 is not the bits of u8",
    ),
    ("reduce_add.f32 r0, r250, 7", (1, 1), "passes r255"),
    (
        "reduce_add.f32 r0, r1, 0",
        (1, 1),
        "a reduction of no registers",
    ),
    (
        "reduce_add.u8 r0, r1, 2",
        (1, 1),
        "reduce_add is not defined for u8",
    ),
    ("bar.sync 16", (1, 10), "a barrier is 0 to 15"),
    ("exit exit", (1, 6), "`exit` after the end of the statement"),
    ("exit ;", (1, 6), "';' does not begin a token"),
    ("pool 65537", (1, 1), "a pool of 65537 bytes"),
    (
        "exit\nshared 100000000",
        (2, 1),
        "100000000 bytes of shared memory",
    ),
    (
        "exit\nbuffer shared: f32 read",
        (2, 8),
        "\"shared\" cannot name a buffer",
    ),
];

#[test]
fn mistakes_are_shown_where_they_are() {
    for (text, (line, column), part) in MISTAKES {
        let message = Program::parse(text).expect_err(text).to_string();
        assert!(message.contains(part), "{text:?}: {message}");
        assert!(
            message.contains(&format!("line {line}, column {column}: ")),
            "{text:?}: {message}"
        );
    }
    let message = Program::parse("program p\n\texit 1")
        .expect_err("too much")
        .to_string();
    assert_eq!(
        message,
        "p: line 2, column 7: `1` after the end of the statement\n2 | \texit 1\n  | \t     ^"
    );
}

#[test]
fn a_builder_and_text_make_equal_programs() {
    let mut builder = ProgramBuilder::new("count");
    let x = builder.declare(BufferDeclaration {
        name: "x".into(),
        ty: Type::U32,
        access: BufferAccess::ReadWrite,
        boundary: false,
    });
    let body = builder.label("body");
    builder
        .immediate(Type::U32, Register(0), 9)
        .place(body)
        .load(Type::U32, Register(1), Address::Own { buffer: x })
        .loop_back(Register(0), body);
    let built = builder.finish().expect("whole");
    assert_eq!(built, Program::parse("program count\nbuffer x: u32 read_write\nmov_imm.u32 r0, 9\n@body: ldg.u32 r1, [x]\nloop r0, @body").expect("valid"));
    let mut builder = ProgramBuilder::new("open");
    let label = builder.label("never");
    builder.branch(label);
    assert!(
        builder
            .finish()
            .expect_err("no place")
            .to_string()
            .contains("@never has no place")
    );
}

#[test]
fn other_bytes_are_refused() {
    let bytes = Program::parse("exit").expect("valid").to_bytes();
    for (bytes, part) in [
        (b"ELF".to_vec(), "do not begin with TPRG"),
        (bytes[..5].to_vec(), "end in the header"),
        ([b"TPRG\x09\x00", &bytes[6..]].concat(), "version 9"),
        (
            [&bytes[..], &[0]].concat(),
            "malformed after the header: program: line 2, column 1: ",
        ),
        (
            bytes[..bytes.len() - 1].to_vec(),
            "the text is not as a program is printed",
        ),
        (
            [&bytes[..], b"// a comment\n"].concat(),
            "the text is not as a program is printed",
        ),
        (
            [&bytes[..], &[0xff]].concat(),
            "malformed after the header: invalid utf-8",
        ),
    ] {
        let message = Program::from_bytes(&bytes).expect_err(part).to_string();
        assert!(message.contains(part), "{message}: {part}");
    }
}

macro_rules! instructions {
    ($($name:ident)*) => {
        /// Every instruction; a new one does not compile without a place here.
        const INSTRUCTIONS: &[&str] = &[$(stringify!($name)),*];

        fn name(instruction: &Instruction) -> &'static str {
            match instruction {
                $(Instruction::$name { .. } => stringify!($name),)*
            }
        }
    };
}

instructions! {
    LoadGlobal StoreGlobal LoadShared StoreShared Move MoveImmediate Convert Unary Binary Ternary Compare Select Branch Call Return Loop Exit Barrier Fence
    ClassGet Mirror UnityTest NeighborCount NeighborGet ResonanceAccumulate PhaseGet PhaseAdvance BoundaryMap Reduce PoolAllocate PoolFree PoolLoad PoolStore
}

/// The words at the beginning of the instructions of a cell: `add sub .t d, a, b`,
/// `ldg.t d, [address]`, `exit`.
fn heads(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2).flat_map(|form| {
        let words: Vec<&str> = form.split(' ').collect();
        let count = words
            .iter()
            .position(|word| word.starts_with('.'))
            .unwrap_or(1);
        words
            .into_iter()
            .take(count)
            .map(|word| word.split('.').next().unwrap_or_default())
            .collect::<Vec<_>>()
    })
}

#[test]
fn the_table_of_the_page_lists_every_instruction_with_its_types() {
    let program = Program::parse(ALL).expect("correct");
    let all = program.instructions();
    let missing: Vec<_> = INSTRUCTIONS
        .iter()
        .filter(|known| all.iter().all(|instruction| name(instruction) != **known))
        .collect();
    assert!(
        missing.is_empty(),
        "the text of all forms has no {missing:?}"
    );

    let page = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/programs.md"
    ))
    .expect("the page");
    let section = page
        .split("\n## Instructions\n")
        .nth(1)
        .and_then(|rest| rest.split("\n## ").next())
        .expect("the section");
    let rows = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split(" | ").collect::<Vec<_>>());
    let listed: BTreeMap<&str, &str> = rows
        .flat_map(|row| heads(row[0]).map(|head| (head, row[1])).collect::<Vec<_>>())
        .collect();

    let takes = |takes: &dyn Fn(Type) -> bool| {
        Type::ALL
            .into_iter()
            .filter(|ty| takes(*ty))
            .collect::<Vec<_>>()
    };
    let unary = UnaryOp::ALL
        .iter()
        .map(|op| (op.name(), takes(&|ty| op.takes(ty))));
    let binary = BinaryOp::ALL
        .iter()
        .map(|op| (op.name(), takes(&|ty| op.takes(ty))));
    let ternary = TernaryOp::ALL
        .iter()
        .map(|op| (op.name(), takes(&|ty| op.takes(ty))));
    let reductions = ReduceOp::ALL
        .iter()
        .map(|op| (op.name(), takes(&|ty| op.takes(ty))));
    let families: BTreeMap<&str, Vec<Type>> = unary
        .chain(binary)
        .chain(ternary)
        .chain(reductions)
        .collect();
    for (head, types) in &families {
        let cell = listed
            .get(head)
            .unwrap_or_else(|| panic!("{head} is not in the table"));
        let shown = takes(&|ty| match *cell {
            "all" => true,
            "integers" => ty.is_integer(),
            "floats" => ty.is_float(),
            names => names.split(' ').any(|name| name == ty.name()),
        });
        assert_eq!(&shown, types, "{head}");
    }
    let texts: Vec<String> = all
        .iter()
        .map(|instruction| program.instruction_text(instruction))
        .collect();
    let others: BTreeSet<&str> = texts
        .iter()
        .map(|text| text.split(['.', ' ']).next().unwrap_or_default())
        .collect();
    let known: BTreeSet<&str> = families.keys().copied().chain(others).collect();
    assert_eq!(listed.keys().copied().collect::<BTreeSet<_>>(), known);
}
