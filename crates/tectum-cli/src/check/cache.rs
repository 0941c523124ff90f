//! `tectum check cache`.

use std::path::Path;

use serde::Serialize;
use tectum::{Device, Error, InputFile, Result, Session};
use tectum_transformer::{Tokens, cache_errors, input_files};

use crate::count::counted;
use crate::progress::Bar;
use crate::receipt::{ReceiptArgs, line};
use crate::table::{print, print_json, table};

/// The maximum number of tokens of a text.
const TOKENS: usize = 480;

/// A row of the table.
#[derive(Serialize)]
struct Row {
    cache: &'static str,
    tokens: usize,
    attention_error: f64,
    layers: Vec<f64>,
    block_bytes_per_value: f64,
    bytes_per_value: f64,
}

/// Shows the error of each format of keys and values of an encoder for a text.
///
/// # Errors
/// A folder that is not an encoder's or is invalid, a text or a receipt's file that is not
/// accessible; what the device reports.
pub fn check_cache(
    model: &Path,
    text: &Path,
    device: &str,
    receipt: &ReceiptArgs,
    json: bool,
) -> Result<()> {
    let most = tectum_transformer::Config::read(model)?.max_position_embeddings;
    let mut session = Session::new(&Device::open(device)?);
    [&[text.to_owned()][..], &input_files(model)?]
        .concat()
        .iter()
        .try_for_each(|file| InputFile::of(file).map(|input| session.reads(input)))?;
    let words = std::fs::read_to_string(text).map_err(|error| Error::io(text.display(), error))?;
    let mut tokens = Tokens::read(model, None)?.encode(&words)?;
    tokens.truncate(TOKENS.min(most));
    let waiting = Bar::waiting("running the encoder in each format");
    let errors = cache_errors(model, &mut session, &tokens)?;
    drop(waiting);
    let rows = errors.into_iter().map(|error| Row {
        cache: error.formats.name(),
        tokens: error.tokens,
        attention_error: error.worst(),
        block_bytes_per_value: error.block_bytes,
        bytes_per_value: error.total_bytes,
        layers: error.layers,
    });
    let rows: Vec<Row> = rows.collect();
    let done = session.receipt();
    receipt.save(&done)?;
    if json {
        return print_json(&rows);
    }
    let head = [
        "cache",
        "attention error",
        "bytes per number",
        "with padding",
    ]
    .map(str::to_owned)
    .to_vec();
    let shown = |row: &Row| -> Vec<String> {
        let bytes =
            [row.block_bytes_per_value, row.bytes_per_value].map(|bytes| format!("{bytes:.4}"));
        [row.cache.to_owned(), format!("{:.1e}", row.attention_error)]
            .into_iter()
            .chain(bytes)
            .collect()
    };
    let whole: Vec<Vec<String>> = std::iter::once(head)
        .chain(rows.iter().map(shown))
        .collect();
    print(&format!(
        "{}, worst layer\n{}\n{}\n",
        counted(tokens.len(), "token"),
        table(&whole),
        line(&done)
    ))
}
