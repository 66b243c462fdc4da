//! How cards are divided into devices: profiles by name.

use std::collections::BTreeMap;

use inventory::partitioning::{Compute, Entry, Memory, Modes, Selector};
use serde::{Deserialize, Serialize};

use super::{Error, Source};

/// The profiles, and which of them this machine is to be in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partitions {
    /// The profile of this machine, one of `profiles`, which `partition set` takes where none is named.
    pub profile: Option<String>,
    pub profiles: BTreeMap<String, Vec<Entry>>,
    /// Units that a switch stops, and starts again where they ran.
    pub units: Vec<String>,
    pub reload: Reload,
    pub on_revert: OnRevert,
}

/// When rocworker may load the driver again for a profile's memory mode without a person's `--reload`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reload {
    #[default]
    Never,
    /// At each start of the machine, before engines start.
    Boot,
}

/// What the daemon does where cards have lost the modes of the last switch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnRevert {
    #[default]
    Report,
    /// It writes the compute modes again, on cards that no process uses.
    Repair,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct PartitionsDocument {
    profile: Option<String>,
    profiles: Option<BTreeMap<String, Vec<EntryDocument>>>,
    units: Option<Vec<String>>,
    reload: Option<Reload>,
    on_revert: Option<OnRevert>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct EntryDocument {
    cards: String,
    compute: Option<Compute>,
    memory: Option<Memory>,
    count: Option<u32>,
    skip: Option<bool>,
}

impl PartitionsDocument {
    pub(super) fn check(self, source: &Source) -> Result<Partitions, Error> {
        let documents = self.profiles.unwrap_or_default();
        if let Some(profile) = self.profile.as_ref().filter(|profile| !documents.contains_key(*profile)) {
            let problem = match documents.keys().cloned().collect::<Vec<_>>() {
                none if none.is_empty() => {
                    format!("partitions.profile is {profile:?}, and partitions.profiles has none")
                }
                names => format!(
                    "partitions.profile is {profile:?}, and partitions.profiles has {}",
                    names.join(", ")
                ),
            };
            return Err(source.wrong("partitions.profile", None, problem));
        }
        let mut profiles = BTreeMap::new();
        for (name, entries) in documents {
            let key = format!("partitions.profiles.{name}");
            if !is_plain(&name) {
                let problem =
                    format!("{name:?} is no name of a profile: it takes letters, digits, `.`, `_` and `-`");
                return Err(source.wrong("partitions.profiles", None, problem));
            }
            let entries: Result<Vec<Entry>, String> = entries.into_iter().map(EntryDocument::check).collect();
            let entries = entries.map_err(|problem| source.wrong(&key, None, format!("{key}: {problem}")))?;
            if entries.is_empty() {
                let problem = format!("{key} has no entry: write one, as {{cards: all, compute: SPX}}");
                return Err(source.wrong(&key, None, problem));
            }
            profiles.insert(name, entries);
        }
        let units = self.units.unwrap_or_default();
        let is_service = |unit: &&String| unit.strip_suffix(".service").is_some_and(is_plain);
        if let Some(unit) = units.iter().find(|unit| !is_service(unit)) {
            let problem = format!(
                "partitions.units has {unit:?}, which is no service: write a name such as vllm.service"
            );
            return Err(source.wrong("partitions.units", Some(unit), problem));
        }
        if let Some(own) = units.iter().find(|unit| unit.starts_with("rocworker")) {
            let problem = format!("partitions.units has {own:?}, which is rocworker's own and stays");
            return Err(source.wrong("partitions.units", Some(own), problem));
        }
        Ok(Partitions {
            profile: self.profile,
            profiles,
            units,
            reload: self.reload.unwrap_or_default(),
            on_revert: self.on_revert.unwrap_or_default(),
        })
    }
}

/// Whether a name is what a unit's line and a command line take as it is.
fn is_plain(name: &str) -> bool {
    let is_known = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@:".contains(&byte);
    !name.is_empty() && name.len() <= 200 && !name.starts_with('-') && name.bytes().all(is_known)
}

impl EntryDocument {
    fn check(self) -> Result<Entry, String> {
        let cards = Selector::parse(self.cards.trim());
        let modes = match (self.skip.unwrap_or_default(), self.compute, self.memory) {
            (false, Some(compute), memory) => Some(Modes { compute, memory }),
            (true, None, None) => None,
            (true, ..) => return Err(format!("the entry for {cards} skips cards and names modes: keep one")),
            (false, None, _) => {
                return Err(format!(
                    "the entry for {cards} names no compute mode: write compute: SPX, or skip: true"
                ));
            }
        };
        Ok(Entry { cards, modes, count: self.count })
    }
}
