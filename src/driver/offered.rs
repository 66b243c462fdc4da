//! Which packages apt could install, by the lists that it has: what a mirror has rotated out is in none of them.

use std::collections::BTreeMap;
use std::time::Duration;

use reconcile::command::Programs;

/// Its index is read, and made anew where it is older than the lists.
const LIMIT: Duration = Duration::from_secs(60);

/// Versions by package, the newest first; a package that is not to be had has none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offered(BTreeMap<String, Vec<String>>);

impl Offered {
    /// # Errors
    /// When apt-cache is not there, or fails.
    pub fn ask(programs: &Programs, packages: &[String]) -> Result<Self, String> {
        let mut argv = vec!["apt-cache", "madison"];
        argv.extend(packages.iter().map(String::as_str));
        let output = programs.run(&argv, LIMIT).map_err(|error| error.to_string())?;
        Ok(Self::parse(&String::from_utf8_lossy(&output.stdout)))
    }

    /// `NAME | VERSION | SOURCE`, a line for each version in each source (apt-cache(8), `madison`). Sources of source
    /// packages end in `Sources`.
    #[must_use]
    pub fn parse(said: &str) -> Self {
        let mut offered: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for line in said.lines() {
            let parts: Vec<&str> = line.split('|').map(str::trim).collect();
            if let [name, version, source] = parts.as_slice()
                && !source.ends_with("Sources")
            {
                let versions = offered.entry((*name).to_owned()).or_default();
                if !versions.iter().any(|known| known == version) {
                    versions.push((*version).to_owned());
                }
            }
        }
        Self(offered)
    }

    #[must_use]
    pub fn has(&self, package: &str) -> bool {
        self.0.contains_key(package)
    }

    #[must_use]
    pub fn versions(&self, package: &str) -> &[String] {
        self.0.get(package).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_offers_is_told_by_name_with_its_versions() {
        let offered = Offered::parse(
            "linux-headers-6.1.0-50-amd64 |  6.1.176-1 | http://deb.debian.org/debian bookworm/main amd64 Packages\n\
             amdgpu-dkms | 1:6.16.13.30300400-2341068.22.04 | http://lab jammy/main amd64 Packages\n\
             amdgpu-dkms | 1:6.16.13.30300300-2327507.22.04 | http://lab jammy/main amd64 Packages\n\
             amdgpu-dkms | 1:6.16.13.30300300-2327507.22.04 | http://other jammy/main amd64 Packages\n\
             dkms | 3.0.10-8+deb12u1 | http://deb.debian.org/debian bookworm/main Sources\n",
        );
        assert!(offered.has("linux-headers-6.1.0-50-amd64") && !offered.has("dkms") && !offered.has("linux"));
        assert_eq!(
            offered.versions("amdgpu-dkms"),
            ["1:6.16.13.30300400-2341068.22.04", "1:6.16.13.30300300-2327507.22.04"]
        );
    }
}
