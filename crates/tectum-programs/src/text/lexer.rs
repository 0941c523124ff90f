//! Lines into tokens.

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A name, a mnemonic or a register.
    Word,
    /// A number, with its sign.
    Number,
    /// One of `, [ ] ( ) + : @ !`.
    Mark,
}

/// A token of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Its text.
    pub text: &'a str,
    /// Its column, in characters from 1.
    pub column: u32,
}

/// The tokens of one line, or the column of a character that cannot begin a token.
pub fn tokens(line: &str) -> Result<Vec<Token<'_>>, (u32, String)> {
    let mut found = Vec::new();
    let (mut at, mut column) = (0, 1);
    while let Some(first) = line[at..].chars().next() {
        let rest = &line[at..];
        if rest.starts_with("//") {
            break;
        }
        let (kind, length) = match first {
            _ if first.is_whitespace() => (None, first.len_utf8()),
            'a'..='z' | 'A'..='Z' | '_' => (Some(Kind::Word), word(rest)),
            '0'..='9' | '-' | '.' => (Some(Kind::Number), number(rest)),
            ',' | '[' | ']' | '(' | ')' | '+' | ':' | '@' | '!' => (Some(Kind::Mark), 1),
            _ => return Err((column, format!("{first:?} does not begin a token"))),
        };
        let text = &rest[..length];
        found.extend(kind.map(|kind| Token { kind, text, column }));
        column += text.chars().count() as u32;
        at += length;
    }
    Ok(found)
}

fn word(rest: &str) -> usize {
    rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == '.'))
        .unwrap_or(rest.len())
}

/// A sign, then letters, digits and points; a sign after the `e` of a decimal exponent belongs to
/// it.
fn number(rest: &str) -> usize {
    let hexadecimal = rest.trim_start_matches('-').starts_with("0x");
    let bytes = rest.as_bytes();
    let mut end = 1;
    while end < bytes.len() {
        let exponent = !hexadecimal
            && matches!(bytes[end - 1], b'e' | b'E')
            && matches!(bytes[end], b'+' | b'-');
        if !(bytes[end].is_ascii_alphanumeric() || bytes[end] == b'.' || exponent) {
            break;
        }
        end += 1;
    }
    end
}
