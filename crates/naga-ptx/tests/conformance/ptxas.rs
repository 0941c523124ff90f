//! Assembles the table's PTX for several architectures.
//!
//! The assembler is the program that `NAGA_PTX_PTXAS` names, else `ptxas` on `PATH`, else a file of
//! that name below `target/ptxas` in the current directory or a parent of it.

use std::path::{Path, PathBuf};
use std::process::Command;

use rayon::prelude::*;

use crate::case::Case;
use crate::kernel::VARIANTS;
use crate::report::{Outcome, Run};

/// Cases per process: starting the assembler takes longer than a case.
const BATCH: usize = 32;

const ARCHITECTURES: [&str; 5] = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_120"];

/// Assembles the cases, or reports why there is no assembler.
pub fn run(cases: &[&Case]) -> Result<Vec<Run>, String> {
    let (program, version) = find()?;
    let folder = std::env::temp_dir().join(format!("naga-ptx-conformance-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let numbered = cases.iter().copied().enumerate().collect::<Vec<_>>();
    let batches = numbered.par_chunks(BATCH).map(|batch| {
        Batch {
            program: &program,
            folder: &folder,
        }
        .outcomes(batch)
    });
    let outcomes = batches.flatten_iter().collect::<Vec<_>>();
    let removed =
        std::fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()));
    let assembled = outcomes
        .iter()
        .filter(|(_, outcome)| *outcome == Outcome::Passed)
        .count()
        * ARCHITECTURES.len();
    let note = format!(
        "{} architectures × {} cases: {assembled} assembled",
        ARCHITECTURES.len(),
        cases.len()
    );
    removed.map(|()| {
        vec![Run {
            runner: "ptxas",
            device: "ptxas".to_owned(),
            driver: version,
            outcomes,
            note: Some(note),
        }]
    })
}

/// The folder where a batch is assembled.
struct Batch<'a> {
    program: &'a Path,
    folder: &'a Path,
}

impl Batch<'_> {
    /// Assembles all texts of a batch together, and separately if that fails.
    fn outcomes(&self, cases: &[(usize, &Case)]) -> Vec<(String, Outcome)> {
        let texts = cases
            .iter()
            .map(|&(number, case)| self.write(number, case))
            .collect::<Vec<_>>();
        let written = texts
            .iter()
            .filter_map(|text| text.as_deref().ok())
            .collect::<Vec<_>>();
        let together = written.is_empty() || self.assemble(&written).is_ok();
        let outcomes = cases.iter().zip(&texts).map(|((_, case), text)| {
            let assembled = text.as_deref().map_err(Clone::clone).and_then(|text| {
                if together {
                    Ok(())
                } else {
                    self.assemble(&[text])
                }
            });
            let outcome = assembled.map_or_else(Outcome::Failed, |()| Outcome::Passed);
            (case.name.clone(), outcome)
        });
        outcomes.collect()
    }

    /// Writes a case's text, its entry renamed so that names are unique in a batch.
    fn write(&self, number: usize, case: &Case) -> Result<PathBuf, String> {
        // The variants alternate: the assembler processes both kinds of text without twice the
        // time.
        let kernel = VARIANTS[number % VARIANTS.len()].translate(case)?;
        let path = self.folder.join(format!("{number}.ptx"));
        let declared = format!(".entry {}(", kernel.entry);
        let text = kernel
            .ptx
            .replacen(&declared, &format!(".entry case_{number}("), 1);
        std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(path)
    }

    fn assemble(&self, texts: &[&Path]) -> Result<(), String> {
        let first = texts.first().expect("invariant: at least one text");
        ARCHITECTURES.iter().try_for_each(|architecture| {
            let mut command = Command::new(self.program);
            command
                .arg("-arch")
                .arg(architecture)
                .arg("-o")
                .arg(first.with_extension("cubin"))
                .args(texts);
            let said = command
                .output()
                .map_err(|error| format!("{}: {error}", self.program.display()))?;
            match said.status.success() {
                true => Ok(()),
                false => Err(format!(
                    "{architecture}: {}",
                    String::from_utf8_lossy(&said.stderr).trim()
                )),
            }
        })
    }
}

fn find() -> Result<(PathBuf, String), String> {
    let named = std::env::var_os("NAGA_PTX_PTXAS").map(PathBuf::from);
    let current = std::env::current_dir().unwrap_or_default();
    let below = current
        .ancestors()
        .find_map(|folder| file_below(&folder.join("target/ptxas")));
    let candidates = named
        .into_iter()
        .chain([PathBuf::from("ptxas")])
        .chain(below);
    let version = |program: &Path| {
        let said = Command::new(program)
            .arg("--version")
            .output()
            .ok()
            .filter(|said| said.status.success())?;
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        Some(
            text.lines()
                .find(|line| line.contains("release"))
                .unwrap_or_default()
                .to_owned(),
        )
    };
    let mut found =
        candidates.filter_map(|program| version(&program).map(|version| (program, version)));
    found
        .next()
        .ok_or("no ptxas: neither NAGA_PTX_PTXAS, nor on PATH, nor below target/ptxas".to_owned())
}

fn file_below(folder: &Path) -> Option<PathBuf> {
    std::fs::read_dir(folder)
        .ok()?
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .find_map(|path| match path.is_dir() {
            true => file_below(&path),
            false => (path.file_name()? == "ptxas").then_some(path),
        })
}
