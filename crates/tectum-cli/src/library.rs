//! Programs by path, or by the name of one in the library.

use std::path::Path;

use tectum::{Error, Result};
use tectum_programs::library_text;

/// The text of a program: of the file, or, if there is no such file, of the library's program
/// `NAME` for the path `NAME.atlas`.
///
/// # Errors
/// `Io`, naming the path, for a file that cannot be read; `Data` for an empty one.
pub fn program_text(path: &Path) -> Result<String> {
    let built_in = path
        .to_str()
        .and_then(|path| path.strip_suffix(".atlas"))
        .and_then(library_text);
    match (std::fs::read_to_string(path), built_in) {
        (Err(error), Some(text)) if error.kind() == std::io::ErrorKind::NotFound => {
            Ok(text.to_owned())
        }
        (Ok(text), _) if text.trim().is_empty() => Err(Error::data(format!(
            "{}: the file is empty; a program is needed",
            path.display()
        ))),
        (read, _) => read.map_err(|source| Error::io(path.display(), source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_the_library_is_a_program_and_a_path_is_a_file() {
        assert_eq!(
            program_text(Path::new("relu.atlas")).expect("built in"),
            library_text("relu").expect("in the library")
        );
        assert!(
            program_text(Path::new("absent/relu.atlas")).is_err(),
            "a path names a file alone"
        );
    }
}
