//! Texts that a command reads from a file or from the standard input.

use std::io::{IsTerminal as _, Read as _};
use std::path::Path;

use tectum::{Error, Result};

use crate::messages;

/// The name of the standard input on the command line.
pub const STANDARD_INPUT: &str = "-";

/// The text of a file, or of the standard input if the path is `-`.
///
/// # Errors
/// `Io` naming the file, also for one that is not UTF-8.
pub fn read(path: &Path) -> Result<String> {
    if path.as_os_str() != STANDARD_INPUT {
        return std::fs::read_to_string(path).map_err(|source| Error::io(path.display(), source));
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|source| Error::io("standard input", source))?;
    Ok(text)
}

/// The text of the standard input where nothing else was given; none if it is a terminal, or empty.
///
/// # Errors
/// As [`read`].
pub fn piped() -> Result<Option<String>> {
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    read(Path::new(STANDARD_INPUT)).map(|text| Some(text).filter(|text| !text.is_empty()))
}

/// Notes that the only text of the command line is the name of a file.
pub fn note_of_file(text: &str, effect: &str) {
    if Path::new(text).is_file() {
        messages::note(format_args!(
            "note: {text:?} is the text itself, and also a file: --file {text} {effect}"
        ));
    }
}

/// At most so many characters of a text.
pub fn clipped(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::clipped;

    #[test]
    fn a_long_text_is_clipped_at_a_character() {
        assert_eq!(
            [clipped("größer", 3), clipped("größer", 6)],
            ["grö…", "größer"]
        );
    }
}
