//! ROCm as one archive of TheRock's builds (<https://github.com/ROCm/TheRock>, RELEASES.md).

use reconcile::Digest;
use serde::Deserialize;

use super::packages::{SCHEMES, digest, url};
use super::{Error, Source};

/// Which archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TheRock {
    /// As archives are named: `7.14.0`, `7.13.0a20260515`, `7.13.0rc2`.
    pub version: String,
    /// Of GPUs: `gfx94X-dcgpu`, `gfx110X-all`, `multiarch`.
    pub family: String,
    /// The folder that archives of its kind lie in.
    pub folder: String,
    pub sha256: Digest,
}

/// AMD's folders of archives, by their names for whose word an archive has.
const RELEASES: [(&str, &str); 4] = [
    // Archives of one family and of all of them are there from 7.13 on.
    ("stable", "https://repo.amd.com/rocm/tarball-multi-arch"),
    ("nightlies", "https://rocm.nightlies.amd.com/tarball"),
    ("prereleases", "https://rocm.prereleases.amd.com/tarball"),
    ("devreleases", "https://rocm.devreleases.amd.com/tarball"),
];

impl TheRock {
    #[must_use]
    pub fn url(&self) -> String {
        format!(
            "{}/therock-dist-linux-{}-{}.tar.gz",
            self.folder.trim_end_matches('/'),
            self.family,
            self.version
        )
    }

    /// The folder that it becomes.
    #[must_use]
    pub fn path(&self) -> String {
        format!("/opt/rocm-{}", self.version)
    }
}

#[derive(Debug, Default, Deserialize)]
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
            let Some(value) = value else {
                return Err(missing(&format!("{name} is missing: name one, such as {example}")));
            };
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '+');
            let is_fit = value.chars().all(fits) && value.starts_with(|c: char| c.is_ascii_alphanumeric());
            let problem = || format!("{value:?} is no part of an archive's name, such as {example}");
            let fits = is_fit.then(|| value.clone()).ok_or_else(problem);
            source.check(&format!("rocm.therock.{name}"), &value, fits)
        };
        let version = word("version", self.version, "7.14.0")?;
        let family = word("family", self.family, "gfx94X-dcgpu")?;
        let Some(sha256) = self.sha256 else {
            let problem = "sha256 is missing: an archive is not unpacked for its server's word alone; take it from who \
                           published it";
            return Err(missing(problem));
        };
        let sha256 = source.check("rocm.therock.sha256", &sha256, digest(&sha256))?;
        let release = self.release.as_deref().unwrap_or("stable");
        let folder = RELEASES.iter().find(|(name, _)| *name == release).map(|(_, folder)| *folder);
        let problem = || format!("{release:?} is none of {}", RELEASES.map(|(name, _)| name).join(", "));
        let folder = source.check("rocm.therock.release", release, folder.ok_or_else(problem))?;
        let folder = self.url.unwrap_or_else(|| folder.to_owned());
        source.check("rocm.therock.url", &folder, url(&folder, &SCHEMES))?;
        Ok(TheRock { version, family, folder, sha256 })
    }
}
