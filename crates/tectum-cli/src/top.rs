//! `tectum top`: the main numbers of a run that is shown, in a terminal.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use serde_json::Value;
use tectum::Result;
use tectum_link::{Address, LiveClient, Token};

use crate::table::{print, short, table};

/// Minimum time between redraws.
const REDRAW_INTERVAL: Duration = Duration::from_millis(250);

/// Shows the main numbers of a run in a terminal.
///
/// The run is one that `tectum run --live ADDRESS` shows. Without a terminal, and with --once, one
/// table is printed.
#[derive(Args)]
pub struct TopArgs {
    /// The address of the run: HOST:PORT, http://HOST:PORT, or a port of this machine.
    address: String,
    /// The file with the token of the run; else the variable TECTUM_TOKEN, if it is set.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Prints the numbers once.
    #[arg(long)]
    once: bool,
}

/// Runs the command.
///
/// # Errors
/// An address at which no run is shown, or one that needs another token.
pub fn top(args: &TopArgs) -> Result<()> {
    let token = Token::find(args.token_file.as_deref())?;
    let mut client = LiveClient::connect(&Address::parse_http(&args.address)?, token.as_ref())?;
    let is_once = args.once || !std::io::stdout().is_terminal();
    let mut screen = Screen::default();
    let mut title = String::new();
    while let Some(message) = client.next_text()? {
        match message["type"].as_str() {
            Some("run") => {
                title = printable(message["about"]["title"].as_str().unwrap_or_default())
            }
            Some("state") => {
                let text = text(&title, &message);
                if is_once {
                    return print(&text);
                }
                screen.show(text)?;
            }
            Some("end") => {
                screen.draw()?;
                return print("the run has ended\n");
            }
            _ => {}
        }
    }
    Ok(())
}

/// A text of another program without what would steer the terminal.
fn printable(text: &str) -> String {
    let letters = text.chars();
    letters
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// The part of a terminal that shows the last state.
#[derive(Default)]
struct Screen {
    drawn: Option<Instant>,
    height: usize,
    /// A state that was too early to be drawn.
    waiting: Option<String>,
}

impl Screen {
    /// Draws a state if the last one is old enough, else keeps it.
    fn show(&mut self, text: String) -> Result<()> {
        self.waiting = Some(text);
        let is_due = |drawn: Instant| drawn.elapsed() >= REDRAW_INTERVAL;
        match self.drawn.is_none_or(is_due) {
            true => self.draw(),
            false => Ok(()),
        }
    }

    /// Draws the state that waits over the one before.
    fn draw(&mut self) -> Result<()> {
        let Some(text) = self.waiting.take() else {
            return Ok(());
        };
        let up = match self.height {
            0 => String::new(),
            height => format!("\x1b[{height}A\x1b[J"),
        };
        (self.drawn, self.height) = (Some(Instant::now()), text.lines().count());
        print(&(up + &text))
    }
}

/// A state of the run as a table.
fn text(title: &str, state: &Value) -> String {
    let status = match (&state["stopped"], &state["paused"]) {
        (Value::Bool(true), _) => "stopped",
        (_, Value::Bool(true)) => "paused",
        _ => "running",
    };
    let quantities = state["quantities"].as_object().into_iter().flatten();
    let rows = quantities.map(|(name, value)| {
        let value = value.as_f64().map_or_else(|| "-".to_owned(), short);
        vec![name.replace('_', " "), value]
    });
    let histograms = state["histograms"].as_object().into_iter().flatten();
    let times = histograms.filter_map(|(name, buckets)| {
        let [half, nearly_all] = [0.5, 0.99].map(|part| bound(buckets, part));
        let text = format!("p50 below {}, p99 below {}", half?, nearly_all?);
        Some(vec![name.replace('_', " "), text])
    });
    let rows: Vec<Vec<String>> = rows.chain(times).collect();
    format!("{title}  {status}\n{}", table(&rows))
}

/// The upper bound of the bucket that a part of the durations is within.
fn bound(buckets: &Value, part: f64) -> Option<String> {
    let buckets = buckets.as_array()?;
    let count = |bucket: &Value| bucket[1].as_f64().unwrap_or(0.0);
    let total: f64 = buckets.iter().map(count).sum();
    let mut seen = 0.0;
    let reached = buckets.iter().find(|bucket| {
        seen += count(bucket);
        total > 0.0 && seen >= part * total
    })?;
    Some(match reached[0].as_f64() {
        Some(bound_s) => format!("{} ms", short(1e3 * bound_s)),
        None => "no bound".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{printable, text};

    #[test]
    fn a_title_does_not_steer_the_terminal() {
        assert_eq!(printable("a\x1b[2Jb\n"), "a [2Jb ");
    }

    #[test]
    fn a_state_is_a_table_with_bounds_of_durations() {
        let state = json!({
            "paused": true,
            "quantities": { "ticks": 12, "deadline_misses": 0, "return": -1.25 },
            "histograms": {
                "tick_duration": [[1e-5, 98], [2e-5, 1], [null, 1]],
                "lateness": [[1e-5, 0], [null, 0]],
            },
        });
        let expected = "swing  paused\nticks            12\ndeadline misses  0\nreturn           -1.25\n\
                        tick duration    p50 below 0.01 ms, p99 below 0.02 ms\n";
        assert_eq!(text("swing", &state), expected);
    }
}
