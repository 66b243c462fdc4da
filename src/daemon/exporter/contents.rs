//! What is published: leases, drift, changes, pods and GPU clients.

use std::time::{Instant, SystemTime};

use host::timestamp::Timestamp;
use inventory::published::{Lease, Pod, Published, SCHEMA_VERSION};
use root::Root;

use super::changes::Changes;
use super::clients::Clients;
use super::drifting::Drifting;
use crate::lease::{self, Held, HeldBy};

/// kubelet makes a folder there for each pod of its node: NAMESPACE_NAME_UID (pkg/kubelet/kuberuntime/helpers.go,
/// `BuildPodLogsDirectory`).
const PODS: &str = "/var/log/pods";

/// How many pods are read: more than kubelet runs on a node.
const MOST_PODS: usize = 1024;

pub(super) fn gather(
    root: &Root,
    drifting: Drifting,
    clients: &mut Clients,
    changes: &mut Changes,
) -> Published {
    let Drifting { counts: drift, paths: drifting, config_in_force, problems } = drifting;
    Published {
        schema_version: SCHEMA_VERSION,
        leases: leases(root),
        drift,
        drifting,
        config_in_force: Some(config_in_force),
        problems: Some(problems),
        changes: changes.read(root),
        pods: pods(root),
        clients: clients.read(root, Instant::now()),
        written_at: Timestamp::of(SystemTime::now()).seconds(),
    }
}

pub(super) fn json(published: &Published) -> String {
    let text = serde_json::to_string(published).unwrap_or_default();
    format!("{text}\n")
}

/// Leases whose container lives, as `rocworker lease list` finds them; `None` where it would refuse.
fn leases(root: &Root) -> Option<Vec<Lease>> {
    let (held, _) = lease::list(root).ok()?;
    let of_container = |held: Held| {
        let is_held = held.held_by == HeldBy::Lease && held.alive_by.is_some();
        Some(Lease { gpu: held.render, container: held.id.filter(|_| is_held)? })
    };
    Some(held.into_iter().filter_map(of_container).collect())
}

fn pods(root: &Root) -> Vec<Pod> {
    if root.check_folder_owner(PODS).is_err() {
        return Vec::new();
    }
    let folders = root.list(PODS).unwrap_or_default();
    folders.iter().filter_map(|name| pod(name.to_str()?)).take(MOST_PODS).collect()
}

/// Parses a folder's name, whose parts are joined by underscores: no namespace, name or uid has one.
fn pod(folder: &str) -> Option<Pod> {
    let is_name = |part: &str| part.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'));
    let parts: Vec<&str> = folder.split('_').collect();
    match parts[..] {
        [namespace, name, uid] if parts.iter().all(|part| !part.is_empty() && is_name(part)) => {
            Some(Pod { uid: uid.to_owned(), namespace: namespace.to_owned(), name: name.to_owned() })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pod_is_read_from_its_folder_of_logs() {
        let uid = "ac04f3f2-1f2c-11e9-b015-1ebee232acfa";
        let found = pod(&format!("kube-system_coredns-5d78c9869d-abcde_{uid}")).unwrap();
        assert_eq!(
            (&*found.namespace, &*found.name, &*found.uid),
            ("kube-system", "coredns-5d78c9869d-abcde", uid)
        );
        for other in ["", "a_b", "a__c", "a_b_c_d", "a_b_c\n", "a_b/../x_c", "A_b_c"] {
            assert_eq!(pod(other), None, "{other}");
        }
    }
}
