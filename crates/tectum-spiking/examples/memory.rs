//! The memory that a network takes while it is built and at rest, as Linux reports it for this
//! process: `cargo run -p tectum-spiking --example memory -- genome|plastic|arrays [SIDE]`.
//!
//! Two areas of SIDE neurons each are connected all to all; SIDE is 3200 if not given, which makes
//! about 10⁷ synapses.

use std::sync::Arc;

use tectum::{Device, Error, Result, WorkProgress};
use tectum_spiking::genome::{Genome, GenomeOptions};
use tectum_spiking::{
    ConnectOptions, Network, NetworkOptions, NeuronOptions, Neurons, Simulation, SimulationOptions,
    Synapse, SynapseList, connect,
};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let kind = arguments.next().unwrap_or_else(|| "genome".to_owned());
    let side: u32 = arguments
        .next()
        .map_or(Ok(3200), |side| side.parse())
        .map_err(|error| Error::invalid(format!("SIDE: {error}")))?;
    let device = Device::open("cpu")?;
    // The arrays of a caller exist before the network.
    let columns = (kind == "arrays").then(|| {
        let count = side as usize * side as usize;
        let (mut source, mut target) = (Vec::with_capacity(count), Vec::with_capacity(count));
        for from in 0..side {
            source.extend((0..side).map(|_| from));
            target.extend(side..2 * side);
        }
        (source, target)
    });
    let [_, before] = resident_bytes();
    let network = match &columns {
        Some((source, target)) => from_arrays(source, target, 2 * side)?,
        None => from_genome(side, kind == "plastic")?,
    };
    let simulation = Simulation::new(Arc::new(network), &device, &SimulationOptions::default())?;
    let [peak, rest] = resident_bytes();
    let synapses = simulation.network().synapses();
    let of_each = |bytes: u64| bytes.saturating_sub(before) as f64 / synapses as f64;
    println!(
        "{kind}: {synapses} synapses, {before} bytes before; {:.2} bytes for each synapse at most, {:.2} at rest",
        of_each(peak),
        of_each(rest)
    );
    Ok(())
}

fn from_genome(side: u32, plastic: bool) -> Result<Network> {
    let text = format!(
        r#"{{"version": "2.1", "blueprint": {{
            "i__eye": {{"block_boundaries": [{side}, 1, 1], "cortical_mapping_dst": {{"o__arm": [["all_to_all", 1, 1, {plastic}, 1, 1, 1]]}}}},
            "o__arm": {{"block_boundaries": [{side}, 1, 1]}}}}}}"#
    );
    let genome = Genome::parse(&text, &GenomeOptions::default())?;
    let options = ConnectOptions::default();
    Ok(connect(&genome, options, &mut WorkProgress::ignore)?.network)
}

fn from_arrays(source: &[u32], target: &[u32], count: u32) -> Result<Network> {
    let mut neurons = Neurons::default();
    neurons.add(count, &NeuronOptions::default())?;
    let list = SynapseList::from_passes(count, || {
        let ends = source.iter().zip(target);
        Ok(ends.map(|(source, target)| Ok((*source, Synapse::fixed(*target, 1, false)))))
    })?;
    Network::new(&neurons, Box::new(list), NetworkOptions::default())
}

/// The maximum resident memory of this process so far, and that at present.
fn resident_bytes() -> [u64; 2] {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    ["VmHWM:", "VmRSS:"].map(|key| {
        let line = status.lines().find_map(|line| line.strip_prefix(key));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix("kB"));
        let kibibytes = kibibytes.and_then(|number| number.trim().parse::<u64>().ok());
        kibibytes.unwrap_or(0) << 10
    })
}
