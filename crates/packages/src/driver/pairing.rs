//! Which driver goes with which ROCm: what AMD and ClusterBloom have tried together.

use config::Release;

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

/// What is known of a driver with the ROCm of this machine, as plan and doctor say it. `None`: it has no ROCm, and
/// containers bring their own.
///
/// # Errors
/// A sentence for plan and doctor, where AMD does not list the two together.
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
