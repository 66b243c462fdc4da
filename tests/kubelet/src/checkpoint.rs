//! The file in which the kubelet keeps which container has which devices, also while it does not run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

/// The checkpoint's name in the kubelet's folder of plugins.
pub(crate) const FILE: &str = "device-plugins/kubelet_internal_checkpoint";

/// The content of a checkpoint. Devices are sets: the kubelet writes them in any order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// The healthy devices of each resource at the last change.
    pub registered: BTreeMap<String, BTreeSet<String>>,
    pub allocated: Vec<Allocated>,
}

/// The devices of a container.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Allocated {
    pub pod: String,
    pub container: String,
    pub resource: String,
    /// By NUMA node; devices without one stand beneath 0 in Kubernetes 1.20.
    pub devices: BTreeMap<String, BTreeSet<String>>,
}

impl Allocated {
    /// The devices of all NUMA nodes.
    pub fn ids(&self) -> BTreeSet<&str> {
        self.devices.values().flatten().map(String::as_str).collect()
    }
}

impl Checkpoint {
    /// # Panics
    /// Where the text is no checkpoint of Kubernetes 1.20 or newer.
    pub fn of(text: &str) -> Self {
        let whole: Value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let data = &whole["Data"];
        let registered = by_name(&data["RegisteredDevices"]);
        let entries = data["PodDeviceEntries"].as_array().into_iter().flatten();
        let mut allocated: Vec<_> = entries.map(allocated).collect();
        allocated.sort();
        Self { registered, allocated }
    }

    /// The devices of a pod's container.
    ///
    /// # Panics
    /// Where it has none.
    #[track_caller]
    pub fn ids_of(&self, pod_uid: &str) -> BTreeSet<&str> {
        let found = self.allocated.iter().find(|entry| entry.pod == pod_uid);
        found.unwrap_or_else(|| panic!("{pod_uid} has no device in {self:#?}")).ids()
    }
}

fn allocated(entry: &Value) -> Allocated {
    let text = |key: &str| entry[key].as_str().unwrap().to_owned();
    Allocated {
        pod: text("PodUID"),
        container: text("ContainerName"),
        resource: text("ResourceName"),
        devices: by_name(&entry["DeviceIDs"]),
    }
}

fn by_name(lists: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let lists = lists.as_object().into_iter().flatten();
    lists.map(|(name, ids)| (name.clone(), strings(ids))).collect()
}

fn strings(list: &Value) -> BTreeSet<String> {
    list.as_array().into_iter().flatten().map(|id| id.as_str().unwrap().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_checkpoint_says_what_is_registered_and_who_has_what() {
        let text = r#"{"Data":{"PodDeviceEntries":[{"PodUID":"u","ContainerName":"main","ResourceName":"amd.com/gpu",
            "DeviceIDs":{"0":["b","a"],"1":["c"]},"AllocResp":"Gg=="}],"RegisteredDevices":{"amd.com/gpu":["c","a","b"]}},
            "Checksum":1}"#;
        let checkpoint = Checkpoint::of(text);
        assert_eq!(checkpoint.ids_of("u"), ["a", "b", "c"].into());
        assert_eq!(checkpoint.registered["amd.com/gpu"], ["a", "b", "c"].map(str::to_owned).into());
        let empty =
            Checkpoint::of(r#"{"Data":{"PodDeviceEntries":null,"RegisteredDevices":{}},"Checksum":1}"#);
        assert_eq!(empty, Checkpoint::default());
    }
}
