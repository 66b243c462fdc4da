use lxd::on_host::OnHost;
use serde::Serialize;

/// Why a check that takes a command is skipped beneath another Root than `/`.
pub const NO_COMMANDS: &str = "commands are not run with --root";
/// The remedy of what an apply mends.
pub const APPLY: &str = "rocworker apply";

/// The result of one check of doctor's, which looks at everything from PCI to a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The component: `pci`, `driver`, `kfd`, …
    pub name: &'static str,
    /// The part of the component: a PCI address, a node's path, a group. `name` and `subject` together name the check.
    pub subject: Option<String>,
    pub status: Status,
    /// What was seen, without the subject in it.
    pub evidence: String,
    /// What to do; always there when something is wrong.
    pub remedy: Option<String>,
    /// The remedy where it is commands on the host of this container, and nothing else.
    #[serde(skip)]
    pub on_host: Option<Box<OnHost>>,
}

/// What a person does about a check that fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remedy {
    text: String,
    on_host: Option<Box<OnHost>>,
}

impl From<String> for Remedy {
    fn from(text: String) -> Self {
        Self { text, on_host: None }
    }
}

impl From<&str> for Remedy {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

/// Commands to run on the host of this container, as a remedy.
impl From<OnHost> for Remedy {
    fn from(on_host: OnHost) -> Self {
        Self { text: on_host.to_string(), on_host: Some(Box::new(on_host)) }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// Containers work, and a person should look at it.
    Warning,
    /// A container that asks for a GPU does not get it.
    Failed,
    /// rocworker did not check it; the evidence says why.
    Skipped,
}

/// A check's name and subject, before its verdict is known.
#[derive(Debug, Clone)]
pub struct About {
    name: &'static str,
    subject: Option<String>,
}

impl About {
    pub fn all(name: &'static str) -> Self {
        Self { name, subject: None }
    }

    pub fn one(name: &'static str, subject: impl Into<String>) -> Self {
        Self { name, subject: Some(subject.into()) }
    }

    pub fn ok(self, evidence: impl Into<String>) -> Check {
        self.check(Status::Ok, evidence.into(), None)
    }

    pub fn skipped(self, why: impl Into<String>) -> Check {
        self.check(Status::Skipped, why.into(), None)
    }

    pub fn warning(self, evidence: impl Into<String>, remedy: impl Into<Remedy>) -> Check {
        self.check(Status::Warning, evidence.into(), Some(remedy.into()))
    }

    pub fn failed(self, evidence: impl Into<String>, remedy: impl Into<Remedy>) -> Check {
        self.check(Status::Failed, evidence.into(), Some(remedy.into()))
    }

    fn check(self, status: Status, evidence: String, remedy: Option<Remedy>) -> Check {
        let (remedy, on_host) = remedy.map(|remedy| (remedy.text, remedy.on_host)).unzip();
        let on_host = on_host.flatten();
        Check { name: self.name, subject: self.subject, status, evidence, remedy, on_host }
    }
}
