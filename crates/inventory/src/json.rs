//! The JSON of an inventory, as docs/json.md documents it: absent is null, never 0.

use std::collections::BTreeMap;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::{DeviceNode, Gpu, Inventory, Kfd, Module, Partition, Reading, Sriov, Unknown, Vendor, names};

/// The `schema_version` in the JSON of an [`Inventory`].
const SCHEMA_VERSION: u32 = 1;

impl Serialize for Inventory {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Inventory", 6)?;
        object.serialize_field("schema_version", &SCHEMA_VERSION)?;
        object.serialize_field("gpus", &self.gpus)?;
        object.serialize_field("kfd", &self.kfd.node.number().map(|_| &self.kfd))?;
        object.serialize_field("amdgpu", &self.amdgpu)?;
        object.serialize_field("virtualization", &self.virtualization.as_ref().map(|it| it.name()))?;
        object.serialize_field("problems", &self.problems())?;
        object.end()
    }
}

impl Serialize for Kfd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let number = self.node.number();
        let mut object = serializer.serialize_struct("Kfd", 3)?;
        object.serialize_field("path", &self.node.path)?;
        object.serialize_field("major", &number.map(|(major, _)| major))?;
        object.serialize_field("minor", &number.map(|(_, minor)| minor))?;
        object.end()
    }
}

impl Serialize for Module {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Module", 3)?;
        object.serialize_field("loaded", &self.loaded.as_ref().ok())?;
        object.serialize_field("version", &self.version.as_ref().ok())?;
        object.serialize_field("srcversion", &self.srcversion.as_ref().ok())?;
        object.end()
    }
}

impl Serialize for Gpu {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let unknown = self.unknown();
        let fields = if self.is_integrated { 20 } else { 19 };
        let mut object = serializer.serialize_struct("Gpu", fields)?;
        object.serialize_field("index", &self.index)?;
        object.serialize_field("vendor", self.vendor.name())?;
        object.serialize_field("vendor_id", &self.vendor_id.map(hexadecimal))?;
        object.serialize_field("device_id", &self.device_id.map(hexadecimal))?;
        object.serialize_field("pci", &self.pci)?;
        object.serialize_field("name", &names::of(self))?;
        object.serialize_field("driver", &self.driver)?;
        object.serialize_field("gfx", &self.gfx.as_ref().ok().map(ToString::to_string))?;
        object.serialize_field("uuid", &self.uuid.as_ref().ok().map(ToString::to_string))?;
        object.serialize_field("card", &path(self.card.as_ref()))?;
        object.serialize_field("render", &path(self.render.as_ref()))?;
        object.serialize_field("kfd_node", &self.kfd_node)?;
        object.serialize_field("numa_node", &self.numa_node.as_ref().ok())?;
        object.serialize_field("vram_bytes", &self.vram_bytes.as_ref().ok())?;
        object.serialize_field("partition", &self.partition)?;
        object.serialize_field("sriov", &self.sriov)?;
        object.serialize_field("usable", &self.usable())?;
        if self.is_integrated {
            object.serialize_field("integrated", &true)?;
        }
        let problems: Vec<String> = self.problems.iter().map(ToString::to_string).collect();
        object.serialize_field("problems", &problems)?;
        object.serialize_field("unknown", &unknown)?;
        object.end()
    }
}

impl Gpu {
    /// Why a field of the JSON is null, by its name, where there is a reason worth telling: of another vendor's card nothing
    /// is read, so that nothing is missing.
    #[must_use]
    pub fn unknown(&self) -> BTreeMap<&'static str, String> {
        fn why<T>(reading: &Reading<T>) -> Option<&Unknown> {
            reading.as_ref().err()
        }
        let partition = self.partition.as_ref();
        let fields = [
            ("gfx", why(&self.gfx)),
            ("uuid", why(&self.uuid)),
            ("numa_node", why(&self.numa_node)),
            ("vram_bytes", why(&self.vram_bytes)),
            ("partition.compute", partition.and_then(|it| why(&it.compute))),
            ("partition.memory", partition.and_then(|it| why(&it.memory))),
        ];
        let fields = fields.into_iter().filter(|_| self.vendor == Vendor::Amd);
        fields.filter_map(|(field, why)| Some((field, why?.to_string()))).collect()
    }
}

impl Serialize for Partition {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Partition", 3)?;
        object.serialize_field("compute", &self.compute.as_ref().ok())?;
        object.serialize_field("memory", &self.memory.as_ref().ok())?;
        object.serialize_field("id", &self.id)?;
        object.end()
    }
}

impl Serialize for Sriov {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut object = serializer.serialize_struct("Sriov", 2)?;
        match self {
            Self::Physical { vfs } => {
                object.serialize_field("role", "pf")?;
                object.serialize_field("vfs", vfs)?;
            }
            Self::Virtual { of } => {
                object.serialize_field("role", "vf")?;
                object.serialize_field("of", of)?;
            }
        }
        object.end()
    }
}

/// A PCI id: four hexadecimal digits.
fn hexadecimal(id: u16) -> String {
    format!("{id:04x}")
}

fn path(node: Option<&DeviceNode>) -> Option<&std::path::Path> {
    node.map(|node| node.path.as_path())
}
