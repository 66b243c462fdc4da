//! What runs the kubelet here, and the commands for it.

use host::own_containerd::{self, OwnContainerd};

use crate::doctor::machine::Subject;

pub(super) struct Distribution {
    /// The containerd that it brings.
    pub(super) containerd: Option<OwnContainerd>,
    /// The command that starts the kubelet again.
    pub(super) restart: String,
    /// The command that shows the kubelet's log.
    pub(super) log: String,
}

impl Distribution {
    pub(super) fn of(subject: &Subject<'_>) -> Self {
        let is_here = |name: &str| subject.facts.unserved.iter().any(|it| it.name == name);
        let own = own_containerd::ALL.into_iter().find(|it| is_here(it.name));
        let of_unit = |unit: &str| (format!("systemctl restart {unit}"), format!("journalctl --unit {unit}"));
        let (restart, log) = match own {
            Some(own) => match own.unit(subject.root) {
                Some(unit) => of_unit(unit),
                None => (own.restart(subject.root), "snap logs microk8s.daemon-kubelite".to_owned()),
            },
            None if is_here("k0s") => ("k0s stop && k0s start".to_owned(), "k0s status".to_owned()),
            None => of_unit("kubelet"),
        };
        Self { containerd: own, restart, log }
    }
}
