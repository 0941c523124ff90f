//! Sets the crate's own revision: a hash of its sources, and of the versions that they are built with, if known.

use std::path::{Path, PathBuf};

fn main() {
    let mut files = Vec::new();
    collect(Path::new("src"), &mut files);
    files.sort();
    files.push(PathBuf::from("Cargo.toml"));
    let lock = PathBuf::from("../../Cargo.lock");
    if lock.exists() {
        files.push(lock);
    }
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for file in &files {
        let bytes = std::fs::read(file).unwrap_or_default();
        for byte in file.to_string_lossy().bytes().chain(bytes) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        println!("cargo::rerun-if-changed={}", file.display());
    }
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-env=NAGA_PTX_REVISION={hash:016x}");
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { collect(&path, files) } else { files.push(path) }
    }
}
