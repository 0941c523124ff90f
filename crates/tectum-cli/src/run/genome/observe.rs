//! Watching a genome's run: the live raster, a page, pictures, a recording. Without a viewer, nothing is
//! read from the device.

use std::io::{BufWriter, IsTerminal};
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use tectum::file::PartialFile;
use tectum::{Error, Result};
use tectum_control::live::{FiringsFeed, Live, Pace};
use tectum_control::recording::SpikeRecorder;
use tectum_spiking::genome::Genome;
use tectum_spiking::{Network, Simulation, SpikeCounts};

use super::plot::Pictures;
use super::raster::LiveRaster;
use super::spikes::SpikeFile;
use crate::file_ending::{FileEnding, PictureFolder};
use crate::interrupt::Interrupt;
use crate::run::RunArgs;

/// Options for observing a genome.
#[derive(Args)]
pub struct ObserveArgs {
    /// Of a genome: draws firings (raster) and rates of each area, as PNG and SVG, into this
    /// folder.
    ///
    /// A picture of more than 50,000 marks is PNG alone.
    #[arg(long, value_name = "DIR", value_parser = PictureFolder)]
    plot: Option<PathBuf>,
    /// Of a genome: records the firings of each area in each burst.
    #[arg(long, value_name = "FILE.mcap", value_parser = FileEnding(&["mcap"]))]
    record: Option<PathBuf>,
    /// Of a genome: writes every firing, as rows of burst and neuron; and the areas into
    /// FILE.areas.csv.
    ///
    /// `.npy` holds an array of u32 with two columns, CSV has the area's id too. The table of areas
    /// has a row for each area with its first neuron and their number, and one for the neurons of
    /// each memory.
    #[arg(long, value_name = "FILE.npy|FILE.csv", value_parser = FileEnding(&["npy", "csv"]))]
    spikes: Option<PathBuf>,
}

impl ObserveArgs {
    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        let given = [
            ("--plot", self.plot.is_some()),
            ("--record", self.record.is_some()),
            ("--spikes", self.spikes.is_some()),
        ];
        given
            .into_iter()
            .find_map(|(name, is_given)| is_given.then_some(name))
    }
}

/// All observers of a run.
pub struct Observer {
    areas: Vec<Range<u32>>,
    firings: Vec<u32>,
    raster: Option<LiveRaster>,
    page: Option<Page>,
    pictures: Option<(PathBuf, Pictures)>,
    recording: Option<Recording>,
    spikes: Option<SpikeFile>,
}

/// What those who watch see, and the pace that they set.
struct Page {
    live: Live,
    feed: FiringsFeed,
    pace: Pace,
    interrupt: Interrupt,
}

impl Page {
    /// Waits until a burst may begin; whether those who watch have stopped the run.
    fn wait(&mut self, burst: u32) -> bool {
        let interrupt = &self.interrupt;
        let time_ns = self.feed.time_ns(burst);
        self.pace.wait(time_ns, &|| interrupt.is_raised());
        self.live.controls().is_stopped()
    }
}

/// A recording in progress. It gets its name when it is complete; a killed run leaves the partial
/// file, which can be recovered.
struct Recording {
    recorder: SpikeRecorder<BufWriter<PartialFile>>,
    path: PathBuf,
}

impl Observer {
    /// Makes the observers of the command line, for a run from one burst to another of a network
    /// with its memories; the live raster only on a terminal.
    ///
    /// # Errors
    /// `Io`, naming the path, for a folder or file that cannot be made.
    pub fn new(
        genome: &Genome,
        args: &RunArgs,
        (network, memories): (&Network, &[usize]),
        bursts: Range<u32>,
    ) -> Result<Self> {
        let ObserveArgs {
            plot,
            record,
            spikes,
        } = &args.genome.observe;
        if let Some(folder) = plot {
            std::fs::create_dir_all(folder)
                .map_err(|source| Error::io(folder.display(), source))?;
        }
        let is_looked_at =
            std::io::stdout().is_terminal() && crate::messages::has_progress() && !args.json;
        Ok(Self {
            areas: genome
                .areas()
                .iter()
                .map(|area| area.neurons.clone())
                .collect(),
            firings: vec![0; genome.areas().len()],
            raster: is_looked_at.then(|| LiveRaster::new(genome)),
            page: None,
            pictures: plot.clone().map(|folder| {
                (
                    folder,
                    Pictures::new(genome, bursts.start, bursts.end - bursts.start),
                )
            }),
            recording: record
                .as_deref()
                .map(|path| Recording::new(path, genome))
                .transpose()?,
            spikes: spikes
                .as_deref()
                .map(|path| SpikeFile::new(path, genome, network, memories))
                .transpose()?,
        })
    }

    /// Also shows the run to those who watch.
    #[must_use]
    pub fn with_page(self, live: &Live, genome: &Genome, interrupt: &Interrupt) -> Self {
        let page = Page {
            live: live.clone(),
            feed: FiringsFeed::new(live, genome),
            pace: Pace::new(live.controls().clone()),
            interrupt: interrupt.clone(),
        };
        Self {
            page: Some(page),
            ..self
        }
    }

    /// Whether a page shows the run, so that each burst may have to wait.
    pub fn has_page(&self) -> bool {
        self.page.is_some()
    }

    /// Waits until the next burst may begin; whether those who watch have stopped the run.
    pub fn wait(&mut self, burst: u32) -> bool {
        self.page.as_mut().is_some_and(|page| page.wait(burst))
    }

    /// Whether it draws on the terminal while the genome runs.
    pub fn is_live(&self) -> bool {
        self.raster.is_some()
    }

    /// Runs `bursts` bursts, one at a time if something observes, else together; or until the watch
    /// breaks it off.
    ///
    /// # Errors
    /// What the device reports; a standard output or a file that cannot be written.
    pub fn run(
        &mut self,
        simulation: &mut Simulation,
        bursts: u32,
        watch: &mut dyn FnMut(SpikeCounts) -> ControlFlow<()>,
    ) -> Result<SpikeCounts> {
        if self.raster.is_none()
            && self.page.is_none()
            && self.pictures.is_none()
            && self.recording.is_none()
            && self.spikes.is_none()
        {
            return simulation.run_watched(bursts, watch);
        }
        for _ in 0..bursts {
            let start = Instant::now();
            simulation.run(1)?;
            let fired = simulation.fired()?;
            if let Some(page) = &mut self.page {
                let duration_ns = start.elapsed().as_nanos() as u64;
                page.feed.write(&fired, simulation.counts(), duration_ns);
            }
            self.watch(simulation.counts().bursts, &fired)?;
            if watch(simulation.counts()).is_break() {
                break;
            }
        }
        Ok(simulation.counts())
    }

    /// Completes the files, and clears the raster.
    ///
    /// # Errors
    /// `Io` or `Data`, naming the path.
    pub fn finish(self) -> Result<()> {
        // These first: they cannot be made again.
        self.recording.map_or(Ok(()), Recording::finish)?;
        self.spikes.map_or(Ok(()), SpikeFile::finish)?;
        if let Some(raster) = self.raster {
            raster.finish()?;
        }
        self.pictures
            .map_or(Ok(()), |(folder, pictures)| pictures.draw(&folder))
    }

    fn watch(&mut self, burst: u32, fired: &[u32]) -> Result<()> {
        count(&self.areas, fired, &mut self.firings);
        if let Some((_, pictures)) = &mut self.pictures {
            pictures.add(burst, fired, &self.firings);
        }
        if let Some(Recording { recorder, path }) = &mut self.recording {
            recorder
                .push(burst, &self.firings)
                .map_err(|error| error.at(path.display()))?;
        }
        if let Some(spikes) = &mut self.spikes {
            spikes.push(burst, fired)?;
        }
        match &mut self.raster {
            Some(raster) => raster.add(burst, &self.firings),
            None => Ok(()),
        }
    }
}

/// Counts the given neurons, in ascending order, in each area; areas are consecutive.
fn count(areas: &[Range<u32>], fired: &[u32], counts: &mut [u32]) {
    let mut rest = fired;
    for (area, count) in areas.iter().zip(counts) {
        let inside = rest.partition_point(|neuron| *neuron < area.end);
        *count = inside as u32;
        rest = &rest[inside..];
    }
}

impl Recording {
    fn new(path: &Path, genome: &Genome) -> Result<Self> {
        Ok(Self {
            recorder: SpikeRecorder::new(BufWriter::new(PartialFile::create(path)?), genome)?,
            path: path.to_owned(),
        })
    }

    fn finish(self) -> Result<()> {
        let file = self
            .recorder
            .finish()
            .map_err(|error| error.at(self.path.display()))?;
        file.into_inner()
            .map_err(|error| Error::io(self.path.display(), error.into_error()))?
            .commit()
    }
}

#[cfg(test)]
mod tests {
    use super::count;

    #[test]
    fn firings_are_counted_by_area() {
        let mut counts = [9; 4];
        count(&[0..1, 1..5, 5..6, 6..20], &[0, 1, 4, 6, 19], &mut counts);
        assert_eq!(counts, [1, 2, 0, 2]);
    }
}
