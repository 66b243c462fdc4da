//! The JSON of a machine's links, as docs/json.md documents it for `topology`: absent is null, never 0.

use std::collections::BTreeMap;

use serde::ser::{SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};

use crate::topology::{Card, Hive, Kind, Link, Linked, hive_name};
use crate::tree::{Branch, Place};
use crate::{Gpu, names};

const SCHEMA_VERSION: u32 = 1;

/// A part whose JSON takes something from the machine around it.
struct Of<'m, T>(Linked<'m>, T);

impl Serialize for Linked<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let gpus: Vec<_> = self.gpus().map(|gpu| Of(*self, gpu)).collect();
        let tree = self.tree();
        let tree: Vec<_> = tree.iter().map(|branch| Of(*self, branch)).collect();
        let mut object = serializer.serialize_struct("Topology", 6)?;
        object.serialize_field("schema_version", &SCHEMA_VERSION)?;
        object.serialize_field("gpus", &gpus)?;
        object.serialize_field("links", &self.topology.links)?;
        object.serialize_field("hives", &self.hives())?;
        object.serialize_field("tree", &tree)?;
        object.serialize_field("problems", &self.problems())?;
        object.end()
    }
}

impl Serialize for Of<'_, (u32, &Gpu)> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(linked, (index, gpu)) = self;
        let mut object = serializer.serialize_struct("Gpu", 8)?;
        object.serialize_field("index", index)?;
        object.serialize_field("pci", &gpu.pci)?;
        object.serialize_field("partition", &gpu.partition.as_ref().map(|it| it.id))?;
        object.serialize_field("kfd_node", &gpu.kfd_node)?;
        object.serialize_field("hive", &gpu.hive_id.map(hive_name))?;
        object.serialize_field("numa_node", &gpu.numa_node.as_ref().ok())?;
        object.serialize_field("local_cpus", &linked.local_cpus(gpu).ok())?;
        object.serialize_field("unknown", &linked.unknown(gpu))?;
        object.end()
    }
}

impl Serialize for Hive {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Hive", 3)?;
        object.serialize_field("id", &hive_name(self.id))?;
        object.serialize_field("gpus", &self.gpus)?;
        object.serialize_field("cards", &self.cards)?;
        object.end()
    }
}

impl Serialize for Of<'_, &Branch<'_>> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(linked, Branch { place, children }) = self;
        let mut object = serializer.serialize_map(None)?;
        match place {
            Place::NumaNode { number, local_cpus } => {
                object.serialize_entry("type", "numa_node")?;
                object.serialize_entry("numa_node", number)?;
                object.serialize_entry("local_cpus", local_cpus)?;
            }
            Place::HostBridge(name) => {
                object.serialize_entry("type", "host_bridge")?;
                object.serialize_entry("name", name)?;
            }
            Place::Bridge { address, is_on_card } => {
                object.serialize_entry("type", "bridge")?;
                object.serialize_entry("pci", address)?;
                object.serialize_entry("on_card", is_on_card)?;
            }
            Place::Card(card) => self.card(Some(card), &mut object)?,
            Place::NoCard(_) => self.card(None, &mut object)?,
        }
        if !children.is_empty() {
            let children: Vec<_> = children.iter().map(|branch| Of(*linked, branch)).collect();
            object.serialize_entry("children", &children)?;
        }
        object.end()
    }
}

impl Of<'_, &Branch<'_>> {
    /// `card`: `None` for GPUs of which sysfs does not tell it.
    fn card<M: SerializeMap>(&self, card: Option<&Card>, object: &mut M) -> Result<(), M::Error> {
        let Self(linked, branch) = self;
        let gpu = card.and_then(|card| linked.inventory.gpus.get(*card.gpus.first()?));
        let unknown = match card {
            Some(card) => card.speed.as_ref().err().or(card.width.as_ref().err()).map(ToString::to_string),
            None => Some("sysfs does not name the card of these GPUs".to_owned()),
        };
        let gpus = linked.gpus_at(&branch.place).into_iter();
        let gpus =
            gpus.map(|(index, partition)| BTreeMap::from([("index", Some(index)), ("partition", partition)]));
        object.serialize_entry("type", "card")?;
        object.serialize_entry("pci", &card.map(|card| card.address))?;
        object.serialize_entry("vendor", card.map_or("amd", |card| card.vendor.name()))?;
        object.serialize_entry("name", &gpu.and_then(names::of))?;
        object
            .serialize_entry("link_transfers_per_second", &card.and_then(|card| card.speed.as_ref().ok()))?;
        object.serialize_entry("link_lanes", &card.and_then(|card| card.width.as_ref().ok()))?;
        object.serialize_entry("hive", &gpu.and_then(|gpu| gpu.hive_id).map(hive_name))?;
        object.serialize_entry("gpus", &gpus.collect::<Vec<_>>())?;
        object.serialize_entry("unknown", &unknown)
    }
}

impl Serialize for Link {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, hops) = match &self.kind {
            Ok(Kind::Card) => (Some("card"), None),
            Ok(Kind::Xgmi { hops }) => (Some("xgmi"), Some(hops)),
            Ok(Kind::Pcie) => (Some("pcie"), None),
            Err(_) => (None, None),
        };
        let nearest = self.nearest.as_ref();
        let reasons = [
            ("kind", self.kind.as_ref().err()),
            ("hops", hops.and_then(|hops| hops.as_ref().err())),
            ("pcie", nearest.and_then(|nearest| nearest.as_ref().err())),
        ];
        let unknown: BTreeMap<&str, String> =
            reasons.into_iter().filter_map(|(field, why)| Some((field, why?.to_string()))).collect();
        let mut object = serializer.serialize_struct("Link", 9)?;
        object.serialize_field("gpus", &self.gpus)?;
        object.serialize_field("kind", &kind)?;
        object.serialize_field("hops", &hops.and_then(|hops| hops.as_ref().ok()))?;
        object.serialize_field("pcie", &nearest.and_then(|it| it.as_ref().ok()).map(|it| it.word()))?;
        object.serialize_field("weight", &self.weight)?;
        object.serialize_field("min_megabytes_per_second", &self.min_bandwidth)?;
        object.serialize_field("max_megabytes_per_second", &self.max_bandwidth)?;
        object.serialize_field("peer_access", &self.peer_access)?;
        object.serialize_field("unknown", &unknown)?;
        object.end()
    }
}
