//! Reading the tokens of one line.

use super::lexer::{Kind, Token};
use crate::{Predicate, Register};

/// An error in a line, with its column.
#[derive(Debug)]
pub struct SyntaxError {
    pub column: u32,
    pub message: String,
}

pub type Read<T> = Result<T, SyntaxError>;

/// A position in the tokens of a line.
pub struct Cursor<'a> {
    tokens: &'a [Token<'a>],
    /// The column after the last token.
    end: u32,
}

impl<'a> Cursor<'a> {
    pub fn new(tokens: &'a [Token<'a>], end: u32) -> Self {
        Self { tokens, end }
    }

    pub fn is_done(&self) -> bool {
        self.tokens.is_empty()
    }

    /// The column of the next token.
    pub fn column(&self) -> u32 {
        self.tokens.first().map_or(self.end, |token| token.column)
    }

    pub fn peek(&self) -> Option<Token<'a>> {
        self.tokens.first().copied()
    }

    /// Whether the next token is this mark; it is then consumed.
    pub fn take_mark(&mut self, mark: &str) -> bool {
        let found = self
            .peek()
            .is_some_and(|token| token.kind == Kind::Mark && token.text == mark);
        self.tokens = &self.tokens[usize::from(found)..];
        found
    }

    pub fn expect_punctuation(&mut self, mark: &str) -> Read<()> {
        if self.take_mark(mark) {
            Ok(())
        } else {
            Err(self.expected(&format!("`{mark}`")))
        }
    }

    pub fn comma(&mut self) -> Read<()> {
        self.expect_punctuation(",")
    }

    pub fn word(&mut self, what: &str) -> Read<&'a str> {
        self.token(Kind::Word, what)
    }

    /// The text of a number; the words `inf` and `nan` are also numbers.
    pub fn number(&mut self, what: &str) -> Read<&'a str> {
        match self.peek() {
            Some(token) if token.kind == Kind::Word && matches!(token.text, "inf" | "nan") => {
                self.token(Kind::Word, what)
            }
            _ => self.token(Kind::Number, what),
        }
    }

    /// An unsigned number up to `most`, decimal or `0x…`.
    pub fn unsigned(&mut self, what: &str, most: u64) -> Read<u64> {
        let column = self.column();
        let text = self.number(what)?;
        let value = match text.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => text.parse().ok(),
        };
        value
            .filter(|value| *value <= most)
            .ok_or_else(|| SyntaxError {
                column,
                message: format!("{text}: {what} is 0 to {most}"),
            })
    }

    pub fn register(&mut self) -> Read<Register> {
        let column = self.column();
        let text = self.word("a register")?;
        register(text).ok_or_else(|| SyntaxError {
            column,
            message: format!("{text} is not a register: r0 to r255"),
        })
    }

    pub fn predicate(&mut self) -> Read<Predicate> {
        let column = self.column();
        let text = self.word("a predicate")?;
        let number = numbered(text, 'p').filter(|number| *number < Predicate::COUNT);
        number.map(Predicate).ok_or_else(|| SyntaxError {
            column,
            message: format!("{text} is not a predicate: p0 to p15"),
        })
    }

    /// Refuses remaining tokens of the line.
    pub fn finish(&self) -> Read<()> {
        self.peek().map_or(Ok(()), |token| {
            Err(SyntaxError {
                column: token.column,
                message: format!("`{}` after the end of the statement", token.text),
            })
        })
    }

    pub fn expected(&self, what: &str) -> SyntaxError {
        let found = self
            .peek()
            .map_or("the end of the line".to_owned(), |token| {
                format!("`{}`", token.text)
            });
        SyntaxError {
            column: self.column(),
            message: format!("{what} is needed, not {found}"),
        }
    }

    fn token(&mut self, kind: Kind, what: &str) -> Read<&'a str> {
        match self.tokens.split_first() {
            Some((token, rest)) if token.kind == kind => {
                self.tokens = rest;
                Ok(token.text)
            }
            _ => Err(self.expected(what)),
        }
    }
}

/// The register with this name.
pub fn register(text: &str) -> Option<Register> {
    numbered(text, 'r').map(Register)
}

/// The number after a letter, written without leading zeros.
fn numbered(text: &str, letter: char) -> Option<u8> {
    let digits = text.strip_prefix(letter)?;
    let plain = digits == "0" || !digits.starts_with(['0', '+']);
    digits.parse().ok().filter(|_| plain)
}
