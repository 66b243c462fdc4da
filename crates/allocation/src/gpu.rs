//! A GPU as wrapper.json lists it: what a create needs to know of it.

use std::fmt;

use foreign_text::is_unsafe_to_show;
use inventory::PciAddress;
use serde::{Deserialize, Deserializer, de::Error as _};

use crate::path::clean;
use crate::withheld::{Card, Withheld};
use crate::{Quoted, Render};

/// Something that a container can be given: a GPU, or a partition of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gpu {
    /// The number that `rocworker detect` gives, in KFD's node order.
    pub index: u32,
    /// Other names that a request can use: the GPU's uuid; the card's uuid and PCI address where all of the
    /// card is available.
    pub names: Vec<String>,
    /// The GPU's card. `None` for a partition whose card the kernel does not name.
    pub card: Option<PciAddress>,
    /// The card's compute mode when the policy was written; `None` where it reports none.
    pub compute: Option<String>,
    pub render: Render,
    /// The GPU's device nodes, one of them its render node.
    pub nodes: Vec<Node>,
    /// The XGMI hive of the card, by KFD's number.
    pub hive: Option<String>,
    pub numa_node: Option<u32>,
    /// Whether the GPU is an APU's graphics beside a card: a count takes it last.
    pub integrated: bool,
}

/// A device node, at its path on the host and in the container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    /// A path beneath `/dev`, written in one way only.
    #[serde(deserialize_with = "device_path")]
    pub path: String,
    /// The host's group that may open it; `None`: as the node has it.
    #[serde(default, deserialize_with = "group")]
    pub gid: Option<u32>,
}

fn device_path<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let path = String::deserialize(deserializer)?;
    let is_plain = path.starts_with("/dev/") && *clean(&path) == *path && !path.contains(is_unsafe_to_show);
    if is_plain {
        Ok(path)
    } else {
        Err(D::Error::custom(format!("{} is no path of a device node", Quoted(&path))))
    }
}

/// runc refuses a group beyond this one (`maxGid` of moby/sys/user), and with it the container.
const HIGHEST_GROUP: u32 = i32::MAX.cast_unsigned();

fn group<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u32>, D::Error> {
    match Option::<u32>::deserialize(deserializer)? {
        Some(gid) if gid > HIGHEST_GROUP => {
            Err(D::Error::custom(format!("the gid {gid} is above {HIGHEST_GROUP}")))
        }
        gid => Ok(gid),
    }
}

/// A compute mode, as the driver names one.
fn mode<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    match Option::<String>::deserialize(deserializer)? {
        Some(mode) if mode.len() > 8 || !mode.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            Err(D::Error::custom("compute is no mode such as CPX"))
        }
        mode => Ok(mode),
    }
}

impl Node {
    #[must_use]
    pub fn at(path: impl Into<String>) -> Self {
        Self { path: path.into(), gid: None }
    }
}

impl Gpu {
    /// What withholds the GPU's card from containers, if anything does.
    #[must_use]
    pub fn withheld<'w>(&self, by: &'w Withheld) -> Option<&'w Card> {
        by.card(self.card?)
    }
}

impl fmt::Display for Gpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.card {
            Some(card) => write!(f, "{} ({card}, {})", self.index, self.render),
            None => write!(f, "{} ({})", self.index, self.render),
        }
    }
}

/// Reads a GPU as schema 2 writes it.
impl<'de> Deserialize<'de> for Gpu {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Entry {
            index: u32,
            names: Vec<String>,
            card: PciAddress,
            #[serde(default, deserialize_with = "mode")]
            compute: Option<String>,
            nodes: Vec<Node>,
            hive: Option<String>,
            numa_node: Option<u32>,
            #[serde(default)]
            integrated: bool,
        }
        let Entry { index, names, card, compute, nodes, hive, numa_node, integrated } =
            Entry::deserialize(deserializer)?;
        let mut renders = nodes.iter().filter_map(|node| Render::parse(&node.path));
        let (Some(render), None) = (renders.next(), renders.next()) else {
            return Err(D::Error::custom(format!(
                "the GPU {index} needs one render node like /dev/dri/renderD128"
            )));
        };
        Ok(Self { index, names, card: Some(card), compute, render, nodes, hive, numa_node, integrated })
    }
}

/// A GPU as schema 1 has it: the wrapper looks for the card node in sysfs.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FirstSchema {
    index: u32,
    pci: PciAddress,
    render: Render,
    uuid: Option<String>,
    card_uuid: Option<String>,
    card: Option<PciAddress>,
    hive: Option<Hive>,
    integrated: Option<bool>,
}

/// A hive: some writers give KFD's number as a number, some as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Hive {
    Number(u64),
    Text(String),
}

impl From<FirstSchema> for Gpu {
    fn from(gpu: FirstSchema) -> Self {
        let card = gpu.card.unwrap_or(gpu.pci);
        Self {
            index: gpu.index,
            names: [gpu.uuid, gpu.card_uuid, Some(card.to_string())].into_iter().flatten().collect(),
            card: Some(card),
            compute: None,
            render: gpu.render,
            nodes: vec![Node::at(gpu.render.path())],
            hive: gpu.hive.map(|hive| match hive {
                Hive::Number(number) => number.to_string(),
                Hive::Text(text) => text,
            }),
            numa_node: None,
            integrated: gpu.integrated.unwrap_or_default(),
        }
    }
}
