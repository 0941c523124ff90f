//! The library: programs that every build has, by name.

macro_rules! library {
    ($($name:literal)*) => {
        &[$(($name, include_str!(concat!("../programs/", $name, ".atlas")))),*]
    };
}

/// Name and text of each program of the library, sorted by name.
pub const LIBRARY: &[(&str, &str)] = library!(
    "abs" "bce" "clip" "copy" "cross_entropy" "fill" "gelu" "gemm" "matvec" "mse" "neg" "reduce_max" "reduce_min" "reduce_sum" "relu" "scalar_add" "scalar_div"
    "scalar_mul" "scalar_sub" "sigmoid" "softmax" "tanh" "vector_add" "vector_div" "vector_max" "vector_min" "vector_mul" "vector_sub"
);

/// Finds the text of a program of the library.
///
/// # Example
/// ```
/// use tectum_programs::{Program, library_text};
/// assert_eq!(Program::parse(library_text("relu").expect("in the library"))?.name(), "relu");
/// assert_eq!(library_text("rellu"), None);
/// # Ok::<(), tectum::Error>(())
/// ```
pub fn library_text(name: &str) -> Option<&'static str> {
    LIBRARY
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_library_is_the_files_of_its_folder() {
        let folder =
            std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/programs")).expect("there");
        let mut files: Vec<String> = folder
            .map(|entry| {
                entry
                    .expect("readable")
                    .file_name()
                    .into_string()
                    .expect("plain")
            })
            .collect();
        files.sort();
        assert_eq!(
            files,
            LIBRARY
                .iter()
                .map(|(name, _)| format!("{name}.atlas"))
                .collect::<Vec<_>>()
        );
    }
}
