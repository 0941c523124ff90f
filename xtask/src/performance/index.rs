//! The index of the pages: what a figure means, and a line for each suite and machine.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::record::{Record, Row};
use super::selection::{Machine, Suite};

/// Rows that the index lists of those in which a peer is faster.
const WORST: usize = 10;

const HEAD: &str = "# Performance

For readers who want to know how fast Tectum is compared with other libraries on the same machine.
Each suite has a page; every figure comes from a record in `bench/records/`. `cargo xtask
performance` writes these pages and the table of README.md, and `cargo xtask check` refuses what
differs from the records.

Read a row of a page in this way: `core.exp.n1048576` with `torch 1.15 [1.01, 1.20]` would mean that
PyTorch takes 1.15 times as long as Tectum for the exponentials of 1,048,576 numbers, and that the
true median of this ratio is between 1.01 and 1.20.

- **Ratio**: a peer's time over ours, round by round in the same run. Above 1, Tectum is faster.
- **Brackets**: the interval that covers the true median with 95 % confidence (order statistics of
  the rounds), or with less where a record has fewer than six rounds, which is then stated.
- **Roofline**: a copy of 64 MiB or a large matrix product, for rows in int8 the product of int8
  codes with packed weights, measured in the same run on as many threads as the row uses. A row that
  moves less memory than the caches hold can exceed 100 %.

How a row is measured and which calls of the peers it is compared with:
[bench/peers/README.md](../bench/peers/README.md). A page shows each row of the newest record of a
machine that has it. Older records stay in [bench/records](../bench/records/README.md) or in the
history of that folder.

## Suites

A comparison is one row with one peer. \"Peer faster\" counts those in which the median ratio is
below 1.

";

/// The text of the index.
pub fn text(suites: &[Suite], records: &[(String, Record)]) -> String {
    let mut text = String::from(HEAD);
    text += "| suite | machine and device | rows | comparisons | peer faster | records |\n|---|---|---:|---:|---:|---|\n";
    for suite in suites {
        suite
            .machines
            .iter()
            .for_each(|machine| text += &line(suite.name, machine));
    }
    text + &worst(suites) + "\n## Records from GPUs\n\n" + &never_on_a_gpu(records)
}

fn line(suite: &str, machine: &Machine) -> String {
    let ratios: Vec<f64> = machine.rows().flat_map(Row::ratios).collect();
    let records: Vec<String> = machine
        .records
        .iter()
        .map(|shown| format!("[{0}](../bench/records/{0}.json)", shown.name))
        .collect();
    let slower = ratios.iter().filter(|ratio| **ratio < 1.0).count();
    let rows = machine.rows().count();
    format!(
        "| [{suite}](performance/{suite}.md) | {} | {rows} | {} | {slower} | {} |\n",
        machine.name,
        ratios.len(),
        records.join(", ")
    )
}

/// The comparisons with the lowest ratios.
fn worst(suites: &[Suite]) -> String {
    let rows = suites.iter().flat_map(|suite| {
        suite
            .machines
            .iter()
            .flat_map(move |machine| machine.rows().map(move |row| (suite.name, row)))
    });
    let mut slower: Vec<(f64, String)> = rows
        .flat_map(|(suite, row)| {
            row.faster_peers().map(move |(ratio, peer)| {
                (
                    ratio,
                    format!(
                        "| `{}` | {peer} | [{suite}](performance/{suite}.md) |\n",
                        row.key
                    ),
                )
            })
        })
        .collect();
    slower.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut text = format!(
        "\n## Where a peer is faster\n\n{} comparisons in all.",
        slower.len()
    );
    if slower.len() > WORST {
        let _ = write!(
            text,
            " The {WORST} with the lowest ratios are here, the others are first on their pages."
        );
    }
    text += "\n\n| row | peer: its time over ours | page |\n|---|---|---|\n";
    slower.iter().take(WORST).for_each(|(_, line)| text += line);
    text
}

/// Which rows have no record from a hardware GPU.
fn never_on_a_gpu(records: &[(String, Record)]) -> String {
    let mut measured: BTreeMap<&str, bool> = BTreeMap::new();
    for (_, record) in records {
        for row in &record.rows {
            // Software devices use smaller operands; what counts is whether the operation ran on a
            // GPU.
            *measured.entry(row.operation()).or_default() |= record.device.is_gpu();
        }
    }
    let never: Vec<&str> = measured
        .iter()
        .filter(|(_, on_gpu)| !**on_gpu)
        .map(|(name, _)| *name)
        .collect();
    match (never.len(), measured.len()) {
        (0, _) => "Every operation with a row has a record from a GPU.\n".to_owned(),
        (never, all) if never == all => "**No figure on these pages comes from a GPU.** None of the operations has been measured on one.\n".to_owned(),
        _ => format!("These operations have no record from a GPU: {}.\n", never.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")),
    }
}
