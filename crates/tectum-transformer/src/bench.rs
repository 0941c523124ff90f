//! The suite of `tectum bench infer`: all-MiniLM-L6-v2 from `bench/peers/minilm.py`, and a random
//! Llama from `bench/peers/llama_model.py`.

use std::path::{Path, PathBuf};

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{CacheFormats, CodeObject, Device, DeviceKind, Result, RunStats};
use tectum_bench::bench::{Alternative, Case, OnThreads, Roofline, Suite, Workload};

use super::{Checkpoint, Decoder, Embedder, Encoder};

/// Texts and tokens of the encoder's rows.
const SHAPES: [[usize; 2]; 3] = [[1, 8], [1, 128], [8, 128]];
/// Prompt tokens of the Llama.
const PREFILL: usize = 256;
/// Cached tokens when the Llama runs one token.
const CACHED_TOKENS: usize = 1024;
/// Texts of the Llama's batch, if it is more than one.
const BATCH_TEXTS: usize = 4;
/// Layers of the Llama, columns of its keys and of its values, and weights of its products for each
/// token.
const LLAMA: [f64; 3] = [
    16.0,
    256.0,
    16.0 * (2.0 * 1024.0 * 1024.0 + 2.0 * 256.0 * 1024.0 + 3.0 * 2816.0 * 1024.0)
        + 32000.0 * 1024.0,
];

/// The suite, without rows for models that are absent.
pub fn suite() -> Suite {
    Suite {
        name: "infer",
        about: "an encoder over texts × tokens and a decoder (bench/peers/minilm.py and llama_model.py fetch and make them)",
        cases,
    }
}

/// The encoder's folder, in this or the nearest parent folder that has it.
pub fn minilm() -> Option<PathBuf> {
    found("minilm/model.safetensors")?
        .parent()
        .map(Path::to_owned)
}

/// A file of `bench/models`, in this or the nearest parent folder that has it.
fn found(file: &str) -> Option<PathBuf> {
    let here = std::env::current_dir().ok()?;
    here.ancestors()
        .map(|place| place.join("bench/models").join(file))
        .find(|path| path.exists())
}

/// Thread counts of the rows: one and two on a CPU, up to its compute units; none for other
/// devices.
fn threads(device: &Device) -> Vec<Option<usize>> {
    let info = device.info();
    if info.kind != DeviceKind::Cpu {
        return vec![None];
    }
    [1, 2]
        .into_iter()
        .filter(|count| *count <= info.compute_units.unwrap_or(1) as usize)
        .map(Some)
        .collect()
}

fn cases(device: &Device) -> Vec<Case> {
    let mut cases = Vec::new();
    for threads in threads(device) {
        if let Some(folder) = minilm() {
            let each = |weights: Option<PanelFormat>| {
                SHAPES.map(|shape| encoder(&folder, shape, weights, threads))
            };
            cases.extend([None, Some(PanelFormat::Int8)].into_iter().flat_map(each));
        }
        let files = [
            ("f16", "llama-1024/f16.gguf", None),
            ("int8", "llama-1024/q8_0.gguf", Some(PanelFormat::Int8)),
        ];
        for (name, file, weights) in files {
            let Some(file) = found(file) else { continue };
            cases.push(prefill(&file, name, weights, threads));
            cases.push(decode(
                &file,
                (name, weights),
                (1, CacheFormats::F16),
                threads,
            ));
            cases.push(decode(
                &file,
                (name, weights),
                (BATCH_TEXTS, CacheFormats::F16),
                threads,
            ));
            let coded = decode(&file, (name, weights), (1, CacheFormats::Q8), threads);
            let halves = decode(&file, (name, weights), (1, CacheFormats::F16), threads);
            cases.push(Case {
                alternatives: vec![Alternative {
                    name: "tectum, cache_f16".to_owned(),
                    prepare: halves.prepare,
                }],
                ..coded
            });
        }
    }
    cases
}

/// The roofline of a model's products: integer products if weights are int8.
fn product_roofline(weights: Option<PanelFormat>) -> Roofline {
    if weights == Some(PanelFormat::Int8) {
        Roofline::GemmI8
    } else {
        Roofline::Gemm
    }
}

fn tail(threads: Option<usize>) -> String {
    threads.map_or_else(String::new, |threads| format!(".t{threads}"))
}

/// Tokenized texts.
fn encoder(
    folder: &Path,
    [batch, time]: [usize; 2],
    weights: Option<PanelFormat>,
    threads: Option<usize>,
) -> Case {
    let (folder, name) = (
        folder.to_owned(),
        weights.map_or_else(String::new, |weights| format!(".{weights}")),
    );
    Case {
        key: format!("infer.minilm.{batch}x{time}{name}{}", tail(threads)),
        roofline: product_roofline(weights),
        threads,
        amount: encoder_flops(batch as f64, time as f64),
        prepare: Box::new(move |device| {
            let mut embedder = Embedder::new(Encoder::read(&folder)?, device, weights)?;
            on(threads, move || {
                let texts = (0..batch)
                    .map(|text| {
                        (0..time)
                            .map(|place| 1000 + token(text * time + place))
                            .collect()
                    })
                    .collect();
                embedder.embed_tokens(texts)?;
                let code = embedder.code();
                Ok(Run {
                    model: embedder,
                    again: Embedder::run_again,
                    code,
                })
            })
        }),
        alternatives: Vec::new(),
    }
}

/// Six layers of four products [T, 384]·[384, 384] and two with 1,536, and attention's two
/// products.
fn encoder_flops(batch: f64, time: f64) -> f64 {
    batch
        * 6.0
        * (2.0 * time * (4.0 * 384.0 * 384.0 + 2.0 * 384.0 * 1536.0) + 4.0 * time * time * 384.0)
}

/// The first tokens of a text, of which the last gets scores.
fn prefill(file: &Path, name: &str, weights: Option<PanelFormat>, threads: Option<usize>) -> Case {
    let (file, [layers, columns, products]) = (file.to_owned(), LLAMA);
    // The table of scores is read for one token. A query attends to half of the tokens on average.
    let (tokens, scores) = (PREFILL as f64, 32000.0 * 1024.0);
    Case {
        key: format!("infer.prefill.{PREFILL}.{name}{}", tail(threads)),
        roofline: product_roofline(weights),
        threads,
        amount: 2.0 * tokens * (products - scores)
            + 2.0 * scores
            + 2.0 * tokens * tokens * layers * 4.0 * columns,
        prepare: Box::new(move |device| {
            let mut decoder = Decoder::new(
                &Checkpoint::open(&file)?,
                device,
                PREFILL,
                CacheFormats::F16,
                weights,
            )?;
            on(threads, move || {
                decoder.feed(&(0..PREFILL).map(|at| 100 + token(at)).collect::<Vec<_>>())?;
                Ok(run_of(decoder))
            })
        }),
        alternatives: Vec::new(),
    }
}

/// One token of each text after cached ones.
fn decode(
    file: &Path,
    (name, weights): (&str, Option<PanelFormat>),
    (texts, cache): (usize, CacheFormats),
    threads: Option<usize>,
) -> Case {
    let (file, [layers, columns, products]) = (file.to_owned(), LLAMA);
    let weight = if weights.is_some() { 1.0 } else { 2.0 };
    let prefix = if texts > 1 {
        format!("{texts}x")
    } else {
        String::new()
    };
    Case {
        key: format!(
            "infer.decode.{prefix}{CACHED_TOKENS}.{name}.cache_{}{}",
            cache.name(),
            tail(threads)
        ),
        roofline: Roofline::Copy,
        threads,
        amount: weight * products
            + 2.0
                * (texts * CACHED_TOKENS) as f64
                * layers
                * columns
                * cache.bytes_per_value(columns as usize),
        prepare: Box::new(move |device| {
            let mut decoder = Decoder::new(
                &Checkpoint::open(&file)?,
                device,
                CACHED_TOKENS + 1,
                cache,
                weights,
            )?
            .with_texts(texts)?;
            let kept: Vec<u32> = (0..CACHED_TOKENS).map(|at| 100 + token(at)).collect();
            decoder.feed_each(&vec![&kept[..]; texts])?;
            on(threads, move || {
                decoder.feed_each(&vec![&[100 + token(CACHED_TOKENS)][..]; texts])?;
                Ok(run_of(decoder))
            })
        }),
        alternatives: Vec::new(),
    }
}

/// The same tokens here and in the peers.
fn token(index: usize) -> u32 {
    (index * 7919 % 20000) as u32
}

fn run_of(decoder: Decoder) -> Run<Decoder> {
    let code = decoder.code();
    Run {
        model: decoder,
        again: Decoder::run_again,
        code,
    }
}

/// A model whose last run is repeated.
struct Run<M> {
    model: M,
    again: fn(&mut M) -> Result<RunStats>,
    code: Vec<CodeObject>,
}

impl<M> Workload for Run<M> {
    fn run(&mut self) -> Result<RunStats> {
        (self.again)(&mut self.model)
    }

    fn code(&self) -> &[CodeObject] {
        &self.code
    }
}

/// A workload on a number of threads, or on the default.
fn on<M: Send + 'static>(
    threads: Option<usize>,
    make: impl FnOnce() -> Result<Run<M>> + Send,
) -> Result<Box<dyn Workload>> {
    Ok(match threads {
        Some(threads) => Box::new(OnThreads::new(threads, make)?),
        None => Box::new(make()?),
    })
}
