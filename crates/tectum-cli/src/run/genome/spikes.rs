//! The spikes of a genome's run in a file, `.npy` or CSV, and the table of its areas next to it.

use std::io::{BufWriter, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use tectum::file::PartialFile;
use tectum::{Error, Result};
use tectum_spiking::Network;
use tectum_spiking::genome::Genome;

use crate::area_table::{AreaRow, area_rows, write_area_table};
use crate::csv::cell;
use tectum::npy::{self, Header};

/// Spikes as they fire. The file gets its name when it is complete.
pub struct SpikeFile {
    writer: BufWriter<PartialFile>,
    path: PathBuf,
    is_csv: bool,
    rows: u64,
    areas: Vec<AreaRow>,
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
        memories_of: &[usize],
    ) -> Result<Self> {
        let memories = network
            .memories()
            .iter()
            .map(|memory| memory.neurons.clone());
        let areas = area_rows(genome, memories_of.iter().copied().zip(memories));
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
        write_area_table(&self.path, &self.areas)
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
}
