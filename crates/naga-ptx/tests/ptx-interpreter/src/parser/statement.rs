//! Parses the bodies of kernels.

use super::Parser;
use crate::error::Error;
use crate::syntax::{Base, Guard, Instruction, Operand, Statement};
use crate::token::Token;

impl<'a> Parser<'a> {
    /// Parses statements through the brace that closes the body.
    pub(super) fn body(&mut self, body: &mut Vec<Statement<'a>>) -> Result<(), Error> {
        let mut depth = 0u32;
        loop {
            if self.accept('{') {
                depth += 1;
                body.push(Statement::Open);
            } else if self.accept('}') {
                if depth == 0 {
                    return Ok(());
                }
                depth -= 1;
                body.push(Statement::Close);
            } else {
                self.statement(body)?;
            }
        }
    }

    fn statement(&mut self, body: &mut Vec<Statement<'a>>) -> Result<(), Error> {
        if self.skip_debug_directive()? || self.accept(';') {
            return Ok(());
        }
        if self.accept_dotted("reg") {
            return self.registers(body);
        }
        if let (Some(Token::Word(name)), Some(Token::Mark(':'))) = (self.peek(), self.peek_second())
        {
            return self.label(name, body);
        }
        if let Some(Token::Dotted(_)) = self.peek() {
            let variables = self.variables(false)?;
            body.extend(variables.into_iter().map(Statement::Variable));
            return Ok(());
        }
        let instruction = self.instruction()?;
        body.push(Statement::Instruction(instruction));
        Ok(())
    }

    fn label(&mut self, name: &'a str, body: &mut Vec<Statement<'a>>) -> Result<(), Error> {
        let line = self.line();
        self.at += 2;
        if !self.accept_dotted("branchtargets") {
            body.push(Statement::Label { line, name });
            return Ok(());
        }
        let mut targets = vec![self.word()?];
        while self.accept(',') {
            targets.push(self.word()?);
        }
        body.push(Statement::BranchTargets {
            line,
            name,
            targets,
        });
        self.expect(';')
    }

    fn instruction(&mut self) -> Result<Instruction<'a>, Error> {
        let line = self.line();
        let start = self.at;
        let guard = self.guard()?;
        let opcode = self.word()?;
        let mut modifiers = Vec::new();
        while let Some(Token::Dotted(name)) = self.peek() {
            modifiers.push(name);
            self.at += 1;
        }
        let operands = self.operands()?;
        let text = self.text_since(start);
        self.expect(';')?;
        Ok(Instruction {
            line,
            text,
            guard,
            opcode,
            modifiers,
            operands,
        })
    }

    fn text_since(&self, start: usize) -> &'a str {
        let last = self.at.saturating_sub(1);
        &self.source[self.tokens[start].start..self.tokens[last].end]
    }

    fn guard(&mut self) -> Result<Option<Guard<'a>>, Error> {
        if !self.accept('@') {
            return Ok(None);
        }
        let is_negated = self.accept('!');
        let register = self.word()?;
        Ok(Some(Guard {
            register,
            is_negated,
        }))
    }

    fn operands(&mut self) -> Result<Vec<Operand<'a>>, Error> {
        let mut operands = Vec::new();
        if self.peek() == Some(Token::Mark(';')) {
            return Ok(operands);
        }
        loop {
            operands.push(self.operand()?);
            if !self.accept(',') {
                return Ok(operands);
            }
        }
    }

    fn operand(&mut self) -> Result<Operand<'a>, Error> {
        if self.accept('!') {
            return Ok(Operand::Not(self.word()?));
        }
        if self.accept('{') {
            return self.vector();
        }
        if self.accept('[') {
            return self.address();
        }
        let is_negative = self.accept('-');
        let token = self.peek();
        match token {
            Some(Token::Integer(value)) => {
                self.at += 1;
                let value = if is_negative {
                    value.wrapping_neg()
                } else {
                    value
                };
                Ok(Operand::Integer(value, is_negative))
            }
            Some(Token::Double(bits)) => {
                self.at += 1;
                Ok(Operand::Double(bits ^ (u64::from(is_negative) << 63)))
            }
            Some(Token::Single(bits)) if !is_negative => {
                self.at += 1;
                Ok(Operand::Single(bits))
            }
            Some(Token::Word(_)) if !is_negative => self.named(),
            _ => Err(self.expected("an operand")),
        }
    }

    fn named(&mut self) -> Result<Operand<'a>, Error> {
        let name = self.word()?;
        if let Some(Token::Dotted(component)) = self.peek() {
            self.at += 1;
            return Ok(Operand::Component(name, component));
        }
        if self.accept('|') {
            return Ok(Operand::Pair(name, self.word()?));
        }
        if self.accept('+') {
            return Ok(Operand::Offset(name, self.signed()?));
        }
        Ok(Operand::Name(name))
    }

    fn vector(&mut self) -> Result<Operand<'a>, Error> {
        let mut elements = vec![self.operand()?];
        while self.accept(',') {
            elements.push(self.operand()?);
        }
        self.expect('}')?;
        Ok(Operand::Vector(elements))
    }

    fn address(&mut self) -> Result<Operand<'a>, Error> {
        let operand = if let Some(Token::Word(name)) = self.peek() {
            self.at += 1;
            let offset = if self.accept('+') { self.signed()? } else { 0 };
            Operand::Address(Base::Name(name), offset)
        } else {
            Operand::Address(Base::Absolute, self.signed()?)
        };
        self.expect(']')?;
        Ok(operand)
    }
}
