//! Subgroup operations: a subgroup is a warp of 32, and all its invocations take part.

use naga::{
    CollectiveOperation, Direction, Expression, GatherMode, Handle, Span, SubgroupOperation,
};

use crate::arithmetic::Comparison;
use crate::error::{Error, Result};
use crate::scalar::{Class, Scalar};
use crate::translator::{Entry, Translator};
use crate::writer::{Operand, Writer};

const FULL_MASK: &str = "0xffffffff";
const WARP_SIZE: u32 = 32;

impl Translator<'_> {
    /// The mask names every lane of a warp, so every warp must be full.
    pub fn require_full_warps(&self, span: Span) -> Result<()> {
        let invocations: u32 = self.entry.workgroup_size.iter().product();
        match invocations % WARP_SIZE {
            0 => Ok(()),
            _ => Err(Error::unsupported(
                format!(
                    "subgroup operation in a workgroup of {invocations}, not a multiple of {WARP_SIZE}"
                ),
                span,
            )),
        }
    }

    /// One bit for each invocation, in a vector of four words.
    pub fn ballot(
        &mut self,
        result: Handle<Expression>,
        predicate: Option<Handle<Expression>>,
    ) -> Result<()> {
        let predicate = match predicate {
            Some(predicate) => self.scalar_value(predicate)?,
            None => Operand::Immediate(Scalar::Bool, 1),
        };
        let predicate = self.writer.direct(predicate);
        let bits = self.writer.register(Scalar::U32);
        self.writer.line(format_args!(
            "vote.sync.ballot.b32 {bits}, {predicate}, {FULL_MASK}"
        ));
        let zero = Operand::u32(0);
        self.frame
            .entries
            .insert(result, Entry::Value(vec![bits, zero, zero, zero]));
        Ok(())
    }

    pub fn gather(
        &mut self,
        mode: GatherMode,
        argument: Handle<Expression>,
        result: Handle<Expression>,
    ) -> Result<()> {
        let scalar = self.scalar(argument)?;
        let values = self.value(argument)?;
        let (kind, lane, clamp) = match mode {
            GatherMode::BroadcastFirst => ("idx", Operand::u32(0), "0x1f"),
            GatherMode::Broadcast(index) | GatherMode::Shuffle(index) => {
                ("idx", self.scalar_value(index)?.bits(), "0x1f")
            }
            GatherMode::ShuffleDown(delta) => ("down", self.scalar_value(delta)?.bits(), "0x1f"),
            GatherMode::ShuffleUp(delta) => ("up", self.scalar_value(delta)?.bits(), "0"),
            GatherMode::ShuffleXor(mask) => ("bfly", self.scalar_value(mask)?.bits(), "0x1f"),
            // Segments of four lanes: the upper part of the last operand is the segment mask 28.
            GatherMode::QuadBroadcast(index) => ("idx", self.scalar_value(index)?.bits(), "0x1c03"),
            GatherMode::QuadSwap(direction) => {
                ("bfly", Operand::u32(direction_mask(direction)), "0x1f")
            }
        };
        let values = values
            .into_iter()
            .map(|value| self.writer.shuffle(scalar, kind, value, lane, clamp))
            .collect();
        self.frame.entries.insert(result, Entry::Value(values));
        Ok(())
    }

    pub fn collective(
        &mut self,
        op: SubgroupOperation,
        collective: CollectiveOperation,
        argument: Handle<Expression>,
        result: Handle<Expression>,
    ) -> Result<()> {
        let scalar = self.scalar(argument)?;
        let values = self.value(argument)?;
        let values = values
            .into_iter()
            .map(|value| match (op, collective) {
                (SubgroupOperation::All, _) => self.writer.vote("all", value),
                (SubgroupOperation::Any, _) => self.writer.vote("any", value),
                (_, CollectiveOperation::Reduce) => self.writer.warp_reduce(op, scalar, value),
                (_, CollectiveOperation::InclusiveScan) => self.writer.warp_scan(op, scalar, value),
                (_, CollectiveOperation::ExclusiveScan) => {
                    self.writer.warp_scan_exclusive(op, scalar, value)
                }
            })
            .collect();
        self.frame.entries.insert(result, Entry::Value(values));
        Ok(())
    }
}

fn direction_mask(direction: Direction) -> u32 {
    match direction {
        Direction::X => 1,
        Direction::Y => 2,
        Direction::Diagonal => 3,
    }
}

impl Writer {
    fn vote(&mut self, kind: &str, predicate: Operand) -> Operand {
        let predicate = self.direct(predicate);
        let to = self.register(Scalar::Bool);
        self.line(format_args!(
            "vote.sync.{kind}.pred {to}, {predicate}, {FULL_MASK}"
        ));
        to
    }

    /// The value of another lane; 64-bit values are moved in two halves.
    fn shuffle(
        &mut self,
        scalar: Scalar,
        kind: &str,
        value: Operand,
        lane: Operand,
        clamp: &str,
    ) -> Operand {
        match scalar.class() {
            Class::Predicate => {
                let word = self.convert(Scalar::Bool, Scalar::U32, value);
                let word = self.shuffle(Scalar::U32, kind, word, lane, clamp);
                self.convert(Scalar::U32, Scalar::Bool, word)
            }
            Class::Half => {
                let value = self.in_register(value);
                let word = self.op("cvt.u32.u16", Scalar::U32, &[value]);
                let word = self.shuffle(Scalar::U32, kind, word, lane, clamp);
                self.op("cvt.u16.u32", Scalar::F16, &[word])
            }
            Class::Word => {
                let value = self.in_register(value);
                let to = self.register(scalar);
                self.line(format_args!(
                    "shfl.sync.{kind}.b32 {to}, {value}, {lane}, {clamp}, {FULL_MASK}"
                ));
                to
            }
            Class::Long => {
                let value = self.in_register(value);
                let (low, high) = (self.register(Scalar::U32), self.register(Scalar::U32));
                self.line(format_args!("mov.b64 {{{low}, {high}}}, {value}"));
                let low = self.shuffle(Scalar::U32, kind, low, lane, clamp);
                let high = self.shuffle(Scalar::U32, kind, high, lane, clamp);
                let to = self.register(scalar);
                self.line(format_args!("mov.b64 {to}, {{{low}, {high}}}"));
                to
            }
        }
    }

    fn combine(
        &mut self,
        op: SubgroupOperation,
        scalar: Scalar,
        a: Operand,
        b: Operand,
    ) -> Operand {
        match op {
            SubgroupOperation::Add => self.add(scalar, a, b),
            SubgroupOperation::Mul => self.mul(scalar, a, b),
            SubgroupOperation::Min => self.min(scalar, a, b),
            SubgroupOperation::Max => self.max(scalar, a, b),
            SubgroupOperation::And | SubgroupOperation::All => self.and(scalar, a, b),
            SubgroupOperation::Or | SubgroupOperation::Any => self.or(scalar, a, b),
            SubgroupOperation::Xor => self.xor(scalar, a, b),
        }
    }

    /// A butterfly: every lane ends with the same bits.
    fn warp_reduce(&mut self, op: SubgroupOperation, scalar: Scalar, value: Operand) -> Operand {
        let mut total = value;
        let mut distance = WARP_SIZE / 2;
        while distance > 0 {
            let other = self.shuffle(scalar, "bfly", total, Operand::u32(distance), "0x1f");
            total = self.combine(op, scalar, total, other);
            distance /= 2;
        }
        total
    }

    fn warp_scan(&mut self, op: SubgroupOperation, scalar: Scalar, value: Operand) -> Operand {
        let lane = self.op("mov.u32", Scalar::U32, &[Operand::Symbol("%laneid")]);
        let mut total = value;
        let mut distance = 1;
        while distance < WARP_SIZE {
            let earlier = self.shuffle(scalar, "up", total, Operand::u32(distance), "0");
            let sum = self.combine(op, scalar, earlier, total);
            let has_earlier =
                self.compare(Comparison::Ge, Scalar::U32, lane, Operand::u32(distance));
            total = self.select(scalar, has_earlier, sum, total);
            distance *= 2;
        }
        total
    }

    /// The inclusive scan of the lanes before; the operation's neutral value in the first.
    fn warp_scan_exclusive(
        &mut self,
        op: SubgroupOperation,
        scalar: Scalar,
        value: Operand,
    ) -> Operand {
        let total = self.warp_scan(op, scalar, value);
        let earlier = self.shuffle(scalar, "up", total, Operand::u32(1), "0");
        let lane = self.op("mov.u32", Scalar::U32, &[Operand::Symbol("%laneid")]);
        let first = self.compare(Comparison::Eq, Scalar::U32, lane, Operand::u32(0));
        let neutral = match op {
            SubgroupOperation::Mul if scalar.is_float() => self.constant(scalar, 1.0),
            SubgroupOperation::Mul => Operand::integer(scalar, 1),
            _ => crate::cast::zero(scalar),
        };
        self.select(scalar, first, neutral, earlier)
    }
}
