//! The secret that a client shows.

use std::fmt;
use std::hint::black_box;
use std::path::Path;

use tectum::{Error, Result};

/// The variable that has a token.
const VARIABLE: &str = "TECTUM_TOKEN";
/// How the header `Authorization` names a token: openpi's word, and that of most others.
const SCHEMES: [&str; 2] = ["Api-Key ", "Bearer "];

/// A secret that both sides of a connection know. It is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// A token of a text.
    ///
    /// # Errors
    /// `Invalid` for a text that is empty or has characters that a header cannot have.
    pub fn new(text: &str) -> Result<Self> {
        let text = text.trim();
        match !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic()) {
            true => Ok(Self(text.to_owned())),
            false => Err(Error::invalid(
                "token: one word of printable ASCII characters is needed",
            )),
        }
    }

    /// The token in a file; without a file that of the variable `TECTUM_TOKEN`, if it is set.
    ///
    /// # Errors
    /// `Io` for a file that cannot be read; as [`Token::new`].
    pub fn find(file: Option<&Path>) -> Result<Option<Self>> {
        let Some(path) = file else {
            let variable = std::env::var(VARIABLE).ok();
            return variable.as_deref().map(Self::new).transpose();
        };
        let text =
            std::fs::read_to_string(path).map_err(|source| Error::io(path.display(), source))?;
        Self::new(&text)
            .map(Some)
            .map_err(|error| error.at(path.display()))
    }

    /// The secret, for protocols that show it in another form.
    pub(crate) fn secret(&self) -> &str {
        &self.0
    }

    /// The value of the header `Authorization`.
    pub(crate) fn header(&self) -> String {
        format!("{}{}", SCHEMES[0], self.0)
    }

    /// Whether a header `Authorization` shows this token. The time does not depend on how much of
    /// it is right.
    pub(crate) fn is_shown_by(&self, header: Option<&str>) -> bool {
        let shown = header.and_then(|header| {
            SCHEMES
                .iter()
                .find_map(|scheme| header.strip_prefix(scheme))
        });
        shown.is_some_and(|shown| is_same(shown.trim().as_bytes(), self.0.as_bytes()))
    }
}

/// Compares all bytes of both, whatever the first difference is.
pub(crate) fn is_same(shown: &[u8], expected: &[u8]) -> bool {
    let mut difference = shown.len() ^ expected.len();
    for place in 0..expected.len() {
        let byte = shown.get(place).copied().unwrap_or(0);
        difference |= usize::from(black_box(byte ^ expected[place]));
    }
    black_box(difference) == 0
}

/// The rule for addresses: other machines need a token.
///
/// # Errors
/// `Invalid` for an address that is not on this machine, without a token.
pub(crate) fn require_for(address: &crate::Address, token: Option<&Token>) -> Result<()> {
    if address.is_loopback() || token.is_some() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "address {address}: it is not on this machine, and needs a token: the variable {VARIABLE} or a file"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Address;

    #[test]
    fn only_the_whole_token_is_accepted() {
        let token = Token::new(" secret\n").expect("a word");
        for (header, is_accepted) in [
            (Some("Api-Key secret"), true),
            (Some("Bearer secret"), true),
            (Some("Api-Key secre"), false),
            (Some("Api-Key secrett"), false),
            (Some("Api-Key "), false),
            (Some("Basic secret"), false),
            (Some("secret"), false),
            (None, false),
        ] {
            assert_eq!(token.is_shown_by(header), is_accepted, "{header:?}");
        }
        assert_eq!(format!("{token:?}"), "Token");
        assert!(Token::new("").is_err() && Token::new("a b").is_err() && Token::new("é").is_err());
    }

    #[test]
    fn other_machines_need_a_token() {
        let token = Token::new("secret").expect("a word");
        for (address, token, is_allowed) in [
            ("ws://127.0.0.1:1", None, true),
            ("ws://0.0.0.0:1", None, false),
            ("ws://0.0.0.0:1", Some(&token), true),
        ] {
            let address = Address::parse(address).expect("an address");
            assert_eq!(require_for(&address, token).is_ok(), is_allowed);
        }
    }
}
