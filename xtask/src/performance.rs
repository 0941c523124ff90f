//! `cargo xtask performance`: `docs/performance.md` and its pictures, only from the records under `bench/records`.

mod bars;
mod provenance;
mod record;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use self::bars::{Bar, bars};
use self::record::{Record, Row};

/// Writes the files.
pub fn write(root: &Path) -> Result<(), String> {
    let folder = root.join("docs/performance");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    for (path, text) in render(&record::all(root)?) {
        let path = root.join(path);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, text)).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// Records of unknown or changed commits, and files that differ from those generated from the records. Records whose code has changed since are printed.
pub fn faults(root: &Path) -> Result<Vec<String>, String> {
    let records = record::all(root)?;
    provenance::changed(root, &records).iter().for_each(|line| println!("note: {line}"));
    let wanted = render(&records);
    let is_stale = |(path, text): &(PathBuf, String)| std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(text);
    let stale = wanted.iter().filter(|file| is_stale(file)).map(|(path, _)| path.clone());
    let drawn = std::fs::read_dir(root.join("docs/performance")).into_iter().flatten().filter_map(Result::ok);
    let unknown = drawn.map(|entry| Path::new("docs/performance").join(entry.file_name())).filter(|path| !wanted.iter().any(|(known, _)| known == path));
    let differing = stale.chain(unknown).map(|path| format!("{}: not what bench/records says; run cargo xtask performance", path.display()));
    Ok(provenance::faults(root, &records).into_iter().chain(differing).collect())
}

/// The document and its pictures: one section per record, newest first.
fn render(records: &[(String, Record)]) -> Vec<(PathBuf, String)> {
    let mut text = String::from(HEAD);
    text += &slower_than_a_peer(records);
    text += "## What never met a GPU\n\n";
    text += &never_on_a_gpu(records);
    let mut files = Vec::new();
    for (name, record) in records {
        let _ = write!(text, "\n## {name}\n\n{}", about(record));
        for suite in &record.suites {
            let rows: Vec<&Row> = record.rows.iter().filter(|row| row.key.split('.').next() == Some(suite)).collect();
            let stem = format!("docs/performance/{name}-{suite}");
            let mut picture = |kind: &str, title: &str, bars_of: Vec<Bar>, mark: f64, unit: &str| {
                if bars_of.is_empty() {
                    return;
                }
                let path = format!("{stem}-{kind}.svg");
                let _ = write!(text, "\n![{title}]({})\n", path.trim_start_matches("docs/"));
                files.push((PathBuf::from(path), bars(title, &bars_of, mark, unit)));
            };
            picture("roofline", "Percent of the roofline measured in the same run", rows.iter().map(|row| row.roofline_bar()).collect(), 100.0, "%");
            let peers = rows.iter().flat_map(|row| row.peer_bars()).collect();
            picture("peers", "Time of a peer over ours, in the same rounds", peers, 1.0, "");
            text += &table(&rows);
        }
    }
    files.push((PathBuf::from("docs/performance.md"), text));
    files
}

const HEAD: &str = "# Performance

Written by `cargo xtask performance` from the records in `bench/records/`; `cargo xtask check` refuses a page that differs from them. How a row
is measured and which peers it is compared with: `bench/peers/README.md`.

A ratio is a peer's time over ours, round by round in the same run: above 1 we are faster. The brackets contain the interval that covers the
true median with 95 % confidence (order statistics of the rounds), or with less where a record has fewer than six rounds, which is then stated.
The roofline is a copy of 64 MiB or a large matrix product, for rows in int8 the product of int8 codes with packed weights, measured in the same
run on as many threads as the row uses. A row that moves less memory than the caches hold can exceed 100 %.

";

/// The rows of the newest record of each in which a peer is faster, the worst first.
fn slower_than_a_peer(records: &[(String, Record)]) -> String {
    let mut seen = BTreeSet::new();
    let newest = records.iter().flat_map(|(name, record)| record.rows.iter().map(move |row| (name, row))).filter(|(_, row)| seen.insert(&row.key));
    let mut rows: Vec<(f64, String)> =
        newest.flat_map(|(name, row)| row.faster_peers().map(move |(ratio, peer)| (ratio, format!("| `{}` | {peer} | {name} |\n", row.key)))).collect();
    rows.sort_by(|a, b| a.0.total_cmp(&b.0));
    let lines: String = rows.iter().map(|(_, line)| line.as_str()).collect();
    format!("## Where a peer is faster\n\n{} rows, the worst first.\n\n| row | peer: its time over ours | record |\n|---|---|---|\n{lines}\n", rows.len())
}

/// Which rows have no record from a hardware GPU.
fn never_on_a_gpu(records: &[(String, Record)]) -> String {
    let mut met: BTreeMap<&str, bool> = BTreeMap::new();
    for (_, record) in records {
        for row in &record.rows {
            // Software devices use smaller operands; what counts is whether the operation ran on a GPU.
            *met.entry(row.operation()).or_default() |= record.device.is_gpu();
        }
    }
    let never: Vec<&str> = met.iter().filter(|(_, met)| !**met).map(|(name, _)| *name).collect();
    match (never.len(), met.len()) {
        (0, _) => "Every operation with a row here has a record from a GPU.\n".to_owned(),
        (never, all) if never == all => "**No figure on this page comes from a GPU.** None of the operations below has been measured on one.\n".to_owned(),
        _ => format!("These operations have no record from a GPU: {}.\n", never.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    }
}

fn about(record: &Record) -> String {
    let (machine, device) = (&record.machine, &record.device);
    let mut text = format!(
        "{} (`{}`, {}), commit {}, on {} with {} threads, {}, {}. Copy {:.1} GB/s, matrix product {:.1} GFLOP/s.\n",
        device.name,
        device.id,
        device.driver,
        record.commit,
        machine.cpu,
        machine.threads,
        machine.simd,
        machine.system,
        record.measured.copy_bytes_per_s / 1e9,
        record.measured.gemm_flop_per_s / 1e9
    );
    if let Some(load) = machine.load {
        let _ = writeln!(text, "Load of the machine in the minute before: {load:.1}.");
    }
    for peer in &record.peers {
        let versions: Vec<String> = peer.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
        let _ = match &peer.skipped {
            Some(reason) => writeln!(text, "Peer {}: skipped: {reason}.", peer.name),
            None => writeln!(text, "Peer {}: {}, {} threads.", peer.name, versions.join(", "), peer.threads.unwrap_or(0)),
        };
    }
    // With fewer than six rounds an interval is their whole range, which contains the median unless all are on one side of it.
    if let Some(rounds) = record.rows.iter().map(|row| row.rounds_s.len()).min().filter(|rounds| *rounds < 6) {
        let _ = writeln!(text, "Intervals of {rounds} rounds hold the true median with {:.2} % confidence.", 100.0 * (1.0 - 0.5f64.powi(rounds as i32 - 1)));
    }
    if record.peers.is_empty() {
        text += "No peer ran beside these rows.\n";
    }
    record.note.iter().for_each(|note| text += &format!("{note}\n"));
    text
}

fn table(rows: &[&Row]) -> String {
    let mut text = String::from("\n| row | median | spread | rate | of roofline | peers: time over ours |\n|---|---:|---:|---:|---:|---|\n");
    for row in rows {
        let rate = if row.roofline.starts_with("gemm") { format!("{:.1} GFLOP/s", row.rate / 1e9) } else { format!("{:.1} GB/s", row.rate / 1e9) };
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
    if value >= 1e-3 { format!("{:.2} ms", value * 1e3) } else { format!("{:.1} µs", value * 1e6) }
}

#[cfg(test)]
mod tests {
    use super::{Record, render};

    /// A record as `tectum bench` writes it, as far as this page reads it.
    fn record(kind: &str, operation: &str) -> Record {
        let text = format!(
            r#"{{"date": "2026-01-02", "commit": "abc", "suites": ["core"],
                "machine": {{"cpu": "C", "threads": 2, "simd": "avx2", "system": "linux", "load": 0.5}},
                "device": {{"id": "{kind}", "name": "D", "driver": "1", "kind": "{kind}"}},
                "peers": [{{"name": "numba", "skipped": "not installed"}}],
                "measured": {{"copy_bytes_per_s": 1e10, "gemm_flop_per_s": 1e11}},
                "rows": [{{"key": "core.{operation}.n8", "median_s": 2e-3, "spread": 0.02, "rate": 8e9, "roofline": "copy", "percent_of_roofline": 80.0, "rounds_s": [1e-3, 2e-3, 3e-3],
                          "peers": [{{"peer": "numpy", "ratio": {{"median": 2.0, "low": 1.9, "high": 2.2}}}},
                                    {{"peer": "halide", "ratio": {{"median": 0.5, "low": 0.4, "high": 0.6}}}}]}}]}}"#
        );
        serde_json::from_str(&text).expect("readable")
    }

    #[test]
    fn the_page_holds_every_row_its_ratio_and_who_was_skipped() {
        let files = render(&[("2026-01-02-cpu".to_owned(), record("cpu", "add"))]);
        let paths: Vec<_> = files.iter().map(|(path, _)| path.to_string_lossy().into_owned()).collect();
        assert_eq!(paths, ["docs/performance/2026-01-02-cpu-core-roofline.svg", "docs/performance/2026-01-02-cpu-core-peers.svg", "docs/performance.md"]);
        let page = &files[2].1;
        assert!(page.contains("| `core.add.n8` | 2.00 ms | 2 % | 8.0 GB/s | 80 % | numpy 2.00 [1.90, 2.20]; halide 0.50 [0.40, 0.60] |"), "{page}");
        assert!(
            page.contains(
                "1 rows, the worst first.\n\n| row | peer: its time over ours | record |\n|---|---|---|\n| `core.add.n8` | halide 0.50 [0.40, 0.60] |"
            )
        );
        assert!(page.contains("Intervals of 3 rounds hold the true median with 75.00 % confidence."), "{page}");
        assert!(page.contains("Peer numba: skipped: not installed."), "{page}");
        assert!(page.contains("**No figure on this page comes from a GPU.**"), "{page}");
        assert!(files[1].1.contains("numpy 2.00"), "{}", files[1].1);
    }

    #[test]
    fn only_operations_without_a_record_from_hardware_never_met_a_gpu() {
        let records = [("a".to_owned(), record("cpu", "add")), ("b".to_owned(), record("discrete", "add")), ("c".to_owned(), record("software", "exp"))];
        let page = &render(&records).pop().expect("the page").1;
        assert!(page.contains("These operations have no record from a GPU: `core.exp`."), "{page}");
        let page = &render(&records[..2]).pop().expect("the page").1;
        assert!(page.contains("Every operation with a row here has a record from a GPU."), "{page}");
    }
}
