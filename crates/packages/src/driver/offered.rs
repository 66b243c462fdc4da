//! Which packages apt could install, by the lists that it has: what a mirror has rotated out is in none of them.

use std::collections::BTreeMap;
use std::time::Duration;

use reconcile::command::Programs;

/// How long apt-cache may take: it makes its index anew where that is older than the lists.
const LIMIT: Duration = Duration::from_secs(60);

/// Versions by package, the newest first; a package that is not to be had is not in it.
pub type Offered = BTreeMap<String, Vec<String>>;

/// Asks apt of these packages.
///
/// # Errors
/// When apt-cache is not there, or fails.
pub(super) fn ask(programs: &Programs, packages: &[String]) -> Result<Offered, String> {
    let mut argv = vec!["apt-cache", "madison"];
    argv.extend(packages.iter().map(String::as_str));
    let output = programs.run(&argv, LIMIT).map_err(|error| error.to_string())?;
    Ok(parse(&String::from_utf8_lossy(&output.stdout)))
}

/// `NAME | VERSION | SOURCE`, a line for each version in each source (apt-cache(8), `madison`). Sources of source
/// packages end in `Sources`.
#[must_use]
pub fn parse(text: &str) -> Offered {
    let mut offered = Offered::new();
    for line in text.lines() {
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
    offered
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_apt_offers_is_told_by_name_with_its_versions() {
        let offered = parse(
            "linux-headers-6.1.0-50-amd64 |  6.1.176-1 | http://deb.debian.org/debian bookworm/main amd64 Packages\n\
             amdgpu-dkms | 1:6.16.13.30300400-2341068.22.04 | http://lab jammy/main amd64 Packages\n\
             amdgpu-dkms | 1:6.16.13.30300300-2327507.22.04 | http://lab jammy/main amd64 Packages\n\
             amdgpu-dkms | 1:6.16.13.30300300-2327507.22.04 | http://other jammy/main amd64 Packages\n\
             dkms | 3.0.10-8+deb12u1 | http://deb.debian.org/debian bookworm/main Sources\n",
        );
        assert_eq!(offered.keys().collect::<Vec<_>>(), ["amdgpu-dkms", "linux-headers-6.1.0-50-amd64"]);
        assert_eq!(
            offered["amdgpu-dkms"],
            ["1:6.16.13.30300400-2341068.22.04", "1:6.16.13.30300300-2327507.22.04"]
        );
    }
}
