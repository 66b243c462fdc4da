//! Edits that a container gets along with its GPUs: the policy's key `edits`.

use std::collections::BTreeMap;
use std::num::NonZeroU64;

use serde::{Deserialize, Deserializer, de};

use crate::Render;

/// The variable by which ROCm's runtime takes a GPU for one of another, supported kind (ROCR-Runtime, libhsakmt,
/// `topology.c`). It counts for every GPU of a process.
pub const GFX_OVERRIDE: &str = "HSA_OVERRIDE_GFX_VERSION";

/// No limit at all: `RLIM_INFINITY` (getrlimit(2)).
pub const UNLIMITED: u64 = u64::MAX;

/// Made in a container that is given a GPU, by its request or by default, and in no other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Edits {
    /// The size of /dev/shm, in bytes. The kernel takes a tmpfs of 0 bytes for one without limit.
    #[serde(deserialize_with = "shm_bytes")]
    pub shm_bytes: Option<u64>,
    /// The least that a process may keep from being swapped out, in bytes; or [`UNLIMITED`].
    #[serde(deserialize_with = "memlock_bytes")]
    pub memlock_bytes: Option<u64>,
    /// The value of [`GFX_OVERRIDE`] for a GPU, by its render node.
    #[serde(deserialize_with = "gfx_override")]
    pub gfx_override: BTreeMap<Render, String>,
}

fn shm_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    Ok(Option::<NonZeroU64>::deserialize(deserializer)?.map(NonZeroU64::get))
}

fn memlock_bytes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "memlock_bytes is a number of bytes from 1 on, or \"unlimited\"")]
    enum Memlock {
        Bytes(NonZeroU64),
        Word(Unlimited),
    }
    #[derive(Deserialize)]
    enum Unlimited {
        #[serde(rename = "unlimited")]
        Unlimited,
    }
    let memlock = Option::<Memlock>::deserialize(deserializer)?;
    Ok(memlock.map(|memlock| match memlock {
        Memlock::Bytes(bytes) => bytes.get(),
        Memlock::Word(Unlimited::Unlimited) => UNLIMITED,
    }))
}

fn gfx_override<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeMap<Render, String>, D::Error> {
    let overrides = Option::<BTreeMap<Render, String>>::deserialize(deserializer)?.unwrap_or_default();
    match overrides.values().find(|version| !is_gfx_version(version)) {
        Some(version) => {
            Err(de::Error::invalid_value(de::Unexpected::Str(version), &"a gfx version like 11.0.0"))
        }
        None => Ok(overrides),
    }
}

/// Whether `text` is a value of [`GFX_OVERRIDE`]: three numbers, which libhsakmt reads up to 63, 255 and 255.
#[must_use]
pub fn is_gfx_version(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let mut parts = text.split('.');
    let all = [63, 255, 255].into_iter().all(|most| {
        parts.next().is_some_and(|part| is_number(part) && part.parse::<u8>().is_ok_and(|n| n <= most))
    });
    all && parts.next().is_none()
}

impl Edits {
    /// The entry for the environment of processes that may use these GPUs, `HSA_OVERRIDE_GFX_VERSION=…`: for a
    /// container whose own environment is `env`. None where they need none, or where the container sets the variable
    /// to something else itself.
    ///
    /// # Errors
    /// The sentence that says which GPUs differ, so that none is set. One that needs none differs from one that does.
    pub fn gfx_override_for<'e>(
        &self,
        renders: &[Render],
        env: impl IntoIterator<Item = &'e str>,
    ) -> Result<Option<String>, String> {
        let of = |render: &Render| self.gfx_override.get(render).map(String::as_str);
        let Some((first, others)) = renders.split_first() else { return Ok(None) };
        let version = of(first);
        let other = others.iter().find(|other| of(other) != version);
        if version.is_none() && other.is_none() {
            return Ok(None);
        }
        let entry = [GFX_OVERRIDE, "=", version.unwrap_or_default()].concat();
        let is_of_variable = |entry: &&str| entry.split('=').next() == Some(GFX_OVERRIDE);
        let mut its_own = env.into_iter().filter(is_of_variable).peekable();
        let Some(other) = other else {
            // What an earlier create has set in this bundle is still the policy's.
            return Ok(its_own.all(|own| own == entry).then_some(entry));
        };
        if its_own.peek().is_some() {
            return Ok(None);
        }
        Err(format!(
            "{GFX_OVERRIDE}, which counts for every GPU of a process, is not set: the policy's gfx_override has {} for \
             {first} and {} for {other}; ask for GPUs of one kind, or set it in the container's environment",
            version.unwrap_or("nothing"),
            of(other).unwrap_or("nothing"),
        ))
    }
}
