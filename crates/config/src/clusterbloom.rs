//! The names by which ClusterBloom has ROCm installed, in the configuration or in the environment of a command. They
//! serve people who come from ClusterBloom.

use std::collections::BTreeMap;

use super::download::{SCHEMES, url};
use super::packages::RocmDocument;
use super::{ComputeRuntime, Error, RocmFrom, Source, releases};

/// ClusterBloom's default for `ROCM_BASE_URL`.
const BASE_URL: &str = "https://repo.radeon.com/amdgpu-install/6.3.2/ubuntu/";

/// The installer's file by the release in its folder's URL.
const FILES: &str = include_str!("data/amdgpu-install.txt");

const GPU_NODE: &str = "GPU_NODE";
const ROCM_BASE_URL: &str = "ROCM_BASE_URL";
const ROCM_DEB_PACKAGE: &str = "ROCM_DEB_PACKAGE";

/// ClusterBloom's names, in the order in which messages mention them.
const NAMES: [&str; 3] = [GPU_NODE, ROCM_BASE_URL, ROCM_DEB_PACKAGE];

/// The values that a configuration or an environment gives to ClusterBloom's names. `GPU_NODE`: `true` is ROCm by
/// amdgpu-install, `false` is `compute-runtime: none`. `ROCM_BASE_URL`: the folder with a folder for each of Ubuntu's
/// releases. `ROCM_DEB_PACKAGE`: the file in that folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterBloom(BTreeMap<&'static str, String>);

impl ClusterBloom {
    /// Reads an environment through `variable`. An empty variable counts as unset.
    ///
    /// # Errors
    /// A sentence that names the variable which cannot be used.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let set = |name| Some((name, variable(name).filter(|value| !value.is_empty())?));
        let it = Self(NAMES.into_iter().filter_map(set).collect());
        it.fit().map_err(|(name, problem)| format!("{name} in the environment: {problem}"))?;
        Ok(it)
    }

    /// Takes the values of a configuration's keys.
    pub(super) fn written(
        gpu_node: Option<bool>,
        base_url: Option<String>,
        deb_package: Option<String>,
    ) -> Self {
        let values = [gpu_node.map(|it| it.to_string()), base_url, deb_package];
        Self(NAMES.into_iter().zip(values).filter_map(|(name, value)| Some((name, value?))).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Checks the variables. The error is the name of the first wrong one, and why it is wrong.
    fn fit(&self) -> Result<(), (&'static str, String)> {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '~');
        for (name, value) in &self.0 {
            let is_file = !value.starts_with('.') && value.ends_with(".deb") && value.chars().all(fits);
            let problem = match *name {
                ROCM_BASE_URL => url(value, &SCHEMES).err(),
                ROCM_DEB_PACKAGE => (!is_file)
                    .then(|| format!("{value:?} is not a file's name, without folders, that ends with .deb")),
                _ => (!matches!(&**value, "true" | "false"))
                    .then(|| format!("{value:?} is neither true nor false")),
            };
            problem.map_or(Ok(()), |problem| Err((*name, problem)))?;
        }
        Ok(())
    }

    /// What the configuration says by these names goes into what it says of ROCm.
    pub(super) fn check(&self, rocm: &mut RocmDocument, source: &Source) -> Result<(), Error> {
        self.fit().map_err(|(name, problem)| source.wrong(name, None, format!("{name}: {problem}")))?;
        let contradiction = match (self.get(GPU_NODE), rocm.install) {
            (Some("true"), Some(RocmFrom::Keep | RocmFrom::Apt | RocmFrom::TheRock)) => Some("true"),
            (Some("false"), Some(RocmFrom::AmdgpuInstall)) => Some("false"),
            _ => None,
        };
        if let Some(value) = contradiction {
            let problem =
                format!("{GPU_NODE}: {value} and rocm.install contradict each other; keep rocm.install");
            return Err(source.wrong(GPU_NODE, None, problem));
        }
        self.put_into(rocm).map_err(|problem| source.wrong(ROCM_BASE_URL, None, problem))
    }

    fn put_into(&self, rocm: &mut RocmDocument) -> Result<(), String> {
        if self.get(GPU_NODE) == Some("true") {
            rocm.install = Some(RocmFrom::AmdgpuInstall);
        }
        let url = self.get(ROCM_BASE_URL).unwrap_or(BASE_URL);
        let package = self.get(ROCM_DEB_PACKAGE).map(str::to_owned).or_else(|| file(url));
        if rocm.install == Some(RocmFrom::AmdgpuInstall) {
            unchecked(url, rocm)?;
            if package.is_none() {
                return Err(format!(
                    "{ROCM_BASE_URL}: {url} names no release whose installer rocworker knows: name the file there \
                     ({ROCM_DEB_PACKAGE})"
                ));
            }
        }
        url.clone_into(&mut rocm.base_url);
        rocm.package = package.unwrap_or_default();
        Ok(())
    }

    /// What an environment says goes where the configuration (`written`) says nothing. `runtime`: what the configuration
    /// says of `compute-runtime`.
    pub(super) fn beside(
        &self,
        written: &Self,
        runtime: Option<ComputeRuntime>,
        rocm: &mut RocmDocument,
    ) -> Result<Beside, String> {
        let mut used = self.clone();
        let fits_runtime = match self.get(GPU_NODE) {
            Some("false") => runtime.is_none(),
            _ => !matches!(runtime, Some(ComputeRuntime::None | ComputeRuntime::Cuda)),
        };
        let is_open = rocm.install.is_none() && fits_runtime;
        used.0.retain(|name, _| written.get(name).is_none() && (*name != GPU_NODE || is_open));
        let mut all = used.clone();
        all.0.extend(written.0.clone());
        all.put_into(rocm)?;
        let by_another = rocm.install != Some(RocmFrom::AmdgpuInstall);
        let why = |name: &str| match used.get(name) {
            None => Some("the configuration says otherwise"),
            Some(_) if by_another && name != GPU_NODE => {
                Some("ROCm is not installed by amdgpu-install here (rocm.install)")
            }
            Some(_) => None,
        };
        let unused = self
            .0
            .keys()
            .filter_map(|name| Some(format!("{name} of the environment is not used: {}", why(name)?)));
        Ok(Beside { unused: unused.collect(), is_off: used.get(GPU_NODE) == Some("false") })
    }

    /// What a configuration says in vain, in sentences: of an installer that does not run. `GPU_NODE: false` says so itself.
    pub(super) fn unused(&self, rocm: &RocmDocument) -> Vec<String> {
        if rocm.install == Some(RocmFrom::AmdgpuInstall) || self.get(GPU_NODE) == Some("false") {
            return Vec::new();
        }
        let names = self.0.keys().filter(|name| **name != GPU_NODE);
        let sentence = |name: &&str| {
            format!(
                "{name} of the configuration is not used: amdgpu-install does not install ROCm here; {GPU_NODE}: true lets it"
            )
        };
        names.map(sentence).collect()
    }
}

/// What the configuration does with the variables of an environment that are no keys of its own.
pub(super) struct Beside {
    /// Sentences that name the variables which are not used.
    pub(super) unused: Vec<String>,
    /// Whether `GPU_NODE: false` leaves AMD's GPUs alone.
    pub(super) is_off: bool,
}

/// A file that nothing vouches for comes from a server that does.
fn unchecked(url: &str, rocm: &RocmDocument) -> Result<(), String> {
    if url.starts_with("http://") && rocm.sha256.is_none() {
        return Err(format!(
            "{ROCM_BASE_URL}: what comes from {url} can be changed on its way: name an https:// URL, or the file's checksum \
             (rocm.sha256)"
        ));
    }
    Ok(())
}

/// The installer's file in the folder of a release, by the last part of the URL that is a release of the table.
fn file(url: &str) -> Option<String> {
    let (_, rest) = url.split_once("://")?;
    rest.split('/').skip(1).filter_map(file_of).last()
}

fn file_of(release: &str) -> Option<String> {
    let numbers: Vec<u32> = release.split('.').map(releases::number).collect::<Option<_>>()?;
    let (major, minor, patch) = match numbers.as_slice() {
        [major, minor] => (major, minor, 0),
        [major, minor, patch] => (major, minor, *patch),
        _ => return None,
    };
    let is_it = |[from, to, _]: &[&str; 3]| releases::is_between(Some((*major, *minor)), from, to);
    let [.., file] = releases::rows::<3>(FILES).find(is_it)?;
    let code = format!("{major}{minor:02}{patch:02}");
    Some(
        file.replace("RELEASE", release).replace("MINOR", &format!("{major}.{minor}")).replace("CODE", &code),
    )
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::{Config, InstallerFile, Managed, Off, Rocm};

    const DEB_PACKAGE: &str = "amdgpu-install_6.3.60302-1_all.deb";

    fn parsed(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("/c"), text).map_err(|error| error.to_string())
    }

    fn beside(text: &str, environment: &ClusterBloom) -> Result<Config, String> {
        Config::parse_beside(Path::new("/c"), text, environment).map_err(|error| error.to_string())
    }

    /// What installs ROCm.
    fn install(config: &Config) -> RocmFrom {
        match config.rocm {
            Managed::On(Rocm::Installer { .. }) => RocmFrom::AmdgpuInstall,
            Managed::On(Rocm::Packages(_)) => RocmFrom::Apt,
            Managed::On(Rocm::Archive(_)) => RocmFrom::TheRock,
            Managed::Off(_) => RocmFrom::Keep,
        }
    }

    fn file(config: &Config) -> &InstallerFile {
        match &config.rocm {
            Managed::On(Rocm::Installer { file, .. }) => file,
            other => panic!("amdgpu-install is not to be run: {other:?}"),
        }
    }

    fn environment(variables: &[(&str, &str)]) -> Result<ClusterBloom, String> {
        ClusterBloom::of(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_configuration_has_these_names() {
        let file = |text: &str| {
            let InstallerFile { base_url, package, .. } = file(&parsed(text).unwrap()).clone();
            [base_url, package]
        };
        for text in ["GPU_NODE: true", "GPU_NODE: true\nrocm: {install: amdgpu-install}"] {
            assert_eq!(file(text), [BASE_URL, DEB_PACKAGE], "{text}");
        }
        let named = "GPU_NODE: true\nROCM_BASE_URL: https://mirror/a\nROCM_DEB_PACKAGE: b_1.deb\n";
        assert_eq!(file(named), ["https://mirror/a", "b_1.deb"]);
        for text in ["", "GPU_NODE: false", "GPU_NODE: false\nrocm: {install: apt}"] {
            assert_eq!(install(&parsed(text).unwrap()), RocmFrom::Keep, "{text}");
        }
    }

    /// AMD's guides fetch files of these names.
    #[test]
    fn the_installers_file_follows_the_release_in_the_url() {
        for (url, expected) in [
            ("https://repo.radeon.com/amdgpu-install/6.3.2/ubuntu/", "amdgpu-install_6.3.60302-1_all.deb"),
            ("https://repo.radeon.com/amdgpu-install/6.2.4/ubuntu", "amdgpu-install_6.2.60204-1_all.deb"),
            ("https://repo.radeon.com/amdgpu-install/6.4/ubuntu/", "amdgpu-install_6.4.60400-1_all.deb"),
            ("https://repo.radeon.com/amdgpu-install/7.0/ubuntu/", "amdgpu-install_7.0.70000-1_all.deb"),
            ("https://repo.radeon.com/amdgpu-install/7.0.2/ubuntu/", "amdgpu-install_7.0.2.70002-1_all.deb"),
            ("https://repo.radeon.com/amdgpu-install/7.2.4/ubuntu/", "amdgpu-install_7.2.4.70204-1_all.deb"),
            ("https://10.0.0.1/mirror/7.1.1/ubuntu/24.04", "amdgpu-install_7.1.1.70101-1_all.deb"),
        ] {
            let config = parsed(&format!("GPU_NODE: true\nROCM_BASE_URL: {url}")).unwrap();
            assert_eq!(file(&config).package, expected, "{url}");
        }
        for url in [
            "https://repo.radeon.com/amdgpu-install/latest/ubuntu/",
            "https://repo.radeon.com/amdgpu-install/30.30.4/ubuntu/",
            "https://7.2.4/amdgpu-install",
        ] {
            let text = format!("GPU_NODE: true\nROCM_BASE_URL: {url}");
            let error = parsed(&text).unwrap_err();
            assert!(error.contains(":2: ") && error.contains("(ROCM_DEB_PACKAGE)"), "{error}");
            let named = parsed(&format!("{text}\nROCM_DEB_PACKAGE: a.deb")).unwrap();
            assert_eq!(file(&named).package, "a.deb");
            // Nothing is fetched from there.
            parsed(&format!("ROCM_BASE_URL: {url}")).unwrap();
        }
        let text = "ROCM_BASE_URL: https://a/7.2/";
        assert_eq!(parsed(text).unwrap().unused_keys.len(), 1);
        let beside = beside(text, &environment(&[("GPU_NODE", "true")]).unwrap()).unwrap();
        assert_eq!(file(&beside).package, "amdgpu-install_7.2.70200-1_all.deb");
        assert_eq!(beside.unused_keys, [""; 0]);
    }

    #[test]
    fn what_a_configuration_says_of_an_installer_that_does_not_run_is_named() {
        let url = "ROCM_BASE_URL: https://a/7.2/";
        for (text, unused) in [
            (url.to_owned(), &["ROCM_BASE_URL"][..]),
            ("ROCM_DEB_PACKAGE: a.deb".to_owned(), &["ROCM_DEB_PACKAGE"]),
            (
                format!("{url}\nROCM_DEB_PACKAGE: a.deb\nrocm: {{install: apt}}"),
                &["ROCM_BASE_URL", "ROCM_DEB_PACKAGE"],
            ),
            (format!("GPU_NODE: true\n{url}"), &[]),
            (format!("rocm: {{install: amdgpu-install}}\n{url}"), &[]),
            (format!("GPU_NODE: false\n{url}"), &[]),
        ] {
            let reports = parsed(&text).unwrap().unused_keys;
            let names: Vec<&str> = reports.iter().map(|report| report.split(' ').next().unwrap()).collect();
            assert_eq!(names, unused, "{text}: {reports:?}");
            assert!(
                reports.iter().all(|report| report.contains(" of the configuration is not used: ")),
                "{reports:?}"
            );
        }
    }

    #[test]
    fn a_node_without_gpus_has_nothing_done_about_gpus() {
        let (on, off) = (Managed::On(()), Managed::Off(Off::NoGpu));
        for (text, environment_says, expected) in [
            ("GPU_NODE: false", "", off),
            ("GPU_NODE: false\ncompute-runtime: none", "", off),
            ("GPU_NODE: true", "", on),
            ("GPU_NODE: true\ncompute-runtime: rocm", "", on),
            ("", "false", off),
            ("", "true", on),
            ("compute-runtime: rocm", "false", on),
            ("enable-gpu: true", "false", on),
            ("rocm: {install: keep}", "false", on),
            ("GPU_NODE: true", "false", on),
        ] {
            let config = beside(text, &environment(&[("GPU_NODE", environment_says)]).unwrap()).unwrap();
            assert_eq!(config.gpus, expected, "{text:?} {environment_says:?}");
            assert_eq!(config.needs_gpu, text.contains("rocm\n") || text.ends_with(": rocm"), "{text:?}");
            let is_used = expected == off || environment_says != "false";
            assert_eq!(
                config.unused_variables.is_empty(),
                is_used,
                "{text:?}: {:?}",
                config.unused_variables
            );
        }
        let config = beside("compute-runtime: none", &environment(&[("GPU_NODE", "true")]).unwrap()).unwrap();
        assert_eq!((config.gpus, &config.rocm), (off, &Managed::Off(Off::Key("rocm.install: keep"))));
        assert_eq!(config.unused_variables.len(), 1);
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        for (text, line, part) in [
            ("GPU_NODE: false\ncompute-runtime: rocm", 1, "contradict"),
            ("compute-runtime: none\nGPU_NODE: true", 2, "contradict"),
            ("enable-gpu: true\nGPU_NODE: false", 2, "contradict"),
            ("rocm: {install: apt}\nGPU_NODE: true", 2, "contradict"),
            ("GPU_NODE: false\nrocm: {install: amdgpu-install}", 1, "contradict"),
            ("\nROCM_BASE_URL: ftp://a/b", 2, "no URL"),
            ("ROCM_DEB_PACKAGE: ../a.deb", 1, "without folders"),
            ("ROCM_DEB_PACKAGE: a.rpm", 1, ".deb"),
            ("GPU_NODE: true\nROCM_BASE_URL: http://a/b", 2, "rocm.sha256"),
            ("rocm:\n  install: amdgpu-install\n  usecases: [\"rocm --force\"]", 3, "usecase"),
            ("rocm: {sha256: abc}", 1, "SHA-256"),
        ] {
            let error = parsed(text).unwrap_err();
            assert!(error.contains(part) && error.contains(&format!(":{line}")), "{text}: {error}");
        }
    }

    #[test]
    fn the_configuration_wins_over_the_environment() {
        let all = [("GPU_NODE", "true"), ("ROCM_BASE_URL", "https://env/"), ("ROCM_DEB_PACKAGE", "env.deb")];
        for (text, base, unused) in [
            ("", Some("https://env/"), 0),
            ("rocm: {install: keep}", None, 3),
            ("GPU_NODE: false", None, 3),
            ("ROCM_BASE_URL: https://file/", Some("https://file/"), 1),
        ] {
            let config = beside(text, &environment(&all).unwrap()).unwrap();
            match base {
                Some(base) => assert_eq!(file(&config).base_url, base, "{text}"),
                None => assert_eq!(install(&config), RocmFrom::Keep, "{text}"),
            }
            assert_eq!(config.unused_variables.len(), unused, "{text}: {:?}", config.unused_variables);
        }
        for wrong in [("GPU_NODE", "yes"), ("ROCM_BASE_URL", "a b"), ("ROCM_DEB_PACKAGE", "a/b.deb")] {
            let error = environment(&[wrong]).unwrap_err();
            assert!(error.contains(wrong.0), "{error}");
        }
        assert_eq!(environment(&[("GPU_NODE", "")]).unwrap(), ClusterBloom::default());
    }
}
