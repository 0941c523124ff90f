//! What a spiking network shows of itself while it runs.

use std::ops::Range;
use std::sync::Arc;

use tectum_spiking::SpikeCounts;
use tectum_spiking::genome::Genome;

use super::{
    Group, Histogram, Live, Marks, Quantity, QuantityKind, RasterRows, Series, StreamSpec,
    StreamWriter,
};

/// The rows of the raster: of more neurons, some at equal distances are shown.
const MAX_RASTER_ROWS: u32 = 512;

/// What a genome's run writes in each burst.
pub struct FiringsFeed {
    stream: StreamWriter,
    areas: Vec<Range<u32>>,
    /// The neurons of the rows, ascending.
    shown: Vec<u32>,
    /// The rows that fired.
    rows: Vec<u32>,
    /// The firings of each area in Hz.
    rates: Vec<f32>,
    timestep_s: f64,
    bursts: Arc<Quantity>,
    spikes: Arc<Quantity>,
    events: Arc<Quantity>,
    seconds: Arc<Quantity>,
    duration: Arc<Histogram>,
}

impl FiringsFeed {
    /// Describes a genome to those who watch.
    pub fn new(live: &Live, genome: &Genome) -> Self {
        let areas: Vec<Range<u32>> = genome
            .areas()
            .iter()
            .map(|area| area.neurons.clone())
            .collect();
        let timestep_s = genome.physiology().timestep_s;
        let counts = rows_of(&areas);
        let names = genome.areas().iter().map(|area| area.id.to_string());
        let raster = names.clone().zip(&counts).filter(|(_, rows)| **rows > 0);
        let raster = raster.map(|(name, rows)| RasterRows { name, rows: *rows });
        let series = names.map(|name| Series::new(name, "Hz", Group::Rate));
        let spec = StreamSpec {
            raster: raster.collect(),
            ..StreamSpec::new("firings", "burst", timestep_s, series.collect())
        };
        let shown = areas.iter().zip(&counts).flat_map(|(area, rows)| {
            let (first, neurons) = (area.start, u64::from(area.end - area.start));
            let rows = u64::from(*rows);
            (0..rows).map(move |row| first + (row * neurons / rows) as u32)
        });
        let counter = |name, meaning| live.add_quantity(QuantityKind::Counter, name, meaning);
        Self {
            stream: live.add_stream(spec),
            rates: vec![0.0; areas.len()],
            shown: shown.collect(),
            rows: Vec::with_capacity(MAX_RASTER_ROWS as usize),
            areas,
            timestep_s,
            bursts: counter("bursts", "Bursts that were run."),
            spikes: counter("spikes", "Firings of neurons."),
            events: counter("events", "Synaptic events."),
            seconds: live.add_quantity(
                QuantityKind::Gauge,
                "seconds",
                "Time of the network, in seconds.",
            ),
            duration: live.add_histogram("burst_duration", "Host time of a burst."),
        }
    }

    /// The time of a burst in nanoseconds.
    pub fn time_ns(&self, burst: u32) -> u64 {
        (f64::from(burst) * self.timestep_s * 1e9).round() as u64
    }

    /// Writes a burst: the neurons that fired, ascending, and the counts after it.
    pub fn write(&mut self, fired: &[u32], counts: SpikeCounts, duration_ns: u64) {
        let mut rest = fired;
        for (area, rate) in self.areas.iter().zip(&mut self.rates) {
            let (inside, others) = rest.split_at(rest.partition_point(|neuron| *neuron < area.end));
            rest = others;
            let neurons = f64::from(area.end - area.start).max(1.0);
            *rate = (inside.len() as f64 / neurons / self.timestep_s) as f32;
        }
        self.rows.clear();
        let rows = fired.iter().filter_map(|neuron| {
            let row = self.shown.binary_search(neuron).ok()?;
            Some(row as u32)
        });
        self.rows.extend(rows);
        let (step, time_ns) = (u64::from(counts.bursts), self.time_ns(counts.bursts));
        let rates = self.rates.iter().copied();
        self.stream
            .write_all(step, time_ns, Marks::NONE, rates, &self.rows, &[]);
        self.duration.record(duration_ns);
        self.count(counts);
    }

    /// Writes the counts.
    pub fn count(&self, counts: SpikeCounts) {
        self.bursts.set(f64::from(counts.bursts));
        self.spikes.set(counts.spikes as f64);
        self.events.set(counts.events as f64);
        self.seconds.set(f64::from(counts.bursts) * self.timestep_s);
    }
}

/// The rows of each area: its share of the neurons, at least one as long as there are rows.
fn rows_of(areas: &[Range<u32>]) -> Vec<u32> {
    let neurons: u64 = areas
        .iter()
        .map(|area| u64::from(area.end - area.start))
        .sum();
    let mut left = MAX_RASTER_ROWS;
    let rows = areas.iter().map(|area| {
        let own = area.end - area.start;
        let share = u64::from(own) * u64::from(MAX_RASTER_ROWS) / neurons.max(1);
        let rows = if neurons <= u64::from(MAX_RASTER_ROWS) {
            own
        } else {
            (share as u32).max(1).min(own)
        };
        let rows = rows.min(left);
        left -= rows;
        rows
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::rows_of;

    #[test]
    fn small_networks_are_shown_whole_and_large_ones_by_their_shares() {
        assert_eq!(rows_of(&[0..3, 3..3, 3..500]), [3, 0, 497]);
        assert_eq!(rows_of(&[0..1, 1..1_001, 1_001..4_000]), [1, 128, 383]);
        let many: Vec<_> = (0..600).map(|area| area * 10..(area + 1) * 10).collect();
        assert_eq!(rows_of(&many).iter().sum::<u32>(), 512);
    }
}
