//! `tectum inspect`: what a file holds.

mod genome;
mod gguf;
mod model;
mod twin;

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use tectum::{Error, Result};
use tectum_spiking::genome::UnitPolicy;
use tectum_transformer::gguf_file;

/// Shows what a file holds, before anything is run: for a genome its areas, mappings and synapses, the units that were found,
/// warnings and memory; for the folder of a model its sizes, tensors and tokens; for a GGUF file its metadata and each tensor too; for a
/// twin how well it predicts a recording. The kind of a file is detected from its content.
#[derive(Args)]
pub struct InspectArgs {
    /// A genome, the folder of a model, a GGUF file, or a twin.
    #[arg(value_name = "GENOME.json|MODEL|MODEL.gguf|TWIN.safetensors")]
    file: PathBuf,
    /// A recording that a twin is held against.
    #[arg(long, value_name = "DATA.csv")]
    data: Option<PathBuf>,
    /// The units of a genome's numbers: detect, fraction or legacy.
    #[arg(long, default_value = "detect")]
    units: UnitPolicy,
    /// Refuses morphologies without a known definition.
    #[arg(long)]
    strict: bool,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read, is of no kind that can be shown, or is at fault; a standard output that cannot be written.
pub fn inspect(args: &InspectArgs) -> Result<()> {
    if args.file.extension().is_some_and(|extension| extension == "safetensors") {
        return twin::inspect_twin(args);
    }
    if args.data.is_some() {
        return Err(Error::invalid("--data: only a twin is held against a recording"));
    }
    if let Some(file) = gguf_file(&args.file)? {
        return gguf::inspect_gguf(args, &file);
    }
    if args.file.is_dir() {
        return model::inspect_model(args);
    }
    match is_json_object(&args.file)? {
        true => genome::inspect_genome(args),
        false => {
            let kinds = "genomes (JSON), twins (.safetensors), GGUF files (.gguf) and folders of models can";
            Err(Error::invalid(format!("{}: of no kind that can be shown; {kinds}", args.file.display())))
        }
    }
}

/// Whether a file begins as a JSON object does.
///
/// # Errors
/// `Io` for a file that cannot be read.
pub fn is_json_object(path: &Path) -> Result<bool> {
    /// Blanks that may come before it.
    const MAX_LEADING_BLANKS: u64 = 4096;
    let failed = |source| Error::io(path.display(), source);
    let mut start = Vec::new();
    std::fs::File::open(path).map_err(failed)?.take(MAX_LEADING_BLANKS).read_to_end(&mut start).map_err(failed)?;
    Ok(start.trim_ascii_start().first() == Some(&b'{'))
}
