//! Endings of the names of output files: a name must not promise another format than the one that is written.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};

/// The endings of an option's formats, for `value_parser`. A name without an ending is accepted.
#[derive(Debug, Clone, Copy)]
pub struct FileEnding(pub &'static [&'static str]);

impl FileEnding {
    /// Why a name is refused, if it is.
    pub fn fault(self, path: &Path) -> Option<String> {
        let ending = path.extension().map(OsStr::to_string_lossy).filter(|ending| !self.0.contains(&&**ending))?;
        let [others @ .., last] = self.0 else { return None };
        let known = if others.is_empty() { format!(".{last}") } else { format!(".{} or .{last}", others.join(", .")) };
        Some(format!("{}: what is written is not {ending}; a name that ends in {known} is needed", path.display()))
    }
}

impl TypedValueParser for FileEnding {
    type Value = PathBuf;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<PathBuf, clap::Error> {
        self.parse(command, argument, value.to_owned())
    }

    fn parse(&self, command: &Command, argument: Option<&Arg>, value: OsString) -> Result<PathBuf, clap::Error> {
        let path = PathBuf::from(value);
        match self.fault(&path) {
            Some(fault) => Err(refusal(command, argument, &fault)),
            None => Ok(path),
        }
    }
}

/// The name of a folder for pictures, for `value_parser`: a name with the ending of a picture is refused, unless there is such a folder.
#[derive(Debug, Clone, Copy)]
pub struct PictureFolder;

impl PictureFolder {
    fn fault(path: &Path) -> Option<String> {
        const PICTURES: [&str; 7] = ["png", "svg", "jpg", "jpeg", "gif", "pdf", "webp"];
        let ending = path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase())?;
        let is_picture = PICTURES.contains(&ending.as_str()) && !path.is_dir();
        is_picture.then(|| {
            format!("{}: this option names a folder, which receives several pictures; for example {}", path.display(), path.with_extension("").display())
        })
    }
}

impl TypedValueParser for PictureFolder {
    type Value = PathBuf;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<PathBuf, clap::Error> {
        let path = PathBuf::from(value);
        match Self::fault(&path) {
            Some(fault) => Err(refusal(command, argument, &fault)),
            None => Ok(path),
        }
    }
}

/// The error of a value, which names its option.
fn refusal(command: &Command, argument: Option<&Arg>, fault: &str) -> clap::Error {
    let option = argument.and_then(Arg::get_long).map_or_else(String::new, |name| format!("--{name} "));
    clap::Error::raw(ErrorKind::ValueValidation, format!("{option}{fault}\n")).with_cmd(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_ending_is_refused_and_none_is_not() {
        let fault = |endings: &'static [&'static str], path: &str| FileEnding(endings).fault(Path::new(path));
        assert!(fault(&["npy"], "a/v.npy").is_none() && fault(&["npy"], "/dev/stdout").is_none() && fault(&["png", "svg"], "a.b.svg").is_none());
        assert_eq!(fault(&["npy"], "v.csv"), Some("v.csv: what is written is not csv; a name that ends in .npy is needed".to_owned()));
        assert_eq!(fault(&["npy", "csv"], "v.parquet").map(|fault| fault.ends_with("a name that ends in .npy or .csv is needed")), Some(true));
    }

    #[test]
    fn a_folder_has_no_name_of_a_picture() {
        let fault = |path: &str| PictureFolder::fault(Path::new(path));
        assert!(fault("pictures").is_none() && fault("run.1").is_none());
        assert_eq!(fault("a/pic.PNG").as_deref(), Some("a/pic.PNG: this option names a folder, which receives several pictures; for example a/pic"));
    }
}
