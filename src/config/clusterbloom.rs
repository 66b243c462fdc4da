//! The names by which ClusterBloom has ROCm installed, for those who come from there: in the configuration, or in the
//! environment of a command.

use super::packages::{Rocm, url};
use super::{Error, RocmFrom, Source};

/// What that text has where nothing else is said.
pub(super) const BASE_URL: &str = "https://repo.radeon.com/amdgpu-install/6.3.2/ubuntu/";
pub(super) const DEB_PACKAGE: &str = "amdgpu-install_6.3.60302-1_all.deb";

const GPU_NODE: &str = "GPU_NODE";
const ROCM_BASE_URL: &str = "ROCM_BASE_URL";
const ROCM_DEB_PACKAGE: &str = "ROCM_DEB_PACKAGE";

/// The three of them, as they are written in one place.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClusterBloom {
    /// `true`: ROCm by amdgpu-install; `false` asks for nothing.
    pub gpu_node: Option<bool>,
    /// The folder with a folder for each of Ubuntu's releases.
    pub base_url: Option<String>,
    /// The file in that folder.
    pub deb_package: Option<String>,
}

impl ClusterBloom {
    /// From an environment; one that is empty counts as one that is not set.
    ///
    /// # Errors
    /// In a sentence: which one cannot be used.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let gpu_node = match variable(GPU_NODE).as_deref() {
            None => None,
            Some("true") => Some(true),
            Some("false") => Some(false),
            Some(other) => return Err(format!("{GPU_NODE} in the environment is {other:?}: true or false")),
        };
        let it =
            Self { gpu_node, base_url: variable(ROCM_BASE_URL), deb_package: variable(ROCM_DEB_PACKAGE) };
        it.fit().map_err(|(name, problem)| format!("{name} in the environment: {problem}"))?;
        Ok(it)
    }

    /// The name of the one that is wrong, and why.
    fn fit(&self) -> Result<(), (&'static str, String)> {
        if let Some(base) = &self.base_url {
            url(base, &["http", "https", "file"]).map_err(|problem| (ROCM_BASE_URL, problem))?;
        }
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '~');
        match &self.deb_package {
            Some(name) if name.starts_with('.') || !name.ends_with(".deb") || !name.chars().all(fits) => {
                Err((
                    ROCM_DEB_PACKAGE,
                    format!("{name:?} is not a file's name, without folders, that ends with .deb"),
                ))
            }
            _ => Ok(()),
        }
    }

    /// What the configuration says by these names goes into what it says of ROCm.
    pub(super) fn check(&self, mut rocm: Rocm, source: &Source) -> Result<Rocm, Error> {
        self.fit().map_err(|(name, problem)| source.wrong(name, None, format!("{name}: {problem}")))?;
        let contradiction = match (self.gpu_node, &rocm.written) {
            (Some(true), Some(RocmFrom::Keep | RocmFrom::Apt | RocmFrom::TheRock(_))) => Some("true"),
            (Some(false), Some(RocmFrom::AmdgpuInstall)) => Some("false"),
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
        if self.gpu_node == Some(true) {
            rocm.install = RocmFrom::AmdgpuInstall;
        }
        if let Some(base) = &self.base_url {
            rocm.installer.base_url.clone_from(base);
        }
        if let Some(name) = &self.deb_package {
            rocm.installer.package.clone_from(name);
        }
    }

    /// What an environment says goes where the configuration (`written`) says nothing. The sentences tell which
    /// variables are not used.
    pub(super) fn beside(&self, written: &Self, rocm: &mut Rocm) -> Result<Vec<String>, String> {
        let gpu_node = self.gpu_node.filter(|_| written.gpu_node.is_none() && rocm.written.is_none());
        let base_url = self.base_url.clone().filter(|_| written.base_url.is_none());
        let deb_package = self.deb_package.clone().filter(|_| written.deb_package.is_none());
        let used = Self { gpu_node, base_url, deb_package };
        used.put_into(rocm);
        unchecked(rocm)?;
        let is_by_installer = rocm.install == RocmFrom::AmdgpuInstall;
        let mut unused = Vec::new();
        for (name, is_set, is_used) in [
            (GPU_NODE, self.gpu_node.is_some(), used.gpu_node.is_some()),
            (ROCM_BASE_URL, self.base_url.is_some(), used.base_url.is_some()),
            (ROCM_DEB_PACKAGE, self.deb_package.is_some(), used.deb_package.is_some()),
        ] {
            if is_set && !is_used {
                unused
                    .push(format!("{name} of the environment is not used: the configuration says otherwise"));
            } else if is_set && !is_by_installer && name != GPU_NODE {
                unused.push(format!(
                    "{name} of the environment is not used: ROCm is not installed by amdgpu-install here (rocm.install)"
                ));
            }
        }
        Ok(unused)
    }
}

/// A file that nothing vouches for comes from a server that does.
fn unchecked(rocm: &Rocm) -> Result<(), String> {
    let is_open = rocm.installer.base_url.starts_with("http://") && rocm.installer.sha256.is_none();
    if rocm.install == RocmFrom::AmdgpuInstall && is_open {
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
            assert_eq!(rocm.install, install, "{text}");
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
            assert_eq!(config.rocm.install, install, "{text}");
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
