//! Atomic file writes: after a kill or a power loss, a reader finds the old file or the new one,
//! never a part.
//!
//! ```text
//! NAME.UNIQUE.partial in the same folder → write → sync the file → rename → sync the folder
//! ```
//!
//! The partial name is unique, so any number of threads and processes may write the same path. An
//! error removes the partial file; a killed process leaves it behind. A link stays: its target is
//! replaced. A path that is neither a file nor a folder, as `/dev/stdout` or a named pipe, cannot be
//! replaced: the partial file is in the folder of temporary files, and its bytes are copied.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// A file being written; dropped before [`PartialFile::commit`], it removes itself.
#[derive(Debug)]
pub struct PartialFile {
    file: File,
    partial: PathBuf,
    path: PathBuf,
    /// The path is a device, a pipe or a socket.
    is_special: bool,
    is_renamed: bool,
}

impl PartialFile {
    /// Creates the partial file of a path in the path's folder; of a device or a pipe in the folder of
    /// temporary files.
    ///
    /// # Errors
    /// `Io` naming the path: a folder that does not exist or cannot be written; a path that is a
    /// folder.
    pub fn create(path: &Path) -> Result<Self> {
        Self::with_suffix(path, ".partial".into())
    }

    fn with_suffix(path: &Path, suffix: OsString) -> Result<Self> {
        let failed = |source| Error::io(path.display(), source);
        let metadata = path.metadata().ok();
        let is_special = metadata.is_some_and(|found| !found.is_file() && !found.is_dir());
        let path = match path.canonicalize() {
            Ok(target) if path.is_symlink() && !is_special => target,
            _ => path.to_owned(),
        };
        let name = path
            .file_name()
            .filter(|_| !path.is_dir())
            .ok_or_else(|| failed(io::ErrorKind::IsADirectory.into()))?;
        let temporary = std::env::temp_dir();
        let folder = if is_special {
            temporary.as_path()
        } else {
            folder_of(&path)
        };
        let (file, partial) = create_unique(folder, name, &suffix).map_err(failed)?;
        let partial = Self {
            file,
            partial,
            path,
            is_special,
            is_renamed: false,
        };
        reached(Step::Created(&partial.partial)).map_err(failed)?;
        Ok(partial)
    }

    /// Renames the file to its final name and replaces an existing file.
    ///
    /// # Errors
    /// `Io` naming the path; until the rename the old file stays.
    ///
    /// # Cost
    /// Waits for the disk twice.
    pub fn commit(self) -> Result<()> {
        self.persist(|from, to| std::fs::rename(from, to))
            .map_err(|(path, source)| Error::io(path.display(), source))
    }

    /// Renames the file to its final name unless it exists: then returns false and changes nothing.
    ///
    /// # Errors
    /// As [`PartialFile::commit`].
    pub fn commit_new(self) -> Result<bool> {
        if self.is_special {
            return Ok(false);
        }
        match self.persist(rename_new) {
            Ok(()) => Ok(true),
            Err((_, source)) if source.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            Err((path, source)) => Err(Error::io(path.display(), source)),
        }
    }

    fn persist(
        mut self,
        rename: impl FnOnce(&Path, &Path) -> io::Result<()>,
    ) -> std::result::Result<(), (PathBuf, io::Error)> {
        if self.is_special {
            let copied = File::open(&self.partial).and_then(|mut from| {
                io::copy(
                    &mut from,
                    &mut File::options().write(true).open(&self.path)?,
                )
            });
            return copied
                .map(|_| ())
                .map_err(|source| (std::mem::take(&mut self.path), source));
        }
        let synced = self
            .file
            .sync_all()
            .and_then(|()| reached(Step::Synced(&self.partial)));
        let renamed = synced.and_then(|()| rename(&self.partial, &self.path));
        self.is_renamed = renamed.is_ok();
        let done = renamed
            .and_then(|()| reached(Step::Renamed(&self.partial, &self.path)))
            .and_then(|()| sync_names(folder_of(&self.path)));
        done.map_err(|source| (std::mem::take(&mut self.path), source))
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.is_renamed {
            let _ = std::fs::remove_file(&self.partial);
        }
    }
}

impl Write for PartialFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        reached(Step::Written(&self.partial))?;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for PartialFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

/// Writes a file atomically and replaces an existing one.
///
/// # Errors
/// `Io` naming the path; before the rename the old file stays.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    filled(path, bytes)?.commit()
}

/// Writes a file atomically unless it exists: then returns false.
///
/// # Errors
/// As [`write()`].
pub fn write_new(path: &Path, bytes: &[u8]) -> Result<bool> {
    if path.exists() {
        Ok(false)
    } else {
        filled(path, bytes)?.commit_new()
    }
}

/// Lets `make` write the partial file, which has the same extension, by its path, and renames it to
/// its final name.
///
/// # Errors
/// What `make` reports, with the path before it; as [`write()`].
pub fn write_with(
    path: &Path,
    make: impl FnOnce(&Path) -> std::result::Result<(), String>,
) -> Result<()> {
    let mut suffix = OsString::from(".partial");
    if let Some(extension) = path.extension() {
        suffix.push(".");
        suffix.push(extension);
    }
    let partial = PartialFile::with_suffix(path, suffix)?;
    make(&partial.partial).map_err(|message| Error::data(message).at(path.display()))?;
    reached(Step::Written(&partial.partial)).map_err(|source| Error::io(path.display(), source))?;
    partial.commit()
}

/// Renames a folder, whose files are written, to its final name.
///
/// # Errors
/// `Io` naming the new path.
pub fn rename_folder(from: &Path, to: &Path) -> Result<()> {
    let renamed = std::fs::rename(from, to)
        .and_then(|()| reached(Step::Renamed(from, to)))
        .and_then(|()| sync_names(folder_of(to)));
    renamed.map_err(|source| Error::io(to.display(), source))
}

/// Makes renames in a folder survive a power loss.
///
/// # Errors
/// `Io` naming the folder.
pub fn sync_folder(folder: &Path) -> Result<()> {
    sync_names(folder).map_err(|source| Error::io(folder.display(), source))
}

fn filled(path: &Path, bytes: &[u8]) -> Result<PartialFile> {
    let mut partial = PartialFile::create(path)?;
    partial
        .write_all(bytes)
        .map_err(|source| Error::io(path.display(), source))?;
    Ok(partial)
}

/// Creates a file `NAME.UNIQUE` with a suffix, which no other thread or process has: of a name that
/// exists, the next is tried.
fn create_unique(folder: &Path, name: &OsStr, suffix: &OsStr) -> io::Result<(File, PathBuf)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let mut unique = name.to_owned();
        unique.push(format!(
            ".{}-{}",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        unique.push(suffix);
        let partial = folder.join(unique);
        match File::create_new(&partial) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, partial)),
        }
    }
}

/// Renames a file unless the new name exists.
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    match std::fs::hard_link(from, to) {
        Ok(()) => std::fs::remove_file(from),
        // File systems without links.
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists && !to.exists() => {
            std::fs::rename(from, to)
        }
        Err(error) => Err(error),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Only Unix can sync a folder; elsewhere the file system's journal orders renames.
fn sync_names(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    match File::open(folder)?.sync_all() {
        // Some network file systems do not support it.
        Err(error) if error.kind() != io::ErrorKind::InvalidInput => return Err(error),
        _ => {}
    }
    reached(Step::FolderSynced(folder))
}

/// A step of an atomic write.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'p> {
    /// The partial file exists.
    Created(&'p Path),
    /// Bytes were written into the partial file.
    Written(&'p Path),
    /// What was written is on the disk.
    Synced(&'p Path),
    /// The partial file, or a folder, has its final name.
    Renamed(&'p Path, &'p Path),
    /// The names in a folder are on the disk.
    FolderSynced(&'p Path),
}

type Watch = Box<dyn FnMut(Step<'_>) -> io::Result<()>>;

thread_local! {
    static WATCH: RefCell<Option<Watch>> = const { RefCell::new(None) };
}

/// Runs something while `watch` sees every step of this thread and may make it fail: for tests of
/// crashes and full disks.
#[doc(hidden)]
pub fn watched<T>(
    watch: impl FnMut(Step<'_>) -> io::Result<()> + 'static,
    run: impl FnOnce() -> T,
) -> T {
    WATCH.set(Some(Box::new(watch)));
    let result = run();
    WATCH.set(None);
    result
}

fn reached(step: Step<'_>) -> io::Result<()> {
    WATCH.with_borrow_mut(|watch| watch.as_mut().map_or(Ok(()), |watch| watch(step)))
}
