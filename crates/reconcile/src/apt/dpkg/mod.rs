//! Which packages are there, in which version and state, and what they need, as dpkg-query(1) prints it.

mod needed;
mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use md5::{Digest as _, Md5};
use root::{Attributes, Identity, Root, if_there};
use serde::de::value::{Error as WordError, StrDeserializer};
use serde::{Deserialize, Serialize};

use crate::command::Programs;
use crate::digest::hexadecimal;

pub use version::compare;

const FOLDER: &str = "/var/lib/dpkg";
/// dpkg's records; each run of dpkg that changes them puts another file in its place.
pub const STATUS: &str = "/var/lib/dpkg/status";
/// dpkg's changes since it last wrote `status`, which a killed run leaves here (dpkg's lib/dpkg/dbmodify.c).
const UPDATES: &str = "/var/lib/dpkg/updates";

/// A unit separator divides the fields of a package, and a record separator ends them.
const FORMAT: &str = "--showformat=${Package}\x1f${Architecture}\x1f${Status}\x1f${Version}\x1f${Provides}\x1f\
                      ${Pre-Depends}, ${Depends}\x1f${Conffiles}\x1e";

/// Debian with everything in it: 90,000 packages of a kilobyte each.
const LIMIT: usize = 128 << 20;

/// A disk that has to wake up first; the answer takes 20 ms.
const PATIENCE: Duration = Duration::from_secs(60);

/// The most bytes that are read of a configuration file: no package's is as large.
const CONFFILE_LIMIT: usize = 64 << 20;

/// The state that dpkg records for a package (dpkg(1), "Package states"). A package that is not installed has
/// none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    Installed,
    /// Removed, and its configuration is still there.
    ConfigFiles,
    /// Also of a package that dpkg neither configures nor removes before it is put there anew (`reinstreq`).
    HalfInstalled,
    Unpacked,
    HalfConfigured,
    TriggersAwaited,
    TriggersPending,
}

/// Why rocworker does not know which packages are there.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "this machine has no dpkg ({0}): packages are installed on Debian and Ubuntu only; install it by other means, \
         and leave it to them in the configuration (keep)"
    )]
    None(root::Error),
    #[error(transparent)]
    Root(#[from] root::Error),
    #[error(
        "which packages {} lists is not known: {problem}; see that dpkg-query runs, and what dpkg --audit says",
        path.display()
    )]
    Query { path: PathBuf, problem: String },
}

/// What dpkg-query printed.
#[derive(Debug, Default)]
pub struct Database {
    /// By apt's name: with the architecture where that is not the machine's own.
    packages: BTreeMap<String, There>,
    /// The machine's own architecture: that of the package dpkg; `None` where dpkg is not a package there.
    native: Option<String>,
    /// A run of dpkg was killed, or is at work.
    has_updates: bool,
}

/// A package that is there, wholly or in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct There {
    pub version: String,
    pub status: Status,
    /// The package is to stay as it is: `apt-mark hold`.
    pub is_on_hold: bool,
    /// dpkg is to remove the package (dpkg(1), "Package selection states"), which does not show whether it is there. A
    /// killed removal leaves an installed package so, and `apt-get dselect-upgrade` would complete it.
    pub is_to_go: bool,
    // As dpkg-query prints them.
    provides: String,
    depends: String,
    conffiles: String,
}

/// The last answer on this machine, and which status file gave it: the daemon looks often, and packages change
/// rarely.
static LAST: Mutex<Option<(Identity, Arc<Database>)>> = Mutex::new(None);

impl Database {
    /// Asks this machine's dpkg-query, which changes nothing, about the packages beneath `root`. On the running machine an
    /// answer counts until dpkg writes another status file.
    ///
    /// # Errors
    /// When there is no dpkg, its files cannot be read, or dpkg-query does not understand them.
    pub fn read(root: &Root) -> Result<Arc<Self>, Error> {
        let identity = root.identity(STATUS).map_err(none)?;
        if !root.is_host() {
            return Self::of_copy(root).map(Arc::new);
        }
        let has_updates = if_there(root.list(UPDATES))?.is_some_and(|names| names.iter().any(is_number));
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, known)) = last.as_ref().filter(|(of, _)| *of == identity && !has_updates) {
            return Ok(known.clone());
        }
        // A running dpkg removes a file of changes that dpkg-query has just listed.
        let read = Self::query(root, Path::new(FOLDER)).or_else(|_| Self::query(root, Path::new(FOLDER)))?;
        let read = Arc::new(Self { has_updates, ..read });
        *last = (!has_updates).then(|| (identity, read.clone()));
        Ok(read)
    }

    /// dpkg-query would follow a link out of another Root: it gets a copy.
    fn of_copy(root: &Root) -> Result<Self, Error> {
        let status = root.read(STATUS, LIMIT)?;
        let unknown =
            |error: std::io::Error| Error::Query { path: root.shown(STATUS), problem: error.to_string() };
        let folder = tempfile::Builder::new().prefix("rocworker-dpkg-").tempdir().map_err(unknown)?;
        Root::open(folder.path())?.write("/status", &status, Attributes { mode: 0o644, owner: None })?;
        Self::query(root, folder.path())
    }

    fn query(root: &Root, folder: &Path) -> Result<Self, Error> {
        let unknown = |problem: String| Error::Query { path: root.shown(STATUS), problem };
        let folder = format!("--admindir={}", folder.display());
        let output =
            Programs::here().keeping(LIMIT).run(&["dpkg-query", &folder, "--show", FORMAT], PATIENCE);
        let output = output.map_err(|error| unknown(error.to_string().replace(FORMAT, "--showformat=…")))?;
        let printed = String::from_utf8_lossy(&output.stdout);
        Self::parse(&printed)
            .ok_or_else(|| unknown("dpkg-query printed other fields than asked for".to_owned()))
    }

    fn parse(text: &str) -> Option<Self> {
        let records = || text.split_terminator('\x1e').map(|record| record.split('\x1f').collect::<Vec<_>>());
        let native = records().find(|fields| fields.first() == Some(&"dpkg"));
        let native = native.and_then(|fields| fields.get(1).map(|it| (*it).to_owned()));
        let mut database = Self { native, ..Self::default() };
        for fields in records() {
            let [name, architecture, state, version, provides, depends, conffiles] =
                fields.try_into().ok()?;
            let [selection, flag, status] = state.split(' ').collect::<Vec<_>>().try_into().ok()?;
            let status = if flag == "reinstreq" { "half-installed" } else { status };
            let there = There {
                version: version.to_owned(),
                status: Status::deserialize(StrDeserializer::<WordError>::new(status)).ok()?,
                is_on_hold: selection == "hold",
                is_to_go: matches!(selection, "deinstall" | "purge"),
                provides: provides.to_owned(),
                depends: depends.to_owned(),
                conffiles: conffiles.to_owned(),
            };
            database.packages.entry(database.named(name, architecture)).or_insert(there);
        }
        Some(database)
    }

    /// A package by dpkg's name for it, `NAME` or `NAME:ARCHITECTURE`; `None`: not installed.
    #[must_use]
    pub fn there(&self, name: &str) -> Option<&There> {
        let bare = || {
            let (bare, architecture) = name.split_once(':')?;
            self.packages
                .get(bare)
                .filter(|_| self.named(bare, architecture) == bare && self.native.is_some())
        };
        self.packages.get(name).or_else(bare)
    }

    /// The conffiles of a package that are not as dpkg installed them: those are not purged. One that is gone is none, as
    /// there is nothing to lose. One that cannot be read counts as changed.
    pub(crate) fn changed_conffiles(&self, root: &Root, package: &str) -> Vec<PathBuf> {
        let lines = self.there(package).map_or("", |it| &it.conffiles).lines();
        let changed = |line: &str| {
            let mut words = line.split_whitespace();
            let (path, shipped) = (words.next()?, words.next()?);
            // `obsolete`: an older version of the package installed the file, which counts, too.
            // `newconffile`: dpkg installed no file.
            match root.read(path, CONFFILE_LIMIT) {
                Ok(bytes) if hexadecimal(&Md5::digest(&bytes)) == shipped => None,
                Err(error) if error.is_not_found() => None,
                _ => Some(PathBuf::from(path)),
            }
        };
        lines.filter_map(changed).collect()
    }

    /// Every package that is installed wholly or in part; not those that have left only their configuration.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        self.installed().map(|(name, _)| name.clone()).collect()
    }

    /// Packages with which dpkg has begun and has not come to the end, by name.
    pub(crate) fn half_done(&self) -> Vec<(String, Status)> {
        let all = self.installed().map(|(name, it)| (name.clone(), it.status));
        all.filter(|(_, status)| *status != Status::Installed).collect()
    }

    /// Whether a package must be unpacked anew before dpkg can do anything else with it.
    pub(crate) fn is_half_installed(&self, name: &str) -> bool {
        self.there(name).is_some_and(|it| it.status == Status::HalfInstalled)
    }

    /// Whether a run of dpkg was killed, or is still running.
    pub(crate) fn is_interrupted(&self) -> bool {
        self.has_updates || !self.half_done().is_empty()
    }

    /// A package's name as apt prints it.
    pub(crate) fn named(&self, name: &str, architecture: &str) -> String {
        let is_foreign =
            self.native.as_deref().is_some_and(|native| ![native, "all", ""].contains(&architecture));
        if is_foreign { format!("{name}:{architecture}") } else { name.to_owned() }
    }

    fn installed(&self) -> impl Iterator<Item = (&String, &There)> {
        self.packages.iter().filter(|(_, it)| it.status != Status::ConfigFiles)
    }
}

/// dpkg's spelling of the state.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

fn none(error: root::Error) -> Error {
    if error.is_not_found() { Error::None(error) } else { error.into() }
}

/// As the names of dpkg's files of changes are.
fn is_number(name: &OsString) -> bool {
    name.as_encoded_bytes().iter().all(u8::is_ascii_digit)
}
