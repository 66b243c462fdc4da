//! Which of AMD's packages are wanted, and where they come from.

use std::path::Path;

use reconcile::Digest;
use serde::Deserialize;

use super::clusterbloom::{BASE_URL, DEB_PACKAGE};
use super::therock::{TheRock, TheRockDocument};
use super::{Error, Source, path};

/// The key that signs AMD's repositories, and its fingerprint as AMD publishes it.
const KEY: &str = "https://repo.radeon.com/rocm/rocm.gpg.key";
/// What AMD's Release files say in `Origin`.
const ORIGIN: &str = "repo.radeon.com";

const FINGERPRINT: &str = "CA8BB4727A47B4D09B4EE8969386B48A1A693C5C";

/// What AMD's repositories are called, and where each of them is: `VERSION` stands for `rocm.version` and, in the
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
    /// Installed, in whatever version is there or to be had.
    Install,
    /// Whatever there is stays.
    #[default]
    Keep,
    Absent,
}

/// Which packages of AMD's are wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Packages {
    pub container_toolkit: Wanted,
    pub rocm_smi: Wanted,
    /// Through which apt fetches what rocworker asks it for; `None`: as apt and the environment have it.
    pub proxy: Option<String>,
}

/// ROCm's user space.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rocm {
    pub install: RocmFrom,
    /// AMD's release, as `7.2.4`.
    pub version: Option<String>,
    pub packages: Vec<String>,
    /// What amdgpu-install is asked for.
    pub usecases: Vec<String>,
    pub installer: InstallerFile,
    /// As the configuration has it, if it has it.
    pub(super) written: Option<RocmFrom>,
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
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum RocmFrom {
    #[default]
    Keep,
    Apt,
    TheRock(TheRock),
    /// By AMD's installer, as ClusterBloom has it.
    AmdgpuInstall,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Way {
    #[default]
    Keep,
    Apt,
    #[serde(rename = "therock")]
    TheRock,
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
    /// `VERSION` in it stands for the release.
    pub url: String,
    /// `None`: by the machine's distribution.
    pub suite: Option<String>,
    pub component: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PackagesDocument {
    container_toolkit: Option<Wanted>,
    rocm_smi: Option<Wanted>,
    proxy: Option<String>,
}

impl PackagesDocument {
    pub(super) fn check(self, source: &Source) -> Result<Packages, Error> {
        if let Some(proxy) = &self.proxy {
            url(proxy, &["http", "https"])
                .map_err(|problem| source.wrong("proxy", Some(proxy), format!("packages.proxy {problem}")))?;
        }
        Ok(Packages {
            container_toolkit: self.container_toolkit.unwrap_or_default(),
            rocm_smi: self.rocm_smi.unwrap_or_default(),
            proxy: self.proxy,
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RocmDocument {
    install: Option<Way>,
    therock: Option<TheRockDocument>,
    version: Option<String>,
    packages: Option<Vec<String>>,
    usecases: Option<Vec<String>>,
    sha256: Option<String>,
}

impl RocmDocument {
    pub(super) fn check(self, source: &Source) -> Result<Rocm, Error> {
        if let Some(version) = &self.version {
            release(version).map_err(|problem| {
                source.wrong("version", Some(version), format!("rocm.version {problem}"))
            })?;
        }
        let packages = self.packages.unwrap_or_else(|| vec!["rocm".to_owned()]);
        if let Some(name) = packages.iter().find(|name| !is_package(name)) {
            let problem = format!("rocm.packages: {name:?} is not the name of a package");
            return Err(source.wrong("packages", Some(name), problem));
        }
        let usecases = self.usecases.unwrap_or_else(|| vec!["rocm".to_owned(), DKMS.to_owned()]);
        let fits = |name: &String| !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphanumeric());
        if let Some(name) = usecases.iter().find(|name| !fits(name)) {
            let problem = format!("rocm.usecases: {name:?} is not the name of a usecase, as rocm or dkms");
            return Err(source.wrong("usecases", Some(name), problem));
        }
        let sha256 = match self.sha256 {
            None => None,
            Some(text) => Some(Digest::parse(&text).ok_or_else(|| {
                source.wrong(
                    "sha256",
                    Some(&text),
                    format!("rocm.sha256: {text:?} is no SHA-256, as sha256sum prints it"),
                )
            })?),
        };
        let install = match (self.install.unwrap_or_default(), self.therock) {
            (Way::TheRock, archive) => RocmFrom::TheRock(archive.unwrap_or_default().check(source)?),
            (_, Some(_)) => {
                let problem = "rocm.therock names an archive, and rocm.install does not ask for it: write rocm.install: \
                               therock, or leave it out";
                return Err(source.wrong("therock", None, problem));
            }
            (Way::Keep, None) => RocmFrom::Keep,
            (Way::Apt, None) => RocmFrom::Apt,
            (Way::AmdgpuInstall, None) => RocmFrom::AmdgpuInstall,
        };
        let asks_nothing = match install {
            RocmFrom::Apt => packages.is_empty().then_some("packages"),
            RocmFrom::AmdgpuInstall => usecases.is_empty().then_some("usecases"),
            RocmFrom::Keep | RocmFrom::TheRock(_) => None,
        };
        if let Some(key) = asks_nothing {
            let problem =
                format!("rocm.{key} is empty, and rocm.install asks for ROCm: name some, or leave it out");
            return Err(source.wrong(key, None, problem));
        }
        Ok(Rocm {
            written: self.install.map(|_| install.clone()),
            install,
            version: self.version,
            packages,
            usecases,
            installer: InstallerFile {
                base_url: BASE_URL.to_owned(),
                package: DEB_PACKAGE.to_owned(),
                sha256,
            },
        })
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RepositoriesDocument {
    key: Option<String>,
    fingerprints: Option<Vec<String>>,
    origin: Option<String>,
    container_toolkit: Option<RepositoryDocument>,
    rocm: Option<RepositoryDocument>,
    amdgpu: Option<RepositoryDocument>,
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
                           one it holds: gpg --show-keys FILE tells it";
            return Err(source.wrong("key", None, problem));
        }
        let key = key(self.key.unwrap_or_else(|| KEY.to_owned()), source)?;
        let fingerprints = self.fingerprints.unwrap_or_else(|| vec![FINGERPRINT.to_owned()]);
        if fingerprints.is_empty() {
            let problem = "repositories.fingerprints is empty, so that no key would be the right one: gpg --show-keys FILE \
                           tells the key's";
            return Err(source.wrong("fingerprints", None, problem));
        }
        Ok(Repositories {
            key,
            origin: origin(self.origin, source)?,
            fingerprints: fingerprints.iter().map(|it| fingerprint(it, source)).collect::<Result<_, _>>()?,
            container_toolkit: repository(
                "container-toolkit",
                self.container_toolkit,
                CONTAINER_TOOLKIT,
                source,
            )?,
            rocm: repository("rocm", self.rocm, ROCM, source)?,
            amdgpu: repository("amdgpu", self.amdgpu, AMDGPU, source)?,
        })
    }
}

fn origin(origin: Option<String>, source: &Source) -> Result<String, Error> {
    let origin = origin.unwrap_or_else(|| ORIGIN.to_owned());
    // It ends on a line of preferences.d, where a comma begins something else.
    if is_word(&origin) {
        return Ok(origin);
    }
    let problem = format!("repositories.origin {origin:?} is not one word, as the Origin of a Release file");
    Err(source.wrong("origin", Some(&origin), problem))
}

fn key(key: String, source: &Source) -> Result<String, Error> {
    if key.starts_with('/') {
        path::absolute(Path::new(&key))
            .map_err(|problem| source.wrong("key", Some(&key), format!("repositories.key {problem}")))?;
        return Ok(format!("file://{key}"));
    }
    url(&key, &["http", "https", "file"])
        .map_err(|problem| source.wrong("key", Some(&key), format!("repositories.key {problem}")))?;
    Ok(key)
}

/// As gpg prints them, with or without blanks.
fn fingerprint(text: &str, source: &Source) -> Result<String, Error> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let is_fit = matches!(digits.len(), 40 | 64) && digits.chars().all(|c| c.is_ascii_hexdigit());
    if is_fit {
        return Ok(digits.to_ascii_uppercase());
    }
    let problem = format!(
        "repositories.fingerprints: {text:?} is no fingerprint, which has 40 hexadecimal digits (a key's short name is not \
         enough)"
    );
    Err(source.wrong("fingerprints", Some(text), problem))
}

fn repository(
    name: &str,
    document: Option<RepositoryDocument>,
    default: &str,
    source: &Source,
) -> Result<Repository, Error> {
    let document = document.unwrap_or_default();
    let address = document.url.unwrap_or_else(|| default.to_owned());
    let wrong = |key: &str, value: &str, problem: String| {
        source.wrong(key, Some(value), format!("repositories.{name}.{key} {problem}"))
    };
    url(&address, &["http", "https", "file"]).map_err(|problem| wrong("url", &address, problem))?;
    let component = document.component.unwrap_or_else(|| "main".to_owned());
    for (key, word) in [("component", Some(&component)), ("suite", document.suite.as_ref())] {
        if let Some(word) = word.filter(|word| !is_word(word)) {
            return Err(wrong(key, word, format!("{word:?} is not one word")));
        }
    }
    Ok(Repository { url: address, suite: document.suite, component })
}

/// A URL that stands on a line of apt's sources, and in what is said of it: a password in it would be everybody's.
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

/// What stands for VERSION in a URL: numbers between dots.
pub(super) fn release(text: &str) -> Result<(), String> {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if (1..=4).contains(&text.split('.').count()) && text.split('.').all(is_number) {
        return Ok(());
    }
    Err(format!("{text:?} is not a release, as 7.2.4"))
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/'))
}

/// Debian Policy, section 5.6.1.
fn is_package(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '+' | '-' | '.');
    // apt-get takes a minus at the end for "remove it".
    let is_named = name.starts_with(|c: char| c.is_ascii_alphanumeric()) && !name.ends_with('-');
    name.len() >= 2 && is_named && name.chars().all(fits)
}
