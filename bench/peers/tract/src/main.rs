//! tract's times of the rows of `tectum bench policy`, in f32 on one thread.
//!
//! Speaks the protocol of `crates/tectum-bench/src/bench/peer.rs` itself; the one argument is the
//! folder of the files.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;
use serde_json::{json, Map, Value};
use tract_onnx::prelude::*;

const CALL: &str = "TypedSimplePlan::run of into_optimized, f32";
/// A run longer than this is timed once a round, as on the other side.
const SLOW_SECONDS: f64 = 0.1;

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Request {
    Hello { device: String, keys: Vec<String> },
    Prepare { key: String },
    Time { seconds: f64, least: usize },
}

/// The network of a key of one thread: `policy.resnet18.t1`.
fn network(key: &str) -> Option<&str> {
    key.strip_prefix("policy.")?.strip_suffix(".t1")?.split('.').next()
}

struct Row {
    plan: Arc<TypedSimplePlan>,
    inputs: TVec<TValue>,
}

/// The inputs that ours gets.
fn numbers(shape: &[usize], dtype: DatumType) -> TractResult<TValue> {
    let index = |index: usize| index * 7919;
    let len = shape.iter().product::<usize>();
    let tensor = match dtype {
        DatumType::F32 => Tensor::from_shape(shape, &(0..len).map(|i| (index(i) % 1000 + 1) as f32 / 1000.0).collect::<Vec<_>>())?,
        _ => Tensor::from_shape(shape, &(0..len).map(|i| (index(i) % 256) as i64).collect::<Vec<_>>())?.cast_to_dt(dtype)?.into_owned(),
    };
    Ok(tensor.into_tvalue())
}

impl Row {
    fn new(folder: &Path, name: &str) -> Result<Self, Box<dyn Error>> {
        let model = tract_onnx::onnx().model_for_path(folder.join(format!("{name}_script.onnx")))?.into_optimized()?;
        let mut inputs = tvec!();
        for outlet in model.input_outlets()? {
            let fact = model.outlet_fact(*outlet)?;
            let shape = fact.shape.as_concrete().ok_or("an input of unknown size")?;
            inputs.push(numbers(shape, fact.datum_type)?);
        }
        Ok(Self { plan: model.into_runnable()?, inputs })
    }

    /// One untimed call, then enough calls and time, but one call of what is slow.
    fn times(&self, seconds: f64, least: usize) -> TractResult<Vec<f64>> {
        self.plan.run(self.inputs.clone())?;
        let (begin, mut times) = (Instant::now(), Vec::new());
        loop {
            let start = Instant::now();
            self.plan.run(self.inputs.clone())?;
            times.push(start.elapsed().as_secs_f64());
            let all = begin.elapsed().as_secs_f64();
            if all >= SLOW_SECONDS || (all >= seconds && times.len() >= least) {
                return Ok(times);
            }
        }
    }
}

struct Peer {
    folder: PathBuf,
    row: Option<Row>,
}

impl Peer {
    fn answer(&mut self, line: &str) -> Result<Value, Box<dyn Error>> {
        match serde_json::from_str(line)? {
            Request::Hello { device, .. } if device != "cpu" => Err(format!("runs on cpu, not on {device}").into()),
            Request::Hello { keys, .. } => {
                let rows: Map<_, _> = keys.into_iter().filter(|key| network(key).is_some()).map(|key| (key, CALL.into())).collect();
                Ok(json!({"versions": {"tract": VERSION}, "threads": 1, "rows": rows}))
            }
            Request::Prepare { key } => {
                self.row = None;
                self.row = Some(Row::new(&self.folder, network(&key).ok_or_else(|| format!("{key}: no row of this peer"))?)?);
                Ok(json!({}))
            }
            Request::Time { seconds, least } => {
                let row = self.row.as_ref().ok_or("no row is prepared")?;
                Ok(json!({"times_s": row.times(seconds, least)?}))
            }
        }
    }
}

const VERSION: &str = "0.23.9";

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: tract-rows FOLDER")?.into();
    let mut peer = Peer { folder, row: None };
    for line in std::io::stdin().lock().lines() {
        let answer = peer.answer(&line?).unwrap_or_else(|error| json!({"error": error.to_string().lines().next()}));
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
