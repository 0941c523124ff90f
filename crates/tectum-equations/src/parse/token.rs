//! Words, names and symbols.

use tectum::Result;

use super::{KEYWORDS, MAX_NODES, Meaning, Parser};
use crate::diagnostic::Span;
use crate::lexer::Kind;

impl Parser<'_> {
    pub(super) fn peek(&self) -> &Kind {
        &self.tokens[self.at].kind
    }

    pub(super) fn span(&self) -> Span {
        self.tokens[self.at].span
    }

    pub(super) fn fail<T>(&self, span: Span, message: impl std::fmt::Display) -> Result<T> {
        Err(self.source.error(span, message))
    }

    pub(super) fn once(&self, is_there: bool, span: Span, what: &str) -> Result<()> {
        if is_there {
            self.fail(span, format!("{what} is given twice"))
        } else {
            Ok(())
        }
    }

    pub(super) fn limit(&self, count: usize, maximum: usize, span: Span, what: &str) -> Result<()> {
        if count >= maximum {
            self.fail(span, format!("more than {maximum} {what}"))
        } else {
            Ok(())
        }
    }

    pub(super) fn end(&mut self) -> Result<()> {
        match self.peek() {
            Kind::EndOfLine => self.at += 1,
            Kind::EndOfFile => {}
            _ => {
                return self.fail(
                    self.span(),
                    format!(
                        "{} is not expected here; a statement ends with its line",
                        self.shown()
                    ),
                );
            }
        }
        self.limit(
            self.expressions.len(),
            MAX_NODES,
            self.tokens[self.at.saturating_sub(1)].span,
            "operations",
        )
    }

    /// The present token, for messages.
    pub(super) fn shown(&self) -> String {
        match self.peek() {
            Kind::Number(number) => number.to_string(),
            Kind::Name(name) => name.clone(),
            Kind::Text(text) => format!("{text:?}"),
            Kind::Symbol(symbol) => (*symbol).to_owned(),
            Kind::EndOfLine => "the end of the line".to_owned(),
            Kind::EndOfFile => "the end of the file".to_owned(),
        }
    }

    pub(super) fn symbol(&mut self, symbol: &'static str) -> Result<()> {
        if *self.peek() != Kind::Symbol(symbol) {
            return self.fail(
                self.span(),
                format!("expected {symbol}, found {}", self.shown()),
            );
        }
        self.at += 1;
        Ok(())
    }

    pub(super) fn takes(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), Kind::Name(name) if name == word);
        self.at += usize::from(is_it);
        is_it
    }

    pub(super) fn word(&mut self, expected: &str) -> Result<(String, Span)> {
        let span = self.span();
        let Kind::Name(name) = self.peek().clone() else {
            return self.fail(span, format!("expected {expected}, found {}", self.shown()));
        };
        self.at += 1;
        Ok((name, span))
    }

    pub(super) fn name(&mut self) -> Result<(String, Span)> {
        let (name, span) = self.word("a name")?;
        if KEYWORDS.contains(&name.as_str()) {
            return self.fail(span, format!("{name} is a keyword, not a name"));
        }
        Ok((name, span))
    }

    pub(super) fn new_name(&mut self) -> Result<(String, Span)> {
        let (name, span) = self.name()?;
        self.refuse_known(&name, span)?;
        Ok((name, span))
    }

    pub(super) fn refuse_known(&self, name: &str, span: Span) -> Result<()> {
        let is_known = self.names.contains_key(name) || super::expression::is_function(name);
        if is_known {
            self.fail(span, format!("{name} is defined already"))
        } else {
            Ok(())
        }
    }

    pub(super) fn state_name(&mut self) -> Result<(u16, String, Span)> {
        let (name, span) = self.name()?;
        match self.names.get(&name) {
            Some(Meaning::State(number)) => Ok((*number, name, span)),
            _ => self.fail(span, format!("{name} is no state that is declared above")),
        }
    }
}
