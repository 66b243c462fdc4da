//! Reads KFD's links between GPUs.

use std::collections::{BTreeMap, BTreeSet};

use inventory::topology::{Kind, Link, Nearest};
use inventory::{Gpu, Inventory, Reading, Unknown};
use root::Root;

use crate::io_links::{self, IO, P2P, XGMI};

/// A node with no more hops than this: `num_hops` has three bits for them (amdgpu_xgmi.c).
const MOST_HOPS: u64 = 7;
/// `KFD_CRAT_XGMI_WEIGHT` of kfd_crat.c, for each hop.
const WEIGHT_OF_A_HOP: u64 = 15;

/// KFD's links, by the numbers of the nodes at both ends.
#[derive(Debug, Default)]
pub(super) struct Links {
    io: BTreeMap<(u32, u32), io_links::Link>,
    /// Paths over PCIe by which KFD offers peer access.
    p2p: BTreeMap<(u32, u32), io_links::Link>,
    /// Nodes whose paths over PCIe are all known.
    p2p_known: BTreeSet<u32>,
    /// Why not all links of a node are known.
    unread: BTreeMap<u32, Unknown>,
    pub(super) problems: Vec<String>,
}

impl Links {
    pub(super) fn read(root: &Root, inventory: &Inventory) -> Self {
        let nodes: BTreeSet<u32> = inventory.gpus.iter().filter_map(|gpu| gpu.kfd_node).collect();
        let mut links = Self::default();
        for node in nodes {
            match io_links::of_node(root, node, IO) {
                Ok(found) => links.add(node, found),
                Err(why) => {
                    links.problems.push(format!("KFD node {node} names no links: {why}"));
                    links.unread.insert(node, why);
                }
            }
            if let Ok(found) = io_links::of_node(root, node, P2P) {
                if found.iter().all(Result::is_ok) {
                    links.p2p_known.insert(node);
                }
                links.p2p.extend(found.into_iter().flatten().map(|link| ((node, link.to), link)));
            }
        }
        links
    }

    fn add(&mut self, node: u32, found: Vec<Reading<io_links::Link>>) {
        let mut unread = Vec::new();
        for link in found {
            match link {
                Ok(link) => {
                    // Two GPUs that XGMI links use it, whichever other links they have.
                    let known = self.io.entry((node, link.to)).or_insert_with(|| link.clone());
                    if known.kind != XGMI && link.kind == XGMI {
                        *known = link;
                    }
                }
                Err(why) => unread.push(why),
            }
        }
        if let Some(first) = unread.first() {
            let more = match unread.len() - 1 {
                0 => String::new(),
                more => format!("; and so {more} more of its links"),
            };
            self.problems.push(format!("KFD node {node}: {first}{more}"));
            self.unread.insert(node, first.clone());
        }
    }

    /// The link between two GPUs, `nearest` of which PCIe goes through.
    pub(super) fn link(
        &self,
        (index, gpu): (u32, &Gpu),
        (other, peer): (u32, &Gpu),
        nearest: Option<Reading<Nearest>>,
    ) -> Link {
        let nodes = gpu.kfd_node.zip(peer.kfd_node);
        let there = nodes.and_then(|nodes| self.io.get(&nodes));
        let back = nodes.and_then(|(a, b)| self.io.get(&(b, a)));
        let p2p = nodes.and_then(|(a, b)| self.p2p.get(&(a, b)).or_else(|| self.p2p.get(&(b, a))));
        let kind = match (&nearest, there, back) {
            (None, ..) => Ok(Kind::Card),
            (_, Some(there), Some(back)) if there.kind != back.kind => Err(Unknown::because(format!(
                "KFD names a link of type {} from GPU {index} to GPU {other}, and of type {} back",
                there.kind, back.kind
            ))),
            (_, Some(link), _) | (_, _, Some(link)) if link.kind == XGMI => {
                Ok(Kind::Xgmi { hops: hops(link, back) })
            }
            (Some(nearest), ..) => self.over_pcie((index, gpu), (other, peer), nearest),
        };
        let peer_access = match &kind {
            Ok(Kind::Card | Kind::Xgmi { .. }) => Some(true),
            _ if there.or(back).or(p2p).is_some() => Some(true),
            _ => nodes.and_then(|(a, b)| {
                (self.p2p_known.contains(&a) && self.p2p_known.contains(&b)).then_some(false)
            }),
        };
        let best = |value: fn(&io_links::Link) -> Option<u64>| {
            [there, back, p2p].into_iter().flatten().find_map(value)
        };
        Link {
            gpus: (index, other),
            kind,
            nearest,
            weight: best(|link| link.weight),
            min_bandwidth: best(|link| link.min_bandwidth),
            max_bandwidth: best(|link| link.max_bandwidth),
            peer_access,
        }
    }

    /// PCIe between two GPUs: known where KFD names all links of both, and none of XGMI.
    fn over_pcie(&self, a: (u32, &Gpu), b: (u32, &Gpu), nearest: &Reading<Nearest>) -> Reading<Kind> {
        nearest.as_ref().map_err(Clone::clone)?;
        for (index, gpu) in [a, b] {
            let Some(node) = gpu.kfd_node else {
                let why = format!("KFD does not know GPU {index}, and only KFD says whether XGMI links it");
                return Err(Unknown::because(why));
            };
            if let Some(why) = self.unread.get(&node) {
                return Err(why.clone());
            }
        }
        Ok(Kind::Pcie)
    }
}

/// KFD says 15 for each hop (kfd_fill_gpu_xgmi_link_to_gpu). For a partitioned card it says 41 whatever the hops, and for
/// a number that the firmware did not tell 0. rocm-smi and amd-smi say 1 of every XGMI link (rsmi_topo_get_link_type).
fn hops(there: &io_links::Link, back: Option<&io_links::Link>) -> Reading<u32> {
    let weights = [Some(there), back].into_iter().flatten().filter_map(|link| link.weight);
    let hops = |weight: u64| {
        let hops = weight / WEIGHT_OF_A_HOP;
        (weight.is_multiple_of(WEIGHT_OF_A_HOP) && hops <= MOST_HOPS).then_some(hops)
    };
    let known = weights.clone().find_map(hops).and_then(|hops| u32::try_from(hops).ok());
    known.ok_or_else(|| match weights.clone().next() {
        Some(weight) => Unknown::because(format!(
            "KFD gives the weight {weight}, which is no multiple of {WEIGHT_OF_A_HOP}, as of a partitioned card"
        )),
        None => Unknown::because("KFD gives the link no weight"),
    })
}
