//! Samples that every build has.

use std::path::PathBuf;

use pyo3::prelude::*;
use tectum::Sample;

use crate::error::OrRaise;
use crate::interrupt::run_long;
use crate::process;

/// The samples of all crates.
fn all() -> impl Iterator<Item = &'static Sample> + Clone {
    let plants = tectum_equations::SAMPLES.iter();
    tectum_spiking::SAMPLES
        .iter()
        .chain(&tectum_control::SAMPLES)
        .chain(plants)
        .chain(&tectum_transformer::SAMPLES)
        .chain(&tectum_programs::SAMPLES)
}

/// Names and purposes of the samples that are built in: models, a genome, a recording, plants,
/// arrays.
///
/// >>> import tectum as tt
/// >>> "sample-genome" in tt.samples()
/// True
#[pyfunction]
pub fn samples() -> std::collections::BTreeMap<&'static str, &'static str> {
    all().map(|sample| (sample.name, sample.about)).collect()
}

/// Writes a sample, a file or a folder of files, and returns its path. Without `path` it is written
/// to the working directory, in an existing folder with its own name.
///
/// Raises ValueError for an unknown name, and for a path that exists unless `exist_ok`, which
/// leaves what is there as it is.
#[pyfunction]
#[pyo3(signature = (name, path = None, *, exist_ok = false))]
pub fn sample(
    py: Python<'_>,
    name: &str,
    path: Option<PathBuf>,
    exist_ok: bool,
) -> PyResult<PathBuf> {
    let _call = process::enter(py)?;
    let sample = Sample::find(all(), name).or_raise()?;
    let path = match path {
        Some(folder) if folder.is_dir() => folder.join(sample.default_path()),
        Some(path) => path,
        None => sample.default_path(),
    };
    if !(exist_ok && path.exists()) {
        let to = path.clone();
        run_long(py, move || sample.write(&to))?;
    }
    Ok(path)
}
