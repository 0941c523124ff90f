//! `cargo xtask performance`: `docs/performance.md`, a page for each suite and their pictures, and
//! the table of README.md, only from the records under `bench/records`.

mod bars;
mod index;
mod page;
mod provenance;
mod readme;
mod record;
mod selection;

use std::path::{Path, PathBuf};

use self::record::Record;
use crate::wrap::wrapped;

/// Writes the files.
pub fn write(root: &Path) -> Result<(), String> {
    let folder = root.join("docs/performance");
    if folder.exists() {
        std::fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    let records = record::all(root)?;
    let mut files = render(&records);
    files.push((readme::FILE.into(), readme(root, &records)?.1));
    for (path, text) in files {
        let path = root.join(path);
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        made.and_then(|()| std::fs::write(&path, text))
            .map_err(|e| format!("{}: {e}", path.display()))?;
    }
    Ok(())
}

/// README.md as it is, and as the records require it.
fn readme(root: &Path, records: &[(String, Record)]) -> Result<(String, String), String> {
    let text = std::fs::read_to_string(root.join(readme::FILE))
        .map_err(|e| format!("{}: {e}", readme::FILE))?;
    let replaced = readme::replaced(&text, &selection::suites(records))?;
    Ok((text, replaced))
}

/// Records of unknown or changed commits, and files that differ from those generated from the
/// records. Records whose code has changed since are printed.
pub fn faults(root: &Path) -> Result<Vec<String>, String> {
    let records = record::all(root)?;
    provenance::changed(root, &records)
        .iter()
        .for_each(|line| println!("note: {line}"));
    let expected = render(&records);
    let is_stale = |(path, text): &(PathBuf, String)| {
        std::fs::read_to_string(root.join(path)).ok().as_ref() != Some(text)
    };
    let stale = expected
        .iter()
        .filter(|file| is_stale(file))
        .map(|(path, _)| path.clone());
    let drawn = std::fs::read_dir(root.join("docs/performance"))
        .into_iter()
        .flatten()
        .filter_map(Result::ok);
    let unknown = drawn
        .map(|entry| Path::new("docs/performance").join(entry.file_name()))
        .filter(|path| !expected.iter().any(|(known, _)| known == path));
    let (text, replaced) = readme(root, &records)?;
    let stale_readme = (text != replaced).then(|| readme::FILE.into());
    let differing = stale.chain(unknown).chain(stale_readme).map(|path| {
        format!(
            "{}: not what bench/records says; run cargo xtask performance",
            path.display()
        )
    });
    Ok(provenance::faults(root, &records)
        .into_iter()
        .chain(differing)
        .collect())
}

/// The page of each suite with its pictures, and the index.
fn render(records: &[(String, Record)]) -> Vec<(PathBuf, String)> {
    let suites = selection::suites(records);
    let mut files: Vec<(PathBuf, String)> = suites.iter().flat_map(page::files).collect();
    files.push((
        PathBuf::from("docs/performance.md"),
        wrapped(&index::text(&suites, records)),
    ));
    files
}

#[cfg(test)]
mod tests {
    use super::{Record, render};

    /// A record as `tectum bench` writes it, as far as these pages read it.
    fn record(kind: &str, operation: &str) -> Record {
        let text = format!(
            r#"{{"date": "2026-01-02", "commit": "abc", "note": "otherwise idle, \"a\".", "suites": ["core"],
                "machine": {{"cpu": "C", "threads": 2, "simd": "avx2", "system": "linux", "load": 0.5}},
                "device": {{"id": "{kind}", "name": "D", "driver": "1", "kind": "{kind}"}},
                "peers": [{{"name": "numba", "skipped": "not installed"}}],
                "measured": {{"copy_bytes_per_s": 1e10, "gemm_flop_per_s": 1e11}},
                "rows": [{{"key": "core.copy.n8", "median_s": 1e-6, "spread": 0.02, "rate": 8e9, "roofline": "copy", "percent_of_roofline": 80.0, "rounds_s": [1e-6, 1e-6, 1e-6], "peers": []}},
                         {{"key": "core.{operation}.n8", "median_s": 2e-3, "spread": 0.02, "rate": 8e9, "roofline": "copy", "percent_of_roofline": 80.0, "rounds_s": [1e-3, 2e-3, 3e-3],
                          "peers": [{{"peer": "numpy", "ratio": {{"median": 2.0, "low": 1.9, "high": 2.2}}}},
                                    {{"peer": "halide", "ratio": {{"median": 0.5, "low": 0.4, "high": 0.6}}}}]}}]}}"#
        );
        serde_json::from_str(&text).expect("readable")
    }

    fn text_of(files: &[(std::path::PathBuf, String)], end: &str) -> String {
        files
            .iter()
            .find(|(path, _)| path.ends_with(end))
            .map(|(_, text)| text.clone())
            .expect("the file")
    }

    #[test]
    fn the_page_shows_slower_rows_first_with_ratio_provenance_and_who_was_skipped() {
        let files = render(&[("2026-01-02-cpu".to_owned(), record("cpu", "add"))]);
        let paths: Vec<_> = files
            .iter()
            .map(|(path, _)| path.to_string_lossy().into_owned())
            .collect();
        let core = "docs/performance/2026-01-02-cpu-core";
        assert_eq!(
            paths,
            [
                &format!("{core}-roofline.svg"),
                &format!("{core}-peers.svg"),
                "docs/performance/core.md",
                "docs/performance.md"
            ]
        );
        let page = text_of(&files, "core.md");
        let (slower, other) = (
            "| `core.add.n8` | 2.00 ms | 2 % | 8.0 GB/s | 80 % | numpy 2.00 [1.90, 2.20]; **halide 0.50 [0.40, 0.60]** |",
            "| `core.copy.n8` |",
        );
        assert!(
            page.contains("1 of 2 rows lose to a peer")
                && page.find(slower).expect(slower) < page.find(other).expect(other),
            "{page}"
        );
        let prose = page.replace('\n', " ");
        assert!(
            prose
                .contains("Intervals of 3 rounds contain the true median with 75.00 % confidence."),
            "{page}"
        );
        assert!(
            prose.contains("device D (`cpu`), driver 1, commit abc. Copy 10.0 GB/s")
                && prose.contains("Note: otherwise idle, \"a\". Intervals")
                && prose.contains("- Peer numba: skipped: not installed."),
            "{page}"
        );
        assert!(files[1].1.contains("numpy 2.00"), "{}", files[1].1);
        let index = text_of(&files, "docs/performance.md");
        assert!(index.contains("| [core](performance/core.md) | D (`cpu`) on C, 2 threads, avx2, linux | 2 | 2 | 1 |"), "{index}");
        assert!(
            index.contains("1 comparisons in all.\n")
                && index.contains("**No figure on these pages comes from a GPU.**"),
            "{index}"
        );
    }

    #[test]
    fn of_each_machine_a_row_is_shown_from_the_newest_record_that_has_it() {
        let named =
            |name: &str, kind: &str, operation: &str| (name.to_owned(), record(kind, operation));
        let records = [
            named("c", "cpu", "add"),
            named("b", "cpu", "exp"),
            named("a", "cpu", "add"),
            named("g", "discrete", "add"),
        ];
        let page = text_of(&render(&records), "core.md");
        let count = |what: &str| page.matches(what).count();
        assert_eq!(
            (
                count("\n### "),
                count("| `core.copy.n8` |"),
                count("| `core.add.n8` |"),
                count("| `core.exp.n8` |")
            ),
            (3, 2, 2, 1),
            "{page}"
        );
        assert!(
            page.contains("have all rows of these: [a](../../bench/records/a.json).\n"),
            "{page}"
        );
    }

    #[test]
    fn only_operations_without_a_record_from_hardware_are_listed_as_never_measured_on_a_gpu() {
        let records = [
            ("a".to_owned(), record("cpu", "add")),
            ("b".to_owned(), record("discrete", "add")),
            ("c".to_owned(), record("software", "exp")),
        ];
        let index = &render(&records).pop().expect("the index").1;
        assert!(
            index.contains("These operations have no record from a GPU: `core.exp`."),
            "{index}"
        );
        let index = &render(&records[..2]).pop().expect("the index").1;
        assert!(
            index.contains("Every operation with a row has a record from a GPU."),
            "{index}"
        );
    }
}
