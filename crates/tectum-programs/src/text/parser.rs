//! The assembler: declarations, labels and instructions, one a line.

mod cursor;
mod statement;

use std::collections::HashMap;

use tectum::Result;

use super::lexer;
use crate::diagnostic::Diagnostic;
use crate::structure::MAX_INSTRUCTIONS;
use crate::{BranchTarget, BufferIndex, Instruction, Label, Program, ProgramParts, Source, Span};
use cursor::{Cursor, SyntaxError};

/// Maximum length of a text.
const MAX_BYTES: usize = 64 << 20;

impl Program {
    /// Assembles the text form.
    ///
    /// # Errors
    /// Kind `Invalid`, with line, column and the line's text: invalid statements, names that are
    /// taken or unknown, operands out of range.
    pub fn parse(text: &str) -> Result<Program> {
        let mut parser = Parser::default();
        parser
            .program(text)
            .map_err(|found| Diagnostic::error(&parser.parts.name, &[found]))
    }
}

/// The state of a label.
#[derive(Debug)]
struct KnownLabel {
    name: String,
    /// Where it is first used or defined.
    first: Span,
    place: Option<BranchTarget>,
}

#[derive(Default)]
struct Parser {
    parts: ProgramParts,
    spans: Vec<Span>,
    buffers: HashMap<String, BufferIndex>,
    label_numbers: HashMap<String, u32>,
    labels: Vec<KnownLabel>,
    /// The line being read, from 1.
    line: u32,
}

impl Parser {
    fn program(&mut self, text: &str) -> std::result::Result<Program, Diagnostic> {
        if text.len() > MAX_BYTES {
            let message = format!("{} bytes of text, the maximum is {MAX_BYTES}", text.len());
            return Err(Diagnostic::new("", Span { line: 1, column: 1 }, message));
        }
        for (index, line) in text.lines().enumerate() {
            self.line = index as u32 + 1;
            self.read_line(line).map_err(|mistake| {
                Diagnostic::new(
                    text,
                    Span {
                        line: self.line,
                        column: mistake.column,
                    },
                    mistake.message,
                )
            })?;
        }
        self.resolve()
            .map_err(|(span, message)| Diagnostic::new(text, span, message))?;
        let program = Program::formed(std::mem::take(&mut self.parts)).map_err(|fault| {
            let span = fault
                .instruction
                .and_then(|index| self.spans.get(index))
                .copied();
            Diagnostic::new(
                text,
                span.unwrap_or(Span { line: 1, column: 1 }),
                fault.message,
            )
        })?;
        Ok(Program {
            source: Some(Source {
                text: text.into(),
                spans: self.spans.as_slice().into(),
            }),
            ..program
        })
    }

    fn read_line(&mut self, line: &str) -> std::result::Result<(), SyntaxError> {
        let tokens =
            lexer::tokens(line).map_err(|(column, message)| SyntaxError { column, message })?;
        let end = line.chars().count() as u32 + 1;
        let mut cursor = Cursor::new(&tokens, end);
        while cursor.take_mark("@") {
            self.define_label(&mut cursor)?;
        }
        if !cursor.is_done() {
            self.statement(&mut cursor)?;
        }
        cursor.finish()
    }

    fn define_label(&mut self, cursor: &mut Cursor<'_>) -> std::result::Result<(), SyntaxError> {
        let column = cursor.column();
        let name = cursor.word("a label's name")?;
        cursor.expect_punctuation(":")?;
        let number = self.label(name, column);
        let here = BranchTarget(self.parts.instructions.len() as u32);
        match self.labels[number as usize].place.replace(here) {
            None => Ok(()),
            Some(_) => Err(SyntaxError {
                column,
                message: format!("label @{name} is defined twice"),
            }),
        }
    }

    /// The number of a label, new or known.
    fn label(&mut self, name: &str, column: u32) -> u32 {
        if let Some(number) = self.label_numbers.get(name) {
            return *number;
        }
        let number = self.labels.len() as u32;
        self.labels.push(KnownLabel {
            name: name.to_owned(),
            first: Span {
                line: self.line,
                column,
            },
            place: None,
        });
        self.label_numbers.insert(name.to_owned(), number);
        number
    }

    fn push(
        &mut self,
        instruction: Instruction,
        column: u32,
    ) -> std::result::Result<(), SyntaxError> {
        if self.spans.len() == MAX_INSTRUCTIONS {
            return Err(SyntaxError {
                column,
                message: format!("more than {MAX_INSTRUCTIONS} instructions"),
            });
        }
        self.parts.instructions.push(instruction);
        self.spans.push(Span {
            line: self.line,
            column,
        });
        Ok(())
    }

    /// Replaces label numbers by positions.
    fn resolve(&mut self) -> std::result::Result<(), (Span, String)> {
        let mut places = Vec::with_capacity(self.labels.len());
        for label in &self.labels {
            let target = label
                .place
                .ok_or_else(|| (label.first, format!("label @{} is not defined", label.name)))?;
            places.push(target);
            self.parts.labels.push(Label {
                name: label.name.clone(),
                target,
            });
        }
        for instruction in &mut self.parts.instructions {
            if let Some(label) = instruction.target() {
                *instruction = instruction.with_target(places[label.index()]);
            }
        }
        Ok(())
    }
}
