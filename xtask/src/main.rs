//! `cargo xtask test` checks everything; CI runs this with a sample of what takes long.

mod atomic_writes;
mod budget;
mod commands;
mod documents;
mod environment;
mod examples;
mod gpu_kit;
mod imports;
mod licenses;
mod markdown;
mod mutations;
mod packages;
mod peers;
mod performance;
mod quick;
mod ros2;
mod rotation;
mod sample;
mod sanitize;
mod sources;
mod suite;
mod tally;
mod test_programs;
mod wheel;
mod words;
/// One width and one way to wrap for all documents: the command prints two of them.
#[path = "../../crates/tectum-cli/src/reference/wrap.rs"]
mod wrap;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The subcommands.
const USAGE: &str = "test [build | run | run --sample] | quick [COMMIT] | soak | check | docs [TECTUM] | pages | gpu-kit | packages | ros2 | sample | mutate [RULE | --sample COUNT] | budget | wheel | sanitize [address | thread] | peers [NAME…] | performance";

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map(Path::to_path_buf)
        .unwrap_or_default()
}

fn main() -> ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        Some("test") => match std::env::args().nth(2).as_deref() {
            None => suite::run(&root(), suite::Part::Whole),
            Some("build") => suite::run(&root(), suite::Part::Build),
            Some("run") => {
                let is_sample = std::env::args().nth(3).as_deref() == Some("--sample");
                suite::run(&root(), suite::Part::Run { is_sample })
            }
            Some(other) => Err(format!("test {other}: build, run or nothing")),
        },
        Some("quick") => quick::run(&root(), std::env::args().nth(2).as_deref()),
        Some("soak") => suite::soak(&root()),
        Some("check") => suite::structure(&root()),
        Some("gpu-kit") => gpu_kit::build(&root()).and_then(|built| gpu_kit::run(&root(), &built)),
        Some("packages") => packages::run(&root()),
        Some("ros2") => ros2::run(&root()),
        Some("sample") => sample::run(&root()),
        Some("mutate") => mutations::run(&root(), &std::env::args().skip(2).collect::<Vec<_>>()),
        Some("sanitize") => sanitize::run(&root(), std::env::args().nth(2).as_deref()),
        Some("wheel") => wheel::release(&root()),
        Some("budget") => budget::report(&root()),
        Some("peers") => peers::run(&root(), &std::env::args().skip(2).collect::<Vec<_>>()),
        Some("performance") => performance::write(&root()),
        Some("pages") => documents::print(&root()),
        Some("docs") => match std::env::args().nth(2) {
            Some(tectum) => commands::run(&root(), Path::new(&tectum)),
            None => test_programs::build(&root())
                .and_then(|programs| commands::run(&root(), &commands::tectum(&programs)?)),
        },
        _ => Err(format!("usage: cargo xtask {USAGE}")),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
