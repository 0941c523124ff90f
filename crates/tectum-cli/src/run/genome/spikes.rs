//! The spikes of a genome's run in a file, `.npy` or CSV, and the table of its areas next to it.

use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use tectum::file::{self, PartialFile};
use tectum::{Error, Result};
use tectum_spiking::Network;
use tectum_spiking::genome::Genome;

use crate::csv::cell;
use crate::npy::{self, Header};

/// Spikes as they fire. The file gets its name when it is complete.
pub struct SpikeFile {
    writer: BufWriter<PartialFile>,
    path: PathBuf,
    is_csv: bool,
    rows: u64,
    areas: Vec<AreaRow>,
}

/// A row of the table of areas: consecutive neurons.
struct AreaRow {
    id: String,
    name: String,
    /// What its neurons represent: the area's role, or `patterns` for the neurons of a memory.
    role: &'static str,
    neurons: Range<u32>,
    /// Voxels along x, y and z, and neurons of each; none for a memory's neurons.
    shape: Option<([u32; 3], u32)>,
}

impl SpikeFile {
    /// Begins the file: CSV if its name ends in .csv, else `.npy`.
    ///
    /// # Errors
    /// `Io`, naming the path.
    pub fn new(
        path: &Path,
        genome: &Genome,
        network: &Network,
        memories: &[usize],
    ) -> Result<Self> {
        let of_area = genome.areas().iter().map(|area| AreaRow {
            id: area.id.to_string(),
            name: area.name.clone(),
            role: area.role.name(),
            neurons: area.neurons.clone(),
            shape: Some((area.size, area.per_voxel)),
        });
        let of_memory = memories
            .iter()
            .zip(network.memories())
            .map(|(area, memory)| {
                let area = &genome.areas()[*area];
                AreaRow {
                    id: area.id.to_string(),
                    name: area.name.clone(),
                    role: "patterns",
                    neurons: memory.neurons.clone(),
                    shape: None,
                }
            });
        let areas = of_area.chain(of_memory).collect();
        let is_csv = path.extension().is_some_and(|ending| ending == "csv");
        let mut spikes = Self {
            writer: BufWriter::new(PartialFile::create(path)?),
            path: path.to_owned(),
            is_csv,
            rows: 0,
            areas,
        };
        let head = if is_csv {
            b"burst,neuron,area\n".to_vec()
        } else {
            npy::head(&header(0))
        };
        spikes.write(&head)?;
        Ok(spikes)
    }

    /// Adds the neurons that fired in a burst, ascending.
    ///
    /// # Errors
    /// `Io`, naming the path.
    pub fn push(&mut self, burst: u32, fired: &[u32]) -> Result<()> {
        self.rows += fired.len() as u64;
        if !self.is_csv {
            let bytes: Vec<u8> = fired
                .iter()
                .flat_map(|neuron| [burst, *neuron])
                .flat_map(u32::to_le_bytes)
                .collect();
            return self.write(&bytes);
        }
        let (mut text, mut place) = (String::new(), 0);
        for neuron in fired {
            while self.areas[place].neurons.end <= *neuron {
                place += 1;
            }
            text += &format!("{burst},{neuron},{}\n", cell(&self.areas[place].id));
        }
        self.write(text.as_bytes())
    }

    /// Completes the file and writes the table of areas: `spikes.npy` has `spikes.areas.csv` next
    /// to it.
    ///
    /// # Errors
    /// `Io`, naming the path.
    pub fn finish(mut self) -> Result<()> {
        if !self.is_csv {
            let head = npy::head(&header(self.rows));
            self.writer
                .seek(SeekFrom::Start(0))
                .map_err(|source| Error::io(self.path.display(), source))?;
            self.write(&head)?;
        }
        let file = self
            .writer
            .into_inner()
            .map_err(|error| Error::io(self.path.display(), error.into_error()))?;
        file.commit()?;
        file::write(
            &self.path.with_extension("areas.csv"),
            table(&self.areas).as_bytes(),
        )
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer
            .write_all(bytes)
            .map_err(|source| Error::io(self.path.display(), source))
    }
}

/// One row for each firing: burst, neuron.
fn header(rows: u64) -> Header {
    Header {
        descr: "<u4".to_owned(),
        shape: vec![rows, 2],
    }
}

fn table(areas: &[AreaRow]) -> String {
    let row = |AreaRow {
                   id,
                   name,
                   role,
                   neurons,
                   shape,
               }: &AreaRow| {
        let shape = shape.map_or_else(
            || ",,,".to_owned(),
            |([x, y, z], per_voxel)| format!("{x},{y},{z},{per_voxel}"),
        );
        format!(
            "{},{},{role},{},{},{shape}\n",
            cell(id),
            cell(name),
            neurons.start,
            neurons.len()
        )
    };
    "area,name,role,first_neuron,neurons,size_x,size_y,size_z,per_voxel\n".to_owned()
        + &areas.iter().map(row).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header is written again when the number of rows is known.
    #[test]
    fn the_header_has_the_same_length_for_any_number_of_rows() {
        assert_eq!(
            [0, 1_669, u64::MAX].map(|rows| npy::head(&header(rows)).len()),
            [128; 3]
        );
    }

    #[test]
    fn the_neurons_of_a_memory_have_a_row_of_their_own() {
        let voxels = AreaRow {
            id: "m__seq".into(),
            name: "a, b".into(),
            role: "memory",
            neurons: 4..5,
            shape: Some(([1, 1, 1], 1)),
        };
        let patterns = AreaRow {
            id: "m__seq".into(),
            name: String::new(),
            role: "patterns",
            neurons: 5..9,
            shape: None,
        };
        let shown = table(&[voxels, patterns]);
        assert_eq!(
            shown.lines().skip(1).collect::<Vec<_>>(),
            [
                "m__seq,\"a, b\",memory,4,1,1,1,1,1",
                "m__seq,,patterns,5,4,,,,"
            ]
        );
    }
}
