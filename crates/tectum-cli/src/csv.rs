//! Cells of comma-separated values, RFC 4180.

use std::borrow::Cow;

/// A text as a cell: in quotes where it has a comma, a quote or a line break.
pub fn cell(text: &str) -> Cow<'_, str> {
    if text.contains([',', '"', '\n', '\r']) {
        Cow::Owned(format!("\"{}\"", text.replace('"', "\"\"")))
    } else {
        Cow::Borrowed(text)
    }
}

#[cfg(test)]
mod tests {
    use super::cell;

    #[test]
    fn only_texts_that_need_quotes_get_them() {
        assert_eq!(
            (cell("eye"), cell("left, \"wide\"")),
            ("eye".into(), "\"left, \"\"wide\"\"\"".into())
        );
    }
}
