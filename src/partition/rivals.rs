//! AMD's own programs that switch the modes of cards: rocworker leaves the cards to them.

use root::Root;

/// What a pod's name has, whoever installed it, and the program that runs in it.
const PODS: [(&str, &str); 2] =
    [("device-config-manager", "AMD's Device Config Manager"), ("gpu-dra-driver", "AMD's DRA driver")];

/// Each program that switches modes on this machine, by the kubelet's folders of pods' logs
/// (/var/log/pods/NAMESPACE_POD_UID, pkg/kubelet/kuberuntime of Kubernetes).
#[must_use]
pub fn rivals(root: &Root) -> Vec<String> {
    let pods = root.list("/var/log/pods").unwrap_or_default();
    let pods: Vec<&str> = pods.iter().filter_map(|pod| pod.to_str()).collect();
    let rival = |(part, program): &(&str, &str)| {
        let pod = pods.iter().find_map(|pod| pod.split('_').nth(1).filter(|name| name.contains(part)))?;
        Some(format!(
            "{program} (pod {pod}) sets the modes of this machine's cards: rocworker leaves them alone; ask that program, \
             or remove it"
        ))
    };
    PODS.iter().filter_map(rival).collect()
}
