//! Splits PTX text into tokens.

use crate::error::Error;

/// One lexical element.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token<'a> {
    /// An identifier, register or opcode, without any modifiers.
    Word(&'a str),
    /// A name that follows a dot: a directive, a modifier or the `x` of `%tid.x`.
    Dotted(&'a str),
    Integer(u64),
    /// `0f` and eight hexadecimal digits.
    Single(u32),
    /// `0d` and sixteen hexadecimal digits, or a decimal literal.
    Double(u64),
    Text(&'a str),
    Mark(char),
}

/// A token with its position in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spanned<'a> {
    pub token: Token<'a>,
    pub line: u32,
    pub start: usize,
    pub end: usize,
}

/// Splits `source`, dropping blanks and comments.
pub(crate) fn tokenize(source: &str) -> Result<Vec<Spanned<'_>>, Error> {
    let mut lexer = Lexer {
        source,
        at: 0,
        line: 1,
    };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks()?;
        let (start, line) = (lexer.at, lexer.line);
        let Some(first) = lexer.peek() else {
            return Ok(tokens);
        };
        let token = lexer.token(first)?;
        tokens.push(Spanned {
            token,
            line,
            start,
            end: lexer.at,
        });
    }
}

struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: u32,
}

fn in_word(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || letter == '_' || letter == '$'
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.source[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn error(&self, message: impl Into<String>) -> Error {
        Error::parse(self.line, message)
    }

    fn advance_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let rest = self.rest();
        let length = rest.find(|letter| !accept(letter)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    fn skip_blanks(&mut self) -> Result<(), Error> {
        loop {
            let blank = self.advance_while(char::is_whitespace);
            self.line += blank.matches('\n').count() as u32;
            if self.rest().starts_with("//") {
                self.advance_while(|letter| letter != '\n');
            } else if self.rest().starts_with("/*") {
                let end = self.rest().find("*/");
                let length = end.ok_or_else(|| self.error("comment without an end"))? + 2;
                self.line += self.rest()[..length].matches('\n').count() as u32;
                self.at += length;
            } else {
                return Ok(());
            }
        }
    }

    fn token(&mut self, first: char) -> Result<Token<'a>, Error> {
        match first {
            '.' => {
                self.at += 1;
                let name = self.dotted();
                if name.is_empty() {
                    return Err(self.error("a dot without a name"));
                }
                Ok(Token::Dotted(name))
            }
            '0'..='9' => self.number(),
            '"' => self.text(),
            '%' => {
                let start = self.at;
                self.at += 1;
                self.advance_while(in_word);
                Ok(Token::Word(&self.source[start..self.at]))
            }
            letter if in_word(letter) => Ok(Token::Word(self.advance_while(in_word))),
            ',' | ';' | ':' | '{' | '}' | '[' | ']' | '(' | ')' | '<' | '>' | '@' | '!' | '|'
            | '+' | '-' | '=' => {
                self.at += 1;
                Ok(Token::Mark(first))
            }
            other => Err(self.error(format!("character {other:?} has no meaning in PTX"))),
        }
    }

    /// A modifier may hold `::`, as `L1::evict_last` does.
    fn dotted(&mut self) -> &'a str {
        let start = self.at;
        self.advance_while(in_word);
        while self.rest().starts_with("::") {
            self.at += 2;
            self.advance_while(in_word);
        }
        &self.source[start..self.at]
    }

    fn text(&mut self) -> Result<Token<'a>, Error> {
        let end = self.rest()[1..].find('"');
        let length = end.ok_or_else(|| self.error("string without an end"))?;
        let text = &self.rest()[1..=length];
        self.at += length + 2;
        Ok(Token::Text(text))
    }

    fn number(&mut self) -> Result<Token<'a>, Error> {
        let start = self.at;
        let word = self.advance_while(in_word);
        if word
            .bytes()
            .all(|digit| digit.is_ascii_digit() || digit == b'e')
            && self.rest().starts_with('.')
        {
            return self.decimal(start);
        }
        let lower = word.to_ascii_lowercase();
        let invalid = || Error::parse(self.line, format!("malformed number `{word}`"));
        if let Some(digits) = lower.strip_prefix("0f") {
            return exact_hex(digits, 8)
                .map(|bits| Token::Single(bits as u32))
                .ok_or_else(invalid);
        }
        if let Some(digits) = lower.strip_prefix("0d") {
            return exact_hex(digits, 16).map(Token::Double).ok_or_else(invalid);
        }
        integer(&lower).map(Token::Integer).ok_or_else(invalid)
    }

    fn decimal(&mut self, start: usize) -> Result<Token<'a>, Error> {
        self.at += 1;
        let fraction = self.advance_while(in_word);
        if fraction.ends_with(['e', 'E']) && self.rest().starts_with(['+', '-']) {
            self.at += 1;
            self.advance_while(in_word);
        }
        let text = &self.source[start..self.at];
        let value: f64 = text
            .parse()
            .map_err(|_| self.error(format!("malformed number `{text}`")))?;
        Ok(Token::Double(value.to_bits()))
    }
}

fn exact_hex(digits: &str, length: usize) -> Option<u64> {
    (digits.len() == length)
        .then(|| u64::from_str_radix(digits, 16).ok())
        .flatten()
}

fn integer(lower: &str) -> Option<u64> {
    let digits = lower.strip_suffix('u').unwrap_or(lower);
    if let Some(hex) = digits.strip_prefix("0x") {
        u64::from_str_radix(hex, 16).ok()
    } else if let Some(binary) = digits.strip_prefix("0b") {
        u64::from_str_radix(binary, 2).ok()
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(digits, 8).ok()
    } else {
        digits.parse().ok()
    }
}
