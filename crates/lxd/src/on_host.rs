//! Commands for the host, made from inside the container.

use std::fmt;

use host::hostname;
use root::Root;

use super::command::{Command, Container, PLACEHOLDER, is_name};

/// What the container is likely called on its host: LXD and Incus give an instance's name as its hostname, and Juju names
/// both alike. Either may have been changed since; for a name that is wrong the commands say that there is no such
/// instance.
#[must_use]
pub fn likely_name(root: &Root) -> Option<String> {
    let hostname = hostname(root)?;
    let first = hostname.split('.').next().unwrap_or(&hostname);
    (first != "localhost" && is_name(first)).then(|| first.to_owned())
}

/// Commands about one container, to be run one after the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OnHost {
    /// `None` where the commands have [`PLACEHOLDER`] for it.
    likely: Option<String>,
    commands: Vec<Command>,
}

impl OnHost {
    /// `container`: what the commands are about, by its [`likely_name`] or [`PLACEHOLDER`].
    #[must_use]
    pub fn new(container: &Container<'_>, commands: Vec<Command>) -> Self {
        let likely = (container.name != PLACEHOLDER).then(|| container.name.to_owned());
        Self { likely, commands }
    }

    /// Adds the commands of `other` that are not there yet.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        for command in other.commands {
            if !self.commands.contains(&command) {
                self.commands.push(command);
            }
        }
        self
    }

    /// A short text where there is no room for all commands: what prints them on the host, and the first one.
    #[must_use]
    pub fn in_brief(&self) -> String {
        let name = self.likely.as_deref().unwrap_or(PLACEHOLDER);
        let likely = self.likely.as_ref().map_or("", |_| " (its hostname, and likely its name there)");
        let count = self.commands.len();
        let first = self.commands.first().map_or_else(String::new, |first| format!("; the first is {first}"));
        format!(
            "on the host: rocworker lxd advise --container {name}{likely} prints the {count} commands, and so does rocworker \
             doctor in here{first}"
        )
    }
}

impl fmt::Display for OnHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("on the host")?;
        if let Some(name) = &self.likely {
            write!(f, ", where this is likely called {name}")?;
        }
        let shown: Vec<String> = self.commands.iter().map(ToString::to_string).collect();
        write!(f, ": {}", shown.join(" && "))
    }
}
