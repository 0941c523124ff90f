//! Pictures of a genome's run: `raster` and `rates`, a band for each area, as PNG and SVG.

use std::ops::Range;
use std::path::Path;

use plotters::style::RGBColor;
use tectum::Result;
use tectum_spiking::genome::{Area, Genome};

use crate::plots::chart::{Axis, Chart};
use crate::plots::line_color;
use crate::table::short;

/// Maximum width of the axes in pixels, and of it the number of columns: a column is at least a
/// pixel.
const WIDTH: u32 = 700;
/// Heights of all bands of a raster together, and of one of them, in pixels; a row of neurons is at
/// least a pixel.
const RASTER: u32 = 1600;
const RASTER_BAND: Range<u32> = 28..320;
/// The same of the rates.
const RATES: u32 = 480;
const RATES_BAND: Range<u32> = 32..80;
/// Pixels between two bands.
const GAP: u32 = 8;
/// Maximum characters of the name of an area.
const NAME: usize = 40;
/// Room for the texts on the right side, in pixels.
const RASTER_TEXTS: u32 = 150;
const RATES_TEXTS: u32 = 180;
/// Shades of a raster's cells.
const SHADES: u64 = 4;
/// How much of white the palest shade and a maximum have.
const PALE: f64 = 0.65;
const GREY: RGBColor = RGBColor(90, 90, 90);

/// Data of the pictures, collected burst by burst; its size does not depend on the length of the
/// run.
pub struct Pictures {
    first: u32,
    /// Bursts of a column.
    bin: u32,
    /// Bursts that were added.
    added: u32,
    timestep_s: f64,
    bands: Vec<Band>,
    /// What is drawn.
    title: String,
}

struct Band {
    name: String,
    neurons: Range<u32>,
    /// Neurons of a row of the raster.
    group: u32,
    /// By column, firings of each row.
    rows: Vec<Vec<u32>>,
    /// By column, firings of all bursts, and of the burst with the maximum.
    sums: Vec<u64>,
    maxima: Vec<u32>,
}

/// Where the bands of a picture are: heights in pixels, from the top.
struct Layout {
    heights: Vec<u32>,
    total: u32,
}

impl Pictures {
    /// Makes the bands for `bursts` bursts after `first`.
    pub fn new(genome: &Genome, first: u32, bursts: u32) -> Self {
        let bin = bursts.div_ceil(WIDTH).max(1);
        let columns = bursts.div_ceil(bin).max(1) as usize;
        let areas = genome.areas().len() as u32;
        let max_rows = (RASTER / areas.max(1)).clamp(RASTER_BAND.start, RASTER_BAND.end);
        let band = |area: &Area| {
            let group = (area.neurons.len() as u32).div_ceil(max_rows).max(1);
            let rows = (area.neurons.len() as u32).div_ceil(group) as usize;
            Band {
                name: shortened(&format!("{} {}", area.id, area.name)),
                neurons: area.neurons.clone(),
                group,
                rows: vec![vec![0; rows]; columns],
                sums: vec![0; columns],
                maxima: vec![0; columns],
            }
        };
        Self {
            first,
            bin,
            added: 0,
            timestep_s: genome.physiology().timestep_s,
            bands: genome.areas().iter().map(band).collect(),
            title: format!("genome \"{}\"", genome.title()),
        }
    }

    /// Adds a burst: the neurons that fired, ascending, and the count in each area.
    pub fn add(&mut self, burst: u32, fired: &[u32], firings: &[u32]) {
        let place = burst.saturating_sub(self.first + 1);
        self.added = self.added.max(place + 1);
        let mut rest = fired;
        for (band, count) in self.bands.iter_mut().zip(firings) {
            let (inside, after) = rest.split_at(*count as usize);
            rest = after;
            let column = ((place / self.bin) as usize).min(band.sums.len() - 1);
            band.sums[column] += u64::from(*count);
            band.maxima[column] = band.maxima[column].max(*count);
            for neuron in inside {
                band.rows[column][((neuron - band.neurons.start) / band.group) as usize] += 1;
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

    /// A cell for each column and group of neurons, darker for more firings; cells of one row and
    /// shade that touch are one.
    fn raster(&self) -> Chart {
        let layout = Layout::new(
            self.bands
                .iter()
                .map(|band| (band.rows[0].len() as u32).max(RASTER_BAND.start)),
        );
        let mut chart = self.chart("Firings of the neurons of each area", &layout, RASTER_TEXTS);
        let group = self.bands.iter().map(|band| band.group).max().unwrap_or(1);
        let cell = match (self.bin, group) {
            (1, 1) => "a mark: a neuron fired in a burst".to_owned(),
            (bin, 1) => format!(
                "a cell: a neuron in {}; darker: more firings, each area to its maximum",
                bursts(bin)
            ),
            (bin, _) => format!(
                "a cell: the stated neurons in {}; darker: more firings, each area to its maximum",
                bursts(bin)
            ),
        };
        chart.legend(&cell, GREY);
        for (index, band) in self.bands.iter().enumerate() {
            let (top, height) = (layout.top(index), f64::from(layout.heights[index]));
            let most = u64::from(band.rows.iter().flatten().max().copied().unwrap_or(0)).max(1);
            let shade = |count: u32| (u64::from(count) * SHADES).div_ceil(most);
            let rows = band.rows[0].len();
            for row in 0..rows {
                let upper = top - height * row as f64 / rows as f64;
                let lower = top - height * (row + 1) as f64 / rows as f64;
                let columns: Vec<usize> = (0..band.rows.len())
                    .filter(|column| band.rows[*column][row] > 0)
                    .collect();
                for run in columns.chunk_by(|a, b| {
                    a + 1 == *b && shade(band.rows[*a][row]) == shade(band.rows[*b][row])
                }) {
                    let part = 1.0 - shade(band.rows[run[0]][row]) as f64 / SHADES as f64;
                    chart.cell(
                        (self.time(run[0]), lower),
                        (self.time(run[run.len() - 1] + 1), upper),
                        paler(line_color(index), PALE * part),
                    );
                }
            }
            let (first, last) = (band.neurons.start, band.neurons.end.saturating_sub(1));
            let grouped = if band.group == 1 {
                String::new()
            } else {
                format!("{} neurons a row", band.group)
            };
            match height >= 4.0 * f64::from(GAP) && band.neurons.len() > 1 {
                true => {
                    chart.margin_text(top, 0.4, &format!("neuron {first}"));
                    chart.margin_text(top - height, -0.2, &last.to_string());
                }
                false => {
                    let named = if first == last {
                        format!("neuron {first}")
                    } else {
                        format!("neurons {first} to {last}")
                    };
                    chart.margin_text(
                        top - height / 2.0,
                        if grouped.is_empty() { 0.0 } else { -0.5 },
                        &named,
                    );
                }
            }
            if !grouped.is_empty() {
                chart.margin_text(
                    top - height / 2.0,
                    if height >= 4.0 * f64::from(GAP) {
                        0.0
                    } else {
                        0.5
                    },
                    &grouped,
                );
            }
        }
        chart
    }

    /// In each band the fraction of its neurons that fire in a burst: the mean of each column, and
    /// the burst of it with the maximum, scaled to the band's maximum.
    fn rates(&self) -> Chart {
        let height =
            (RATES / (self.bands.len() as u32).max(1)).clamp(RATES_BAND.start, RATES_BAND.end);
        let layout = Layout::new(self.bands.iter().map(|_| height));
        let mut chart = self.chart("Neurons that fire in a burst", &layout, RATES_TEXTS);
        match self.bin {
            1 => chart.legend(
                "fraction of an area's neurons, each area to its maximum",
                GREY,
            ),
            bin => {
                chart.legend(&format!("mean of {}", bursts(bin)), GREY);
                chart.legend(
                    "maximum of them; each area to its maximum",
                    paler(GREY, PALE),
                );
            }
        }
        for (index, band) in self.bands.iter().enumerate() {
            let most = f64::from(band.maxima.iter().max().copied().unwrap_or(0)).max(1.0);
            let bottom = layout.top(index) - f64::from(height);
            let mut fill = |values: Vec<f64>, color: RGBColor| {
                let columns: Vec<usize> = (0..values.len())
                    .filter(|column| values[*column] > 0.0)
                    .collect();
                for run in columns.chunk_by(|a, b| a + 1 == *b && values[*a] == values[*b]) {
                    let above = bottom + f64::from(height) * values[run[0]] / most;
                    chart.cell(
                        (self.time(run[0]), bottom),
                        (self.time(run[run.len() - 1] + 1), above),
                        color,
                    );
                }
            };
            if self.bin > 1 {
                fill(
                    band.maxima.iter().map(|count| f64::from(*count)).collect(),
                    paler(line_color(index), PALE),
                );
            }
            fill(
                (0..band.sums.len())
                    .map(|column| band.sums[column] as f64 / f64::from(self.bursts_of(column)))
                    .collect(),
                line_color(index),
            );
            let [mean, maximum] = self.labels(band);
            chart.margin_text(layout.top(index) - f64::from(height) / 2.0, -0.5, &mean);
            chart.margin_text(layout.top(index) - f64::from(height) / 2.0, 0.5, &maximum);
        }
        chart
    }

    /// Mean over all bursts, with the rate of a neuron; and maximum of a burst.
    fn labels(&self, band: &Band) -> [String; 2] {
        let neurons = f64::from(band.neurons.len().max(1) as u32);
        let mean = band.sums.iter().sum::<u64>() as f64 / (f64::from(self.added.max(1)) * neurons);
        let maximum = f64::from(band.maxima.iter().max().copied().unwrap_or(0)) / neurons;
        [
            format!(
                "mean {:.1} % ({} Hz)",
                100.0 * mean,
                hertz(mean / self.timestep_s)
            ),
            format!("maximum {:.1} %", 100.0 * maximum),
        ]
    }

    fn chart(&self, what: &str, layout: &Layout, right: u32) -> Chart {
        // A burst is drawn around its number.
        let (low, high) = (
            self.time(0),
            self.time(self.added.div_ceil(self.bin) as usize),
        );
        let time = Axis::new(
            format!("burst of {} ms", short(1e3 * self.timestep_s)),
            low,
            high,
        );
        let labels = self.bands.iter().enumerate();
        let labels = labels
            .map(|(index, band)| {
                (
                    layout.top(index) - f64::from(layout.heights[index]) / 2.0,
                    band.name.clone(),
                )
            })
            .collect();
        let areas = Axis::labels("area", f64::from(layout.total), labels);
        let mut chart = Chart::around(
            (WIDTH, layout.total),
            right,
            &format!("{what}: {}", self.title),
            time,
            areas,
        );
        chart.axes();
        chart
    }

    /// Where a column begins, in bursts; the last one may be shorter.
    fn time(&self, column: usize) -> f64 {
        f64::from(self.first)
            + f64::from(self.added.min(self.bin.saturating_mul(column as u32)))
            + 0.5
    }

    /// Bursts of a column that ran.
    fn bursts_of(&self, column: usize) -> u32 {
        self.added
            .saturating_sub(self.bin.saturating_mul(column as u32))
            .clamp(1, self.bin)
    }
}

impl Layout {
    fn new(heights: impl Iterator<Item = u32>) -> Self {
        let heights: Vec<u32> = heights.collect();
        let total = heights.iter().map(|height| height + GAP).sum::<u32>() + GAP;
        Self { heights, total }
    }

    /// The upper edge of a band, above the bottom: the first is on top.
    fn top(&self, index: usize) -> f64 {
        let above: u32 = self.heights[..index]
            .iter()
            .map(|height| height + GAP)
            .sum();
        f64::from(self.total - GAP - above)
    }
}

/// A name that fits next to a band.
fn shortened(name: &str) -> String {
    let name = name.trim_end();
    if name.chars().count() <= NAME {
        name.to_owned()
    } else {
        name.chars().take(NAME - 1).collect::<String>() + "…"
    }
}

fn bursts(count: u32) -> String {
    if count == 1 {
        "1 burst".to_owned()
    } else {
        format!("{count} bursts")
    }
}

/// A rate with at most three digits that count.
fn hertz(rate: f64) -> String {
    let decimals = if rate >= 100.0 || rate == 0.0 {
        0
    } else {
        (2 - rate.log10().floor() as i32).clamp(0, 6) as usize
    };
    format!("{rate:.decimals$}")
}

/// A colour with a part of white.
fn paler(color: RGBColor, white: f64) -> RGBColor {
    let mixed = |part: u8| (f64::from(part) + white * (255.0 - f64::from(part))).round() as u8;
    RGBColor(mixed(color.0), mixed(color.1), mixed(color.2))
}

#[cfg(test)]
mod tests {
    use tectum_spiking::genome::GenomeOptions;

    use super::*;

    /// Areas of 10 and 1,000 neurons, a burst of 1 ms.
    fn genome() -> Genome {
        let area = |size: u32| {
            format!(r#"{{"block_boundaries": [{size}, 1, 1], "mp_charge_accumulation": true}}"#)
        };
        let text = format!(
            r#"{{"version": "2.1", "physiology": {{"simulation_timestep": 0.001}}, "blueprint": {{"eye___": {}, "arm___": {}}}}}"#,
            area(10),
            area(1000)
        );
        Genome::parse(&text, &GenomeOptions::default()).expect("a genome")
    }

    /// In burst b, b mod 7 of the first area's neurons fire and b mod 11 of the second's; in one
    /// burst nine of the first.
    fn fired(burst: u32) -> (Vec<u32>, [u32; 2]) {
        let counts = [if burst == 333 { 9 } else { burst % 7 }, burst % 11];
        (
            (0..counts[0])
                .chain((0..counts[1]).map(|neuron| 10 + 90 * neuron))
                .collect(),
            counts,
        )
    }

    #[test]
    fn labels_are_the_counts_for_any_number_of_bursts() {
        for (first, bursts) in [
            (0, 1),
            (0, 500),
            (0, 700),
            (0, 701),
            (0, 1000),
            (200, 1399),
            (0, 50_000),
        ] {
            let mut pictures = Pictures::new(&genome(), first, bursts);
            let (mut sums, mut maxima) = ([0u64; 2], [0; 2]);
            for burst in first + 1..=first + bursts {
                let (fired, counts) = fired(burst);
                pictures.add(burst, &fired, &counts);
                for area in 0..2 {
                    sums[area] += u64::from(counts[area]);
                    maxima[area] = maxima[area].max(counts[area]);
                }
            }
            for (area, neurons) in [10.0, 1000.0].into_iter().enumerate() {
                let mean = sums[area] as f64 / f64::from(bursts) / neurons;
                let expected = [
                    format!("mean {:.1} % ({} Hz)", 100.0 * mean, hertz(1000.0 * mean)),
                    format!("maximum {:.1} %", 100.0 * f64::from(maxima[area]) / neurons),
                ];
                assert_eq!(
                    pictures.labels(&pictures.bands[area]),
                    expected,
                    "{bursts} bursts after {first}"
                );
            }
            // Every column but the last has the same number of bursts, and together they have all.
            let columns = pictures.bands[0].sums.len();
            assert!(
                columns <= WIDTH as usize
                    && (0..columns)
                        .map(|column| pictures.bursts_of(column))
                        .sum::<u32>()
                        == bursts,
                "{bursts}"
            );
            assert!(
                (0..columns - 1).all(|column| pictures.bursts_of(column) == pictures.bin),
                "{bursts}"
            );
            assert_eq!(
                (pictures.time(0), pictures.time(columns)),
                (f64::from(first) + 0.5, f64::from(first + bursts) + 0.5)
            );
            // The mean of a column is that of its bursts, and its cells hold all firings.
            let of = |column: usize| {
                first + pictures.bin * column as u32 + 1
                    ..=(first + pictures.bin * (column as u32 + 1)).min(first + bursts)
            };
            for (area, band) in pictures.bands.iter().enumerate() {
                for column in 0..columns {
                    let expected: u64 = of(column)
                        .map(|burst| u64::from(fired(burst).1[area]))
                        .sum();
                    let cells: u64 = band.rows[column]
                        .iter()
                        .map(|count| u64::from(*count))
                        .sum();
                    assert_eq!(
                        (band.sums[column], cells),
                        (expected, expected),
                        "{bursts} bursts, column {column}"
                    );
                }
            }
        }
    }

    #[test]
    fn an_interrupted_run_is_drawn_up_to_its_last_burst() {
        let mut pictures = Pictures::new(&genome(), 0, 1_000_000);
        for burst in 1..=10 {
            let (fired, counts) = fired(burst);
            pictures.add(burst, &fired, &counts);
        }
        assert_eq!((pictures.time(1), pictures.bursts_of(0)), (10.5, 10));
        assert_eq!(
            pictures.labels(&pictures.bands[0])[0],
            format!("mean {:.1} % ({} Hz)", 27.0, 270),
            "1 to 6, 0, 1, 2, 3 of 10"
        );
    }

    #[test]
    fn rows_of_a_raster_have_equal_groups_of_neurons() {
        let pictures = Pictures::new(&genome(), 0, 10);
        assert_eq!(
            [&pictures.bands[0], &pictures.bands[1]].map(|band| (band.group, band.rows[0].len())),
            [(1, 10), (4, 250)]
        );
    }

    #[test]
    fn long_names_and_small_rates_are_legible() {
        assert_eq!(shortened("abc "), "abc");
        assert_eq!(shortened(&"x".repeat(50)), "x".repeat(39) + "…");
        assert_eq!(
            [0.0, 0.0123, 5.26, 52.64, 526.4].map(hertz),
            ["0", "0.0123", "5.26", "52.6", "526"]
        );
    }
}
