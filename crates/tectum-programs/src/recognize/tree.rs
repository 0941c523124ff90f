//! Chains with one result element as a program of one block: every lane folds a part, then the
//! block reduces the parts by halves in shared memory.

use std::collections::HashMap;

use super::cover::{Output, Results};
use super::element::{self, Number, Written};
use super::fold::{Fold, identity_element};
use super::{Obligation, Refusal, Setting, Shape};
use crate::{
    Address, BinaryOp, BufferDeclaration, Checked, Condition, Instruction, LaunchConfig, Predicate,
    Program, ProgramBuilder, Register, SharedAddress, Type,
};

/// Lanes of the block.
const LANES: u64 = 256;
/// The element's number, followed by two registers for offsets; elements take those below.
const NUMBER: Register = Register(230);
const SUM: Register = Register(233);
const COUNT: Register = Register(234);
const STRIDE: Register = Register(235);
const PLACE: Register = Register(236);
const HALF: Register = Register(237);
const ONE: Register = Register(238);
const WIDTH: Register = Register(239);
const OTHER_PLACE: Register = Register(240);
const OTHER: Register = Register(241);
const LAST: Predicate = Predicate(1);
const UPPER: Predicate = Predicate(2);
const AGAIN: Predicate = Predicate(3);

/// The tree that a chain represents.
pub fn tree(
    results: &Results,
    fold: &Fold,
    setting: &Setting<'_>,
    program: &Program,
) -> Result<(Shape, Vec<Obligation>), Refusal> {
    let refuse = |reason: String| Refusal {
        instruction: Some(fold.instruction),
        reason,
    };
    let changes = fold.ty.is_float() && matches!(fold.op, BinaryOp::Add | BinaryOp::Mul);
    if results.elements() != 1 {
        return Err(refuse("the chains leave several elements".to_owned()));
    } else if changes && !setting.reassociate {
        return Err(refuse(
            "the order of the operations would change, which is not allowed unless requested"
                .to_owned(),
        ));
    }
    let order = fold.over.iter().rev().copied().collect();
    let output = Output {
        value: fold.term,
        ..results.outputs[0].clone()
    };
    let terms = Results {
        graph: fold.graph.clone(),
        extents: fold.extents.clone(),
        turns: HashMap::new(),
        parts: Vec::new(),
        order,
        outputs: vec![output],
    };
    let elements = element::elements(&terms, setting.sizes, |buffer| {
        program.buffer(buffer).name.clone()
    })
    .map_err(|(_, reason)| refuse(reason))?;
    let (buffer, ty, value) = elements.outputs[0];
    let written = element::write(
        &elements.graph,
        &[value],
        Number::Register(NUMBER),
        usize::from(NUMBER.0),
    )
    .map_err(refuse)?;
    let chain = Chain {
        op: fold.op,
        ty,
        count: elements.count,
    };
    let made = chain
        .program(program, Address::Constant { buffer, bytes: 0 }, &written)
        .and_then(|program| program.check());
    let checked: Checked = made.map_err(|error| refuse(error.to_string()))?;
    let launch = LaunchConfig {
        block: [LANES as u32, 1, 1],
        ..LaunchConfig::default()
    };
    let reason = if changes {
        "another order was allowed"
    } else {
        "the operation is associative and commutative in every bit"
    };
    let proofs = vec![
        Obligation {
            claim: "the chain is not observed before its end",
            proof: "an iteration uses the carried value only in the chain, and one store uses the result".to_owned(),
        },
        Obligation {
            claim: "the terms have the same form",
            proof: format!("{} terms are one expression of loads at their own number and at constant places", elements.count),
        },
        Obligation { claim: "the order does not matter", proof: reason.to_owned() },
    ];
    Ok((
        Shape::Tree {
            op: fold.op,
            ty,
            count: elements.count,
            program: checked,
            launch,
        },
        proofs,
    ))
}

struct Chain {
    op: BinaryOp,
    ty: Type,
    count: u64,
}

impl Chain {
    fn program(&self, like: &Program, to: Address, element: &Written) -> tectum::Result<Program> {
        let mut builder = ProgramBuilder::new(like.name());
        for buffer in like.buffers() {
            builder.declare(BufferDeclaration {
                boundary: false,
                ..buffer.clone()
            });
        }
        builder.shared((LANES * self.ty.bytes()) as u32);
        self.part(&mut builder, element);
        self.halve(&mut builder, to);
        builder.finish()
    }

    /// Every lane's own part: each 256th element.
    fn part(&self, builder: &mut ProgramBuilder, element: &Written) {
        let (next, taken) = (builder.label("next"), builder.label("taken"));
        builder.push(Instruction::Move {
            ty: Type::U64,
            dst: NUMBER,
            src: Register::GLOBAL_LANE,
        });
        builder
            .immediate(Type::U64, COUNT, self.count)
            .immediate(Type::U64, STRIDE, LANES);
        builder
            .immediate(self.ty, SUM, identity_element(self.op, self.ty))
            .place(next);
        builder
            .compare(Condition::Ge, Type::U64, LAST, NUMBER, COUNT)
            .branch_if(taken, LAST, true);
        for instruction in &element.code {
            builder.push(*instruction);
        }
        builder.binary(self.op, self.ty, SUM, SUM, element.roots[0]);
        builder
            .binary(BinaryOp::Add, Type::U64, NUMBER, NUMBER, STRIDE)
            .branch(next)
            .place(taken);
    }

    /// Reduces the block's parts by halves; the first lane stores the result.
    fn halve(&self, builder: &mut ProgramBuilder, to: Address) {
        let (ty, width) = (self.ty, self.ty.bytes());
        let (halve, upper, end) = (
            builder.label("halve"),
            builder.label("upper"),
            builder.label("end"),
        );
        builder.immediate(Type::U64, WIDTH, width).binary(
            BinaryOp::Mul,
            Type::U64,
            PLACE,
            Register::GLOBAL_LANE,
            WIDTH,
        );
        builder
            .push(Instruction::StoreShared {
                ty,
                src: SUM,
                address: SharedAddress::Indexed(PLACE),
            })
            .push(Instruction::Barrier { id: 0 });
        builder
            .immediate(Type::U64, HALF, LANES / 2 * width)
            .immediate(Type::U32, ONE, 1)
            .place(halve);
        builder
            .compare(Condition::Ge, Type::U64, UPPER, PLACE, HALF)
            .branch_if(upper, UPPER, true);
        builder.binary(BinaryOp::Add, Type::U64, OTHER_PLACE, PLACE, HALF);
        builder.push(Instruction::LoadShared {
            ty,
            dst: OTHER,
            address: SharedAddress::Indexed(OTHER_PLACE),
        });
        builder.binary(self.op, ty, SUM, SUM, OTHER);
        builder
            .push(Instruction::StoreShared {
                ty,
                src: SUM,
                address: SharedAddress::Indexed(PLACE),
            })
            .place(upper);
        builder.push(Instruction::Barrier { id: 0 }).binary(
            BinaryOp::Shr,
            Type::U64,
            HALF,
            HALF,
            ONE,
        );
        builder
            .compare(Condition::Ge, Type::U64, AGAIN, HALF, WIDTH)
            .branch_if(halve, AGAIN, true);
        builder
            .branch_if(end, UPPER, true)
            .store(ty, to, SUM)
            .place(end);
    }
}
