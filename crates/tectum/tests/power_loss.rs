//! Contents of atomically written files after a power loss or a kill, at every step of writing
//! them.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use tectum::file::{Step, watched};

/// A folder of one test, removed at the end.
pub struct Place(pub PathBuf);

impl Place {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("tectum-place-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("writable");
        Self(path)
    }

    pub fn names(&self) -> Vec<String> {
        std::fs::read_dir(&self.0)
            .expect("there")
            .map(|entry| {
                entry
                    .expect("there")
                    .file_name()
                    .into_string()
                    .expect("text")
            })
            .collect()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The files of a folder that are guaranteed to be on disk: synced bytes, under names whose folder
/// was synced. Drops all others.
struct Disk {
    /// By name; none if the bytes were never synced.
    files: BTreeMap<PathBuf, Option<Vec<u8>>>,
    /// Contents of partial files, by name.
    synced: BTreeMap<PathBuf, Vec<u8>>,
    /// Renames whose folder has not been synced since.
    renames: Vec<(PathBuf, PathBuf)>,
}

impl Disk {
    /// Everything in a folder is on the disk.
    fn of(folder: &Path) -> Self {
        let mut disk = Self {
            files: BTreeMap::new(),
            synced: BTreeMap::new(),
            renames: Vec::new(),
        };
        disk.add(folder);
        disk
    }

    fn add(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.is_dir() => self.add(&path),
                path => drop(self.files.insert(path.clone(), std::fs::read(path).ok())),
            }
        }
    }

    fn step(&mut self, step: Step<'_>) {
        match step {
            Step::Created(_) | Step::Written(_) => {}
            Step::Synced(partial) => drop(self.synced.insert(
                partial.to_owned(),
                std::fs::read(partial).expect("it was written"),
            )),
            Step::Renamed(from, to) => self.renames.push((from.to_owned(), to.to_owned())),
            Step::FolderSynced(folder) => {
                let (done, left) = std::mem::take(&mut self.renames)
                    .into_iter()
                    .partition(|(_, to)| to.parent() == Some(folder));
                self.renames = left;
                self.files = self.renamed(&done);
            }
        }
    }

    /// The files after some renames.
    fn renamed(&self, renames: &[(PathBuf, PathBuf)]) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
        let mut files = self.files.clone();
        for (from, to) in renames {
            let inside: Vec<PathBuf> = files
                .keys()
                .filter(|path| path.starts_with(from))
                .cloned()
                .collect();
            for path in &inside {
                let bytes = files.remove(path).expect("listed");
                files.insert(to.join(path.strip_prefix(from).expect("inside")), bytes);
            }
            if inside.is_empty() {
                files.insert(to.clone(), self.synced.get(from).cloned());
            }
        }
        files
    }
}

fn copied(files: &BTreeMap<PathBuf, Option<Vec<u8>>>, root: &Path, to: &Path) {
    let _ = std::fs::remove_dir_all(to);
    for (path, bytes) in files {
        let path = to.join(path.strip_prefix(root).expect("inside"));
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        // Unsynced contents may be arbitrary bytes of any length.
        std::fs::write(path, bytes.as_deref().unwrap_or(b"\0\0\0")).expect("writable");
    }
}

/// Runs a function that writes files in `folder`, on this thread. After each step, `check` receives
/// the step's number and a folder: once in the state after a kill, and after a power loss, with and
/// without the pending renames. Returns the number of steps.
pub fn each_step<T>(
    folder: &Path,
    write: impl FnOnce() -> T,
    check: impl Fn(usize, &Path) + 'static,
) -> (T, usize) {
    let (root, lost) = (folder.to_owned(), folder.with_extension("lost"));
    let mut disk = Disk::of(folder);
    let steps = Rc::new(Cell::new(0));
    let count = steps.clone();
    let watch = move |step: Step<'_>| -> io::Result<()> {
        count.set(count.get() + 1);
        disk.step(step);
        check(count.get(), &root);
        for files in [disk.files.clone(), disk.renamed(&disk.renames)] {
            copied(&files, &root, &lost);
            check(count.get(), &lost);
        }
        let _ = std::fs::remove_dir_all(&lost);
        Ok(())
    };
    let result = watched(watch, write);
    (result, steps.get())
}

/// Runs a function repeatedly, on this thread; each time the next step fails, until none does;
/// calls `check` after each failure.
pub fn each_failure<T, E>(write: impl Fn() -> Result<T, E>, check: impl Fn(usize)) -> T {
    for failing in 1.. {
        let mut left = failing;
        let fail = move |_: Step<'_>| -> io::Result<()> {
            left -= 1;
            if left == 0 {
                Err(io::ErrorKind::StorageFull.into())
            } else {
                Ok(())
            }
        };
        match watched(fail, &write) {
            Ok(value) => return value,
            Err(_) => check(failing),
        }
        assert!(failing < 1000, "it never works");
    }
    unreachable!("the numbers do not end")
}
