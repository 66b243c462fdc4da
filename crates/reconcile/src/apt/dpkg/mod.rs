//! dpkg's own database, read as it is: which packages are there, in which version and state. No child process: a
//! plan in which nothing is to be done starts none.

mod needed;
mod stanza;
mod version;

use std::fmt;
use std::path::PathBuf;

use md5::{Digest as _, Md5};
use root::{Root, if_there};
use serde::de::{DeserializeOwned, IntoDeserializer as _};
use serde::{Deserialize, Serialize};

use crate::digest::hexadecimal;

pub(crate) use stanza::{Stanza, all as stanzas};
pub use version::compare;

pub(crate) const STATUS: &str = "/var/lib/dpkg/status";
/// dpkg's changes since it last wrote `status`, which a killed run leaves here (dpkg's lib/dpkg/dbmodify.c).
/// Each file holds one package's stanza as a whole; the higher its number, the newer.
const UPDATES: &str = "/var/lib/dpkg/updates";
/// The machine's own architecture in the first line; not there where no other was ever added (dpkg(1)).
const ARCHITECTURES: &str = "/var/lib/dpkg/arch";

/// Debian with everything in it: 90,000 packages of a kilobyte each.
const LIMIT: usize = 128 << 20;

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
    HalfInstalled,
    Unpacked,
    HalfConfigured,
    TriggersAwaited,
    TriggersPending,
}

/// What dpkg is to do with a package (dpkg(1), "Package selection states"), which does not show whether the
/// package is there. A killed removal leaves an installed package that is selected for removal, and `apt-get
/// dselect-upgrade` would complete it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Selection {
    Unknown,
    Install,
    /// The package is to stay as it is: `apt-mark hold`.
    Hold,
    Deinstall,
    Purge,
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
        "rocworker cannot read the entry of {package} in {path}: {problem}; see what `dpkg --audit` says"
    )]
    Stanza { path: &'static str, package: String, problem: String },
}

/// dpkg's database as rocworker read it.
#[derive(Debug)]
pub struct Database {
    status: String,
    /// The texts of dpkg's folder of updates, the newest first.
    updates: Vec<String>,
    native: Option<String>,
}

/// A package that is there, wholly or in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct There {
    pub version: String,
    pub status: Status,
    /// What dpkg is to do with the package.
    pub selection: Selection,
    /// The package was unpacked in part, and is neither configured nor removed before it is put there anew
    /// (`reinstreq`).
    pub must_be_anew: bool,
}

impl Database {
    /// Reads dpkg's database.
    ///
    /// # Errors
    /// When there is no dpkg, or its files cannot be read.
    pub fn read(root: &Root) -> Result<Self, Error> {
        let status = root
            .read_text(STATUS, LIMIT)
            .map_err(|error| if error.is_not_found() { Error::None(error) } else { error.into() })?;
        Ok(Self { status, updates: updates(root)?, native: native(root)? })
    }

    /// A package by dpkg's name for it, `NAME` or `NAME:ARCHITECTURE`; `None`: not installed.
    ///
    /// # Errors
    /// When dpkg's entry of the package is not understood.
    pub fn there(&self, name: &str) -> Result<Option<There>, Error> {
        let Some(stanza) = self.stanza(name) else { return Ok(None) };
        let wrong = |problem: String| Error::Stanza { path: STATUS, package: name.to_owned(), problem };
        let words: Vec<&str> = stanza.field("Status").unwrap_or_default().split_whitespace().collect();
        let [selection, flag, status] = words.as_slice() else {
            return Err(wrong(format!("its Status is {words:?}, not three words")));
        };
        if *status == "not-installed" {
            return Ok(None);
        }
        let version = stanza.field("Version").ok_or_else(|| wrong("it has no Version".to_owned()))?;
        Ok(Some(There {
            version: version.to_owned(),
            status: word(status).map_err(wrong)?,
            selection: word(selection).map_err(wrong)?,
            must_be_anew: *flag == "reinstreq",
        }))
    }

    /// The conffiles of a package that are not as dpkg installed them: those are not purged. One that is gone is none, as
    /// there is nothing to lose. One that cannot be read counts as changed.
    pub(crate) fn changed_conffiles(&self, root: &Root, package: &str) -> Vec<PathBuf> {
        let Some(stanza) = self.stanza(package) else { return Vec::new() };
        let lines = stanza.field("Conffiles").unwrap_or_default().lines();
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

    /// The newest stanza of a package.
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

/// dpkg's spelling of the state.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Selection {
    pub(crate) fn is_to_go(self) -> bool {
        matches!(self, Self::Deinstall | Self::Purge)
    }
}

/// A word of dpkg's.
fn word<T: DeserializeOwned>(word: &str) -> Result<T, String> {
    T::deserialize(word.into_deserializer()).map_err(|error: serde::de::value::Error| error.to_string())
}

fn updates(root: &Root) -> Result<Vec<String>, Error> {
    let names = if_there(root.list(UPDATES))?.unwrap_or_default();
    let is_number = |name: &&str| name.bytes().all(|byte| byte.is_ascii_digit());
    let mut updates = Vec::new();
    // The names sort by their numbers: all have equally many digits.
    for name in names.iter().rev().filter_map(|name| name.to_str()).filter(is_number) {
        // A file that is missing now has been taken into `status` by a running dpkg.
        updates.extend(if_there(root.read_text(format!("{UPDATES}/{name}"), LIMIT))?);
    }
    Ok(updates)
}

/// `None` where no other architecture than the machine's own was ever added.
pub(crate) fn native(root: &Root) -> Result<Option<String>, root::Error> {
    let text = if_there(root.read_text(ARCHITECTURES, LIMIT))?;
    Ok(text.and_then(|text| text.lines().next().map(str::to_owned)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn stanza(name: &str, architecture: &str, version: &str, status: &str) -> String {
        format!(
            "Package: {name}\nStatus: {status}\nPriority: optional\nArchitecture: {architecture}\nVersion: {version}\n\
             Description: of {name}\n Package: not-this\n Version: 9\n\n"
        )
    }

    fn database(status: String, updates: &[String], native: Option<&str>) -> Database {
        let updates = updates.iter().rev().cloned().collect();
        Database { status, updates, native: native.map(str::to_owned) }
    }

    fn version(database: &Database, name: &str) -> Option<String> {
        database.there(name).unwrap().map(|it| it.version)
    }

    #[test]
    fn of_several_architectures_the_machines_own_has_the_bare_name() {
        let ok = "install ok installed";
        let text = stanza("lib", "i386", "1", ok)
            + &stanza("lib", "amd64", "2", ok)
            + &stanza("data", "all", "3", ok);
        let it = database(text.clone(), &[], Some("amd64"));
        assert_eq!(version(&it, "lib").as_deref(), Some("2"));
        assert_eq!(version(&it, "lib:i386").as_deref(), Some("1"));
        assert_eq!(version(&it, "lib:arm64"), None);
        assert_eq!(version(&it, "data").as_deref(), Some("3"));
        assert_eq!(it.names().into_iter().collect::<Vec<_>>(), ["data", "lib", "lib:i386"]);
        let only_foreign = database(stanza("lib", "i386", "1", ok), &[], Some("amd64"));
        assert_eq!(version(&only_foreign, "lib"), None);
        assert_eq!(version(&it, "not-this"), None, "a description is no stanza");
    }

    #[test]
    fn what_a_killed_run_has_noted_counts_before_what_is_in_status() {
        let text = stanza("tool", "all", "1", "install ok installed");
        let noted = [
            stanza("tool", "all", "2", "install reinstreq half-installed"),
            stanza("tool", "all", "2", "install ok unpacked"),
        ];
        let it = database(text.clone(), &noted, None);
        let there = it.there("tool").unwrap().unwrap();
        assert_eq!((there.version.as_str(), there.status), ("2", Status::Unpacked));
        assert!(it.is_interrupted());
        assert_eq!(it.half_done(), [("tool".to_owned(), Status::Unpacked)]);
        assert!(!database(text, &[], None).is_interrupted());
    }

    #[test]
    fn a_held_one_is_known_and_one_that_is_not_understood_is_an_error() {
        let it = database(stanza("tool", "all", "1", "hold ok installed"), &[], None);
        assert_eq!(it.there("tool").unwrap().unwrap().selection, Selection::Hold);
        for status in ["install ok", "install ok marvellous", "perhaps ok installed", ""] {
            let it = database(stanza("tool", "all", "1", status), &[], None);
            let error = it.there("tool").unwrap_err().to_string();
            assert!(error.contains("dpkg --audit"), "{error}");
        }
        let gone = database(stanza("tool", "all", "1", "purge ok not-installed"), &[], None);
        assert_eq!(gone.there("tool").unwrap(), None);
    }

    proptest! {
        /// Whatever the text is: a package is what its own stanza says, and no other text is taken for one.
        #[test]
        fn each_package_is_what_its_own_stanza_says(
            names in prop::collection::btree_set("[a-c][a-c+.0-1-]{1,3}", 1..8),
            asked in "[a-c][a-c+.0-1-]{1,3}",
            junk in "(Package: [a-c]{0,3}|[ -~]{0,12}\n){0,4}",
        ) {
            let text: String = names.iter().map(|name| stanza(name, "all", &format!("1-{name}"), "install ok installed")).collect();
            let it = database(text, &[], None);
            prop_assert_eq!(version(&it, &asked), names.contains(&asked).then(|| format!("1-{asked}")));
            // Nothing of it is trusted to be as it should.
            let damaged = database(junk, &[], None);
            damaged.there(&asked).ok();
            prop_assert!(damaged.names().len() <= 4);
        }

        #[test]
        fn versions_have_an_order(a in "[0-9a~+.:-]{0,6}", b in "[0-9a~+.:-]{0,6}", c in "[0-9a~+.:-]{0,6}") {
            prop_assert_eq!(compare(&a, &b), compare(&b, &a).reverse());
            if compare(&a, &b).is_le() && compare(&b, &c).is_le() {
                prop_assert!(compare(&a, &c).is_le());
            }
        }
    }
}
