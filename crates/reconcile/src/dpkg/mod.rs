//! dpkg's own database, read as it stands: which packages are there, in which version and state. No child process: a
//! plan in which nothing is to be done starts none.

mod conffiles;
mod needed;
mod stanza;
mod version;

use root::Root;
use serde::{Deserialize, Serialize};

pub(crate) use stanza::{Stanza, all as stanzas};
pub(crate) use version::compare;

const STATUS: &str = "/var/lib/dpkg/status";
/// What dpkg has noted since it wrote `status` last: a run that was killed leaves it here (dpkg's
/// lib/dpkg/dbmodify.c). Each file holds one package's stanza whole; the higher the number, the newer.
const UPDATES: &str = "/var/lib/dpkg/updates";
/// The machine's own architecture in the first line; not there where no other was ever added (dpkg(1)).
const ARCHITECTURES: &str = "/var/lib/dpkg/arch";

/// Debian with everything in it: 90,000 packages of a kilobyte each.
const LIMIT: usize = 128 << 20;

/// How far dpkg has come with a package (dpkg(1), "Package states"). Not installed is none at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Installed,
    /// Removed, and its configuration is still there.
    ConfigFiles,
    HalfInstalled,
    Unpacked,
    HalfConfigured,
    TriggersAwaited,
    TriggersPending,
}

/// Why it cannot be told which packages are there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "this machine has no dpkg ({0}): packages are installed on Debian and Ubuntu only; install it by other means, \
         and leave it to them in the configuration (keep)"
    )]
    None(root::Error),
    #[error(transparent)]
    Root(#[from] root::Error),
    #[error("{path} tells nothing of {package} that is understood: {problem}; see what `dpkg --audit` says")]
    Stanza { path: &'static str, package: String, problem: String },
}

/// What dpkg knows, as it stood when it was read.
#[derive(Debug)]
pub struct Database {
    status: String,
    /// The newest first.
    updates: Vec<String>,
    native: Option<String>,
}

/// A package that is there, wholly or in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct There {
    pub version: String,
    pub status: Status,
    pub is_held: bool,
}

impl Database {
    /// # Errors
    /// Where there is no dpkg, or its database cannot be read.
    pub fn read(root: &Root) -> Result<Self, Error> {
        let status = root
            .read_text(STATUS, LIMIT)
            .map_err(|error| if error.is_not_found() { Error::None(error) } else { error.into() })?;
        Ok(Self { status, updates: updates(root)?, native: native(root)? })
    }

    /// A package by dpkg's name for it, `NAME` or `NAME:ARCHITECTURE`; `None`: not installed.
    ///
    /// # Errors
    /// Where what the database says of it is not understood.
    pub fn there(&self, name: &str) -> Result<Option<There>, Error> {
        let Some(stanza) = self.stanza(name) else { return Ok(None) };
        let wrong = |problem: String| Error::Stanza { path: STATUS, package: name.to_owned(), problem };
        let words: Vec<&str> = stanza.field("Status").unwrap_or_default().split_whitespace().collect();
        let [want, _, status] = words.as_slice() else {
            return Err(wrong(format!("its Status is {words:?}, not three words")));
        };
        let Some(status) = Status::parse(status).map_err(wrong)? else { return Ok(None) };
        let version = stanza.field("Version").ok_or_else(|| wrong("it has no Version".to_owned()))?;
        Ok(Some(There { version: version.to_owned(), status, is_held: *want == "hold" }))
    }

    /// What is known of a package, the newest.
    pub(crate) fn stanza(&self, name: &str) -> Option<Stanza<'_>> {
        let (name, architecture) = name.split_once(':').unwrap_or((name, ""));
        let is_meant = |stanza: &Stanza<'_>| match (stanza.field("Architecture"), architecture) {
            (None | Some("all"), "" | "all") => true,
            (Some(it), "") => self.native.as_deref().is_none_or(|native| native == it),
            (it, architecture) => it == Some(architecture),
        };
        let texts = self.updates.iter().chain([&self.status]);
        texts.flat_map(|text| stanza::of(text, name)).find(is_meant)
    }
}

impl Status {
    fn parse(word: &str) -> Result<Option<Self>, String> {
        Ok(Some(match word {
            "not-installed" => return Ok(None),
            "installed" => Self::Installed,
            "config-files" => Self::ConfigFiles,
            "half-installed" => Self::HalfInstalled,
            "unpacked" => Self::Unpacked,
            "half-configured" => Self::HalfConfigured,
            "triggers-awaited" => Self::TriggersAwaited,
            "triggers-pending" => Self::TriggersPending,
            other => return Err(format!("dpkg has no state {other:?}")),
        }))
    }

    /// As dpkg names it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::ConfigFiles => "config-files",
            Self::HalfInstalled => "half-installed",
            Self::Unpacked => "unpacked",
            Self::HalfConfigured => "half-configured",
            Self::TriggersAwaited => "triggers-awaited",
            Self::TriggersPending => "triggers-pending",
        }
    }
}

fn updates(root: &Root) -> Result<Vec<String>, Error> {
    let names = match root.list(UPDATES) {
        Ok(names) => names,
        Err(error) if error.is_not_found() => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let is_number = |name: &&str| name.bytes().all(|byte| byte.is_ascii_digit());
    let mut updates = Vec::new();
    // In byte order, which is that of their numbers: all are written with as many digits.
    for name in names.iter().rev().filter_map(|name| name.to_str()).filter(is_number) {
        match root.read_text(format!("{UPDATES}/{name}"), LIMIT) {
            Ok(text) => updates.push(text),
            // A dpkg that is at work has taken it into `status`.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(updates)
}

fn native(root: &Root) -> Result<Option<String>, Error> {
    match root.read_text(ARCHITECTURES, LIMIT) {
        Ok(text) => Ok(text.lines().next().map(str::to_owned)),
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error.into()),
    }
}
