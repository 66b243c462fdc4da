//! What `--help`, the manual pages and the completions show beside clap's own: commands in groups, each command's examples,
//! and no global option where it has no effect.

mod examples;

use clap::{Arg, Command};

use super::fleet::TAKE_HOST;
pub(crate) use examples::examples;

/// The commands in the order of `rocworker --help`.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Start here (nothing is changed)", &["detect", "doctor", "plan", "explain", "demo"]),
    ("Change this machine", &["apply", "status", "undo", "history", "config", "cdi", "serve"]),
    ("Watch", &["top", "health", "metrics", "topology", "labels", "partition"]),
    ("Concourse and CI", &["tags", "task-check", "lease"]),
    ("Other machines (most commands also take --host)", &["remote"]),
    ("Reference", &["report", "lxd", "list-errors", "completions", "man"]),
];

/// Global options that have no effect on a command, and on those beneath it, beside --host and --hosts.
const WITHOUT: &[(&str, &[&str])] = &[
    ("demo", &["root", "config", "output", "json"]),
    ("completions", &["root", "config", "output", "json"]),
    ("man", &["root", "config", "output", "json"]),
    ("serve", &["output", "json"]),
    ("list-errors", &["root", "config"]),
    ("task-check", &["config"]),
    ("remote", &["root"]),
];

/// The command line as a person is shown it. `command`: as its types define it.
pub(crate) fn shown(command: Command) -> Command {
    let template = template(&command);
    let globals: Vec<Arg> = command.get_arguments().filter(|it| it.is_global_set()).cloned().collect();
    command.mut_subcommands(|command| with_more(command, "", &globals)).help_template(template)
}

fn with_more(command: Command, around: &str, globals: &[Arg]) -> Command {
    let path = format!("{around}{}", command.get_name());
    let within = format!("{path} ");
    let command = command.mut_subcommands(|command| with_more(command, &within, globals));
    let hidden = globals.iter().filter(|it| is_without(&path, it.get_id().as_str()));
    let command = command.args(hidden.map(|it| it.clone().hide(true)));
    match examples(&path) {
        Some(lines) => command.after_help(format!("Examples:\n{lines}")),
        None => command,
    }
}

fn is_without(path: &str, option: &str) -> bool {
    if matches!(option, "host" | "hosts") {
        return !takes_host(path);
    }
    WITHOUT.iter().any(|(of, options)| begins_with(path, of) && options.contains(&option))
}

/// Whether the command, or one beneath it, runs for other machines.
fn takes_host(path: &str) -> bool {
    begins_with(path, "remote") || TAKE_HOST.split(", ").any(|line| begins_with(line, path))
}

fn begins_with(line: &str, words: &str) -> bool {
    line.strip_prefix(words).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

/// clap has one heading for all commands; this has one for each group.
fn template(command: &Command) -> String {
    let (bold, name) = (command.get_styles().get_header(), command.get_styles().get_literal());
    let title = |title: &str| format!("{bold}{title}:{bold:#}");
    let width = GROUPS.iter().flat_map(|(_, names)| names.iter()).map(|name| name.len()).max().unwrap_or(0);
    let line = |of: &&str| {
        let about = command.find_subcommand(of).and_then(Command::get_about);
        let about = about.map_or_else(String::new, ToString::to_string);
        format!("  {name}{of:width$}{name:#}  {about}\n")
    };
    let groups = GROUPS
        .map(|(group, names)| format!("{}\n{}\n", title(group), names.iter().map(line).collect::<String>()));
    format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}{}\n{{options}}{{after-help}}",
        groups.concat(),
        title("Global options")
    )
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, FromArgMatches as _};

    use super::*;
    use crate::cli::args::Args;
    use examples::EXAMPLES;

    /// The paths of all commands that `--help` shows.
    fn leaves(command: &Command, around: &str) -> Vec<String> {
        let visible = command.get_subcommands().filter(|it| !it.is_hide_set() && it.get_name() != "help");
        let of = visible.flat_map(|it| {
            let path = format!("{around} {}", it.get_name()).trim_start().to_owned();
            let within = leaves(it, &path);
            if within.is_empty() { vec![path] } else { within }
        });
        of.collect()
    }

    #[test]
    fn each_command_is_in_one_group_and_has_examples_that_are_command_lines() {
        let command = shown(Args::command());
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let visible = command.get_subcommands().filter(|it| !it.is_hide_set());
        let mut visible: Vec<&str> = visible.map(Command::get_name).collect();
        grouped.sort_unstable();
        visible.sort_unstable();
        assert_eq!(grouped, visible);
        let documented: Vec<&str> = EXAMPLES.iter().map(|(path, _)| *path).collect();
        for path in leaves(&command, "") {
            assert!(documented.contains(&&*path), "{path} has no example");
        }
        for (path, lines) in EXAMPLES {
            for (line, _) in *lines {
                let words = line.strip_prefix("sudo ").unwrap_or(line).split(" < ").next().unwrap();
                let matches = command.clone().try_get_matches_from(words.split(' '));
                let matches = matches.unwrap_or_else(|error| panic!("{line}: {error}"));
                let parsed = Args::from_arg_matches(&matches).unwrap();
                assert!(words.contains(path), "{line} is no example of {path}: {parsed:?}");
            }
        }
    }

    #[test]
    fn what_a_command_goes_without_is_an_option_of_an_existing_command() {
        let command = shown(Args::command());
        for (path, options) in WITHOUT {
            let of = path.split(' ').try_fold(&command, |command, name| command.find_subcommand(name));
            let of = of.unwrap_or_else(|| panic!("{path} is no command"));
            for option in *options {
                assert!(
                    of.get_arguments().any(|it| it.get_id() == option && it.is_hide_set()),
                    "{path}: {option}"
                );
            }
        }
    }
}
