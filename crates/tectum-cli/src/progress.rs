//! Progress of long work on standard error, with its rate and the remaining time. Nothing is drawn
//! in the first second, with `--quiet`, or where standard error is no terminal.

use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{
    HumanBytes, ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressState, ProgressStyle,
};
use tectum::WorkProgress;

use crate::interrupt::Interrupt;

/// Time before anything is drawn: work that is done by then needs no bar.
const DELAY: Duration = Duration::from_secs(1);
/// Time between two drawings of work of unknown length.
const TICK: Duration = Duration::from_millis(100);

/// What a bar counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Steps,
    Bytes,
}

/// The line of a command's work; it is cleared when it is dropped.
pub struct Bar {
    bar: ProgressBar,
    began: Instant,
    delay: Duration,
    /// Where it is drawn after the delay.
    target: Mutex<Option<ProgressDrawTarget>>,
    is_wanted: bool,
}

impl Bar {
    /// A bar of work that counts its steps or bytes.
    pub fn new(unit: Unit) -> Self {
        Self::on(standard_error(), DELAY, unit)
    }

    /// A bar that is never drawn.
    pub fn hidden() -> Self {
        Self::on(ProgressDrawTarget::hidden(), DELAY, Unit::Steps)
    }

    /// The line of work of unknown length, with the time since its start.
    pub fn waiting(message: impl Into<String>) -> Self {
        let waiting = Self::on(standard_error(), Duration::ZERO, Unit::Steps);
        if waiting.is_wanted {
            waiting.bar.set_style(style("{spinner} {msg}  {elapsed}"));
            waiting.bar.set_message(message.into());
            waiting.appear();
            waiting.bar.enable_steady_tick(TICK);
        }
        waiting
    }

    fn on(target: ProgressDrawTarget, delay: Duration, unit: Unit) -> Self {
        let template = match unit {
            Unit::Steps => "{bar:24} {pos}/{len}  {rate}  {eta} left  {msg}",
            Unit::Bytes => "{bar:24} {bytes}/{total_bytes}  {byte_rate}  {eta} left  {msg}",
        };
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden())
            .with_style(style(template))
            .with_finish(ProgressFinish::AndClear);
        let is_wanted = !target.is_hidden();
        Self {
            bar,
            began: Instant::now(),
            delay,
            target: Mutex::new(Some(target)),
            is_wanted,
        }
    }

    /// Whether it is never drawn.
    pub fn is_hidden(&self) -> bool {
        !self.is_wanted
    }

    /// Draws steps done, steps in all and a text. Fewer steps than before begin another work.
    pub fn show(&self, done: u64, total: u64, message: impl Into<String>) {
        if !self.is_wanted {
            return;
        }
        if done < self.bar.position() {
            self.bar.reset();
        }
        self.bar.set_length(total);
        self.bar.set_position(done);
        self.bar.set_message(message.into());
        if self.began.elapsed() >= self.delay {
            self.appear();
        }
    }

    /// Draws the progress of work of a library, which continues.
    pub fn watch(&self) -> impl FnMut(WorkProgress<'_>) -> ControlFlow<()> + Send + '_ {
        |progress: WorkProgress<'_>| {
            self.show(progress.done, progress.total, progress.stage);
            ControlFlow::Continue(())
        }
    }

    /// The same for work that Ctrl-C ends, and that then keeps what it has.
    pub fn watch_until<'a>(
        &'a self,
        interrupt: &'a Interrupt,
    ) -> impl FnMut(WorkProgress<'_>) -> ControlFlow<()> + Send + 'a {
        |progress: WorkProgress<'_>| {
            self.show(progress.done, progress.total, progress.stage);
            interrupt.flow()
        }
    }

    /// Clears the line, before a command prints its result.
    pub fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn appear(&self) {
        if let Some(target) = self
            .target
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
        {
            self.bar.set_draw_target(target);
        }
    }
}

fn standard_error() -> ProgressDrawTarget {
    if crate::messages::is_quiet() {
        ProgressDrawTarget::hidden()
    } else {
        ProgressDrawTarget::stderr()
    }
}

/// The style of a template, which is one of this file's.
fn style(template: &str) -> ProgressStyle {
    let style =
        ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    let rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{:.1}/s", state.per_sec());
    };
    let byte_rate = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
        let _ = write!(out, "{}/s", HumanBytes(state.per_sec() as u64));
    };
    style
        .with_key("rate", rate)
        .with_key("byte_rate", byte_rate)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    /// A terminal that keeps what is written.
    #[derive(Debug, Clone, Default)]
    struct Paper(Arc<Mutex<String>>);

    impl Paper {
        fn text(&self) -> String {
            self.0.lock().expect("no panic").clone()
        }

        fn add(&self, text: &str) -> std::io::Result<()> {
            self.0.lock().expect("no panic").push_str(text);
            Ok(())
        }
    }

    impl indicatif::TermLike for Paper {
        fn width(&self) -> u16 {
            100
        }
        fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> std::io::Result<()> {
            self.add(text)
        }
        fn write_str(&self, text: &str) -> std::io::Result<()> {
            self.add(text)
        }
        fn clear_line(&self) -> std::io::Result<()> {
            self.add("<cleared>")
        }
        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn bar(delay: Duration, unit: Unit) -> (Paper, Bar) {
        let paper = Paper::default();
        let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
        (paper, Bar::on(target, delay, unit))
    }

    #[test]
    fn a_bar_has_steps_rate_and_remaining_time_and_is_cleared() {
        let (paper, bar) = bar(Duration::ZERO, Unit::Steps);
        for done in 0..=5 {
            bar.show(done, 20, "cycles");
            std::thread::sleep(Duration::from_millis(2));
        }
        let text = paper.text();
        assert!(
            text.contains("5/20")
                && text.contains("/s")
                && text.contains("s left")
                && text.contains("cycles"),
            "{text}"
        );
        drop(bar);
        assert!(
            paper.text().ends_with("<cleared>") && paper.text().len() > text.len(),
            "{}",
            paper.text()
        );
    }

    #[test]
    fn bytes_have_units_and_nothing_is_drawn_before_the_delay() {
        let (paper, bar) = bar(Duration::from_millis(50), Unit::Bytes);
        bar.show(1 << 20, 8 << 20, "loading weights");
        assert_eq!(paper.text(), "");
        std::thread::sleep(Duration::from_millis(60));
        assert!(
            bar.watch()(WorkProgress {
                stage: "loading weights",
                done: 2 << 20,
                total: 8 << 20
            })
            .is_continue()
        );
        bar.show(3 << 20, 8 << 20, "loading weights");
        assert!(
            paper.text().contains("3.00 MiB/8.00 MiB") && paper.text().contains("B/s"),
            "{}",
            paper.text()
        );
    }

    #[test]
    fn a_hidden_bar_draws_nothing() {
        let bar = Bar::on(ProgressDrawTarget::hidden(), Duration::ZERO, Unit::Steps);
        bar.show(1, 2, "never");
        assert!(bar.is_hidden() && bar.bar.length() == Some(0));
    }
}
