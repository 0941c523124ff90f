//! Receipts on the command line: every command that runs something prints and writes where it ran.

use std::path::PathBuf;

use clap::Args;
use tectum::{Error, InputFile, Receipt, Result, file};

use crate::count::counted;
use crate::file_ending::FileEnding;
use crate::table::bytes;

/// Where the receipt goes.
#[derive(Args)]
pub struct ReceiptArgs {
    /// Writes the receipt into this file.
    ///
    /// A receipt names where and by which code the results were computed;
    /// crates/tectum/receipt.schema.json describes it.
    #[arg(long, value_name = "FILE.json", value_parser = FileEnding(&["json"]))]
    receipt: Option<PathBuf>,
}

impl ReceiptArgs {
    /// `--receipt`, if it was given.
    pub fn given(&self) -> Option<&'static str> {
        self.receipt.as_ref().map(|_| "--receipt")
    }

    /// The hashes of files that will be read, if a receipt is shown: in JSON, or in a file.
    ///
    /// # Errors
    /// What `files` reports; `Io` naming a file.
    pub fn inputs(
        &self,
        json: bool,
        files: impl FnOnce() -> Result<Vec<PathBuf>>,
    ) -> Result<Vec<InputFile>> {
        if json || self.receipt.is_some() {
            files()?.iter().map(|file| InputFile::of(file)).collect()
        } else {
            Ok(Vec::new())
        }
    }

    /// Writes a receipt, if a file was named.
    ///
    /// # Errors
    /// `Io` naming the file.
    pub fn save(&self, receipt: &Receipt) -> Result<()> {
        let Some(path) = &self.receipt else {
            return Ok(());
        };
        let text = serde_json::to_string_pretty(receipt)
            .map_err(|source| Error::data("receipt: cannot be encoded").with_source(source))?;
        file::write(path, (text + "\n").as_bytes())
    }
}

/// A receipt in one line: the devices, software marked, with what they did; or that nothing was
/// executed.
pub fn line(receipt: &Receipt) -> String {
    if !receipt.device.executes() {
        return format!(
            "nothing was executed: the device {} counts launches and computes nothing",
            receipt.device.id
        );
    }
    let devices: Vec<String> = std::iter::once(&receipt.device)
        .chain(&receipt.other_devices)
        .map(ToString::to_string)
        .collect();
    let totals = &receipt.totals;
    let moved = [totals.bytes_up, totals.bytes_down].map(|count| bytes(count as f64));
    let (runs, launches, code) = (receipt.runs, totals.launches, receipt.code.len());
    let [runs, launches, code] = [
        counted(runs, "run"),
        counted(launches, "launch"),
        counted(code, "code object"),
    ];
    format!(
        "on {}: {runs}, {launches} of {code}, {} up, {} down",
        devices.join(" and "),
        moved[0],
        moved[1]
    )
}
