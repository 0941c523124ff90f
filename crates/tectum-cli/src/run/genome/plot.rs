//! Pictures of a genome's run: `raster` and `rates`, a band for each area, as PNG and SVG.

use std::path::Path;

use tectum::Result;
use tectum_spiking::genome::Genome;

use crate::plots::chart::{Axis, Chart};
use crate::plots::line_color;

/// Columns and, in each band, rows into which firings are binned: as fine as the picture.
const COLUMNS: usize = 700;
const ROWS: usize = 16;
/// Maximum characters of the name of an area.
const NAME: usize = 20;
/// Height of a band in pixels.
const BAND: u32 = 24;

/// Data of the pictures, collected burst by burst; its size does not depend on the length of the run.
pub struct Pictures {
    first: u32,
    bursts: u32,
    bands: Vec<Band>,
    /// What is drawn.
    title: String,
    /// The bands' names from the lowest up.
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
        let names = genome.areas().iter().rev().map(|area| format!("{} {}", area.id, area.name).trim_end().chars().take(NAME).collect()).collect();
        let title = format!("genome \"{}\"", genome.title());
        Self { first, bursts: bursts.max(1), bands: genome.areas().iter().map(band).collect(), title, names }
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
        self.raster().save_both(folder, "raster")?;
        self.rates().save_both(folder, "rates").map(|_| ())
    }

    /// A mark for each cell with a firing; those of one row that touch are one.
    fn raster(&self) -> Chart {
        let mut chart = self.chart("Firings of the neurons of each area", "area", self.names.clone());
        for (index, band) in self.bands.iter().enumerate() {
            for row in 0..ROWS {
                let top = self.top(index) - (0.1 + 0.8 * row as f64 / ROWS as f64);
                let columns: Vec<usize> = (0..band.cells.len()).filter(|column| band.cells[*column][row]).collect();
                for run in columns.chunk_by(|a, b| a + 1 == *b) {
                    let (from, to) = (self.time(run[0]), self.time(run[run.len() - 1] + 1));
                    chart.cell((from, top - 0.8 / ROWS as f64), (to, top), line_color(index));
                }
            }
        }
        chart
    }

    /// In each band the fraction of its neurons that fire in a burst, scaled to its own maximum, which is next to its name.
    fn rates(&self) -> Chart {
        let rate = |band: &Band, column: usize| band.firings[column] as f64 / (self.time(column + 1) - self.time(column));
        let highest = |band: &Band| (0..band.firings.len()).map(|column| rate(band, column)).fold(f64::MIN_POSITIVE, f64::max);
        let percent = |band: &Band| 100.0 * highest(band) / band.neurons.len() as f64;
        let names = self.names.iter().zip(self.bands.iter().rev()).map(|(name, band)| format!("{name}, {:.1} %", percent(band)));
        let mut chart = self.chart("Neurons that fire, each area to its maximum", "area, maximum", names.collect());
        for (index, band) in self.bands.iter().enumerate() {
            let (highest, bottom) = (highest(band), self.top(index) - 0.95);
            let steps = (0..band.firings.len()).flat_map(|column| {
                let height = bottom + 0.9 * rate(band, column) / highest;
                [(self.time(column), height), (self.time(column + 1), height)]
            });
            chart.line(&steps.collect::<Vec<_>>(), line_color(index));
        }
        chart
    }

    fn chart(&self, what: &str, name: &str, names: Vec<String>) -> Chart {
        let time = Axis::new("burst", f64::from(self.first), f64::from(self.first) + f64::from(self.bursts));
        let height = (BAND * self.bands.len() as u32 + 120).clamp(240, 2400);
        let mut chart = Chart::sized((800, height), &format!("{what}: {}", self.title), time, Axis::names(name, names));
        chart.axes();
        chart
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
