//! The live raster: a line for each area, a column for each update, on a terminal.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use tectum::Result;
use tectum_spiking::genome::Genome;

use crate::table::print;

/// Minimum time between redraws; enough for viewers.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);
/// Columns of the past that are shown.
const COLUMNS: usize = 56;
/// Maximum number of lines: fits in a common terminal.
const LINES: usize = 20;
/// From silence to the area's highest rate so far.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The lines.
pub struct LiveRaster {
    areas: Vec<AreaLine>,
    /// Number of areas without a line.
    hidden: usize,
    bursts: u32,
    burst: u32,
    drawn: Option<Instant>,
}

struct AreaLine {
    name: String,
    neurons: f64,
    /// Firings since the last update.
    firings: u64,
    /// Fraction of the neurons that fired in a burst, by update.
    rates: VecDeque<f64>,
    highest: f64,
}

impl LiveRaster {
    /// Makes the lines of the first areas; nothing is shown yet.
    pub fn new(genome: &Genome) -> Self {
        let line = |area: &tectum_spiking::genome::Area| AreaLine {
            name: area.id.to_string(),
            neurons: area.neurons.len() as f64,
            firings: 0,
            rates: VecDeque::with_capacity(COLUMNS + 1),
            highest: 0.0,
        };
        let areas = genome.areas();
        Self {
            areas: areas.iter().take(LINES).map(line).collect(),
            hidden: areas.len().saturating_sub(LINES),
            bursts: 0,
            burst: 0,
            drawn: None,
        }
    }

    /// Adds a burst; redraws if due.
    ///
    /// # Errors
    /// `Io` for a standard output that cannot be written.
    pub fn add(&mut self, burst: u32, firings: &[u32]) -> Result<()> {
        self.take(burst, firings);
        if self
            .drawn
            .is_some_and(|drawn| drawn.elapsed() < REDRAW_INTERVAL)
        {
            return Ok(());
        }
        let up = if self.drawn.is_some() {
            format!("\x1b[{}A", self.height())
        } else {
            String::new()
        };
        self.drawn = Some(Instant::now());
        let frame = self.frame();
        print(&(up + &frame))
    }

    /// Removes the lines.
    ///
    /// # Errors
    /// As [`LiveRaster::add`].
    pub fn finish(self) -> Result<()> {
        if self.drawn.is_some() {
            print(&format!("\x1b[{}A\x1b[J", self.height()))
        } else {
            Ok(())
        }
    }

    fn height(&self) -> usize {
        self.areas.len() + 1
    }

    fn take(&mut self, burst: u32, firings: &[u32]) {
        (self.burst, self.bursts) = (burst, self.bursts + 1);
        for (area, firings) in self.areas.iter_mut().zip(firings) {
            area.firings += u64::from(*firings);
        }
    }

    /// One more column, and all lines as text; each clears what was behind it.
    fn frame(&mut self) -> String {
        let bursts = f64::from(std::mem::take(&mut self.bursts).max(1));
        let mut text = String::new();
        for area in &mut self.areas {
            let rate = std::mem::take(&mut area.firings) as f64 / (bursts * area.neurons);
            area.highest = area.highest.max(rate);
            area.rates.push_back(rate);
            if area.rates.len() > COLUMNS {
                area.rates.pop_front();
            }
            let blocks = area
                .rates
                .iter()
                .map(|rate| block(*rate, area.highest))
                .collect::<String>();
            text += &format!(
                "{:<12} {blocks:<COLUMNS$} {:5.1} %\x1b[K\n",
                area.name,
                100.0 * rate
            );
        }
        let hidden = if self.hidden > 0 {
            format!("; {} more areas", self.hidden)
        } else {
            String::new()
        };
        text + &format!("burst {}{hidden}\x1b[K\n", self.burst)
    }
}

/// The block of a rate; any firing shows.
fn block(rate: f64, highest: f64) -> char {
    match rate > 0.0 {
        true => BLOCKS[((rate / highest * 8.0).round() as usize).clamp(1, 8)],
        false => BLOCKS[0],
    }
}

#[cfg(test)]
mod tests {
    use tectum_spiking::genome::{Genome, GenomeOptions};

    use super::*;

    #[test]
    fn a_column_is_the_mean_rate_since_the_last_one() {
        let area = r#"{"block_boundaries": [1, 1, 4], "mp_charge_accumulation": true}"#;
        let text =
            format!(r#"{{"version": "2.1", "blueprint": {{"eye___": {area}, "arm___": {area}}}}}"#);
        let genome = Genome::parse(&text, &GenomeOptions::default()).expect("a genome");
        let mut raster = LiveRaster::new(&genome);
        let mut lines = String::new();
        for bursts in [
            &[[4, 0]][..],
            &[[4, 1], [0, 0]],
            &[[0, 0]],
            &[[1, 2], [0, 2]],
        ] {
            for (burst, firings) in bursts.iter().enumerate() {
                raster.take(burst as u32, firings);
            }
            lines = raster.frame();
        }
        let shown = lines
            .lines()
            .map(|line| {
                line.trim_end_matches("\x1b[K")
                    .split_once(' ')
                    .expect("a name")
                    .1
                    .trim_start_matches("      ")
            })
            .collect::<Vec<_>>();
        assert_eq!(
            (shown[0].trim_end(), shown[1].trim_end()),
            (
                format!("{:<56}  12.5 %", "█▄ ▁").as_str(),
                format!("{:<56}  50.0 %", " ▂ █").as_str()
            )
        );
        assert_eq!(shown[2], "1");
        for _ in 0..100 {
            lines = raster.frame();
        }
        assert_eq!(
            lines.lines().next().expect("a line").chars().count(),
            12 + 1 + COLUMNS + 1 + 7 + 3
        );
    }
}
