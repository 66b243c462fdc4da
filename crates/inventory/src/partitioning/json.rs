//! The JSON of a card's modes, as docs/json.md documents it for `partition show`: absent is null, never 0.

use std::collections::BTreeMap;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use super::{Card, Combination, Device, Seen};
use crate::{Reading, Unknown};

/// A card's device with what follows from its card.
#[derive(Debug, Clone, Copy)]
pub struct DeviceOf<'c>(pub &'c Card, pub &'c Device);

/// A list of modes, with the mode that the card is in.
#[derive(Serialize)]
struct Modes<'c, M> {
    current: Option<M>,
    available: Option<&'c [M]>,
}

impl Serialize for Card {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let compute = self.compute_mode().ok();
        let memory_bytes = self.whole_memory().ok();
        let devices: Vec<_> = self.devices.iter().map(|device| DeviceOf(self, device)).collect();
        let mut object = serializer.serialize_struct("Card", 17)?;
        object.serialize_field("pci", &self.pci)?;
        object.serialize_field("name", &self.name)?;
        object.serialize_field("model", &self.chip.map(|chip| chip.name))?;
        object.serialize_field("gfx", &self.gfx.as_ref().ok().map(ToString::to_string))?;
        object.serialize_field("sriov", &self.sriov)?;
        object.serialize_field("hive", &self.hive_id.map(crate::topology::hive_name))?;
        object.serialize_field("writable", &self.is_writable)?;
        object.serialize_field("xcds", &self.xcds().ok())?;
        object.serialize_field("memory_bytes", &value(memory_bytes))?;
        object.serialize_field("shares_domains", &self.shares_domains)?;
        object.serialize_field(
            "compute",
            &Modes { current: value(compute), available: known(&self.compute_available) },
        )?;
        object.serialize_field(
            "memory",
            &Modes { current: self.memory.as_ref().ok().copied(), available: known(&self.memory_available) },
        )?;
        object.serialize_field("devices", &devices)?;
        object.serialize_field("expected_devices", &self.expected_devices().ok())?;
        object.serialize_field("combinations", &self.combinations().unwrap_or_default())?;
        let computed = [
            ("compute.current", compute.is_some_and(|seen| seen.is_computed)),
            ("memory_bytes", memory_bytes.is_some_and(|seen| seen.is_computed)),
        ];
        let computed: Vec<_> = computed.into_iter().filter_map(|(field, is)| is.then_some(field)).collect();
        object.serialize_field("computed", &computed)?;
        object.serialize_field("unknown", &self.unknown())?;
        object.end()
    }
}

impl Card {
    /// Why the driver does not report a field of the JSON, by the field's name.
    #[must_use]
    pub fn unknown(&self) -> BTreeMap<&'static str, String> {
        fn why<T>(reading: &Reading<T>) -> Option<&Unknown> {
            reading.as_ref().err()
        }
        let fields = [
            ("compute.current", why(&self.compute)),
            ("compute.available", why(&self.compute_available)),
            ("memory.current", why(&self.memory)),
            ("memory.available", why(&self.memory_available)),
            ("memory_bytes", why(&self.memory_bytes)),
        ];
        let mut unknown: BTreeMap<_, _> =
            fields.into_iter().filter_map(|(field, why)| Some((field, why?.to_string()))).collect();
        if let Err(why) = self.combinations() {
            unknown.insert("combinations", why.to_string());
        }
        unknown
    }
}

impl Serialize for DeviceOf<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(card, device) = self;
        let memory = card.memory_of(device).ok();
        let mut object = serializer.serialize_struct("Device", 6)?;
        object.serialize_field("index", &device.index)?;
        object.serialize_field("partition", &device.partition)?;
        object.serialize_field("render", &device.render)?;
        object.serialize_field("xcds", &device.xcds)?;
        object.serialize_field("memory_bytes", &value(memory))?;
        object.serialize_field("memory_computed", &memory.map(|seen| seen.is_computed))?;
        object.end()
    }
}

impl Serialize for Combination {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Combination", 9)?;
        object.serialize_field("compute", &self.compute)?;
        object.serialize_field("memory", &self.memory)?;
        object.serialize_field("devices", &self.devices)?;
        object.serialize_field("xcds", &self.xcds)?;
        object.serialize_field("memory_bytes", &self.memory_bytes)?;
        object.serialize_field("locality", self.locality())?;
        object.serialize_field("kernel_allows", &self.is_allowed)?;
        object.serialize_field("amd_validated", &self.is_validated)?;
        object.serialize_field("current", &self.is_current)?;
        object.end()
    }
}

fn value<T>(seen: Option<Seen<T>>) -> Option<T> {
    seen.map(|seen| seen.value)
}

fn known<M>(modes: &Reading<Vec<M>>) -> Option<&[M]> {
    modes.as_deref().ok()
}
