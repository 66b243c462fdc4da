//! Static pods: files from which the kubelet makes pods without an API server.

use std::collections::BTreeMap;

use real_engines::{image, look};
use serde_json::{Value, json};

/// The command of the image, by which a pod's sandbox waits.
pub(crate) const WAIT: [&str; 2] = ["/bin/sleep", "1000000"];
/// The one container of each pod.
pub const CONTAINER: &str = "main";

/// A pod that looks at its GPU nodes and then waits. It shares the node's network, so that it needs no CNI.
#[derive(Clone, Debug)]
pub struct Pod {
    pub(crate) name: String,
    limits: BTreeMap<String, String>,
}

impl Pod {
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self { name: name.to_owned(), limits: BTreeMap::new() }
    }

    /// So many devices of a plugin's resource.
    #[must_use]
    pub fn with(mut self, resource: &str, count: u32) -> Self {
        self.limits.insert(resource.to_owned(), count.to_string());
        self
    }

    pub(crate) fn manifest(&self) -> Value {
        let name = &self.name;
        // The second file says that the first one is whole.
        let script = format!("/bin/sh /look {name}; : >/seen/{name}.whole; exec {}", WAIT.join(" "));
        json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {
                "hostNetwork": true,
                "terminationGracePeriodSeconds": 1,
                "containers": [{
                    "name": CONTAINER,
                    "image": image::NAME,
                    "imagePullPolicy": "Never",
                    "command": ["/bin/sh", "-c", script],
                    "resources": {"limits": self.limits},
                    "volumeMounts": [{"name": "seen", "mountPath": "/seen"}],
                }],
                "volumes": [{"name": "seen", "hostPath": {"path": look::SEEN}}],
            },
        })
    }
}
