//! The links that KFD names at its nodes: topology/nodes/N/{io_links,p2p_links} (kfd_topology.c, kfd_crat.h).

use std::path::{Path, PathBuf};

use inventory::{Reading, Unknown};
use root::Root;

use crate::{attribute, kfd};

/// CRAT_IOLINK_TYPE_XGMI.
pub(crate) const XGMI: u64 = 11;

/// The links of the hardware.
pub(crate) const IO: &str = "io_links";
/// Paths over PCIe and the CPU by which a GPU reaches another one; since Linux 6.0.
pub(crate) const P2P: &str = "p2p_links";

/// A link of the node in whose folder KFD lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    /// CRAT_IOLINK_TYPE_…: 2 is PCIe, 11 XGMI.
    pub(crate) kind: u64,
    /// The number of the node at its other end.
    pub(crate) to: u32,
    /// `None` where KFD says 0: nothing is that near.
    pub(crate) weight: Option<u64>,
    /// The bandwidth in megabytes (10⁶) a second; `None` where KFD says 0, which means unknown.
    pub(crate) min_bandwidth: Option<u64>,
    pub(crate) max_bandwidth: Option<u64>,
}

impl Link {
    /// Parses a `properties` file; `shown` is its path for a person.
    fn parse(properties: &str, shown: &Path) -> Reading<Self> {
        let number = |key: &str| match kfd::property(properties, key) {
            None => Ok(None),
            Some(text) => {
                let number = text.parse::<u64>().map_err(|_| attribute::not_a(key, text, shown))?;
                Ok(Some(number))
            }
        };
        let needed = |key: &str| {
            let lacks = || Unknown::because(format!("{} names no {key} of the link", shown.display()));
            number(key)?.ok_or_else(lacks)
        };
        let to = needed("node_to")?;
        Ok(Self {
            kind: needed("type")?,
            to: u32::try_from(to).map_err(|_| attribute::not_a("node", &to.to_string(), shown))?,
            weight: number("weight")?.filter(|weight| *weight != 0),
            min_bandwidth: number("min_bandwidth")?.filter(|megabytes| *megabytes != 0),
            max_bandwidth: number("max_bandwidth")?.filter(|megabytes| *megabytes != 0),
        })
    }
}

/// The links of a node in [`IO`] or [`P2P`], each or why it is not known. A file for each is read: 64 partitions have 4,000.
///
/// # Errors
/// Why the node's links are not known at all.
pub(crate) fn of_node(root: &Root, node: u32, folder: &str) -> Reading<Vec<Reading<Link>>> {
    let link = |(path, properties): (PathBuf, Reading<String>)| Link::parse(&properties?, &root.shown(&path));
    Ok(files(root, node, folder)?.into_iter().map(link).collect())
}

/// The files of a node's links, with their texts.
fn files(root: &Root, node: u32, folder: &str) -> Reading<Vec<(PathBuf, Reading<String>)>> {
    let folder = kfd::node_folder(node).join(folder);
    let names = attribute::names(root, &folder)?;
    let file = |name| {
        let path = folder.join(name).join("properties");
        let text = attribute::text(root, &path);
        (path, text)
    };
    Ok(names.into_iter().map(file).collect())
}

/// How many XGMI links KFD names at a node.
///
/// # Errors
/// The reason why KFD's links cannot be read.
pub fn xgmi_links(root: &Root, node: u32) -> Reading<u32> {
    let mut links = 0;
    for (path, properties) in files(root, node, IO)? {
        let properties = properties?;
        let kind = kfd::property(&properties, "type").ok_or_else(|| {
            Unknown::because(format!("{} names no type of the link", root.shown(&path).display()))
        })?;
        links += u32::from(kind.parse() == Ok(XGMI));
    }
    Ok(links)
}

/// The number that KFD raises with each change of its topology. KFD takes no lock for it, so that the read never waits
/// (kfd_topology.c, `sysprops_show`).
///
/// # Errors
/// Why it is not known.
pub fn topology_generation(root: &Root) -> Reading<u64> {
    attribute::number(root, &Path::new(kfd::CLASS).join("topology/generation_id"))
}
