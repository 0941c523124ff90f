//! Reads an instruction, modifier by modifier and operand by operand.

use super::Decoder;
use crate::compute::{Compute, FloatMode};
use crate::error::Error;
use crate::float::{self, Rounding};
use crate::operation::{Address, Operand, Operation, SINK, Slot, Special};
use crate::scalar::{Class, Scalar, sign_extend};
use crate::syntax::{self, Base, Space};

/// A cursor over the modifiers and operands of one instruction.
pub(crate) struct Reader<'d, 'a> {
    pub decoder: &'d mut Decoder<'a>,
    pub instruction: &'d syntax::Instruction<'a>,
    modifier: usize,
    operand: usize,
}

impl<'d, 'a> Reader<'d, 'a> {
    pub fn new(
        decoder: &'d mut Decoder<'a>,
        instruction: &'d syntax::Instruction<'a>,
    ) -> Reader<'d, 'a> {
        Reader {
            decoder,
            instruction,
            modifier: 0,
            operand: 0,
        }
    }

    pub fn opcode(&self) -> &'a str {
        self.instruction.opcode
    }

    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::typing(self.instruction.line, message)
    }

    /// Refuses a feature that the target or the version does not have.
    pub fn require(&self, what: &str, target: u32, version: (u32, u32)) -> Result<(), Error> {
        if self.decoder.target < target {
            return Err(self.error(format!("{what} needs sm_{target}")));
        }
        if self.decoder.version < version {
            let (major, minor) = version;
            return Err(self.error(format!("{what} needs .version {major}.{minor}")));
        }
        Ok(())
    }

    pub fn peek(&self) -> Option<&'a str> {
        self.instruction.modifiers.get(self.modifier).copied()
    }

    /// Consumes the next modifier if it has this name.
    pub fn flag(&mut self, name: &str) -> bool {
        let found = self.peek() == Some(name);
        self.modifier += usize::from(found);
        found
    }

    /// Consumes the next modifier if the table contains it.
    pub fn pick<T: Copy>(&mut self, table: &[(&str, T)]) -> Option<T> {
        let next = self.peek()?;
        let (_, value) = table.iter().find(|(name, _)| *name == next)?;
        self.modifier += 1;
        Some(*value)
    }

    /// Consumes the next modifier, which the table must contain.
    pub fn choose<T: Copy>(&mut self, table: &[(&str, T)]) -> Result<T, Error> {
        self.pick(table).ok_or_else(|| {
            let names: Vec<&str> = table.iter().map(|(name, _)| *name).collect();
            let found = self.peek().unwrap_or("nothing");
            self.error(format!(
                "one of .{} needed, found {found}",
                names.join(" .")
            ))
        })
    }

    pub fn scalar(&mut self) -> Result<Scalar, Error> {
        let scalar = self.peek().and_then(Scalar::named);
        let found = self.peek().unwrap_or("nothing");
        let scalar = scalar.ok_or_else(|| self.error(format!("a type needed, found {found}")))?;
        self.modifier += 1;
        Ok(scalar)
    }

    pub fn scalar_of(&mut self, allowed: &[Scalar]) -> Result<Scalar, Error> {
        let scalar = self.scalar()?;
        if allowed.contains(&scalar) {
            Ok(scalar)
        } else {
            Err(self.error(format!("type {scalar} has no `{}`", self.opcode())))
        }
    }

    /// The last modifier as a type, without consuming it.
    pub fn last_scalar(&self) -> Option<Scalar> {
        self.instruction
            .modifiers
            .last()
            .copied()
            .and_then(Scalar::named)
    }

    pub fn rounding(&mut self) -> Option<Rounding> {
        self.pick(&[
            ("rn", Rounding::NearestEven),
            ("rz", Rounding::Zero),
            ("rm", Rounding::Down),
            ("rp", Rounding::Up),
        ])
    }

    /// Refuses modifiers that were not consumed.
    pub fn end_modifiers(&self) -> Result<(), Error> {
        match self.peek() {
            None => Ok(()),
            Some(name) => Err(self.error(format!("modifier .{name} does not belong here"))),
        }
    }

    pub fn operand(&mut self) -> Result<&'d syntax::Operand<'a>, Error> {
        let operand = self.instruction.operands.get(self.operand);
        self.operand += 1;
        operand.ok_or_else(|| self.error("too few operands"))
    }

    pub fn has_operand(&self) -> bool {
        self.operand < self.instruction.operands.len()
    }

    pub fn operands_left(&self) -> usize {
        self.instruction.operands.len().saturating_sub(self.operand)
    }

    pub fn peek_operand(&self) -> Option<&'d syntax::Operand<'a>> {
        self.instruction.operands.get(self.operand)
    }

    /// Refuses operands and modifiers that were not consumed.
    pub fn end(&self) -> Result<(), Error> {
        self.end_modifiers()?;
        if self.has_operand() {
            return Err(self.error("too many operands"));
        }
        Ok(())
    }

    fn named_register(&mut self, name: &'a str) -> Result<(Slot, Scalar), Error> {
        self.decoder
            .scopes
            .register(name)
            .ok_or_else(|| self.error(format!("register `{name}` is not declared")))
    }

    fn fits(&self, name: &str, wanted: Scalar, found: Scalar) -> Result<(), Error> {
        if wanted.accepts(found) {
            Ok(())
        } else {
            Err(self.error(format!("`{name}` is {found}, {wanted} is needed")))
        }
    }

    pub fn destination(&mut self, scalar: Scalar) -> Result<Slot, Error> {
        let operand = self.operand()?;
        self.destination_of(operand, scalar)
    }

    pub fn destination_of(
        &mut self,
        operand: &syntax::Operand<'a>,
        scalar: Scalar,
    ) -> Result<Slot, Error> {
        let syntax::Operand::Name(name) = operand else {
            return Err(self.error("the destination must be a register"));
        };
        let (slot, found) = self.named_register(name)?;
        self.fits(name, scalar, found)?;
        Ok(slot)
    }

    /// A destination that may be `_`.
    pub fn destination_or_sink(&mut self, scalar: Scalar) -> Result<Slot, Error> {
        match self.peek_operand() {
            Some(syntax::Operand::Name("_")) => {
                self.operand += 1;
                Ok(SINK)
            }
            _ => self.destination(scalar),
        }
    }

    /// A destination of `ld` or `cvt` with its own width.
    pub fn wide_destination_of(
        &mut self,
        operand: &syntax::Operand<'a>,
        scalar: Scalar,
    ) -> Result<(Slot, u32), Error> {
        let syntax::Operand::Name(name) = operand else {
            return Err(self.error("the destination must be a register"));
        };
        if *name == "_" {
            return Ok((SINK, scalar.bits));
        }
        let (slot, found) = self.named_register(name)?;
        if scalar.accepts_wider(found) {
            return Ok((slot, found.bits));
        }
        Err(self.error(format!("`{name}` is {found} and cannot receive {scalar}")))
    }

    pub fn source(&mut self, scalar: Scalar) -> Result<Operand, Error> {
        let operand = self.operand()?;
        self.source_of(operand, scalar)
    }

    pub fn source_of(
        &mut self,
        operand: &syntax::Operand<'a>,
        scalar: Scalar,
    ) -> Result<Operand, Error> {
        match operand {
            syntax::Operand::Name("WARP_SZ") if is_integral(scalar) => Ok(Operand::Immediate(32)),
            syntax::Operand::Name(name) => {
                let (slot, found) = self.named_register(name)?;
                self.fits(name, scalar, found)?;
                Ok(Operand::Register(slot))
            }
            other => self.immediate(other, scalar),
        }
    }

    /// A source of `st` or `cvt`, whose register may be wider.
    pub fn wide_source_of(
        &mut self,
        operand: &syntax::Operand<'a>,
        scalar: Scalar,
    ) -> Result<Operand, Error> {
        let syntax::Operand::Name(name) = operand else {
            return self.immediate(operand, scalar);
        };
        if *name == "WARP_SZ" {
            return self.source_of(operand, scalar);
        }
        let (slot, found) = self.named_register(name)?;
        if scalar.accepts_wider(found) {
            return Ok(Operand::Register(slot));
        }
        Err(self.error(format!("`{name}` is {found} and cannot give {scalar}")))
    }

    fn immediate(&self, operand: &syntax::Operand<'a>, scalar: Scalar) -> Result<Operand, Error> {
        let value = match (operand, scalar) {
            (syntax::Operand::Integer(value, _), Scalar::PREDICATE) => u64::from(*value != 0),
            (syntax::Operand::Integer(value, is_negative), _) if is_integral(scalar) => {
                self.integer(*value, *is_negative, scalar)?
            }
            (syntax::Operand::Single(bits), Scalar::F32 | Scalar::B32) => u64::from(*bits),
            (syntax::Operand::Single(bits), Scalar::F64) => {
                f64::from(f32::from_bits(*bits)).to_bits()
            }
            (syntax::Operand::Double(bits), Scalar::F64 | Scalar::B64) => *bits,
            (syntax::Operand::Double(bits), Scalar::F32) => {
                float::from_f64(f64::from_bits(*bits), scalar)
            }
            _ => return Err(self.error(format!("the operand cannot be of type {scalar}"))),
        };
        Ok(Operand::Immediate(value))
    }

    fn integer(&self, value: u64, is_negative: bool, scalar: Scalar) -> Result<u64, Error> {
        let fits = if is_negative {
            sign_extend(value, scalar.bits) as u64 == value && value as i64 <= 0
        } else {
            value <= scalar.mask()
        };
        if !fits {
            let value = if is_negative {
                value as i64 as i128
            } else {
                i128::from(value)
            };
            return Err(self.error(format!("{value} does not fit {scalar}")));
        }
        Ok(value & scalar.mask())
    }

    /// A predicate source with an optional negation.
    pub fn predicate(&mut self) -> Result<(Operand, bool), Error> {
        let operand = self.operand()?;
        if let syntax::Operand::Not(name) = operand {
            let name = syntax::Operand::Name(name);
            return Ok((self.source_of(&name, Scalar::PREDICATE)?, true));
        }
        Ok((self.source_of(operand, Scalar::PREDICATE)?, false))
    }

    /// The halves of `p|q`, or one destination and a sink.
    pub fn pair(&mut self, first: Scalar, second: Scalar) -> Result<[Slot; 2], Error> {
        let operand = self.operand()?;
        let syntax::Operand::Pair(left, right) = *operand else {
            return Ok([self.destination_of(operand, first)?, SINK]);
        };
        let mut half = |name: &'a str, scalar: Scalar| {
            if name == "_" {
                Ok(SINK)
            } else {
                self.destination_of(&syntax::Operand::Name(name), scalar)
            }
        };
        Ok([half(left, first)?, half(right, second)?])
    }

    pub fn special(&self, operand: &syntax::Operand<'a>) -> Option<(Special, Scalar)> {
        match operand {
            syntax::Operand::Name(name) => special_named(name),
            syntax::Operand::Component(name, axis) => special_component(name, axis),
            _ => None,
        }
    }

    pub fn address(&mut self, space: Space) -> Result<Address, Error> {
        let syntax::Operand::Address(base, offset) = *self.operand()? else {
            return Err(self.error("an address in brackets is needed"));
        };
        let base = match base {
            Base::Absolute if space == Space::Local => Operand::Immediate(0),
            Base::Absolute => return Err(self.error("a number is no address of this space")),
            Base::Name(name) => self.address_base(name, space)?,
        };
        Ok(Address {
            space,
            base,
            offset,
        })
    }

    fn address_base(&mut self, name: &'a str, space: Space) -> Result<Operand, Error> {
        if let Some((slot, scalar)) = self.decoder.scopes.register(name) {
            let is_integer = scalar.is_integer() || scalar.class == Class::Bits;
            let is_narrow_space = !matches!(space, Space::Generic | Space::Global);
            if !is_integer || !(scalar.bits == 64 || scalar.bits == 32 && is_narrow_space) {
                let message = format!("`{name}` is {scalar} and holds no address of this space");
                return Err(self.error(message));
            }
            return Ok(Operand::Register(slot));
        }
        let (found, address) = self
            .decoder
            .scopes
            .symbol(name)
            .ok_or_else(|| self.error(format!("`{name}` is not declared")))?;
        self.symbol_address(name, found, address, space)
    }

    /// A symbol fits its own space; a generic access converts its address.
    fn symbol_address(
        &self,
        name: &str,
        found: Space,
        address: u64,
        space: Space,
    ) -> Result<Operand, Error> {
        if found == space || space == Space::Generic && found == Space::Global {
            return Ok(Operand::Immediate(address));
        }
        if space == Space::Generic {
            return Ok(Operand::Immediate(address + crate::program::GENERIC_OFFSET));
        }
        Err(self.error(format!("`{name}` is in another state space")))
    }

    /// Finishes an instruction of one destination and plain sources.
    pub fn compute(
        mut self,
        compute: Compute,
        destination: Scalar,
        sources: &[Scalar],
    ) -> Result<Operation, Error> {
        self.end_modifiers()?;
        let destination = self.destination(destination)?;
        let mut operands = [Operand::Immediate(0); 4];
        for (operand, scalar) in operands.iter_mut().zip(sources) {
            *operand = self.source(*scalar)?;
        }
        self.end()?;
        Ok(Operation::Compute {
            compute,
            destination,
            sources: operands,
        })
    }

    /// Reads `.ftz` and `.sat` where the type allows them, then the type.
    pub fn float_mode(
        &mut self,
        rounding: Rounding,
        allowed: &[Scalar],
        may_saturate: bool,
    ) -> Result<FloatMode, Error> {
        let ftz = self.flag("ftz");
        let sat = may_saturate && self.flag("sat");
        let scalar = self.scalar_of(allowed)?;
        if (ftz || sat) && (scalar == Scalar::F64 || scalar.element() == Scalar::BF16) {
            return Err(self.error(format!("type {scalar} takes neither .ftz nor .sat")));
        }
        Ok(FloatMode {
            scalar,
            rounding,
            ftz,
            sat,
        })
    }
}

fn is_integral(scalar: Scalar) -> bool {
    scalar.is_integer() || scalar.class == Class::Bits
}

fn special_named(name: &str) -> Option<(Special, Scalar)> {
    let special = match name {
        "%laneid" => Special::Lane,
        "%warpid" => Special::Warp,
        "%nwarpid" => Special::WarpCount,
        "%lanemask_eq" => Special::LaneMaskEqual,
        "%lanemask_lt" => Special::LaneMaskLess,
        "%lanemask_le" => Special::LaneMaskLessEqual,
        "%lanemask_gt" => Special::LaneMaskGreater,
        "%lanemask_ge" => Special::LaneMaskGreaterEqual,
        "%clock" => Special::Clock,
        "%clock64" => return Some((Special::Clock64, Scalar::U64)),
        "%globaltimer" => return Some((Special::GlobalTimer, Scalar::U64)),
        _ => return None,
    };
    Some((special, Scalar::U32))
}

fn special_component(name: &str, axis: &str) -> Option<(Special, Scalar)> {
    let axis = ["x", "y", "z"].iter().position(|known| *known == axis)? as u8;
    let special = match name {
        "%tid" => Special::Thread(axis),
        "%ntid" => Special::BlockExtent(axis),
        "%ctaid" => Special::Block(axis),
        "%nctaid" => Special::GridExtent(axis),
        _ => return None,
    };
    Some((special, Scalar::U32))
}
