//! What pods that have ended leave on GPUs: processes that still have memory or queues there.
//!
//! A pod's end is read from the kubelet, which says which pods have which GPUs, and from the cgroups of KFD's processes.
//! Two looks in a row must agree: what goes between them was only being cleared up. While the kubelet or KFD does not
//! say, the last verdict stays.

use std::collections::{BTreeMap, BTreeSet};

use crate::device::Device;
use crate::look::{Is, User};

/// At most this many processes are named.
const MOST_NAMED: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Leftovers {
    /// The processes that were a pod's when they were last seen: of one that has ended only its number is left.
    of_pods: BTreeSet<u32>,
    /// The processes on GPUs that no pod has, at the last look: pids and KFD's nodes.
    before: BTreeSet<(u32, u32)>,
    verdict: BTreeMap<String, String>,
}

impl Leftovers {
    /// Whether a look needs to know which GPUs pods have.
    pub(crate) fn must_know_pods(&self, users: Option<&[User]>) -> bool {
        !self.before.is_empty() || users.into_iter().flatten().any(|user| self.is_of_pod(user))
    }

    fn is_of_pod(&self, user: &User) -> bool {
        user.is == Is::OfPod || (user.is == Is::Gone && self.of_pods.contains(&user.pid))
    }

    /// Notes a look, and gives for each device with leftovers, by its id, the end of a sentence about it. `users`, `held`:
    /// who uses GPUs, and the ids of those that pods have; `None` where that is not known.
    pub(crate) fn note(
        &mut self,
        users: Option<&[User]>,
        held: Option<&BTreeSet<String>>,
        devices: &[Device],
    ) -> &BTreeMap<String, String> {
        if let Some(users) = users {
            let pids = |is: Is| users.iter().filter(move |user| user.is == is).map(|user| user.pid);
            let gone: BTreeSet<u32> = pids(Is::Gone).collect();
            self.of_pods.retain(|pid| gone.contains(pid));
            self.of_pods.extend(pids(Is::OfPod));
        }
        let Some((users, held)) = users.zip(held) else { return &self.verdict };
        let device = |user: &User| {
            devices.iter().find(|it| it.kfd_node == Some(user.kfd_node)).map(|it| it.id.as_str())
        };
        let is_left =
            |user: &&User| self.is_of_pod(user) && device(user).is_some_and(|id| !held.contains(id));
        let now: BTreeSet<&User> = users.iter().filter(is_left).collect();
        let mut left = BTreeMap::<String, BTreeMap<Is, Vec<u32>>>::new();
        for user in now.iter().filter(|user| self.before.contains(&(user.pid, user.kfd_node))) {
            if let Some(id) = device(user) {
                left.entry(id.to_owned()).or_default().entry(user.is).or_default().push(user.pid);
            }
        }
        self.verdict = left.into_iter().map(|(id, pids)| (id, sentence(&pids))).collect();
        self.before = now.into_iter().map(|user| (user.pid, user.kfd_node)).collect();
        &self.verdict
    }
}

fn sentence(pids: &BTreeMap<Is, Vec<u32>>) -> String {
    let named = |pids: &Vec<u32>| {
        let pids: Vec<String> = pids.iter().take(MOST_NAMED).map(u32::to_string).collect();
        pids.join(", ")
    };
    match (pids.get(&Is::OfPod), pids.get(&Is::Gone)) {
        (Some(pids), _) => {
            format!("is still used by a pod to which the kubelet has not given it (process {})", named(pids))
        }
        (None, gone) => {
            let pids = gone.map(named).unwrap_or_default();
            format!("still has memory or queues of a pod's process {pids}, which has ended")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::Modes;

    fn device(id: &str, kfd_node: u32) -> Device {
        let gpu = allocation::gpu::Gpu::default();
        Device { id: id.to_owned(), modes: Modes::None, gpu, kfd_node: Some(kfd_node), cdi: None }
    }

    /// A look: the process on the GPU, and whether a pod has the GPU; `None`: that is not known.
    type Look = (Option<Option<(u32, Is)>>, Option<bool>);

    #[test]
    fn a_verdict_takes_two_looks_that_agree_and_ends_with_one() {
        const ENDED: &str = "process 7, which has ended";
        const ALIVE: &str = "(process 7)";
        let process = |is, is_held| -> Look { (Some(Some((7, is))), Some(is_held)) };
        let (held, left) = (process(Is::OfPod, true), process(Is::OfPod, false));
        let (gone, host) = (process(Is::Gone, false), process(Is::OfHost, false));
        let other: Look = (Some(Some((6, Is::OfPod))), Some(false));
        let clean: Look = (Some(None), Some(false));
        let (no_kubelet, no_kfd): (Look, Look) = ((Some(None), None), (None, Some(false)));
        let table: [(&[Look], &str); 14] = [
            (&[held, held, held], ""),
            (&[held, left], ""),
            (&[left, left], ALIVE),
            // What goes between two looks was only being cleared up, behind one process and then another.
            (&[other, left], ""),
            (&[left, left, clean], ""),
            // A pod's process that has ended, and KFD still has it.
            (&[held, gone, gone], ENDED),
            (&[left, gone], ENDED),
            // The host's processes are no evidence, also once they have ended.
            (&[host, host, host], ""),
            (&[host, gone, gone], ""),
            // The number was a pod's process's before.
            (&[held, host, gone, gone], ""),
            // Another pod has the GPU by now.
            (&[left, left, held], ""),
            // What is not known leaves the verdict as it was.
            (&[left, left, no_kubelet], ALIVE),
            (&[left, left, no_kfd], ALIVE),
            (&[(Some(Some((7, Is::OfPod))), None); 3], ""),
        ];
        for (looks, expected) in table {
            let mut leftovers = Leftovers::default();
            let devices = [device("a", 1), device("b", 2)];
            for (users, is_held) in looks {
                let user = |(pid, is): &(u32, Is)| User { pid: *pid, kfd_node: 1, is: *is };
                let users = users.as_ref().map(|users| users.iter().map(user).collect::<Vec<_>>());
                let held =
                    is_held.map(|is_held| if is_held { ["a".to_owned()].into() } else { BTreeSet::new() });
                leftovers.note(users.as_deref(), held.as_ref(), &devices);
            }
            let verdict = leftovers.verdict;
            match expected {
                "" => assert_eq!(verdict, BTreeMap::new(), "{looks:?}"),
                expected => {
                    assert!(verdict["a"].contains(expected) && verdict.len() == 1, "{looks:?}: {verdict:?}");
                }
            }
        }
    }
}
