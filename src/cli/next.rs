//! The commands that an answer tells a person to run next: each works as it is printed.

use std::path::Path;

use printable::quoted;

use super::options;

/// The options that name the machine and the configuration of an answer.
#[derive(Debug, Default)]
pub(crate) struct Options {
    /// `--root`, or the other machines' option.
    root: String,
    /// The one other machine, as passed to ssh.
    host: Option<String>,
    config: String,
}

impl Options {
    pub(crate) fn of(args: &options::Options) -> Self {
        let root = Some(&*args.root).filter(|root| *root != Path::new("/"));
        let option = |name: &str, path: Option<&Path>| {
            path.map_or_else(String::new, |path| format!("{name} {} ", quoted(&path.to_string_lossy())))
        };
        let (hosts, group) = (args.host.join(","), args.hosts.as_deref().unwrap_or_default());
        let machine = match (&*hosts, group) {
            ("", "") => option("--root", root),
            ("", group) => format!("--hosts {} ", quoted(group)),
            (hosts, _) => format!("--host {} ", quoted(hosts)),
        };
        let host = <[String; 1]>::try_from(args.host.clone()).ok().map(|[host]| host);
        Self { root: machine, host, config: option("--config", args.config.as_deref()) }
    }

    #[cfg(test)]
    pub(crate) fn of_host(host: &str) -> Self {
        Self { root: format!("--host {host} "), host: Some(host.to_owned()), config: String::new() }
    }

    /// The text, with these options in each command of this program.
    pub(crate) fn on(&self, text: &str) -> String {
        const PROGRAM: &str = "rocworker ";
        let (mut completed, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once(PROGRAM) {
            let is_word =
                !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '/' | '-' | '.' | '_'));
            let word: String = after.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
            completed += before;
            let elsewhere = self.host.as_deref().filter(|_| is_word && COMMANDS.contains(&&*word));
            if let Some(host) = elsewhere.filter(|_| !takes_host(&word, after)) {
                // explain's numbers and texts are the same on every machine.
                let is_local = LOCAL.contains(&&*word);
                completed +=
                    &if is_local { PROGRAM.to_owned() } else { format!("ssh {} {PROGRAM}", quoted(host)) };
                rest = after;
                continue;
            }
            completed += PROGRAM;
            if is_word && COMMANDS.contains(&&*word) {
                completed += &format!("{}{}", self.root, self.config);
            } else if is_word && after.starts_with("--config ") {
                completed += &self.root;
            }
            rest = after;
        }
        completed + rest
    }
}

/// The commands for other machines.
pub(crate) const TAKE_HOST: [&str; 8] =
    ["detect", "metrics", "health", "doctor", "explain --journal", "status", "plan", "apply"];

/// The commands that ask no machine.
const LOCAL: [&str; 6] = ["explain", "list-errors", "demo", "completions", "man", "remote"];

/// Whether a command takes `--host`. `text`: the command line, which begins with the command.
fn takes_host(command: &str, text: &str) -> bool {
    TAKE_HOST.iter().any(|known| *known == command || known.contains(' ') && text.starts_with(known))
}

/// The commands that a person runs. clap knows them too, and a test of `visible` holds that both agree.
pub(crate) const COMMANDS: [&str; 24] = [
    "detect",
    "plan",
    "apply",
    "status",
    "undo",
    "history",
    "config",
    "cdi",
    "doctor",
    "report",
    "metrics",
    "health",
    "top",
    "topology",
    "remote",
    "explain",
    "list-errors",
    "lease",
    "lxd",
    "tags",
    "task-check",
    "demo",
    "completions",
    "man",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_get_the_options_and_other_words_do_not() {
        let options =
            Options { root: "--root /m ".to_owned(), config: "--config c ".to_owned(), ..Options::default() };
        for (text, shown) in [
            ("To revert: rocworker undo", "To revert: rocworker --root /m --config c undo"),
            (
                "rocworker plan, rocworker apply",
                "rocworker --root /m --config c plan, rocworker --root /m --config c apply",
            ),
            ("`rocworker apply`", "`rocworker --root /m --config c apply`"),
            ("after rocworker --config d apply", "after rocworker --root /m --config d apply"),
            ("rocworker manages nothing here", "rocworker manages nothing here"),
            ("rocworker.service, /usr/bin/rocworker apply", "rocworker.service, /usr/bin/rocworker apply"),
        ] {
            assert_eq!(options.on(text), shown);
        }
        assert_eq!(Options::default().on("rocworker undo"), "rocworker undo");
    }

    #[test]
    fn a_command_for_another_machine_works_as_it_is_printed() {
        let options = Options { config: "--config c ".to_owned(), ..Options::of_host("amd@gpu7") };
        for (text, shown) in [
            ("then rocworker apply", "then rocworker --host amd@gpu7 --config c apply"),
            ("rocworker explain --journal", "rocworker --host amd@gpu7 --config c explain --journal"),
            ("see rocworker explain 7", "see rocworker explain 7"),
            ("`rocworker lease list`", "`ssh amd@gpu7 rocworker lease list`"),
            ("rocworker manages nothing there", "rocworker manages nothing there"),
        ] {
            assert_eq!(options.on(text), shown);
        }
    }
}
