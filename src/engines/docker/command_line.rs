use std::path::PathBuf;

use root::Root;

use crate::engines::options::Dashes;
use crate::engines::unit::Unit;

/// Debian's unit takes DOCKER_OPTS from here.
const DEFAULTS: &str = "/etc/default/docker";

/// What Debian's unit names them by.
const OPTIONS: &str = "$DOCKER_OPTS";

const LIMIT: usize = 256 << 10;

/// The words with which docker.service starts dockerd.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommandLine(Vec<String>);

impl CommandLine {
    /// Of docker.service. `unread` gets what could not be read of its defaults, as a sentence.
    pub(super) fn of(root: &Root, unit: &Unit, unread: &mut Vec<String>) -> Self {
        let mut line = Self(unit.exec_start.clone());
        if let Some(at) = line.0.iter().position(|word| word == OPTIONS) {
            let defaults = match root.read_text(DEFAULTS, LIMIT) {
                Err(error) if !error.is_not_found() => {
                    unread.push(error.to_string());
                    String::new()
                }
                defaults => defaults.unwrap_or_default(),
            };
            // Where it stands: of an option that is there twice the last counts.
            line.0.splice(at..=at, options(&defaults));
        }
        line
    }

    /// The words of a command line, as a test gives them.
    #[must_use]
    pub fn new(words: &str) -> Self {
        Self(split(words))
    }

    /// The configuration file that it names.
    #[must_use]
    pub fn config(&self) -> Option<PathBuf> {
        let path = PathBuf::from(self.value("config-file")?);
        path.is_absolute().then_some(path)
    }

    /// A word of it that may name a configuration file, and only where dockerd is started can be told which.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        let variable = self.0.iter().find(|word| word.contains('$') && *word != OPTIONS).map(String::as_str);
        variable.or_else(|| self.value("config-file").filter(|file| !file.starts_with('/')))
    }

    /// Whether it has this option. dockerd does not start where an option and its file say the same thing.
    #[must_use]
    pub fn has(&self, option: &str) -> bool {
        self.0.iter().filter_map(|word| Dashes::Two.option(word)).any(|(name, _)| name == option)
    }

    /// The runtime of containers that name none, where it says one.
    #[must_use]
    pub fn default_runtime(&self) -> Option<&str> {
        self.value("default-runtime")
    }

    pub(super) fn value(&self, option: &str) -> Option<&str> {
        Dashes::Two.said(&self.0, &[option]).pop()?.1
    }
}

/// Words without the quotes around them: options of dockerd hold no blanks that would need more.
fn split(line: &str) -> Vec<String> {
    line.split_whitespace().map(|word| word.replace(['"', '\''], "")).collect()
}

/// The words of DOCKER_OPTS, the last line that sets it.
fn options(defaults: &str) -> Vec<String> {
    let set = defaults.lines().filter_map(|line| line.trim().strip_prefix("DOCKER_OPTS="));
    set.map(split).next_back().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_long_and_the_last_counts() {
        let line =
            CommandLine::new("/usr/sbin/dockerd -H fd:// --containerd=/run/containerd.sock $DOCKER_OPTS");
        assert_eq!(line.config(), None);
        assert!(line.has("containerd") && !line.has("H"));
        let line = CommandLine::new("/usr/bin/dockerd --feature cdi --config-file='/srv/d.json'");
        assert_eq!(line.config(), Some(PathBuf::from("/srv/d.json")));
        assert!(line.has("feature") && !line.has("containerd"));
        let apart = CommandLine::new("dockerd --config-file /a.json --config-file /b.json");
        assert_eq!(apart.config(), Some(PathBuf::from("/b.json")));
        assert_eq!(CommandLine::new("dockerd --config-file").config(), None);
        assert_eq!(CommandLine::new("dockerd --default-runtime amd").default_runtime(), Some("amd"));
        assert_eq!((apart.unknown(), line.unknown()), (None, None));
    }

    #[test]
    fn a_file_that_only_its_start_can_tell_is_unknown() {
        for (line, word) in [
            ("dockerd --config-file=$FILE", Some("--config-file=$FILE")),
            ("dockerd --config-file ${FILE}", Some("${FILE}")),
            ("dockerd $OPTIONS --debug", Some("$OPTIONS")),
            ("dockerd --config-file daemon.json", Some("daemon.json")),
            ("dockerd $DOCKER_OPTS --config-file=/a.json", None),
        ] {
            let line = CommandLine::new(line);
            assert_eq!(line.unknown(), word, "{line:?}");
            assert_eq!(line.config().is_some(), word.is_none(), "{line:?}");
        }
    }

    #[test]
    fn debians_defaults_are_a_variable_of_options() {
        let defaults = "# DOCKER_OPTS=\"--old\"\nDOCKER_OPTS=\"--dns 8.8.8.8 --feature=cdi\"\n";
        assert_eq!(options(defaults), ["--dns", "8.8.8.8", "--feature=cdi"]);
        assert!(options("").is_empty());
    }
}
