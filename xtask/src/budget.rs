//! `cargo xtask budget`: how long each step of the last run took, next to its budget in
//! `xtask/budgets.toml`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::time::Instant;

use serde::Deserialize;

/// File to which every step appends its name and its seconds; `.ci/run` appends its own steps.
const TIMES: &str = "target/step-times.tsv";
/// File with the budgets.
const BUDGETS: &str = "xtask/budgets.toml";

#[derive(Deserialize)]
struct Budgets {
    /// Minutes of a whole run.
    total: f64,
    /// Minutes of each step, one after another.
    steps: BTreeMap<String, f64>,
    /// Of these CI takes one.
    one_of: BTreeMap<String, f64>,
    /// Steps next to others, or outside of CI.
    apart: BTreeMap<String, f64>,
}

impl Budgets {
    /// The budget of a step, and whether it counts in the total.
    fn of(&self, step: &str) -> Option<(f64, bool)> {
        let counted = self.steps.get(step).or_else(|| self.one_of.get(step));
        let apart = self.apart.get(step).map(|minutes| (*minutes, false));
        counted.map(|minutes| (*minutes, true)).or(apart)
    }
}

/// Names a step, runs it and records its time.
///
/// # Errors
/// Those of the step; [`TIMES`] cannot be written.
pub fn timed<T>(
    root: &Path,
    name: &str,
    step: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    println!("== {name}");
    let start = Instant::now();
    let result = step()?;
    let append = || -> std::io::Result<()> {
        std::fs::create_dir_all(root.join("target"))?;
        let mut options = std::fs::File::options();
        let mut file = options.append(true).create(true).open(root.join(TIMES))?;
        writeln!(file, "{name}\t{:.1}", start.elapsed().as_secs_f64())
    };
    append().map_err(|e| format!("{TIMES}: {e}"))?;
    Ok(result)
}

/// Prints the steps of the last run with their budgets.
///
/// # Errors
/// A file that cannot be read, a step without a budget.
pub fn report(root: &Path) -> Result<(), String> {
    let read =
        |file: &str| std::fs::read_to_string(root.join(file)).map_err(|e| format!("{file}: {e}"));
    let budgets: Budgets =
        toml::from_str(&read(BUDGETS)?).map_err(|e| format!("{BUDGETS}: {e}"))?;
    print!("{}", table(&read(TIMES)?, &budgets)?);
    Ok(())
}

/// The table of steps, minutes and budgets; the last row is the sum of those one after another.
fn table(times: &str, budgets: &Budgets) -> Result<String, String> {
    let mut text = format!("{:<40} {:>8} {:>8}\n", "step", "minutes", "budget");
    let mut row = |name: &str, minutes: f64, budget: f64| {
        let note = if minutes > budget {
            "  OVER BUDGET"
        } else {
            ""
        };
        let _ = writeln!(text, "{name:<40} {minutes:8.1} {budget:8.1}{note}");
    };
    let mut total = 0.0;
    for line in times.lines() {
        let (name, seconds) = line
            .split_once('\t')
            .and_then(|(name, seconds)| Some((name, seconds.parse::<f64>().ok()?)))
            .ok_or_else(|| format!("{TIMES}: {line:?} is not a name and seconds"))?;
        let (budget, counts) = budgets
            .of(name)
            .ok_or_else(|| format!("{BUDGETS}: the step {name:?} has no budget"))?;
        row(name, seconds / 60.0, budget);
        total += if counts { seconds / 60.0 } else { 0.0 };
    }
    row("total", total, budgets.total);
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_over_their_budget_are_marked_and_a_step_without_a_budget_is_refused() {
        let budgets: Budgets =
            toml::from_str("total = 3.0\n[steps]\nlints = 2.0\n\"the build\" = 1.5\n[one_of]\nkit = 1.0\n[apart]\ninstall = 1.0\n")
                .expect("budgets");
        let table = |times| table(times, &budgets);
        let text = table("install\t60.0\nlints\t60.0\nthe build\t150.0\n").expect("a table");
        let rows: Vec<&str> = text.lines().skip(1).map(str::trim_end).collect();
        let row = |name: &str, rest: &str| format!("{name:<40} {rest}");
        assert_eq!(
            rows,
            [
                row("install", "     1.0      1.0"),
                row("lints", "     1.0      2.0"),
                row("the build", "     2.5      1.5  OVER BUDGET"),
                row("total", "     3.5      3.0  OVER BUDGET"),
            ]
        );
        assert!(table("doc\t1.0\n").is_err_and(|error| error.contains("\"doc\" has no budget")));
    }

    #[test]
    fn the_budgets_of_the_steps_are_within_the_total() {
        let text = include_str!("../budgets.toml");
        let budgets: Budgets = toml::from_str(text).expect("budgets");
        let steps: f64 = budgets.steps.values().sum();
        let longest = budgets.one_of.values().copied().fold(0.0, f64::max);
        assert!(steps + longest <= budgets.total, "{steps} + {longest}");
    }
}
