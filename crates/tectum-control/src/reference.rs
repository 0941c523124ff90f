//! The reference of scenarios, `docs/scenarios.md`: what the readers ask for when they read one example of each table.

use std::cell::RefCell;
use std::fmt::Write as _;

use tectum::Result;

use crate::body::{BODIES, Start};
use crate::brain::BRAIN_NAMES;
use crate::document::{KeyRow, renamings};
use crate::recording::topics;
use crate::run_folder::FILES;
use crate::scenario::Scenario;

/// The part that is written by hand.
const HEAD: &str = include_str!("reference.md");

/// Bodies with all their tables; the keys of the loop are read with the first.
const BODY: &str = "[body]
name = \"rig\"
start = \"hanging\"

[body.disturbances]
pole_length = 0.8
delay_samples = 1
";

const LOOP: &str = "[loop]
seconds = 60
clock = \"real\"
stand_in = \"lqr\"

[loop.guard.pend_position]
outlier_threshold = 60.0
stop_beyond = 170.0
";

/// Brains that have keys, with all their tables.
const BRAINS: [(&str, &str); 3] = [
    (
        "mppi",
        "[brain]
name = \"mppi\"
samples = 256

[brain.cost]
pend_position = 1.0

[brain.twin]
hidden = [64, 64]

[brain.twin.online]
every = 50
",
    ),
    (
        "field",
        "[brain]
name = \"field\"
cells = [16, 16, 16]
reward = \"la_velocity\"

[brain.coefficients]
noise = 0.002
",
    ),
    (
        "genome",
        "[brain]
genome = \"genome.json\"
bursts_per_tick = 4

[[brain.sensors]]
channel = \"pend_position\"
area = \"eye\"

[[brain.motors]]
channel = \"cmd_volts\"
area = \"arm\"
coding = \"fractional\"
",
    ),
];

/// The reference of scenarios as a page of Markdown: every key of every table with its values, unit, default and meaning.
///
/// Names and ranges are those that the readers check, so the page cannot differ from them.
///
/// # Errors
/// `Unsupported` in a build without the features `field` and `spiking`.
pub fn scenario_reference() -> Result<String> {
    let mut page = HEAD.to_owned();
    let zero = asked(&format!("{BODY}\n[brain]\nname = \"zero\"\n\n{LOOP}"))?;
    let part = |name: &str| zero.iter().filter(|row| row.table == name || row.table.starts_with(&format!("{name}."))).cloned().collect::<Vec<_>>();
    page += "\n## The whole file\n";
    write_tables(&mut page, &zero.iter().filter(|row| row.table.is_empty()).cloned().collect::<Vec<_>>(), &zero);
    write!(page, "\n## The body\n\n```toml\n{BODY}```\n").ok();
    write_tables(&mut page, &part("body"), &zero);
    write_bodies(&mut page);
    page += "\n## The brain\n\n`[brain]` has the key `name`, and the keys of that brain. `tectum run --brain NAME` selects another with default settings.\n";
    let others: Vec<&str> = BRAIN_NAMES.iter().copied().filter(|name| !BRAINS.iter().any(|(known, _)| known == name)).collect();
    writeln!(page, "The brains {} have no other keys.", others.join(", ")).ok();
    for (name, text) in BRAINS {
        let rows = asked(&format!("[body]\nname = \"rig\"\n{text}"))?;
        write!(page, "\n### {name}\n\n```toml\n{text}```\n").ok();
        write_tables(&mut page, &rows.iter().filter(|row| row.table.trim_start_matches('[').starts_with("brain")).cloned().collect::<Vec<_>>(), &rows);
    }
    write!(page, "\n## The loop\n\n```toml\n{LOOP}```\n").ok();
    write_tables(&mut page, &part("loop"), &zero);
    page += "\n## Old names\n\nThese names are read with a warning, until the next version.\n\n| What | Old name | Name |\n|---|---|---|\n";
    renamings().for_each(|(what, old, new)| drop(writeln!(page, "| {what} | `{old}` | `{new}` |")));
    page += "\n## Files of a run folder\n\n| File | Holds |\n|---|---|\n";
    FILES.iter().for_each(|(file, holds)| drop(writeln!(page, "| `{file}` | {holds} |")));
    page += "\n## Topics of the recording\n\nThe numbers of `/observation` and `/action` are those of the body, by name.\n\n| Topic | Field | Meaning |\n|---|---|---|\n";
    topics().into_iter().for_each(|[topic, field, meaning]| drop(writeln!(page, "| `{topic}` | {field} | {meaning} |")));
    Ok(page)
}

/// The keys that are asked for when a text is read, each once.
fn asked(text: &str) -> Result<Vec<KeyRow>> {
    let rows = RefCell::new(Vec::new());
    Scenario::parse_as(text, "reference", "reference", false, Some(&rows))?;
    let mut once: Vec<KeyRow> = Vec::new();
    for row in rows.into_inner() {
        if !once.iter().any(|known| (&known.table, &known.key) == (&row.table, &row.key)) {
            once.push(row);
        }
    }
    Ok(once)
}

/// Writes the tables of some rows in their order; `all` has the rows that introduce tables.
fn write_tables(page: &mut String, rows: &[KeyRow], all: &[KeyRow]) {
    let mut written: Vec<&str> = Vec::new();
    for table in rows.iter().map(|row| row.table.as_str()) {
        let keys = || rows.iter().filter(|row| row.table == table && !row.values.ends_with("table") && !row.values.ends_with("tables"));
        if written.contains(&table) || keys().next().is_none() {
            continue;
        }
        written.push(table);
        if !table.is_empty() {
            let (parent, key) = table.trim_matches(['[', ']']).rsplit_once('.').unwrap_or(("", table));
            let about = all.iter().find(|row| row.table == parent && row.key == key).map_or("", |row| &row.about);
            write!(page, "\n`[{table}]` {about}\n").ok();
        }
        page.push_str("\n| Key | Values | Unit | Default | Meaning |\n|---|---|---|---|---|\n");
        for row in keys() {
            let default = if row.default.is_empty() { "none" } else { &row.default };
            writeln!(page, "| `{}` | {} | {} | {default} | {} |", row.key, row.values, row.unit, row.about).ok();
        }
    }
}

/// Writes the table of the bodies.
fn write_bodies(page: &mut String) {
    page.push_str("\n| Body | Starts, the default first | Period | Observation | Action | Settings for | Disturbances |\n|---|---|---|---|---|---|---|\n");
    for body in BODIES {
        let Ok(made) = (body.make)(body.starts[0]) else { continue };
        let spec = made.spec();
        let starts: Vec<&str> = body.starts.iter().map(|start| if *start == Start::Random { "random" } else { "hanging" }).collect();
        let observation: Vec<String> = spec.observation.iter().map(|channel| format!("`{}` ({})", channel.name, channel.unit)).collect();
        let action: Vec<String> = spec.action.iter().map(|channel| format!("`{}` ({})", channel.name, channel.unit)).collect();
        let brains = [("mppi", body.mppi.is_some()), ("mppi over the plant", body.plant.is_some()), ("lqr and mpc", body.regulator.is_some())];
        let brains: Vec<&str> = brains.into_iter().filter_map(|(name, has)| has.then_some(name)).collect();
        let disturbed = if body.disturbed.is_some() { "yes" } else { "no" };
        let lists = [starts.join(", "), format!("{} s", spec.dt_s), observation.join(", "), action.join(", "), brains.join(", ")];
        writeln!(page, "| `{}` | {} | {disturbed} |", body.name, lists.join(" | ")).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::{asked, scenario_reference};
    use crate::scenario::embedded;

    #[test]
    fn the_committed_page_is_the_generated_one() {
        let page = scenario_reference().expect("the examples are correct");
        let committed = include_str!("../../../docs/scenarios.md");
        let differs = page.lines().zip(committed.lines()).find(|(generated, written)| generated != written);
        assert!(page == committed, "docs/scenarios.md differs: {differs:?}; write it again: cargo run -- scenario reference > docs/scenarios.md");
    }

    #[test]
    fn every_key_has_a_meaning_and_every_key_of_the_build_is_on_the_page() {
        let page = scenario_reference().expect("the examples are correct");
        for (name, text) in embedded() {
            for row in asked(text).expect("correct") {
                assert!(!row.about.is_empty() || row.key == "guard", "{name}: {row:?}");
                assert!(row.values.contains("table") || page.contains(&format!("| `{}` | {} |", row.key, row.values)), "{name}: {row:?}");
            }
        }
    }
}
