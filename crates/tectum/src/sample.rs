//! Samples: small files that crates ship, to try functions and commands with.

use std::path::{Path, PathBuf};

use crate::{Error, Result, file};

/// A file, or a folder of files, of at most a few hundred kilobytes.
#[derive(Debug)]
pub struct Sample {
    /// The name.
    pub name: &'static str,
    /// Its purpose.
    pub about: &'static str,
    /// Names and contents of its files. One alone is written as a file, several as a folder.
    pub files: &'static [(&'static str, &'static [u8])],
}

impl Sample {
    /// Finds a sample among some.
    ///
    /// # Errors
    /// `Invalid` for a name that is not among them; the error lists theirs.
    pub fn find(
        samples: impl IntoIterator<Item = &'static Sample, IntoIter: Clone>,
        name: &str,
    ) -> Result<&'static Sample> {
        let samples = samples.into_iter();
        let known = || {
            samples
                .clone()
                .map(|sample| sample.name)
                .collect::<Vec<_>>()
                .join(", ")
        };
        samples
            .clone()
            .find(|sample| sample.name == name)
            .ok_or_else(|| {
                Error::invalid(format!(
                    "sample {name:?} is not built in; built in: {}",
                    known()
                ))
            })
    }

    /// Where it is written if nothing else is said: the name of its only file, or its own.
    pub fn default_path(&self) -> PathBuf {
        match self.files {
            [(file, _)] => PathBuf::from(file),
            _ => PathBuf::from(self.name),
        }
    }

    /// Bytes of all its files.
    pub fn bytes(&self) -> usize {
        self.files.iter().map(|(_, bytes)| bytes.len()).sum()
    }

    /// Writes it to a path that does not exist; the files of a folder become visible together.
    ///
    /// # Errors
    /// `Invalid` for a path that exists; `Io` for one that cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let exists = || {
            Error::invalid(format!(
                "sample {}: {} exists; choose another path",
                self.name,
                path.display()
            ))
        };
        if path.exists() {
            return Err(exists());
        }
        match self.files {
            [(_, bytes)] => file::write_new(path, bytes)?
                .then_some(())
                .ok_or_else(exists),
            files => write_folder(path, files),
        }
    }
}

fn write_folder(folder: &Path, files: &[(&str, &[u8])]) -> Result<()> {
    let mut partial = folder.as_os_str().to_owned();
    partial.push(format!(".partial-{}", std::process::id()));
    let partial = PathBuf::from(partial);
    let written = || {
        std::fs::create_dir_all(&partial).map_err(|source| Error::io(partial.display(), source))?;
        files
            .iter()
            .try_for_each(|(name, bytes)| file::write(&partial.join(name), bytes))?;
        file::rename_folder(&partial, folder)
    };
    written().inspect_err(|_| {
        let _ = std::fs::remove_dir_all(&partial);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    static FILE: Sample = Sample {
        name: "one",
        about: "a file",
        files: &[("one.txt", b"1")],
    };
    static FOLDER: Sample = Sample {
        name: "two",
        about: "a folder",
        files: &[("a.txt", b"a"), ("b.txt", b"bc")],
    };

    #[test]
    fn a_sample_is_written_whole_and_never_over_another() {
        let place = std::env::temp_dir().join(format!("tectum-sample-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("writable");
        for (sample, files) in [
            (&FILE, vec!["one.txt"]),
            (&FOLDER, vec!["two/a.txt", "two/b.txt"]),
        ] {
            let path = place.join(sample.default_path());
            sample.write(&path).expect("writable");
            let contents: usize = files
                .iter()
                .map(|file| std::fs::read(place.join(file)).expect("there").len())
                .sum();
            assert_eq!(contents, sample.bytes(), "{}", sample.name);
            assert!(
                sample
                    .write(&path)
                    .expect_err("it exists")
                    .to_string()
                    .ends_with("exists; choose another path")
            );
        }
        assert_eq!(
            std::fs::read_dir(&place).expect("there").count(),
            2,
            "no partial folder is left"
        );
        std::fs::remove_dir_all(&place).expect("ours");
        assert!(
            FOLDER.write(Path::new("/proc/no/such")).is_err()
                && FILE.write(Path::new("/proc/no/such")).is_err()
        );
        assert_eq!(
            Sample::find([&FILE, &FOLDER], "two").expect("there").name,
            "two"
        );
        assert!(
            Sample::find([&FILE, &FOLDER], "three")
                .is_err_and(|error| error.to_string().ends_with("built in: one, two"))
        );
    }
}
