//! The progress line of a run.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::Thread;
use std::time::Duration;

use tectum::WorkProgress;
use tectum_control::body::task::Measure;
use tectum_control::closed_loop::Progress;

use crate::progress::{Bar, Unit};

/// Time between redraws: often enough for viewers, and cheap for the loop.
const REDRAW_INTERVAL: Duration = Duration::from_millis(100);

/// The line of the work before the first tick, and then of the loop.
pub struct Display {
    bar: Bar,
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
    /// Makes the line.
    pub fn new() -> Self {
        Self {
            bar: Bar::new(Unit::Steps),
            measure: None,
        }
    }

    /// Sets what the run is judged by.
    pub fn set_measure(&mut self, measure: Option<Measure>) {
        self.measure = measure;
    }

    /// Shows work before the first tick.
    pub fn watch(&self) -> impl FnMut(WorkProgress<'_>) -> ControlFlow<()> + '_ {
        self.bar.watch()
    }

    /// Runs the work, which reports its progress; a separate thread draws it, because a terminal
    /// may block and the loop must not.
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
        self.bar.clear();
        result
    }

    fn draw(&self, progress: &Progress) {
        let judged = self
            .measure
            .as_ref()
            .map_or_else(String::new, |measure| judged(measure, progress));
        let text = format!(
            "{:.1} s  {judged}tick {:.2} ms  misses {}",
            progress.seconds, progress.latency_ms, progress.deadline_misses
        );
        self.bar.show(progress.tick, progress.ticks, text);
    }
}

/// The task's part of the line.
fn judged(measure: &Measure, progress: &Progress) -> String {
    let value = match measure.name.strip_suffix("_rad") {
        Some(name) => format!("{name} {:6.1} deg", progress.measure.to_degrees()),
        None => format!("{} {:8.3} {}", measure.name, progress.measure, measure.unit),
    };
    match &measure.loss {
        Some(loss) => format!("{value}  {loss} {}  ", progress.terminated_episodes),
        None => format!(
            "{value}  {} {:5.1} %  ",
            measure.success,
            100.0 * progress.success_fraction
        ),
    }
}
