//! The part of README.md that comes from the records: between two comments.

use std::fmt::Write as _;

use super::record::Row;
use super::selection::Suite;
use crate::wrap::wrapped;

/// The file, relative to the repository's root.
pub const FILE: &str = "README.md";
const BEGIN: &str = "<!-- Written by cargo xtask performance from bench/records. -->";
const END: &str = "<!-- End of what cargo xtask performance writes. -->";

/// Names of peers as their users write them; of a peer that is not here the name in the records.
const NAMES: [(&str, &str); 10] = [
    ("by hand", "the same body in Rust"),
    ("halide", "Halide"),
    ("jax", "JAX"),
    ("llama_cpp", "llama.cpp"),
    ("numba", "Numba"),
    ("numexpr", "NumExpr"),
    ("numpy", "NumPy"),
    ("onnxruntime", "ONNX Runtime"),
    ("openvino", "OpenVINO"),
    ("torch", "PyTorch"),
];

/// README.md with the part from the records written again.
///
/// # Errors
/// If one of the comments is missing.
pub fn replaced(readme: &str, suites: &[Suite]) -> Result<String, String> {
    let parts = readme
        .split_once(BEGIN)
        .and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
    let (before, after) =
        parts.ok_or_else(|| format!("{FILE}: the lines {BEGIN} and {END} are missing"))?;
    Ok(format!("{before}{BEGIN}\n\n{}\n{END}{after}", text(suites)))
}

/// The machines, and a row for each suite.
fn text(suites: &[Suite]) -> String {
    let mut machines: Vec<&str> = suites
        .iter()
        .flat_map(|suite| suite.machines.iter().map(|machine| machine.name.as_str()))
        .collect();
    machines.sort_unstable();
    machines.dedup();
    let mut text = format!("All records are from {}.\n\n", machines.join(", and from "));
    text += "| Suite | Comparisons | Peer faster | Peer: faster in, of its comparisons |\n|---|---:|---:|---|\n";
    for suite in suites {
        let rows = || suite.machines.iter().flat_map(|machine| machine.rows());
        let ratios: Vec<f64> = rows().flat_map(Row::ratios).collect();
        let _ = writeln!(
            text,
            "| [{0}](docs/performance/{0}.md) | {1} | {2} | {3} |",
            suite.name,
            ratios.len(),
            ratios.iter().filter(|ratio| **ratio < 1.0).count(),
            peers(rows().flat_map(Row::peer_ratios))
        );
    }
    wrapped(&text)
}

/// Each peer with how often it is faster, the one with the most comparisons first.
fn peers<'r>(ratios: impl Iterator<Item = (&'r str, f64)>) -> String {
    let mut counts: Vec<(&str, usize, usize)> = Vec::new();
    for (peer, ratio) in ratios {
        let place = counts.iter().position(|(known, ..)| *known == peer);
        let place = place.unwrap_or_else(|| {
            counts.push((peer, 0, 0));
            counts.len() - 1
        });
        counts[place].1 += usize::from(ratio < 1.0);
        counts[place].2 += 1;
    }
    counts.sort_by_key(|(peer, _, compared)| (std::cmp::Reverse(*compared), *peer));
    let text = |(peer, faster, compared): &(&str, usize, usize)| {
        format!("{} {faster} of {compared}", name(peer))
    };
    counts.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// A peer's name for readers. Rows with a variant are also compared with Tectum's other variants.
fn name(peer: &str) -> String {
    if let Some(variant) = peer.strip_prefix("tectum, ") {
        return format!("Tectum with `{variant}`");
    }
    let known = NAMES.iter().find(|(known, _)| *known == peer);
    known.map_or(peer, |(_, name)| name).to_owned()
}

#[cfg(test)]
mod tests {
    use super::{BEGIN, END, peers, replaced};

    #[test]
    fn only_what_is_between_the_comments_is_replaced() {
        let readme = format!("a\n{BEGIN}\nold\n{END}\nb\n");
        let new = replaced(&readme, &[]).expect("both comments");
        assert!(
            new.starts_with(&format!("a\n{BEGIN}\n\nAll records"))
                && new.ends_with(&format!("\n{END}\nb\n"))
                && !new.contains("old"),
            "{new}"
        );
        assert_eq!(replaced(&new, &[]).as_ref(), Ok(&new));
        let missing = replaced(&format!("{END}\n{BEGIN}\n"), &[]);
        assert!(missing.is_err_and(|fault| fault.starts_with("README.md: the lines ")));
    }

    #[test]
    fn peers_are_counted_each_by_itself() {
        let ratios = [
            ("numpy", 2.0),
            ("torch", 0.9),
            ("torch", 1.0),
            ("tectum, cache_f16", 0.5),
        ];
        assert_eq!(
            peers(ratios.into_iter()),
            "PyTorch 1 of 2, NumPy 0 of 1, Tectum with `cache_f16` 1 of 1"
        );
    }
}
