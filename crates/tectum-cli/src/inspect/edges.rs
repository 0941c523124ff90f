//! The synapses of a genome's network in a file, `.npy` or CSV, with tables of its mappings and areas
//! next to it.

use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::Path;

use tectum::file::{self, PartialFile};
use tectum::{Error, Result, WorkProgress};
use tectum_spiking::genome::Genome;
use tectum_spiking::{ConnectOptions, GenomeSynapses, PlasticityRule, Synapse};

use crate::area_table::{area_rows, write_area_table};
use crate::csv::cell;
use crate::progress::{Bar, Unit};
use tectum::npy;

/// The columns of a file: names and element types.
const FIELDS: [(&str, &str); 6] = [
    ("source", "<u4"),
    ("target", "<u4"),
    ("weight", "<i2"),
    ("psp", "|u1"),
    ("rule", "|i1"),
    ("mapping", "<u4"),
];

/// One synapse.
struct Edge {
    source: u32,
    synapse: Synapse,
    psp: u8,
    mapping: u32,
}

impl Edge {
    /// The weight; negative for an inhibitory synapse.
    fn weight(&self) -> i16 {
        let weight = i16::from(self.synapse.weight);
        if self.synapse.inhibitory {
            -weight
        } else {
            weight
        }
    }

    /// The number of the rule; -1 for a weight that does not change.
    fn rule(&self) -> i8 {
        self.synapse.plasticity.map_or(-1, |rule| rule as i8)
    }

    fn record(&self) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&self.source.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.synapse.target.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.weight().to_le_bytes());
        bytes[10] = self.psp;
        bytes[11..12].copy_from_slice(&self.rule().to_le_bytes());
        bytes[12..].copy_from_slice(&self.mapping.to_le_bytes());
        bytes
    }
}

/// Writes the synapses of the network that a run makes of a genome: CSV if the name ends in .csv,
/// else `.npy`. Returns how many there are. Nothing is kept in memory.
///
/// # Errors
/// As [`GenomeSynapses::new`]; `Io`, naming the path; `Cancelled` by Ctrl-C.
pub fn write_edges(path: &Path, genome: &Genome, options: &ConnectOptions) -> Result<u64> {
    let synapses = GenomeSynapses::new(genome, options)?;
    let is_csv = path.extension().is_some_and(|ending| ending == "csv");
    let failed = |source: std::io::Error| Error::io(path.display(), source);
    let mut writer = BufWriter::new(PartialFile::create(path)?);
    let head = |rows: u64| {
        if is_csv {
            let names = FIELDS.map(|(name, _)| name).join(",");
            format!("{names}\n").into_bytes()
        } else {
            npy::head_of_records(&FIELDS, rows)
        }
    };
    writer.write_all(&head(0)).map_err(failed)?;
    let bar = Bar::new(Unit::Steps);
    let mut watch = bar.watch();
    let mut rows = 0;
    for (index, mapping) in genome.mappings().iter().enumerate() {
        let mut between = || {
            WorkProgress {
                stage: "writing mappings",
                done: index as u64,
                total: genome.mappings().len() as u64,
            }
            .report(&mut watch)
        };
        let psp = genome.areas()[mapping.source]
            .properties
            .postsynaptic_current;
        synapses.visit(index, &mut between, |source, synapse| {
            rows += 1;
            let edge = Edge {
                source,
                synapse,
                psp,
                mapping: index as u32,
            };
            if is_csv {
                let (target, weight, rule) = (synapse.target, edge.weight(), edge.rule());
                writeln!(writer, "{source},{target},{weight},{psp},{rule},{index}")
            } else {
                writer.write_all(&edge.record())
            }
            .map_err(failed)
        })?;
    }
    if !is_csv {
        writer.seek(SeekFrom::Start(0)).map_err(failed)?;
        writer.write_all(&head(rows)).map_err(failed)?;
    }
    let file = writer
        .into_inner()
        .map_err(|error| failed(error.into_error()))?;
    file.commit()?;
    file::write(
        &path.with_extension("mappings.csv"),
        mapping_table(genome, &synapses).as_bytes(),
    )?;
    let memories = synapses
        .memory_areas()
        .iter()
        .map(|&area| (area, synapses.active_neurons()[area].clone()));
    write_area_table(path, &area_rows(genome, memories))?;
    Ok(rows)
}

/// For each mapping its areas, how the psp of its sources is sent, and how its synapses learn.
fn mapping_table(genome: &Genome, synapses: &GenomeSynapses<'_>) -> String {
    let mut text = "mapping,source_area,target_area,morphology,psp_divided,psp_is_potential,rule,window,gain,loss,weight_loss\n".to_owned();
    for (index, mapping) in genome.mappings().iter().enumerate() {
        let [from, to] = [mapping.source, mapping.destination].map(|area| &genome.areas()[area]);
        let rule = synapses.rule(index).map_or_else(
            || "-1,,,,".to_owned(),
            |number| {
                let PlasticityRule {
                    window,
                    gain,
                    loss,
                    weight_loss,
                } = synapses.rules()[usize::from(number)];
                format!("{number},{window},{gain},{loss},{}", weight_loss.name())
            },
        );
        text += &format!(
            "{index},{},{},{},{},{},{rule}\n",
            cell(&from.id.to_string()),
            cell(&to.id.to_string()),
            cell(&mapping.morphology_name),
            !from.properties.psp_uniform_distribution,
            from.properties.mp_driven_psp,
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_the_fields_of_the_header() {
        let edge = Edge {
            source: 1,
            synapse: Synapse {
                target: 0x0203,
                weight: 255,
                inhibitory: true,
                plasticity: Some(15),
            },
            psp: 200,
            mapping: 7,
        };
        assert_eq!(
            edge.record(),
            [1, 0, 0, 0, 3, 2, 0, 0, 1, 255, 200, 15, 7, 0, 0, 0]
        );
        let fixed = Edge {
            synapse: Synapse::fixed(0, 3, false),
            ..edge
        };
        assert_eq!((fixed.weight(), fixed.rule()), (3, -1));
        // The header is written again when the number of rows is known.
        let lengths = [0, 1_669, u64::MAX].map(|rows| npy::head_of_records(&FIELDS, rows).len());
        assert!(
            lengths.iter().all(|length| *length == lengths[0]),
            "{lengths:?}"
        );
    }
}
