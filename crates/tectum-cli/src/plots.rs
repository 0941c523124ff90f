//! The pictures in a run folder: the task's measure as `angle.png` or `measure.png`, `actions.png`, `latency.png`, `lateness.png`, and for a field its slices and an animation of one of them.

pub mod chart;
mod font;
pub mod slices;

use std::path::Path;

use plotters::style::RGBColor;
use tectum::snapshot::Snapshot;
use tectum::{LATENCY_BINS, LatencyHistogram, Result, file};
use tectum_control::body::task::Measure;
use tectum_control::closed_loop::Outcome;
use tectum_control::recording::{Trace, TraceTick};
use tectum_control::run_folder::{SNAPSHOT_FILE, TRACE_FILE};

use self::chart::{Axis, Chart};

const BLUE: RGBColor = RGBColor(31, 90, 160);
const BAND: RGBColor = RGBColor(214, 236, 214);
const GREY: RGBColor = RGBColor(225, 225, 225);
/// Lines of several actions, in order.
const LINES: [RGBColor; 4] = [BLUE, RGBColor(190, 80, 40), RGBColor(60, 130, 60), RGBColor(120, 60, 140)];
/// A jump by more than half a turn is a wrap of the angle, not a motion of the pole.
const HALF_TURN_DEG: f64 = 180.0;

/// Draws the recording in `folder`, the latencies, and how late the loop woke up.
///
/// # Errors
/// A recording that cannot be read; a picture that cannot be written.
pub fn draw(folder: &Path, outcome: &Outcome, dt_s: f64) -> Result<()> {
    let trace = Trace::read(&folder.join(TRACE_FILE))?;
    let Some((first, last)) = trace.ticks.first().zip(trace.ticks.last()) else { return Ok(()) };
    let time = Axis::new("TIME S", seconds(first), seconds(last) + dt_s);
    let faults = [
        outcome.task.as_ref().map_or(Ok(()), |task| measured(folder, &trace, &task.measure, time)),
        file::write_with(&folder.join("actions.png"), |path| actions(path, &trace, time)),
        file::write_with(&folder.join("latency.png"), |path| histogram(path, "LATENCY MS", &outcome.latency)),
        outcome.lateness.as_ref().map_or(Ok(()), |lateness| file::write_with(&folder.join("lateness.png"), |path| histogram(path, "LATENESS MS", lateness))),
    ];
    faults.into_iter().collect::<Result<()>>()?;
    let snapshot = folder.join(SNAPSHOT_FILE);
    if snapshot.is_file() { slices::draw(folder, &Snapshot::load(&snapshot)?) } else { Ok(()) }
}

/// What the task measured, with the band of success: an angle in degrees, anything else in its unit.
fn measured(folder: &Path, trace: &Trace, measure: &Measure, time: Axis<'_>) -> Result<()> {
    let (file, name, unit, jump) = match measure.name.strip_suffix("_rad") {
        Some(angle) => ("angle.png", format!("{angle} deg").to_uppercase(), 1f64.to_degrees(), HALF_TURN_DEG),
        None => ("measure.png", measure.name.replace('_', " ").to_uppercase(), 1.0, f64::INFINITY),
    };
    let success = measure.bound * unit;
    let points = trace.ticks.iter().map(|tick| (seconds(tick), tick.measure * unit)).collect::<Vec<_>>();
    // A measure that stays near the band should be more than a flat line.
    let bound = points.iter().map(|(_, value)| value.abs()).fold(1.5 * success, f64::max);
    file::write_with(&folder.join(file), |path| {
        let mut chart = Chart::new(path, time, Axis::new(&name, -bound, bound))?;
        chart.band(-success, success, BAND)?;
        chart.axes()?;
        for part in points.chunk_by(|a, b| (a.1 - b.1).abs() < jump) {
            chart.line(part, BLUE)?;
        }
        chart.finish()
    })
}

fn actions(path: &Path, trace: &Trace, time: Axis<'_>) -> std::result::Result<(), String> {
    let values = || trace.ticks.iter().flat_map(|tick| tick.action.iter().copied());
    let (low, high) = values().fold((0.0, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
    let margin = 0.05 * (high - low).max(1e-3);
    let name = trace.action_names.join(" ").to_uppercase();
    let mut chart = Chart::new(path, time, Axis::new(&name, low - margin, high + margin))?;
    chart.axes()?;
    for (channel, color) in (0..trace.action_names.len()).zip(LINES.iter().cycle()) {
        // An action holds for its whole period: a staircase.
        let steps = trace.ticks.windows(2).flat_map(|pair| {
            let value = pair[0].action[channel];
            [(seconds(&pair[0]), value), (seconds(&pair[1]), value)]
        });
        chart.line(&steps.collect::<Vec<_>>(), *color)?;
    }
    chart.finish()
}

fn histogram(path: &Path, name: &str, histogram: &LatencyHistogram) -> std::result::Result<(), String> {
    let counts = histogram.counts();
    let used = |count: &u64| *count > 0;
    // Whole decades, ten bins each.
    let first = counts.iter().position(used).unwrap_or(0) / 10 * 10;
    let last = counts.iter().rposition(used).map_or(LATENCY_BINS, |bin| (bin / 10 + 1) * 10);
    let most = counts.iter().max().copied().unwrap_or(0).max(1) as f64;
    let decades = |bin: usize| LatencyHistogram::bin_ms(bin).log10();
    let mut chart = Chart::new(path, Axis::decades(name, decades(first), decades(last)), Axis::new("TICKS", 0.0, 1.05 * most))?;
    chart.axes()?;
    for bin in (first..last).filter(|bin| used(&counts[*bin])) {
        chart.bar((decades(bin), decades(bin + 1)), counts[bin] as f64, BLUE)?;
    }
    chart.finish()
}

/// The colour of the line of a number.
pub fn line_color(number: usize) -> RGBColor {
    LINES[number % LINES.len()]
}

fn seconds(tick: &TraceTick) -> f64 {
    tick.time_ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::{Axis, BLUE, Chart};

    #[test]
    fn a_picture_is_a_png_of_the_size_asked_for() {
        let path = std::env::temp_dir().join(format!("tectum-plot-{}.png", std::process::id()));
        let mut chart = Chart::new(&path, Axis::new("TIME S", 0.0, 2.0), Axis::decades("MS", -1.0, 1.0)).expect("writable");
        chart.axes().expect("in memory");
        chart.line(&[(0.0, 0.0), (2.0, 0.5), (f64::NAN, 0.0)], BLUE).expect("in memory");
        chart.finish().expect("writable");
        let bytes = std::fs::read(&path).expect("there");
        std::fs::remove_file(&path).expect("there");
        assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
        assert_eq!(bytes[16..24], [0, 0, 0x03, 0xC0, 0, 0, 0x01, 0x90]);
    }
}
