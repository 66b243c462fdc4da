//! The distributions that AMD's packages are made for, or are known to run on.

use std::fmt;

use root::Root;

/// A release that AMD's repositories have packages for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Distribution {
    Jammy,
    Noble,
    /// AMD has none for it: those for Ubuntu 22.04 are taken, as ClusterBloom does.
    Bookworm,
}

/// Why AMD's packages cannot be installed here.
#[derive(Debug, thiserror::Error)]
pub enum Unfit {
    #[error("{}", root::Error::to_string(.0))]
    Unread(#[from] root::Error),
    #[error("this is {0}, and packages of AMD's are installed on {list} only", list = list())]
    Other(String),
}

const KNOWN: [(&str, &str, Distribution); 3] = [
    ("ubuntu", "22.04", Distribution::Jammy),
    ("ubuntu", "24.04", Distribution::Noble),
    ("debian", "12", Distribution::Bookworm),
];

fn list() -> String {
    KNOWN.map(|(_, _, distribution)| distribution.to_string()).join(", ")
}

impl Distribution {
    /// By os-release(5), which stands in /etc or, where that has none, in /usr/lib.
    ///
    /// # Errors
    /// With the list of those that are known.
    pub fn read(root: &Root) -> Result<Self, Unfit> {
        let read = |path| root.read_text(path, 64 << 10);
        let text = match read("/etc/os-release") {
            Err(error) if error.is_not_found() => read("/usr/lib/os-release")?,
            read => read?,
        };
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, Unfit> {
        let value = |key: &str| {
            let of = |line: &str| Some(line.strip_prefix(key)?.strip_prefix('=')?.trim().to_owned());
            text.lines().find_map(of).map(|value| value.trim_matches(['"', '\'']).to_owned())
        };
        let (id, version) = (value("ID").unwrap_or_default(), value("VERSION_ID").unwrap_or_default());
        let is_it = |(known, release, _): &&(&str, &str, Self)| *known == id && *release == version;
        match KNOWN.iter().find(is_it) {
            Some((_, _, distribution)) => Ok(*distribution),
            None => {
                let name = value("PRETTY_NAME").filter(|name| !name.is_empty());
                Err(Unfit::Other(
                    name.unwrap_or_else(|| "a distribution that does not tell its name".to_owned()),
                ))
            }
        }
    }

    /// Its name in the suites of AMD's repositories.
    #[must_use]
    pub fn suite(self) -> &'static str {
        match self {
            Self::Jammy | Self::Bookworm => "jammy",
            Self::Noble => "noble",
        }
    }

    /// Whether its kernels have most of their drivers, and what those need, in a package of its own
    /// (`linux-modules-extra-KERNEL`).
    #[must_use]
    pub fn has_modules_extra(self) -> bool {
        self.is_ubuntu()
    }

    #[must_use]
    pub fn is_ubuntu(self) -> bool {
        matches!(self, Self::Jammy | Self::Noble)
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Jammy => "Ubuntu 22.04",
            Self::Noble => "Ubuntu 24.04",
            Self::Bookworm => "Debian 12",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_releases_are_known_and_another_is_refused_with_their_list() {
        for (text, expected) in [
            ("ID=ubuntu\nVERSION_ID=\"22.04\"\n", Ok(Distribution::Jammy)),
            ("VERSION_ID='24.04'\nID=ubuntu\nID_LIKE=debian\n", Ok(Distribution::Noble)),
            ("ID=debian\nVERSION_ID=\"12\"\n", Ok(Distribution::Bookworm)),
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
            assert_eq!(Distribution::parse(text).map_err(|error| error.to_string()), expected, "{text}");
        }
    }
}
