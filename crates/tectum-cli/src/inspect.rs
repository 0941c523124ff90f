//! `tectum inspect`: the contents of a file.

mod edges;
mod genome;
#[cfg(feature = "gguf")]
mod gguf;
mod model;
mod plant;
mod policy;
mod recording;
mod twin;

use std::path::PathBuf;

use clap::Args;
use tectum::{Error, Result};
use tectum_equations::LIBRARY;
use tectum_spiking::genome::{UnitPolicy, WeightLossPolicy};
#[cfg(not(feature = "gguf"))]
use tectum_transformer::Checkpoint;
use tectum_transformer::gguf_file;

#[cfg(feature = "gguf")]
use self::gguf::inspect_gguf;
use crate::file_ending::FileEnding;
use crate::workload::Workload;

/// Shows the contents of a genome, a model, a GGUF file, a twin, a plant, a policy or a recording.
///
/// For a genome: areas, mappings and synapses, the detected units, warnings and memory. For the
/// folder of a model: sizes, tensors and tokens. For a GGUF file: metadata and each tensor too. For
/// a twin: how well it predicts a recording. For a plant: what its equation file declares, and how
/// well it predicts a recording. For a policy: inputs, outputs, operators, parameters, the time of
/// a run on the CPU, and what its contract makes of a body's channels (--body). For a recording:
/// its topics with types, rates and fields. The kind is detected from the content.
#[derive(Args)]
pub struct InspectArgs {
    /// A genome, the folder of a model, a GGUF file, a twin, an equation file, a policy, or a
    /// recording.
    #[arg(
        value_name = "GENOME.json|MODEL|MODEL.gguf|TWIN.safetensors|FILE.plant|POLICY.onnx|FILE.mcap"
    )]
    file: PathBuf,
    /// A recording that a twin or a plant is compared with.
    #[arg(long, value_name = "DATA.csv")]
    data: Option<PathBuf>,
    /// A column of a plant's recording of another name or unit; may be given several times.
    #[arg(long = "column", value_name = "NAME=HEADER[:UNIT]", requires = "data")]
    columns: Vec<String>,
    /// The units of a genome's numbers: detect, fraction or legacy.
    #[arg(long, default_value = "detect")]
    units: UnitPolicy,
    /// When synapses of a genome that learn lose weight: detect, any_firing or steady_source.
    #[arg(long, default_value = "detect")]
    weight_loss: WeightLossPolicy,
    /// The body that a policy's contract is checked against.
    #[arg(long, value_name = "NAME|FILE.plant")]
    body: Option<String>,
    /// The contract of a policy, if it is neither next to the file nor in its metadata.
    #[arg(long, value_name = "FILE.toml")]
    contract: Option<PathBuf>,
    /// The size of a named dimension of a policy's inputs, or of an axis as INPUT.AXIS=SIZE.
    ///
    /// May be given several times.
    #[arg(long = "dim", value_name = "NAME=SIZE")]
    dims: Vec<String>,
    /// Writes the synapses of a genome's network to a file, a row for each.
    ///
    /// A row has source, target, weight, psp, rule and mapping, as in a run without other options.
    /// Tables of the mappings and of the areas are written next to it, FILE.mappings.csv and
    /// FILE.areas.csv.
    #[arg(long, value_name = "FILE.npy|FILE.csv", value_parser = FileEnding(&["npy", "csv"]))]
    edges: Option<PathBuf>,
    /// The seed of the synapses that --edges writes, as of a run; 0 if not given.
    #[arg(long, requires = "edges", value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Rejects morphologies without a known definition.
    #[arg(long)]
    strict: bool,
    /// Prints one line of JSON.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read, has an unsupported kind, or is invalid; a standard output that
/// cannot be written.
pub fn inspect(args: &InspectArgs) -> Result<()> {
    let is_shipped = LIBRARY
        .iter()
        .any(|(name, _)| args.file.as_os_str() == *name);
    if !args.file.exists() && !is_shipped {
        return Err(Error::io(
            args.file.display(),
            std::io::ErrorKind::NotFound.into(),
        ));
    }
    let kind = Workload::of(&args.file)?;
    Workload::refuse_part_of_model(&args.file)?;
    if args.data.is_some() && !matches!(kind, Workload::Twin | Workload::Plant) {
        return Err(Error::invalid(
            "--data: only a twin or a plant is compared with a recording",
        ));
    }
    if !args.columns.is_empty() && kind != Workload::Plant {
        return Err(Error::invalid(
            "--column: only the recording of a plant has columns of other names",
        ));
    }
    if kind != Workload::Policy
        && (args.body.is_some() || args.contract.is_some() || !args.dims.is_empty())
    {
        return Err(Error::invalid(format!(
            "inspect {}: --body, --contract and --dim are for policies",
            args.file.display()
        )));
    }
    if kind != Workload::Genome && args.edges.is_some() {
        return Err(Error::invalid(format!(
            "inspect {}: --edges is for genomes",
            args.file.display()
        )));
    }
    if kind == Workload::Plant {
        return plant::inspect_plant(args);
    }
    if kind == Workload::Policy {
        return policy::inspect_policy(args);
    }
    if kind == Workload::Recording {
        return recording::inspect_recording(args);
    }
    match (kind, gguf_file(&args.file)?) {
        (Workload::Twin, _) => twin::inspect_twin(args),
        (_, Some(file)) => inspect_gguf(args, &file),
        (Workload::Model, None) => model::inspect_model(args),
        (Workload::Genome, None) => genome::inspect_genome(args),
        (_, None) => {
            let kinds = "genomes (JSON), twins (.safetensors), plants (.plant), policies (.onnx), GGUF files (.gguf), recordings (.mcap) and folders of models can";
            Err(Error::invalid(format!(
                "{}: of no kind that can be shown; {kinds}",
                args.file.display()
            )))
        }
    }
}

/// Reports which feature is off.
#[cfg(not(feature = "gguf"))]
fn inspect_gguf(_: &InspectArgs, file: &std::path::Path) -> Result<()> {
    Checkpoint::open(file).map(|_| ())
}
