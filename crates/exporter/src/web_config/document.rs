//! The file's keys, as exporter-toolkit's docs/web-configuration.md has them. A key that is not here is refused by name.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr as _;

use serde::de::{Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, de};

#[derive(Debug, Default, Deserialize)]
#[serde(
    deny_unknown_fields,
    expecting = "keys with values, as exporter-toolkit's docs/web-configuration.md has them"
)]
pub(super) struct Document {
    pub(super) tls_server_config: Option<Tls>,
    #[serde(default)]
    pub(super) basic_auth_users: Option<Users>,
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

/// Go's names for what is asked of a client's certificate (crypto/tls, `ClientAuthType`), without the two that check
/// nothing.
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

/// The deepest nesting that is parsed. The documented keys need two levels.
const DEPTH: usize = 16;

/// The line on which brackets are nested too deep, for which the parser takes minutes; those in strings count too.
pub(super) fn too_deep(text: &str) -> Option<usize> {
    let mut depth = 0_usize;
    for (number, line) in (1..).zip(text.lines()) {
        for c in line.chars() {
            match c {
                '[' | '{' => depth += 1,
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            if depth > DEPTH {
                return Some(number);
            }
        }
    }
    None
}

/// Users, each with one hash; a name that occurs twice is refused.
#[derive(Debug, Default)]
pub(super) struct Users(pub(super) BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Users {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Users;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("users with a bcrypt hash each")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Users, A::Error> {
                let mut users = BTreeMap::new();
                while let Some((user, Hash(hash))) = map.next_entry::<String, Hash>()? {
                    if users.contains_key(&user) {
                        return Err(A::Error::custom(format!("user {user} stands twice: keep one")));
                    }
                    users.insert(user, hash);
                }
                Ok(Users(users))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

/// A comparison takes twice as long with each more: 100 ms of a CPU with 10, several seconds with 16.
const MOST_COST: u32 = 16;

/// A hash in the form that `htpasswd -B` writes.
#[derive(Debug, Clone)]
pub(super) struct Hash(pub(super) String);

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match bcrypt::HashParts::from_str(&text) {
            Ok(parts) if (4..=MOST_COST).contains(&parts.get_cost()) => Ok(Self(text)),
            Ok(parts) => Err(de::Error::custom(format!(
                "a bcrypt cost of {}, and 4 to {MOST_COST} are taken: make a hash with `htpasswd -nBC 10 NAME`",
                parts.get_cost()
            ))),
            Err(_) => Err(de::Error::custom("not a bcrypt hash: make one with `htpasswd -nBC 10 NAME`")),
        }
    }
}
