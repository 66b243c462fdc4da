//! Which of AMD's packages are wanted, and where they come from.

use std::path::Path;

use reconcile::Digest;
use serde::{Deserialize, Serialize};

use super::download::{SCHEMES, digest, url};
use super::therock::{TheRock, TheRockDocument};
use super::{Error, Managed, Off, Source, path};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Wanted {
    /// Installed where the configuration says `compute-runtime: rocm`, and the worker is ready without it; else kept.
    #[default]
    Auto,
    /// Installed, in whatever version is there or to be had.
    Install,
    /// Rocworker leaves the package as it is, installed or not.
    Keep,
    Absent,
}

/// AMD's tools, each a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packages {
    pub container_toolkit: Managed<Tool>,
    pub rocm_smi: Managed<Tool>,
    /// The proxy for what rocworker has apt fetch; `None`: the one that apt or the environment names.
    pub proxy: Option<String>,
}

/// Whether rocworker installs a managed tool, and whether a worker is ready without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// Installed, in the version that is there or that apt offers (`packages`).
    Required,
    /// Installed, in the version that is there or that apt offers; the worker is ready without it (`compute-runtime:
    /// rocm`).
    Optional,
    Absent,
}

impl Managed<Tool> {
    /// The key that asks for the tool, if one does.
    #[must_use]
    pub fn asked_by(&self) -> Option<&'static str> {
        match self {
            Self::On(Tool::Required) => Some("packages"),
            Self::On(Tool::Optional) => Some("compute-runtime: rocm"),
            Self::On(Tool::Absent) | Self::Off(_) => None,
        }
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PackagesDocument {
    pub container_toolkit: Option<Wanted>,
    pub rocm_smi: Option<Wanted>,
    pub proxy: Option<String>,
}

impl PackagesDocument {
    /// `needs_gpu`: whether the configuration has `compute-runtime: rocm`.
    pub(super) fn check(
        self,
        gpus: Managed,
        needs_gpu: bool,
        rocm: &Managed<Rocm>,
        source: &Source,
    ) -> Result<Packages, Error> {
        if let Some(proxy) = &self.proxy {
            source.check("packages.proxy", proxy, url(proxy, &["http", "https"]))?;
        }
        // Apt would refuse rocworker's entry of the repository beside amdgpu-install's, which has another `Signed-By`.
        let comes_with_rocm = matches!(rocm, Managed::On(Rocm::Archive(_) | Rocm::Installer { .. }));
        let auto = Managed::of(needs_gpu.then_some(Tool::Optional), Off::Key("compute-runtime"));
        let smi = if comes_with_rocm { Managed::Off(Off::Key("rocm.install")) } else { auto };
        Ok(Packages {
            container_toolkit: tool(self.container_toolkit, auto).needing(&gpus),
            rocm_smi: tool(self.rocm_smi, smi).needing(&gpus),
            proxy: self.proxy,
        })
    }
}

fn tool(wanted: Option<Wanted>, auto: Managed<Tool>) -> Managed<Tool> {
    match wanted.unwrap_or_default() {
        Wanted::Auto => auto,
        Wanted::Install => Managed::On(Tool::Required),
        Wanted::Keep => Managed::Off(Off::Key("packages: keep")),
        Wanted::Absent => Managed::On(Tool::Absent),
    }
}

/// The source of ROCm's user space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rocm {
    /// Packages from AMD's repository, by name.
    Packages(Vec<String>),
    Archive(TheRock),
    /// AMD's installer, which ClusterBloom uses, and the usecases that it is asked for.
    Installer {
        file: InstallerFile,
        usecases: Vec<String>,
    },
}

/// The package of amdgpu-install.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InstallerFile {
    /// The URL that has a folder for each of Ubuntu's releases.
    pub base_url: String,
    /// The file's name.
    pub package: String,
    /// `None`: the file is trusted for its server alone.
    pub sha256: Option<Digest>,
}

/// `rocm.install`
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RocmFrom {
    Keep,
    Apt,
    #[serde(rename = "therock")]
    TheRock,
    /// AMD's installer, which ClusterBloom uses.
    AmdgpuInstall,
}

/// The repositories from which packages come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repositories {
    /// A URL, or `file://` and a path.
    pub key: String,
    /// Fingerprints of all keys that the key file may hold, in upper case.
    pub fingerprints: Vec<String>,
    /// What the repositories' Release files say in `Origin`, for the pin.
    pub origin: String,
    pub container_toolkit: Repository,
    pub rocm: Repository,
    pub amdgpu: Repository,
}

/// A repository that apt reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repository {
    /// The address, in which `VERSION` means the release.
    pub url: String,
    /// `None`: the suite of the machine's distribution.
    pub suite: Option<String>,
    pub component: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RocmDocument {
    pub(super) install: Option<RocmFrom>,
    therock: Option<TheRockDocument>,
    pub(super) version: Option<String>,
    packages: Option<Vec<String>>,
    usecases: Option<Vec<String>>,
    pub(super) sha256: Option<String>,
    /// The installer's folder and file, which ClusterBloom's names say.
    #[serde(skip)]
    pub(super) base_url: String,
    #[serde(skip)]
    pub(super) package: String,
}

impl RocmDocument {
    /// AMD's packages; `None`: of the release that this version knows.
    pub fn by_apt(version: Option<String>) -> Self {
        Self { install: Some(RocmFrom::Apt), version, ..Self::default() }
    }

    pub(super) fn check(self, gpus: Managed, source: &Source) -> Result<Managed<Rocm>, Error> {
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
        if self.therock.is_some() && self.install != Some(RocmFrom::TheRock) {
            let problem = "rocm.therock names an archive, and rocm.install does not ask for it: write rocm.install: \
                           therock, or leave it out";
            return Err(source.wrong("rocm.therock", None, problem));
        }
        let asked_for = |names: Vec<String>, key: &str| match names.is_empty() {
            true => {
                let problem =
                    format!("{key} is empty, and rocm.install asks for ROCm: name some, or leave it out");
                Err(source.wrong(key, None, problem))
            }
            false => Ok(names),
        };
        let from = match self.install {
            Some(RocmFrom::Apt) => Some(Rocm::Packages(asked_for(packages, "rocm.packages")?)),
            Some(RocmFrom::TheRock) => Some(Rocm::Archive(self.therock.unwrap_or_default().check(source)?)),
            Some(RocmFrom::AmdgpuInstall) => Some(Rocm::Installer {
                file: InstallerFile { base_url: self.base_url, package: self.package, sha256 },
                usecases: asked_for(usecases, "rocm.usecases")?,
            }),
            Some(RocmFrom::Keep) | None => None,
        };
        Ok(Managed::of(from, Off::Key("rocm.install: keep")).needing(&gpus))
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RepositoriesDocument {
    amdgpu: Option<RepositoryDocument>,
    container_toolkit: Option<RepositoryDocument>,
    fingerprints: Option<Vec<String>>,
    key: Option<String>,
    origin: Option<String>,
    rocm: Option<RepositoryDocument>,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RepositoryDocument {
    url: Option<String>,
    suite: Option<String>,
    component: Option<String>,
}

impl RepositoriesDocument {
    /// A mirror, which has AMD's folders beneath one address, and is signed with AMD's key.
    pub fn mirror(url: &str) -> Self {
        let of = |folder: &str| Some(format!("{}{folder}", url.trim_end_matches('/')));
        let repository =
            |folder| Some(RepositoryDocument { url: of(folder), ..RepositoryDocument::default() });
        Self {
            key: of("/rocm/rocm.gpg.key"),
            fingerprints: Some(vec![FINGERPRINT.to_owned()]),
            origin: None,
            container_toolkit: repository("/amd-container-toolkit/apt/"),
            rocm: repository("/rocm/apt/VERSION"),
            amdgpu: repository("/amdgpu/VERSION/ubuntu"),
        }
    }

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
        // The origin ends on a line of preferences.d, where a comma begins something else.
        source.check("repositories.origin", &origin, word(&origin))?;
        Ok(Repositories {
            key: key(self.key.unwrap_or_else(|| KEY.to_owned()), source)?,
            fingerprints: fingerprints.collect::<Result<_, _>>()?,
            origin,
            container_toolkit: checked(
                self.container_toolkit,
                "container-toolkit",
                CONTAINER_TOOLKIT,
                source,
            )?,
            rocm: checked(self.rocm, "rocm", ROCM, source)?,
            amdgpu: checked(self.amdgpu, "amdgpu", AMDGPU, source)?,
        })
    }
}

fn key(key: String, source: &Source) -> Result<String, Error> {
    let is_path = key.starts_with('/');
    let fits = if is_path { path::absolute(Path::new(&key)) } else { url(&key, &SCHEMES) };
    source.check("repositories.key", &key, fits)?;
    Ok(if is_path { format!("file://{key}") } else { key })
}

/// Parses a fingerprint as gpg prints it, with or without blanks.
fn fingerprint(text: &str) -> Result<String, String> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    if matches!(digits.len(), 40 | 64) && digits.chars().all(|c| c.is_ascii_hexdigit()) {
        return Ok(digits.to_ascii_uppercase());
    }
    Err(format!(
        "{text:?} is no fingerprint, which has 40 hexadecimal digits (a key's short name is not enough)"
    ))
}

fn checked(
    written: Option<RepositoryDocument>,
    name: &str,
    default: &str,
    source: &Source,
) -> Result<Repository, Error> {
    let RepositoryDocument { url: url_of, suite, component } = written.unwrap_or_default();
    let url_of = url_of.unwrap_or_else(|| default.to_owned());
    let component = component.unwrap_or_else(|| "main".to_owned());
    let key = |key: &str| format!("repositories.{name}.{key}");
    source.check(&key("url"), &url_of, url(&url_of, &SCHEMES))?;
    source.check(&key("component"), &component, word(&component))?;
    if let Some(suite) = &suite {
        source.check(&key("suite"), suite, word(suite))?;
    }
    Ok(Repository { url: url_of, suite, component })
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
