//! The size of a field and of its parts.

use tectum::{Error, Result};

/// Channels of a cell's rules.
pub const DYNAMICS: usize = 16;
/// Regions along each axis.
pub const REGIONS_PER_AXIS: usize = 4;
/// Regions of a field.
pub const REGIONS: usize = 64;

/// The size of a field: X × Y × Z cells of C channels, [X, Y, Z, C] in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    cells: [usize; 3],
    channels: usize,
}

impl Shape {
    /// Checks a size.
    ///
    /// # Errors
    /// `Invalid` unless every axis is from 4 to 64 and a multiple of 4 sites, and the channels are
    /// a multiple of 32 from 32 to 256.
    pub fn new(cells: [usize; 3], channels: usize) -> Result<Self> {
        if let Some(size) = cells
            .into_iter()
            .find(|size| !size.is_multiple_of(4) || !(4..=64).contains(size))
        {
            return Err(Error::invalid(format!(
                "field: an axis of {size} cells; needs a multiple of 4 from 4 to 64"
            )));
        }
        if !channels.is_multiple_of(32) || !(32..=256).contains(&channels) {
            return Err(Error::invalid(format!(
                "field: {channels} channels; needs a multiple of 32 from 32 to 256"
            )));
        }
        let shape = Self { cells, channels };
        let quarter = REGIONS_PER_AXIS * shape.block();
        match cells.into_iter().find(|size| !size.is_multiple_of(quarter)) {
            Some(size) => Err(Error::invalid(format!(
                "field: an axis of {size} cells; the shortest axis makes sites of {}, so it must be a multiple of {quarter}",
                shape.block()
            ))),
            None => Ok(shape),
        }
    }

    /// Cells along X, Y and Z.
    pub fn cells(&self) -> [usize; 3] {
        self.cells
    }

    /// Channels of a cell.
    pub fn channels(&self) -> usize {
        self.channels
    }

    /// The number of content channels, which come first.
    pub fn content(&self) -> usize {
        3 * self.channels / 4 - DYNAMICS
    }

    /// The number of temporal channels, after the content.
    pub fn temporal(&self) -> usize {
        self.channels / 4
    }

    /// Elements of the field.
    pub fn elements(&self) -> usize {
        self.cells.iter().product::<usize>() * self.channels
    }

    /// Cells along each edge of a site.
    pub fn block(&self) -> usize {
        let least = self.cells[0].min(self.cells[1]).min(self.cells[2]);
        (least / 8).max(1)
    }

    /// Sites along X, Y and Z.
    pub fn sites(&self) -> [usize; 3] {
        self.cells.map(|size| size / self.block())
    }

    /// Rows of cells along Z.
    pub fn rows(&self) -> usize {
        self.cells[0] * self.cells[1]
    }

    /// The index of the element of a cell's channel.
    pub fn at(&self, [x, y, z]: [usize; 3], channel: usize) -> usize {
        ((x * self.cells[1] + y) * self.cells[2] + z) * self.channels + channel
    }
}
