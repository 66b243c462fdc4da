//! The policy as serde's derived reader has it, which the product had before it had its own.

use std::{collections::BTreeMap, num::NonZeroU64};

use allocation::{
    Render,
    policy::{Default, Edits, LONGEST_WAIT_S, Policy, Requests, SCHEMA_VERSION, Sharing},
    selection::Gpu,
};
use inventory::PciAddress;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{
    json::{members, value},
    reference::normal,
};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File<'a> {
    schema_version: Option<u64>,
    runtime: Option<String>,
    requests: Option<String>,
    default: Option<String>,
    pods: Option<String>,
    sharing: Option<String>,
    #[serde(borrow)]
    gpus: Option<Vec<&'a RawValue>>,
    wait_limit_s: Option<u32>,
    idle_grace_s: Option<u32>,
    quarantine: Option<bool>,
    folders: Option<Vec<String>>,
    #[serde(borrow)]
    edits: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileEdits<'a> {
    shm_bytes: Option<NonZeroU64>,
    #[serde(borrow)]
    memlock_bytes: Option<&'a RawValue>,
    #[serde(borrow)]
    gfx_override: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileGpu<'a> {
    index: u32,
    pci: String,
    render: String,
    uuid: Option<String>,
    card_uuid: Option<String>,
    card: Option<String>,
    #[serde(borrow)]
    hive: Option<&'a RawValue>,
    integrated: Option<bool>,
}

/// The policy that stands in the text; none where it is to be refused.
pub(crate) fn read(text: &str) -> Option<Policy> {
    // serde takes a list for a struct.
    if !text.trim_start().starts_with('{') {
        return None;
    }
    let file: File<'_> = serde_json::from_str(text).ok()?;
    let says_something = members(text)?.iter().any(|(_, value)| *value != "null");
    if file.schema_version != Some(u64::from(SCHEMA_VERSION))
        && (says_something || file.schema_version.is_some())
    {
        return None;
    }
    let requests = |name| {
        named(
            name,
            &[
                ("deny", Requests::Deny),
                ("named", Requests::Named),
                ("count", Requests::Count),
                ("all", Requests::All),
            ],
        )
    };
    let default = named(file.default, &[("none", Default::None), ("all", Default::All)])?;
    let sharing = named(file.sharing, &[("shared", Sharing::Shared), ("exclusive", Sharing::Exclusive)])?;
    let policy = Policy {
        runtime: file.runtime,
        requests: requests(file.requests)?,
        pods: requests(file.pods)?,
        default: default.unwrap_or(Default::None),
        sharing: sharing.unwrap_or(Sharing::Shared),
        gpus: match file.gpus {
            Some(listed) => Some(gpus(&listed)?),
            None => None,
        },
        wait_limit_s: file.wait_limit_s.unwrap_or(0),
        idle_grace_s: file.idle_grace_s,
        quarantine: file.quarantine.unwrap_or_default(),
        folders: folders(&file.folders.unwrap_or_default())?,
        edits: match file.edits {
            Some(edits) => edits_of(edits.get())?,
            None => Edits::default(),
        },
    };
    let can_be_kept = policy.wait_limit_s <= LONGEST_WAIT_S
        && policy.runtime.as_ref().is_none_or(|runtime| runtime.starts_with('/'))
        && (policy.sharing, policy.default) != (Sharing::Exclusive, Default::All);
    can_be_kept.then_some(policy)
}

/// The outer None: it is no name of these.
fn named<T: Copy>(name: Option<String>, names: &[(&str, T)]) -> Option<Option<T>> {
    let Some(name) = name else { return Some(None) };
    names.iter().find(|(known, _)| *known == name).map(|(_, meaning)| Some(*meaning))
}

fn folders(listed: &[String]) -> Option<Vec<String>> {
    let folder = |path: &String| {
        let is_one =
            path.starts_with('/') && !path.split('/').any(|part| part == "..") && !normal(path).is_empty();
        is_one.then(|| format!("/{}", normal(path)))
    };
    listed.iter().map(folder).collect()
}

fn edits_of(raw: &str) -> Option<Edits> {
    if !raw.starts_with('{') {
        return None;
    }
    let file: FileEdits<'_> = serde_json::from_str(raw).ok()?;
    let memlock_bytes = match file.memlock_bytes.map(RawValue::get) {
        Some(text) if text.starts_with('"') => {
            Some(value::<String>(text).filter(|text| text == "unlimited").map(|_| u64::MAX)?)
        }
        Some(number) => Some(value::<NonZeroU64>(number)?.get()),
        None => None,
    };
    let mut gfx_override: Vec<(Render, String)> = Vec::new();
    for (key, version) in file.gfx_override.map_or(Some(Vec::new()), |raw| members(raw.get()))? {
        let (render, version) = (Render::parse(&key)?, value::<String>(version)?);
        let parts: Vec<&str> = version.split('.').collect();
        let is_number = |part: &&str| part.chars().all(|c| c.is_ascii_digit()) && part.parse::<u8>().is_ok();
        let is_version = parts.len() == 3 && parts.iter().all(is_number) && parts[0].parse::<u8>().ok()? < 64;
        if !is_version || gfx_override.iter().any(|(other, _)| *other == render) {
            return None;
        }
        gfx_override.push((render, version));
    }
    Some(Edits { shm_bytes: file.shm_bytes.map(NonZeroU64::get), memlock_bytes, gfx_override })
}

fn gpus(listed: &[&RawValue]) -> Option<Vec<Gpu>> {
    let mut gpus = BTreeMap::new();
    for raw in listed {
        if !raw.get().starts_with('{') {
            return None;
        }
        let gpu: FileGpu<'_> = serde_json::from_str(raw.get()).ok()?;
        let pci = PciAddress::parse(&gpu.pci)?;
        let card = match gpu.card {
            Some(card) => PciAddress::parse(&card)?,
            None => pci,
        };
        let hive = match gpu.hive.map(RawValue::get) {
            Some(text) if text.starts_with('"') => Some(value::<String>(text)?),
            Some(number) => Some(value::<u64>(number)?.to_string()),
            None => None,
        };
        let gpu = Gpu {
            index: gpu.index,
            pci: Some(pci),
            render: Render::parse(&gpu.render)?,
            uuid: gpu.uuid,
            card_uuid: gpu.card_uuid,
            card: Some(card),
            hive,
            integrated: gpu.integrated.unwrap_or_default(),
        };
        let is_alike =
            |other: &Gpu| other.render == gpu.render || other.uuid.is_some() && other.uuid == gpu.uuid;
        if gpus.values().any(is_alike) || gpus.insert(gpu.index, gpu).is_some() {
            return None;
        }
    }
    Some(gpus.into_values().collect())
}

/// The member of this name where it stands once in an object.
pub(crate) fn single<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let members = members(text)?;
    let mut found = members.iter().filter(|(key, _)| key == name).map(|(_, value)| *value);
    let (first, second) = (found.next(), found.next());
    first.filter(|_| second.is_none())
}
