//! Tables for notebooks.

/// A text with the characters that HTML reserves replaced.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// A table of names and values under a caption.
pub fn table(caption: &str, rows: &[(&str, String)]) -> String {
    let row = |(name, value): &(&str, String)| {
        let value = escaped(value);
        format!(
            "<tr><th style=\"text-align:left\">{name}</th><td style=\"text-align:left\">{value}</td></tr>"
        )
    };
    let rows: String = rows.iter().map(row).collect();
    format!(
        "<table><caption style=\"text-align:left\"><b>{}</b></caption>{rows}</table>",
        escaped(caption)
    )
}
