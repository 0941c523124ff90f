//! The public genomes, where they are present: sizes as in the reference's table, synapses as
//! computed from their rules.

use std::path::{Path, PathBuf};

use tectum_spiking::genome::{CoreArea, Genome, GenomeOptions, UnitPolicy};

/// Read in place; a checkout without them skips the tests and reports it.
const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/data/genomes");

/// File, areas, neurons, mappings, synapses.
const GENOMES: [(&str, usize, u32, usize, u64); 5] = [
    ("barebones_genome.json", 2, 2, 0, 0),
    // Four morphologies of seven single pairs inside the boxes, two of six.
    ("salamander.json", 6, 282, 6, 40),
    // Three projectors from 64 × 64 voxels to fewer, one from 16 × 16, one of 45 voxels onto 900; 2
    // · 45 + 30 + 6 voxels onto their counterparts; two lateral of 600 − 30; 6 · 5 inhibitory; 6
    // from the memory's voxel; 12 single pairs; four without synapses.
    ("gesture_recognition.json", 37, 8_352, 29, 14_758),
    // Two projectors of 16 × 16 × 3 voxels to one, eight from one voxel to one, eight single pairs:
    // 2 · 768 + 16.
    ("essential_genome.json", 24, 55_357, 18, 1_552),
    // Nine projectors onto 256 × 64 × 3 voxels, each of which has one source (nine times 49,152),
    // and 12 single pairs.
    ("brain_pong.json", 17, 56_555, 14, 9 * 49_152 + 12),
];

fn genome_path(name: &str) -> Option<PathBuf> {
    let path = Path::new(FOLDER).join(name);
    if !path.exists() {
        println!("skipped: {name} of the reference data is absent: the public genomes");
        return None;
    }
    Some(path)
}

#[test]
fn public_genomes_have_the_neurons_of_the_references_table() {
    for (name, areas, neurons, mappings, synapses) in GENOMES {
        let Some(path) = genome_path(name) else {
            continue;
        };
        let options = GenomeOptions {
            strict: true,
            ..GenomeOptions::default()
        };
        let genome = Genome::read(&path, &options).expect("a public genome");
        let found = (
            genome.areas().len(),
            genome.neurons(),
            genome.mappings().len(),
        );
        assert_eq!(found, (areas, neurons, mappings), "{name}");
        assert_eq!(genome.warnings(), [""; 0], "{name}");
        let estimate = genome.estimate();
        let mut counted = vec![0; mappings];
        genome.synapses(1, &mut |synapse| counted[synapse.mapping as usize] += 1);
        assert_eq!(
            (counted.iter().sum::<u64>(), estimate.synapses),
            (synapses, synapses),
            "{name}"
        );
        for (index, (counted, estimated)) in counted.iter().zip(&estimate.mappings).enumerate() {
            assert_eq!(*counted, estimated.synapses, "{name}: mapping {index}");
        }
    }
}

#[test]
fn public_genomes_are_of_legacy_units_and_are_refused_as_fractions() {
    for (name, ..) in GENOMES {
        let Some(path) = genome_path(name) else {
            continue;
        };
        let genome = Genome::read(&path, &GenomeOptions::default()).expect("a public genome");
        let units = genome.units();
        // The barebones genome has a leak of 10 and an excitability of 1: a file may mix units.
        assert_eq!(
            (
                units.leak.legacy,
                units.excitability.legacy,
                units.current.legacy
            ),
            (true, name != "barebones_genome.json", true),
            "{name}"
        );
        for area in genome.areas() {
            let properties = &area.properties;
            assert!(
                (0.0..=1.0).contains(&properties.leak) && properties.excitability == 1.0,
                "{name}: {}",
                area.id
            );
        }
        let power = &genome.areas()[genome.core(CoreArea::Power).expect("a power area")];
        assert_eq!(
            (power.properties.postsynaptic_current, power.neurons.len()),
            (255, 1),
            "{name}"
        );
        let options = GenomeOptions {
            units: UnitPolicy::Fraction,
            ..GenomeOptions::default()
        };
        let error = Genome::read(&path, &options)
            .expect_err("legacy values")
            .to_string();
        assert!(
            error.contains(name) && error.contains("; if the file is of the legacy unit"),
            "{error}"
        );
    }
}
