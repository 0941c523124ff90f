//! The progress line of a run, on standard error and only on a terminal.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tectum_control::body::task::Measure;
use tectum_control::brain::BuildProgress;
use tectum_control::closed_loop::Progress;

/// Time between redraws: often enough for viewers, and cheap for the loop.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// The line; draws nothing without a terminal.
pub struct Display {
    bar: ProgressBar,
    drawn: Option<Instant>,
    /// What the run is judged by.
    measure: Option<Measure>,
}

/// Ends the drawing thread on drop, also if the work panics.
struct StopOnDrop<'a>(&'a AtomicBool, &'a Thread);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
        self.1.unpark();
    }
}

impl Display {
    /// Makes the line; indicatif itself hides it where standard error is not a terminal.
    pub fn new(is_wanted: bool) -> Self {
        let target = if is_wanted { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {msg}") {
            bar.set_style(style);
        }
        Self { bar, drawn: None, measure: None }
    }

    /// Sets what the run is judged by.
    pub fn set_measure(&mut self, measure: Option<Measure>) {
        self.measure = measure;
    }

    /// Shows work before the first tick.
    pub fn building(&mut self, progress: &BuildProgress) {
        if self.is_due(progress.done == progress.total) {
            self.bar.set_length(progress.total);
            self.bar.set_position(progress.done);
            self.bar.set_message(format!("{} {}/{}", progress.stage, progress.done, progress.total));
        }
    }

    /// Runs the work, which reports its progress; a separate thread draws it, because a terminal may block and the loop must not.
    pub fn run_with_display<R>(&self, work: impl FnOnce(&(dyn Fn(&Progress) + Sync)) -> R) -> R {
        if self.bar.is_hidden() {
            return work(&|_| ());
        }
        let (latest, is_done) = (Mutex::new(None), AtomicBool::new(false));
        let result = std::thread::scope(|scope| {
            let drawing = scope.spawn(|| {
                while !is_done.load(Ordering::Acquire) {
                    let taken = latest.lock().ok().and_then(|mut latest| latest.take());
                    taken.iter().for_each(|progress| self.draw(progress));
                    std::thread::park_timeout(REDRAW_INTERVAL);
                }
            });
            let _ends = StopOnDrop(&is_done, drawing.thread());
            work(&|progress| {
                // If the display is drawing now, this period is not shown.
                if let Ok(mut latest) = latest.try_lock() {
                    *latest = Some(*progress);
                }
            })
        });
        self.bar.finish_and_clear();
        result
    }

    fn draw(&self, progress: &Progress) {
        self.bar.set_length(progress.ticks);
        self.bar.set_position(progress.tick);
        self.bar.set_message(format!(
            "{:6.1} s  {}tick {:.2} ms  misses {}",
            progress.seconds,
            self.measure.as_ref().map_or_else(String::new, |measure| judged(measure, progress)),
            progress.latency_ms,
            progress.deadline_misses
        ));
    }

    fn is_due(&mut self, is_last: bool) -> bool {
        let is_due = !self.bar.is_hidden() && (is_last || self.drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW_INTERVAL));
        if is_due {
            self.drawn = Some(Instant::now());
        }
        is_due
    }
}

/// The task's part of the line.
fn judged(measure: &Measure, progress: &Progress) -> String {
    let value = match measure.name.strip_suffix("_rad") {
        Some(name) => format!("{name} {:6.1} deg", progress.measure.to_degrees()),
        None => format!("{} {:8.3}", measure.name, progress.measure),
    };
    format!("{value}  {} {:5.1} %  ", measure.success, 100.0 * progress.success_fraction)
}
