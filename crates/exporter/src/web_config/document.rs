//! The file's keys, as exporter-toolkit's docs/web-configuration.md has them. A key that is not here is refused by name.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr as _;

use serde::{Deserialize, Deserializer, de};

#[derive(Debug, Default, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "keys with values, as exporter-toolkit's docs/web-configuration.md has them"
)]
pub(super) struct Document {
    pub(super) tls_server_config: Option<Tls>,
    #[serde(default)]
    pub(super) basic_auth_users: Option<BTreeMap<String, Hash>>,
}

/// Paths are relative to the file's folder.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tls {
    pub(super) cert_file: PathBuf,
    pub(super) key_file: PathBuf,
    #[serde(default)]
    pub(super) client_auth_type: ClientAuth,
    pub(super) client_ca_file: Option<PathBuf>,
    #[serde(default)]
    pub(super) min_version: Version,
    pub(super) max_version: Option<Version>,
}

/// Those of Go's names that check what the client shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(super) enum ClientAuth {
    #[default]
    NoClientCert,
    VerifyClientCertIfGiven,
    RequireAndVerifyClientCert,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub(super) enum Version {
    #[default]
    #[serde(rename = "TLS12")]
    Tls12,
    #[serde(rename = "TLS13")]
    Tls13,
}

/// As `htpasswd -B` writes it.
#[derive(Debug, Clone)]
pub(super) struct Hash(pub(super) String);

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match bcrypt::HashParts::from_str(&text) {
            Ok(_) => Ok(Self(text)),
            Err(_) => Err(de::Error::custom("not a bcrypt hash: make one with `htpasswd -nBC 10 NAME`")),
        }
    }
}
