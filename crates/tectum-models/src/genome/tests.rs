use super::*;

#[test]
fn the_shipped_genomes_load() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data/genomes");
    for entry in std::fs::read_dir(folder).expect("there") {
        let path = entry.expect("entry").path();
        if path.extension().is_some_and(|e| e == "json") {
            let genome = Genome::read(&path, &GenomeOptions::default()).expect("valid");
            let mut count = 0u64;
            genome.synapses(1, &mut |_| count += 1);
            println!("{}: {} areas {} neurons {} mappings {count} {:?} {} warnings", path.display(), genome.areas().len(), genome.neurons(), genome.mappings().len(), genome.estimate().synapses, genome.warnings().len());
        }
    }
}
