//! The pictures in a run folder: the task's measure as `angle` or `measure`, `actions`, `latency`, `lateness`, each as PNG and SVG; and for a field its slices
//! and an animation of one of them.

pub mod chart;
pub mod slices;

use std::path::{Path, PathBuf};

use clap::Args;
use plotters::style::RGBColor;
use serde_json::Value;
use tectum::snapshot::Snapshot;
use tectum::{Error, Result};
use tectum_control::body::Descriptor;
use tectum_control::body::task::Measure;
use tectum_control::recording::{Trace, TraceTick};
use tectum_control::run_folder::{SNAPSHOT_FILE, SUMMARY_FILE, TRACE_FILE};

use self::chart::{Axis, Chart};
use crate::table::print;

const BLUE: RGBColor = RGBColor(31, 90, 160);
const RED: RGBColor = RGBColor(200, 60, 40);
const BAND: RGBColor = RGBColor(214, 236, 214);
/// Lines of several actions, in order.
const LINES: [RGBColor; 5] = [BLUE, RGBColor(200, 110, 30), RGBColor(60, 130, 60), RGBColor(120, 60, 140), RGBColor(0, 140, 150)];
/// A jump by more than half a turn is a wrap of the angle, not a motion of the pole.
const HALF_TURN_DEG: f64 = 180.0;
/// Bins of a histogram in a decade.
const BINS: f64 = 10.0;

/// Draws the pictures of a run folder again, as PNG and SVG.
///
/// They are drawn from the recording, the summary and the snapshot of the folder. The animation of a field needs all snapshots of the run and is not drawn
/// again.
#[derive(Args)]
pub struct PlotArgs {
    /// The run folder, for example runs/1.
    #[arg(value_name = "DIR")]
    run: PathBuf,
    /// The folder for the pictures; the run folder if not given.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Runs `tectum plot`.
///
/// # Errors
/// A folder that is no run folder; a picture that cannot be written.
pub fn plot(args: &PlotArgs) -> Result<()> {
    let out = args.out.as_ref().unwrap_or(&args.run);
    std::fs::create_dir_all(out).map_err(|source| Error::io(out.display(), source))?;
    let names = draw(&args.run, out)?;
    print(&names.iter().map(|name| format!("{}\n", out.join(name).display())).collect::<String>())
}

/// What a run folder says of a run.
struct Run {
    summary: Value,
    trace: Trace,
    /// What is known of the body, if its name is.
    body: Option<&'static Descriptor>,
}

impl Run {
    fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(SUMMARY_FILE);
        let text = std::fs::read_to_string(&path).map_err(|source| Error::io(path.display(), source))?;
        let summary: Value = serde_json::from_str(&text).map_err(|source| Error::data(path.display().to_string()).with_source(source))?;
        let body = summary["body"].as_str().and_then(Descriptor::find);
        Ok(Self { trace: Trace::read(&folder.join(TRACE_FILE))?, summary, body })
    }

    /// A title: what is shown, and of which run.
    fn title(&self, what: &str) -> String {
        let text = |key: &str| self.summary[key].as_str().unwrap_or("?");
        format!("{what}: {} on {}, seed {}", text("brain"), text("body"), self.summary["seed"])
    }

    /// The period in seconds.
    fn period_s(&self) -> Option<f64> {
        let body = self.body?;
        Some((body.make)(*body.starts.first()?).ok()?.spec().dt_s)
    }

    /// The unit of an action.
    fn unit(&self, name: &str) -> Option<String> {
        let body = self.body?;
        let made = (body.make)(*body.starts.first()?).ok()?;
        made.spec().action.iter().find(|channel| channel.name == name).map(|channel| channel.unit.clone())
    }

    /// `[from ms, count]` of a histogram of the summary.
    fn histogram(&self, key: &str) -> Vec<(f64, u64)> {
        let bins = self.summary[key].as_array().into_iter().flatten();
        bins.filter_map(|bin| Some((bin[0].as_f64()?, bin[1].as_u64()?))).collect()
    }
}

/// Draws what a run folder shows into a folder; returns the names of the pictures.
///
/// # Errors
/// A recording or summary that cannot be read; a picture that cannot be written.
pub fn draw(folder: &Path, out: &Path) -> Result<Vec<String>> {
    let run = Run::read(folder)?;
    let mut names = Vec::new();
    if let Some((first, last)) = run.trace.ticks.first().zip(run.trace.ticks.last()) {
        let time = Axis::new("time (s)", seconds(first), seconds(last) + run.period_s().unwrap_or(0.0));
        let task = run.body.map(|body| (body.task)());
        // A loop may have had another task.
        if let Some(measure) = task.as_ref().map(|task| task.measure()).filter(|measure| run.trace.measure_name.as_deref() == Some(&*measure.name)) {
            names.extend(measured(&run, measure, time.clone(), out)?);
        }
        names.extend(actions(&run, time, out)?);
    }
    for (key, name, title) in [("tick_histogram", "latency", "Time of an answer"), ("lateness_histogram", "lateness", "Delay of waking up for a period")] {
        let bins = run.histogram(key);
        if !bins.is_empty() {
            names.extend(histogram(&run, &bins, title).save_both(out, name)?);
        }
    }
    let snapshot = folder.join(SNAPSHOT_FILE);
    if snapshot.is_file() {
        names.extend(slices::draw(out, &Snapshot::load(&snapshot)?)?);
    }
    Ok(names)
}

/// What the task measured, with the band of success: an angle in degrees, anything else in its unit.
fn measured(run: &Run, measure: &Measure, time: Axis, out: &Path) -> Result<Vec<String>> {
    let (file, name, unit, jump) = match measure.name.strip_suffix("_rad") {
        Some(angle) => ("angle", format!("{} (deg)", angle.replace('_', " ")), 1f64.to_degrees(), HALF_TURN_DEG),
        None => ("measure", measure.name.replace('_', " "), 1.0, f64::INFINITY),
    };
    let success = measure.bound * unit;
    let points = run.trace.ticks.iter().map(|tick| (seconds(tick), tick.measure * unit)).collect::<Vec<_>>();
    // A measure that stays near the band should be more than a flat line.
    let bound = points.iter().map(|(_, value)| value.abs()).filter(|value| value.is_finite()).fold(1.5 * success, f64::max);
    let mut chart = Chart::new(&run.title(&capitalized(&measure.description)), time, Axis::new(name, -bound, bound));
    chart.band(-success, success, BAND);
    chart.axes();
    for part in points.chunk_by(|a, b| (a.1 - b.1).abs() < jump) {
        chart.line(part, BLUE);
    }
    let legend = if unit == 1.0 { format!("{} (within ±{success})", measure.success) } else { format!("{} (within ±{success:.0}°)", measure.success) };
    chart.legend(&legend, BAND);
    chart.save_both(out, file)
}

fn actions(run: &Run, time: Axis, out: &Path) -> Result<Vec<String>> {
    let Trace { ticks, action_names, .. } = &run.trace;
    let values = || ticks.iter().flat_map(|tick| tick.action.iter().copied()).filter(|value| value.is_finite());
    let (low, high) = values().fold((0.0, 0.0), |(low, high): (f64, f64), value| (low.min(value), high.max(value)));
    let margin = 0.05 * (high - low).max(1e-3);
    let with_unit = |name: &String| run.unit(name).map_or_else(|| name.clone(), |unit| format!("{name} ({unit})"));
    let axis = if let [only] = &action_names[..] { with_unit(only) } else { "action".to_owned() };
    let mut chart = Chart::new(&run.title("What the body received"), time, Axis::new(axis, low - margin, high + margin));
    chart.axes();
    for (channel, name) in action_names.iter().enumerate().rev() {
        // An action holds for its whole period: a staircase.
        let steps = ticks.windows(2).flat_map(|pair| {
            let value = pair[0].action[channel];
            [(seconds(&pair[0]), value), (seconds(&pair[1]), value)]
        });
        chart.line(&steps.collect::<Vec<_>>(), line_color(channel));
        if action_names.len() > 1 {
            chart.legend(&with_unit(name), line_color(channel));
        }
    }
    chart.save_both(out, "actions")
}

/// Counts by time, in whole decades, with the period as a line.
fn histogram(run: &Run, bins: &[(f64, u64)], what: &str) -> Chart {
    let period = run.period_s().map(|period_s| (1e3 * period_s).log10());
    let low = bins.first().map_or(0.0, |(ms, _)| ms.log10()).floor();
    let high = bins.last().map_or(1.0, |(ms, _)| ms.log10() + 1.0 / BINS);
    let high = period.map_or(high, |period| high.max(period)).ceil();
    let most = bins.iter().map(|(_, count)| *count).max().unwrap_or(1).max(1) as f64;
    let mut chart = Chart::new(&run.title(what), Axis::decades("milliseconds", low, high), Axis::new("ticks", 0.0, 1.05 * most));
    chart.axes();
    for (ms, count) in bins {
        chart.bar((ms.log10(), ms.log10() + 1.0 / BINS), *count as f64, BLUE);
    }
    if let (Some(period), Some(period_s)) = (period, run.period_s()) {
        chart.line(&[(period, 0.0), (period, 1.05 * most)], RED);
        chart.legend(&format!("period, {} ms", (1e6 * period_s).round() / 1e3), RED);
    }
    chart
}

/// The colour of the line of a number.
pub fn line_color(number: usize) -> RGBColor {
    LINES[number % LINES.len()]
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

fn seconds(tick: &TraceTick) -> f64 {
    tick.time_ns as f64 / 1e9
}
