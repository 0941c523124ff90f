//! `tectum generate`: text after a prompt.

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tectum::operation::product::panel_format::PanelFormat;
use tectum::{CacheFormats, Error, Receipt, Result};
use tectum_transformer::{
    Checkpoint, Decoder, FinishReason, GenerateOptions, Generation, Routing, SamplingParams,
    Tokens, generate_each as run, input_files,
};

use crate::count::counted;
use crate::input_text::{self, STANDARD_INPUT};
use crate::interrupt::Interrupt;
use crate::messages;
use crate::progress::{Bar, Unit};
use crate::rate::Rate;
use crate::receipt::{ReceiptArgs, line};
use crate::table::{bytes, print, print_json};
use crate::threads::ThreadsArgs;

/// Continues texts with a decoder of the GPT-2, Llama or Qwen family.
///
/// One text is streamed as it is generated, several are printed when they end; then their speed.
/// Ctrl-C ends the texts after the present token. The prompt is run as it is: no chat template is
/// applied; the beginning token is the one that tokenizer.json adds.
#[derive(Args)]
pub struct GenerateArgs {
    /// The folder of a model, or a GGUF file with tokenizer.json next to it.
    ///
    /// A folder has config.json, tokenizer.json and model.safetensors.
    model: PathBuf,
    /// The prompt; several run side by side, each in its own context; - or none: the standard
    /// input.
    #[arg(conflicts_with_all = ["ids", "file"])]
    prompts: Vec<String>,
    /// Reads one prompt from a file, all of it without the last line break; - is the standard
    /// input.
    #[arg(long, value_name = "FILE", conflicts_with = "ids")]
    file: Option<PathBuf>,
    /// The prompt as token numbers, for a model without a tokenizer.json; may be given several
    /// times.
    #[arg(long, value_name = "N,N,…")]
    ids: Vec<Ids>,
    /// The maximum number of tokens to generate.
    #[arg(long, default_value_t = 64, value_name = "N")]
    tokens: usize,
    /// Divides the scores before a token is drawn; 0 takes the highest score each time.
    #[arg(long, default_value_t = 0.0, value_name = "T")]
    temperature: f32,
    /// With --temperature: draws from the K highest scores; 0, the default, from all.
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// With --temperature: draws from the fewest tokens whose probabilities come to P; 1 by
    /// default.
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,
    /// Divides the scores of tokens that already occur in the text, with --temperature or without;
    /// 1 changes nothing.
    #[arg(long, default_value_t = 1.0, value_name = "R")]
    repetition_penalty: f32,
    /// With --temperature: the seed of the draws, 0 by default; the same seed draws the same
    /// tokens.
    ///
    /// Each text after the first uses the next seed.
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// A text to stop at, which is not shown; may be given several times.
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// How keys and values are kept: f32, f16, q8, k8v4 (keys of 8 bits, values of 4) or q4.
    #[arg(long, default_value = "f32", value_name = "FORMAT")]
    cache: CacheFormats,
    /// The format of the weights of products: f32, f16, bf16 or int8 (products of integers).
    ///
    /// Without it: on the CPU the format of the file if that is f16 or bf16, else f32.
    #[arg(long, value_name = "FORMAT")]
    weights: Option<PanelFormat>,
    /// The device: auto (the one that is predicted to be fastest), cpu, cuda:N, vulkan:N, metal:N
    /// or dx12:N.
    #[arg(long, default_value = "auto")]
    device: String,
    #[command(flatten)]
    threads: ThreadsArgs,
    /// How auto chooses: measured (minimum predicted time) or fixed.
    ///
    /// fixed: a GPU for any product of more than 500 elements, 1,000 with a bias.
    #[arg(long, default_value = "measured", value_name = "HOW")]
    route: Routing,
    #[command(flatten)]
    receipt: ReceiptArgs,
    /// Prints one line of JSON for each text, with the tokens and the receipt, instead of streaming
    /// the text.
    #[arg(long)]
    json: bool,
}

/// Numbers of tokens with commas between them.
#[derive(Clone)]
struct Ids(Vec<u32>);

impl std::str::FromStr for Ids {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> std::result::Result<Ids, Self::Err> {
        text.split(',')
            .map(|id| id.trim().parse())
            .collect::<std::result::Result<_, _>>()
            .map(Ids)
    }
}

/// The `--json` output for a text.
#[derive(Serialize)]
struct Output<'a> {
    model: String,
    /// Number of texts that ran side by side, including this one.
    texts: usize,
    prompt_ids: &'a [u32],
    /// The first comes from the scores of the prompt; each run of `decode` gives the next.
    ids: &'a [u32],
    text: Option<&'a str>,
    /// length, context, token, text or cancelled.
    end: &'static str,
    /// The token or text that ended it.
    ended_by: Option<String>,
    prefill: Rate,
    /// Of the tokens that were run one at a time: the last of `ids` is not, unless a stop token
    /// follows.
    decode: Rate,
    cache: &'static str,
    cache_bytes: usize,
    cache_bytes_per_value: BytesPerValue,
    receipt: Receipt,
}

/// Device bytes for each value of the capacity for keys and values.
#[derive(Serialize)]
struct BytesPerValue {
    /// In the rows or blocks of the format.
    blocks: f64,
    /// In the whole caches, including values that are kept in full precision in addition to codes.
    total: f64,
}

/// Runs the command.
///
/// # Errors
/// A folder that is not a decoder's or is invalid; a prompt that does not fit; settings out of
/// range; an unknown device; what the device reports; a standard output that cannot be written.
pub fn generate(args: &GenerateArgs) -> Result<()> {
    args.threads.apply()?;
    let model = Checkpoint::open(&args.model)?;
    let device = model.open_device(&args.device, args.route)?.0;
    let tokens = tokens(args)?;
    let prompts = prompts(args, tokens.as_ref())?;
    let lens: Vec<usize> = prompts.iter().map(Vec::len).collect();
    let capacity = lens
        .iter()
        .max()
        .map_or(0, |longest| longest.saturating_add(args.tokens))
        .max(1);
    let inputs = args
        .receipt
        .inputs(args.json, || input_files(&args.model))?;
    let bar = Bar::new(Unit::Bytes);
    let mut decoder = Decoder::load(
        &model,
        &device,
        capacity,
        args.cache,
        args.weights,
        &mut bar.watch(),
    )?
    .with_texts(prompts.len())?;
    bar.clear();
    let options = GenerateOptions {
        max_new_tokens: args.tokens,
        sampling: sampling(args),
        stop_sequences: args.stop.clone(),
        end: model.end_tokens()?,
    };
    // Compile before the timing starts.
    decoder.prepare(&lens)?;
    let (parts, streams) = (
        prompts.iter().map(Vec::as_slice).collect::<Vec<_>>(),
        !args.json && prompts.len() == 1,
    );
    let interrupt = Interrupt::watch()?;
    let (bar, mut shown, most) = (
        Bar::new(Unit::Steps),
        0,
        (args.tokens.saturating_mul(prompts.len())) as u64,
    );
    let made = run(
        &mut decoder,
        tokens.as_ref(),
        &parts,
        &options,
        |_, text| {
            shown += 1;
            if streams {
                show(text)?;
            } else {
                bar.show(shown, most, "tokens");
            }
            Ok(interrupt.flow())
        },
    )?;
    bar.clear();
    let receipt = Receipt {
        inputs,
        ..decoder.session().receipt()
    };
    args.receipt.save(&receipt)?;
    if args.json {
        return prompts.iter().zip(&made).try_for_each(|(prompt, made)| {
            print_json(&output(args, &decoder, &receipt, prompt, made))
        });
    }
    for (index, made) in made.iter().enumerate().filter(|_| !streams) {
        let ids = || {
            made.tokens
                .iter()
                .map(|token| format!("{token} "))
                .collect()
        };
        show(&format!(
            "[{}] {}\n",
            index + 1,
            made.text.clone().unwrap_or_else(ids)
        ))?;
    }
    if streams {
        show("\n")?;
    }
    tell(args, &decoder, &made);
    Ok(())
}

/// How tokens are chosen; notes options that have no effect.
fn sampling(args: &GenerateArgs) -> SamplingParams {
    let of_draws = [
        ("--top-k", args.top_k.is_some()),
        ("--top-p", args.top_p.is_some()),
        ("--seed", args.seed.is_some()),
    ];
    let unused: Vec<&str> = of_draws
        .into_iter()
        .filter(|(_, is_given)| *is_given && args.temperature == 0.0)
        .map(|(option, _)| option)
        .collect();
    if !unused.is_empty() {
        let verb = if unused.len() == 1 { "has" } else { "have" };
        messages::note(format_args!(
            "greedy: {} {verb} no effect without --temperature",
            unused.join(", ")
        ));
    }
    let standard = SamplingParams::default();
    SamplingParams {
        temperature: args.temperature,
        top_k: args.top_k.unwrap_or(standard.top_k),
        top_p: args.top_p.unwrap_or(standard.top_p),
        repetition_penalty: args.repetition_penalty,
        seed: args.seed.unwrap_or(standard.seed),
    }
}

/// Prints times and sizes of the texts on standard error.
fn tell(args: &GenerateArgs, decoder: &Decoder, made: &[Generation]) {
    let sum = |of: fn(&Generation) -> usize| made.iter().map(of).sum::<usize>();
    // The longest text is in every run.
    let longest = |of: fn(&Generation) -> f64| made.iter().map(of).fold(0.0, f64::max);
    let device = decoder.session().device().info();
    let prefill = Rate::new(
        sum(|made| made.prompt),
        longest(|made| made.prefill_s),
        device,
    );
    let decode = Rate::new(
        sum(|made| made.decoded),
        longest(|made| made.decode_s),
        device,
    );
    let [blocks, total] = decoder.cache_bytes_per_value();
    let receipt = decoder.session().receipt();
    let what = |one: &str| {
        if made.len() == 1 {
            one.to_owned()
        } else {
            format!("{} {one}s", made.len())
        }
    };
    messages::note(format_args!("{}: {}", what("prompt"), prefill.text()));
    let held = bytes(decoder.cache_bytes() as f64);
    let [blocks, total] = [blocks, total].map(|bytes| (bytes * 100.0).round() / 100.0);
    let per_number = format!(
        "{blocks} bytes per number as stored, {total} with padding and the newest tokens in full precision"
    );
    messages::detail(format_args!(
        "cache of keys and values: {}, {held}: {per_number}",
        args.cache
    ));
    let mut reasons: Vec<String> = made.iter().map(reason).collect();
    reasons.dedup();
    let tokens = counted(sum(|made| made.tokens.len()), "token");
    let first = if made.len() == 1 {
        "the first"
    } else {
        "the first of each"
    };
    let runs = match sum(|made| made.decoded) {
        0 => String::new(),
        decoded => format!(
            " ({first} from the scores of the prompt), {} run one at a time {}",
            counted(decoded, "token"),
            decode.time()
        ),
    };
    messages::note(format_args!(
        "{}: {tokens}{runs}, stopped {}\n{}",
        what("text"),
        reasons.join("; "),
        line(&receipt)
    ));
}

fn output<'a>(
    args: &GenerateArgs,
    decoder: &Decoder,
    receipt: &Receipt,
    prompt: &'a [u32],
    made: &'a Generation,
) -> Output<'a> {
    let (end, ended_by) = match &made.end {
        FinishReason::Length => ("length", None),
        FinishReason::Context => ("context", None),
        FinishReason::Token(token) => ("token", Some(token.to_string())),
        FinishReason::Text(text) => ("text", Some(text.clone())),
        FinishReason::Cancelled => ("cancelled", None),
    };
    let ([blocks, total], device) = (
        decoder.cache_bytes_per_value(),
        decoder.session().device().info(),
    );
    Output {
        model: args.model.display().to_string(),
        texts: decoder.texts(),
        prompt_ids: prompt,
        ids: &made.tokens,
        text: made.text.as_deref(),
        end,
        ended_by,
        prefill: Rate::new(made.prompt, made.prefill_s, device),
        decode: Rate::new(made.decoded, made.decode_s, device),
        cache: args.cache.name(),
        cache_bytes: decoder.cache_bytes(),
        cache_bytes_per_value: BytesPerValue { blocks, total },
        receipt: receipt.clone(),
    }
}

/// The prompt tokens of each text.
fn prompts(args: &GenerateArgs, tokens: Option<&Tokens>) -> Result<Vec<Vec<u32>>> {
    match tokens {
        _ if !args.ids.is_empty() => Ok(args.ids.iter().map(|ids| ids.0.clone()).collect()),
        Some(tokens) => given(args)?
            .iter()
            .map(|prompt| tokens.encode(prompt))
            .collect(),
        None => {
            let needed = "which a prompt in words needs, is missing; give the prompt's tokens as --ids N,N,…";
            Err(Error::invalid(format!(
                "{}: tokenizer.json, {needed}",
                args.model.display()
            )))
        }
    }
}

/// The prompts of the command line, or that of a file or of the standard input.
fn given(args: &GenerateArgs) -> Result<Vec<String>> {
    let prompt = match (args.prompts.as_slice(), &args.file) {
        (_, Some(file)) => input_text::read(file)?,
        ([], None) => {
            let missing = || {
                Error::invalid(
                    "generate: no prompt was given, neither as an argument, by --file or --ids, nor on the standard input",
                )
            };
            input_text::piped()?.ok_or_else(missing)?
        }
        ([only], None) if only == STANDARD_INPUT => input_text::read(STANDARD_INPUT.as_ref())?,
        (prompts, None) => {
            if let [only] = prompts {
                input_text::note_of_file(only, "continues its text");
            }
            return Ok(prompts.to_vec());
        }
    };
    let text = prompt.strip_suffix('\n').map_or(prompt.as_str(), |text| {
        text.strip_suffix('\r').unwrap_or(text)
    });
    Ok(vec![text.to_owned()])
}

/// The folder of a model's tokenizer.json: its own, or that of its only file.
pub fn tokenizer_folder(model: &Path) -> &Path {
    if model.is_dir() {
        model
    } else {
        model.parent().unwrap_or(model)
    }
}

/// The tokenizer of the folder, if it has one.
fn tokens(args: &GenerateArgs) -> Result<Option<Tokens>> {
    let folder = tokenizer_folder(&args.model);
    if folder.join("tokenizer.json").exists() {
        Tokens::read(folder, None).map(Some)
    } else {
        Ok(None)
    }
}

/// Where a text stopped, after the word `stopped`.
fn reason(made: &Generation) -> String {
    match &made.end {
        FinishReason::Length => "at --tokens".to_owned(),
        FinishReason::Context => "at the end of the context".to_owned(),
        FinishReason::Token(token) => format!("at token {token}"),
        FinishReason::Text(text) => format!("at {text:?}"),
        FinishReason::Cancelled => "by Ctrl-C".to_owned(),
    }
}

/// Writes a piece of text immediately, not when its line ends.
fn show(text: &str) -> Result<()> {
    print(text)?;
    match std::io::stdout().flush() {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(Error::io("standard output", error))
        }
        _ => Ok(()),
    }
}
