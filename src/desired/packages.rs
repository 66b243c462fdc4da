//! AMD's packages: the repositories that they come from, and what of them should be there.

use std::collections::BTreeSet;
use std::path::Path;

use reconcile::{Action, Check, Content, Desired, Effect, Kind, Package, Stage};
use root::Attributes;
use serde::Serialize;

use super::rocm_installer;
use crate::component::Component;
use crate::config::{self, Config, Repository, RocmFrom, Wanted};
use crate::driver::{Bring, Distribution, PACKAGE};
use crate::packages::{Known, Packages};
use crate::render::{self, APT_PIN, APT_SOURCES, Templates};

/// What notes are about.
const PACKAGES: &str = "packages";

/// The release of ROCm whose tools are taken where none is configured.
pub const ROCM: &str = "7.2.4";

/// Which packages come first.
const PIN: &str = "/etc/apt/preferences.d/rocworker-amd.pref";

/// Where the key that signs repositories lies.
const KEYRING: &str = "/etc/apt/keyrings/rocworker-amd.gpg";

const CONTAINER_TOOLKIT: &str = "amd-container-toolkit";
const ROCM_SMI: &str = "rocm-smi-lib";

/// Why the files of a repository cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Template(#[from] render::Error),
    #[error("template {template} gives no {field}: {wanted}, which apt would need; mend the template")]
    Unfit { template: &'static str, field: &'static str, wanted: String },
}

/// What should be so of packages. `driver`: those that the kernel driver takes. `is_container`: the kernel is another's.
///
/// # Errors
/// When a template does not give what apt reads.
pub fn actions(
    config: &Config,
    found: &Packages,
    templates: &Templates,
    driver: &[Bring],
    is_container: bool,
) -> Result<Desired, Error> {
    Ok(wanted(config, found, templates, driver, is_container)?.of(Component::Packages))
}

fn wanted(
    config: &Config,
    found: &Packages,
    templates: &Templates,
    driver: &[Bring],
    is_container: bool,
) -> Result<Desired, Error> {
    let mut desired = Desired::default();
    // `None`: the distribution's own.
    let mut wanted: Vec<(Option<Source>, Package, &str)> = driver.iter().map(of_driver).collect();
    for (want, source, name, reason) in [
        (
            config.packages.container_toolkit,
            Source::ContainerToolkit,
            CONTAINER_TOOLKIT,
            "AMD's container toolkit",
        ),
        (
            config.packages.rocm_smi,
            Source::Rocm,
            ROCM_SMI,
            "rocm-smi tells of temperature, clocks and memory",
        ),
    ] {
        match want {
            Wanted::Install => wanted.push((Some(source), Package::present(name), reason)),
            Wanted::Absent => {
                desired.push(Action::package(Package::absent(name), "it is configured as absent"))
            }
            Wanted::Keep => {}
        }
    }
    if config.rocm.install == Some(RocmFrom::Apt) {
        let rocm = config.rocm.packages.iter();
        wanted.extend(rocm.map(|name| (Some(Source::Rocm), Package::present(name), "ROCm's user space")));
    }
    let by_installer = config.rocm.install == Some(RocmFrom::AmdgpuInstall);
    if wanted.is_empty() && !by_installer {
        return Ok(desired);
    }
    let sources: BTreeSet<Source> = wanted.iter().filter_map(|(source, ..)| *source).collect();
    let needs_suite = |source: &Source| source.configured(config).suite.is_none();
    let needs_it = sources.iter().any(needs_suite) || by_installer && needs_suite(&Source::Rocm);
    let distribution = match &found.distribution {
        Ok(distribution) => Some(*distribution),
        Err(_) if !needs_it => None,
        Err(unfit) => {
            desired.problem(
                PACKAGES,
                format!(
                    "{unfit}: what there is of AMD's packages stays as it is; where a repository has packages for this \
                     release, name its suite in the configuration (repositories.….suite)"
                ),
            );
            desired.undecided.push(Component::Packages.as_ref().to_owned());
            return Ok(desired);
        }
    };
    let mut files = Files { config, distribution, found, templates, keyring: false };
    for source in sources {
        files.add(source, &mut desired)?;
    }
    if by_installer {
        let suite = files.suite(Source::Rocm).to_owned();
        rocm_installer::push(config, &suite, is_container, &mut desired);
    }
    if driver.iter().any(|bring| bring.waits) {
        wanted.retain(|(_, package, _)| package.name != PACKAGE);
    }
    for (source, package, reason) in wanted {
        let is_driver = package.name == PACKAGE;
        let mut action = Action::package(package, reason);
        if is_driver {
            // Without them dkms builds nothing, and the package comes all the same.
            let headers = driver.iter().filter(|bring| bring.package.starts_with("linux-headers-"));
            action = headers
                .fold(action, |action, bring| action.after(Package::present(&bring.package).resource()));
        }
        let ours = source.filter(|source| files.somebodys(*source).is_none());
        desired.push(match ours {
            None => action,
            Some(source) => action.after(source.file("sources.list.d", "sources")),
        });
    }
    Ok(desired)
}

fn of_driver(bring: &Bring) -> (Option<Source>, Package, &'static str) {
    let source = (bring.package == PACKAGE).then_some(Source::Amdgpu);
    let package = match &bring.version {
        Some(version) => Package::exactly(&bring.package, version),
        None => Package::present(&bring.package),
    };
    (source, package, bring.why)
}

/// Whether the driver's repository is one of apt's sources already: what apt does not have of it then, it does not get.
#[must_use]
pub fn knows_driver(config: &Config, found: &Packages, distribution: Distribution) -> bool {
    let url = config.repositories.amdgpu.url.replace("VERSION", &Source::Amdgpu.version(config));
    let suite = config.repositories.amdgpu.suite.as_deref().unwrap_or_else(|| distribution.suite());
    found.sources.iter().any(|known| known.url == url.trim_end_matches('/') && known.suite == suite)
}

/// A repository of AMD's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    ContainerToolkit,
    Rocm,
    /// The driver's.
    Amdgpu,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Self::ContainerToolkit => "container-toolkit",
            Self::Rocm => "rocm",
            Self::Amdgpu => "amdgpu",
        }
    }

    fn about(self) -> &'static str {
        match self {
            Self::ContainerToolkit => "AMD's container toolkit",
            Self::Rocm => "ROCm",
            Self::Amdgpu => "AMD's kernel driver",
        }
    }

    fn configured(self, config: &Config) -> &Repository {
        match self {
            Self::ContainerToolkit => &config.repositories.container_toolkit,
            Self::Rocm => &config.repositories.rocm,
            Self::Amdgpu => &config.repositories.amdgpu,
        }
    }

    fn version(self, config: &Config) -> String {
        match self {
            Self::ContainerToolkit => String::new(),
            Self::Rocm => config.rocm.version.as_deref().unwrap_or(ROCM).to_owned(),
            Self::Amdgpu => match &config.driver {
                config::Driver::AmdgpuDkms(release) => release.to_string(),
                config::Driver::Keep => String::new(),
            },
        }
    }

    fn file(self, folder: &str, extension: &str) -> String {
        format!("/etc/apt/{folder}/rocworker-{}.{extension}", self.name())
    }
}

struct Files<'a> {
    config: &'a Config,
    /// `None` where every suite is configured.
    distribution: Option<Distribution>,
    found: &'a Packages,
    templates: &'a Templates,
    /// Whether the key and the pin are wanted already.
    keyring: bool,
}

#[derive(Serialize)]
struct Context<'a> {
    about: &'a str,
    url: &'a str,
    suite: &'a str,
    component: &'a str,
    keyring: &'a str,
    origin: &'a str,
}

impl Files<'_> {
    fn url(&self, source: Source) -> String {
        source.configured(self.config).url.replace("VERSION", &source.version(self.config))
    }

    fn suite(&self, source: Source) -> &str {
        let configured = source.configured(self.config).suite.as_deref();
        configured.unwrap_or_else(|| self.distribution.map_or("", Distribution::suite))
    }

    /// The file of somebody else's in which the repository is configured already.
    fn somebodys(&self, source: Source) -> Option<&Known> {
        let url = self.url(source);
        let (url, suite) = (url.trim_end_matches('/'), self.suite(source));
        let is_it = |known: &&Known| known.url == url && known.suite == suite && !is_ours(&known.file);
        self.found.sources.iter().find(is_it)
    }

    /// The key, the pin and the repository, in this order: what apt is told of must be there.
    fn add(&mut self, source: Source, desired: &mut Desired) -> Result<(), Error> {
        if let Some(known) = self.somebodys(source) {
            desired.note(
                PACKAGES,
                format!(
                    "{} is configured in {} already, and used as it is there",
                    known.url,
                    known.file.display()
                ),
            );
            return Ok(());
        }
        let repository = source.configured(self.config);
        let (url, suite) = (self.url(source), self.suite(source).to_owned());
        let suite = suite.as_str();
        let context = Context {
            about: source.about(),
            url: &url,
            suite,
            component: &repository.component,
            keyring: KEYRING,
            origin: &self.config.repositories.origin,
        };
        let sources = self.templates.render(APT_SOURCES, &context)?;
        for (field, wanted) in [("URIs", url.as_str()), ("Suites", suite), ("Signed-By", KEYRING)] {
            says(APT_SOURCES, &sources, field, wanted)?;
        }
        let pin = self.templates.render(APT_PIN, &context)?;
        let release = format!("release o={}", self.config.repositories.origin);
        says(APT_PIN, &pin, "Pin", &release)?;
        says(APT_PIN, &pin, "Pin-Priority", "1001")?;
        if !self.keyring {
            self.keyring = true;
            desired.push(self.key());
            let reason = "AMD's packages come before a distribution's of the same name";
            desired.push(Action::file(Stage::Shape, PIN, pin, reason));
        }
        let path = source.file("sources.list.d", "sources");
        let update =
            Effect::AptUpdate { source: path.clone().into(), uri: url.clone(), suite: suite.to_owned() };
        let action = Action::file(Stage::Shape, path, sources, "apt finds AMD's packages here");
        desired.push(action.after(KEYRING).with(update));
        Ok(())
    }

    fn key(&self) -> Action {
        let repositories = &self.config.repositories;
        let content = Content::Fetched {
            url: repositories.key.clone(),
            check: Check::OpenPgp(repositories.fingerprints.clone()),
            attributes: Attributes { mode: 0o644, owner: None },
        };
        Action::new(Stage::Shape, KEYRING, Kind::Owned(content), "the key that signs AMD's packages")
    }
}

/// Whether a file of apt's is one that rocworker writes: two of them may name one repository.
fn is_ours(file: &Path) -> bool {
    file.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with("rocworker-"))
}

/// That a template has a field with this value: apt takes a file without it, and does something else.
fn says(template: &'static str, text: &str, field: &'static str, wanted: &str) -> Result<(), Error> {
    let says =
        |line: &str| line.split_once(':').is_some_and(|(key, value)| key == field && value.trim() == wanted);
    if text.lines().any(says) {
        return Ok(());
    }
    Err(Error::Unfit { template, field, wanted: wanted.to_owned() })
}
