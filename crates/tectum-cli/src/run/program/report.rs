//! The report at the end of a program's run.

use serde::Serialize;
use tectum::Receipt;
use tectum_programs::{Bounded, Bounds, ProgramRun, Recognized as Found, Shape};

use super::arrays::{Discarded, Saved};
use crate::count::counted;
use crate::table::table;

/// A run with its receipt.
#[derive(Serialize)]
pub struct Report {
    program: String,
    file: String,
    grid: [u32; 3],
    block: [u32; 3],
    elements: Option<u64>,
    /// `proven` if no access can fault, so that none was checked; else `checked`.
    bounds: &'static str,
    device: String,
    software: bool,
    /// None if the reference interpreter ran it.
    recognized: Option<Recognized>,
    outputs: Vec<Saved>,
    /// Results that no file received.
    discarded: Vec<Discarded>,
    pub receipt: Receipt,
}

/// What the program was recognised as, or why it was not.
#[derive(Serialize)]
struct Recognized {
    /// `map`, `reduction`, `tree`, `matvec`, `gemm`, or `general`: it ran unchanged.
    shape: &'static str,
    /// The shape with its sizes.
    text: String,
    /// What was proven for it.
    proofs: Vec<String>,
    /// Rejected shapes, with reasons.
    refusals: Vec<String>,
}

impl Recognized {
    fn of(found: &Found) -> Self {
        Self {
            shape: found.shape().name(),
            text: found.shape().to_string(),
            proofs: found
                .obligations()
                .iter()
                .map(|obligation| format!("{}: {}", obligation.claim, obligation.proof))
                .collect(),
            refusals: found.reasons(),
        }
    }

    /// For the table: the reasons, if it ran unchanged.
    fn row(&self) -> String {
        match self.refusals.as_slice() {
            reasons if self.shape == Shape::General.name() => {
                format!("{}; {}", self.text, reasons.join("; "))
            }
            _ => self.text.clone(),
        }
    }
}

impl Report {
    /// Collects the report.
    pub fn new(
        file: &str,
        bounded: &Bounded,
        run: Option<&ProgramRun>,
        receipt: Receipt,
        (outputs, discarded): (Vec<Saved>, Vec<Discarded>),
    ) -> Self {
        let recorded = run.map(ProgramRun::recorded);
        // A recognised program is proven to have no fault.
        let is_proven = recorded.is_some_and(|recorded| {
            recorded
                .launch()
                .is_none_or(|launch| launch.lowered().bounds() == Bounds::Proven)
        });
        Self {
            program: bounded.checked().program().name().to_owned(),
            file: file.to_owned(),
            grid: bounded.launch().grid,
            block: bounded.launch().block,
            elements: bounded.elements(),
            bounds: if is_proven { "proven" } else { "checked" },
            device: receipt.device.id.clone(),
            software: receipt.device.software,
            recognized: recorded.map(|recorded| Recognized::of(recorded.recognized())),
            outputs,
            discarded,
            receipt,
        }
    }

    /// The table.
    pub fn text(&self) -> String {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let of = |sizes: [u32; 3]| sizes.map(|size| size.to_string()).join(" x ");
        let elements = self.elements.map_or_else(String::new, |count| {
            format!(", {}", counted(count, "element"))
        });
        let mut rows = vec![
            row(
                "program",
                format!(
                    "{} ({})",
                    if self.program.is_empty() {
                        "without a name"
                    } else {
                        &self.program
                    },
                    self.file
                ),
            ),
            row(
                "launch",
                format!(
                    "{} blocks of {} lanes{elements}",
                    of(self.grid),
                    of(self.block)
                ),
            ),
            row("bounds", self.bounds.to_owned()),
            row("device", self.receipt.device.to_string()),
        ];
        rows.extend(
            self.recognized
                .iter()
                .map(|recognized| row("recognised", recognized.row())),
        );
        rows.extend(
            self.receipt
                .code
                .iter()
                .map(|code| row("kernel", format!("{} {}", code.kernel, code.hash))),
        );
        rows.extend([row("run", format!("{:.3} ms", self.receipt.latency_ms.p50))]);
        rows.extend(self.receipt.fallbacks.iter().map(|fallback| {
            row(
                "fallback",
                format!("{}: {}", fallback.what, fallback.reason),
            )
        }));
        rows.extend(self.outputs.iter().map(|saved| row("output", saved.text())));
        rows.extend(
            self.discarded
                .iter()
                .map(|discarded| row("discarded", discarded.text())),
        );
        table(&rows)
    }
}
