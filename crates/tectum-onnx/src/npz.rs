//! Arrays in files of NumPy's `.npz` format: `.npy` files in a ZIP archive.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use tectum::{Error, Result, host_memory, npy};

use crate::array::Array;
use crate::element::ElementType;

/// Reads the arrays of a file by name, in its order.
///
/// # Errors
/// `Io`, or `Data` naming the file and the array: no ZIP archive, no array of numbers in C order, or
/// one that does not fit into the memory.
pub fn read_npz(path: &Path) -> Result<Vec<(String, Array)>> {
    let fault =
        |message: &dyn std::fmt::Display| Error::data(format!("{}: {message}", path.display()));
    let file = File::open(path).map_err(|source| Error::io(path.display(), source))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|error| fault(&error))?;
    let mut arrays = Vec::new();
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index).map_err(|error| fault(&error))?;
        let name = entry
            .name()
            .strip_suffix(".npy")
            .unwrap_or(entry.name())
            .to_owned();
        host_memory::check(&name, entry.size()).map_err(|error| error.at(path.display()))?;
        let mut bytes = Vec::new();
        entry
            .read_to_end(&mut bytes)
            .map_err(|error| fault(&error))?;
        let array = array(&bytes).map_err(|message| fault(&format!("{name}: {message}")))?;
        arrays.push((name, array));
    }
    Ok(arrays)
}

fn array(bytes: &[u8]) -> std::result::Result<Array, String> {
    let (header, start) = npy::parse(bytes)?;
    let dims = header
        .shape
        .iter()
        .map(|size| usize::try_from(*size))
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(|error| error.to_string())?;
    let element = match header.descr.trim_start_matches(['<', '|', '=']) {
        "f4" => ElementType::F32,
        "f8" => ElementType::F64,
        "f2" => ElementType::F16,
        "i1" => ElementType::I8,
        "i2" => ElementType::I16,
        "i4" => ElementType::I32,
        "i8" => ElementType::I64,
        "u1" => ElementType::U8,
        "u2" => ElementType::U16,
        "u4" => ElementType::U32,
        "u8" => ElementType::U64,
        "b1" => ElementType::Bool,
        other => return Err(format!("elements of type {other}")),
    };
    Array::from_le_bytes(element, &dims, &bytes[start..]).map_err(|error| error.to_string())
}
