//! The sample genome of this crate.

use tectum::Sample;

/// Sample genomes. The one there is has an input area of 64 neurons onto 64 with leak, refractory
/// period and probabilistic firing, each of which inhibits its neighbour.
///
/// # Example
/// ```
/// use tectum_spiking::{SAMPLES, genome::{Genome, GenomeOptions}};
/// let text = std::str::from_utf8(SAMPLES[0].files[0].1).expect("text");
/// assert_eq!(Genome::parse(text, &GenomeOptions::default())?.neurons(), 128);
/// # Ok::<(), tectum::Error>(())
/// ```
pub static SAMPLES: [Sample; 1] = [Sample {
    name: "sample-genome",
    about: "an input area of 64 neurons onto 64 that inhibit each other, for run and inspect",
    files: &[(
        "sample-genome.json",
        include_bytes!("../samples/sample-genome.json"),
    )],
}];
