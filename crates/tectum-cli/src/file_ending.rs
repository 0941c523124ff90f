//! Output files of the command line: a name must not promise another format than the one that is
//! written, and its folder must take the file. Both are found while the command line is read,
//! before anything is computed.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::builder::TypedValueParser;
use clap::error::ErrorKind;
use clap::{Arg, Command};
use tectum::file::PartialFile;
use tectum::{Error, Result};

/// The endings of an option's formats, for `value_parser`.
#[derive(Debug, Clone, Copy)]
pub struct FileEnding(pub &'static [&'static str]);

impl FileEnding {
    /// Why a name is refused, if it is.
    pub fn fault(self, path: &Path) -> Option<String> {
        let ending = path.extension().map(OsStr::to_string_lossy);
        let [others @ .., last] = self.0 else {
            return None;
        };
        if ending
            .as_ref()
            .is_some_and(|ending| self.0.contains(&&**ending))
        {
            return None;
        }
        let known = if others.is_empty() {
            format!(".{last}")
        } else {
            format!(".{} or .{last}", others.join(", ."))
        };
        let reason = ending.map_or_else(String::new, |ending| {
            format!("what is written is not {ending}; ")
        });
        Some(format!(
            "{}: {reason}a name that ends in {known} is needed",
            path.display()
        ))
    }
}

/// Checks that a file can be written: its folder exists and takes a new file, and the path is no
/// folder.
///
/// # Errors
/// `Io` naming the path.
pub fn check_writable(path: &Path) -> Result<()> {
    let folder = path
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.exists()) {
        return Err(Error::new(
            tectum::ErrorKind::Io,
            format!(
                "{}: the folder {} does not exist",
                path.display(),
                folder.display()
            ),
        ));
    }
    // Removes itself.
    PartialFile::create(path).map(drop)
}

impl TypedValueParser for FileEnding {
    type Value = PathBuf;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> std::result::Result<PathBuf, clap::Error> {
        self.parse(command, argument, value.to_owned())
    }

    fn parse(
        &self,
        _: &Command,
        argument: Option<&Arg>,
        value: OsString,
    ) -> std::result::Result<PathBuf, clap::Error> {
        let path = PathBuf::from(value);
        if let Some(fault) = self.fault(&path) {
            return Err(refusal(argument, ErrorKind::ValueValidation, &fault));
        }
        check_writable(&path)
            .map_err(|error| refusal(argument, ErrorKind::Io, &error.messages().join(": ")))?;
        Ok(path)
    }
}

/// The name of a folder for pictures, for `value_parser`: a name with the ending of a picture is
/// refused, unless there is such a folder.
#[derive(Debug, Clone, Copy)]
pub struct PictureFolder;

impl PictureFolder {
    fn fault(path: &Path) -> Option<String> {
        const PICTURES: [&str; 7] = ["png", "svg", "jpg", "jpeg", "gif", "pdf", "webp"];
        let ending = path
            .extension()
            .map(|ending| ending.to_string_lossy().to_ascii_lowercase())?;
        let is_picture = PICTURES.contains(&ending.as_str()) && !path.is_dir();
        is_picture.then(|| {
            format!(
                "{}: this option names a folder, which receives several pictures; for example {}",
                path.display(),
                path.with_extension("").display()
            )
        })
    }
}

impl TypedValueParser for PictureFolder {
    type Value = PathBuf;

    fn parse_ref(
        &self,
        _: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> std::result::Result<PathBuf, clap::Error> {
        let path = PathBuf::from(value);
        match Self::fault(&path) {
            Some(fault) => Err(refusal(argument, ErrorKind::ValueValidation, &fault)),
            None => Ok(path),
        }
    }
}

/// The error of a value, which names its option: a message alone, without a context, by which
/// [`crate::usage`] knows it.
fn refusal(argument: Option<&Arg>, kind: ErrorKind, fault: &str) -> clap::Error {
    let option = argument
        .and_then(Arg::get_long)
        .map_or_else(String::new, |name| format!("--{name} "));
    clap::Error::raw(kind, format!("{option}{fault}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_ending_and_none_are_refused() {
        let fault = |endings: &'static [&'static str], path: &str| {
            FileEnding(endings).fault(Path::new(path))
        };
        assert!(
            fault(&["npy"], "a/v.npy").is_none() && fault(&["png", "svg"], "a.b.svg").is_none()
        );
        assert_eq!(
            fault(&["npy"], "v.csv"),
            Some(
                "v.csv: what is written is not csv; a name that ends in .npy is needed".to_owned()
            )
        );
        assert_eq!(
            fault(&["npy"], "/dev/stdout"),
            Some("/dev/stdout: a name that ends in .npy is needed".to_owned())
        );
        assert_eq!(
            fault(&["npy", "csv"], "v.parquet")
                .map(|fault| fault.ends_with("a name that ends in .npy or .csv is needed")),
            Some(true)
        );
    }

    #[test]
    fn a_folder_that_does_not_exist_is_named_and_nothing_is_left() {
        let folder = std::env::temp_dir().join(format!("tectum-writable-{}", std::process::id()));
        let message =
            |path: &Path| check_writable(path).map_err(|error| error.messages().join(": "));
        let missing = format!("{0}/v.npy: the folder {0} does not exist", folder.display());
        assert_eq!(message(&folder.join("v.npy")), Err(missing));
        std::fs::create_dir_all(folder.join("d.npy")).expect("writable");
        assert!(message(&folder.join("d.npy")).is_err_and(|message| message.contains("d.npy")));
        assert_eq!(message(&folder.join("v.npy")), Ok(()));
        assert_eq!(
            std::fs::read_dir(&folder).expect("there").count(),
            1,
            "the folder alone"
        );
        std::fs::remove_dir_all(&folder).expect("ours");
    }

    #[test]
    fn a_folder_has_no_name_of_a_picture() {
        let fault = |path: &str| PictureFolder::fault(Path::new(path));
        assert!(fault("pictures").is_none() && fault("run.1").is_none());
        assert_eq!(
            fault("a/pic.PNG").as_deref(),
            Some(
                "a/pic.PNG: this option names a folder, which receives several pictures; for example a/pic"
            )
        );
    }
}
