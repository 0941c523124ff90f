//! Parses declarations of variables, parameters and registers.

use super::Parser;
use crate::error::Error;
use crate::scalar::{Class, Scalar};
use crate::syntax::{Space, Statement, Variable};
use crate::token::Token;

/// Maximum bytes of one declaration.
const MAX_BYTES: usize = 1 << 26;

impl<'a> Parser<'a> {
    pub(super) fn params(&mut self) -> Result<Vec<Variable<'a>>, Error> {
        let mut params = Vec::new();
        if !self.accept('(') || self.accept(')') {
            return Ok(params);
        }
        loop {
            if !self.accept_dotted("param") {
                return Err(self.expected("`.param`"));
            }
            params.push(self.param()?);
            if self.accept(')') {
                return Ok(params);
            }
            self.expect(',')?;
        }
    }

    fn param(&mut self) -> Result<Variable<'a>, Error> {
        let alignment = self.alignment()?;
        let scalar = self.memory_scalar()?;
        self.pointer_attributes()?;
        self.variable(Space::Param, alignment, scalar, false)
    }

    /// The interpreter does not need `.ptr .global .align 8`.
    fn pointer_attributes(&mut self) -> Result<(), Error> {
        if self.accept_dotted("ptr") {
            for space in ["global", "shared", "local", "const"] {
                self.accept_dotted(space);
            }
            self.alignment()?;
        }
        Ok(())
    }

    /// Parses one `.space` declaration with all its names, through the semicolon.
    pub(super) fn variables(&mut self, is_extern: bool) -> Result<Vec<Variable<'a>>, Error> {
        let space = self.space()?;
        let alignment = self.alignment()?;
        let lanes = self.vector_length();
        let mut scalar = self.memory_scalar()?;
        scalar.bits *= lanes;
        let mut variables = Vec::new();
        loop {
            let variable = self.variable(space, alignment, scalar, is_extern)?;
            self.check_extern(&variable, is_extern)?;
            variables.push(variable);
            if !self.accept(',') {
                break;
            }
        }
        self.expect(';')?;
        Ok(variables)
    }

    fn check_extern(&self, variable: &Variable<'a>, is_extern: bool) -> Result<(), Error> {
        if is_extern && !(variable.space == Space::Shared && variable.is_dynamic) {
            return Err(self.error("`.extern` is covered for `.shared` arrays of no size only"));
        }
        if variable.is_dynamic && !is_extern {
            return Err(self.error(format!("array `{}` has no size", variable.name)));
        }
        Ok(())
    }

    fn space(&mut self) -> Result<Space, Error> {
        let spaces = [
            ("global", Space::Global),
            ("shared", Space::Shared),
            ("local", Space::Local),
            ("const", Space::Const),
        ];
        spaces
            .iter()
            .find(|(name, _)| self.accept_dotted(name))
            .map(|(_, space)| *space)
            .ok_or_else(|| self.expected("a directive or a state space"))
    }

    fn alignment(&mut self) -> Result<Option<usize>, Error> {
        if !self.accept_dotted("align") {
            return Ok(None);
        }
        let alignment = self.small_integer()? as usize;
        if !alignment.is_power_of_two() {
            return Err(self.error(format!("alignment {alignment} is no power of two")));
        }
        Ok(Some(alignment))
    }

    fn vector_length(&mut self) -> u32 {
        if self.accept_dotted("v2") {
            2
        } else if self.accept_dotted("v4") {
            4
        } else {
            1
        }
    }

    fn scalar(&mut self) -> Result<Scalar, Error> {
        let scalar = match self.peek() {
            Some(Token::Dotted(name)) => Scalar::named(name),
            _ => None,
        };
        let scalar = scalar.ok_or_else(|| self.expected("a type"))?;
        self.at += 1;
        Ok(scalar)
    }

    fn memory_scalar(&mut self) -> Result<Scalar, Error> {
        let scalar = self.scalar()?;
        if scalar.class == Class::Predicate {
            return Err(self.error("predicates have no place in memory"));
        }
        Ok(scalar)
    }

    fn variable(
        &mut self,
        space: Space,
        alignment: Option<usize>,
        scalar: Scalar,
        is_extern: bool,
    ) -> Result<Variable<'a>, Error> {
        let line = self.line();
        let name = self.word()?;
        let (count, is_dynamic) = self.dimensions(is_extern)?;
        let bytes = count
            .checked_mul(scalar.bytes())
            .filter(|bytes| *bytes <= MAX_BYTES)
            .ok_or_else(|| self.error(format!("variable `{name}` is too large")))?;
        let mut variable = Variable {
            name,
            line,
            space,
            alignment: alignment.unwrap_or(scalar.bytes()).max(scalar.bytes()),
            bytes,
            initial: Vec::new(),
            is_dynamic,
        };
        if alignment.is_some_and(|alignment| alignment < scalar.bytes()) {
            return Err(self.error(format!("`{name}` is aligned below its type")));
        }
        if self.accept('=') {
            self.initialiser(&mut variable, scalar)?;
        }
        Ok(variable)
    }

    fn dimensions(&mut self, may_be_open: bool) -> Result<(usize, bool), Error> {
        let mut count = 1usize;
        while self.accept('[') {
            if may_be_open && self.accept(']') {
                return Ok((0, true));
            }
            let side = self.small_integer()? as usize;
            count = count
                .checked_mul(side)
                .ok_or_else(|| self.error("array is too large"))?;
            self.expect(']')?;
        }
        Ok((count, false))
    }

    fn initialiser(&mut self, variable: &mut Variable<'a>, scalar: Scalar) -> Result<(), Error> {
        if !matches!(variable.space, Space::Global | Space::Const) {
            return Err(self.error("only `.global` and `.const` variables take initial values"));
        }
        self.initial_values(variable, scalar)?;
        if variable.initial.len() > variable.bytes {
            return Err(self.error(format!("too many initial values for `{}`", variable.name)));
        }
        Ok(())
    }

    fn initial_values(&mut self, variable: &mut Variable<'a>, scalar: Scalar) -> Result<(), Error> {
        if !self.accept('{') {
            let value = self.initial_value(scalar)?;
            let bytes = &value.to_le_bytes()[..scalar.bytes()];
            variable.initial.extend_from_slice(bytes);
            return Ok(());
        }
        loop {
            self.initial_values(variable, scalar)?;
            if self.accept('}') {
                return Ok(());
            }
            self.expect(',')?;
        }
    }

    fn initial_value(&mut self, scalar: Scalar) -> Result<u64, Error> {
        let is_negative = self.accept('-');
        let token = self.peek();
        self.at += 1;
        match (token, scalar) {
            (Some(Token::Integer(value)), _) if !scalar.is_float() => Ok(if is_negative {
                value.wrapping_neg()
            } else {
                value
            }),
            (Some(Token::Single(bits)), Scalar::F32 | Scalar::B32) if !is_negative => {
                Ok(u64::from(bits))
            }
            (Some(Token::Double(bits)), Scalar::F64 | Scalar::B64) => {
                Ok(bits ^ (u64::from(is_negative) << 63))
            }
            (Some(Token::Double(bits)), Scalar::F32) => {
                let value = f64::from_bits(bits) as f32;
                Ok(u64::from(
                    if is_negative { -value } else { value }.to_bits(),
                ))
            }
            _ => Err(self.error(format!("no initial value of type {scalar}"))),
        }
    }

    /// Parses `.reg .type a, b<10>;` after `.reg`.
    pub(super) fn registers(&mut self, body: &mut Vec<Statement<'a>>) -> Result<(), Error> {
        let scalar = self.scalar()?;
        loop {
            let line = self.line();
            let name = self.word()?;
            let mut count = None;
            if self.accept('<') {
                count = Some(self.small_integer()?);
                self.expect('>')?;
            }
            body.push(Statement::Registers {
                line,
                scalar,
                name,
                count,
            });
            if !self.accept(',') {
                return self.expect(';');
            }
        }
    }
}
