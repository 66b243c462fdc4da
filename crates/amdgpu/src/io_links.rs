//! The links between KFD's nodes: topology/nodes/N/io_links (kfd_topology.c, kfd_crat.h).

use std::path::Path;

use root::Root;

use crate::attribute::{self, Reading, Unknown};
use crate::kfd;

/// CRAT_IOLINK_TYPE_XGMI.
const XGMI: &str = "11";

/// How many XGMI links KFD names at a node. A file for each link is read: 64 partitions have 4,000.
///
/// # Errors
/// Why that is not known.
pub fn xgmi_links(root: &Root, node: u32) -> Reading<u32> {
    let folder = kfd::node_folder(node).join("io_links");
    let mut links = 0;
    for name in attribute::names(root, &folder)? {
        let path = folder.join(name).join("properties");
        let properties = attribute::text(root, &path)?;
        let kind = kfd::property(&properties, "type").ok_or_else(|| {
            Unknown::because(format!("{} names no type of the link", root.shown(&path).display()))
        })?;
        links += u32::from(kind == XGMI);
    }
    Ok(links)
}

/// The number that KFD raises with each change of its topology.
///
/// # Errors
/// Why it is not known.
pub fn topology_generation(root: &Root) -> Reading<u64> {
    attribute::number(root, &Path::new(kfd::CLASS).join("topology/generation_id"))
}
