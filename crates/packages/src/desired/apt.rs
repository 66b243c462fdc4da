//! AMD's packages: the repositories that they come from, and what of them should be there.

use std::collections::BTreeSet;

use config::{Component, Config, Managed, Packages as Tools, Repository, Rocm, Tool};
use minijinja::context;
use reconcile::sources::Known;
use reconcile::{Action, Check, Content, Desired, Effect, Kind, Package, Stage};
use render::{APT_PIN, APT_SOURCES, Error, Templates};
use root::Attributes;

use super::rocm;
use crate::Packages;
use crate::driver::{Bring, Distribution, PACKAGE};

/// The subject of this module's notes.
const PACKAGES: &str = "packages";

/// The release of ROCm whose tools are taken where none is configured.
pub const ROCM: &str = "7.2.4";

/// The preferences by which apt prefers packages of the managed repositories to others.
const PIN: &str = "/etc/apt/preferences.d/rocworker-amd.pref";

/// The key that signs AMD's repositories.
const KEYRING: &str = "/etc/apt/keyrings/rocworker-amd.gpg";

const CONTAINER_TOOLKIT: &str = "amd-container-toolkit";
const ROCM_SMI: &str = "rocm-smi-lib";

/// The desired state of packages. `driver`: the packages that the kernel driver needs; `None`: rocworker is not to run
/// amdgpu-install. `is_container`: the machine is a container, whose kernel is its host's.
///
/// # Errors
/// When a template does not give what apt reads.
pub fn actions(
    config: &Config,
    found: &Packages,
    templates: &Templates,
    driver: Option<&[Bring]>,
    is_container: bool,
) -> Result<Desired, Error> {
    let mut desired = Desired::default();
    let by_installer = match &config.rocm {
        Managed::On(Rocm::Installer { file, usecases }) if driver.is_some() => Some((file, &**usecases)),
        _ => None,
    };
    let driver = driver.unwrap_or_default();
    let required = |source, package, reason| Coming { source, package, reason, is_optional: false };
    let of_driver = |bring: &Bring| {
        let source = (bring.package.name == PACKAGE).then_some(Source::Amdgpu);
        required(source, bring.package.clone(), bring.why)
    };
    let mut wanted: Vec<Coming> = driver.iter().map(of_driver).collect();
    let Tools { container_toolkit, rocm_smi, .. } = &config.packages;
    for (tool, source, name, reason) in [
        (container_toolkit, Source::ContainerToolkit, CONTAINER_TOOLKIT, "AMD's container toolkit"),
        (rocm_smi, Source::Rocm, ROCM_SMI, "rocm-smi reports temperature, clocks and memory"),
    ] {
        match *tool {
            Managed::On(tool @ (Tool::Required | Tool::Optional)) => wanted.push(Coming {
                is_optional: tool == Tool::Optional,
                ..required(Some(source), Package::present(name), reason)
            }),
            Managed::On(Tool::Absent) => {
                desired.push(Action::package(Package::absent(name), "it is configured as absent"))
            }
            Managed::Off(_) => {}
        }
    }
    if let Managed::On(Rocm::Packages(names)) = &config.rocm {
        let rocm = |name| required(Some(Source::Rocm), Package::present(name), "ROCm's user space");
        wanted.extend(names.iter().map(rocm));
    }
    if wanted.is_empty() && by_installer.is_none() {
        return Ok(desired.of(Component::Packages));
    }
    let sources: BTreeSet<Source> = wanted.iter().filter_map(|it| it.source).collect();
    let needs_suite = |source: &Source| source.repository(config).suite.is_none();
    let needs_it = sources.iter().any(needs_suite) || by_installer.is_some() && needs_suite(&Source::Rocm);
    let distribution = match &found.distribution {
        Ok(distribution) => Some(*distribution),
        Err(_) if !needs_it => None,
        Err(unfit) => {
            let text = format!(
                "{unfit}: what there is of AMD's packages stays as it is; where a repository has packages for this \
                 release, name its suite in the configuration (repositories.….suite)"
            );
            if by_installer.is_some() || wanted.iter().any(|it| !it.is_optional) {
                desired.problem(PACKAGES, text);
            } else {
                desired.note(PACKAGES, text);
            }
            desired.leave(Component::Packages);
            return Ok(desired.of(Component::Packages));
        }
    };
    // Two files of rocworker's may name one repository.
    let is_unmanaged = |known: &&Known| {
        known.file.file_name().is_some_and(|name| !name.to_string_lossy().starts_with("rocworker-"))
    };
    // What only optional packages need is optional too.
    let is_optional =
        |of: &dyn Fn(&Coming) -> bool| wanted.iter().filter(|it| of(it)).all(|it| it.is_optional);
    let mut managed = BTreeSet::new();
    for source in sources {
        if let Some(Known { url, file, .. }) = source.known(config, distribution, found).find(is_unmanaged) {
            let text = format!("{url} is configured in {} already, and used as it is there", file.display());
            desired.note(PACKAGES, text);
            continue;
        }
        // What a file of apt names must be there: the key, the pin and the repository, in this order.
        let [pin, repository] = source.files(config, distribution, templates)?;
        if managed.is_empty() {
            let is_optional = is_optional(&|it| it.source.is_some());
            desired.push(key(config).optional(is_optional));
            desired.push(pin.optional(is_optional));
        }
        desired.push(repository.optional(is_optional(&|it| it.source == Some(source))));
        managed.insert(source);
    }
    let others = wanted.split_off(driver.len());
    if driver.iter().any(|bring| bring.waits) {
        wanted.retain(|it| it.package.name != PACKAGE);
    }
    let action = |Coming { source, package, reason, is_optional }| {
        let is_driver = package.name == PACKAGE;
        let action = Action::package(package, reason).optional(is_optional);
        // dkms builds nothing without the kernel's headers, so that the driver comes after them.
        let action = rocm::headers(driver).filter(|_| is_driver).fold(action, Action::after);
        match source.filter(|source| managed.contains(source)) {
            Some(source) => action.after(source.file()),
            None => action,
        }
    };
    desired.actions.extend(wanted.into_iter().map(action));
    if let Some(installer) = by_installer {
        let suite = Source::Rocm.suite(config, distribution);
        rocm::by_installer(config, installer, suite, driver, is_container, &mut desired);
    }
    desired.actions.extend(others.into_iter().map(action));
    Ok(desired.of(Component::Packages))
}

/// Whether the driver's repository is one of apt's sources already: what apt does not have of it then, it does not get.
#[must_use]
pub fn knows_driver(config: &Config, found: &Packages, distribution: &Distribution) -> bool {
    Source::Amdgpu.known(config, Some(distribution), found).next().is_some()
}

/// A package that should be there.
struct Coming {
    /// The managed repository that has the package. `None`: the distribution's own.
    source: Option<Source>,
    package: Package,
    reason: &'static str,
    is_optional: bool,
}

/// A repository of AMD's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    ContainerToolkit,
    Rocm,
    /// The repository of the kernel driver.
    Amdgpu,
}

impl Source {
    /// The repository's name in apt's files, and what it offers, for sentences.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::ContainerToolkit => ("container-toolkit", "AMD's container toolkit"),
            Self::Rocm => ("rocm", "ROCm"),
            Self::Amdgpu => ("amdgpu", "AMD's kernel driver"),
        }
    }

    fn repository(self, config: &Config) -> &Repository {
        match self {
            Self::ContainerToolkit => &config.repositories.container_toolkit,
            Self::Rocm => &config.repositories.rocm,
            Self::Amdgpu => &config.repositories.amdgpu,
        }
    }

    fn url(self, config: &Config) -> String {
        let version = match self {
            Self::ContainerToolkit => None,
            Self::Rocm => Some(config.rocm_version.as_deref().unwrap_or(ROCM).to_owned()),
            Self::Amdgpu => config.driver_release().map(ToString::to_string),
        };
        self.repository(config).url.replace("VERSION", &version.unwrap_or_default())
    }

    /// `distribution`: `None` where every suite is configured.
    fn suite<'a>(self, config: &'a Config, distribution: Option<&Distribution>) -> &'a str {
        let configured = self.repository(config).suite.as_deref();
        configured.or(distribution.map(|it| it.suite)).unwrap_or_default()
    }

    fn file(self) -> String {
        format!("/etc/apt/sources.list.d/rocworker-{}.sources", self.names().0)
    }

    /// The files in which the repository is configured already.
    fn known<'a>(
        self,
        config: &Config,
        distribution: Option<&Distribution>,
        found: &'a Packages,
    ) -> impl Iterator<Item = &'a Known> {
        let (url, suite) = (self.url(config), self.suite(config, distribution).to_owned());
        let is_it = move |known: &&Known| known.url == url.trim_end_matches('/') && known.suite == suite;
        found.sources.iter().filter(is_it)
    }

    /// The file of apt's preferences, and the file that names the repository.
    fn files(
        self,
        config: &Config,
        distribution: Option<&Distribution>,
        templates: &Templates,
    ) -> Result<[Action; 2], Error> {
        let (url, suite) = (self.url(config), self.suite(config, distribution));
        let (about, component) = (self.names().1, &self.repository(config).component);
        let origin = &config.repositories.origin;
        let context = context! { about, url => &url, suite, component, keyring => KEYRING, origin };
        let fields = [("URIs", url.as_str()), ("Suites", suite), ("Signed-By", KEYRING)];
        let sources = rendered(templates, APT_SOURCES, &context, &fields)?;
        let fields = [("Pin", &*format!("release o={origin}")), ("Pin-Priority", "1001")];
        let pin = rendered(templates, APT_PIN, &context, &fields)?;
        let reason = "AMD's packages come before a distribution's of the same name";
        let pin = Action::file(Stage::Shape, PIN, pin, reason);
        let source = self.file().into();
        let sources = Action::file(Stage::Shape, self.file(), sources, "apt finds AMD's packages here")
            .after(KEYRING)
            .with(Effect::AptUpdate { source, uri: url, suite: suite.to_owned() });
        Ok([pin, sources])
    }
}

fn key(config: &Config) -> Action {
    let repositories = &config.repositories;
    let content = Content::Fetched {
        url: repositories.key.clone(),
        check: Check::OpenPgp(repositories.fingerprints.clone()),
        attributes: Attributes { mode: 0o644, owner: None },
    };
    Action::new(Stage::Shape, KEYRING, Kind::Owned(content), "the key that signs AMD's packages")
}

/// What a template gives, where it has these fields with these values: apt takes a file without them, and does something
/// that was not meant.
fn rendered(
    templates: &Templates,
    template: &'static str,
    context: &minijinja::Value,
    fields: &[(&str, &str)],
) -> Result<String, Error> {
    let text = templates.render(template, context)?;
    let lines: Vec<(&str, &str)> = text.lines().filter_map(|line| line.split_once(':')).collect();
    let is_missing =
        |(key, value): &&(&str, &str)| !lines.iter().any(|it| it.0 == *key && it.1.trim() == *value);
    match fields.iter().find(is_missing) {
        Some((field, value)) => {
            Err(templates.unfit(template, format!("no {field}: {value}, which apt would need")))
        }
        None => Ok(text),
    }
}
