//! The distributions that AMD's packages are made for, or are known to run on.

use root::Root;

/// A release of a distribution on which rocworker installs AMD's packages.
#[derive(Debug, PartialEq, Eq)]
pub struct Distribution {
    /// ID and VERSION_ID of os-release(5).
    id: &'static str,
    version: &'static str,
    name: &'static str,
    /// The suite of AMD's repositories for this release.
    pub suite: &'static str,
}

static KNOWN: [Distribution; 3] = [
    Distribution { id: "ubuntu", version: "22.04", name: "Ubuntu 22.04", suite: "jammy" },
    Distribution { id: "ubuntu", version: "24.04", name: "Ubuntu 24.04", suite: "noble" },
    // AMD has no packages for Debian 12: rocworker takes Ubuntu 22.04's, as ClusterBloom does.
    Distribution { id: "debian", version: "12", name: "Debian 12", suite: "jammy" },
];

impl Distribution {
    /// Reads os-release(5), which is in /etc or, where that has none, in /usr/lib.
    ///
    /// # Errors
    /// A sentence that lists the known distributions.
    pub fn read(root: &Root) -> Result<&'static Self, String> {
        let read = |path| root.read_text(path, 64 << 10);
        let text = match read("/etc/os-release") {
            Err(error) if error.is_not_found() => read("/usr/lib/os-release"),
            read => read,
        };
        Self::parse(&text.map_err(|error| error.to_string())?)
    }

    fn parse(text: &str) -> Result<&'static Self, String> {
        let value = |key: &str| {
            let of = |line: &str| Some(line.strip_prefix(key)?.strip_prefix('=')?.trim().to_owned());
            text.lines().find_map(of).map(|value| value.trim_matches(['"', '\'']).to_owned())
        };
        let (id, version) = (value("ID").unwrap_or_default(), value("VERSION_ID").unwrap_or_default());
        KNOWN.iter().find(|known| known.id == id && known.version == version).ok_or_else(|| {
            let name = value("PRETTY_NAME").filter(|name| !name.is_empty());
            let name = name.unwrap_or_else(|| "a distribution that does not tell its name".to_owned());
            let known = KNOWN.each_ref().map(|known| known.name).join(", ");
            format!("this is {name}, and packages of AMD's are installed on {known} only")
        })
    }

    /// Whether the distribution is an Ubuntu: its kernels have most drivers, and what drivers need, in a package of its
    /// own (`linux-modules-extra-KERNEL`), and shim's scripts make the key with which dkms signs.
    #[must_use]
    pub fn is_ubuntu(&self) -> bool {
        self.id == "ubuntu"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_releases_are_known_and_another_is_refused_with_their_list() {
        for (text, expected) in [
            ("ID=ubuntu\nVERSION_ID=\"22.04\"\n", Ok("Ubuntu 22.04")),
            ("VERSION_ID='24.04'\nID=ubuntu\nID_LIKE=debian\n", Ok("Ubuntu 24.04")),
            ("ID=debian\nVERSION_ID=\"12\"\n", Ok("Debian 12")),
            (
                "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nID=debian\nVERSION_ID=\"13\"\n",
                Err("Debian GNU/Linux 13 (trixie)"),
            ),
            ("PRETTY_NAME=Arch\nID=arch\n", Err("Arch")),
            ("ID=ubuntu\n", Err("a distribution that does not tell its name")),
            ("", Err("a distribution that does not tell its name")),
        ] {
            let expected = expected.map_err(|name| {
                format!("this is {name}, and packages of AMD's are installed on Ubuntu 22.04, Ubuntu 24.04, Debian 12 only")
            });
            assert_eq!(Distribution::parse(text).map(|known| known.name), expected, "{text}");
        }
    }
}
