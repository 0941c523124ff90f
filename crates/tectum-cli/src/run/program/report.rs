//! What a run of a program says at its end.

use serde::Serialize;
use tectum::program::{Bounded, Bounds, ProgramLaunch};
use tectum::Receipt;

use super::arrays::Saved;
use crate::table::table;

/// A run with its proof.
#[derive(Serialize)]
pub struct Report {
    program: String,
    file: String,
    grid: [u32; 3],
    block: [u32; 3],
    elements: Option<u64>,
    /// `proven` where no access can fault, so that none was tested; else `checked`.
    bounds: &'static str,
    device: String,
    software: bool,
    /// None if the reference interpreter ran it.
    kernel: Option<String>,
    /// The kernel's content hash.
    hash: Option<String>,
    outputs: Vec<Saved>,
    receipt: Receipt,
}

impl Report {
    /// Collects it.
    pub fn new(file: &str, bounded: &Bounded, launch: Option<&ProgramLaunch>, receipt: Receipt, outputs: Vec<Saved>) -> Self {
        let kernel = launch.map(|launch| launch.lowered().kernel());
        Self {
            program: bounded.checked().program().name().to_owned(),
            file: file.to_owned(),
            grid: bounded.launch().grid,
            block: bounded.launch().block,
            elements: bounded.elements(),
            bounds: if launch.is_some() && bounded.bounds() == Bounds::Proven { "proven" } else { "checked" },
            device: receipt.device.id.clone(),
            software: receipt.device.software,
            kernel: kernel.map(|kernel| kernel.name().to_owned()),
            hash: kernel.map(|kernel| format!("{:016x}", kernel.hash())),
            outputs,
            receipt,
        }
    }

    /// The table.
    pub fn text(&self) -> String {
        let row = |name: &str, value: String| vec![name.to_owned(), value];
        let of = |sizes: [u32; 3]| sizes.map(|size| size.to_string()).join(" x ");
        let elements = self.elements.map_or_else(String::new, |count| format!(", {count} elements"));
        let software = if self.software { ", software" } else { "" };
        let mut rows = vec![
            row("program", format!("{} ({})", if self.program.is_empty() { "without a name" } else { &self.program }, self.file)),
            row("launch", format!("{} blocks of {} lanes{elements}", of(self.grid), of(self.block))),
            row("bounds", self.bounds.to_owned()),
            row("device", format!("{} ({}{software})", self.device, self.receipt.device.name)),
            row("kernel", self.kernel.iter().chain(&self.hash).map(String::as_str).collect::<Vec<_>>().join(" ")),
            row("run", format!("{:.3} ms", self.receipt.latency_ms.p50)),
        ];
        rows.extend(self.receipt.fallbacks.iter().map(|fallback| row("fallback", format!("{}: {}", fallback.what, fallback.reason))));
        rows.extend(self.outputs.iter().map(|saved| row("output", saved.text())));
        table(&rows)
    }
}
