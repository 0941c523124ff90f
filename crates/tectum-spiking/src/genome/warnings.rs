//! What a file says that has no effect, in bounded number.

/// The most warnings that are kept.
const MAX_WARNINGS: usize = 200;

/// Warnings of one file, in order.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    kept: Vec<String>,
    left_out: usize,
}

impl Warnings {
    /// Keeps a warning, unless there are many already.
    pub fn add(&mut self, warning: impl Into<String>) {
        match self.kept.len() < MAX_WARNINGS {
            true => self.kept.push(warning.into()),
            false => self.left_out += 1,
        }
    }

    /// The warnings, the last one telling how many more there were.
    pub fn finish(mut self) -> Vec<String> {
        if self.left_out > 0 {
            self.kept.push(format!("and {} more", self.left_out));
        }
        self.kept
    }
}

/// A text from a file in a message: quoted, and cut if it is long.
pub(super) fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
