//! The sample arrays of this crate.

use tectum::Sample;

/// Sample arrays; `samples/make_sample_arrays.py` makes the files.
pub static SAMPLES: [Sample; 1] = [Sample {
    name: "sample-arrays",
    about: "two arrays of eight f32, a.npy and b.npy, for programs of two inputs",
    files: &[
        ("a.npy", include_bytes!("../samples/sample-arrays/a.npy")),
        ("b.npy", include_bytes!("../samples/sample-arrays/b.npy")),
    ],
}];
