//! How systemd starts containerd.

use std::path::PathBuf;

use crate::engines::options::Dashes;

/// A command line that starts containerd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) program: PathBuf,
    /// What `--config` says.
    pub(super) config: Option<PathBuf>,
    /// A word with a variable in it.
    pub(super) unknown: Option<String>,
}

impl Start {
    /// `None` of a unit that starts nothing.
    pub(super) fn of(words: &[String]) -> Option<Self> {
        let (program, arguments) = words.split_first()?;
        Some(Self {
            program: program.into(),
            config: config(arguments),
            unknown: arguments.iter().find(|word| word.contains('$')).cloned(),
        })
    }
}

fn config(arguments: &[String]) -> Option<PathBuf> {
    let (_, last) = Dashes::OneOrTwo.said(arguments, &["config", "c"]).pop()?;
    last.filter(|path| !path.contains('$')).map(PathBuf::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_file_is_what_the_last_option_says() {
        for (line, config, unknown) in [
            ("/usr/bin/containerd", None, None),
            ("/usr/bin/containerd --config /etc/c/x.toml", Some("/etc/c/x.toml"), None),
            ("/usr/bin/containerd -l debug -c=/etc/a.toml", Some("/etc/a.toml"), None),
            ("/usr/bin/containerd --config=/a -c /b --root /r", Some("/b"), None),
            ("/usr/bin/containerd $OPTIONS", None, Some("$OPTIONS")),
            ("/usr/bin/containerd --config ${FILE}", None, Some("${FILE}")),
        ] {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let expected = Start {
                program: "/usr/bin/containerd".into(),
                config: config.map(PathBuf::from),
                unknown: unknown.map(str::to_owned),
            };
            assert_eq!(Start::of(&words), Some(expected), "{line}");
        }
        assert_eq!(Start::of(&[]), None);
    }
}
