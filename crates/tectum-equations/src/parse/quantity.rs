//! Numbers with units.

use tectum::Result;

use super::{KEYWORDS, Parser};
use crate::expression::{Id, Variable};
use crate::lexer::Kind;
use crate::unit::Unit;

impl Parser<'_> {
    /// A number with its sign, without a unit.
    pub(super) fn number(&mut self) -> Result<f64> {
        let sign = if *self.peek() == Kind::Symbol("-") {
            -1.0
        } else {
            1.0
        };
        self.at += usize::from(sign < 0.0);
        let Kind::Number(number) = *self.peek() else {
            return self.fail(
                self.span(),
                format!("expected a number, found {}", self.shown()),
            );
        };
        self.at += 1;
        Ok(sign * number)
    }

    /// A number in a unit of its own or in the given one; in base units.
    pub(super) fn quantity(&mut self, unit: Unit) -> Result<f64> {
        let number = self.number()?;
        let span = self.span();
        let (own, text) = self.unit()?.unwrap_or((unit, String::new()));
        if own.dimension != unit.dimension {
            return self.fail(
                span,
                format!("{text} is {}; expected {}", own.dimension, unit.dimension),
            );
        }
        Ok(number * own.scale)
    }

    /// `LOW .. HIGH`, in base units.
    pub(super) fn range(&mut self, unit: Unit) -> Result<[f64; 2]> {
        let span = self.span();
        let low_number = self.number()?;
        let low_unit = self.unit()?;
        self.symbol("..")?;
        let high_number = self.number()?;
        let high_unit = self.unit()?;
        // A unit after the second number alone holds for both.
        let of = |own: Option<(Unit, String)>| own.map_or(unit, |(unit, _)| unit);
        let high_unit = of(high_unit);
        let low_unit = low_unit.map_or(high_unit, |(unit, _)| unit);
        if [low_unit, high_unit]
            .iter()
            .any(|own| own.dimension != unit.dimension)
        {
            return self.fail(
                span,
                format!(
                    "the range is in {}; expected {}",
                    low_unit.dimension, unit.dimension
                ),
            );
        }
        let range = [low_number * low_unit.scale, high_number * high_unit.scale];
        if range[0] >= range[1] {
            return self.fail(
                span,
                "the range is empty: its first number is not below its second",
            );
        }
        Ok(range)
    }

    /// `: UNIT`; `: 1` for a plain number.
    pub(super) fn declared_unit(&mut self) -> Result<(Unit, String)> {
        self.symbol(":")?;
        if *self.peek() == Kind::Number(1.0)
            && !matches!(self.tokens[self.at + 1].kind, Kind::Symbol("/"))
        {
            self.at += 1;
            return Ok((Unit::NONE, String::new()));
        }
        let span = self.span();
        match self.unit()? {
            Some(unit) => Ok(unit),
            None => self.fail(
                span,
                format!(
                    "expected a unit (1 for a plain number), found {}",
                    self.shown()
                ),
            ),
        }
    }

    /// A unit such as `m/s^2`, with or without brackets, if one follows.
    pub(super) fn unit(&mut self) -> Result<Option<(Unit, String)>> {
        let has_brackets = *self.peek() == Kind::Symbol("[");
        let begins = match self.peek() {
            Kind::Name(name) => !KEYWORDS.contains(&name.as_str()),
            Kind::Number(number) => {
                *number == 1.0 && self.tokens[self.at + 1].kind == Kind::Symbol("/")
            }
            _ => has_brackets,
        };
        if !begins {
            return Ok(None);
        }
        self.at += usize::from(has_brackets);
        let (mut unit, mut text) = (Unit::NONE, String::new());
        let mut sign = 1;
        loop {
            let (factor, factor_text) = self.unit_factor(sign)?;
            let span = self.span();
            unit = unit.times(factor, 1).ok_or_else(|| {
                self.source
                    .error(span, "the unit's exponents are too large")
            })?;
            text.push_str(&factor_text);
            sign = match self.peek() {
                Kind::Symbol("*") => 1,
                Kind::Symbol("/") => -1,
                _ => break,
            };
            text.push(if sign > 0 { '*' } else { '/' });
            self.at += 1;
        }
        if has_brackets {
            self.symbol("]")?;
        }
        Ok(Some((unit, text)))
    }

    pub(super) fn unit_factor(&mut self, sign: i32) -> Result<(Unit, String)> {
        let span = self.span();
        if *self.peek() == Kind::Number(1.0) {
            self.at += 1;
            return Ok((Unit::NONE, "1".to_owned()));
        }
        let (name, _) = self.word("a unit")?;
        let unit = Unit::named(&name).ok_or_else(|| {
            self.source.error(
                span,
                format!(
                    "{name} is no unit; known: m, g, s, A, K, N, J, W, V, rad, deg, … with prefixes"
                ),
            )
        })?;
        let (mut exponent, mut text) = (1, name);
        if *self.peek() == Kind::Symbol("^") {
            self.at += 1;
            let place = self.span();
            let number = self.number()?;
            if number.fract() != 0.0 || !(1.0..=12.0).contains(&number.abs()) {
                return self.fail(
                    place,
                    "the exponent of a unit is a whole number from 1 to 12, or below 0",
                );
            }
            exponent = number as i32;
            text = format!("{text}^{exponent}");
        }
        let unit = Unit::NONE.times(unit, sign * exponent).ok_or_else(|| {
            self.source
                .error(span, "the unit's exponents are too large")
        })?;
        Ok((unit, text))
    }

    /// An expression over parameters, of a unit; a number alone is in that unit.
    pub(super) fn fixed(&mut self, unit: Unit) -> Result<Id> {
        let begin = self.at;
        if let Ok(number) = self.quantity(unit)
            && matches!(
                self.peek(),
                Kind::EndOfLine | Kind::Symbol("," | ")") | Kind::Name(_)
            )
        {
            return Ok(self.expressions.constant(number));
        }
        self.at = begin;
        let value = self.expression()?;
        if self
            .expressions
            .tape([value.id])
            .reads(|variable| !matches!(variable, Variable::Parameter(_)))
        {
            return self.fail(value.span, "this depends on more than parameters");
        }
        self.needs(&value, unit.dimension, "this value")?;
        Ok(value.id)
    }
}
