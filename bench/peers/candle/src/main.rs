//! candle's times of the encoder's rows of `tectum bench infer`, in f32: its own BERT, over the
//! same weights.
//!
//! Speaks the protocol of `crates/tectum-bench/src/bench/peer.rs` itself; the one argument is the
//! model's folder.

use std::error::Error;
use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use candle_core::{Device, Result as TensorResult, Tensor};
use candle_nn::VarBuilder;
use candle_transformers::models::bert::{BertModel, Config, DTYPE};
use rayon::{ThreadPool, ThreadPoolBuilder};
use serde::Deserialize;
use serde_json::{json, Map, Value};

const CALL: &str = "BertModel::forward, mean, norm; without a mask; built for this machine's instructions, AVX-512 where it has it";
/// A run longer than this is timed once a round, as on the other side.
const SLOW_SECONDS: f64 = 0.1;

#[derive(Deserialize)]
#[serde(tag = "do", rename_all = "lowercase")]
enum Request {
    Hello { device: String, threads: usize, keys: Vec<String> },
    Prepare { key: String },
    Time { seconds: f64, least: usize },
}

/// What a key asks for: `infer.minilm.8x128.t2`.
struct Shape {
    batch: usize,
    time: usize,
    threads: usize,
}

fn shape(key: &str, all_threads: usize) -> Option<Shape> {
    let mut parts = key.strip_prefix("infer.minilm.")?.split('.');
    let (batch, time) = parts.next()?.split_once('x')?;
    let threads = match (parts.next(), parts.next()) {
        (None, _) => all_threads,
        (Some(tail), None) => tail.strip_prefix('t')?.parse().ok()?,
        _ => return None,
    };
    Some(Shape { batch: batch.parse().ok()?, time: time.parse().ok()?, threads })
}

/// A row with its operands.
struct Row {
    model: BertModel,
    ids: Tensor,
    types: Tensor,
    pool: ThreadPool,
}

impl Row {
    fn new(folder: &Path, shape: &Shape) -> Result<Self, Box<dyn Error>> {
        // What candle asks for in every product.
        std::env::set_var("RAYON_NUM_THREADS", shape.threads.to_string());
        let pool = ThreadPoolBuilder::new().num_threads(shape.threads).build()?;
        let config: Config = serde_json::from_slice(&std::fs::read(folder.join("config.json"))?)?;
        // SAFETY: nobody writes to the file while this runs.
        let weights = unsafe { VarBuilder::from_mmaped_safetensors(&[folder.join("model.safetensors")], DTYPE, &Device::Cpu)? };
        let model = BertModel::load(weights, &config)?;
        // The tokens that `tectum bench infer` uses.
        let ids = (0..(shape.batch * shape.time) as u32).map(|index| 1000 + index * 7919 % 20000).collect();
        let ids = Tensor::from_vec::<_, u32>(ids, (shape.batch, shape.time), &Device::Cpu)?;
        let types = ids.zeros_like()?;
        Ok(Self { model, ids, types, pool })
    }

    fn run(&self) -> TensorResult<Tensor> {
        self.pool.install(|| {
            let pooled = self.model.forward(&self.ids, &self.types, None)?.mean(1)?;
            pooled.broadcast_div(&pooled.sqr()?.sum_keepdim(1)?.sqrt()?)
        })
    }

    /// One untimed call, then enough calls and time, but one call of what is slow.
    fn times(&self, seconds: f64, least: usize) -> TensorResult<Vec<f64>> {
        self.run()?;
        let (begin, mut times) = (Instant::now(), Vec::new());
        loop {
            let start = Instant::now();
            self.run()?;
            times.push(start.elapsed().as_secs_f64());
            let all = begin.elapsed().as_secs_f64();
            if all >= SLOW_SECONDS || (all >= seconds && times.len() >= least) {
                return Ok(times);
            }
        }
    }
}

struct Peer {
    folder: std::path::PathBuf,
    threads: usize,
    row: Option<Row>,
}

impl Peer {
    fn answer(&mut self, line: &str) -> Result<Value, Box<dyn Error>> {
        match serde_json::from_str(line)? {
            Request::Hello { device, .. } if device != "cpu" => Err(format!("runs on cpu, not on {device}").into()),
            Request::Hello { threads, keys, .. } => {
                self.threads = threads;
                let rows: Map<_, _> = keys.into_iter().filter(|key| shape(key, threads).is_some()).map(|key| (key, CALL.into())).collect();
                Ok(json!({"versions": {"candle": "0.11.1"}, "threads": threads, "rows": rows}))
            }
            Request::Prepare { key } => {
                self.row = None;
                let row = Row::new(&self.folder, &shape(&key, self.threads).ok_or_else(|| format!("{key}: no row of this peer"))?)?;
                if !row.run()?.flatten_all()?.to_vec1::<f32>()?.iter().all(|value| value.is_finite()) {
                    return Err(format!("{key}: an embedding that is no number").into());
                }
                self.row = Some(row);
                Ok(json!({}))
            }
            Request::Time { seconds, least } => {
                let row = self.row.as_ref().ok_or("no row is prepared")?;
                Ok(json!({"times_s": row.times(seconds, least)?}))
            }
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1).ok_or("usage: candle-rows FOLDER")?.into();
    let mut peer = Peer { folder, threads: 1, row: None };
    for line in std::io::stdin().lock().lines() {
        let answer = peer.answer(&line?).unwrap_or_else(|error| json!({"error": error.to_string().lines().next()}));
        println!("{answer}");
        std::io::stdout().flush()?;
    }
    Ok(())
}
