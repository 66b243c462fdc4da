//! Which packages are there, in which version and state, and what they need, as dpkg-query(1) prints it.

mod needed;
mod version;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use md5::{Digest as _, Md5};
use root::{Attributes, Identity, Root, if_there};
use serde::de::value::{Error as WordError, StrDeserializer};
use serde::{Deserialize, Serialize};

use crate::command::{self, Programs};
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
    #[error("which packages {} lists is not known: {problem}", path.display())]
    Query { path: PathBuf, problem: String },
}

/// What dpkg-query printed.
#[derive(Debug, Default)]
pub struct Database {
    /// By apt's name: with the architecture where that is not the machine's own.
    packages: BTreeMap<String, Package>,
    /// The machine's own architecture: that of the package dpkg; `None` where dpkg is not a package there.
    native: Option<String>,
    /// A run of dpkg was killed, or is at work.
    has_updates: bool,
}

/// A package's fields; those that few callers need are kept as dpkg-query prints them.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package {
    there: There,
    provides: String,
    depends: String,
    conffiles: String,
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
        let none = |error: root::Error| if error.is_not_found() { Error::None(error) } else { error.into() };
        let updates = updates(root)?;
        if !root.is_host() {
            let status = root.read(STATUS, LIMIT).map_err(none)?;
            return Self::of_copy(root, &status, &updates).map(Arc::new);
        }
        let identity = root.identity(STATUS).map_err(none)?;
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, known)) = &*last
            && *of == identity
            && updates.is_empty()
        {
            return Ok(known.clone());
        }
        let read = Arc::new(Self::query(root, Path::new(FOLDER), !updates.is_empty())?);
        *last = updates.is_empty().then(|| (identity, read.clone()));
        Ok(read)
    }

    /// dpkg-query would follow a link out of another Root, and cannot read files in memory: it gets a copy.
    fn of_copy(root: &Root, status: &[u8], updates: &[PathBuf]) -> Result<Self, Error> {
        let unknown = |problem: String| Error::Query { path: root.shown(STATUS), problem };
        let folder = tempfile::Builder::new().prefix("rocworker-dpkg-").tempdir();
        let folder =
            folder.map_err(|error| unknown(format!("no folder can be made for dpkg-query: {error}")))?;
        let copy = Root::open(folder.path())?;
        let how = Attributes { mode: 0o644, owner: None };
        copy.write("/status", status, how)?;
        for update in updates {
            // A file that is missing now has been taken into `status` by a running dpkg.
            let Some(bytes) = if_there(root.read(update, LIMIT))? else { continue };
            copy.write(Path::new("/").join(update.strip_prefix(FOLDER).unwrap_or(update)), &bytes, how)?;
        }
        Self::query(root, folder.path(), !updates.is_empty())
    }

    fn query(root: &Root, folder: &Path, has_updates: bool) -> Result<Self, Error> {
        let unknown = |problem: String| Error::Query { path: root.shown(STATUS), problem };
        let folder = format!("--admindir={}", folder.display());
        let programs = Programs::here().keeping(LIMIT);
        let output = programs.run(&["dpkg-query", &folder, "--show", FORMAT], PATIENCE).map_err(|error| {
            unknown(match error {
                command::Error::NotFound(_) => "dpkg-query, which reads it, is not installed here".to_owned(),
                command::Error::Failed { status, reported, .. } => {
                    format!("dpkg-query ended with {status}{reported}; see what dpkg --audit says")
                }
                other => other.to_string().replace(FORMAT, "--showformat=…"),
            })
        })?;
        let database = Self::parse(&String::from_utf8_lossy(&output.stdout)).map_err(unknown)?;
        Ok(Self { has_updates, ..database })
    }

    fn parse(text: &str) -> Result<Self, String> {
        let records: Vec<Vec<&str>> =
            text.split_terminator('\x1e').map(|record| record.split('\x1f').collect()).collect();
        let dpkg = records.iter().find(|fields| fields.first() == Some(&"dpkg"));
        let native = dpkg.and_then(|fields| fields.get(1)).map(|it| (*it).to_owned());
        let mut packages = BTreeMap::new();
        for fields in &records {
            let odd =
                || format!("dpkg-query printed {fields:?} of a package, which rocworker does not understand");
            let [name, architecture, status, version, provides, depends, conffiles] = fields.as_slice()
            else {
                return Err(odd());
            };
            let words: Vec<&str> = status.split(' ').collect();
            let [selection, flag, status] = words.as_slice() else { return Err(odd()) };
            let there = There {
                version: (*version).to_owned(),
                status: match *flag {
                    "reinstreq" => Status::HalfInstalled,
                    _ => Status::deserialize(StrDeserializer::<WordError>::new(status)).map_err(|_| odd())?,
                },
                is_on_hold: *selection == "hold",
                is_to_go: matches!(*selection, "deinstall" | "purge"),
            };
            let [provides, depends, conffiles] = [provides, depends, conffiles].map(|it| (*it).to_owned());
            let name = named(name, architecture, native.as_deref());
            packages.entry(name).or_insert(Package { there, provides, depends, conffiles });
        }
        Ok(Self { packages, native, has_updates: false })
    }

    /// A package by dpkg's name for it, `NAME` or `NAME:ARCHITECTURE`; `None`: not installed.
    #[must_use]
    pub fn there(&self, name: &str) -> Option<&There> {
        self.package(name).map(|it| &it.there)
    }

    pub(crate) fn package(&self, name: &str) -> Option<&Package> {
        let bare = || {
            let (bare, architecture) = name.split_once(':')?;
            let is_own = architecture == "all" || self.native.as_deref() == Some(architecture);
            self.packages.get(bare).filter(|_| is_own)
        };
        self.packages.get(name).or_else(bare)
    }

    /// The conffiles of a package that are not as dpkg installed them: those are not purged. One that is gone is none, as
    /// there is nothing to lose. One that cannot be read counts as changed.
    pub(crate) fn changed_conffiles(&self, root: &Root, package: &str) -> Vec<PathBuf> {
        let lines = self.package(package).map_or("", |it| &it.conffiles).lines();
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
        let all = self.installed().map(|(name, it)| (name.clone(), it.there.status));
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
        named(name, architecture, self.native.as_deref())
    }

    fn installed(&self) -> impl Iterator<Item = (&String, &Package)> {
        self.packages.iter().filter(|(_, it)| it.there.status != Status::ConfigFiles)
    }
}

/// dpkg's spelling of the state.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

fn named(name: &str, architecture: &str, native: Option<&str>) -> String {
    let is_foreign =
        !matches!(architecture, "" | "all") && native.is_some_and(|native| native != architecture);
    if is_foreign { format!("{name}:{architecture}") } else { name.to_owned() }
}

/// dpkg's files of changes, whose names are numbers.
fn updates(root: &Root) -> Result<Vec<PathBuf>, Error> {
    let names = if_there(root.list(UPDATES))?.unwrap_or_default();
    let is_number = |name: &&str| name.bytes().all(|byte| byte.is_ascii_digit());
    let names = names.iter().filter_map(|name| name.to_str()).filter(is_number);
    Ok(names.map(|name| Path::new(UPDATES).join(name)).collect())
}
