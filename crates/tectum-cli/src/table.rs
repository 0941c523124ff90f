//! Plain tables on standard output.

use std::io::Write;

use tectum::{Error, Result};

use crate::messages;

/// Rows of cells; the first row is the header if there is one. Columns are as wide as their widest
/// cell.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths = (0..columns).map(width).collect::<Vec<_>>();
    let line = |row: &Vec<String>| {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

/// Writes to standard output.
///
/// # Errors
/// `Io`, except for a closed pipe: a reader such as `head` needs no more output.
pub fn print(text: &str) -> Result<()> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::io("standard output", error))
        }
        _ => Ok(()),
    }
}

/// Writes a readable report: to standard output, or to standard error if standard output is for
/// JSON; nowhere under `--quiet`.
///
/// # Errors
/// As [`print()`].
pub fn report(text: &str, is_json: bool) -> Result<()> {
    if is_json {
        messages::note(text.trim_end());
        return Ok(());
    }
    if messages::is_quiet() {
        Ok(())
    } else {
        print(text)
    }
}

/// Writes a value to standard output as one line of JSON.
///
/// # Errors
/// As [`print()`].
pub fn print_json(value: &impl serde::Serialize) -> Result<()> {
    let text = serde_json::to_string(value)
        .map_err(|source| Error::data("result: cannot be encoded").with_source(source))?;
    print(&(text + "\n"))
}

/// A number with at most six digits that count.
pub fn short(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let scale = 10f64.powi(5 - number.abs().log10().floor() as i32);
    ((number * scale).round() / scale).to_string()
}

/// A number of bytes in a suitable unit.
pub fn bytes(bytes: f64) -> String {
    let (unit, scale) = match bytes {
        bytes if bytes >= 1e9 => ("GB", 1e9),
        bytes if bytes >= 1e6 => ("MB", 1e6),
        _ => ("kB", 1e3),
    };
    format!("{:.1} {unit}", bytes / scale)
}

#[cfg(test)]
mod tests {
    use super::{bytes, short, table};

    #[test]
    fn columns_are_as_wide_as_their_widest_cell_and_lines_end_without_blanks() {
        let rows = [
            vec!["id".to_owned(), "name".to_owned()],
            vec!["vulkan:0".to_owned(), "…".to_owned()],
        ];
        assert_eq!(table(&rows), "id        name\nvulkan:0  …\n");
        assert_eq!(
            [200.0 / 3.0, 25.0, 1e-4, 0.1 * 3.0, 0.0, -1e9 / 3.0].map(short),
            ["66.6667", "25", "0.0001", "0.3", "0", "-333333000"]
        );
        assert_eq!(
            (bytes(2.5e9), bytes(1.0)),
            ("2.5 GB".to_owned(), "0.0 kB".to_owned())
        );
    }
}
