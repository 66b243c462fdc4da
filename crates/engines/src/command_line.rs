//! The command line by which systemd starts an engine.

use std::path::PathBuf;

use root::Root;

use host::env_file::EnvFile;
use host::unit::{Unit, named, words};

/// Some hundred times what an environment file has.
const LIMIT: usize = 256 << 10;

/// The program and its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine(Vec<String>);

impl CommandLine {
    /// The command line by which systemd starts the unit. A word `$NAME` becomes the words of its value, and none where
    /// nothing sets it (systemd.service(5)). The word stays where a file that may set the variable cannot be read.
    pub(super) fn of(root: &Root, unit: &Unit) -> Self {
        Self(unit.exec_start.iter().flat_map(|word| resolved(root, unit, word)).collect())
    }

    /// Splits a text as systemd does: for tests.
    #[must_use]
    pub fn new(line: &str) -> Self {
        Self(words(line))
    }

    /// The command line of a running process, from its words.
    pub(super) fn of_words(words: Vec<String>) -> Self {
        Self(words)
    }

    pub(super) fn program(&self) -> Option<PathBuf> {
        self.0.first().map(PathBuf::from)
    }

    /// The command that a program of several is given.
    pub(super) fn subcommand(&self) -> Option<&str> {
        self.0.get(1).map(String::as_str).filter(|word| !word.starts_with('-'))
    }

    /// What the line says of these options, in its order: behind `=` or as the next word, which may be missing. One dash
    /// counts as two: so does Go's own flag package, and pflag refuses a line on which it would make a difference.
    pub fn values<'a>(&'a self, options: &[&str]) -> Vec<(&'a str, Option<&'a str>)> {
        let mut found = Vec::new();
        let mut words = self.0.iter().map(String::as_str);
        while let Some(word) = words.next() {
            let Some(option) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
            let (name, value) =
                option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
            if options.contains(&name) {
                found.push((name, value.or_else(|| words.next())));
            }
        }
        found
    }

    /// The value that counts of an option that has several names: the last.
    pub(super) fn value(&self, options: &[&str]) -> Option<&str> {
        self.values(options).pop()?.1
    }

    /// The file or folder that an option names.
    pub(super) fn path(&self, options: &[&str]) -> Option<PathBuf> {
        self.value(options).map(PathBuf::from).filter(|path| path.is_absolute())
    }

    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        !self.values(&[option]).is_empty()
    }

    /// The value of one of these options that may name a file and that only systemd can resolve.
    pub(super) fn unknown(&self, options: &[&str]) -> Option<&str> {
        let variable = self.0.iter().find(|word| word.contains('$')).map(String::as_str);
        variable.or_else(|| self.value(options).filter(|file| !file.starts_with('/')))
    }

    /// The line with these options alone: others may hold secrets.
    pub(super) fn only(&self, options: &[&str]) -> Self {
        let values = self.values(options).into_iter();
        Self(values.filter_map(|(name, value)| Some(format!("--{name}={}", value?))).collect())
    }
}

fn resolved(root: &Root, unit: &Unit, word: &str) -> Vec<String> {
    let as_it_stands = vec![word.to_owned()];
    let Some(name) = word.strip_prefix('$').filter(|name| !name.starts_with('{')) else {
        return as_it_stands;
    };
    let unit_name = unit.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let set = unit.environment.iter().rev().find(|(key, _)| key == name);
    let mut value = set.map(|(_, value)| value.clone());
    for file in &unit.environment_files {
        let Some(paths) = named(root, unit_name, &file.path) else { return as_it_stands };
        for path in paths {
            match root.read_text(path, LIMIT) {
                Ok(text) => value = EnvFile::parse(&text).get(name).map(str::to_owned).or(value),
                Err(error) if error.is_not_found() => {}
                Err(_) => return as_it_stands,
            }
        }
    }
    words(&value.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_behind_an_equals_sign_or_as_the_next_word() {
        let line = CommandLine::new("program --a=1 -a 2 --b --a --a= x -a=3 -- --a");
        for (options, expected) in [
            (
                &["a"][..],
                &[("a", Some("1")), ("a", Some("2")), ("a", Some("--a=")), ("a", Some("3")), ("a", None)][..],
            ),
            (
                &["a", "b"],
                &[
                    ("a", Some("1")),
                    ("a", Some("2")),
                    ("b", Some("--a")),
                    ("a", Some("")),
                    ("a", Some("3")),
                    ("a", None),
                ],
            ),
        ] {
            assert_eq!(line.values(options), expected, "{options:?}");
        }
        assert_eq!(line.only(&["b"]), CommandLine::new("--b=--a"));
    }

    #[test]
    fn the_last_option_counts_and_its_file_is_unknown_where_systemd_alone_can_resolve_it() {
        for (line, path, unknown) in [
            ("/usr/bin/containerd", None, None),
            ("/usr/bin/containerd --config /etc/c/x.toml", Some("/etc/c/x.toml"), None),
            ("/usr/bin/containerd -l debug -c=/etc/a.toml", Some("/etc/a.toml"), None),
            ("/usr/bin/containerd --config=/a -c /b --root /r", Some("/b"), None),
            ("/usr/bin/dockerd --feature cdi --config='/srv/d.json'", Some("/srv/d.json"), None),
            ("/usr/bin/dockerd --config", None, None),
            ("/usr/bin/containerd $OPTIONS", None, Some("$OPTIONS")),
            ("/usr/bin/containerd --config ${FILE}", None, Some("${FILE}")),
            ("dockerd --config=$FILE", None, Some("--config=$FILE")),
            ("dockerd --config daemon.json", None, Some("daemon.json")),
        ] {
            let line = CommandLine::new(line);
            let found = (line.path(&["config", "c"]), line.unknown(&["config", "c"]));
            assert_eq!(found, (path.map(PathBuf::from), unknown), "{line:?}");
        }
    }

    #[test]
    fn a_variable_of_the_unit_is_as_many_words_as_its_value_has() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let put = |text: &str| {
            root.write("/options", text.as_bytes(), root::Attributes { mode: 0o644, owner: None })
        };
        let unit = "[Service]\nExecStart=/usr/sbin/dockerd $OF_UNIT $OF_FILE $UNSET ${OF_FILE}\n\
            Environment='OF_UNIT=--b 1' OF_FILE=x\nEnvironmentFile=-/options\n";
        let line = |text: &str| CommandLine::of(&root, &Unit::parse("/x/docker.service".as_ref(), text));
        assert_eq!(line(unit), CommandLine::new("/usr/sbin/dockerd --b 1 x ${OF_FILE}"));
        put("# OF_FILE=\"--old\"\nOF_FILE=\"--dns 8.8.8.8 --feature=cdi\"\n").unwrap();
        let expected = "/usr/sbin/dockerd --b 1 --dns 8.8.8.8 --feature=cdi ${OF_FILE}";
        assert_eq!(line(unit), CommandLine::new(expected));
        let of_another_machine = line(&unit.replace("-/options", "/%H"));
        assert_eq!(of_another_machine.unknown(&[]), Some("$OF_UNIT"));
    }
}
