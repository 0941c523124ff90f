//! Sample models: small ones with random weights, which every build has, to try loading and runs with.

use std::path::{Path, PathBuf};

use tectum::{Error, Result, file};

/// A model of a few hundred kilobytes; its results mean nothing.
///
/// # Example
/// ```
/// use tectum_transformer::{Model, Sample};
/// let folder = std::env::temp_dir().join(format!("sample-{}", std::process::id()));
/// Sample::named("sample-decoder")?.write(&folder)?;
/// assert!(matches!(Model::open(&folder)?, Model::Decoder(model) if model.sizes().family == "llama"));
/// # std::fs::remove_dir_all(&folder).map_err(|source| tectum::Error::io(folder.display(), source))?;
/// # Ok::<(), tectum::Error>(())
/// ```
#[derive(Debug)]
pub struct Sample {
    /// The name.
    pub name: &'static str,
    /// Its purpose.
    pub about: &'static str,
    /// Names and contents of the files of its folder.
    pub files: [(&'static str, &'static [u8]); 3],
}

/// The sample models.
pub static SAMPLES: [Sample; 2] = [
    Sample {
        name: "sample-encoder",
        about: "a BERT encoder of two layers with random weights, for embed",
        files: [
            ("config.json", include_bytes!("../models/sample-encoder/config.json")),
            ("tokenizer.json", include_bytes!("../models/sample-encoder/tokenizer.json")),
            ("model.safetensors", include_bytes!("../models/sample-encoder/model.safetensors")),
        ],
    },
    Sample {
        name: "sample-decoder",
        about: "a Llama decoder of two layers with random weights, for generate",
        files: [
            ("config.json", include_bytes!("../models/sample-decoder/config.json")),
            ("tokenizer.json", include_bytes!("../models/sample-decoder/tokenizer.json")),
            ("model.safetensors", include_bytes!("../models/sample-decoder/model.safetensors")),
        ],
    },
];

impl Sample {
    /// Finds a sample.
    ///
    /// # Errors
    /// `Invalid` for a name that is not built in; the error lists the known ones.
    pub fn named(name: &str) -> Result<&'static Sample> {
        let known = || SAMPLES.iter().map(|sample| sample.name).collect::<Vec<_>>().join(", ");
        SAMPLES.iter().find(|sample| sample.name == name).ok_or_else(|| Error::invalid(format!("sample {name:?} is not built in; built in: {}", known())))
    }

    /// Writes a new folder with all its files: they become visible together.
    ///
    /// # Errors
    /// `Invalid` for a folder that exists; `Io` for one that cannot be written.
    pub fn write(&self, folder: &Path) -> Result<()> {
        if folder.exists() {
            return Err(Error::invalid(format!("sample {}: {} exists; choose another folder", self.name, folder.display())));
        }
        let mut partial = folder.as_os_str().to_owned();
        partial.push(format!(".partial-{}", std::process::id()));
        let partial = PathBuf::from(partial);
        let written = || {
            std::fs::create_dir_all(&partial).map_err(|source| Error::io(partial.display(), source))?;
            self.files.iter().try_for_each(|(name, bytes)| file::write(&partial.join(name), bytes))?;
            file::rename_folder(&partial, folder)
        };
        written().inspect_err(|_| {
            let _ = std::fs::remove_dir_all(&partial);
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_is_written_whole_and_never_over_another() {
        let folder = std::env::temp_dir().join(format!("tectum-sample-{}", std::process::id()));
        Sample::named("sample-encoder").expect("built in").write(&folder).expect("writable");
        let names: std::collections::BTreeSet<_> =
            std::fs::read_dir(&folder).expect("there").filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
        assert_eq!(names.into_iter().collect::<Vec<_>>(), ["config.json", "model.safetensors", "tokenizer.json"]);
        assert!(SAMPLES[1].write(&folder).expect_err("it exists").to_string().contains("exists"));
        std::fs::remove_dir_all(&folder).expect("ours");
        assert!(SAMPLES[1].write(Path::new("/proc/no/such")).is_err());
        assert!(Sample::named("sample").is_err_and(|error| error.to_string().contains("sample-decoder")));
    }
}
