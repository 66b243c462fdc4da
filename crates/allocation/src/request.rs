//! Reads a container's request from its environment.
//!
//! `AMD_VISIBLE_DEVICES` is `all`, `none`, `void`, empty, or a list, separated by commas, of: an index,
//! a range of them (`0-3`), a uuid (`GPU-…`), a PCI address (with or without its domain, in any case), or a
//! render node (`renderD128`, `/dev/dri/renderD128`). `AMD_GPU_COUNT` is a number.
//!
//! `AMD_GPU_WAIT` is how many seconds a request may wait for GPUs that other containers hold exclusively.
//!
//! Where a variable appears several times, its last value counts. `none`, `void`, an empty value and a count
//! of 0 are a request for no GPU, which rules out the default. The text is foreign: its length is bounded
//! before it is parsed, and a word that names no GPU is refused, never taken for a path.

use std::{borrow::Cow, fmt, ops::RangeInclusive};

use inventory::PciAddress;

use crate::{Error, Quoted, Render, error::refuse};

/// The variable that names GPUs.
pub const VISIBLE_DEVICES: &str = "AMD_VISIBLE_DEVICES";
/// The variable that asks for a number of GPUs.
pub const GPU_COUNT: &str = "AMD_GPU_COUNT";
/// The variable that says how long a request may wait, in seconds.
pub const GPU_WAIT: &str = "AMD_GPU_WAIT";
/// The longest value that is read, in bytes.
pub const LONGEST_VALUE: usize = 4096;
/// The most GPUs that one request may name, ranges counted in full.
pub const MOST_GPUS: u32 = 1024;
/// The longest uuid that is read. AMD's have 20 characters: `GPU-` and 16 hexadecimal digits.
const LONGEST_UUID: usize = 64;

/// A container's request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// No GPU, explicitly.
    Nothing,
    /// Every GPU that the policy allows.
    All,
    /// The selected GPUs, each at most once; never empty.
    Listed(Vec<Selector>),
    /// A number of GPUs, 1 to [`MOST_GPUS`], whichever they are.
    Count(u32),
}

/// A word of a request that names one GPU, or one card with all its partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    Index(u32),
    /// A uuid in the container's spelling; it is compared without regard to case.
    Uuid(String),
    /// A card, with all its partitions.
    Pci(PciAddress),
    Render(Render),
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Index(index) => write!(f, "{index}"),
            Self::Uuid(uuid) => f.write_str(uuid),
            Self::Pci(address) => write!(f, "{address}"),
            Self::Render(render) => write!(f, "{render}"),
        }
    }
}

impl Request {
    /// Reads the request out of an environment of `KEY=VALUE` entries. None: neither variable is there.
    ///
    /// If one variable asks for GPUs and the other asks for none, the one that asks counts.
    ///
    /// # Errors
    /// A value is too long, names something that is no GPU, or both variables ask for GPUs.
    pub fn from_env<'e>(env: impl IntoIterator<Item = &'e str>) -> Result<Option<Self>, Error> {
        let (mut devices, mut count) = (None, None);
        for entry in env {
            devices = value_of(entry, VISIBLE_DEVICES).or(devices);
            count = value_of(entry, GPU_COUNT).or(count);
        }
        let devices = devices.map(Self::from_visible_devices).transpose()?;
        let count = count.map(Self::from_gpu_count).transpose()?;
        match (devices, count) {
            (None | Some(Self::Nothing), Some(count)) => Ok(Some(count)),
            (devices, None | Some(Self::Nothing)) => Ok(devices),
            (Some(_), Some(_)) => {
                refuse(format!("{VISIBLE_DEVICES} and {GPU_COUNT} both ask for GPUs: set only one of them"))
            }
        }
    }

    /// Reads a value of [`VISIBLE_DEVICES`].
    ///
    /// # Errors
    /// The value is too long, or names something that is no GPU.
    pub fn from_visible_devices(value: &str) -> Result<Self, Error> {
        let value = bounded(VISIBLE_DEVICES, value)?;
        if let Some(request) = keyword(value) {
            return Ok(request);
        }
        let mut named = Vec::new();
        let mut asked = 0;
        for part in value.split(',').map(trim) {
            let selectors = match range(part)? {
                Some(indexes) => indexes.map(Selector::Index).collect(),
                None => vec![single(part)?],
            };
            asked += selectors.len();
            if asked > MOST_GPUS as usize {
                return too_many(VISIBLE_DEVICES);
            }
            for selector in selectors {
                if !named.contains(&selector) {
                    named.push(selector);
                }
            }
        }
        Ok(Self::Listed(named))
    }

    /// Reads a value of [`GPU_COUNT`].
    ///
    /// # Errors
    /// The value is too long, no number, or more than [`MOST_GPUS`].
    pub fn from_gpu_count(value: &str) -> Result<Self, Error> {
        let value = bounded(GPU_COUNT, value)?;
        if value.is_empty() || value.bytes().all(|b| b == b'0') {
            return Ok(Self::Nothing);
        }
        if !value.bytes().all(|b| b.is_ascii_digit()) {
            return refuse(format!("{GPU_COUNT}: {} is not a number of GPUs", Quoted(value)));
        }
        match value.parse() {
            Ok(count) if count <= MOST_GPUS => Ok(Self::Count(count)),
            _ => too_many(GPU_COUNT),
        }
    }

    /// Whether the request is for at least one GPU.
    #[must_use]
    pub fn asks_for_gpus(&self) -> bool {
        *self != Self::Nothing
    }

    /// The request as a message names it.
    #[must_use]
    pub fn describe(&self) -> Cow<'static, str> {
        match self {
            Self::Nothing => "no GPU".into(),
            Self::All => "all GPUs".into(),
            Self::Listed(list) if list.len() == 1 => "a GPU by name".into(),
            Self::Listed(list) => format!("{} GPUs by name", list.len()).into(),
            Self::Count(1) => "1 GPU by count".into(),
            Self::Count(count) => format!("{count} GPUs by count").into(),
        }
    }
}

/// How many seconds the environment lets a request wait; 0 where it does not say. A number that is too large
/// for the type counts as its maximum.
///
/// # Errors
/// The value is too long, or no whole number.
pub fn wait_from_env<'e>(env: impl IntoIterator<Item = &'e str>) -> Result<u32, Error> {
    let values = env.into_iter().filter_map(|entry| value_of(entry, GPU_WAIT));
    let Some(value) = values.last() else { return Ok(0) };
    let value = bounded(GPU_WAIT, value)?;
    if value.is_empty() {
        return Ok(0);
    }
    if !is_number(value) {
        return refuse(format!("{GPU_WAIT}: {} is not a number of seconds", Quoted(value)));
    }
    Ok(value.parse().unwrap_or(u32::MAX))
}

/// Whether a text of JSON can hold a request at all: its variables begin with `AMD_`, and JSON can hide
/// letters only behind `\u`. Most bundles cannot, and are not looked at further.
#[must_use]
pub fn may_be_in(json: &[u8]) -> bool {
    json.windows(4).any(|window| window == b"AMD_") || json.windows(2).any(|window| window == br"\u")
}

/// The value, if this is the entry of this variable. Cheaper than to look for the `=` in each of many.
fn value_of<'e>(entry: &'e str, variable: &str) -> Option<&'e str> {
    entry.strip_prefix(variable)?.strip_prefix('=')
}

fn bounded<'v>(variable: &'static str, value: &'v str) -> Result<&'v str, Error> {
    if value.len() > LONGEST_VALUE {
        return refuse(format!(
            "{variable} has {} bytes, more than the {LONGEST_VALUE} that are read",
            value.len()
        ));
    }
    Ok(trim(value))
}

fn trim(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

fn too_many<T>(variable: &str) -> Result<T, Error> {
    refuse(format!("{variable} asks for more than {MOST_GPUS} GPUs, the most that one container can have"))
}

/// The request of a value that is a keyword.
fn keyword(value: &str) -> Option<Request> {
    let is = |word| value.eq_ignore_ascii_case(word);
    if is("all") {
        return Some(Request::All);
    }
    (is("") || is("none") || is("void")).then_some(Request::Nothing)
}

/// The indexes of a range; None if the part is not of that form.
fn range(part: &str) -> Result<Option<RangeInclusive<u32>>, Error> {
    let ends = part.split_once('-').filter(|(first, last)| is_number(first) && is_number(last));
    let Some((first, last)) = ends else { return Ok(None) };
    match (first.parse::<u32>(), last.parse::<u32>()) {
        (Ok(first), Ok(last)) if first > last => {
            refuse(format!("{VISIBLE_DEVICES}: the range {} ends before it begins", Quoted(part)))
        }
        (Ok(first), Ok(last)) if last - first < MOST_GPUS => Ok(Some(first..=last)),
        _ => too_many(VISIBLE_DEVICES),
    }
}

fn single(part: &str) -> Result<Selector, Error> {
    let index = is_number(part).then(|| part.parse().ok()).flatten();
    let selector = index
        .map(Selector::Index)
        .or_else(|| Render::parse(part).map(Selector::Render))
        .or_else(|| PciAddress::parse(part).map(Selector::Pci))
        .or_else(|| is_uuid(part).then(|| Selector::Uuid(part.to_owned())));
    match selector {
        Some(selector) => Ok(selector),
        None if !part.is_empty() && keyword(part).is_some() => {
            refuse(format!("{VISIBLE_DEVICES}: {} must be the whole value, not part of a list", Quoted(part)))
        }
        None => refuse(format!(
            "{VISIBLE_DEVICES}: {} does not name a GPU; a name is an index, a range such as 0-3, a uuid (GPU-…), a PCI \
             address or a render node",
            Quoted(part)
        )),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

fn is_uuid(text: &str) -> bool {
    let prefix = text.get(..4).is_some_and(|prefix| prefix.eq_ignore_ascii_case("GPU-"));
    let rest = text.get(4..).unwrap_or_default();
    prefix
        && !rest.is_empty()
        && text.len() <= LONGEST_UUID
        && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(test)]
mod tests;
