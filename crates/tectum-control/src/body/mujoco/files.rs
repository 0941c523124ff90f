//! The files that a model was read from, as a run folder lists them.

use std::path::{Path, PathBuf};

use tectum::{Error, InputFile, Result};
use toml::{Table, Value};

use super::remote::Specification;

/// The files of a model with their hashes, and the version that stepped it.
pub(super) struct Files {
    scene: PathBuf,
    /// As written in the run folder.
    pub text: String,
    files: Vec<InputFile>,
    /// The library that steps the model: hashed in receipts, as code on other machines differs.
    libraries: Vec<InputFile>,
    mujoco: String,
}

impl Files {
    /// Hashes the files that the program read.
    pub fn of(scene: &Path, specification: &Specification) -> Result<Self> {
        let hashed = |paths: &[String]| {
            let inputs = paths.iter().map(|path| InputFile::of(Path::new(path)));
            inputs.collect::<Result<Vec<_>>>()
        };
        let scene =
            std::path::absolute(scene).map_err(|source| Error::io(scene.display(), source))?;
        let version = specification.versions.get("mujoco").and_then(Value::as_str);
        let mut files = Self {
            scene,
            text: String::new(),
            files: hashed(&specification.files)?,
            libraries: hashed(&specification.libraries)?,
            mujoco: version.unwrap_or_default().to_owned(),
        };
        files.text = files.to_table().to_string();
        Ok(files)
    }

    fn to_table(&self) -> Table {
        let files = self
            .files
            .iter()
            .map(|file| (file.path.clone(), Value::from(file.hash.to_string())));
        Table::from_iter([
            ("scene".to_owned(), self.scene.display().to_string().into()),
            ("mujoco".to_owned(), self.mujoco.as_str().into()),
            ("files".to_owned(), files.collect::<Table>().into()),
        ])
    }

    /// All files that results depend on, for receipts.
    pub fn inputs(&self) -> Vec<InputFile> {
        self.files.iter().chain(&self.libraries).cloned().collect()
    }
}

/// What a run folder lists.
pub(super) struct Recorded {
    /// The model's own file.
    pub scene: PathBuf,
    mujoco: String,
    /// Paths and hashes.
    files: Vec<(String, String)>,
}

impl Recorded {
    /// Reads the list of a run folder.
    ///
    /// # Errors
    /// `Io` or `Data` naming the list.
    pub fn read(path: &Path) -> Result<Self> {
        let text =
            std::fs::read_to_string(path).map_err(|source| Error::io(path.display(), source))?;
        let refused = || Error::data(format!("{}: it does not list files", path.display()));
        let table: Table = text.parse().map_err(|_| refused())?;
        let string = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        let file =
            |(path, hash): (&String, &Value)| Some((path.clone(), hash.as_str()?.to_owned()));
        let files = table.get("files").and_then(Value::as_table);
        let files = files.and_then(|files| files.iter().map(file).collect());
        Ok(Self {
            scene: string(table.get("scene")).ok_or_else(refused)?.into(),
            mujoco: string(table.get("mujoco")).ok_or_else(refused)?,
            files: files.ok_or_else(refused)?,
        })
    }

    /// Refuses files that differ from what they were.
    ///
    /// # Errors
    /// `Io` or `Data` naming the file.
    pub fn check(&self) -> Result<()> {
        for (path, hash) in &self.files {
            if InputFile::of(Path::new(path))?.hash.to_string() != *hash {
                return Err(Error::data(format!(
                    "{path}: it has changed since the run, which is continued and repeated only with the model that it ran"
                )));
            }
        }
        Ok(())
    }

    /// Refuses another version of MuJoCo, whose steps may differ.
    ///
    /// # Errors
    /// `Data` naming the command that installs the version.
    pub fn check_version(&self, now: &Files, python: &str) -> Result<()> {
        if self.mujoco == now.mujoco {
            return Ok(());
        }
        let (was, is) = (&self.mujoco, &now.mujoco);
        Err(Error::data(format!(
            "{}: the run was computed by MuJoCo {was}, and {python} has {is}: {python} -m pip install mujoco=={was}",
            self.scene.display()
        )))
    }
}
