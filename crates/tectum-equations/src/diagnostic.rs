//! Errors of an equation file, with line, column and the line's text.

use tectum::Error;

/// Position in a file; both from 1, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Span {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

/// A file being read: its name in messages, and its text.
#[derive(Debug, Clone, Copy)]
pub struct Source<'t> {
    pub origin: &'t str,
    pub text: &'t str,
}

/// Maximum length of a line that is shown.
const MAX_LINE_CHARS: usize = 160;

impl Source<'_> {
    /// An error at a position.
    pub fn error(&self, span: Span, message: impl std::fmt::Display) -> Error {
        let Span { line, column } = span;
        let shown: String = self
            .text
            .lines()
            .nth(line.saturating_sub(1) as usize)
            .unwrap_or_default()
            .chars()
            .take(MAX_LINE_CHARS)
            .collect();
        let gutter = line.to_string().len();
        // Tabs stay tabs before the caret, so that it is aligned with its target.
        let indent: String = shown
            .chars()
            .take(column.saturating_sub(1) as usize)
            .map(|letter| if letter == '\t' { '\t' } else { ' ' })
            .collect();
        Error::data(format!(
            "{}: line {line}, column {column}: {message}\n{line} | {shown}\n{:gutter$} | {indent}^",
            self.origin, ""
        ))
    }
}
