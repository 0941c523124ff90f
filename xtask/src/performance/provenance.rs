//! Provenance of records: each names a commit of the repository, measured without changed files.

use std::path::Path;
use std::process::Command;

use super::record::Record;

/// What the rows measure.
const MEASURED: [&str; 2] = ["crates/*/src", "bench/peers"];

/// Records of changed files or of commits that the repository lacks. A shallow clone may lack any
/// commit: there nothing is reported.
pub fn faults(root: &Path, records: &[(String, Record)]) -> Vec<String> {
    let is_shallow =
        git(root, &["rev-parse", "--is-shallow-repository"]).is_none_or(|answer| answer == "true");
    let fault = |(name, record): &(String, Record)| {
        let reason = match record.commit.strip_suffix('+') {
            Some(_) => "files differed from that commit; measure what is committed",
            None if !is_shallow
                && git(
                    root,
                    &["cat-file", "-e", &format!("{}^{{commit}}", record.commit)],
                )
                .is_none() =>
            {
                "the repository lacks that commit"
            }
            None => return None,
        };
        Some(format!(
            "bench/records/{name}.json: commit {}: {reason}",
            record.commit
        ))
    };
    records.iter().filter_map(fault).collect()
}

/// Records whose measured code has changed since, each with the size of the change.
pub fn changed(root: &Path, records: &[(String, Record)]) -> Vec<String> {
    let change = |(name, record): &(String, Record)| {
        let summary = git(
            root,
            &[
                &["diff", "--shortstat", &record.commit, "HEAD", "--"][..],
                &MEASURED,
            ]
            .concat(),
        )?;
        (!summary.is_empty()).then(|| {
            format!(
                "bench/records/{name}.json: changed since {}: {summary}",
                record.commit
            )
        })
    };
    records.iter().filter_map(change).collect()
}

/// The output of git; none if it fails.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .current_dir(root)
        .args(arguments)
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{changed, faults, git};
    use crate::performance::record::Record;

    fn of(commit: &str) -> (String, Record) {
        let text = format!(
            r#"{{"date": "2026-01-02", "commit": "{commit}", "suites": [], "machine": {{"cpu": "C", "threads": 2, "simd": "avx2", "system": "linux"}},
                "device": {{"id": "cpu", "name": "D", "driver": "1", "kind": "cpu"}}, "peers": [],
                "measured": {{"copy_bytes_per_s": 1e10, "gemm_flop_per_s": 1e11}}, "rows": []}}"#
        );
        (
            "r".to_owned(),
            serde_json::from_str(&text).expect("readable"),
        )
    }

    #[test]
    fn records_of_unknown_and_changed_commits_are_refused() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let Some(head) = git(&root, &["rev-parse", "--short", "HEAD"]) else {
            return println!("skipped: not a git repository");
        };
        assert_eq!(faults(&root, &[of(&head)]), [""; 0]);
        assert_eq!(changed(&root, &[of(&head)]), [""; 0]);
        let changed_files = format!("{head}+");
        assert_eq!(
            faults(&root, &[of(&changed_files)]),
            [format!(
                "bench/records/r.json: commit {changed_files}: files differed from that commit; measure what is committed"
            )]
        );
        if git(&root, &["rev-parse", "--is-shallow-repository"]).as_deref() == Some("false") {
            assert_eq!(
                faults(&root, &[of("0123abc")]),
                ["bench/records/r.json: commit 0123abc: the repository lacks that commit"]
            );
        }
    }
}
