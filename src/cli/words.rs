use anyhow::anyhow;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches};

use super::session::Misuse;

/// The command and its own arguments, without the options that every command takes.
pub(super) fn words(command: &clap::Command, matches: &ArgMatches) -> anyhow::Result<Vec<String>> {
    let Some((name, matches)) = matches.subcommand() else { return Ok(Vec::new()) };
    let command = command.find_subcommand(name).ok_or_else(|| anyhow!("{name} is no command"))?;
    let mut words = vec![name.to_owned()];
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if matches.value_source(id) != Some(ValueSource::CommandLine) {
            continue;
        }
        let option = argument.get_long().map(|long| format!("--{long}"));
        if let (ArgAction::SetTrue, Some(option)) = (argument.get_action(), &option) {
            words.push(option.clone());
            continue;
        }
        for value in matches.get_raw(id).into_iter().flatten() {
            let value = value.to_str().ok_or_else(|| Misuse(format!("an argument of {name} is no UTF-8")))?;
            words.push(option.as_ref().map_or(value.to_owned(), |option| format!("{option}={value}")));
        }
    }
    words.extend(self::words(command, matches)?);
    Ok(words)
}
