//! Provenance of records: each names a commit of the repository, measured without changed files.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::record::Record;

/// What the rows measure: the sources of crates, device code, and the calls of peers.
const MEASURED: [&str; 3] = [
    ":(glob)crates/*/src/**",
    ":(glob)crates/*/kernels/**",
    "bench/peers",
];

/// The file that lists commits which only changed the format of code, one full hash a line, as
/// `git blame` reads it.
const FORMATTING: &str = ".git-blame-ignore-revs";

/// Records of changed files or of commits that the repository lacks, and unknown commits in the
/// list of those that only changed the format. A shallow clone may lack any commit: there nothing
/// is reported.
pub fn faults(root: &Path, records: &[(String, Record)]) -> Vec<String> {
    let is_shallow =
        git(root, &["rev-parse", "--is-shallow-repository"]).is_none_or(|answer| answer == "true");
    let is_missing = |commit: &str| {
        !is_shallow && git(root, &["cat-file", "-e", &format!("{commit}^{{commit}}")]).is_none()
    };
    let fault = |(name, record): &(String, Record)| {
        let reason = match record.commit.strip_suffix('+') {
            Some(_) => "files differed from that commit; measure what is committed",
            None if is_missing(&record.commit) => "the repository lacks that commit",
            None => return None,
        };
        Some(format!(
            "bench/records/{name}.json: commit {}: {reason}",
            record.commit
        ))
    };
    let unknown = formatting_commits(root)
        .into_iter()
        .filter(|commit| commit.len() != 40 || is_missing(commit))
        .map(|commit| format!("{FORMATTING}: {commit} is not the full hash of a commit"));
    records.iter().filter_map(fault).chain(unknown).collect()
}

/// Records whose measured code has changed since, each with the sum of the changes. Commits that
/// only changed the format of code do not count.
pub fn changed(root: &Path, records: &[(String, Record)]) -> Vec<String> {
    let formatting = formatting_commits(root);
    let change = |(name, record): &(String, Record)| {
        let change = Change::since(root, &record.commit, &formatting)?;
        Some(format!(
            "bench/records/{name}.json: changed since {}: {} files changed, {} insertions(+), {} deletions(-)",
            record.commit,
            change.files.len(),
            change.insertions,
            change.deletions
        ))
    };
    records.iter().filter_map(change).collect()
}

/// The commits of [`FORMATTING`].
fn formatting_commits(root: &Path) -> BTreeSet<String> {
    let text = std::fs::read_to_string(root.join(FORMATTING)).unwrap_or_default();
    text.lines()
        .map(|line| line.split('#').next().unwrap_or_default().trim())
        .filter(|commit| !commit.is_empty())
        .map(str::to_owned)
        .collect()
}

/// What commits changed in measured files.
#[derive(Default)]
struct Change {
    files: BTreeSet<String>,
    insertions: u64,
    deletions: u64,
}

impl Change {
    /// The sum of the commits since one, without those that only changed the format; none if
    /// there is no such commit, or if the files are the same again.
    fn since(root: &Path, commit: &str, formatting: &BTreeSet<String>) -> Option<Change> {
        if git(
            root,
            &[
                &["diff", "--name-only", commit, "HEAD", "--"][..],
                &MEASURED,
            ]
            .concat(),
        )?
        .is_empty()
        {
            return None;
        }
        let range = format!("{commit}..HEAD");
        let log = [
            "log",
            "--no-merges",
            "--no-renames",
            "--numstat",
            "--format=%H",
            &range,
            "--",
        ];
        let text = git(root, &[&log[..], &MEASURED].concat())?;
        let mut change = Change::default();
        let mut is_counted = true;
        for line in text.lines().filter(|line| !line.is_empty()) {
            // A line of a file has insertions, deletions (`-` for binary files) and the path.
            let cells: Vec<&str> = line.splitn(3, '\t').collect();
            match cells[..] {
                [insertions, deletions, file] if is_counted => {
                    change.files.insert(file.to_owned());
                    change.insertions += insertions.parse().unwrap_or(0);
                    change.deletions += deletions.parse().unwrap_or(0);
                }
                [hash] => is_counted = !formatting.contains(hash),
                _ => {}
            }
        }
        (!change.files.is_empty()).then_some(change)
    }
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

    use super::{FORMATTING, changed, faults, git};
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

    /// Commits all files of a repository; returns the hash.
    fn commit(root: &Path, subject: &str) -> String {
        let user = ["-c", "user.name=n", "-c", "user.email=e@example.org"];
        let all = |rest: &[&str]| git(root, &[&user[..], rest].concat()).expect(subject);
        all(&["add", "--all"]);
        all(&["commit", "--quiet", "--no-verify", "-m", subject]);
        all(&["rev-parse", "HEAD"])
    }

    #[test]
    fn commits_that_only_change_the_format_do_not_count_as_changes_of_what_was_measured() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path();
        if git(root, &["init", "--quiet"]).is_none() {
            return println!("skipped: git: changes since a record");
        }
        let write = |file: &str, text: &str| {
            let path = root.join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        };
        write("crates/a/src/part/one.rs", "fn a() {}\n");
        write("crates/a/kernels/one.wgsl", "a\n");
        let measured = commit(root, "measured");
        let record = [of(&measured)];
        write("crates/a/src/part/one.rs", "fn a() {\n}\n");
        let format = commit(root, "format");
        write("docs/a.md", "not measured\n");
        commit(root, "documents");
        let line = |size: &str| {
            [format!(
                "bench/records/r.json: changed since {measured}: {size}"
            )]
        };
        assert_eq!(
            changed(root, &record),
            line("1 files changed, 2 insertions(+), 1 deletions(-)")
        );
        write(FORMATTING, &format!("# Format.\n{format} # all\n"));
        assert_eq!(changed(root, &record), [""; 0]);
        write("crates/a/src/part/one.rs", "fn b() {\n}\n");
        write("crates/a/kernels/one.wgsl", "b\nc\n");
        commit(root, "measured code");
        assert_eq!(
            changed(root, &record),
            line("2 files changed, 3 insertions(+), 2 deletions(-)")
        );
        assert_eq!(faults(root, &record), [""; 0]);
        write(FORMATTING, &format[..12]);
        assert_eq!(
            faults(root, &record),
            [format!(
                "{FORMATTING}: {} is not the full hash of a commit",
                &format[..12]
            )]
        );
    }
}
