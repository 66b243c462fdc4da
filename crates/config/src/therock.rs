//! ROCm as one archive of TheRock's builds (<https://github.com/ROCm/TheRock>, RELEASES.md).

use std::path::PathBuf;

use reconcile::Digest;
use serde::{Deserialize, Serialize};

use super::download::{SCHEMES, digest, url};
use super::releases::{is_between, minor, rows};
use super::{Error, Source};

/// The archive of TheRock that rocworker installs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TheRock {
    /// The version in the archive's name: `7.14.0`, `7.13.0a20260515`, `7.13.0rc2`.
    pub version: String,
    /// The family of GPUs in the archive's name: `gfx94X-dcgpu`, `gfx110X-all`, `multiarch`.
    pub family: String,
    /// The URL of the folder in which archives of this release type lie.
    pub folder: String,
    /// `None`: the archive is trusted for its server alone, which no configuration does.
    pub sha256: Option<Digest>,
}

/// AMD's folders of archives, by release type, family and version.
const FOLDERS: &str = include_str!("data/therock.txt");

/// AMD's names for whose word an archive has.
const RELEASES: [&str; 4] = ["stable", "nightlies", "prereleases", "devreleases"];

/// The folders of an archive that ROCm's own programs expect.
const HOLDS: [&str; 3] = ["bin", "lib", "include"];

impl TheRock {
    /// The archive by the three words that AMD's own script takes. `release`: `None`: the
    /// release that the version's spelling means. `folder`: `None`: AMD's own.
    ///
    /// # Errors
    /// The name of the word that is wrong, and why.
    pub fn named(
        version: &str,
        family: &str,
        release: Option<&str>,
        folder: Option<String>,
        sha256: Option<&str>,
    ) -> Result<Self, (&'static str, String)> {
        for (name, value, example) in [("version", version, "7.14.0"), ("family", family, "gfx94X-dcgpu")] {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
            let is_fit = value.chars().all(fits) && value.starts_with(|c: char| c.is_ascii_alphanumeric());
            let problem = || format!("{value:?} is no part of an archive's name, such as {example}");
            is_fit.then_some(()).ok_or_else(|| (name, problem()))?;
        }
        let release = release.unwrap_or_else(|| release_of(version));
        if !RELEASES.contains(&release) {
            return Err(("release", format!("{release:?} is none of {}", RELEASES.join(", "))));
        }
        let unknown = || {
            let problem = format!("is missing, and AMD's folder of {release} {version} is not known");
            ("url", problem)
        };
        let folder = folder.or_else(|| folder_of(release, family, version)).ok_or_else(unknown)?;
        url(&folder, &SCHEMES).map_err(|problem| ("url", problem))?;
        let sha256 = sha256.map(|text| digest(text).map_err(|problem| ("sha256", problem))).transpose()?;
        Ok(Self { version: version.to_owned(), family: family.to_owned(), folder, sha256 })
    }

    #[must_use]
    pub fn url(&self) -> String {
        format!(
            "{}/therock-dist-linux-{}-{}.tar.gz",
            self.folder.trim_end_matches('/'),
            self.family,
            self.version
        )
    }

    /// The folder into which the archive is unpacked.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/opt/rocm-{}", self.version)
    }

    /// Folders that an unpacked archive must hold.
    #[must_use]
    pub fn holds() -> Vec<PathBuf> {
        HOLDS.map(PathBuf::from).to_vec()
    }
}

/// AMD's release type, by the form of the version: `7.11.0a20251211`, `7.10.0rc2`, `7.10.0.dev0+f689a8ea`.
fn release_of(version: &str) -> &'static str {
    let has = |word: &str| {
        version.split_once(word).is_some_and(|(_, rest)| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    if has(".dev") {
        "devreleases"
    } else if has("rc") {
        "prereleases"
    } else if has("a") {
        "nightlies"
    } else {
        "stable"
    }
}

fn folder_of(release: &str, family: &str, version: &str) -> Option<String> {
    let is_it = |[of, only, from, to, _]: &[&str; 5]| {
        *of == release && (*only == "-" || *only == family) && is_between(minor(version), from, to)
    };
    rows::<5>(FOLDERS).find(is_it).map(|[.., folder]| folder.to_owned())
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TheRockDocument {
    version: Option<String>,
    family: Option<String>,
    release: Option<String>,
    sha256: Option<String>,
    url: Option<String>,
}

impl TheRockDocument {
    pub(super) fn check(self, source: &Source) -> Result<TheRock, Error> {
        let missing = |problem: &str| source.wrong("rocm.therock", None, format!("rocm.therock.{problem}"));
        let word = |name: &str, value: Option<String>, example: &str| {
            value.ok_or_else(|| missing(&format!("{name} is missing: name one, such as {example}")))
        };
        let version = word("version", self.version, "7.14.0")?;
        let family = word("family", self.family, "gfx94X-dcgpu")?;
        let Some(sha256) = self.sha256 else {
            let problem = "sha256 is missing: an archive is not unpacked for its server's word alone; take it from who \
                           published it";
            return Err(missing(problem));
        };
        let release = self.release.as_deref();
        let archive = TheRock::named(&version, &family, release, self.url.clone(), Some(&sha256));
        archive.map_err(|(name, problem)| {
            let key = format!("rocm.therock.{name}");
            let value = match name {
                "version" => Some(version.as_str()),
                "family" => Some(family.as_str()),
                "release" => release,
                "sha256" => Some(sha256.as_str()),
                _ => self.url.as_deref(),
            };
            // A folder that is not known has no line of its own.
            let at = if value.is_some() { &key } else { "rocm.therock" };
            source.wrong(at, value, format!("{key} {problem}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// AMD's guides fetch these addresses.
    #[test]
    fn an_archive_is_fetched_from_the_folder_in_which_its_release_is() {
        let amd = "https://repo.amd.com/rocm";
        for (version, family, release, expected) in [
            ("7.10.0", "gfx94X-dcgpu", Some("stable"), format!("{amd}/tarball/therock-dist-linux-gfx94X-dcgpu-7.10.0.tar.gz")),
            ("7.13.0", "gfx94X-dcgpu", None, format!("{amd}/tarball/therock-dist-linux-gfx94X-dcgpu-7.13.0.tar.gz")),
            ("7.13.0", "multiarch", None, format!("{amd}/tarball-multi-arch/therock-dist-linux-multiarch-7.13.0.tar.gz")),
            ("7.14.0", "gfx94X-dcgpu", None, format!("{amd}/tarball-multi-arch/therock-dist-linux-gfx94X-dcgpu-7.14.0.tar.gz")),
            ("10.0.0", "gfx1151", None, format!("{amd}/tarball-multi-arch/therock-dist-linux-gfx1151-10.0.0.tar.gz")),
            (
                "7.11.0a20251211",
                "gfx110X-all",
                None,
                "https://rocm.nightlies.amd.com/tarball/therock-dist-linux-gfx110X-all-7.11.0a20251211.tar.gz".to_owned(),
            ),
            (
                "7.10.0rc2",
                "gfx110X-all",
                None,
                "https://rocm.prereleases.amd.com/tarball/therock-dist-linux-gfx110X-all-7.10.0rc2.tar.gz".to_owned(),
            ),
            (
                "7.10.0.dev0+f689a8ea",
                "gfx94X-dcgpu",
                None,
                "https://rocm.devreleases.amd.com/tarball/therock-dist-linux-gfx94X-dcgpu-7.10.0.dev0+f689a8ea.tar.gz"
                    .to_owned(),
            ),
        ] {
            let archive = TheRock::named(version, family, release, None, None).unwrap();
            assert_eq!(archive.url(), expected);
        }
        for (version, family, release, name) in [
            ("6.4.0", "gfx94X-dcgpu", None, "url"),
            ("newest", "gfx94X-dcgpu", None, "url"),
            ("../7", "gfx94X-dcgpu", None, "version"),
            ("7.10.0", "gfx94X/dcgpu", None, "family"),
            ("7.10.0", "gfx94X-dcgpu", Some("nightly"), "release"),
        ] {
            assert_eq!(
                TheRock::named(version, family, release, None, None).unwrap_err().0,
                name,
                "{version}"
            );
        }
        let elsewhere = TheRock::named("6.4.0", "a", None, Some("https://mirror/".to_owned()), None).unwrap();
        assert_eq!(elsewhere.url(), "https://mirror/therock-dist-linux-a-6.4.0.tar.gz");
    }
}
