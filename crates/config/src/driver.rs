//! Which kernel driver the machine's GPUs run with: the distribution's, or AMD's own.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Error, Source};

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DriverDocument {
    pub install: Option<Install>,
    pub version: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Install {
    #[default]
    Keep,
    AmdgpuDkms,
}

impl DriverDocument {
    pub(super) fn check(self, source: &Source) -> Result<Option<Release>, Error> {
        let version = self.version.map(|text| {
            let problem = || format!("{text:?} is no release of AMD's driver, such as 30.30.3");
            source.check("driver.version", &text, Release::parse(&text).ok_or_else(problem))
        });
        match (self.install.unwrap_or_default(), version.transpose()?) {
            (Install::Keep, None) => Ok(None),
            (Install::AmdgpuDkms, Some(release)) => Ok(Some(release)),
            (Install::Keep, Some(_)) => Err(source.wrong(
                "driver.version",
                None,
                "driver.version names a driver and driver.install keeps the one that is there: write driver.install: \
                 amdgpu-dkms, or leave the version out",
            )),
            (Install::AmdgpuDkms, None) => Err(source.wrong(
                "driver.install",
                None,
                "driver.install is amdgpu-dkms without a driver.version: name a release, such as 30.30.3 \
                 (docs/packages.md has the ones that go with each ROCm)",
            )),
        }
    }
}

/// Who brings the driver that dkms builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Build {
    /// apt, of this release.
    Release(Release),
    /// amdgpu-install, of its own release.
    Installer,
}

/// A release of AMD's driver or of ROCm, as AMD numbers both: `30.30.3`, `7.2.3`, and `30.10` for `30.10.0`.
///
/// Two or three numbers. `30.10` and `30.10.0` are the same release; the text is kept, since AMD's folders have it so
/// (`https://repo.radeon.com/amdgpu/30.10/ubuntu`).
#[derive(Debug, Clone)]
pub struct Release {
    text: String,
    numbers: [u32; 3],
}

impl PartialEq for Release {
    fn eq(&self, other: &Self) -> bool {
        self.numbers == other.numbers
    }
}

impl Eq for Release {}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Release {
    /// `None` of anything but two or three numbers between dots.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        let number = |part| Some(part).filter(is_number)?.parse().ok();
        let mut parts: Vec<u32> = text.split('.').map(number).collect::<Option<_>>()?;
        if parts.len() == 2 {
            parts.push(0);
        }
        Some(Self { text: text.to_owned(), numbers: parts.try_into().ok()? })
    }

    /// The driver's release in a version of AMD's package amdgpu-dkms: its last part has two digits for each number,
    /// as `1:6.16.13.30300400-2341068.24.04` for 30.30.4.
    ///
    /// `None` of a version that has no such part: AMD numbers releases up to 6.4 as ROCm
    /// (`1:6.8.5.60203-2041575.22.04`), and a distribution numbers its own packages otherwise.
    #[must_use]
    pub fn of_package(version: &str) -> Option<Self> {
        let upstream = version.split_once(':').map_or(version, |(_, rest)| rest);
        let upstream = upstream.rsplit_once('-').map_or(upstream, |(upstream, _)| upstream);
        let code = upstream.rsplit('.').next()?;
        if code.len() != 8 {
            return None;
        }
        let code: u32 = code.parse().ok()?;
        let numbers = [code / 1_000_000, code / 10_000 % 100, code / 100 % 100];
        let [major, minor, patch] = numbers;
        let text = if patch == 0 { format!("{major}.{minor}") } else { format!("{major}.{minor}.{patch}") };
        Some(Self { text, numbers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_are_two_or_three_numbers() {
        for (text, same) in [("30.30.3", "30.30.3"), ("30.10", "30.10.0"), ("7.2.3", "7.02.3")] {
            assert_eq!(Release::parse(text), Release::parse(same));
            assert_eq!(Release::parse(text).unwrap().to_string(), text);
        }
        assert_ne!(Release::parse("30.30.3"), Release::parse("30.30.4"));
        for text in ["", "30", "30.", "30.30.3.1", "30.30.x", " 30.30.3", "latest", "4294967296.0"] {
            assert_eq!(Release::parse(text), None, "{text:?}");
        }
    }

    /// The versions are those of the packages in AMD's repositories, as transcripts of installations show them
    /// (ROCm/ROCm issue 6193 for 30.30.4).
    #[test]
    fn the_release_stands_in_the_packages_version() {
        for (version, release) in [
            ("1:6.16.13.30300400-2341068.24.04", Some("30.30.4")),
            ("1:6.16.13.30300300-2327507.22.04", Some("30.30.3")),
            ("6.14.14.30100000-2193512.24.04", Some("30.10")),
            ("1:6.8.5.60203-2041575.22.04", None),
            ("1:6.14.14-2212064.24.04", None),
            ("1:5.13.20.22.10.50103-1420322", None),
            ("6.16.6", None),
        ] {
            assert_eq!(Release::of_package(version), release.and_then(Release::parse), "{version}");
        }
    }
}
