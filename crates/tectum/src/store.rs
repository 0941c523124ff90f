//! A persistent cache of expensive results, in files of the user's cache folder.
//!
//! An entry is found by its whole key, which is stored in the file next to the value and a
//! checksum: a file that is damaged, of another key or of another format counts as missing and is
//! rewritten. Files appear whole or not at all. A store that cannot be read or written only costs
//! time.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::time::SystemTime;

use crate::content_hash::ContentHash;
use crate::file;

/// The file format.
const MAGIC: &[u8; 8] = b"tectum\0\x02";
/// The suffix of file names.
const ENDING: &str = ".entry";
/// Maximum files and bytes of the shared store.
const MAX_FILES: usize = 512;
const MAX_BYTES: u64 = 64 << 20;

/// The folder where this user's caches are, `tectum` in the system's, if it names one.
pub(crate) fn cache_folder() -> Option<PathBuf> {
    let variable = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let home = || {
        Some(variable("HOME")?.join(if cfg!(target_os = "macos") {
            "Library/Caches"
        } else {
            ".cache"
        }))
    };
    let folder = variable("XDG_CACHE_HOME")
        .or_else(|| variable("LOCALAPPDATA"))
        .or_else(home)?;
    Some(folder.join("tectum"))
}

/// A folder of entries, bounded in number and bytes; the least recently used are removed first.
pub(crate) struct Store {
    folder: PathBuf,
    max_files: usize,
    max_bytes: u64,
}

impl Store {
    /// The user's store of device code. The crate's own tests have none: they must not depend on
    /// what a user has.
    pub fn shared() -> Option<&'static Store> {
        static SHARED: LazyLock<Option<Store>> = LazyLock::new(|| {
            let folder = cache_folder().filter(|_| !cfg!(test))?;
            Some(Store::new(folder.join("code"), MAX_FILES, MAX_BYTES))
        });
        SHARED.as_ref()
    }

    pub fn new(folder: PathBuf, max_files: usize, max_bytes: u64) -> Self {
        Self {
            folder,
            max_files,
            max_bytes,
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        let path = self.path(key);
        let file = std::fs::read(&path).ok()?;
        let value = decode(&file, key)?.to_vec();
        // The modification time is the last use.
        let _ = std::fs::File::options()
            .append(true)
            .open(&path)
            .and_then(|file| file.set_modified(SystemTime::now()));
        Some(value)
    }

    /// Stores a value.
    pub fn put(&self, key: &str, value: &[u8]) {
        let path = self.path(key);
        if std::fs::create_dir_all(&self.folder).is_ok() {
            let _ = file::write(&path, &encode(key, value));
        }
        self.trim(&path);
    }

    fn path(&self, key: &str) -> PathBuf {
        self.folder
            .join(format!("{}{ENDING}", ContentHash::of(key.as_bytes())))
    }

    /// Removes the least recently used entries until the rest is within bounds; `newest` stays.
    fn trim(&self, newest: &Path) {
        let entries = std::fs::read_dir(&self.folder)
            .into_iter()
            .flatten()
            .flatten();
        let mut files: Vec<(SystemTime, u64, PathBuf)> = entries
            .filter(|entry| {
                entry
                    .file_name()
                    .to_str()
                    .is_some_and(|name| name.ends_with(ENDING) || name.ends_with(".partial"))
            })
            .filter_map(|entry| {
                entry
                    .metadata()
                    .ok()
                    .and_then(|facts| Some((facts.modified().ok()?, facts.len(), entry.path())))
            })
            .collect();
        files.sort();
        let (mut count, mut bytes) = (
            files.len(),
            files.iter().map(|(_, bytes, _)| bytes).sum::<u64>(),
        );
        for (_, size, path) in files.iter().filter(|(_, _, path)| path != newest) {
            if count <= self.max_files && bytes <= self.max_bytes {
                return;
            }
            let _ = std::fs::remove_file(path);
            (count, bytes) = (count - 1, bytes - size);
        }
    }
}

fn encode(key: &str, value: &[u8]) -> Vec<u8> {
    let length = (key.len() as u64).to_le_bytes();
    [
        &MAGIC[..],
        ContentHash::of(value).bytes(),
        &length,
        key.as_bytes(),
        value,
    ]
    .concat()
}

fn decode<'f>(file: &'f [u8], key: &str) -> Option<&'f [u8]> {
    let rest = file.strip_prefix(MAGIC)?;
    let (checksum, rest) = rest.split_first_chunk()?;
    let (length, rest) = rest.split_first_chunk()?;
    let (stored, value) =
        rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    (stored == key.as_bytes() && ContentHash::of(value).bytes() == checksum).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder that is removed at the end.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let path =
                std::env::temp_dir().join(format!("tectum-store-{name}-{}", std::process::id()));
            let _ = std::fs::remove_dir_all(&path);
            Self(path)
        }

        fn files(&self) -> Vec<PathBuf> {
            let mut files: Vec<PathBuf> = std::fs::read_dir(&self.0)
                .into_iter()
                .flatten()
                .flatten()
                .map(|entry| entry.path())
                .collect();
            files.sort();
            files
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_is_kept_is_found_by_its_whole_key() {
        let folder = Folder::new("keys");
        let store = Store::new(folder.0.clone(), 8, 1 << 20);
        assert_eq!(store.get("a"), None);
        store.put("a", b"first");
        store.put("b", b"");
        assert_eq!(
            (store.get("a"), store.get("b"), store.get("ab")),
            (Some(b"first".to_vec()), Some(Vec::new()), None)
        );
        // A file of another key under this one's name: as if two hashes were equal.
        std::fs::copy(store.path("a"), store.path("c")).expect("writable");
        assert_eq!(store.get("c"), None);
        store.put("c", b"third");
        assert_eq!(store.get("c"), Some(b"third".to_vec()));
    }

    #[test]
    fn damaged_files_are_ignored_and_rewritten() {
        let folder = Folder::new("damaged");
        let store = Store::new(folder.0.clone(), 8, 1 << 20);
        store.put("key", b"some value");
        let whole = std::fs::read(store.path("key")).expect("there");
        for length in 0..whole.len() {
            std::fs::write(store.path("key"), &whole[..length]).expect("writable");
            assert_eq!(store.get("key"), None, "{length} bytes");
        }
        for index in 0..whole.len() {
            let mut changed = whole.clone();
            changed[index] ^= 0x20;
            std::fs::write(store.path("key"), &changed).expect("writable");
            assert_eq!(store.get("key"), None, "byte {index}");
        }
        store.put("key", b"some value");
        assert_eq!(
            (store.get("key"), folder.files().len()),
            (Some(b"some value".to_vec()), 1)
        );
    }

    #[test]
    fn the_longest_unused_go_first_and_foreign_files_stay() {
        let folder = Folder::new("bounded");
        let store = Store::new(folder.0.clone(), 3, 400);
        std::fs::create_dir_all(&folder.0).expect("writable");
        std::fs::write(folder.0.join("notes.txt"), [0; 1000]).expect("writable");
        let age = |key: &str, seconds: u64| {
            let file = std::fs::File::options()
                .append(true)
                .open(store.path(key))
                .expect("there");
            file.set_modified(SystemTime::now() - std::time::Duration::from_secs(seconds))
                .expect("ours");
        };
        for (key, seconds) in [("a", 30), ("b", 20), ("c", 10)] {
            store.put(key, b"small");
            age(key, seconds);
        }
        assert!(store.get("a").is_some(), "a use makes it the newest");
        store.put("d", b"small");
        assert_eq!(
            ["a", "b", "c", "d"].map(|key| store.get(key).is_some()),
            [true, false, true, true]
        );
        age("c", 10);
        store.put("e", &[0; 370]);
        // 400 bytes: the new one alone, whatever else is newer than the oldest.
        assert_eq!(
            ["a", "c", "d", "e"].map(|key| store.path(key).exists()),
            [false, false, false, true]
        );
        assert!(folder.0.join("notes.txt").exists());
    }

    #[test]
    fn a_folder_that_cannot_be_written_costs_nothing_else() {
        let folder = Folder::new("file");
        std::fs::write(&folder.0, b"a file").expect("writable");
        let store = Store::new(folder.0.clone(), 8, 1 << 20);
        store.put("key", b"value");
        assert_eq!(store.get("key"), None);
        std::fs::remove_file(&folder.0).expect("there");
    }
}
