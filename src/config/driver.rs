//! Whose kernel driver the machine's GPUs run with.

use serde::{Deserialize, Serialize};

use super::scalar::Word;
use super::{Error, Source};
use crate::driver::Release;

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DriverDocument {
    pub(crate) install: Option<Install>,
    /// A text: `30.10` without quotes is a number in YAML, and 30.1.
    pub(crate) version: Option<Word>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Install {
    #[default]
    Keep,
    AmdgpuDkms,
}

impl DriverDocument {
    pub(super) fn check(self, source: &Source) -> Result<Option<Release>, Error> {
        let version = self.version.map(|Word(text)| {
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
                 (docs/drivers.md has the ones that go with each ROCm)",
            )),
        }
    }
}
