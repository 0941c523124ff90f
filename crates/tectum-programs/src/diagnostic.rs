//! Errors in a program, shown with position and line of text.

use std::fmt;

use tectum::Error;

use super::{Program, Span};

/// An error in a program's text, or in the printed text of a built program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// The message.
    pub message: String,
    /// The position.
    pub span: Span,
    /// The line of text, without its end.
    pub line: String,
}

impl Diagnostic {
    /// Maximum length of a line that is shown.
    const MAX_LINE_CHARS: usize = 160;

    /// An error at a position of a text.
    pub(super) fn new(text: &str, span: Span, message: impl Into<String>) -> Self {
        let line = text
            .lines()
            .nth(span.line.saturating_sub(1) as usize)
            .unwrap_or_default();
        Self {
            message: message.into(),
            span,
            line: line.chars().take(Self::MAX_LINE_CHARS).collect(),
        }
    }

    /// One error that combines several; the first ones are shown.
    pub(super) fn error(program: &str, found: &[Diagnostic]) -> Error {
        const MAX_SHOWN: usize = 8;
        let shown: Vec<String> = found
            .iter()
            .take(MAX_SHOWN)
            .map(Diagnostic::to_string)
            .collect();
        let more = if found.len() > MAX_SHOWN {
            format!("\nand {} more", found.len() - MAX_SHOWN)
        } else {
            String::new()
        };
        let name = if program.is_empty() {
            "program"
        } else {
            program
        };
        Error::invalid(format!("{name}: {}{more}", shown.join("\n")))
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Span { line, column } = self.span;
        let gutter = line.to_string().len();
        // Tabs stay tabs before the caret, so that it is aligned with its target.
        let before = self.line.chars().take(column.saturating_sub(1) as usize);
        let indent: String = before
            .map(|letter| if letter == '\t' { '\t' } else { ' ' })
            .collect();
        writeln!(f, "line {line}, column {column}: {}", self.message)?;
        writeln!(f, "{line} | {}", self.line)?;
        write!(f, "{:gutter$} | {indent}^", "")
    }
}

/// Positions of a program's instructions: in its own text, or in its printed text.
pub(super) struct SourceMap {
    text: String,
    spans: Vec<Span>,
}

impl SourceMap {
    pub fn of(program: &Program) -> Self {
        match &program.source {
            Some(source) => Self {
                text: source.text.to_string(),
                spans: source.spans.to_vec(),
            },
            None => {
                let (text, spans) = program.print();
                Self { text, spans }
            }
        }
    }

    /// An error at an instruction; an index beyond the last refers to the end of the program.
    pub fn diagnostic(&self, instruction: usize, message: impl Into<String>) -> Diagnostic {
        let last = self
            .spans
            .last()
            .copied()
            .unwrap_or(Span { line: 1, column: 1 });
        let span = self.spans.get(instruction).copied().unwrap_or(last);
        Diagnostic::new(&self.text, span, message)
    }
}
