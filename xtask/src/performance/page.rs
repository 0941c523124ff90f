//! The page of one suite with its pictures: by machine and record, first the rows in which a peer
//! is faster.

use std::fmt::Write as _;
use std::path::PathBuf;

use super::bars::{Bar, bars};
use super::record::{Record, Row};
use super::selection::{Shown, Suite};
use crate::wrap::wrapped;

/// The page and its pictures.
pub fn files(suite: &Suite) -> Vec<(PathBuf, String)> {
    let mut text = format!(
        "# Performance: {}\n\nFor readers who compare Tectum with another library on this suite. [The \
         index](../performance.md) defines the columns, the ratio and its interval.\nWritten by `cargo xtask performance` from the records that are named here.\n",
        suite.name
    );
    let mut files = Vec::new();
    for machine in &suite.machines {
        let _ = write!(text, "\n## {}\n", machine.name);
        for shown in &machine.records {
            text += &about(shown);
            pictures(suite.name, shown, &mut text, &mut files);
            text += &tables(&shown.rows);
        }
    }
    if !suite.older.is_empty() {
        let links: Vec<String> = suite.older.iter().map(|name| link(name)).collect();
        let _ = write!(
            text,
            "\n## Older records\n\nNewer records of the same machine have all rows of these: {}.\n",
            links.join(", ")
        );
    }
    files.push((
        PathBuf::from(format!("docs/performance/{}.md", suite.name)),
        wrapped(&text),
    ));
    files
}

fn link(record: &str) -> String {
    format!("[{record}](../../bench/records/{record}.json)")
}

/// Device, driver, commit, roofline and peers of a record.
fn about(shown: &Shown) -> String {
    let record = shown.record;
    let (machine, device) = (&record.machine, &record.device);
    let mut text = format!(
        "\n### {}\n\nRecord {}: device {} (`{}`), driver {}, commit {}.\nCopy {:.1} GB/s, matrix product {:.1} GFLOP/s.\n",
        shown.name,
        link(shown.name),
        device.name,
        device.id,
        device.driver,
        record.commit,
        record.measured.copy_bytes_per_s / 1e9,
        record.measured.gemm_flop_per_s / 1e9
    );
    if let Some(load) = machine.load {
        let _ = writeln!(text, "Load of the machine in the minute before: {load:.1}.");
    }
    record
        .note
        .iter()
        .for_each(|note| text += &format!("Note: {}.\n", note.trim_end_matches('.')));
    // With fewer than six rounds an interval is their whole range, which contains the median unless
    // all are on one side of it.
    if let Some(rounds) = shown
        .rows
        .iter()
        .map(|row| row.rounds_s.len())
        .min()
        .filter(|rounds| *rounds < 6)
    {
        let _ = writeln!(
            text,
            "Intervals of {rounds} rounds contain the true median with {:.2} % confidence.",
            100.0 * (1.0 - 0.5f64.powi(rounds as i32 - 1))
        );
    }
    text + &peers(record, &shown.rows)
}

/// The peers of these rows with their versions, and those that were skipped with the reason.
fn peers(record: &Record, rows: &[&Row]) -> String {
    let of_rows = |peer: &str| {
        rows.iter()
            .any(|row| row.peer_names().any(|name| name == peer))
    };
    let mut text = String::new();
    for peer in record
        .peers
        .iter()
        .filter(|peer| peer.skipped.is_some() || of_rows(&peer.name))
    {
        let versions: Vec<String> = peer
            .versions
            .iter()
            .map(|(name, version)| format!("{name} {version}"))
            .collect();
        let _ = match &peer.skipped {
            Some(reason) => writeln!(text, "- Peer {}: skipped: {reason}.", peer.name),
            None => writeln!(
                text,
                "- Peer {}: {}, {} threads.",
                peer.name,
                versions.join(", "),
                peer.threads.unwrap_or(0)
            ),
        };
    }
    if record.peers.is_empty() {
        "\nNo peer was measured in the same run.\n".to_owned()
    } else {
        format!("\n{text}")
    }
}

/// Both pictures of a record, in the text and as files.
fn pictures(suite: &str, shown: &Shown, text: &mut String, files: &mut Vec<(PathBuf, String)>) {
    let rooflines = shown.rows.iter().map(|row| row.roofline_bar()).collect();
    let peers = shown.rows.iter().flat_map(|row| row.peer_bars()).collect();
    let mut picture = |kind: &str, title: &str, bars_of: Vec<Bar>, mark: f64, unit: &str| {
        if bars_of.is_empty() {
            return;
        }
        let file = format!("{}-{suite}-{kind}.svg", shown.name);
        let _ = write!(text, "\n![{title}]({file})\n");
        files.push((
            PathBuf::from(format!("docs/performance/{file}")),
            bars(title, &bars_of, mark, unit),
        ));
    };
    picture(
        "roofline",
        "Percent of the roofline measured in the same run",
        rooflines,
        100.0,
        "%",
    );
    picture(
        "peers",
        "Time of a peer over ours, in the same rounds",
        peers,
        1.0,
        "",
    );
}

/// The rows in which a peer is faster, the worst first, then the others in the order of the record.
fn tables(rows: &[&Row]) -> String {
    let (mut slower, others): (Vec<&Row>, Vec<&Row>) =
        rows.iter().copied().partition(|row| row.is_slower());
    slower.sort_by(|a, b| a.lowest_ratio().total_cmp(&b.lowest_ratio()));
    let mut text = String::new();
    if !slower.is_empty() {
        let _ = write!(
            text,
            "\n{} of {} rows lose to a peer, the worst first; the faster peers are in bold:\n{}",
            slower.len(),
            rows.len(),
            table(&slower)
        );
    }
    match (slower.is_empty(), others.is_empty()) {
        (_, true) => {}
        (true, false) => {
            text += &format!(
                "\n{} rows, none of which loses to a peer:\n{}",
                others.len(),
                table(&others)
            )
        }
        (false, false) => {
            text += &format!("\nThe other {} rows:\n{}", others.len(), table(&others))
        }
    }
    text
}

fn table(rows: &[&Row]) -> String {
    let mut text = String::from(
        "\n| row | median | spread | rate | of roofline | peers: time over ours |\n|---|---:|---:|---:|---:|---|\n",
    );
    for row in rows {
        let rate = if row.roofline.starts_with("gemm") {
            format!("{:.1} GFLOP/s", row.rate / 1e9)
        } else {
            format!("{:.1} GB/s", row.rate / 1e9)
        };
        let _ = writeln!(
            text,
            "| `{}` | {} | {:.0} % | {rate} | {:.0} % | {} |",
            row.key,
            seconds(row.median_s),
            100.0 * row.spread,
            row.percent_of_roofline,
            row.peer_text()
        );
    }
    text
}

fn seconds(value: f64) -> String {
    if value >= 1e-3 {
        format!("{:.2} ms", value * 1e3)
    } else {
        format!("{:.1} µs", value * 1e6)
    }
}
