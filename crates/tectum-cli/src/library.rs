//! The library of programs embedded in every build.

use std::path::Path;

use tectum::{Error, Result};

/// Short name and text.
const PROGRAMS: [(&str, &str); 28] = [
    ("abs", include_str!("../../../programs/abs.atlas")),
    ("bce", include_str!("../../../programs/bce.atlas")),
    ("clip", include_str!("../../../programs/clip.atlas")),
    ("copy", include_str!("../../../programs/copy.atlas")),
    ("cross_entropy", include_str!("../../../programs/cross_entropy.atlas")),
    ("fill", include_str!("../../../programs/fill.atlas")),
    ("gelu", include_str!("../../../programs/gelu.atlas")),
    ("gemm", include_str!("../../../programs/gemm.atlas")),
    ("matvec", include_str!("../../../programs/matvec.atlas")),
    ("mse", include_str!("../../../programs/mse.atlas")),
    ("neg", include_str!("../../../programs/neg.atlas")),
    ("reduce_max", include_str!("../../../programs/reduce_max.atlas")),
    ("reduce_min", include_str!("../../../programs/reduce_min.atlas")),
    ("reduce_sum", include_str!("../../../programs/reduce_sum.atlas")),
    ("relu", include_str!("../../../programs/relu.atlas")),
    ("scalar_add", include_str!("../../../programs/scalar_add.atlas")),
    ("scalar_div", include_str!("../../../programs/scalar_div.atlas")),
    ("scalar_mul", include_str!("../../../programs/scalar_mul.atlas")),
    ("scalar_sub", include_str!("../../../programs/scalar_sub.atlas")),
    ("sigmoid", include_str!("../../../programs/sigmoid.atlas")),
    ("softmax", include_str!("../../../programs/softmax.atlas")),
    ("tanh", include_str!("../../../programs/tanh.atlas")),
    ("vector_add", include_str!("../../../programs/vector_add.atlas")),
    ("vector_div", include_str!("../../../programs/vector_div.atlas")),
    ("vector_max", include_str!("../../../programs/vector_max.atlas")),
    ("vector_min", include_str!("../../../programs/vector_min.atlas")),
    ("vector_mul", include_str!("../../../programs/vector_mul.atlas")),
    ("vector_sub", include_str!("../../../programs/vector_sub.atlas")),
];

/// The text of a program: of the file, or, if there is no such file, of the built-in program of this name.
///
/// # Errors
/// `Io`, naming the path, for a file that cannot be read.
pub fn program_text(path: &Path) -> Result<String> {
    let built_in = path.to_str().and_then(|name| PROGRAMS.iter().find(|(known, _)| name == format!("{known}.atlas")));
    match (std::fs::read_to_string(path), built_in) {
        (Err(error), Some((_, text))) if error.kind() == std::io::ErrorKind::NotFound => Ok((*text).to_owned()),
        (read, _) => read.map_err(|source| Error::io(path.display(), source)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_program_of_the_library_is_built_in() {
        let folder = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../../programs")).expect("there");
        let files = folder.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).filter(|name| name.ends_with(".atlas"));
        let missing: Vec<String> = files.filter(|name| !PROGRAMS.iter().any(|(known, _)| *name == format!("{known}.atlas"))).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert_eq!(program_text(Path::new("relu.atlas")).expect("built in"), PROGRAMS.iter().find(|(name, _)| *name == "relu").expect("built in").1);
        assert!(program_text(Path::new("absent/relu.atlas")).is_err(), "a path names a file alone");
    }
}
