//! The sample recording of this crate.

use tectum::Sample;

/// Sample recordings of the simulated rig; `examples/record_rig.rs` makes the file.
///
/// # Example
/// ```
/// use tectum_control::{SAMPLES, rig_csv::RigRecording};
/// assert_eq!(RigRecording::parse(SAMPLES[0].files[0].1)?.len(), 4200);
/// # Ok::<(), tectum::Error>(())
/// ```
pub static SAMPLES: [Sample; 1] = [Sample {
    name: "sample-recording",
    about: "168 s of the simulated rig, swung up, balanced and disturbed, for train rig and train twin",
    files: &[("sample-recording.csv", include_bytes!("../samples/sample-recording.csv"))],
}];
