//! The suite of `tectum bench encoder`: all-MiniLM-L6-v2 where `bench/peers/minilm.py` has put it.

use std::path::{Path, PathBuf};

use tectum::bench::{Case, Roofline, Suite, Workload};
use tectum::{Device, Result, RunStats};

use super::Embedder;

/// Texts and tokens of the rows.
const SHAPES: [[usize; 2]; 5] = [[1, 8], [1, 32], [1, 128], [8, 128], [1, 256]];

/// The suite; it has no rows where the model is absent.
pub fn suite() -> Suite {
    Suite { name: "encoder", about: "all-MiniLM-L6-v2 over texts × tokens (python3 bench/peers/minilm.py fetches it)", cases }
}

/// The model's folder, here or in the nearest folder above that has it.
pub fn minilm() -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    let folder = |place: &Path| place.join("bench/models/minilm");
    here.ancestors().map(folder).find(|folder| folder.join("model.safetensors").exists())
}

fn cases(_: &Device) -> Vec<Case> {
    let Some(folder) = minilm() else { return Vec::new() };
    let case = |[batch, time]: [usize; 2]| {
        let folder = folder.clone();
        Case {
            key: format!("encoder.minilm.{batch}x{time}"),
            roofline: Roofline::Gemm,
            amount: flops(batch as f64, time as f64),
            prepare: Box::new(move |device| prepare(&folder, device, batch, time)),
        }
    };
    SHAPES.into_iter().map(case).collect()
}

/// Six layers of four products [T, 384]·[384, 384] and two with 1,536, and attention's two products.
fn flops(batch: f64, time: f64) -> f64 {
    batch * 6.0 * (2.0 * time * (4.0 * 384.0 * 384.0 + 2.0 * 384.0 * 1536.0) + 4.0 * time * time * 384.0)
}

fn prepare(folder: &Path, device: &Device, batch: usize, time: usize) -> Result<Box<dyn Workload>> {
    let mut embedder = Embedder::open(folder, device)?;
    let token = |index: usize| 1000 + (index as u32 * 7919) % 20000;
    let texts = (0..batch).map(|text| (0..time).map(|place| token(text * time + place)).collect()).collect();
    embedder.embed_tokens(texts)?;
    let code = embedder.code();
    Ok(Box::new(Run { embedder, code }))
}

struct Run {
    embedder: Embedder,
    code: Vec<(String, u64)>,
}

impl Workload for Run {
    fn run(&mut self) -> Result<RunStats> {
        self.embedder.run_again()
    }

    fn code(&self) -> &[(String, u64)] {
        &self.code
    }
}
