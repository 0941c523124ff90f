//! The `tectum` command.

mod bench;
mod check;
mod devices;
mod embed;
mod explain;
mod generate;
mod inspect;
mod network_args;
mod npy;
mod plots;
mod receipt;
mod recover;
mod run;
mod table;
mod train;
mod verify;

use std::error::Error as _;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Neural workloads in real time on GPUs and CPUs, with receipts.
#[derive(Parser)]
#[command(name = "tectum", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Run(Box<run::RunArgs>),
    Devices(devices::DevicesArgs),
    Check(check::CheckArgs),
    Verify(verify::VerifyArgs),
    Bench(bench::BenchArgs),
    Explain(explain::ExplainArgs),
    Inspect(inspect::InspectArgs),
    Embed(embed::EmbedArgs),
    Generate(generate::GenerateArgs),
    Train(train::TrainArgs),
    Recover(recover::RecoverArgs),
}

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(args) => run::run(&args),
        Command::Devices(args) => devices::devices(&args),
        Command::Check(args) => check::check(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Inspect(args) => inspect::inspect(&args),
        Command::Embed(args) => embed::embed(&args),
        Command::Generate(args) => generate::generate(&args),
        Command::Train(args) => train::train(&args),
        Command::Recover(args) => recover::recover(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

/// Prints the chain, one cause a line; the exit code is that of the kind.
fn report(error: &tectum::Error) -> ExitCode {
    eprintln!("error: {error}");
    let mut cause = error.source();
    while let Some(error) = cause {
        eprintln!("  because: {error}");
        cause = error.source();
    }
    ExitCode::from(error.kind().exit_code())
}
