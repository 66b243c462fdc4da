//! Whose kernel driver the machine's GPUs run with.

use serde::Deserialize;
use serde::de::{Deserializer, Visitor};

use super::{Error, Source};
use crate::driver::Release;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DriverDocument {
    install: Option<Install>,
    version: Option<Text>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Install {
    #[default]
    Keep,
    AmdgpuDkms,
}

impl DriverDocument {
    pub(super) fn check(self, source: &Source) -> Result<Option<Release>, Error> {
        let wrong = |key, problem: String| Err(source.wrong(key, None, problem));
        let version = match self.version {
            None => None,
            Some(Text(text)) => match Release::parse(&text) {
                Some(release) => Some(release),
                None => {
                    let problem =
                        format!("driver.version {text:?} is no release of AMD's driver, such as 30.30.3");
                    return wrong("driver.version", problem);
                }
            },
        };
        match (self.install.unwrap_or_default(), version) {
            (Install::Keep, None) => Ok(None),
            (Install::AmdgpuDkms, Some(release)) => Ok(Some(release)),
            (Install::Keep, Some(_)) => wrong(
                "driver.version",
                "driver.version names a driver and driver.install keeps the one that is there: write driver.install: \
                 amdgpu-dkms, or leave the version out"
                    .to_owned(),
            ),
            (Install::AmdgpuDkms, None) => wrong(
                "driver.install",
                "driver.install is amdgpu-dkms without a driver.version: name a release, such as 30.30.3 \
                 (docs/drivers.md has the ones that go with each ROCm)"
                    .to_owned(),
            ),
        }
    }
}

/// A text in YAML; `30.10` without quotes is a number there, and 30.1.
#[derive(Debug)]
struct Text(String);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct OneText;
        impl Visitor<'_> for OneText {
            type Value = Text;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a release such as 30.30.3")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Text, E> {
                Ok(Text(text.to_owned()))
            }

            fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Text, E> {
                Err(E::custom("a release of two numbers is a text: put it in quotes, as \"30.10\""))
            }
        }
        deserializer.deserialize_any(OneText)
    }
}
