//! The command line, and its mistakes in plain words.

use std::error::Error;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, CommandFactory, FromArgMatches};
use tectum_control::nearest;

use crate::Cli;

/// Parses the command line; prints help, version or a mistake and ends the process otherwise.
pub fn parse() -> Cli {
    let mut command = with_negative_numbers(Cli::command());
    let parsed = command
        .try_get_matches_from_mut(std::env::args_os())
        .and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.unwrap_or_else(|error| exit(error, &mut command))
}

/// Every option may be given a negative number, so that a message names what it needs; otherwise
/// `-3` would be an unknown option.
fn with_negative_numbers(command: Command) -> Command {
    let allowed = |argument: Arg| {
        if argument.get_action().takes_values() {
            argument.allow_negative_numbers(true)
        } else {
            argument
        }
    };
    command
        .mut_args(allowed)
        .mut_subcommands(with_negative_numbers)
}

fn exit(error: clap::Error, command: &mut Command) -> ! {
    // The message of `FileEnding` says all, and is printed as other errors are.
    if matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::Io)
        && error.context().next().is_none()
    {
        eprint!("{}", error.render());
        std::process::exit(if error.kind() == ErrorKind::Io {
            tectum::ErrorKind::Io.exit_code().into()
        } else {
            2
        });
    }
    let error = without_misleading_tips(error).format(command);
    let reason = Error::source(&error).filter(|_| error.kind() == ErrorKind::ValueValidation);
    let Some((reason, plain)) = reason.and_then(|reason| Some((reason, plain_reason(reason)?)))
    else {
        error.exit()
    };
    eprint!(
        "{}",
        error
            .render()
            .to_string()
            .replacen(&format!(": {reason}"), &format!(": {plain}"), 1)
    );
    std::process::exit(2)
}

/// Removes the tip that an unknown option may be passed as a value, and names of commands that only
/// look similar to a machine.
fn without_misleading_tips(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::StyledStrs(tips)) = error.remove(ContextKind::Suggested) {
        let kept: Vec<StyledStr> = tips
            .into_iter()
            .filter(|tip| !tip.to_string().starts_with("to pass '"))
            .collect();
        if !kept.is_empty() {
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(kept));
        }
    }
    let given = error
        .get(ContextKind::InvalidSubcommand)
        .map(ToString::to_string)
        .unwrap_or_default();
    if let Some(ContextValue::Strings(names)) = error.remove(ContextKind::SuggestedSubcommand) {
        let near = nearest(&given, names.iter().map(String::as_str)).map(str::to_owned);
        near.and_then(|name| {
            error.insert(
                ContextKind::SuggestedSubcommand,
                ContextValue::Strings(vec![name]),
            )
        });
    }
    error
}

/// What a value should be, where the parser's own words do not say it.
fn plain_reason(reason: &(dyn Error + 'static)) -> Option<String> {
    if let Some(error) = reason.downcast_ref::<ParseIntError>() {
        return Some(match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => {
                "the number is too large".to_owned()
            }
            _ => "a whole number, 0 or above, is needed".to_owned(),
        });
    } else if reason.is::<ParseFloatError>() {
        return Some("a number is needed".to_owned());
    }
    // clap: `-3 is not in 1..=64`.
    let text = reason.to_string();
    let (low, high) = text.split_once(" is not in ")?.1.split_once("..")?;
    Some(match high.strip_prefix('=') {
        Some(high) => format!("a whole number from {low} to {high} is needed"),
        None => format!("a whole number, {low} or above, is needed"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        with_negative_numbers(Cli::command()).debug_assert();
    }

    #[test]
    fn a_message_of_this_crate_is_one_line() {
        let parsed = with_negative_numbers(Cli::command()).try_get_matches_from([
            "tectum",
            "run",
            "a.json",
            "--spikes",
            "s.parquet",
        ]);
        let error = parsed.expect_err("refused");
        assert!(error.kind() == ErrorKind::ValueValidation && Error::source(&error).is_none());
        let expected = "error: --spikes s.parquet: what is written is not parquet; a name that ends in .npy or .csv is needed\n";
        assert_eq!(
            (
                error.render().to_string().as_str(),
                error.context().next().is_none()
            ),
            (expected, true)
        );
    }

    #[test]
    fn reasons_say_what_is_needed() {
        let whole = "1.5".parse::<usize>().expect_err("no whole number");
        let large = "99999999999".parse::<u32>().expect_err("too large");
        let number = "x".parse::<f64>().expect_err("no number");
        let found = [&whole as &(dyn Error + 'static), &large, &number]
            .map(|error| plain_reason(error).expect("known"));
        assert_eq!(
            found,
            [
                "a whole number, 0 or above, is needed",
                "the number is too large",
                "a number is needed"
            ]
        );
        let range: Box<dyn Error> = "-3 is not in 1..=64".into();
        assert_eq!(
            plain_reason(&*range).as_deref(),
            Some("a whole number from 1 to 64 is needed")
        );
        let other: Box<dyn Error> = "cache \"q5\"; known: f32".into();
        assert_eq!(plain_reason(&*other), None);
    }
}
