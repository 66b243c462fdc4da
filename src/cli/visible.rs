//! What a person is shown of the command line: no suggestion and no completion names what only scripts use.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args as _, Command, Subcommand as _};

use super::args::Person;
use super::fleet::TAKE_HOST;
use super::help;
use super::options::Options;

/// The command line without the commands of scripts.
pub(crate) fn command() -> Command {
    let command = Command::new("rocworker")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .subcommand_required(true);
    help::shown(Person::augment_subcommands(Options::augment_args(command)))
}

/// The error as clap would make it without the commands of scripts, which suggests none of them.
pub(crate) fn only(mut error: clap::Error) -> clap::Error {
    match error.kind() {
        ErrorKind::InvalidSubcommand | ErrorKind::MissingSubcommand => {
            let about = |error: &clap::Error| error.get(ContextKind::InvalidSubcommand).cloned();
            // A mistake in the arguments of a script's command keeps clap's full error.
            match command().try_get_matches() {
                Err(other) if about(&other) == about(&error) => other,
                _ => error,
            }
        }
        ErrorKind::UnknownArgument => {
            let suggested = error.get(ContextKind::SuggestedArg);
            if matches!(suggested, Some(ContextValue::String(name)) if !is_option(&command(), name)) {
                error.remove(ContextKind::SuggestedArg);
            }
            let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
            if let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg)
                && let Some(tip) = tip(word, &usage)
            {
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
            }
            error
        }
        _ => error,
    }
}

/// What a person may mean by a word that the command does not take: an error, as in `list-errors 7`, or another machine,
/// as in `detect node01`. `usage`: clap's line of the command.
fn tip(word: &str, usage: &str) -> Option<String> {
    if usage.contains("list-errors") {
        return Some("one error is explained by 'rocworker explain CODE'".to_owned());
    }
    let takes_host = TAKE_HOST.split(", ").any(|command| usage.contains(&format!("rocworker {command} ")));
    (takes_host && is_host(word)).then(|| format!("another machine is named by an option: '--host {word}'"))
}

fn is_host(word: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'@' | b',');
    !word.starts_with('-') && !word.is_empty() && word.bytes().all(plain)
}

fn is_option(command: &Command, name: &str) -> bool {
    let mut longs = command.get_arguments().filter_map(|it| it.get_long_and_visible_aliases()).flatten();
    longs.any(|long| name.strip_prefix("--") == Some(long))
        || matches!(name, "--help" | "--version")
        || command.get_subcommands().any(|command| is_option(command, name))
}
