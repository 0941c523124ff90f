//! Pictures of a genome's run: `raster.png` and `rates.png`, a band for each area.

use std::path::Path;

use tectum::{Result, file};
use tectum_spiking::genome::Genome;

use crate::plots::chart::{Axis, Chart};
use crate::plots::line_color;

/// Columns and, in each band, rows into which firings are binned: as fine as the picture.
const COLUMNS: usize = 880;
const ROWS: usize = 16;
/// Height of a band in pixels.
const BAND: u32 = 18;

/// Data of the pictures, collected burst by burst; its size does not depend on the length of the run.
pub struct Pictures {
    first: u32,
    bursts: u32,
    bands: Vec<Band>,
    /// The bands' names from the lowest up, in characters of the font.
    names: Vec<String>,
}

struct Band {
    neurons: std::ops::Range<u32>,
    /// Whether something fired in each cell, by column.
    cells: Vec<[bool; ROWS]>,
    /// Firings by column.
    firings: Vec<u64>,
}

impl Pictures {
    /// Makes the bands for `bursts` bursts after `first`.
    pub fn new(genome: &Genome, first: u32, bursts: u32) -> Self {
        let columns = COLUMNS.min(bursts.max(1) as usize);
        let band = |area: &tectum_spiking::genome::Area| Band { neurons: area.neurons.clone(), cells: vec![[false; ROWS]; columns], firings: vec![0; columns] };
        let names = genome.areas().iter().rev().map(|area| area.id.to_string().to_uppercase()).collect();
        Self { first, bursts: bursts.max(1), bands: genome.areas().iter().map(band).collect(), names }
    }

    /// Adds a burst: the neurons that fired, ascending, and the count in each area.
    pub fn add(&mut self, burst: u32, fired: &[u32], firings: &[u32]) {
        let mut rest = fired;
        for (band, count) in self.bands.iter_mut().zip(firings) {
            let (inside, after) = rest.split_at(*count as usize);
            rest = after;
            let columns = band.cells.len();
            let column = ((u64::from(burst.saturating_sub(self.first + 1)) * columns as u64 / u64::from(self.bursts)) as usize).min(columns - 1);
            band.firings[column] += u64::from(*count);
            for neuron in inside {
                let row = u64::from(neuron - band.neurons.start) * ROWS as u64 / band.neurons.len() as u64;
                band.cells[column][row as usize] = true;
            }
        }
    }

    /// Draws both pictures into a folder.
    ///
    /// # Errors
    /// `Data` or `Io`, naming the path, for a picture that cannot be written.
    pub fn draw(&self, folder: &Path) -> Result<()> {
        file::write_with(&folder.join("raster.png"), |path| self.raster(path))?;
        file::write_with(&folder.join("rates.png"), |path| self.rates(path))
    }

    /// A dot for each cell with a firing.
    fn raster(&self, path: &Path) -> std::result::Result<(), String> {
        let mut chart = self.chart(path, "FIRINGS")?;
        for (index, band) in self.bands.iter().enumerate() {
            let cells = band.cells.iter().enumerate().flat_map(|(column, rows)| {
                let fired = rows.iter().enumerate().filter(|(_, fired)| **fired);
                fired.map(move |(row, _)| (column, row))
            });
            let corners = cells.map(|(column, row)| {
                let top = self.top(index) - (0.1 + 0.8 * row as f64 / ROWS as f64);
                ((self.time(column), top - 0.8 / ROWS as f64), (self.time(column + 1), top))
            });
            chart.cells(corners, line_color(index))?;
        }
        chart.finish()
    }

    /// In each band the fraction of its neurons that fire in a burst, scaled to its own maximum.
    fn rates(&self, path: &Path) -> std::result::Result<(), String> {
        let mut chart = self.chart(path, "RATES EACH TO ITS HIGHEST")?;
        for (index, band) in self.bands.iter().enumerate() {
            let rate = |column: usize| band.firings[column] as f64 / (self.time(column + 1) - self.time(column));
            let highest = (0..band.firings.len()).map(rate).fold(f64::MIN_POSITIVE, f64::max);
            let bottom = self.top(index) - 0.95;
            let steps = (0..band.firings.len()).flat_map(|column| {
                let height = bottom + 0.9 * rate(column) / highest;
                [(self.time(column), height), (self.time(column + 1), height)]
            });
            chart.line(&steps.collect::<Vec<_>>(), line_color(index))?;
        }
        chart.finish()
    }

    fn chart<'p>(&'p self, path: &'p Path, name: &'p str) -> std::result::Result<Chart<'p>, String> {
        let time = Axis::new("BURST", f64::from(self.first), f64::from(self.first) + f64::from(self.bursts));
        let height = (BAND * self.bands.len() as u32 + 72).clamp(200, 2400);
        let mut chart = Chart::sized(path, (960, height), time, Axis::names(name, &self.names))?;
        chart.axes()?;
        Ok(chart)
    }

    /// The upper edge of a band: the first is on top.
    fn top(&self, index: usize) -> f64 {
        (self.bands.len() - index) as f64
    }

    /// Where a column begins.
    fn time(&self, column: usize) -> f64 {
        let columns = self.bands.first().map_or(1, |band| band.cells.len());
        f64::from(self.first) + f64::from(self.bursts) * column as f64 / columns as f64
    }
}
