//! The line that shows how a run is coming along, on standard error and only on a terminal.

use std::cell::RefCell;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tectum_models::brain::build::BuildProgress;
use tectum_models::closed_loop::Progress;

/// Redrawing this often is enough for people and little for the loop.
const REDRAW: Duration = Duration::from_millis(100);

/// The line; draws nothing where nobody looks.
pub struct Display {
    bar: ProgressBar,
    drawn: RefCell<Option<Instant>>,
}

impl Display {
    /// Makes the line; indicatif itself hides it where standard error is not a terminal.
    pub fn new(is_wanted: bool) -> Self {
        let target = if is_wanted { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(Some(0), target);
        if let Ok(style) = ProgressStyle::with_template("{bar:24} {msg}") {
            bar.set_style(style);
        }
        Self { bar, drawn: RefCell::new(None) }
    }

    /// Shows work before the first tick.
    pub fn building(&self, progress: &BuildProgress) {
        if self.is_due(progress.done == progress.total) {
            self.bar.set_length(progress.total);
            self.bar.set_position(progress.done);
            self.bar.set_message(format!("{} {}/{}", progress.stage, progress.done, progress.total));
        }
    }

    /// Shows the loop.
    pub fn running(&self, progress: &Progress) {
        if self.is_due(progress.tick == progress.ticks) {
            self.bar.set_length(progress.ticks);
            self.bar.set_position(progress.tick);
            self.bar.set_message(format!(
                "{:6.1} s  angle {:6.1} deg  upright {:5.1} %  tick {:.2} ms  misses {}",
                progress.seconds,
                progress.angle_rad.to_degrees(),
                100.0 * progress.upright_fraction,
                progress.latency_ms,
                progress.deadline_misses
            ));
        }
    }

    /// Takes the line away.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }

    fn is_due(&self, is_last: bool) -> bool {
        if self.bar.is_hidden() {
            return false;
        }
        let mut drawn = self.drawn.borrow_mut();
        let is_due = is_last || drawn.is_none_or(|drawn| drawn.elapsed() >= REDRAW);
        if is_due {
            *drawn = Some(Instant::now());
        }
        is_due
    }
}
