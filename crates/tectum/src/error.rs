//! The one public error: an opaque value with a [`ErrorKind`], a message that names the place, and
//! its cause.

use std::fmt;

/// The class of failure of an [`Error`]; the command line maps each to an exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The caller's mistake: a wrong shape, size, name or value.
    Invalid,
    /// Malformed or missing data in a file.
    Data,
    /// A device, kernel or feature that does not exist here.
    Unsupported,
    /// Memory ran out after the pool was trimmed and the allocation retried.
    OutOfMemory,
    /// The device stopped answering or reported a fault; its state is lost.
    DeviceLost,
    /// The operating system refused a file or another resource.
    Io,
    /// A check ran and its result is wrong: a verification or a regression failed.
    Mismatch,
    /// The caller broke off work that has no result before its end.
    Cancelled,
}

impl ErrorKind {
    /// The process exit code of this kind (1 is a failed check, 2 the caller's mistake, 130 that of
    /// a shell for Ctrl-C).
    pub fn exit_code(self) -> u8 {
        match self {
            ErrorKind::Mismatch => 1,
            ErrorKind::Invalid => 2,
            ErrorKind::Data => 3,
            ErrorKind::Unsupported => 4,
            ErrorKind::OutOfMemory => 5,
            ErrorKind::DeviceLost => 6,
            ErrorKind::Io => 7,
            ErrorKind::Cancelled => 130,
        }
    }
}

/// A failure with its kind, the given and the required value, and the place.
///
/// Its `Debug` form, which `unwrap` and a `main` that returns it print, is the kind before the
/// text.
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// The result type of every fallible function of the project's libraries.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Makes an error of a kind with a one-line message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// The caller's mistake.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Invalid, message)
    }

    /// Malformed data.
    pub fn data(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Data, message)
    }

    /// Something this device or build does not offer.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// A lost or faulty device.
    pub fn device_lost(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::DeviceLost, message)
    }

    /// Work without a result that its caller broke off.
    pub fn cancelled(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Cancelled, message)
    }

    /// An operating-system error on `what` (usually a path).
    pub fn io(what: impl fmt::Display, source: std::io::Error) -> Self {
        Self {
            kind: ErrorKind::Io,
            message: what.to_string(),
            source: Some(Box::new(source)),
        }
    }

    /// Attaches a cause.
    #[must_use]
    pub fn with_source(mut self, source: impl std::error::Error + Send + Sync + 'static) -> Self {
        self.source = Some(Box::new(source));
        self
    }

    /// Puts `place` before the message, keeping kind and cause.
    #[must_use]
    pub fn at(mut self, place: impl fmt::Display) -> Self {
        self.message = format!("{place}: {}", self.message);
        self
    }

    /// The class of failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The cause, for example a [`std::io::Error`] to downcast to. It is part of the text, so
    /// [`std::error::Error::source`] is `None`.
    pub fn cause(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }

    /// The message, then those of the causes; the text is these with `: ` between them. Common
    /// errors of the operating system are in plain words.
    pub fn messages(&self) -> Vec<String> {
        let mut messages = vec![self.message.clone()];
        let mut cause = self.cause();
        while let Some(error) = cause {
            match error.downcast_ref::<Error>() {
                Some(error) => {
                    messages.extend(error.messages());
                    break;
                }
                None => messages.push(
                    error
                        .downcast_ref::<std::io::Error>()
                        .map_or_else(|| error.to_string(), io_text),
                ),
            }
            cause = error.source();
        }
        messages
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.messages().join(": "))
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {self}", self.kind)
    }
}

impl std::error::Error for Error {}

/// What the operating system reported; an error with a text of its own keeps it.
fn io_text(error: &std::io::Error) -> String {
    use std::io::ErrorKind::{
        AlreadyExists, DirectoryNotEmpty, IsADirectory, NotADirectory, NotFound, PermissionDenied,
        ReadOnlyFilesystem, StorageFull,
    };
    let plain = match error.kind() {
        NotFound => "there is no such file or folder",
        PermissionDenied => "permission denied",
        AlreadyExists => "it exists already",
        IsADirectory => "it is a folder, and a file is needed",
        NotADirectory => "a part of the path is a file, and a folder is needed",
        DirectoryNotEmpty => "the folder is not empty",
        ReadOnlyFilesystem => "the file system is read-only",
        StorageFull => "no space is left on the disk",
        _ => return error.to_string(),
    };
    if error.get_ref().is_some() {
        error.to_string()
    } else {
        plain.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_has_every_cause_once() {
        let io = || Error::io("a.toml", std::io::Error::from(std::io::ErrorKind::NotFound));
        assert_eq!(io().to_string(), "a.toml: there is no such file or folder");
        let outer = Error::data("scenario").with_source(io()).at("run");
        assert_eq!(
            outer.messages(),
            ["run: scenario", "a.toml", "there is no such file or folder"]
        );
        assert_eq!(
            outer.to_string(),
            "run: scenario: a.toml: there is no such file or folder"
        );
        assert_eq!(
            format!("{outer:?}"),
            "Data: run: scenario: a.toml: there is no such file or folder"
        );
        assert!(
            io().cause()
                .and_then(|cause| cause.downcast_ref::<std::io::Error>())
                .is_some()
        );
        // An error with a text of its own keeps it, and so does one that has no plain words.
        let own = Error::io(
            "a.mcap",
            std::io::Error::new(std::io::ErrorKind::NotFound, "no chunk"),
        );
        assert_eq!(own.to_string(), "a.mcap: no chunk");
        let memory = std::io::Error::from_raw_os_error(12);
        assert_eq!(
            Error::io("lock", std::io::Error::from_raw_os_error(12)).to_string(),
            format!("lock: {memory}")
        );
    }
}
