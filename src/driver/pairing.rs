//! Which driver goes with which ROCm: what AMD and ClusterBloom have tried together.

use std::fmt;

use super::Release;

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

/// What is known of a driver with a ROCm. Displayed, it is the sentence that plan and doctor say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pairing {
    /// They came out together.
    Supported { driver: Release, rocm: Release },
    /// The driver came out with another ROCm: that the two go together is nobody's word.
    Unvalidated { driver: Release, with: Release, rocm: Release },
    /// A driver that this version of rocworker has not heard of.
    Unknown { driver: Release },
}

impl Pairing {
    #[must_use]
    pub fn of(driver: &Release, rocm: &Release) -> Self {
        let (driver, rocm) = (driver.clone(), rocm.clone());
        match rocm_of(&driver) {
            None => Self::Unknown { driver },
            Some(with) if with == rocm => Self::Supported { driver, rocm },
            Some(with) => Self::Unvalidated { driver, with, rocm },
        }
    }

    /// As JSON and people name it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Supported { .. } => "supported",
            Self::Unvalidated { .. } => "unvalidated",
            Self::Unknown { .. } => "unknown",
        }
    }
}

impl fmt::Display for Pairing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.word())?;
        match self {
            Self::Supported { driver, rocm } => {
                write!(f, "the driver {driver} and ROCm {rocm} came out together")
            }
            Self::Unvalidated { driver, with, rocm } => write!(
                f,
                "the driver {driver} came out with ROCm {with}, and nobody vouches for it with ROCm {rocm}"
            ),
            Self::Unknown { driver } => write!(
                f,
                "this version of rocworker does not know the driver {driver}, so that nothing is known of the ROCm that \
                 goes with it; it knows {}",
                known()
            ),
        }
    }
}

/// The ROCm that a driver came out with; `None` of a driver that is not known.
#[must_use]
pub fn rocm_of(driver: &Release) -> Option<Release> {
    let is_it = |name: &str| Release::parse(name).is_some_and(|release| release == *driver);
    let (_, rocm) = TRIED.iter().find(|(name, _)| is_it(name))?;
    Release::parse(rocm)
}

/// What is known of a driver where no ROCm is on the machine itself: containers bring their own.
#[must_use]
pub fn alone(driver: &Release) -> String {
    match rocm_of(driver) {
        Some(rocm) => format!(
            "the driver {driver} came out with ROCm {rocm}; none is installed on this machine, and that of a container's \
             image should be it"
        ),
        None => Pairing::Unknown { driver: driver.clone() }.to_string(),
    }
}

/// Every driver that is known, as a sentence lists them.
#[must_use]
pub fn known() -> String {
    TRIED.map(|(driver, _)| driver).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

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
                "unvalidated: the driver 30.30.3 came out with ROCm 7.2.3, and nobody vouches for it with ROCm 7.2.4",
            ),
            (
                "30.30",
                "7.2.3",
                "unknown: this version of rocworker does not know the driver 30.30, so that nothing is known of the ROCm \
                 that goes with it; it knows 30.10.2, 30.20.1, 30.30.3, 30.30.4, 31.30.0, 31.40.0",
            ),
        ] {
            assert_eq!(Pairing::of(&release(driver), &release(rocm)).to_string(), expected);
        }
    }
}
