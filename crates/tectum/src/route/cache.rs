//! The calibration file: measured once per machine, driver and version.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Calibration, Rates};
use crate::device::DeviceInfo;
use crate::error::{Error, Result};
use crate::file;
use crate::store::cache_folder;

/// The version of the file format.
pub const CACHE_SCHEMA: &str = "tectum.calibration/1";
/// Maximum entries; the oldest are dropped first.
const MAX_ENTRIES: usize = 64;
/// Maximum size of a file that is read: many times what the entries need.
const MAX_BYTES: u64 = 1 << 20;

/// Calibrations by what they depend on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CalibrationCache {
    schema: String,
    /// Oldest first.
    entries: Vec<Entry>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    key: String,
    rates: Rates,
}

impl Default for CalibrationCache {
    fn default() -> Self {
        Self {
            schema: CACHE_SCHEMA.to_owned(),
            entries: Vec::new(),
        }
    }
}

impl CalibrationCache {
    /// Reads a cache; one that does not exist is empty.
    ///
    /// # Errors
    /// `Io`, or `Data` as [`CalibrationCache::parse`].
    pub fn load(path: &Path) -> Result<Self> {
        use std::io::Read as _;
        let file = match std::fs::File::open(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self::default());
            }
            other => other.map_err(|source| Error::io(path.display(), source))?,
        };
        let mut bytes = Vec::new();
        file.take(MAX_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|source| Error::io(path.display(), source))?;
        Self::parse(&bytes, &path.display().to_string())
    }

    /// Reads a cache from its JSON; `origin` precedes the line in messages.
    ///
    /// # Errors
    /// `Data` naming origin, line and column or the entry: text of another form or version, a rate
    /// that is not a positive number, more than a mebibyte.
    pub fn parse(bytes: &[u8], origin: &str) -> Result<Self> {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(Error::data(format!(
                "{origin}: longer than {MAX_BYTES} bytes"
            )));
        }
        let cache: Self = serde_json::from_slice(bytes)
            .map_err(|source| Error::data(format!("{origin}: {source}")))?;
        if cache.schema != CACHE_SCHEMA {
            return Err(Error::data(format!(
                "{origin}: schema {:?}; {CACHE_SCHEMA:?} is needed",
                cache.schema
            )));
        }
        for (index, entry) in cache.entries.iter().enumerate() {
            if let Some(fault) = entry.rates.fault() {
                return Err(Error::data(format!(
                    "{origin}: entry {index} ({}): {fault}",
                    entry.key
                )));
            }
        }
        Ok(cache)
    }

    /// The cache as JSON; [`CalibrationCache::parse`] reads it back.
    ///
    /// # Errors
    /// `Data` if it cannot be encoded.
    pub fn to_json(&self) -> Result<String> {
        serde_json::to_string_pretty(self)
            .map_err(|source| Error::data("calibrations: cannot be encoded").with_source(source))
    }

    /// Writes the file atomically; creates the folder.
    ///
    /// # Errors
    /// `Io` naming the path.
    pub fn save(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder)
                .map_err(|source| Error::io(folder.display(), source))?;
        }
        file::write(path, (self.to_json()? + "\n").as_bytes())
    }

    /// The stored calibration of a device.
    pub fn rates(&self, info: &DeviceInfo) -> Option<Rates> {
        let key = key(info);
        self.entries
            .iter()
            .find(|entry| entry.key == key)
            .map(|entry| entry.rates)
    }

    /// Adds or replaces a device's rates.
    pub fn insert(&mut self, calibration: &Calibration) {
        let key = key(&calibration.device);
        self.entries.retain(|entry| entry.key != key);
        self.entries.push(Entry {
            key,
            rates: calibration.rates,
        });
        let surplus = self.entries.len().saturating_sub(MAX_ENTRIES);
        self.entries.drain(..surplus);
    }
}

/// The key of the rates: device, driver and kernels; for the CPU also the number of threads it may
/// use.
fn key(info: &DeviceInfo) -> String {
    let identity = info.uuid.as_deref().or(info.pci.as_deref()).unwrap_or("-");
    let units = info.compute_units.unwrap_or(0);
    format!(
        "{} | {} | {identity} | {} | units {units} | tectum {}",
        info.id,
        info.name,
        info.driver,
        env!("CARGO_PKG_VERSION")
    )
}

/// Where the cache is: `tectum/calibration.json` in the user's cache folder, if the system names
/// one.
pub fn default_path() -> Option<PathBuf> {
    Some(cache_folder()?.join("calibration.json"))
}
