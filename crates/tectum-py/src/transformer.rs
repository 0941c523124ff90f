//! Encoders and decoders from Hugging Face folders and GGUF files.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};

use pyo3::exceptions::{PyMemoryError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};
use tectum::operation::product::panel_format::PanelFormat;
use tectum::{CacheFormats, Error, WorkProgress};
use tectum_transformer as transformers;
use tectum_transformer::{
    Checkpoint, FinishReason, GenerateOptions, Routing, SamplingParams, Tokens, generate_each,
};

use crate::array::{integers, shaped};
use crate::device::DeviceArgument;
use crate::error::OrRaise;
use crate::exclusive::Exclusive;
use crate::interrupt::{INTERVAL, LongWork, detached, run_long};
use crate::mutex::locked;
use crate::process;
use crate::receipt::Receipt;
use crate::sequence::Sequence;
use crate::whole;

/// The format of the weights by its name.
fn weight_format(name: Option<&str>) -> PyResult<Option<PanelFormat>> {
    name.map(|name| {
        name.parse()
            .map_err(|error: Error| PyValueError::new_err(format!("weights: {error}")))
    })
    .transpose()
}

/// An encoder of the BERT family: `embed` computes one vector for each text.
///
/// `path` is a folder with config.json, tokenizer.json and model.safetensors. `weights` is "f32",
/// "f16", "bf16" or "int8"; without it, on the CPU, the format of the file if that is f16 or bf16,
/// else f32. `device` may be "auto", the one with the minimum predicted time.
///
/// Raises FileNotFoundError, DataError naming tensor and file, UnsupportedError for another family.
///
/// >>> import tectum as tt
/// >>> encoder = tt.Encoder(tt.sample("sample-encoder"))
/// >>> vectors = encoder.embed(["the cat is small", "a small dog"])
/// >>> vectors.shape, str(vectors.dtype)
/// ((2, 64), 'float32')
#[pyclass(frozen, module = "tectum")]
pub struct Encoder {
    inner: Exclusive<transformers::Embedder>,
    width: usize,
    max_tokens: usize,
}

#[pymethods]
impl Encoder {
    #[new]
    #[pyo3(signature = (path, *, device = DeviceArgument::Id("cpu".to_owned()), weights = None, progress = false))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        device: DeviceArgument<'_>,
        weights: Option<&str>,
        progress: bool,
    ) -> PyResult<Self> {
        let _call = process::enter(py)?;
        let (weights, device) = (weight_format(weights)?, device.open(py)?);
        LongWork::new(py, progress)?.run(py, move |interrupt| {
            let encoder = transformers::Encoder::read(&path).or_raise()?;
            let device = device
                .map_or_else(
                    || Ok(encoder.open_device("auto", Routing::default())?.0),
                    Ok,
                )
                .or_raise()?;
            let inner = transformers::Embedder::load(
                encoder,
                &device,
                weights,
                &mut |done: WorkProgress<'_>| interrupt.watch(done),
            )
            .or_raise()?;
            Ok(Self {
                width: inner.width(),
                max_tokens: inner.max_tokens(),
                inner: Exclusive::new(inner),
            })
        })
    }

    /// The vectors of texts: float32 of shape (texts, width). The model's default prompt precedes
    /// each text, and texts of more than `max_tokens` are cut. Ctrl-C returns at once: the texts are completed without their caller, and the next call
    /// waits for that.
    fn embed<'py>(&self, py: Python<'py>, texts: Sequence<String>) -> PyResult<Bound<'py, PyAny>> {
        let _call = process::enter(py)?;
        let Sequence(texts) = texts;
        let (encoder, count) = (self.inner.lock(py)?, texts.len());
        self.inner.expect_slow();
        let (_, made) = self.inner.run(py, encoder, move |encoder| {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            encoder.embed(&texts)
        })?;
        let vectors: Vec<f32> = made.into_iter().flat_map(|made| made.vector).collect();
        shaped(py, vectors, &[count, self.width])
    }

    /// Numbers of a vector.
    #[getter]
    fn width(&self) -> usize {
        self.width
    }

    /// Maximum tokens of a text.
    #[getter]
    fn max_tokens(&self) -> usize {
        self.max_tokens
    }

    /// Number of parameters.
    #[getter]
    fn parameters(&self, py: Python<'_>) -> PyResult<usize> {
        let _call = process::enter(py)?;
        Ok(self.inner.lock(py)?.parameters())
    }

    /// On which device and by which code the vectors were computed.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> PyResult<Receipt> {
        let _call = process::enter(py)?;
        Ok(Receipt::new(self.inner.lock(py)?.session().receipt()))
    }

    fn __repr__(&self) -> String {
        format!(
            "<tectum encoder: vectors of {} numbers, texts of up to {} tokens>",
            self.width, self.max_tokens
        )
    }
}

/// What a decoder generated for one prompt; `str()` gives the text.
#[pyclass(frozen, get_all, module = "tectum")]
pub struct Generation {
    /// The text up to a stop sequence; None for a model without a tokenizer.
    text: Option<String>,
    /// The tokens, without one that ended the text.
    tokens: Vec<u32>,
    /// "length", "context" (no room is left), "token" (one that ends texts), "stop" (a stop
    /// sequence) or "cancelled".
    finish_reason: &'static str,
    /// Tokens of the prompt.
    prompt_tokens: usize,
    /// Seconds until the first token could be chosen.
    prefill_s: f64,
    /// Seconds of the runs for all further tokens.
    decode_s: f64,
}

impl From<transformers::Generation> for Generation {
    fn from(made: transformers::Generation) -> Self {
        let finish_reason = match made.end {
            FinishReason::Length => "length",
            FinishReason::Context => "context",
            FinishReason::Token(_) => "token",
            FinishReason::Text(_) => "stop",
            FinishReason::Cancelled => "cancelled",
        };
        let transformers::Generation {
            text,
            tokens,
            prompt,
            prefill_s,
            decode_s,
            ..
        } = made;
        Self {
            text,
            tokens,
            finish_reason,
            prompt_tokens: prompt,
            prefill_s,
            decode_s,
        }
    }
}

#[pymethods]
impl Generation {
    fn __str__(&self) -> String {
        self.text
            .clone()
            .unwrap_or_else(|| format!("{:?}", self.tokens))
    }

    fn __repr__(&self) -> String {
        format!(
            "<tectum generation: {} tokens, {}, {:?}>",
            self.tokens.len(),
            self.finish_reason,
            self.text.as_deref().unwrap_or_default()
        )
    }
}

/// A decoder with its context, shared with the thread of a stream.
struct Loaded {
    /// None while the number of texts changes, and after that failed.
    decoder: Option<transformers::Decoder>,
    tokens: Arc<Option<Tokens>>,
    end: Vec<u32>,
}

impl Loaded {
    /// Makes room for a number of texts; the contexts are empty then unless `continues`.
    fn prepare(&mut self, texts: usize, continues: bool) -> tectum::Result<()> {
        let decoder = self
            .decoder
            .as_mut()
            .ok_or_else(|| Error::invalid("decoder: an earlier error lost it; open it again"))?;
        if decoder.texts() == texts {
            if !continues {
                decoder.truncate(0);
            }
            return Ok(());
        }
        if continues && !decoder.is_empty() {
            return Err(Error::invalid(format!(
                "continue_context: {texts} prompts for a context of {} texts",
                decoder.texts()
            )));
        }
        self.decoder = match self.decoder.take() {
            Some(decoder) => Some(decoder.with_texts(texts)?),
            None => None,
        };
        Ok(())
    }

    fn generate(
        &mut self,
        work: &Prompts,
        show: impl FnMut(usize, &str) -> tectum::Result<ControlFlow<()>>,
    ) -> tectum::Result<Vec<transformers::Generation>> {
        self.prepare(work.prompts.len(), work.continues)?;
        let options = GenerateOptions {
            end: if work.ignore_end {
                Vec::new()
            } else {
                self.end.clone()
            },
            ..work.options.clone()
        };
        let decoder = self
            .decoder
            .as_mut()
            .ok_or_else(|| Error::invalid("decoder: an earlier error lost it; open it again"))?;
        let prompts = work.prompts.iter().enumerate().map(|(text, prompt)| {
            match (prompt, self.tokens.as_ref()) {
                (Prompt::Tokens(TokenNumbers(tokens)), _) => Ok(tokens.clone()),
                (Prompt::Text(prompt), Some(tokens)) if decoder.len_of(text) > 0 => {
                    tokens.encode_continued(prompt)
                }
                (Prompt::Text(prompt), Some(tokens)) => tokens.encode(prompt),
                (Prompt::Text(_), None) => Err(Error::invalid(
                    "the model has no tokenizer.json: give the prompt as token numbers",
                )),
            }
        });
        let prompts = prompts.collect::<tectum::Result<Vec<_>>>()?;
        let parts: Vec<&[u32]> = prompts.iter().map(Vec::as_slice).collect();
        let tokens = self.tokens.as_ref().as_ref();
        generate_each(decoder, tokens, &parts, &options, show)
    }
}

/// A prompt as text, or as token numbers.
#[derive(Clone)]
enum Prompt {
    Text(String),
    Tokens(TokenNumbers),
}

impl FromPyObject<'_, '_> for Prompt {
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const INPUT_TYPE: pyo3::inspect::PyStaticExpr = pyo3::type_hint_union!(
        <String as FromPyObject<'_, '_>>::INPUT_TYPE,
        <Vec<u32> as FromPyObject<'_, '_>>::INPUT_TYPE
    );

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if value.is_instance_of::<PyString>() {
            value.extract().map(Self::Text)
        } else {
            value.extract().map(Self::Tokens)
        }
    }
}

impl Prompt {
    /// Whether reading it takes so long that the call moves to a thread of its own.
    fn is_long(&self) -> bool {
        match self {
            Prompt::Text(text) => text.len() > 128,
            Prompt::Tokens(TokenNumbers(tokens)) => tokens.len() > 32,
        }
    }
}

/// Numbers of tokens: a sequence or an array of integers, but no bytes, which are a text that was
/// not decoded.
#[derive(Clone)]
struct TokenNumbers(Vec<u32>);

impl FromPyObject<'_, '_> for TokenNumbers {
    type Error = PyErr;

    #[cfg(feature = "stubs")]
    const INPUT_TYPE: pyo3::inspect::PyStaticExpr = <Vec<u32> as FromPyObject<'_, '_>>::INPUT_TYPE;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if value.is_instance_of::<PyBytes>() || value.is_instance_of::<PyByteArray>() {
            return Err(PyTypeError::new_err(
                "tokens: bytes are no token numbers; decode them to a text",
            ));
        }
        // A number alone is one prompt of several, or none at all.
        if !value.hasattr("__len__")? {
            return Err(PyTypeError::new_err(
                "tokens: a sequence of token numbers is needed",
            ));
        }
        integers(&value, "tokens").map(Self)
    }
}

/// What to generate.
struct Prompts {
    prompts: Vec<Prompt>,
    options: GenerateOptions,
    ignore_end: bool,
    continues: bool,
}

/// A decoder of the GPT-2, Llama or Qwen family: `generate` continues texts.
///
/// `path` is a Hugging Face folder, or a GGUF file with tokenizer.json next to it. `context` is the
/// maximum of prompt and new tokens together. `cache` is the format of keys and values: "f32",
/// "f16", "q8", "k8v4" or "q4"; `weights` "f32", "f16", "bf16" or "int8". `device` may be "auto".
///
/// Raises FileNotFoundError, DataError naming tensor and file, UnsupportedError for another family.
///
/// >>> import tectum as tt
/// >>> decoder = tt.Decoder(tt.sample("sample-decoder"), context=64)
/// >>> made = decoder.generate("the small cat", max_new_tokens=8)
/// >>> len(made.tokens), made.finish_reason
/// (8, 'length')
/// >>> "".join(decoder.stream("the small cat", max_new_tokens=8)) == str(made)
/// True
#[pyclass(frozen, module = "tectum")]
pub struct Decoder {
    inner: Exclusive<Loaded>,
    /// Encodes and decodes without waiting for generation.
    tokens: Arc<Option<Tokens>>,
    parameters: usize,
    context: usize,
}

/// The tokenizer of a folder, or of the folder of a file; none if there is no such file.
fn tokenizer(path: &Path) -> tectum::Result<Option<Tokens>> {
    let folder = if path.is_file() {
        path.parent().unwrap_or(Path::new("."))
    } else {
        path
    };
    if folder.join("tokenizer.json").exists() {
        Tokens::read(folder, None).map(Some)
    } else {
        Ok(None)
    }
}

/// Bytes of a text, or tokens, that are encoded or decoded in well under a millisecond.
const SHORT: usize = 1024;

impl Decoder {
    fn with_tokens<T: Send + 'static>(
        &self,
        py: Python<'_>,
        is_long: bool,
        work: impl FnOnce(&Tokens) -> tectum::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let tokens = self.tokens.clone();
        let work = move || match tokens.as_ref() {
            Some(tokens) => work(tokens),
            None => Err(Error::invalid("the model has no tokenizer.json")),
        };
        if is_long {
            run_long(py, work)
        } else {
            detached(py, work)
        }
    }
}

#[pymethods]
impl Decoder {
    #[new]
    #[pyo3(signature = (path, *, context: "int" = 2048, device = DeviceArgument::Id("cpu".to_owned()), weights = None, cache = "f32", progress = false))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        #[pyo3(from_py_with = whole::context)] context: usize,
        device: DeviceArgument<'_>,
        weights: Option<&str>,
        cache: &str,
        progress: bool,
    ) -> PyResult<Self> {
        let _call = process::enter(py)?;
        let (weights, device) = (weight_format(weights)?, device.open(py)?);
        let cache: CacheFormats = cache
            .parse()
            .map_err(|error: Error| PyValueError::new_err(format!("cache: {error}")))?;
        LongWork::new(py, progress)?.run(py, move |interrupt| {
            let model = Checkpoint::open(&path).or_raise()?;
            let device = device
                .map_or_else(|| Ok(model.open_device("auto", Routing::default())?.0), Ok)
                .or_raise()?;
            let decoder = transformers::Decoder::load(
                &model,
                &device,
                context,
                cache,
                weights,
                &mut |done: WorkProgress<'_>| interrupt.watch(done),
            )
            .or_raise()?;
            let tokens = tokenizer(&path).or_raise()?;
            let (parameters, context) = (decoder.parameters(), decoder.capacity());
            let tokens = Arc::new(tokens);
            let loaded = Loaded {
                decoder: Some(decoder),
                tokens: tokens.clone(),
                end: model.end_tokens().or_raise()?,
            };
            Ok(Self {
                inner: Exclusive::new(loaded),
                tokens,
                parameters,
                context,
            })
        })
    }

    /// Continues a prompt, or a list of prompts side by side, each in its own context.
    ///
    /// A prompt is a text or a list of token numbers. With `temperature` 0 the token with the
    /// highest score is taken; else one is drawn from the `top_k` highest scores (0 for all) and
    /// from the smallest set of probability `top_p`, by `seed`; each text after the first uses the
    /// next seed. Generation ends at a token that ends texts unless `ignore_end`, and at a text of
    /// `stop`. With `continue_context` the prompt follows what was generated before, without the
    /// special tokens that the tokenizer puts around a first text.
    ///
    /// Returns a `Generation`, or a list of them for a list of prompts. Raises ValueError for a
    /// prompt that does not fit or a setting out of range; Ctrl-C ends after the present token.
    #[pyo3(signature = (prompt, *, max_new_tokens: "int" = 64, temperature = 0.0, top_k: "int" = 0, top_p = 1.0, repetition_penalty = 1.0, seed: "int" = 0, stop = Sequence(Vec::new()), ignore_end = false, continue_context = false))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn generate<'py>(
        &self,
        py: Python<'py>,
        prompt: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = whole::max_new_tokens)] max_new_tokens: usize,
        temperature: f32,
        #[pyo3(from_py_with = whole::top_k)] top_k: usize,
        top_p: f32,
        repetition_penalty: f32,
        #[pyo3(from_py_with = whole::seed)] seed: u64,
        stop: Sequence<String>,
        ignore_end: bool,
        continue_context: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let _call = process::enter(py)?;
        let sampling = SamplingParams {
            temperature,
            top_k,
            top_p,
            repetition_penalty,
            seed,
        };
        let options = GenerateOptions {
            max_new_tokens,
            sampling,
            stop_sequences: stop.0,
            end: Vec::new(),
        };
        let (prompts, is_list) = prompts(prompt)?;
        let work = Prompts {
            prompts,
            options,
            ignore_end,
            continues: continue_context,
        };
        let loaded = self.inner.lock(py)?;
        if work.prompts.len() > 1 || work.prompts.iter().any(Prompt::is_long) {
            self.inner.expect_slow();
        }
        let (_, made) =
            self.inner
                .run_watched(py, LongWork::silent(), loaded, move |loaded, interrupt| {
                    let poll = |_: usize, _: &str| Ok(interrupt.poll());
                    loaded.generate(&work, poll).or_raise()
                })?;
        let mut made: Vec<Generation> = made.into_iter().map(Generation::from).collect();
        match (is_list, made.pop()) {
            (false, Some(only)) => Ok(Bound::new(py, only)?.into_any()),
            (_, last) => Ok(made
                .into_iter()
                .chain(last)
                .collect::<Vec<_>>()
                .into_pyobject(py)?),
        }
    }

    /// Continues one prompt and yields pieces of text as they become final; settings are those of
    /// `generate`.
    ///
    /// Generation runs ahead in a thread of its own and ends when the iterator is dropped; other
    /// calls wait for it.
    #[pyo3(signature = (prompt, *, max_new_tokens: "int" = 64, temperature = 0.0, top_k: "int" = 0, top_p = 1.0, repetition_penalty = 1.0, seed: "int" = 0, stop = Sequence(Vec::new()), ignore_end = false, continue_context = false))]
    #[allow(clippy::too_many_arguments, reason = "keywords of Python")]
    fn stream(
        &self,
        py: Python<'_>,
        prompt: Prompt,
        #[pyo3(from_py_with = whole::max_new_tokens)] max_new_tokens: usize,
        temperature: f32,
        #[pyo3(from_py_with = whole::top_k)] top_k: usize,
        top_p: f32,
        repetition_penalty: f32,
        #[pyo3(from_py_with = whole::seed)] seed: u64,
        stop: Sequence<String>,
        ignore_end: bool,
        continue_context: bool,
    ) -> PyResult<TextStream> {
        let _call = process::enter(py)?;
        let sampling = SamplingParams {
            temperature,
            top_k,
            top_p,
            repetition_penalty,
            seed,
        };
        let options = GenerateOptions {
            max_new_tokens,
            sampling,
            stop_sequences: stop.0,
            end: Vec::new(),
        };
        let work = Prompts {
            prompts: vec![prompt],
            options,
            ignore_end,
            continues: continue_context,
        };
        let (sender, pieces) = channel();
        let loaded = self.inner.clone();
        let run = move || {
            let show = |_: usize, piece: &str| {
                Ok(if sender.send(Ok(piece.to_owned())).is_ok() {
                    ControlFlow::Continue(())
                } else {
                    ControlFlow::Break(())
                })
            };
            if let Err(error) = loaded
                .lock_detached()
                .and_then(|mut loaded| loaded.generate(&work, show))
            {
                // Without a receiver no one wants to know.
                let _ = sender.send(Err(error));
            }
        };
        std::thread::Builder::new()
            .name("tectum-stream".to_owned())
            .spawn(run)?;
        Ok(TextStream {
            pieces: Mutex::new(pieces),
        })
    }

    /// Token numbers of a text. Raises ValueError for a model without a tokenizer.
    fn encode(&self, py: Python<'_>, text: String) -> PyResult<Vec<u32>> {
        let _call = process::enter(py)?;
        let is_long = text.len() > SHORT;
        self.with_tokens(py, is_long, move |tokens| tokens.encode(&text))
    }

    /// The text of token numbers. Raises ValueError for a model without a tokenizer.
    fn decode(&self, py: Python<'_>, tokens: TokenNumbers) -> PyResult<String> {
        let _call = process::enter(py)?;
        let TokenNumbers(numbers) = tokens;
        let is_long = numbers.len() > SHORT;
        self.with_tokens(py, is_long, move |tokens| tokens.decode(&numbers))
    }

    /// Maximum tokens of a prompt and its continuation.
    #[getter]
    fn context(&self) -> usize {
        self.context
    }

    /// Number of parameters.
    #[getter]
    fn parameters(&self) -> usize {
        self.parameters
    }

    /// On which device and by which code the tokens were computed.
    #[getter]
    fn receipt(&self, py: Python<'_>) -> PyResult<Receipt> {
        let _call = process::enter(py)?;
        let loaded = self.inner.lock(py)?;
        let decoder = loaded.decoder.as_ref().ok_or_else(|| {
            PyValueError::new_err("decoder: an earlier error lost it; open it again")
        })?;
        Ok(Receipt::new(decoder.session().receipt()))
    }

    fn __repr__(&self) -> String {
        format!(
            "<tectum decoder: {} parameters, contexts of {} tokens>",
            self.parameters, self.context
        )
    }
}

/// The prompts, and whether they were given as a list.
fn prompts(prompt: &Bound<'_, PyAny>) -> PyResult<(Vec<Prompt>, bool)> {
    if let Ok(only) = prompt.extract::<Prompt>() {
        return Ok((vec![only], false));
    }
    match prompt.extract::<Sequence<Prompt>>() {
        Ok(Sequence(all)) if !all.is_empty() => Ok((all, true)),
        Ok(_) => Err(PyValueError::new_err("no prompt is given")),
        Err(error) if error.is_instance_of::<PyMemoryError>(prompt.py()) => Err(error),
        Err(_) => Err(PyTypeError::new_err(
            "prompt: a text, a list of token numbers, or a list of these is needed",
        )),
    }
}

/// Pieces of a text while it is generated.
#[pyclass(frozen, module = "tectum")]
pub struct TextStream {
    pieces: Mutex<Receiver<tectum::Result<String>>>,
}

#[pymethods]
impl TextStream {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<String>> {
        let _call = process::enter(py)?;
        loop {
            let piece = process::detach(py, || locked(&self.pieces).recv_timeout(INTERVAL));
            match piece {
                Ok(piece) => return piece.map(Some).or_raise(),
                Err(RecvTimeoutError::Disconnected) => return Ok(None),
                Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            }
        }
    }
}
