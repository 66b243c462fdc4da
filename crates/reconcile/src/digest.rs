use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The SHA-256 of a file's bytes, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Digest(String);

impl Digest {
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self::from_hash(&Sha256::digest(bytes))
    }

    /// Parses a digest as `sha256sum` prints it; `None` where the text is no SHA-256.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let is_one = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_one.then(|| Self(text.to_ascii_lowercase()))
    }

    pub(crate) fn from_hash(hash: &[u8]) -> Self {
        Self(hexadecimal(hash))
    }

    /// Checks that a file has the configured digest.
    ///
    /// # Errors
    /// A sentence that names both digests.
    pub(crate) fn check(&self, found: &Self) -> Result<(), String> {
        if self == found {
            return Ok(());
        }
        Err(format!("its SHA-256 is {}, and {} is configured", found.0, self.0))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
