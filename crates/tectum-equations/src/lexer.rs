//! Text as tokens.

use tectum::Result;

use super::diagnostic::{Source, Span};

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Number(f64),
    Name(String),
    Text(String),
    Symbol(&'static str),
    /// The end of a statement: a line's end outside parentheses and brackets.
    EndOfLine,
    EndOfFile,
}

/// A token and its position.
#[derive(Debug, Clone, PartialEq)]
pub struct Token {
    pub kind: Kind,
    pub span: Span,
}

/// Longer ones first.
const SYMBOLS: [&str; 20] = [
    "..", "<=", ">=", "==", "+", "-", "*", "/", "^", "(", ")", "[", "]", ",", ":", "=", "<", ">",
    "{", "}",
];
/// Maximum characters of a name: longer ones would fill messages.
const MAX_NAME: usize = 64;

/// Splits a text; the last token is the end of the file.
pub fn tokens(source: Source<'_>) -> Result<Vec<Token>> {
    let mut tokens: Vec<Token> = Vec::new();
    let mut depth = 0i32;
    for (index, line) in source.text.lines().enumerate() {
        let mut rest = Rest {
            chars: line.chars().collect(),
            at: 0,
            line: index as u32 + 1,
        };
        loop {
            rest.skip(char::is_whitespace);
            let span = rest.span();
            let kind = match rest.peek(0) {
                None | Some('#') => break,
                Some(first) if first.is_ascii_digit() => Kind::Number(
                    rest.number()
                        .map_err(|text| source.error(span, format!("{text} is no number")))?,
                ),
                Some(first) if first.is_ascii_alphabetic() || first == '_' => {
                    let name = rest.take(|letter| letter.is_ascii_alphanumeric() || letter == '_');
                    if name.len() > MAX_NAME {
                        return Err(source.error(
                            span,
                            format!("a name of {} letters; at most {MAX_NAME}", name.len()),
                        ));
                    }
                    Kind::Name(name)
                }
                Some('"') => {
                    rest.at += 1;
                    let text = rest.take(|letter| letter != '"');
                    if rest.peek(0).is_none() {
                        return Err(source.error(span, "a text without an end"));
                    }
                    rest.at += 1;
                    Kind::Text(text)
                }
                Some(other) => match SYMBOLS.iter().find(|symbol| rest.starts_with(symbol)) {
                    Some(symbol) => {
                        rest.at += symbol.len();
                        depth += i32::from(matches!(*symbol, "(" | "["))
                            - i32::from(matches!(*symbol, ")" | "]"));
                        Kind::Symbol(symbol)
                    }
                    None => {
                        return Err(source.error(span, format!("{other:?} has no meaning here")));
                    }
                },
            };
            tokens.push(Token { kind, span });
        }
        if depth <= 0
            && tokens
                .last()
                .is_some_and(|token| token.kind != Kind::EndOfLine)
        {
            tokens.push(Token {
                kind: Kind::EndOfLine,
                span: rest.span(),
            });
        }
    }
    let lines = source.text.lines().count() as u32;
    let end = Span {
        line: lines.max(1),
        column: source
            .text
            .lines()
            .last()
            .map_or(0, |line| line.chars().count()) as u32
            + 1,
    };
    if tokens
        .last()
        .is_some_and(|token| token.kind != Kind::EndOfLine)
    {
        tokens.push(Token {
            kind: Kind::EndOfLine,
            span: end,
        });
    }
    tokens.push(Token {
        kind: Kind::EndOfFile,
        span: end,
    });
    Ok(tokens)
}

/// The rest of a line.
struct Rest {
    chars: Vec<char>,
    at: usize,
    line: u32,
}

impl Rest {
    fn span(&self) -> Span {
        Span {
            line: self.line,
            column: self.at as u32 + 1,
        }
    }

    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn starts_with(&self, symbol: &str) -> bool {
        symbol
            .chars()
            .enumerate()
            .all(|(ahead, letter)| self.peek(ahead) == Some(letter))
    }

    fn skip(&mut self, fits: impl Fn(char) -> bool) {
        self.take(fits);
    }

    fn take(&mut self, fits: impl Fn(char) -> bool) -> String {
        let taken: String = self.chars[self.at..]
            .iter()
            .take_while(|letter| fits(**letter))
            .collect();
        self.at += taken.chars().count();
        taken
    }

    /// Digits, with a fraction and an exponent; `2..3` is 2, a range and 3.
    fn number(&mut self) -> std::result::Result<f64, String> {
        let mut text = self.take(|letter| letter.is_ascii_digit());
        if self.peek(0) == Some('.') && self.peek(1).is_some_and(|next| next.is_ascii_digit()) {
            self.at += 1;
            text = format!("{text}.{}", self.take(|letter| letter.is_ascii_digit()));
        }
        let sign = usize::from(matches!(self.peek(1), Some('+' | '-')));
        if matches!(self.peek(0), Some('e' | 'E'))
            && self
                .peek(1 + sign)
                .is_some_and(|next| next.is_ascii_digit())
        {
            self.at += 1;
            let sign: String = self.chars[self.at..][..sign].iter().collect();
            self.at += sign.len();
            text = format!(
                "{text}e{sign}{}",
                self.take(|letter| letter.is_ascii_digit())
            );
        }
        text.parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .ok_or(text)
    }
}
