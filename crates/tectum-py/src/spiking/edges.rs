//! The synapses of a network as columns.

use numpy::{Element, PyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tectum::{Result, Watch, WorkProgress, host_memory};
use tectum_spiking::genome::Genome;
use tectum_spiking::{ConnectOptions, GenomeSynapses, Network, Synapse};

/// Columns of synapses with their initial weights.
pub struct Edges {
    source: Vec<u32>,
    target: Vec<u32>,
    weight: Vec<u8>,
    inhibitory: Vec<bool>,
    /// -1 for a weight that does not change.
    rule: Vec<i8>,
    /// Of a genome: its mapping, and the psp of the source's area.
    of_genome: Option<(Vec<u32>, Vec<u8>)>,
}

impl Edges {
    fn with_capacity(count: u64, of_genome: bool) -> Result<Self> {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        let what = format_args!("arrays of {count} synapses");
        let bytes = if of_genome { 16 } else { 11 };
        host_memory::check(what, host_memory::shape_bytes([count as u64], bytes))?;
        Ok(Self {
            source: host_memory::with_capacity(what, count)?,
            target: host_memory::with_capacity(what, count)?,
            weight: host_memory::with_capacity(what, count)?,
            inhibitory: host_memory::with_capacity(what, count)?,
            rule: host_memory::with_capacity(what, count)?,
            of_genome: if of_genome {
                Some((
                    host_memory::with_capacity(what, count)?,
                    host_memory::with_capacity(what, count)?,
                ))
            } else {
                None
            },
        })
    }

    fn push(&mut self, source: u32, synapse: &Synapse) {
        self.source.push(source);
        self.target.push(synapse.target);
        self.weight.push(synapse.weight);
        self.inhibitory.push(synapse.inhibitory);
        // A list of synapses has rules below 127.
        self.rule
            .push(synapse.plasticity.map_or(-1, |rule| rule as i8));
    }

    /// Those of a network, by source.
    pub fn of_network(network: &Network) -> Result<Self> {
        let mut edges = Self::with_capacity(network.synapses(), false)?;
        for source in 0..network.neurons() {
            network.visit_synapses(source, &mut |synapse| edges.push(source, &synapse));
        }
        Ok(edges)
    }

    /// Those of the network of a genome with `count` synapses, by mapping.
    pub fn of_genome(
        genome: &Genome,
        options: &ConnectOptions,
        count: u64,
        watch: &mut Watch<'_>,
    ) -> Result<Self> {
        let synapses = GenomeSynapses::new(genome, options)?;
        let mut edges = Self::with_capacity(count, true)?;
        for (index, mapping) in genome.mappings().iter().enumerate() {
            let mut between = || {
                WorkProgress {
                    stage: "listing synapses",
                    done: index as u64,
                    total: genome.mappings().len() as u64,
                }
                .report(watch)
            };
            let psp = genome.areas()[mapping.source]
                .properties
                .postsynaptic_current;
            synapses.visit(index, &mut between, |source, synapse| {
                edges.push(source, &synapse);
                if let Some((mappings, psps)) = &mut edges.of_genome {
                    mappings.push(index as u32);
                    psps.push(psp);
                }
                Ok(())
            })?;
        }
        Ok(edges)
    }

    /// A dict of arrays, which take over the memory of the columns.
    pub fn into_dict(self, py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
        fn add<T: Element>(
            columns: &Bound<'_, PyDict>,
            name: &str,
            numbers: Vec<T>,
        ) -> PyResult<()> {
            columns.set_item(name, PyArray1::from_vec(columns.py(), numbers))
        }
        let columns = PyDict::new(py);
        add(&columns, "source", self.source)?;
        add(&columns, "target", self.target)?;
        add(&columns, "weight", self.weight)?;
        add(&columns, "inhibitory", self.inhibitory)?;
        add(&columns, "rule", self.rule)?;
        if let Some((mappings, psps)) = self.of_genome {
            add(&columns, "mapping", mappings)?;
            add(&columns, "psp", psps)?;
        }
        Ok(columns)
    }
}
