//! For build scripts: the revision of a crate, a hash of its sources and of the versions that they
//! are built with.

use std::path::{Path, PathBuf};

/// Sets the variable `name` of the compiler to the revision of the crate whose build script calls
/// it: 64 hexadecimal digits of BLAKE3 over the paths and contents of `src`, `kernels`,
/// `Cargo.toml` and, in a workspace, `Cargo.lock`.
///
/// # Panics
/// If a file cannot be read: a build script ends so.
pub fn set(name: &str) {
    let mut files = Vec::new();
    for folder in ["src", "kernels"] {
        collect(Path::new(folder), &mut files);
    }
    files.sort();
    files.push(PathBuf::from("Cargo.toml"));
    files.extend(Some(PathBuf::from("../../Cargo.lock")).filter(|lock| lock.exists()));
    let mut hasher = blake3::Hasher::new();
    for file in &files {
        let text =
            std::fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let path = file.to_string_lossy().replace('\\', "/");
        for part in [path.as_bytes(), &text] {
            hasher
                .update(&(part.len() as u64).to_le_bytes())
                .update(part);
        }
        println!("cargo::rerun-if-changed={}", file.display());
    }
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-env={name}={}", hasher.finalize());
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, files)
        } else {
            files.push(path)
        }
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
