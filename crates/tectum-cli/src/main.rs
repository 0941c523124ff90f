//! The `tectum` command.

mod area_table;
mod bench;
mod check;
mod completions;
mod count;
mod csv;
mod devices;
mod embed;
mod explain;
mod export;
mod file_ending;
mod generate;
mod init;
mod input_text;
mod inspect;
mod interrupt;
mod library;
mod messages;
mod network_args;
mod plots;
mod progress;
mod rate;
mod receipt;
mod receipt_check;
mod record;
mod recover;
mod reference;
mod replay;
mod run;
mod sample;
mod scenario;
#[cfg(feature = "link")]
mod serve;
mod table;
mod threads;
#[cfg(feature = "link")]
mod top;
mod train;
mod usage;
mod verify;
mod workload;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Neural workloads in real time on GPUs and CPUs, with receipts.
///
/// Results are printed on standard output, everything else on standard error. With --json standard
/// output is JSON alone.
#[derive(Parser)]
#[command(name = "tectum", version, arg_required_else_help = true, after_long_help = reference::exit_codes())]
struct Cli {
    #[command(flatten)]
    messages: messages::MessageArgs,
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
    Init(init::InitArgs),
    Embed(embed::EmbedArgs),
    Generate(generate::GenerateArgs),
    #[cfg(feature = "link")]
    Serve(serve::ServeArgs),
    #[cfg(feature = "link")]
    Top(top::TopArgs),
    Train(train::TrainArgs),
    Plot(plots::PlotArgs),
    Export(export::ExportArgs),
    Receipt(receipt_check::ReceiptCommand),
    Record(record::RecordArgs),
    Recover(recover::RecoverArgs),
    Replay(replay::ReplayArgs),
    Scenario(scenario::ScenarioArgs),
    Sample(sample::SampleArgs),
    Completions(completions::CompletionsArgs),
    Man(completions::ManArgs),
}

fn main() -> ExitCode {
    keep_driver_quiet();
    let Cli { messages, command } = usage::parse();
    let result = messages
        .apply()
        .and_then(|()| register())
        .and_then(|()| match command {
            Command::Run(args) => run::run(&args),
            Command::Devices(args) => devices::devices(&args),
            Command::Check(args) => check::check(&args),
            Command::Verify(args) => verify::verify(&args),
            Command::Bench(args) => bench::bench(&args),
            Command::Explain(args) => explain::explain(&args),
            Command::Inspect(args) => inspect::inspect(&args),
            Command::Init(args) => init::init(&args),
            Command::Embed(args) => embed::embed(&args),
            Command::Generate(args) => generate::generate(&args),
            #[cfg(feature = "link")]
            Command::Serve(args) => serve::serve(&args),
            #[cfg(feature = "link")]
            Command::Top(args) => top::top(&args),
            Command::Train(args) => train::train(&args),
            Command::Plot(args) => plots::plot(&args),
            Command::Export(args) => export::export(&args),
            Command::Receipt(command) => receipt_check::receipt(&command),
            Command::Record(args) => record::record(&args),
            Command::Recover(args) => recover::recover(&args),
            Command::Replay(args) => replay::replay(&args),
            Command::Scenario(args) => scenario::scenario(&args),
            Command::Sample(args) => sample::sample(&args),
            Command::Completions(args) => completions::completions(&args),
            Command::Man(args) => completions::man(&args),
        });
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => report(&error),
    }
}

/// Adds what crates above the library of scenarios know to them.
fn register() -> tectum::Result<()> {
    #[cfg(feature = "link")]
    tectum_link::register(|address| {
        messages::note(format_args!("waiting for the body to connect to {address}"));
    })?;
    Ok(())
}

/// Starts the command again with Mesa's layer of device selection switched off, where it would
/// print errors about a missing desktop.
///
/// The layer asks a Wayland compositor for a preference as soon as devices are listed, also for a
/// run on the CPU; libwayland then prints `error: XDG_RUNTIME_DIR is invalid`. The layer is
/// controlled by the environment alone, and a process cannot safely change its own.
#[cfg(target_os = "linux")]
fn keep_driver_quiet() {
    use std::os::unix::process::CommandExt as _;

    const SWITCH: &str = "NODEVICE_SELECT";
    let has_desktop = std::env::var_os("XDG_RUNTIME_DIR")
        .is_some_and(|folder| std::path::Path::new(&folder).is_absolute());
    if has_desktop || std::env::var_os(SWITCH).is_some() {
        return;
    }
    let mut arguments = std::env::args_os();
    let mut again = std::process::Command::new("/proc/self/exe");
    again
        .arg0(arguments.next().unwrap_or_else(|| "tectum".into()))
        .args(arguments)
        .env(SWITCH, "1");
    // Returns only if it fails; the command then continues with the driver's lines.
    drop(again.exec());
}

#[cfg(not(target_os = "linux"))]
fn keep_driver_quiet() {}

/// Prints the error chain, one cause per line; the exit code is that of the kind.
fn report(error: &tectum::Error) -> ExitCode {
    for (index, message) in error.messages().iter().enumerate() {
        eprintln!(
            "{}: {}",
            if index == 0 { "error" } else { "  because" },
            plain(message)
        );
    }
    ExitCode::from(error.kind().exit_code())
}

/// A message in words for users, where a reader of JSON or of text has its own.
fn plain(message: &str) -> String {
    const READERS: [(&str, &str); 4] = [
        (
            "stream did not contain valid UTF-8",
            "it is not a text in UTF-8",
        ),
        ("EOF while parsing ", "the JSON ends too early"),
        ("expected ident", "this is not JSON"),
        ("expected value", "this is not JSON"),
    ];
    let Some((at, found)) = READERS
        .iter()
        .find_map(|(raw, plain)| Some((message.find(raw)?, plain)))
    else {
        return message.to_owned();
    };
    // serde_json ends with the place.
    let place = message[at..]
        .split_once(" at ")
        .map_or_else(String::new, |(_, place)| format!(" at {place}"));
    format!("{}{found}{place}", &message[..at])
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn messages_of_readers_are_in_plain_words() {
        let of = |text: &str| {
            plain(
                &serde_json::from_str::<Vec<u32>>(text)
                    .expect_err(text)
                    .to_string(),
            )
        };
        assert_eq!(
            (of(""), of("[1,")),
            (
                "the JSON ends too early at line 1 column 0".to_owned(),
                "the JSON ends too early at line 1 column 3".to_owned()
            )
        );
        assert_eq!(of("this is no JSON"), "this is not JSON at line 1 column 2");
        assert_eq!(
            of("[\n-1]"),
            "invalid value: integer `-1`, expected u32 at line 2 column 2"
        );
        assert_eq!(
            plain("a.json: not JSON: expected value at line 1 column 1"),
            "a.json: not JSON: this is not JSON at line 1 column 1"
        );
        assert_eq!(
            plain("stream did not contain valid UTF-8"),
            "it is not a text in UTF-8"
        );
        for text in [
            "scenario.toml:3: needs a number",
            "a step at line speed",
            "program: line 1, column 1: `x` is not an instruction",
        ] {
            assert_eq!(plain(text), text);
        }
    }

    #[test]
    fn every_kind_of_error_is_among_the_exit_codes() {
        use tectum::ErrorKind::{
            Cancelled, Data, DeviceLost, Invalid, Io, Mismatch, OutOfMemory, Unsupported,
        };
        let kinds = [
            Mismatch,
            Invalid,
            Data,
            Unsupported,
            OutOfMemory,
            DeviceLost,
            Io,
            Cancelled,
        ];
        let text = reference::exit_codes();
        let listed = |code: u8| {
            text.lines()
                .any(|line| line.split_whitespace().next() == Some(&code.to_string()))
        };
        assert!(kinds.iter().all(|kind| listed(kind.exit_code())), "{text}");
        assert_eq!(
            kinds.map(tectum::ErrorKind::exit_code),
            [1, 2, 3, 4, 5, 6, 7, 130]
        );
    }

    /// `-h` shows one line for each option; details are in `--help`.
    #[test]
    fn short_help_is_a_line_each() {
        fn check(command: &clap::Command, path: &str, found: &mut Vec<String>) {
            let path = format!("{path} {}", command.get_name());
            let texts = command
                .get_arguments()
                .map(|argument| (argument.get_id().to_string(), argument.get_help()));
            for (name, help) in texts.chain([("itself".to_owned(), command.get_about())]) {
                let help = help.map(ToString::to_string).unwrap_or_default();
                if help.is_empty() || help.lines().count() > 1 || help.chars().count() > 110 {
                    found.push(format!("{path} {name}: {help}"));
                }
            }
            command
                .get_subcommands()
                .for_each(|command| check(command, &path, found));
        }
        let mut found = Vec::new();
        check(&Cli::command(), "", &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
