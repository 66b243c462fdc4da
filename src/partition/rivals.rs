//! AMD's own programs that switch the modes of cards: rocworker leaves the cards to them.

use std::path::Path;

use root::Root;

/// What a pod's name has, whoever installed it, and the program that runs in it.
const PODS: [(&str, &str); 2] =
    [("device-config-manager", "AMD's Device Config Manager"), ("gpu-dra-driver", "AMD's DRA driver")];

/// A sentence for each program that switches modes on this machine, by the kubelet's folders of pods' logs
/// (/var/log/pods/NAMESPACE_POD_UID, pkg/kubelet/kuberuntime of Kubernetes), and where that folder cannot be read.
#[must_use]
pub fn rivals(root: &Root) -> Vec<String> {
    let pods = match root.list("/var/log/pods") {
        Ok(pods) => pods,
        Err(error) if error.is_not_found() => Vec::new(),
        Err(error) => {
            return vec![format!(
                "whether a pod sets the modes of this machine's cards is not known: {error}"
            )];
        }
    };
    let pods: Vec<&str> = pods.iter().filter_map(|pod| pod.to_str()).collect();
    let rival = |(part, program): &(&str, &str)| {
        let is_its = |pod: &&&str| pod.split('_').nth(1).is_some_and(|name| name.contains(part));
        let folder = pods.iter().find(is_its)?;
        Some(format!(
            "{program} sets the modes of this machine's cards, by the pod of {}: rocworker leaves them alone; ask that \
             program, or delete the pod, with this folder if the pod has gone",
            root.shown(Path::new("/var/log/pods").join(folder)).display()
        ))
    };
    PODS.iter().filter_map(rival).collect()
}
