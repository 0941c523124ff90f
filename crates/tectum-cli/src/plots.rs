//! The pictures in a run folder: the task's measure as `angle` or `measure`, `actions`, `latency`,
//! `lateness`, each as PNG and SVG; and for a field its slices and an animation of one of them.

pub mod chart;
pub mod slices;

use std::path::{Path, PathBuf};

use clap::Args;
use plotters::style::RGBColor;
use serde_json::Value;
use tectum::snapshot::Snapshot;
use tectum::{Error, Result};
use tectum_control::body::BodySpec;
use tectum_control::body::task::Measure;
use tectum_control::recording::{Trace, TraceTick};
use tectum_control::run_folder::{SNAPSHOT_FILE, SUMMARY_FILE, TRACE_FILE, read_body};

use self::chart::{Axis, Chart};
use crate::table::print;

const BLUE: RGBColor = RGBColor(31, 90, 160);
const RED: RGBColor = RGBColor(200, 60, 40);
const BAND: RGBColor = RGBColor(214, 236, 214);
/// Lines of several actions, in order.
const LINES: [RGBColor; 5] = [
    BLUE,
    RGBColor(200, 110, 30),
    RGBColor(60, 130, 60),
    RGBColor(120, 60, 140),
    RGBColor(0, 140, 150),
];
/// A jump by more than half a turn is a wrap of the angle, not a motion of the pole.
const HALF_TURN_DEG: f64 = 180.0;
/// An axis of angles ends at half a turn if the angles come this near to it.
const NEAR_HALF_TURN_DEG: f64 = 150.0;
/// Bins of a histogram in a decade.
const BINS: f64 = 10.0;
/// The line at the end of an episode.
const EPISODE: RGBColor = RGBColor(170, 170, 170);

/// Histograms: key of the summary, file, title and what the line of the period means.
const HISTOGRAMS: [(&str, &str, [&str; 2]); 2] = [
    (
        "tick_histogram",
        "latency",
        [
            "Time that an answer takes",
            ": answers to the right of it are late",
        ],
    ),
    (
        "lateness_histogram",
        "lateness",
        ["Wake-up delay of a period", ""],
    ),
];

/// Draws the pictures of a run folder again, as PNG and SVG.
///
/// They are drawn from the recording, the summary and the snapshot of the folder. The animation of
/// a field needs all snapshots of the run and is not drawn again.
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
    let (run, out) = (args.run.display(), args.out.as_ref().unwrap_or(&args.run));
    if !args.run.exists() {
        return Err(Error::io(run, std::io::ErrorKind::NotFound.into()));
    } else if !args.run.join(SUMMARY_FILE).is_file() {
        return Err(Error::data(format!(
            "{run}: not the folder of a run: it has no {SUMMARY_FILE}"
        )));
    }
    std::fs::create_dir_all(out).map_err(|source| Error::io(out.display(), source))?;
    let names = draw(&args.run, out)?;
    print(
        &names
            .iter()
            .map(|name| format!("{}\n", out.join(name).display()))
            .collect::<String>(),
    )
}

/// What a run folder says of a run.
struct Run {
    summary: Value,
    trace: Trace,
    /// The body and what its task measured, if the scenario of the folder can be built.
    body: Option<BodySpec>,
    measure: Option<Measure>,
}

impl Run {
    fn read(folder: &Path) -> Result<Self> {
        let path = folder.join(SUMMARY_FILE);
        let text =
            std::fs::read_to_string(&path).map_err(|source| Error::io(path.display(), source))?;
        let summary: Value = serde_json::from_str(&text)
            .map_err(|source| Error::data(path.display().to_string()).with_source(source))?;
        let (body, measure) = read_body(folder)
            .ok()
            .map(|(body, measure)| (body.spec().clone(), measure))
            .unzip();
        Ok(Self {
            trace: Trace::read(&folder.join(TRACE_FILE))?,
            summary,
            body,
            measure: measure.flatten(),
        })
    }

    /// A title: what is shown, and of which run.
    fn title(&self, what: &str) -> String {
        let text = |key: &str| self.summary[key].as_str().unwrap_or("?");
        format!(
            "{what}: {} on {}, seed {}",
            text("brain"),
            text("body"),
            self.summary["seed"]
        )
    }

    /// The period in seconds.
    fn period_s(&self) -> Option<f64> {
        self.body.as_ref().map(|body| body.dt_s)
    }

    /// The unit of an action.
    fn unit(&self, name: &str) -> Option<&str> {
        let channels = self.body.iter().flat_map(|body| &body.action);
        channels
            .filter(|channel| channel.name == name)
            .map(|channel| channel.unit.as_str())
            .next()
    }

    /// `[from ms, count]` of a histogram of the summary.
    fn histogram(&self, key: &str) -> Vec<(f64, u64)> {
        let bins = self.summary[key].as_array().into_iter().flatten();
        bins.filter_map(|bin| Some((bin[0].as_f64()?, bin[1].as_u64()?)))
            .collect()
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
        let time = Axis::new(
            "time (s)",
            seconds(first),
            seconds(last) + run.period_s().unwrap_or(0.0),
        );
        // A loop may have had another task.
        if let Some(measure) = run
            .measure
            .as_ref()
            .filter(|measure| run.trace.measure_name.as_deref() == Some(&*measure.name))
        {
            names.extend(measured(&run, measure, time.clone(), out)?);
        }
        names.extend(actions(&run, time, out)?);
    }
    for (key, name, titles) in HISTOGRAMS {
        let bins = run.histogram(key);
        if !bins.is_empty() {
            names.extend(histogram(&run, &bins, titles).save_both(out, name)?);
        }
    }
    let snapshot = folder.join(SNAPSHOT_FILE);
    if snapshot.is_file() {
        names.extend(slices::draw(out, &Snapshot::load(&snapshot)?)?);
    }
    Ok(names)
}

/// The range of an axis, and how many values are outside it.
#[derive(Debug, PartialEq)]
struct Range {
    low: f64,
    high: f64,
    outside: usize,
}

impl Range {
    /// The range of all finite values; or, if the outermost half percent (at least one value, of 20
    /// or more) is farther from the rest than the rest is wide, that of the rest.
    fn of(values: impl Iterator<Item = f64>) -> Self {
        let mut values: Vec<f64> = values.filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let [Some(low), Some(high)] = [values.first(), values.last()].map(Option::<&f64>::copied)
        else {
            return Self {
                low: 0.0,
                high: 0.0,
                outside: 0,
            };
        };
        let few = if values.len() < 20 {
            0
        } else {
            (values.len() / 200).max(1)
        };
        let [rest_low, rest_high] = [values[few], values[values.len() - 1 - few]];
        let width = rest_high - rest_low;
        let low = if rest_low - low > width && width > 0.0 {
            rest_low
        } else {
            low
        };
        let high = if high - rest_high > width && width > 0.0 {
            rest_high
        } else {
            high
        };
        Self {
            low,
            high,
            outside: values
                .iter()
                .filter(|value| **value < low || **value > high)
                .count(),
        }
    }

    /// The entry of the legend for the values outside.
    fn legend(&self, chart: &mut Chart, color: RGBColor) {
        if self.outside > 0 {
            chart.legend(
                &format!(
                    "{} of the values outside the axis, drawn at its edge",
                    self.outside
                ),
                color,
            );
        }
    }
}

/// The parts of a recording without the end of an episode inside.
fn episodes(ticks: &[TraceTick]) -> impl Iterator<Item = &[TraceTick]> {
    ticks.chunk_by(|before, _| !before.terminated)
}

/// Draws a line at the end of each episode but the last.
fn mark_episodes(chart: &mut Chart, ticks: &[TraceTick]) {
    let starts: Vec<f64> = episodes(ticks)
        .skip(1)
        .filter_map(|episode| episode.first().map(seconds))
        .collect();
    starts.iter().for_each(|start| chart.mark(*start, EPISODE));
    match starts.len() {
        0 => {}
        1 => chart.legend("an episode ends, the next begins", EPISODE),
        ends => chart.legend(
            &format!("{ends} times an episode ends, the next begins"),
            EPISODE,
        ),
    }
}

/// What the task measured, with the band of success: an angle in degrees, anything else in its
/// unit.
fn measured(run: &Run, measure: &Measure, time: Axis, out: &Path) -> Result<Vec<String>> {
    let words = measure.name.replace('_', " ");
    let (file, name) = words
        .strip_suffix(" rad")
        .map_or(("measure", &*words), |angle| ("angle", angle));
    let (name, unit, jump) = match &*measure.unit {
        "rad" => (format!("{name} (deg)"), 1f64.to_degrees(), HALF_TURN_DEG),
        "deg" => (format!("{name} (deg)"), 1.0, HALF_TURN_DEG),
        "" => (name.to_owned(), 1.0, f64::INFINITY),
        unit => (format!("{name} ({unit})"), 1.0, f64::INFINITY),
    };
    let success = measure.bound * unit;
    let is_angle = jump.is_finite();
    let range = Range::of(run.trace.ticks.iter().map(|tick| tick.measure * unit));
    // A measure that stays near the band should be more than a flat line.
    let bound = range.high.max(-range.low).max(1.5 * success);
    let axis = match is_angle {
        true if bound > NEAR_HALF_TURN_DEG => Axis::degrees(name, -HALF_TURN_DEG, HALF_TURN_DEG),
        true => Axis::degrees(name, -bound, bound),
        false => Axis::new(name, -bound, bound),
    };
    let mut chart = Chart::new(&run.title(&capitalized(&measure.description)), time, axis);
    chart.band(-success, success, BAND);
    chart.axes();
    // Bounds have few digits; those that a change of units adds are not shown.
    let bound = format!("{success:.3e}").parse().unwrap_or(success);
    let within = if is_angle {
        format!("±{bound}°")
    } else {
        format!("±{bound} {}", measure.unit).trim_end().to_owned()
    };
    chart.legend(
        &format!(
            "counts as {}: within {within} of 0",
            measure.success.replace('_', " ")
        ),
        BAND,
    );
    mark_episodes(&mut chart, &run.trace.ticks);
    for episode in episodes(&run.trace.ticks) {
        let points: Vec<(f64, f64)> = episode
            .iter()
            .map(|tick| (seconds(tick), tick.measure * unit))
            .collect();
        for part in points.chunk_by(|a, b| (a.1 - b.1).abs() < jump) {
            chart.line(part, BLUE);
        }
    }
    range.legend(&mut chart, BLUE);
    chart.save_both(out, file)
}

fn actions(run: &Run, time: Axis, out: &Path) -> Result<Vec<String>> {
    let Trace {
        ticks,
        action_names,
        ..
    } = &run.trace;
    let range = Range::of(ticks.iter().flat_map(|tick| tick.action.iter().copied()));
    let (low, high) = (range.low.min(0.0), range.high.max(0.0));
    let margin = 0.05 * (high - low).max(1e-3);
    let with_unit = |name: &String| {
        run.unit(name)
            .filter(|unit| !unit.is_empty())
            .map_or_else(|| name.clone(), |unit| format!("{name} ({unit})"))
    };
    let axis = if let [only] = &action_names[..] {
        with_unit(only)
    } else {
        "action".to_owned()
    };
    let title = if action_names.len() > 1 {
        "Actions that the body received"
    } else {
        "Action that the body received"
    };
    let mut chart = Chart::new(
        &run.title(title),
        time,
        Axis::new(axis, low - margin, high + margin),
    );
    chart.axes();
    mark_episodes(&mut chart, ticks);
    let period_s = run.period_s().unwrap_or(0.0);
    for (channel, name) in action_names.iter().enumerate().rev() {
        for episode in episodes(ticks) {
            // An action holds for its whole period: a staircase.
            let ends = episode
                .iter()
                .skip(1)
                .map(seconds)
                .chain(episode.last().map(|last| seconds(last) + period_s));
            let steps = episode.iter().zip(ends).flat_map(|(tick, end)| {
                [
                    (seconds(tick), tick.action[channel]),
                    (end, tick.action[channel]),
                ]
            });
            chart.line(&steps.collect::<Vec<_>>(), line_color(channel));
        }
        if action_names.len() > 1 {
            chart.legend(&with_unit(name), line_color(channel));
        }
    }
    range.legend(&mut chart, BLUE);
    chart.save_both(out, "actions")
}

/// Counts by time, in whole decades, with the period as a line.
fn histogram(run: &Run, bins: &[(f64, u64)], [what, late]: [&str; 2]) -> Chart {
    let period = run.period_s().map(|period_s| (1e3 * period_s).log10());
    let low = bins.first().map_or(0.0, |(ms, _)| ms.log10()).floor();
    let high = bins.last().map_or(1.0, |(ms, _)| ms.log10() + 1.0 / BINS);
    let high = period.map_or(high, |period| high.max(period)).ceil();
    let most = bins
        .iter()
        .map(|(_, count)| *count)
        .max()
        .unwrap_or(1)
        .max(1) as f64;
    let mut chart = Chart::new(
        &run.title(what),
        Axis::decades("time (ms, logarithmic)", low, high),
        Axis::new("number of periods", 0.0, 1.05 * most),
    );
    chart.axes();
    for (ms, count) in bins {
        chart.bar((ms.log10(), ms.log10() + 1.0 / BINS), *count as f64, BLUE);
    }
    if let (Some(period), Some(period_s)) = (period, run.period_s()) {
        chart.line(&[(period, 0.0), (period, 1.05 * most)], RED);
        chart.legend(
            &format!("the period of {} ms{late}", (1e6 * period_s).round() / 1e3),
            RED,
        );
    }
    chart
}

/// The colour of the line of a number.
pub fn line_color(number: usize) -> RGBColor {
    LINES[number % LINES.len()]
}

fn capitalized(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| {
        first.to_uppercase().chain(characters).collect()
    })
}

fn seconds(tick: &TraceTick) -> f64 {
    tick.time_ns as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_sample_does_not_stretch_an_axis() {
        let of = |values: &[f64]| Range::of(values.iter().copied());
        let calm: Vec<f64> = (0..100).map(|index| f64::from(index % 10)).collect();
        assert_eq!(
            of(&calm),
            Range {
                low: 0.0,
                high: 9.0,
                outside: 0
            }
        );
        assert_eq!(
            of(&[&calm[..], &[1000.0, f64::NAN]].concat()),
            Range {
                low: 0.0,
                high: 9.0,
                outside: 1
            }
        );
        assert_eq!(
            of(&[&calm[..], &[-1000.0]].concat()),
            Range {
                low: 0.0,
                high: 9.0,
                outside: 1
            }
        );
        // Values that are part of the motion are shown, and so are the few of a short run.
        assert_eq!(of(&[&calm[..], &[15.0]].concat()).high, 15.0);
        assert_eq!(of(&[0.0, 0.0, 100.0]).high, 100.0);
        assert_eq!(
            (of(&[]), of(&[3.0; 50])),
            (
                Range {
                    low: 0.0,
                    high: 0.0,
                    outside: 0
                },
                Range {
                    low: 3.0,
                    high: 3.0,
                    outside: 0
                }
            )
        );
    }

    #[test]
    fn no_line_crosses_the_end_of_an_episode() {
        let tick = |tick: u64| TraceTick {
            tick,
            terminated: tick == 2 || tick == 5,
            ..TraceTick::default()
        };
        let ticks: Vec<TraceTick> = (0..8).map(tick).collect();
        let parts: Vec<Vec<u64>> = episodes(&ticks)
            .map(|episode| episode.iter().map(|tick| tick.tick).collect())
            .collect();
        assert_eq!(parts, [vec![0, 1, 2], vec![3, 4, 5], vec![6, 7]]);
    }
}
