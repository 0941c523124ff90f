//! The table of a genome's areas, next to a file of its neurons' numbers.

use std::ops::Range;
use std::path::Path;

use tectum::{Result, file};
use tectum_spiking::genome::Genome;

use crate::csv::cell;

/// A row of the table of areas: consecutive neurons.
pub struct AreaRow {
    pub id: String,
    pub name: String,
    /// What its neurons represent: the area's role, or `patterns` for the neurons of a memory.
    pub role: &'static str,
    pub neurons: Range<u32>,
    /// Voxels along x, y and z, and neurons of each; none for a memory's neurons.
    pub shape: Option<([u32; 3], u32)>,
}

/// The areas of a genome, and the neurons of its memories: indices of areas with their neurons.
pub fn area_rows(
    genome: &Genome,
    memories: impl Iterator<Item = (usize, Range<u32>)>,
) -> Vec<AreaRow> {
    let of_area = genome.areas().iter().map(|area| AreaRow {
        id: area.id.to_string(),
        name: area.name.clone(),
        role: area.role.name(),
        neurons: area.neurons.clone(),
        shape: Some((area.size, area.per_voxel)),
    });
    let of_memory = memories.map(|(area, neurons)| {
        let area = &genome.areas()[area];
        AreaRow {
            id: area.id.to_string(),
            name: area.name.clone(),
            role: "patterns",
            neurons,
            shape: None,
        }
    });
    of_area.chain(of_memory).collect()
}

/// Writes the table next to a file: `spikes.npy` has `spikes.areas.csv` next to it.
///
/// # Errors
/// `Io`, naming the path.
pub fn write_area_table(next_to: &Path, rows: &[AreaRow]) -> Result<()> {
    file::write(&next_to.with_extension("areas.csv"), table(rows).as_bytes())
}

fn table(rows: &[AreaRow]) -> String {
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
        + &rows.iter().map(row).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

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
