//! Warnings about entries of a file that have no effect; their number is bounded.

/// Maximum stored warnings.
const MAX_WARNINGS: usize = 200;

/// Warnings of one file, in order.
#[derive(Debug, Default)]
pub(super) struct Warnings {
    kept: Vec<String>,
    left_out: usize,
}

impl Warnings {
    /// Stores a warning, unless there are many already.
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

/// A file's text for a message: quoted, and truncated if it is long.
pub(super) fn quoted(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
