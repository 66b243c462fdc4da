//! A release of AMD's driver or of ROCm, as AMD numbers both: `30.30.3`, `7.2.3`, and `30.10` for `30.10.0`; and which
//! driver goes with which ROCm: what AMD and ClusterBloom have tried together.

use std::fmt;

/// Releases of AMD's driver, each with the ROCm that it came out with and was tried with (ClusterBloom's list of drivers
/// that it takes, which is AMD's own pairing).
const TRIED: [(&str, &str); 6] = [
    ("30.10.2", "7.0.2"),
    ("30.20.1", "7.1.1"),
    ("30.30.3", "7.2.3"),
    ("30.30.4", "7.2.4"),
    ("31.30.0", "7.13.0"),
    ("31.40.0", "7.14.0"),
];

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
    /// `None` of a version that has no such part: those up to 6.4 are numbered as ROCm (`1:6.8.5.60203-2041575.22.04`),
    /// and a distribution's own otherwise.
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

/// What is known of a driver with the ROCm of this machine, as plan and doctor say it. `None`: it has no ROCm, and
/// containers bring their own.
///
/// # Errors
/// With the same kind of sentence, where AMD does not list the two together.
pub fn pairing(driver: &Release, rocm: Option<&Release>) -> Result<String, String> {
    match (rocm_of(driver), rocm) {
        (None, _) => Err(format!(
            "unknown: this version of rocworker does not know the driver {driver}, and so not which ROCm goes with it; it \
             knows {}",
            known()
        )),
        (Some(with), None) => Ok(format!(
            "the driver {driver} came out with ROCm {with}; none is installed on this machine, and that of a container's \
             image should be it"
        )),
        (Some(with), Some(rocm)) if with == *rocm => {
            Ok(format!("supported: the driver {driver} and ROCm {rocm} came out together"))
        }
        (Some(with), Some(rocm)) => Err(format!(
            "unvalidated: the driver {driver} came out with ROCm {with}, and AMD does not list it with ROCm {rocm}"
        )),
    }
}

/// The ROCm that a driver came out with; `None` of a driver that is not known.
#[must_use]
pub(super) fn rocm_of(driver: &Release) -> Option<Release> {
    let is_it = |name: &str| Release::parse(name).is_some_and(|release| release == *driver);
    let (_, rocm) = TRIED.iter().find(|(name, _)| is_it(name))?;
    Release::parse(rocm)
}

/// Every driver that is known, as a sentence lists them.
#[must_use]
pub(super) fn known() -> String {
    TRIED.map(|(driver, _)| driver).join(", ")
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

    #[track_caller]
    fn release(text: &str) -> Release {
        Release::parse(text).unwrap()
    }

    #[test]
    fn every_row_of_the_table_is_two_releases() {
        for (driver, rocm) in TRIED {
            assert_eq!(rocm_of(&release(driver)), Some(release(rocm)), "{driver}");
        }
    }

    #[test]
    fn a_pair_is_supported_unvalidated_or_unknown() {
        for (driver, rocm, expected) in [
            ("30.30.3", "7.2.3", "supported: the driver 30.30.3 and ROCm 7.2.3 came out together"),
            ("31.40.0", "7.14", "supported: the driver 31.40.0 and ROCm 7.14 came out together"),
            (
                "30.30.3",
                "7.2.4",
                "unvalidated: the driver 30.30.3 came out with ROCm 7.2.3, and AMD does not list it with ROCm 7.2.4",
            ),
            (
                "30.30",
                "7.2.3",
                "unknown: this version of rocworker does not know the driver 30.30, and so not which ROCm goes with it; it \
                 knows 30.10.2, 30.20.1, 30.30.3, 30.30.4, 31.30.0, 31.40.0",
            ),
        ] {
            let (Ok(text) | Err(text)) = pairing(&release(driver), Some(&release(rocm)));
            assert_eq!(text, expected);
        }
    }
}
