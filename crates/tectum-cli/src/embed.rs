//! `tectum embed`: vectors of texts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tectum::operation::product::panel_format::PanelFormat;
use tectum::{Error, Receipt, Result, file};
use tectum_transformer::{Embedder, Embedding, Encoder, Routing, cosine, input_files};

use crate::count::counted;
use crate::file_ending::FileEnding;
use crate::input_text::{self, STANDARD_INPUT, clipped};
use crate::messages;
use crate::progress::{Bar, Unit};
use crate::rate::Rate;
use crate::receipt::{ReceiptArgs, line};
use crate::table::{print, print_json, report, table};
use crate::threads::ThreadsArgs;
use tectum::npy::{self, Header};

/// Computes one vector for each text with an encoder of the BERT family, and shows their
/// similarity.
///
/// The cosines of the vectors are shown for up to 10 texts.
#[derive(Args)]
pub struct EmbedArgs {
    /// The folder of a model: config.json, tokenizer.json, model.safetensors.
    model: PathBuf,
    /// The texts; - or none: the lines of the standard input.
    #[arg(conflicts_with = "file")]
    text: Vec<String>,
    /// Reads the texts from a file, one a line; - is the standard input.
    ///
    /// A blank line is a text too, so that vectors and lines have the same numbers; a warning
    /// counts them.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The device: auto (the one that is predicted to be fastest), cpu, cuda:N, vulkan:N, metal:N
    /// or dx12:N.
    #[arg(long, default_value = "auto")]
    device: String,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// The format of the weights of products: f32, f16, bf16 or int8 (products of integers).
    ///
    /// Without it: on the CPU the format of the file if that is f16 or bf16, else f32.
    #[arg(long, value_name = "FORMAT")]
    weights: Option<PanelFormat>,
    /// How auto chooses: measured (minimum predicted time) or fixed.
    ///
    /// fixed: a GPU for any product of more than 500 elements, 1,000 with a bias.
    #[arg(long, default_value = "measured", value_name = "HOW")]
    route: Routing,
    /// Writes the vectors as an array of f32 with a row for each text, instead of showing them.
    #[arg(long, value_name = "FILE.npy", value_parser = FileEnding(&["npy"]))]
    out: Option<PathBuf>,
    /// Prints one line of JSON, with whole vectors and the receipt.
    ///
    /// `similarity` has the cosines of up to 10 texts; of more it is null.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    receipt: ReceiptArgs,
    /// Shows the time of the launches of each kernel in the last run, the best of several.
    #[arg(long, conflicts_with = "json")]
    trace: bool,
}

/// One text's result.
#[derive(Serialize)]
struct Row<'a> {
    text: &'a str,
    tokens: &'a [u32],
    /// Tokens that were cut off at the model's maximum.
    cut_tokens: usize,
    embedding: &'a [f32],
}

/// The output of `--json`.
#[derive(Serialize)]
struct Output<'a> {
    model: String,
    embeddings: Vec<Row<'a>>,
    /// Cosines of the angles between the texts' vectors, row by row; none for more than
    /// [`MAX_COMPARED`].
    similarity: Option<Vec<Vec<f64>>>,
    /// Of the runs, without tokenization and compilation.
    rate: Rate,
    receipt: Receipt,
}

/// Number of elements of a vector that are shown without `--json`.
const MAX_SHOWN: usize = 8;
/// Maximum number of characters of a text that are shown.
const MAX_TEXT: usize = 72;
/// Maximum number of texts that are compared with each other: a page has no more columns.
const MAX_COMPARED: usize = 10;

/// Runs the command.
///
/// # Errors
/// A folder that is not a model's or is invalid; an unknown device; what the device reports.
pub fn embed(args: &EmbedArgs) -> Result<()> {
    args.threads.apply()?;
    let given = given(args)?;
    let texts: Vec<&str> = given.iter().map(String::as_str).collect();
    let encoder = Encoder::read(&args.model)?;
    let device = encoder.open_device(&args.device, args.route)?.0;
    let inputs = args
        .receipt
        .inputs(args.json, || input_files(&args.model))?;
    let bar = Bar::new(Unit::Bytes);
    let mut embedder = Embedder::load(encoder, &device, args.weights, &mut bar.watch())?;
    drop(bar);
    let waiting = Bar::waiting(format!("embedding {}", counted(texts.len(), "text")));
    let embeddings = embedder.embed(&texts)?;
    drop(waiting);
    warn(&texts, &embeddings);
    let likeness = |a: &Embedding| {
        embeddings
            .iter()
            .map(|b| cosine(&a.vector, &b.vector))
            .collect()
    };
    let similarity: Option<Vec<Vec<f64>>> =
        (texts.len() <= MAX_COMPARED).then(|| embeddings.iter().map(likeness).collect());
    let receipt = Receipt {
        inputs,
        ..embedder.session().receipt()
    };
    if let Some(path) = &args.out {
        write(path, &embeddings)?;
    }
    args.receipt.save(&receipt)?;
    let rate = Rate::new(
        embeddings.iter().map(|made| made.tokens.len()).sum(),
        embedder.run_s(),
        &receipt.device,
    );
    if args.json {
        let pairs = texts.iter().zip(&embeddings);
        let rows = pairs
            .map(|(text, made)| Row {
                text,
                tokens: &made.tokens,
                cut_tokens: made.cut_tokens,
                embedding: &made.vector,
            })
            .collect();
        return print_json(&Output {
            model: args.model.display().to_string(),
            embeddings: rows,
            similarity,
            rate,
            receipt,
        });
    }
    match &args.out {
        Some(path) => {
            let width = embeddings.first().map_or(0, |made| made.vector.len());
            report(
                &format!(
                    "{} of {width} to {}\n",
                    counted(embeddings.len(), "vector"),
                    path.display()
                ),
                false,
            )?;
        }
        None => print(&text(&texts, &embeddings, similarity.as_deref()))?,
    }
    messages::note(format_args!("{}\n{}", rate.text(), line(&receipt)));
    if args.trace {
        print(&trace(&mut embedder)?)
    } else {
        Ok(())
    }
}

/// Warns of texts that the model does not see as they were given.
fn warn(texts: &[&str], embeddings: &[Embedding]) {
    let mut blank = texts
        .iter()
        .enumerate()
        .filter(|(_, text)| text.trim().is_empty())
        .map(|(index, _)| index + 1);
    if let Some(first) = blank.next() {
        let blank = 1 + blank.count();
        let (verb, whose) = if blank == 1 {
            ("is", "its vector is")
        } else {
            ("are", "their vectors are")
        };
        let texts = counted(texts.len(), "text");
        messages::warning(format_args!(
            "{blank} of {texts} {verb} blank, the first is text {first}; {whose} that of an empty text"
        ));
    }
    for (index, made) in embeddings
        .iter()
        .enumerate()
        .filter(|(_, made)| made.cut_tokens > 0)
    {
        let (kept, all) = (made.tokens.len(), made.tokens.len() + made.cut_tokens);
        messages::warning(format_args!(
            "text {}: {all} tokens, cut to the {kept} that the model takes; the rest has no effect on its vector",
            index + 1
        ));
    }
}

/// Writes the vectors: \[texts, D\].
fn write(path: &Path, embeddings: &[Embedding]) -> Result<()> {
    let width = embeddings.first().map_or(0, |made| made.vector.len());
    let head = npy::head(&Header {
        descr: "<f4".to_owned(),
        shape: vec![embeddings.len() as u64, width as u64],
    });
    let numbers = embeddings
        .iter()
        .flat_map(|made| &made.vector)
        .flat_map(|number| number.to_le_bytes());
    file::write(path, &head.into_iter().chain(numbers).collect::<Vec<u8>>())
}

/// Number of runs of a trace, of which the best times count.
const TRACES: usize = 20;

/// One row for each kernel: launches, time, share.
fn trace(embedder: &mut Embedder) -> Result<String> {
    let mut best = embedder.trace()?;
    for _ in 1..TRACES {
        for (best, time) in best.iter_mut().zip(embedder.trace()?) {
            best.ns = best.ns.min(time.ns);
        }
    }
    let mut by_kernel: BTreeMap<&str, (usize, u64)> = BTreeMap::new();
    for time in &best {
        let row = by_kernel.entry(time.kernel.as_str()).or_default();
        *row = (row.0 + 1, row.1 + time.ns.unwrap_or(0));
    }
    let total: u64 = by_kernel.values().map(|(_, ns)| ns).sum();
    let mut rows: Vec<(&str, (usize, u64))> = by_kernel.into_iter().collect();
    rows.sort_by_key(|(_, (_, ns))| std::cmp::Reverse(*ns));
    let row = |(kernel, (launches, ns)): (&str, (usize, u64))| {
        let (time, share) = (ns as f64 / 1e3, 100.0 * ns as f64 / total.max(1) as f64);
        vec![
            kernel.to_owned(),
            launches.to_string(),
            format!("{time:.1} us"),
            format!("{share:.1} %"),
        ]
    };
    let head = ["kernel", "launches", "time", "share"]
        .map(str::to_owned)
        .to_vec();
    Ok(format!(
        "\n{}",
        table(
            &std::iter::once(head)
                .chain(rows.into_iter().map(row))
                .collect::<Vec<_>>()
        )
    ))
}

/// The texts of the command line, or the lines of a file or of the standard input.
fn given(args: &EmbedArgs) -> Result<Vec<String>> {
    let lines = match (args.text.as_slice(), &args.file) {
        (_, Some(file)) => input_text::read(file)?,
        ([], None) => input_text::piped()?.unwrap_or_default(),
        ([only], None) if only == STANDARD_INPUT => input_text::read(STANDARD_INPUT.as_ref())?,
        (texts, None) => {
            if let [only] = texts {
                input_text::note_of_file(only, "embeds its lines");
            }
            return Ok(texts.to_vec());
        }
    };
    if lines.is_empty() {
        return Err(Error::invalid(
            "embed: no text was given, neither as an argument, by --file, nor as a line of the standard input",
        ));
    }
    Ok(lines.lines().map(str::to_owned).collect())
}

fn text(texts: &[&str], embeddings: &[Embedding], similarity: Option<&[Vec<f64>]>) -> String {
    let mut text = String::new();
    for (index, (given, made)) in texts.iter().zip(embeddings).enumerate() {
        let numbers: Vec<String> = made
            .vector
            .iter()
            .take(MAX_SHOWN)
            .map(|number| format!("{number:.7}"))
            .collect();
        let rest = if made.vector.len() > MAX_SHOWN {
            ", …"
        } else {
            ""
        };
        let (given, tokens) = (
            clipped(given, MAX_TEXT),
            counted(made.tokens.len(), "token"),
        );
        text += &format!(
            "[{}] {given:?}, {tokens}\n    [{}{rest}], {} numbers\n",
            index + 1,
            numbers.join(", "),
            made.vector.len()
        );
    }
    if let Some(similarity) = similarity.filter(|rows| rows.len() > 1) {
        let head = std::iter::once("cosine".to_owned())
            .chain((1..=texts.len()).map(|number| number.to_string()))
            .collect();
        let row = |(index, row): (usize, &Vec<f64>)| {
            let cells = row.iter().map(|cosine| format!("{cosine:.6}"));
            std::iter::once((index + 1).to_string())
                .chain(cells)
                .collect()
        };
        let rows: Vec<Vec<String>> = std::iter::once(head)
            .chain(similarity.iter().enumerate().map(row))
            .collect();
        text += &format!("\n{}", table(&rows));
    }
    text
}
