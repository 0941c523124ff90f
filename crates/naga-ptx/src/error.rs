//! Why a module could not be translated.

use std::fmt;

use naga::Span;

/// The kind of the error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The module has no compute entry point of that name.
    EntryPoint,
    /// The module uses something that PTX output does not cover.
    Unsupported,
    /// A barrier or a subgroup operation is at a point that some invocations may not reach.
    Uniformity,
    /// A pipeline-overridable constant lacks a value or has a bad one.
    Override,
}

/// Why a module could not be translated: the construct, and its position in the source.
#[derive(Debug, Clone)]
pub struct Error {
    kind: ErrorKind,
    construct: String,
    span: Span,
}

/// The result of a translation.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(kind: ErrorKind, construct: impl Into<String>, span: Span) -> Error {
        Error {
            kind,
            construct: construct.into(),
            span,
        }
    }

    pub(crate) fn unsupported(construct: impl Into<String>, span: Span) -> Error {
        Error::new(ErrorKind::Unsupported, construct, span)
    }

    /// The error with this position, if it has no more precise one.
    pub(crate) fn at(self, span: Span) -> Error {
        if self.span.is_defined() {
            self
        } else {
            Error { span, ..self }
        }
    }

    /// The kind of the error.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The unsupported or invalid construct.
    pub fn construct(&self) -> &str {
        &self.construct
    }

    /// Its position in the source, as bytes; undefined if the module has no spans.
    pub fn span(&self) -> Span {
        self.span
    }

    /// The message with line and column, for the source that the module was parsed from.
    pub fn with_source(&self, source: &str) -> String {
        match self.span.is_defined() {
            true => {
                let place = self.span.location(source);
                format!("{}:{}: {self}", place.line_number, place.line_position)
            }
            false => self.to_string(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            ErrorKind::EntryPoint => "no such compute entry point",
            ErrorKind::Unsupported => "not supported in PTX",
            ErrorKind::Uniformity => "in control flow that may not be uniform",
            ErrorKind::Override => "override",
        };
        write!(f, "{}: {what}", self.construct)?;
        match self.span.to_range() {
            Some(range) => write!(f, " (source bytes {}..{})", range.start, range.end),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}
