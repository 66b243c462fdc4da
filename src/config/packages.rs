//! Which of AMD's packages are wanted, and where they come from.

use std::path::Path;

use reconcile::Digest;
use serde::Deserialize;

use super::therock::{TheRock, TheRockDocument};
use super::{Error, Source, or_default, path};

/// The key that signs AMD's repositories, and its fingerprint as AMD publishes it.
const KEY: &str = "https://repo.radeon.com/rocm/rocm.gpg.key";
/// What AMD's Release files say in `Origin`.
const ORIGIN: &str = "repo.radeon.com";

const FINGERPRINT: &str = "CA8BB4727A47B4D09B4EE8969386B48A1A693C5C";

/// What AMD's repositories are called, and where each of them is: `VERSION` means `rocm.version` and, in the
/// driver's, for `driver.version`.
const CONTAINER_TOOLKIT: &str = "https://repo.radeon.com/amd-container-toolkit/apt/";
const ROCM: &str = "https://repo.radeon.com/rocm/apt/VERSION";
const AMDGPU: &str = "https://repo.radeon.com/amdgpu/VERSION/ubuntu";

/// The usecase of amdgpu-install that brings the kernel driver.
pub const DKMS: &str = "dkms";

/// What is done about a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wanted {
    /// As [`Self::Install`] where the configuration says `compute-runtime: rocm`, and the worker is ready without it;
    /// else as [`Self::Keep`].
    #[default]
    Auto,
    /// Installed, in whatever version is there or to be had.
    Install,
    /// Whatever there is stays.
    Keep,
    Absent,
}

/// Which packages of AMD's are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Packages {
    #[serde(deserialize_with = "or_default")]
    pub container_toolkit: Wanted,
    #[serde(deserialize_with = "or_default")]
    pub rocm_smi: Wanted,
    /// Through which apt fetches what rocworker asks it for; `None`: as apt and the environment have it.
    pub proxy: Option<String>,
}

impl Packages {
    pub(super) fn check(self, source: &Source) -> Result<Self, Error> {
        if let Some(proxy) = &self.proxy {
            source.check("packages.proxy", proxy, url(proxy, &["http", "https"]))?;
        }
        Ok(self)
    }
}

/// ROCm's user space.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rocm {
    /// `None`: the configuration does not say, and what is there stays.
    pub install: Option<RocmFrom>,
    /// The archive, where ROCm comes from one.
    pub therock: Option<TheRock>,
    /// AMD's release, as `7.2.4`.
    pub version: Option<String>,
    pub packages: Vec<String>,
    /// What amdgpu-install is asked for.
    pub usecases: Vec<String>,
    pub installer: InstallerFile,
}

/// The package of amdgpu-install.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstallerFile {
    /// With a folder for each of Ubuntu's releases.
    pub base_url: String,
    /// The file's name.
    pub package: String,
    /// `None`: the file is trusted for its server alone.
    pub sha256: Option<Digest>,
}

/// Where ROCm comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RocmFrom {
    Keep,
    Apt,
    #[serde(rename = "therock")]
    TheRock,
    /// By AMD's installer, as ClusterBloom has it.
    AmdgpuInstall,
}

/// Where packages come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repositories {
    /// A URL, or `file://` and a path.
    pub key: String,
    /// Of all keys that it may hold, in upper case.
    pub fingerprints: Vec<String>,
    /// What the repositories' Release files say in `Origin`, for the pin.
    pub origin: String,
    pub container_toolkit: Repository,
    pub rocm: Repository,
    pub amdgpu: Repository,
}

/// One repository of apt's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// `VERSION` in it means the release.
    pub url: String,
    /// `None`: by the machine's distribution.
    pub suite: Option<String>,
    pub component: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RocmDocument {
    install: Option<RocmFrom>,
    therock: Option<TheRockDocument>,
    version: Option<String>,
    packages: Option<Vec<String>>,
    usecases: Option<Vec<String>>,
    sha256: Option<String>,
}

impl RocmDocument {
    pub(super) fn check(self, source: &Source) -> Result<Rocm, Error> {
        if let Some(version) = &self.version {
            source.check("rocm.version", version, release(version))?;
        }
        let packages = self.packages.unwrap_or_else(|| vec!["rocm".to_owned()]);
        for name in &packages {
            source.check("rocm.packages", name, package(name))?;
        }
        let usecases = self.usecases.unwrap_or_else(|| vec!["rocm".to_owned(), DKMS.to_owned()]);
        for name in &usecases {
            source.check("rocm.usecases", name, usecase(name))?;
        }
        let sha256 = self.sha256.map(|text| source.check("rocm.sha256", &text, digest(&text))).transpose()?;
        let (is_archive, asks_nothing) = match self.install {
            Some(RocmFrom::TheRock) => (true, None),
            Some(RocmFrom::Apt) => (false, packages.is_empty().then_some("packages")),
            Some(RocmFrom::AmdgpuInstall) => (false, usecases.is_empty().then_some("usecases")),
            Some(RocmFrom::Keep) | None => (false, None),
        };
        if self.therock.is_some() && !is_archive {
            let problem = "rocm.therock names an archive, and rocm.install does not ask for it: write rocm.install: \
                           therock, or leave it out";
            return Err(source.wrong("rocm.therock", None, problem));
        }
        if let Some(key) = asks_nothing.map(|name| format!("rocm.{name}")) {
            let problem =
                format!("{key} is empty, and rocm.install asks for ROCm: name some, or leave it out");
            return Err(source.wrong(&key, None, problem));
        }
        let therock = is_archive.then(|| self.therock.unwrap_or_default().check(source)).transpose()?;
        // ClusterBloom's names say the rest.
        let installer = InstallerFile { sha256, ..InstallerFile::default() };
        Ok(Rocm { install: self.install, therock, version: self.version, packages, usecases, installer })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(super) struct RepositoriesDocument {
    key: Option<String>,
    fingerprints: Option<Vec<String>>,
    origin: Option<String>,
    #[serde(deserialize_with = "or_default")]
    container_toolkit: RepositoryDocument,
    #[serde(deserialize_with = "or_default")]
    rocm: RepositoryDocument,
    #[serde(deserialize_with = "or_default")]
    amdgpu: RepositoryDocument,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RepositoryDocument {
    url: Option<String>,
    suite: Option<String>,
    component: Option<String>,
}

impl RepositoriesDocument {
    pub(super) fn check(self, source: &Source) -> Result<Repositories, Error> {
        if self.key.is_some() && self.fingerprints.is_none() {
            let problem = "repositories.key names another key than AMD's, and repositories.fingerprints does not say which \
                           one it holds: gpg --show-keys FILE prints it";
            return Err(source.wrong("repositories.key", None, problem));
        }
        let fingerprints = self.fingerprints.unwrap_or_else(|| vec![FINGERPRINT.to_owned()]);
        if fingerprints.is_empty() {
            let problem = "repositories.fingerprints is empty, so that no key would be the right one: gpg --show-keys FILE \
                           prints the key's";
            return Err(source.wrong("repositories.fingerprints", None, problem));
        }
        let fingerprints =
            fingerprints.iter().map(|it| source.check("repositories.fingerprints", it, fingerprint(it)));
        let origin = self.origin.unwrap_or_else(|| ORIGIN.to_owned());
        // It ends on a line of preferences.d, where a comma begins something else.
        source.check("repositories.origin", &origin, word(&origin))?;
        Ok(Repositories {
            key: key(self.key.unwrap_or_else(|| KEY.to_owned()), source)?,
            fingerprints: fingerprints.collect::<Result<_, _>>()?,
            origin,
            container_toolkit: self.container_toolkit.check(
                "container-toolkit",
                CONTAINER_TOOLKIT,
                source,
            )?,
            rocm: self.rocm.check("rocm", ROCM, source)?,
            amdgpu: self.amdgpu.check("amdgpu", AMDGPU, source)?,
        })
    }
}

fn key(key: String, source: &Source) -> Result<String, Error> {
    let is_path = key.starts_with('/');
    let fits = if is_path { path::absolute(Path::new(&key)) } else { url(&key, &SCHEMES) };
    source.check("repositories.key", &key, fits)?;
    Ok(if is_path { format!("file://{key}") } else { key })
}

/// As gpg prints them, with or without blanks.
fn fingerprint(text: &str) -> Result<String, String> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if matches!(digits.len(), 40 | 64) && digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return Ok(digits.to_ascii_uppercase());
    }
    Err(format!(
        "{text:?} is no fingerprint, which has 40 hexadecimal digits (a key's short name is not enough)"
    ))
}

impl RepositoryDocument {
    fn check(self, name: &str, default: &str, source: &Source) -> Result<Repository, Error> {
        let url_of = self.url.unwrap_or_else(|| default.to_owned());
        let component = self.component.unwrap_or_else(|| "main".to_owned());
        let key = |key: &str| format!("repositories.{name}.{key}");
        source.check(&key("url"), &url_of, url(&url_of, &SCHEMES))?;
        source.check(&key("component"), &component, word(&component))?;
        if let Some(suite) = &self.suite {
            source.check(&key("suite"), suite, word(suite))?;
        }
        Ok(Repository { url: url_of, suite: self.suite, component })
    }
}

/// How a URL may begin from which files are fetched.
pub(super) const SCHEMES: [&str; 3] = ["http", "https", "file"];

/// A URL for a line of apt's sources, and for messages: every user of the machine could read a password in it.
pub(super) fn url(url: &str, schemes: &[&str]) -> Result<(), String> {
    let authority = url.split_once("://").map_or("", |(_, rest)| rest.split('/').next().unwrap_or(""));
    if let Some((_, host)) = authority.rsplit_once('@') {
        return Err(format!(
            "has a name or password in front of {host:?}, which everybody on this machine could read: put them into \
             /etc/apt/auth.conf.d (apt_auth.conf(5)), or those of a proxy, with the proxy, into /etc/apt/apt.conf.d, and \
             leave them out here"
        ));
    }
    let fits = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '<' | '>' | '\\' | '[' | ']');
    let (scheme, rest) = url.split_once("://").unwrap_or_default();
    if schemes.contains(&scheme) && !rest.is_empty() && url.chars().all(fits) {
        return Ok(());
    }
    Err(format!("{url:?} is no URL that begins with {}://", schemes.join(":// or ")))
}

/// As `sha256sum` prints it.
pub(super) fn digest(text: &str) -> Result<Digest, String> {
    Digest::parse(text).ok_or_else(|| format!("{text:?} is no SHA-256, as sha256sum prints it"))
}

/// What replaces VERSION in a URL: numbers between dots.
fn release(text: &str) -> Result<(), String> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_one = (1..=4).contains(&text.split('.').count()) && text.split('.').all(is_number);
    fits(is_one, text, "a release, as 7.2.4")
}

fn word(text: &str) -> Result<(), String> {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    fits(
        !text.is_empty() && text.chars().all(is_of_word),
        text,
        "one word, as a suite, a component or an Origin",
    )
}

fn usecase(name: &str) -> Result<(), String> {
    let is_one = !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric());
    fits(is_one, name, "the name of a usecase, as rocm or dkms")
}

/// Debian Policy, section 5.6.1.
fn package(name: &str) -> Result<(), String> {
    let is_of_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    // apt-get takes a minus at the end for "remove it".
    let is_named = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && !name.ends_with('-');
    fits(name.len() >= 2 && is_named && name.chars().all(is_of_name), name, "the name of a package")
}

fn fits(is_fit: bool, text: &str, what: &str) -> Result<(), String> {
    if is_fit { Ok(()) } else { Err(format!("{text:?} is not {what}")) }
}
