//! The names by which ClusterBloom has ROCm installed, for those who come from there: in the configuration, or in the
//! environment of a command.

use std::collections::BTreeMap;

use super::packages::{Rocm, SCHEMES, url};
use super::{Error, RocmFrom, Source};

/// What ClusterBloom has where nothing else is said.
pub(super) const BASE_URL: &str = "https://repo.radeon.com/amdgpu-install/6.3.2/ubuntu/";
pub(super) const DEB_PACKAGE: &str = "amdgpu-install_6.3.60302-1_all.deb";

const GPU_NODE: &str = "GPU_NODE";
const ROCM_BASE_URL: &str = "ROCM_BASE_URL";
const ROCM_DEB_PACKAGE: &str = "ROCM_DEB_PACKAGE";

/// In the order in which they are mentioned.
const NAMES: [&str; 3] = [GPU_NODE, ROCM_BASE_URL, ROCM_DEB_PACKAGE];

/// What one place says by these names. `GPU_NODE`: `true` is ROCm by amdgpu-install, `false` asks for nothing.
/// `ROCM_BASE_URL`: the folder with a folder for each of Ubuntu's releases. `ROCM_DEB_PACKAGE`: the file in that folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterBloom(BTreeMap<&'static str, String>);

impl ClusterBloom {
    /// From an environment; one that is empty counts as one that is not set.
    ///
    /// # Errors
    /// In a sentence: which one cannot be used.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let set = |name| Some((name, variable(name).filter(|value| !value.is_empty())?));
        let it = Self(NAMES.into_iter().filter_map(set).collect());
        it.fit().map_err(|(name, problem)| format!("{name} in the environment: {problem}"))?;
        Ok(it)
    }

    /// From a configuration.
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

    /// The name of the one that is wrong, and why.
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
    pub(super) fn check(&self, mut rocm: Rocm, source: &Source) -> Result<Rocm, Error> {
        self.fit().map_err(|(name, problem)| source.wrong(name, None, format!("{name}: {problem}")))?;
        let contradiction = match (self.get(GPU_NODE), rocm.install) {
            (Some("true"), Some(RocmFrom::Keep | RocmFrom::Apt | RocmFrom::TheRock)) => Some("true"),
            (Some("false"), Some(RocmFrom::AmdgpuInstall)) => Some("false"),
            _ => None,
        };
        if let Some(said) = contradiction {
            let problem =
                format!("{GPU_NODE}: {said} and rocm.install contradict each other; keep rocm.install");
            return Err(source.wrong(GPU_NODE, None, problem));
        }
        self.put_into(&mut rocm);
        unchecked(&rocm).map_err(|problem| source.wrong(ROCM_BASE_URL, None, problem))?;
        Ok(rocm)
    }

    fn put_into(&self, rocm: &mut Rocm) {
        if self.get(GPU_NODE) == Some("true") {
            rocm.install = Some(RocmFrom::AmdgpuInstall);
        }
        let file = &mut rocm.installer;
        for (name, field) in [(ROCM_BASE_URL, &mut file.base_url), (ROCM_DEB_PACKAGE, &mut file.package)] {
            if let Some(value) = self.get(name) {
                value.clone_into(field);
            }
        }
    }

    /// What an environment says goes where the configuration (`written`) says nothing. The sentences name the variables
    /// that are not used.
    pub(super) fn beside(&self, written: &Self, rocm: &mut Rocm) -> Result<Vec<String>, String> {
        let mut used = self.clone();
        let is_open = rocm.install.is_none();
        used.0.retain(|name, _| written.get(name).is_none() && (*name != GPU_NODE || is_open));
        used.put_into(rocm);
        unchecked(rocm)?;
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
        Ok(unused.collect())
    }
}

/// A file that nothing vouches for comes from a server that does.
fn unchecked(rocm: &Rocm) -> Result<(), String> {
    let is_open = rocm.installer.base_url.starts_with("http://") && rocm.installer.sha256.is_none();
    if rocm.install == Some(RocmFrom::AmdgpuInstall) && is_open {
        return Err(format!(
            "{ROCM_BASE_URL}: what comes from {} can be changed on its way: name an https:// URL, or the file's checksum \
             (rocm.sha256)",
            rocm.installer.base_url
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Config;

    fn parsed(text: &str) -> Result<Config, String> {
        Config::parse(Path::new("/c"), text).map_err(|error| error.to_string())
    }

    fn environment(variables: &[(&str, &str)]) -> Result<ClusterBloom, String> {
        ClusterBloom::of(|name| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_configuration_has_these_names() {
        for (text, install) in [
            ("", RocmFrom::Keep),
            ("GPU_NODE: false", RocmFrom::Keep),
            ("GPU_NODE: false\nrocm: {install: apt}", RocmFrom::Apt),
            ("GPU_NODE: true", RocmFrom::AmdgpuInstall),
            ("GPU_NODE: true\nrocm: {install: amdgpu-install}", RocmFrom::AmdgpuInstall),
        ] {
            let rocm = parsed(text).unwrap().rocm;
            assert_eq!(rocm.install.unwrap_or(RocmFrom::Keep), install, "{text}");
            assert_eq!(rocm.installer.base_url, BASE_URL, "{text}");
            assert_eq!(rocm.installer.package, DEB_PACKAGE, "{text}");
        }
        let rocm = parsed("ROCM_BASE_URL: https://mirror/a\nROCM_DEB_PACKAGE: b_1.deb\n").unwrap().rocm;
        assert_eq!(
            (rocm.installer.base_url.as_str(), rocm.installer.package.as_str()),
            ("https://mirror/a", "b_1.deb")
        );
    }

    #[test]
    fn what_cannot_be_is_refused_with_its_line() {
        for (text, line, said) in [
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
            assert!(error.contains(said) && error.contains(&format!(":{line}")), "{text}: {error}");
        }
    }

    #[test]
    fn the_configuration_wins_over_the_environment() {
        let all = [("GPU_NODE", "true"), ("ROCM_BASE_URL", "https://env/"), ("ROCM_DEB_PACKAGE", "env.deb")];
        for (text, install, base, unused) in [
            ("", RocmFrom::AmdgpuInstall, "https://env/", 0),
            ("rocm: {install: keep}", RocmFrom::Keep, "https://env/", 3),
            ("GPU_NODE: false", RocmFrom::Keep, "https://env/", 3),
            ("ROCM_BASE_URL: https://file/", RocmFrom::AmdgpuInstall, "https://file/", 1),
        ] {
            let config = parsed(text).unwrap().beside(&environment(&all).unwrap()).unwrap();
            assert_eq!(config.rocm.install.unwrap_or(RocmFrom::Keep), install, "{text}");
            assert_eq!(config.rocm.installer.base_url, base, "{text}");
            assert_eq!(config.unused_variables.len(), unused, "{text}: {:?}", config.unused_variables);
        }
        for wrong in [("GPU_NODE", "yes"), ("ROCM_BASE_URL", "a b"), ("ROCM_DEB_PACKAGE", "a/b.deb")] {
            let error = environment(&[wrong]).unwrap_err();
            assert!(error.contains(wrong.0), "{error}");
        }
        assert_eq!(environment(&[("GPU_NODE", "")]).unwrap(), ClusterBloom::default());
    }
}
