//! How near the GPUs are to each other.

use std::collections::BTreeMap;

use inventory::topology::{Kind, Link, Nearest};
use root::Root;

use crate::offered::{left_out, numa_node, offered};

/// A GPU with its links to all others.
#[derive(Debug, Clone)]
pub(crate) struct Row {
    pub(crate) uuid: String,
    pub(crate) numa_node: i32,
    pub(crate) peers: Vec<Peer>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer {
    /// The other GPU's place in the list.
    pub(crate) place: usize,
    pub(crate) level: TopoLevel,
    pub(crate) is_xgmi: bool,
    /// The bandwidth of the link's lines together, as KFD computes it; 0 where KFD names none.
    pub(crate) bytes_per_second: u64,
}

/// The ABI's levels, the nearest first; 6, a device itself, stands in no list of peers.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TopoLevel {
    Internal = 0,
    SingleSwitch = 1,
    MultiSwitch = 2,
    HostBridge = 3,
    NumaNode = 4,
    System = 5,
    Unknown = 7,
}

/// Reads the links of the devices, in their order.
pub(crate) fn rows(root: &Root, node: Option<&str>) -> (Vec<Row>, Vec<String>) {
    let inventory = amdgpu::read(root);
    let topology = amdgpu::topology(root, &inventory);
    let links: BTreeMap<(u32, u32), &Link> = topology.links.iter().map(|link| (link.gpus, link)).collect();
    let cards = inventory.cards();
    let gpus = offered(&cards, &[], node);
    let sentences = [left_out(&inventory, &gpus), topology.problems.clone()].concat();
    let row = |place: usize| {
        let it = gpus.get(place)?;
        let others = gpus.iter().enumerate().filter(|(other, _)| *other != place);
        let peers = others.map(|(other, peer)| {
            let pair = it.gpu.index.zip(peer.gpu.index).map(|(a, b)| (a.min(b), a.max(b)));
            self::peer(other, pair.and_then(|pair| links.get(&pair).copied()))
        });
        Some(Row { uuid: it.uuid.clone(), numa_node: numa_node(&it.gpu.numa_node), peers: peers.collect() })
    };
    ((0..gpus.len()).filter_map(row).collect(), sentences)
}

fn peer(place: usize, link: Option<&Link>) -> Peer {
    let megabytes = link.and_then(|link| link.max_bandwidth).unwrap_or_default();
    Peer {
        place,
        level: link.map_or(TopoLevel::Unknown, level),
        is_xgmi: link.is_some_and(|link| matches!(link.kind, Ok(Kind::Xgmi { .. }))),
        bytes_per_second: megabytes.saturating_mul(1_000_000),
    }
}

/// The ABI has no level for XGMI: it gets that of one PCIe switch, the nearest between two cards.
fn level(link: &Link) -> TopoLevel {
    match (&link.kind, &link.nearest) {
        (Ok(Kind::Card), _) => TopoLevel::Internal,
        (Ok(Kind::Xgmi { .. }), _) => TopoLevel::SingleSwitch,
        (_, Some(Ok(nearest))) => match nearest {
            Nearest::Pix => TopoLevel::SingleSwitch,
            Nearest::Pxb => TopoLevel::MultiSwitch,
            Nearest::Phb => TopoLevel::HostBridge,
            Nearest::Node => TopoLevel::NumaNode,
            Nearest::Sys => TopoLevel::System,
        },
        _ => TopoLevel::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use inventory::Unknown;

    use super::*;

    fn link(kind: Result<Kind, Unknown>, nearest: Option<Result<Nearest, Unknown>>) -> Link {
        let gpus = (0, 1);
        Link {
            gpus,
            kind,
            nearest,
            weight: None,
            min_bandwidth: None,
            max_bandwidth: Some(64_000),
            peer_access: None,
        }
    }

    #[test]
    fn every_kind_of_link_has_its_level() {
        let unknown = || Unknown::because("not read");
        let xgmi = || Ok(Kind::Xgmi { hops: Ok(1) });
        for (kind, nearest, expected) in [
            (Ok(Kind::Card), None, TopoLevel::Internal),
            (xgmi(), Some(Ok(Nearest::Sys)), TopoLevel::SingleSwitch),
            (xgmi(), Some(Err(unknown())), TopoLevel::SingleSwitch),
            (Ok(Kind::Pcie), Some(Ok(Nearest::Pix)), TopoLevel::SingleSwitch),
            (Ok(Kind::Pcie), Some(Ok(Nearest::Pxb)), TopoLevel::MultiSwitch),
            (Ok(Kind::Pcie), Some(Ok(Nearest::Phb)), TopoLevel::HostBridge),
            (Err(unknown()), Some(Ok(Nearest::Node)), TopoLevel::NumaNode),
            (Ok(Kind::Pcie), Some(Ok(Nearest::Sys)), TopoLevel::System),
            (Ok(Kind::Pcie), Some(Err(unknown())), TopoLevel::Unknown),
            (Err(unknown()), None, TopoLevel::Unknown),
        ] {
            let link = link(kind, nearest);
            assert_eq!(level(&link), expected, "{link:?}");
        }
        assert_eq!(peer(3, None).level, TopoLevel::Unknown);
        assert_eq!(peer(3, Some(&link(xgmi(), None))).bytes_per_second, 64_000_000_000);
    }
}
