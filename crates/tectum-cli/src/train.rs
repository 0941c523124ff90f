//! `tectum train`: models from recordings.

mod plant;
mod rig;
mod twin;

use clap::{Args, Subcommand};
use tectum::Result;

/// Makes models from recordings.
#[derive(Args)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct TrainArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Plant(plant::PlantArgs),
    Rig(rig::RigArgs),
    Twin(twin::TwinArgs),
}

/// Runs the command.
///
/// # Errors
/// A recording that is invalid or has too little information; what the device and the file system
/// report.
pub fn train(args: &TrainArgs) -> Result<()> {
    match &args.what {
        What::Plant(args) => plant::train_plant(args),
        What::Rig(args) => rig::train_rig(args),
        What::Twin(args) => twin::train_twin(args),
    }
}
